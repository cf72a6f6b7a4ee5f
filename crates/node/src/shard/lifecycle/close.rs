use highwater_disk::{Disk, DiskError};
use highwater_log::{Closed, PartitionLog};
use highwater_types::{ErrorCode, Now, TopicIdPartition, TopicPartition};

use super::Phase;
use crate::job::{Job, LogDirNumber, Work};
use crate::journal::{Happening, Level};
use crate::machine::{Effect, MachineId, Token};
use crate::part::Part;
use crate::shard::checkpoints::Lines;
use crate::shard::partition::PartitionState;
use crate::shard::{Effects, Shard};

impl<D: Disk> Shard<D> {
    /// Hand-over is done: closes every log, then has the checkpoints written, then tells control
    /// and stops.
    pub(crate) fn handle_close(&mut self, now: Now, out: &mut Effects<D>) {
        if self.lifecycle.is_closing() {
            return;
        }
        self.lifecycle.phase = Phase::Closing;
        self.lifecycle.to_apply.clear();
        self.stop_following();
        for (dir, found) in std::mem::take(&mut self.lifecycle.found) {
            // No image has decided about it: it stays as it was found.
            self.note_not_opened(dir);
            self.keep_last_lines(dir, found.topic_partition.clone(), Lines::of_found(&found));
        }
        self.lifecycle.name_taken.clear();
        let waiting = std::mem::take(&mut self.lifecycle.to_open);
        for request in waiting.iter().filter(|request| !request.is_new) {
            self.note_not_opened(request.dir);
        }
        for id in self.partitions.ids() {
            self.end_waiting_appends(id, ErrorCode::NOT_LEADER_OR_FOLLOWER, out);
            self.close_partition(id, out);
        }
        self.note_if_closed(now, out);
    }

    /// A log that was not opened in this life is no cleaner than the last life left it.
    fn note_not_opened(&mut self, dir: LogDirNumber) {
        if self.online_dir(dir).is_none_or(|dir| !dir.clean_shutdown) {
            self.lifecycle.unclean.insert(dir);
        }
    }

    /// Goes on with the closing of a partition whose sync was out.
    pub(super) fn close_if_closing(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        out: &mut Effects<D>,
    ) {
        if self.lifecycle.is_closing() {
            self.close_partition(id, out);
            self.note_if_closed(now, out);
        }
    }

    fn close_partition(&mut self, id: TopicIdPartition, out: &mut Effects<D>) {
        // Two jobs of one log never run at once: a sync that is out is waited for.
        if self
            .partitions
            .online_mut(id)
            .is_some_and(|online| online.sync_in_flight)
        {
            return;
        }
        let Some(partition) = self.partitions.remove(id) else {
            return;
        };
        let lines = partition.lines();
        let (dir, name) = (partition.dir, partition.name);
        match partition.state {
            PartitionState::Online(online) => self.close_log(dir, online.log, lines, out),
            PartitionState::Opening { queued, .. } => {
                self.refuse_queued(queued, ErrorCode::NOT_LEADER_OR_FOLLOWER, out);
                self.keep_last_lines(dir, name, lines);
            }
            PartitionState::Failed => {
                self.lifecycle.unclean.insert(dir);
                self.keep_last_lines(dir, name, lines);
            }
        }
    }

    /// Starts to close one log. `lines` are what the checkpoints say should that fail.
    pub(super) fn close_log(
        &mut self,
        dir: LogDirNumber,
        log: PartitionLog<D>,
        lines: Lines,
        out: &mut Effects<D>,
    ) {
        let name = log.topic_partition().clone();
        self.keep_last_lines(dir, name.clone(), lines);
        let token = self.new_token();
        self.lifecycle.closing.insert(token, (dir, name));
        let work = Work::CloseLog(Box::new(log.close()));
        out.push(Effect::Job {
            token,
            job: Job { dir, work },
        });
    }

    fn keep_last_lines(&mut self, dir: LogDirNumber, name: TopicPartition, lines: Lines) {
        self.lifecycle
            .last_lines
            .entry(dir)
            .or_default()
            .insert(name, lines);
    }

    /// A log is closed, or could not be: the next start scans it then.
    pub(crate) fn handle_log_closed(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Closed, DiskError>,
        out: &mut Effects<D>,
    ) {
        let (dir, name) = self
            .lifecycle
            .closing
            .remove(&token)
            .expect("a close that is out");
        match result {
            Ok(closed) => {
                let lines = self.lifecycle.last_lines.entry(dir).or_default();
                let lines = lines.entry(name).or_default();
                lines.recovery_point = Some(closed.log_end_offset);
                let start = closed.log_start_offset;
                lines.log_start_offset = (start > closed.first_base_offset).then_some(start);
            }
            Err(why) => {
                self.lifecycle.unclean.insert(dir);
                let why = format!("not closed cleanly: {why}");
                let happening = Happening::PartitionFailed {
                    partition: name,
                    why,
                };
                self.journal(Level::Error, happening, out);
            }
        }
        self.note_if_closed(now, out);
    }

    /// Goes on once nothing is out any more: first the last checkpoints, then the end.
    pub(crate) fn note_if_closed(&mut self, now: Now, out: &mut Effects<D>) {
        let lifecycle = &mut self.lifecycle;
        let busy = lifecycle.phase != Phase::Closing
            || !lifecycle.opening.is_empty()
            || !lifecycle.closing.is_empty()
            || !lifecycle.syncing.is_empty();
        if busy {
            return;
        }
        if !lifecycle.last_lines_sent {
            lifecycle.last_lines_sent = true;
            let by_dir = std::mem::take(&mut lifecycle.last_lines);
            // Comes back here once each directory's keeper has written.
            self.send_last_lines(now, by_dir, out);
            return;
        }
        if self
            .dir_numbers()
            .all(|dir| self.checkpoints.is_last_written(dir))
        {
            self.lifecycle.phase = Phase::Closed;
            let mut unclean = std::mem::take(&mut self.lifecycle.unclean);
            unclean.extend(self.checkpoints.not_last_written());
            out.push(Effect::Part {
                to: MachineId::Control,
                part: Part::Closed { unclean },
            });
            out.push(Effect::Stopped);
        }
    }
}
