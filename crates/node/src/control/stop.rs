//! The way down: shards close, the metadata log closes, clean-shutdown markers are written.

use highwater_disk::Disk;
use highwater_log::CloseLog;
use highwater_log::checkpoint::{CleanShutdown, clean_shutdown};

use super::jobs::JobKind;
use super::lifecycle::Phase;
use super::{Control, Effects};
use crate::job::{LogDirNumber, Work, WriteFiles};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Effect, MachineId};
use crate::part::Part;

impl<D: Disk> Control<D> {
    /// Hand-over is done, or cannot be: every shard closes.
    pub(super) fn begin_close(&mut self, out: &mut Effects<D>) {
        if self.broker.phase >= Phase::Closing {
            return;
        }
        self.broker.phase = Phase::Closing;
        for shard in 0..self.config.shards() {
            self.closing_shards.insert(shard);
            out.push(Effect::Part {
                to: MachineId::Shard(shard),
                part: Part::Close,
            });
        }
        if let Some(leader) = self.role.leader_mut() {
            leader.resign();
        }
        self.close_metadata_log(out);
    }

    /// The node cannot go on: nothing more will be committed. It closes what can be closed.
    pub(super) fn fail(&mut self, why: String, out: &mut Effects<D>) {
        if self.failure.is_some() {
            return;
        }
        out.push(Effect::Event(JournalEntry::text(
            Level::Error,
            format!("stopping: {why}"),
        )));
        self.failure = Some(why);
        for ticket in self.role.abandon() {
            out.push(Effect::Answer {
                ticket,
                answer: Answer::close(),
            });
        }
        self.begin_close(out);
    }

    /// Once every shard is closed and no job holds the metadata log, it closes too.
    pub(super) fn close_metadata_log(&mut self, out: &mut Effects<D>) {
        let busy = self.has_metadata_job();
        // Whoever waits for a commit is answered first.
        let waited_for = self.role.is_waited_for();
        let open = !self.closing_shards.is_empty();
        if self.broker.phase != Phase::Closing || open || busy || waited_for {
            return;
        }
        self.broker.phase = Phase::Marking;
        match self.role.close() {
            Some(log) if self.failure.is_none() => {
                let close: CloseLog<D> = log.into_log().close();
                let work = Work::CloseLog(Box::new(close));
                self.job(self.metadata_dir(), work, JobKind::Close, out);
            }
            // A log whose flush failed is left as after a crash: the next start scans it.
            _ => {
                self.unclean.insert(self.metadata_dir());
                self.write_markers(out);
            }
        }
    }

    /// Tells the next start of each directory that was closed cleanly that it need not scan.
    pub(super) fn write_markers(&mut self, out: &mut Effects<D>) {
        // A life that did not get to register changed nothing of what the one before vouched for.
        let broker_epoch = self.broker.epoch.max(self.broker.previous_epoch);
        let marker = CleanShutdown { broker_epoch }.encode();
        let clean: Vec<_> = (0_u16..)
            .map(LogDirNumber)
            .zip(&self.dirs)
            .filter(|(number, dir)| !dir.offline && !self.unclean.contains(number))
            .map(|(number, dir)| (number, dir.disk.clone()))
            .collect();
        for (number, disk) in clean {
            let files = vec![(clean_shutdown::FILE.into(), marker.clone())];
            let work = Work::WriteFiles(WriteFiles { disk, files });
            self.job(number, work, JobKind::Marker, out);
        }
        self.stop_when_done(out);
    }

    /// Ends the machine once nothing is out any more. The locks of the directories go with it.
    pub(super) fn stop_when_done(&mut self, out: &mut Effects<D>) {
        let busy = self.has_job(|kind| matches!(kind, JobKind::Close | JobKind::Marker));
        if self.broker.phase == Phase::Marking && !busy {
            self.broker.phase = Phase::Stopped;
            self.locks.clear();
            out.push(Effect::Stopped);
        }
    }
}
