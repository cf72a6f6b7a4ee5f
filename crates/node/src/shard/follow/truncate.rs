use highwater_disk::Disk;
use highwater_log::RemovedFiles;
use highwater_types::{EpochEnd, Now, Offset, TopicIdPartition};

use crate::job::LogDirNumber;
use crate::journal::{Happening, Level};
use crate::shard::lifecycle::Removal;
use crate::shard::partition::OnlinePartition;
use crate::shard::{Effects, Shard};

/// Why a follower cuts its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The histories part: the leader's end of the newest epoch that it shares.
    Diverging(EpochEnd),
    /// The leader's whole log ends there.
    LeaderEnd(Offset),
    /// The rule from before leader epochs.
    OldRule,
    /// The follower's own copy is damaged from there on.
    Damage,
}

impl<D: Disk> Shard<D> {
    /// Cuts a follower's log. What is about to happen is told first, with both histories, and
    /// what is lost by it, if anything is.
    pub(super) fn cut(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        to: Offset,
        cause: Cause,
        out: &mut Effects<D>,
    ) {
        let Some(partition) = self.partitions.find_mut(id) else {
            return;
        };
        let dir = partition.dir;
        let Ok(OnlinePartition { log, .. }) = partition.online_mut() else {
            return;
        };
        let planned = match log.end_after_truncation(to) {
            Ok(end) => end,
            Err(why) => {
                self.fail_partition(id, &why.to_string(), out);
                return;
            }
        };
        self.tell_cut(id, planned, cause, out);
        self.with_replica(now, id, out, |replica, outputs| match cause {
            Cause::Damage => replica.handle_damage_cut(planned),
            _ => replica.handle_truncated(planned, outputs),
        });
        let Some(online) = self.partitions.online_mut(id) else {
            return;
        };
        match online.log.truncate_to(now, to) {
            Ok(files) => {
                let end = online.log.log_end_offset();
                assert_eq!(end, planned, "a cut of {id:?} to {to} ended elsewhere");
                self.remove_cut_files(dir, files);
            }
            Err(why) => self.fail_partition(id, &why.to_string(), out),
        }
        self.note_cut(now, id, out);
    }

    /// Cuts a follower's log where its copy is damaged, so that this is copied again. While the
    /// metadata have the replica in the ISR, or eligible to lead (KIP-966), it may be elected for
    /// what it still holds: then it does not fetch, and so leaves the ISR first.
    pub(super) fn mend(&mut self, now: Now, id: TopicIdPartition, out: &mut Effects<D>) {
        let online = self.partitions.find(id).and_then(|it| it.online().ok());
        let damage = online.and_then(|it| it.log.damage().first().copied());
        let Some(damage) = damage else {
            self.follow.damaged.remove(&id);
            return;
        };
        let may_be_elected = self.image.partition(id).is_some_and(|image| {
            let mut candidates = image.in_sync_replicas.iter();
            candidates.any(|it| *it == self.node_id)
                || image.eligible_leader_replicas.contains(&self.node_id)
        });
        if may_be_elected {
            self.follow.damaged.insert(id);
            return;
        }
        self.follow.damaged.remove(&id);
        self.cut(now, id, damage.from, Cause::Damage, out);
    }

    /// Deletes everything in a follower's log, which then begins at `start`.
    pub(super) fn restart(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        start: Offset,
        out: &mut Effects<D>,
    ) {
        let Some(partition) = self.partitions.find_mut(id) else {
            return;
        };
        let dir = partition.dir;
        let Ok(OnlinePartition { log, .. }) = partition.online_mut() else {
            return;
        };
        let (log_start_offset, log_end_offset) = (log.log_start_offset(), log.log_end_offset());
        let happening = |partition| Happening::Restarted {
            partition,
            log_start_offset,
            log_end_offset,
            start,
        };
        self.journal_of(id, Level::Info, happening, out);
        self.with_replica(now, id, out, |replica, outputs| {
            replica.handle_restarted(start, outputs);
        });
        let Some(online) = self.partitions.online_mut(id) else {
            return;
        };
        match online.log.truncate_fully_and_start_at(now, start) {
            Ok(files) => self.remove_cut_files(dir, files),
            Err(why) => self.fail_partition(id, &why.to_string(), out),
        }
        self.note_cut(now, id, out);
    }

    fn tell_cut(&mut self, id: TopicIdPartition, to: Offset, cause: Cause, out: &mut Effects<D>) {
        let Some(OnlinePartition { log, .. }) = self.partitions.online_mut(id) else {
            return;
        };
        let from = log.log_end_offset();
        let own = log.epochs().entries.to_vec();
        let leader_says = match cause {
            Cause::Diverging(EpochEnd { epoch, end_offset }) => {
                format!("the leader's epoch {epoch} ends at {end_offset}")
            }
            Cause::LeaderEnd(end) => format!("the leader's log ends at {end}"),
            Cause::OldRule => "the high watermark, by the old rule".to_owned(),
            Cause::Damage => "what is damaged, and all behind it, is copied again".to_owned(),
        };
        let happening = |partition| Happening::Truncated {
            partition,
            from,
            to,
            own,
            leader_says,
        };
        self.journal_of(id, Level::Info, happening, out);
    }

    fn remove_cut_files(&mut self, dir: LogDirNumber, files: RemovedFiles<D>) {
        if !files.is_empty() {
            self.remove_later(files.not_before(), dir, Removal::Files(files));
        }
    }

    /// Recovery points and high watermarks above the end of a log must not be found by the next
    /// start: it would take the records that were cut for lost.
    fn note_cut(&mut self, now: Now, id: TopicIdPartition, out: &mut Effects<D>) {
        self.checkpoints.note_truncated();
        self.partitions.mark_changed(id);
        self.after_append(now, id, out);
    }
}
