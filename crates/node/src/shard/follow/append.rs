use highwater_disk::Disk;
use highwater_log::AppendError;
use highwater_protocol::client::ReplicaPosition;
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_types::{ErrorCode, LeaderEpoch, Now, Offset, TopicIdPartition};

use super::fetcher::FetcherId;
use super::truncate::Cause;
use crate::journal::{Happening, JournalEntry, Level};
use crate::machine::Effect;
use crate::shard::partition::OnlinePartition;
use crate::shard::{Effects, Shard};

impl<D: Disk> Shard<D> {
    /// Appends what a leader answered, then follows its high watermark and log start. In this
    /// order: what is not held is not committed here (KAFKA-14704), and what is not known to be
    /// committed is not deleted.
    pub(super) fn take_records(
        &mut self,
        now: Now,
        (at, id): (FetcherId, TopicIdPartition),
        sent: ReplicaPosition,
        data: PartitionData,
        out: &mut Effects<D>,
    ) {
        let leader_high_watermark = Offset::new(data.high_watermark);
        if self.cut_by_old_rule(now, id, Some(leader_high_watermark), out) {
            return;
        }
        let records = data.records.unwrap_or_default();
        if !records.is_empty() {
            if !self.append_records(now, id, &records, sent.current_leader_epoch, out) {
                return;
            }
            if let Some(fetcher) = self.follow.fetchers.get_mut(&at) {
                fetcher.session.note_served(id);
            }
        }
        self.with_replica(now, id, out, |replica, outputs| {
            replica.handle_leader_high_watermark(leader_high_watermark, outputs);
        });
        self.follow_log_start(now, id, Offset::new(data.log_start_offset), out);
    }

    /// Appends records as they are. Whether that went well; if not, the replica rests.
    fn append_records(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        records: &[u8],
        epoch: LeaderEpoch,
        out: &mut Effects<D>,
    ) -> bool {
        let Some(online) = self.partitions.online_mut(id) else {
            return false;
        };
        if let Some(start) = online.log.start_for(records) {
            self.restart(now, id, start, out);
        }
        let Some(OnlinePartition { log, replica, .. }) = self.partitions.online_mut(id) else {
            return false;
        };
        let before = replica.log_end_offset();
        let appended = log.append_as_follower(now, records, epoch);
        let log_end_offset = log.log_end_offset();
        let newest = log.last_epoch().unwrap_or_default();
        if before < log_end_offset {
            let happening = |partition| Happening::Appended {
                partition,
                first_offset: before,
                end_offset: log_end_offset,
                epoch: newest,
            };
            self.partition_changed(id, Level::Trace, happening, out);
            self.with_replica(now, id, out, |replica, outputs| {
                replica.handle_appended(now, log_end_offset, outputs);
            });
            self.after_append(now, id, out);
        }
        let why = match appended {
            Ok(Some(_)) => return true,
            // Nothing whole, or all of an epoch that the metadata here does not know yet.
            Ok(None) => "nothing that can be appended yet".to_owned(),
            Err(why @ AppendError::Disk(_)) => {
                self.note_disk_error(id, &why, out);
                String::new()
            }
            Err(why) => why.to_string(),
        };
        self.records_refused(now, id, &why, out);
        false
    }

    /// The records that a leader gave are of no use: this partition fetches them again after a
    /// while, and others do not wait for it (RT-12).
    fn records_refused(&mut self, now: Now, id: TopicIdPartition, why: &str, out: &mut Effects<D>) {
        let Some(online) = self.partitions.online_mut(id) else {
            return;
        };
        let follower = online.replica.role().as_follower();
        let is_first = follower.is_some_and(|it| it.failures == 0);
        online.replica.handle_fetch_failed(now);
        let partition = online.log.topic_partition().clone();
        if is_first && !why.is_empty() {
            let text = format!("records of {partition} from its leader are refused: {why}");
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
        }
    }

    /// Raises the log start where the leader's is.
    fn follow_log_start(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        leader: Offset,
        out: &mut Effects<D>,
    ) {
        let Some(OnlinePartition { log, replica, .. }) = self.partitions.online_mut(id) else {
            return;
        };
        let Some(log_start_offset) = replica.log_start_to_follow(leader) else {
            return;
        };
        if log.advance_log_start(log_start_offset).is_err() {
            return;
        }
        self.checkpoints.note_log_start();
        self.with_replica(now, id, out, |replica, _| {
            replica.handle_log_start(log_start_offset);
        });
        self.partitions.mark_changed(id);
    }

    /// Tells the first of a row of errors of a leader that are not of the usual kind.
    pub(super) fn note_leader_error(
        &mut self,
        id: TopicIdPartition,
        error: ErrorCode,
        out: &mut Effects<D>,
    ) {
        let Some(online) = self.partitions.online_mut(id) else {
            return;
        };
        let follower = online.replica.role().as_follower();
        let is_first = follower.is_some_and(|it| it.failures <= 1);
        let partition = online.log.topic_partition();
        // Either side hears of the metadata first, nearly always; that is no news.
        let is_usual = matches!(
            error,
            ErrorCode::NOT_LEADER_OR_FOLLOWER
                | ErrorCode::FENCED_LEADER_EPOCH
                | ErrorCode::UNKNOWN_LEADER_EPOCH
                | ErrorCode::UNKNOWN_TOPIC_ID
                | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        );
        let level = if is_usual { Level::Trace } else { Level::Warn };
        if is_first && (!is_usual || self.settings.trace) {
            let text = format!("the leader of {partition} answers a fetch: {error}");
            out.push(Effect::Event(JournalEntry::text(level, text)));
        }
    }

    /// Under the old rule: cuts to a high watermark. Whether it did.
    fn cut_by_old_rule(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        leader: Option<Offset>,
        out: &mut Effects<D>,
    ) -> bool {
        if !self.settings.old_rule {
            return false;
        }
        let online = self.partitions.online_mut(id);
        let Some(to) = online.and_then(|it| it.replica.old_rule_cut(leader)) else {
            return false;
        };
        self.cut(now, id, to, Cause::OldRule, out);
        true
    }

    /// Under the old rule: a log that was opened is cut to its own high watermark before it
    /// follows for the first time.
    pub(super) fn restart_by_old_rule(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        out: &mut Effects<D>,
    ) {
        if self.settings.old_rule && self.follow.restarted.insert(id) {
            self.cut_by_old_rule(now, id, None, out);
        }
    }
}
