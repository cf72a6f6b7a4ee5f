use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_protocol::{ProduceView, Request, TopicKey};
use highwater_records::BatchHeader;
use highwater_types::{ErrorCode, Now, PartitionIndex, TopicIdPartition};

use super::join::{OwnedTopic, PendingProduce};
use super::outcome::{Outcome, Progress};
use super::{AppendContext, AppendRow, ProducePart, answer, send};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Effect, Incoming};
use crate::shard::describe::is_internal;
use crate::shard::{Effects, Shard, owner_shard};

/// Most partitions, and most topics, of one request. Far beyond any client, and it bounds what a
/// request of many empty rows makes us hold.
const PARTITIONS_MAX: usize = 100_000;
/// Kafka's admin tools may write to internal topics under this client id.
const ADMIN_CLIENT_ID: &str = "__admin_client";
/// From this version on a leader adds the partition to the transaction by itself (KIP-890).
const ADDS_TO_TRANSACTION_SINCE: i16 = 12;

/// What is refused for the request as a whole.
struct Verdict {
    all: Option<Outcome>,
    internal_allowed: bool,
}

impl<D: Disk> Shard<D> {
    pub(crate) fn handle_produce(&mut self, now: Now, incoming: Incoming, out: &mut Effects<D>) {
        let Incoming {
            ticket,
            caller,
            client_id,
            version,
            request,
            raw,
        } = incoming;
        drop(raw);
        let Request::Produce(view) = request else {
            unreachable!("only Produce requests come here");
        };
        let rows = view.partition_count().max(view.topic_count());
        if rows > PARTITIONS_MAX {
            let text = format!("connection closed: Produce of {rows} topics or partitions");
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
            out.push(Effect::Answer {
                ticket,
                answer: Answer::close(),
            });
            return;
        }
        let context = AppendContext {
            home: self.number,
            ticket,
            version,
            acks: view.acks(),
            timeout: view.timeout(),
        };
        let verdict = judge(&view, client_id.as_deref());
        let rows = self.start_rows(now, &context, &view, &verdict, out);
        let topics: Vec<_> = view
            .topics()
            .map(|it| (it.topic, it.partitions.map(|it| it.partition)))
            .collect();
        if rows
            .iter()
            .all(|progress| matches!(progress, Progress::Done(_)))
        {
            let rows = rows.into_iter().filter_map(|progress| match progress {
                Progress::Done(outcome) => Some(outcome),
                Progress::Pending | Progress::Waiting => None,
            });
            let topics = topics.into_iter();
            let answer = answer::answer(&self.image, &caller, version, context.acks, topics, rows);
            out.push(Effect::Answer { ticket, answer });
            return;
        }
        let topics = topics.into_iter().map(|(topic, partitions)| OwnedTopic {
            topic: topic.into(),
            partitions: partitions.collect(),
        });
        let pending = PendingProduce::new(caller, version, context.acks, topics.collect(), rows);
        self.put_pending(ticket, pending, out);
    }

    /// Appends, refuses or sends off each row, and says how far it is.
    fn start_rows(
        &mut self,
        now: Now,
        context: &AppendContext,
        view: &ProduceView,
        verdict: &Verdict,
        out: &mut Effects<D>,
    ) -> Vec<Progress> {
        let mut rows = Vec::with_capacity(view.partition_count());
        let mut elsewhere: BTreeMap<u16, Vec<AppendRow>> = BTreeMap::new();
        for topic in view.topics() {
            for partition in topic.partitions {
                let number = u32::try_from(rows.len()).expect("fewer than PARTITIONS_MAX rows");
                let target = match &verdict.all {
                    Some(refused) => Err(refused.clone()),
                    None => {
                        let key = topic.topic;
                        self.target(key, partition.partition, verdict.internal_allowed)
                    }
                };
                let started = target.and_then(|id| {
                    let records = partition.records.ok_or_else(no_records)?;
                    check_acks(context.acks)?;
                    Ok(AppendRow {
                        row: number,
                        id,
                        records,
                    })
                });
                rows.push(match started {
                    Err(refused) => Progress::Done(refused),
                    Ok(row) => match owner_shard(row.id, self.shards) {
                        owner if owner == self.number => self.append_row(now, context, row, out),
                        owner => {
                            elsewhere.entry(owner).or_default().push(row);
                            Progress::Pending
                        }
                    },
                });
            }
        }
        for (owner, rows) in elsewhere {
            send(
                owner,
                ProducePart::Append {
                    context: *context,
                    rows,
                },
                out,
            );
        }
        rows
    }

    /// The partition that a row names, if it exists and clients may write to it.
    fn target(
        &self,
        topic: TopicKey<'_>,
        partition: PartitionIndex,
        internal_allowed: bool,
    ) -> Result<TopicIdPartition, Outcome> {
        let unknown = || Outcome::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        let found = match topic {
            TopicKey::Name(name) => self.image.topic_by_name(name).ok_or_else(unknown)?,
            TopicKey::Id(id) => {
                let unknown = || Outcome::refused(ErrorCode::UNKNOWN_TOPIC_ID);
                self.image.topic(id).ok_or_else(unknown)?
            }
        };
        if !internal_allowed && is_internal(found.name.as_str()) {
            let message = format!("clients do not write to {}", found.name);
            return Err(Outcome::explained(
                ErrorCode::INVALID_TOPIC_EXCEPTION,
                message,
            ));
        }
        if !found.partitions.contains_key(&partition) {
            return Err(unknown());
        }
        Ok(TopicIdPartition {
            topic_id: found.id,
            partition,
        })
    }
}

/// What is wrong with the request as a whole.
fn judge(view: &ProduceView, client_id: Option<&str>) -> Verdict {
    let internal_allowed = client_id == Some(ADMIN_CLIENT_ID);
    let all = if view.timeout_ms() < 0 {
        let message = format!("timeout {} ms is negative", view.timeout_ms());
        Some(Outcome::explained(ErrorCode::INVALID_REQUEST, message))
    } else if !is_transactional(view) {
        None
    } else if view.transactional_id().is_none() {
        let message = "a transactional batch needs a transactional id in its request";
        Some(Outcome::explained(
            ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            message,
        ))
    } else {
        // Without a coordinator no transaction can have been begun here.
        let error = if view.version() < ADDS_TO_TRANSACTION_SINCE {
            ErrorCode::TRANSACTION_ABORTABLE
        } else {
            ErrorCode::INVALID_TXN_STATE
        };
        Some(Outcome::explained(
            error,
            "this broker does not serve transactions yet",
        ))
    };
    Verdict {
        all,
        internal_allowed,
    }
}

/// Whether any partition's batch says that it is part of a transaction.
fn is_transactional(view: &ProduceView) -> bool {
    let is_transactional = |records: Bytes| {
        BatchHeader::parse(&records).is_ok_and(|header| header.attributes.is_transactional())
    };
    view.topics()
        .flat_map(|topic| topic.partitions)
        .filter_map(|partition| partition.records)
        .any(is_transactional)
}

/// Null records: Kafka 4.4 runs into a null pointer and never answers. We do.
fn no_records() -> Outcome {
    Outcome::explained(ErrorCode::INVALID_RECORD, "the records are null")
}

fn check_acks(acks: i16) -> Result<(), Outcome> {
    if matches!(acks, -1..=1) {
        return Ok(());
    }
    let message = format!("acks is {acks}; only -1, 0 and 1 exist");
    Err(Outcome::explained(
        ErrorCode::INVALID_REQUIRED_ACKS,
        message,
    ))
}
