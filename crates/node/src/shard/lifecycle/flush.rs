use highwater_disk::{Disk, DiskError};
use highwater_log::Synced;
use highwater_types::{Mono, Now, Offset, TopicIdPartition, TopicPartition};

use crate::job::{Job, LogDirNumber, Work};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Effect, Token};
use crate::shard::{Effects, Shard};

/// A sync that is out. It writes by path, so nobody may make a log of the same name meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct SyncRequest {
    pub(crate) id: TopicIdPartition,
    pub(crate) name: TopicPartition,
    pub(crate) dir: LogDirNumber,
}

impl<D: Disk> Shard<D> {
    /// Starts a sync of a log. While one is out nothing happens: what was appended since waits
    /// for the next, so one sync serves many (group commit).
    pub(crate) fn start_sync(&mut self, now: Now, id: TopicIdPartition, out: &mut Effects<D>) {
        let token = self.new_token();
        let Some(partition) = self.partitions.find_mut(id) else {
            return;
        };
        let (dir, name) = (partition.dir, partition.name.clone());
        let Ok(online) = partition.online_mut() else {
            return;
        };
        if online.sync_in_flight || self.lifecycle.is_closing() {
            return;
        }
        match online.log.sync_job(now) {
            Ok(Some(job)) => {
                online.sync_in_flight = true;
                let request = SyncRequest { id, name, dir };
                self.lifecycle.syncing.insert(token, request);
                let work = Work::SyncLog(job);
                out.push(Effect::Job {
                    token,
                    job: Job { dir, work },
                });
            }
            Ok(None) => self.note_flush_deadline(id),
            Err(why) => self.fail_partition(id, &why.to_string(), out),
        }
    }

    /// A sync is done: the flushed offset moves, the high watermark is looked at again, and the
    /// sync is followed by another if the log end has moved and the policy asks for it.
    pub(crate) fn handle_synced(
        &mut self,
        now: Now,
        token: Token,
        synced: Synced<D>,
        out: &mut Effects<D>,
    ) {
        let request = self.lifecycle.syncing.remove(&token);
        let SyncRequest { id, dir, .. } = request.expect("a sync that is out");
        if let Some(why) = synced.postponed() {
            let text = format!("a flush is tried again: {why}");
            out.push(Effect::Event(JournalEntry::text(Level::Error, text)));
        }
        let result = match self.partitions.online_mut(id) {
            Some(online) => {
                online.sync_in_flight = false;
                online.log.synced(synced)
            }
            // The log is gone, and its directory with it. One that is made again under the same
            // name waited for this sync.
            None => {
                self.start_open_jobs(now, out);
                let gone = |why: &DiskError| !why.is_not_found();
                synced
                    .result
                    .err()
                    .filter(gone)
                    .map_or(Ok(Offset::ZERO), Err)
            }
        };
        match result {
            Ok(flushed) => {
                self.checkpoints.note_recovery_point();
                self.with_replica(now, id, out, |replica, outputs| {
                    replica.handle_flushed(now, flushed, outputs);
                });
                // The own copy may have grown although the high watermark waits for others.
                self.partitions.mark_changed(id);
                self.after_append(now, id, out);
            }
            Err(why) => self.fail_dir(now, dir, &why, out),
        }
        self.close_if_closing(now, id, out);
    }

    /// What a log asks for once it grew: a sync after a roll, a tick for `flush.ms`. Whether the
    /// topic wants its records flushed is the replica's to say.
    pub(crate) fn after_append(&mut self, now: Now, id: TopicIdPartition, out: &mut Effects<D>) {
        self.note_flush_deadline(id);
        let online = self.partitions.online_mut(id);
        if online.is_some_and(|online| online.log.wants_flush()) {
            self.start_sync(now, id, out);
        }
    }

    /// Sees to it that a partition is looked at when `flush.ms` is over, or a sync that found no
    /// space may be tried again, and only once until then: each sync moves that time.
    fn note_flush_deadline(&mut self, id: TopicIdPartition) {
        let Some(online) = self.partitions.online_mut(id) else {
            return;
        };
        let retry = online.log.sync_retry_at();
        let Some(deadline) = retry.or_else(|| online.replica.next_deadline()) else {
            return;
        };
        if online.flush_look.is_some_and(|at| at <= deadline) {
            return;
        }
        let before = online.flush_look.replace(deadline);
        let deadlines = &mut self.lifecycle.flush_deadlines;
        if let Some(before) = before {
            deadlines.remove(&(before, id));
        }
        deadlines.insert((deadline, id));
    }

    pub(super) fn flush_deadline(&self) -> Option<Mono> {
        self.lifecycle.flush_deadlines.first().map(|(due, _)| *due)
    }

    /// Lets the replicas whose `flush.ms` is over ask for their sync.
    pub(super) fn flush_what_is_due(&mut self, now: Now, out: &mut Effects<D>) {
        let is_due = |(due, _): &&(Mono, TopicIdPartition)| *due <= now.mono;
        let due = self.lifecycle.flush_deadlines.iter().take_while(is_due);
        let due: Vec<_> = due.copied().collect();
        for (at, id) in due {
            self.lifecycle.flush_deadlines.remove(&(at, id));
            if let Some(online) = self.partitions.online_mut(id) {
                online.flush_look = None;
            }
            self.with_replica(now, id, out, |replica, outputs| {
                replica.handle_tick(now, outputs);
            });
            let online = self.partitions.online_mut(id);
            if online.is_some_and(|it| it.log.sync_retry_at().is_some()) {
                self.start_sync(now, id, out);
            }
            // The entry may have been of before a sync; then the replica has another deadline.
            self.note_flush_deadline(id);
        }
    }
}
