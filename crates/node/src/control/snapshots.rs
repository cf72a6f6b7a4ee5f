//! Metadata snapshots: when they are made, and which old files go.

use std::path::PathBuf;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_metadata::{MetadataImage, SnapshotControl, snapshot_records, write_snapshot};
use highwater_types::{Millis, Mono, Now, Offset, OffsetAndEpoch, WallMs};

use super::files::snapshot_path;
use super::jobs::JobKind;
use super::lifecycle::Phase;
use super::{Control, Effects};
use crate::job::Work;
use crate::journal::{JournalEntry, Level};
use crate::machine::Effect;
use crate::shard::lifecycle::Removal;

/// A snapshot on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotFile {
    /// What it contains up to.
    pub(crate) id: OffsetAndEpoch,
    /// Its size.
    pub(crate) bytes: u64,
    /// The time of the last record in it.
    pub(crate) timestamp: WallMs,
}

/// When the next snapshot is due, and how long old ones stay.
#[derive(Debug)]
pub(crate) struct Snapshots {
    bytes_between_max: u64,
    /// `None`: never by time.
    interval: Option<Millis>,
    retention_bytes: Option<u64>,
    retention: Option<Millis>,
    delete_delay: Millis,
    /// When the last one was made, or this run began.
    last: Mono,
    /// Whether anything worth a snapshot changed since.
    changed: bool,
    /// After a failed one: not before.
    not_before: Mono,
}

/// Writes one snapshot. Holds an image, which is cheap to keep.
#[derive(Debug)]
pub struct WriteSnapshot<D: Disk> {
    pub(crate) disk: D,
    pub(crate) image: MetadataImage,
    pub(crate) control: SnapshotControl,
    pub(crate) now: WallMs,
}

/// What a [`WriteSnapshot`] brought: the size of the file in bytes.
pub type SnapshotWritten = Result<u64, String>;

impl<D: Disk> WriteSnapshot<D> {
    /// Does the work.
    ///
    /// # Errors
    /// What the disk says.
    pub fn run(self, b: &Blocking) -> SnapshotWritten {
        let id = self.image.end;
        let records = snapshot_records(&self.image);
        let level = self.image.metadata_version();
        let bytes = write_snapshot(&self.control, id.epoch, self.now, level, records)
            .map_err(|why| why.to_string())?;
        let path: PathBuf = snapshot_path(id);
        let written: Result<(), DiskError> = self.disk.replace(&path, &bytes, b);
        written.map_err(|why| why.to_string())?;
        Ok(bytes.len() as u64)
    }
}

impl Snapshots {
    pub(crate) fn new(config: &crate::config::NodeConfig) -> Self {
        let broker = &config.broker;
        let limit = |name: &str| {
            broker
                .number(name)
                .and_then(|number| u64::try_from(number).ok())
        };
        let interval = broker.count("metadata.log.max.snapshot.interval.ms");
        Self {
            bytes_between_max: broker.count("metadata.log.max.record.bytes.between.snapshots"),
            interval: (interval > 0).then(|| Millis::new(interval)),
            retention_bytes: limit("metadata.max.retention.bytes"),
            retention: limit("metadata.max.retention.ms").map(Millis::new),
            delete_delay: Millis::new(broker.count("internal.metadata.delete.delay.millis")),
            last: Mono::START,
            changed: false,
            not_before: Mono::START,
        }
    }

    pub(crate) const fn begin(&mut self, now: Mono) {
        self.last = now;
    }

    /// Something other than a NoOp was committed.
    pub(crate) const fn note_change(&mut self) {
        self.changed = true;
    }

    /// When a snapshot is due by time.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let due = self.last.plus(self.interval?).max(self.not_before);
        self.changed.then_some(due)
    }
}

impl<D: Disk> Control<D> {
    /// Starts a snapshot when one is due.
    pub(super) fn snapshot_if_due(&mut self, now: Now, out: &mut Effects<D>) {
        let Some(log) = self.role.log() else { return };
        let by_bytes = log.bytes_since_snapshot >= self.snapshots.bytes_between_max;
        let by_time = self
            .snapshots
            .next_deadline()
            .is_some_and(|at| at <= now.mono);
        // A snapshot that is being taken over replaces what would be written.
        let busy = self.has_job(|kind| matches!(kind, JobKind::Snapshot(_) | JobKind::Install));
        let newest = log
            .snapshots
            .last()
            .map_or(Offset::ZERO, |file| file.id.offset);
        let image = self.committed.image();
        let idle = busy
            || self.broker.phase >= Phase::Closing
            || self.snapshots.not_before > now.mono
            || self.committed.in_transaction()
            || image.end.offset <= newest;
        if idle || !(by_bytes || by_time) {
            return;
        }
        let image = image.clone();
        let control = SnapshotControl {
            last_contained_timestamp: now.wall,
            kraft_version: (log.kraft_version > 0).then_some(log.kraft_version),
            voters: log.voters.clone(),
        };
        let file = SnapshotFile {
            id: image.end,
            bytes: 0,
            timestamp: now.wall,
        };
        let disk = self.metadata_disk().clone();
        let work = WriteSnapshot {
            disk,
            image,
            control,
            now: now.wall,
        };
        self.snapshots.changed = false;
        self.snapshots.last = now.mono;
        if let Some(log) = self.role.log_mut() {
            log.bytes_since_snapshot = 0;
        }
        let dir = self.metadata_dir();
        self.job(
            dir,
            Work::WriteSnapshot(Box::new(work)),
            JobKind::Snapshot(file),
            out,
        );
    }

    pub(super) fn snapshot_written(
        &mut self,
        now: Now,
        file: SnapshotFile,
        result: SnapshotWritten,
        out: &mut Effects<D>,
    ) {
        match result {
            Ok(bytes) => {
                let Some(log) = self.role.log_mut() else {
                    return;
                };
                if log.snapshots.last().is_some_and(|it| it.id >= file.id) {
                    // One of the leader's was taken over meanwhile.
                    let paths = vec![snapshot_path(file.id)];
                    let removal = Removal::Paths(self.metadata_disk().clone(), paths);
                    return self.remove(removal, out);
                }
                log.snapshots.push(SnapshotFile { bytes, ..file });
                self.retain_metadata(now, out);
            }
            Err(why) => {
                // The log still has everything: no harm but its length. Try again later.
                let text = format!("a metadata snapshot could not be written: {why}");
                out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
                self.snapshots.changed = true;
                self.snapshots.not_before = now.mono.plus(Millis::new(60_000));
            }
        }
    }

    /// Lets the oldest snapshots go while log and snapshots take too much room or are too old, and
    /// with them the segments that only they needed. The newest snapshot always stays.
    fn retain_metadata(&mut self, now: Now, out: &mut Effects<D>) {
        let mut gone = Vec::new();
        while let Some(log) = self.role.log_mut() {
            let [oldest, next, ..] = log.snapshots.as_slice() else {
                break;
            };
            let snapshots: u64 = log.snapshots.iter().map(|file| file.bytes).sum();
            let total = log.log().size_bytes().saturating_add(snapshots);
            let too_large = self
                .snapshots
                .retention_bytes
                .is_some_and(|most| total > most);
            let age = Millis::from_wire(now.wall.since(oldest.timestamp));
            let too_old = self.snapshots.retention.is_some_and(|most| age > most);
            if !(too_large || too_old) {
                break;
            }
            let (id, next) = (oldest.id, next.id.offset);
            gone.push(snapshot_path(id));
            log.snapshots.remove(0);
            if let Err(why) = self.advance_metadata_start(now, next) {
                let text = format!("old metadata segments could not be removed: {why}");
                out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
                break;
            }
        }
        if !gone.is_empty() {
            let work = Removal::Paths(self.metadata_disk().clone(), gone);
            self.remove(work, out);
        }
    }

    fn advance_metadata_start(&mut self, now: Now, start: Offset) -> Result<(), String> {
        let high_watermark = self.role.high_watermark().unwrap_or(Offset::ZERO);
        let Some(log) = self.role.log_mut() else {
            return Ok(());
        };
        log.log_mut()
            .advance_log_start(start)
            .map_err(|why| why.to_string())?;
        let retained = log
            .log_mut()
            .retain(now, high_watermark)
            .map_err(|why| why.to_string())?;
        if let Some(retained) = retained {
            // Nobody reads the metadata log by region yet, so the files need not linger; but a
            // person may look, so they stay for the usual while.
            let due = now.mono.plus(self.snapshots.delete_delay);
            self.remove_at(due, Removal::Files(retained.files));
        }
        Ok(())
    }
}
