use bytes::Bytes;
use highwater_disk::Disk;
use highwater_log::{AppendError, Appended, Origin};
use highwater_metadata::config::TopicSettings;
use highwater_records::{BatchHeader, Compression, Compressor, Validated, ValidationRules};
use highwater_replication::Replica;
use highwater_types::{ErrorCode, Now, Offset, TopicIdPartition};

use super::outcome::{Outcome, Progress};
use super::purgatory::{Until, Wait};
use super::{AppendContext, AppendRow, HeldAppend, Stage};
use crate::job::{BatchPrepared, Job, LogDirNumber, PrepareBatch, Work};
use crate::journal::{Happening, Level};
use crate::machine::{Effect, Token};
use crate::shard::partition::{OnlinePartition, PartitionState, timestamp_type};
use crate::shard::{Effects, Shard, ShardSettings};

/// Most appends that wait for one log to be made.
const QUEUED_APPENDS_MAX: usize = 64;
/// The first version whose records may be compressed with zstd (KIP-110).
const ZSTD_SINCE: i16 = 7;
/// From this version on a leader adds the partition to the transaction by itself (KIP-890).
const ADDS_TO_TRANSACTION_SINCE: i16 = 12;
const ACKS_ALL: i16 = -1;
const ACKS_NONE: i16 = 0;

/// What became of an append at one stage.
enum Step {
    /// It may go on.
    On(HeldAppend),
    /// It waits for an event.
    Held,
    /// It is over.
    Over(Progress),
}

impl Step {
    const fn refused(outcome: Outcome) -> Self {
        Self::Over(Progress::Done(outcome))
    }
}

impl<D: Disk> Shard<D> {
    /// Appends to a partition of this shard, or says why not, or holds the append until the event
    /// that it waits for.
    pub(super) fn append_row(
        &mut self,
        now: Now,
        context: &AppendContext,
        row: AppendRow,
        out: &mut Effects<D>,
    ) -> Progress {
        self.take_on(now, HeldAppend::new(*context, row), out)
    }

    /// Takes an append from the stage that it is at as far as it goes now.
    fn take_on(&mut self, now: Now, mut append: HeldAppend, out: &mut Effects<D>) -> Progress {
        loop {
            let step = match append.stage {
                Stage::Log => self.pass_log(append),
                Stage::Transaction => pass_transaction(append),
                Stage::Batch => self.pass_batch(now, append, out),
            };
            match step {
                Step::On(further) => append = further,
                Step::Held => return Progress::Pending,
                Step::Over(progress) => return progress,
            }
        }
    }

    fn pass_log(&mut self, mut append: HeldAppend) -> Step {
        let is_closing = self.lifecycle.is_closing();
        let partition = self.partitions.find_mut(append.row.id);
        let Some(partition) = partition.filter(|_| !is_closing) else {
            return Step::refused(Outcome::refused(ErrorCode::NOT_LEADER_OR_FOLLOWER));
        };
        if let PartitionState::Opening {
            is_new: true,
            queued,
        } = &mut partition.state
            && queued.len() < QUEUED_APPENDS_MAX
        {
            queued.push(append);
            return Step::Held;
        }
        let acks_all = append.context.acks == ACKS_ALL;
        let checked = partition
            .online()
            .and_then(|online| online.replica.check_append(acks_all));
        if let Err(error) = checked {
            return Step::refused(Outcome::refused(error));
        }
        append.stage = Stage::Transaction;
        Step::On(append)
    }

    fn pass_batch(&mut self, now: Now, append: HeldAppend, out: &mut Effects<D>) -> Step {
        let HeldAppend { context, row, .. } = &append;
        let Some(partition) = self.partitions.find(row.id) else {
            return Step::refused(Outcome::refused(ErrorCode::NOT_LEADER_OR_FOLLOWER));
        };
        let log_start_offset = match partition.online() {
            Ok(online) => online.log.log_start_offset(),
            Err(error) => return Step::refused(Outcome::refused(error)),
        };
        let rules = rules(now, &partition.settings, &self.settings, context.version);
        match self.produce.validator.validate_inline(&row.records, &rules) {
            Err(why) => Step::refused(Outcome::bad_batch(&why, log_start_offset)),
            Ok(Some(validated)) if !validated.needs_recompression => {
                Step::Over(self.append_batch(now, context, row, &row.records, &validated, out))
            }
            Ok(_) => {
                let dir = partition.dir;
                self.prepare_batch(append, dir, rules, out);
                Step::Held
            }
        }
    }

    fn prepare_batch(
        &mut self,
        append: HeldAppend,
        dir: LogDirNumber,
        rules: ValidationRules,
        out: &mut Effects<D>,
    ) {
        let token = self.new_token();
        let compressor = rules.compression.map(Compressor::new).unwrap_or_default();
        let work = Work::PrepareBatch(PrepareBatch {
            records: append.row.records.clone(),
            rules,
            compressor,
        });
        self.produce.held.insert(token, append);
        out.push(Effect::Job {
            token,
            job: Job { dir, work },
        });
    }

    /// A job has prepared a batch: now it is appended, if the partition still takes it.
    pub(crate) fn handle_batch_prepared(
        &mut self,
        now: Now,
        token: Token,
        prepared: BatchPrepared,
        out: &mut Effects<D>,
    ) {
        let held = self.produce.held.remove(&token);
        let HeldAppend { context, row, .. } = held.expect("an append whose batch is out");
        let progress = match prepared {
            Ok((records, validated)) => {
                self.append_batch(now, &context, &row, &records, &validated, out)
            }
            Err(why) => {
                let online = self.partitions.online_mut(row.id);
                let start = online.map_or(Offset::NONE, |online| online.log.log_start_offset());
                Progress::Done(Outcome::bad_batch(&why, start))
            }
        };
        self.deliver_row(context.key(row.row), progress, out);
    }

    /// Appends what waited for the log to be made.
    pub(crate) fn append_queued(
        &mut self,
        now: Now,
        queued: Vec<HeldAppend>,
        out: &mut Effects<D>,
    ) {
        for append in queued {
            let key = append.context.key(append.row.row);
            let progress = self.take_on(now, append, out);
            self.deliver_row(key, progress, out);
        }
    }

    /// Refuses what waited for a log that is not going to be made.
    pub(crate) fn refuse_queued(
        &mut self,
        queued: Vec<HeldAppend>,
        error: ErrorCode,
        out: &mut Effects<D>,
    ) {
        for HeldAppend { context, row, .. } in queued {
            let progress = Progress::Done(Outcome::refused(error));
            self.deliver_row(context.key(row.row), progress, out);
        }
    }

    fn append_batch(
        &mut self,
        now: Now,
        context: &AppendContext,
        row: &AppendRow,
        records: &Bytes,
        validated: &Validated,
        out: &mut Effects<D>,
    ) -> Progress {
        let AppendRow { row, id, .. } = *row;
        let is_closing = self.lifecycle.is_closing();
        let Some(partition) = self.partitions.find_mut(id).filter(|_| !is_closing) else {
            return Progress::Done(Outcome::refused(ErrorCode::NOT_LEADER_OR_FOLLOWER));
        };
        // A job may have taken a while: the role is looked at once more.
        let checked = partition.online_mut().and_then(|online| {
            let epoch = online.replica.check_append(context.acks == ACKS_ALL)?;
            Ok((online, epoch))
        });
        let (OnlinePartition { log, .. }, epoch) = match checked {
            Ok(checked) => checked,
            Err(error) => return Progress::Done(Outcome::refused(error)),
        };
        let appended = match log.append_as_leader(now, epoch, records, validated, Origin::Client) {
            Ok(appended) => appended,
            Err(why) => {
                let refused = Outcome::not_appended(&why, log.log_start_offset());
                self.note_disk_error(id, &why, out);
                return Progress::Done(refused);
            }
        };
        let outcome = Outcome::appended(&appended, log.log_start_offset());
        let log_end_offset = log.log_end_offset();
        if !appended.duplicate {
            let Appended { first_offset, .. } = appended;
            let happening = |partition| Happening::Appended {
                partition,
                first_offset,
                end_offset: log_end_offset,
                epoch,
            };
            self.partition_changed(id, Level::Trace, happening, out);
            self.with_replica(now, id, out, |replica, outputs| {
                replica.handle_appended(now, log_end_offset, outputs);
            });
            self.after_append(now, id, out);
        }
        self.wait_if_needed(now, context, row, id, &appended, outcome, out)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a row of a request and its append"
    )]
    fn wait_if_needed(
        &mut self,
        now: Now,
        context: &AppendContext,
        row: u32,
        id: TopicIdPartition,
        appended: &Appended,
        outcome: Outcome,
        out: &mut Effects<D>,
    ) -> Progress {
        let until = match context.acks {
            ACKS_ALL => Until::HighWatermark,
            ACKS_NONE => return Progress::Done(outcome),
            _ => Until::OwnCopy,
        };
        // A duplicate waits too: that it is in the log does not make it safe.
        let end_offset = appended.last_offset.next();
        let known = match self.partitions.online_mut(id) {
            Some(online) => outcome_of(&online.replica, until, end_offset),
            None => Some(ErrorCode::KAFKA_STORAGE_ERROR),
        };
        if let Some(error) = known {
            return Progress::Done(outcome.with_error(error));
        }
        let happening = |partition| Happening::ProduceWaits {
            partition,
            for_own_copy: until == Until::OwnCopy,
            end_offset,
        };
        self.journal_of(id, Level::Trace, happening, out);
        let deadline = now.mono.plus(context.timeout);
        let wait = Wait {
            id,
            until,
            end_offset,
            deadline,
            outcome,
        };
        self.produce.purgatory.insert(context.key(row), wait);
        Progress::Waiting
    }

    /// A full disk may have room again: the log mends its tail before the next append. Any other
    /// disk error stops the partition.
    pub(crate) fn note_disk_error(
        &mut self,
        id: TopicIdPartition,
        why: &AppendError,
        out: &mut Effects<D>,
    ) {
        let AppendError::Disk(error) = why else {
            return;
        };
        if error.may_pass() {
            let why = error.to_string();
            let happening = |partition| Happening::AppendFailed { partition, why };
            self.partition_changed(id, Level::Error, happening, out);
        } else {
            self.fail_partition(id, &error.to_string(), out);
        }
    }

    /// Completes the appends that the changed partitions allow to.
    pub(crate) fn produce_partitions_changed(
        &mut self,
        changed: &[TopicIdPartition],
        out: &mut Effects<D>,
    ) {
        for (id, until) in changed
            .iter()
            .flat_map(|id| Until::ALL.map(|until| (*id, until)))
        {
            while let Some(end_offset) = self.produce.purgatory.next_of(id, until) {
                let Some(online) = self.partitions.online_mut(id) else {
                    break;
                };
                let Some(error) = outcome_of(&online.replica, until, end_offset) else {
                    break;
                };
                self.end_next_of(id, until, error, out);
            }
        }
    }

    /// Ends everything that waits for a partition with `error`: its leadership, its log or the
    /// partition itself is gone. Returns how many appends that were.
    pub(crate) fn end_waiting_appends(
        &mut self,
        id: TopicIdPartition,
        error: ErrorCode,
        out: &mut Effects<D>,
    ) -> usize {
        let mut count = 0;
        for until in Until::ALL {
            while self.end_next_of(id, until, error, out) {
                count += 1;
            }
        }
        count
    }

    fn end_next_of(
        &mut self,
        id: TopicIdPartition,
        until: Until,
        error: ErrorCode,
        out: &mut Effects<D>,
    ) -> bool {
        let Some((key, outcome)) = self.produce.purgatory.take_next_of(id, until) else {
            return false;
        };
        self.deliver_row(key, Progress::Done(outcome.with_error(error)), out);
        true
    }
}

/// What a write that ends at `end_offset` is told; `None` while it waits.
fn outcome_of(replica: &Replica, until: Until, end_offset: Offset) -> Option<ErrorCode> {
    match until {
        Until::HighWatermark => replica.acks_all_outcome(end_offset),
        Until::OwnCopy => replica.own_copy_outcome(end_offset),
    }
}

/// Without a transaction coordinator no transaction can have been begun here, so nobody vouches
/// for a transactional batch; any other needs nobody.
fn pass_transaction(mut append: HeldAppend) -> Step {
    if !is_transactional(&append.row.records) {
        append.stage = Stage::Batch;
        return Step::On(append);
    }
    let error = if append.context.version < ADDS_TO_TRANSACTION_SINCE {
        ErrorCode::TRANSACTION_ABORTABLE
    } else {
        ErrorCode::INVALID_TXN_STATE
    };
    let message = "this broker does not serve transactions yet";
    Step::refused(Outcome::explained(error, message))
}

/// Whether a batch says that it is part of a transaction.
pub(super) fn is_transactional(records: &[u8]) -> bool {
    BatchHeader::parse(records).is_ok_and(|header| header.attributes.is_transactional())
}

/// What a topic and a request demand of a batch.
fn rules(now: Now, topic: &TopicSettings, shard: &ShardSettings, version: i16) -> ValidationRules {
    ValidationRules {
        now: now.wall,
        timestamp_type: timestamp_type(topic),
        timestamp_before_max_ms: topic.timestamp_before_max,
        timestamp_after_max_ms: topic.timestamp_after_max,
        max_message_bytes: usize::try_from(topic.max_message_bytes).unwrap_or(usize::MAX),
        decompressed_bytes_max: shard.decompressed_batch_bytes_max,
        compacted: topic.compact,
        zstd_allowed: version >= ZSTD_SINCE,
        compression: match topic.compression_type.as_str() {
            "producer" => None,
            "uncompressed" => Some(Compression::None),
            other => Compression::from_name(other),
        },
    }
}
