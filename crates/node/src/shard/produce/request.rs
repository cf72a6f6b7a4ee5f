use std::collections::BTreeMap;

use highwater_disk::Disk;
use highwater_protocol::{ProduceView, Request, TopicKey};
use highwater_records::BatchHeader;
use highwater_types::{ErrorCode, Now, Offset, PartitionIndex, TopicIdPartition};

use super::append::is_transactional;
use super::join::{OwnedTopic, PendingProduce};
use super::outcome::{Outcome, Progress};
use super::{AppendContext, AppendRow, ProducePart, answer, send};
use crate::authorizer::{Operation, Resource};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Caller, Effect, Incoming};
use crate::shard::describe::is_internal;
use crate::shard::{Effects, Shard, owner_shard};

/// Most partitions, and most topics, of one request. Far beyond any client, and it bounds what a
/// request of many empty rows makes us hold.
const PARTITIONS_MAX: usize = 100_000;
/// Kafka's admin tools may write to internal topics under this client id.
const ADMIN_CLIENT_ID: &str = "__admin_client";

/// What is refused for the request as a whole.
struct Verdict<'a> {
    caller: &'a Caller,
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
        let verdict = self.judge(&view, &caller, client_id.as_deref());
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
        verdict: &Verdict<'_>,
        out: &mut Effects<D>,
    ) -> Vec<Progress> {
        let mut rows = Vec::with_capacity(view.partition_count());
        let mut elsewhere: BTreeMap<u16, Vec<AppendRow>> = BTreeMap::new();
        for topic in view.topics() {
            for partition in topic.partitions {
                let number = u32::try_from(rows.len()).expect("fewer than PARTITIONS_MAX rows");
                let target = match &verdict.all {
                    Some(refused) => Err(refused.clone()),
                    None => self.target(topic.topic, partition.partition, verdict),
                };
                let started = target.and_then(|id| {
                    let records = partition.records.ok_or_else(no_records)?;
                    check_acks(context.acks, &records)?;
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
        verdict: &Verdict<'_>,
    ) -> Result<TopicIdPartition, Outcome> {
        let unknown = || Outcome::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        let found = match topic {
            TopicKey::Name(name) => {
                self.check_may_write(verdict, name)?;
                self.image.topic_by_name(name).ok_or_else(unknown)?
            }
            TopicKey::Id(id) => {
                let unknown = || Outcome::refused(ErrorCode::UNKNOWN_TOPIC_ID);
                let found = self.image.topic(id).ok_or_else(unknown)?;
                self.check_may_write(verdict, found.name.as_str())?;
                found
            }
        };
        if !verdict.internal_allowed && is_internal(found.name.as_str()) {
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

impl<D: Disk> Shard<D> {
    fn check_may_write(&self, verdict: &Verdict<'_>, topic: &str) -> Result<(), Outcome> {
        let resource = Resource::Topic(topic);
        if self.allows(verdict.caller, Operation::Write, resource) {
            Ok(())
        } else {
            Err(Outcome::refused(ErrorCode::TOPIC_AUTHORIZATION_FAILED))
        }
    }

    /// What is wrong with the request as a whole.
    fn judge<'a>(
        &self,
        view: &ProduceView,
        caller: &'a Caller,
        client_id: Option<&str>,
    ) -> Verdict<'a> {
        let internal_allowed = client_id == Some(ADMIN_CLIENT_ID);
        let all = if self.may_produce(view, caller) {
            None
        } else {
            let message =
                "a transactional batch needs a transactional id that its producer may write to";
            Some(Outcome::explained(
                ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                message,
            ))
        };
        Verdict {
            caller,
            all,
            internal_allowed,
        }
    }

    /// Whether the caller may write to the transactional id, if any batch is part of a
    /// transaction.
    fn may_produce(&self, view: &ProduceView, caller: &Caller) -> bool {
        let mut records = view
            .topics()
            .flat_map(|topic| topic.partitions)
            .filter_map(|partition| partition.records);
        if !records.any(|it| is_transactional(&it)) {
            return true;
        }
        view.transactional_id().is_some_and(|id| {
            let resource = Resource::TransactionalId(id);
            self.allows(caller, Operation::Write, resource)
        })
    }
}

/// Null records: Kafka 4.4 runs into a null pointer and never answers. We do.
fn no_records() -> Outcome {
    Outcome::explained(ErrorCode::INVALID_RECORD, "the records are null")
}

/// As in Kafka, what is no batch at all is told first.
fn check_acks(acks: i16, records: &[u8]) -> Result<(), Outcome> {
    if matches!(acks, -1..=1) {
        return Ok(());
    }
    match BatchHeader::parse(records) {
        Err(why) if why.error_code() == ErrorCode::INVALID_RECORD => {
            return Err(Outcome::bad_batch(&why, Offset::NONE));
        }
        Ok(header) if header.size_bytes() != records.len() => {
            let message = "the records are not one whole batch";
            return Err(Outcome::explained(ErrorCode::INVALID_RECORD, message));
        }
        Ok(_) | Err(_) => {}
    }
    let message = format!("acks is {acks}; only -1, 0 and 1 exist");
    Err(Outcome::explained(
        ErrorCode::INVALID_REQUIRED_ACKS,
        message,
    ))
}
