use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, Disk, DiskError, DiskFile as _};
use highwater_types::{Millis, Mono, Now, Offset};

use super::{Fence, PartitionLog};
use crate::checkpoint::{damage, leader_epochs};
use crate::damage::DamagedRange;
use crate::lazy_file::UnsyncedFile;
use crate::names::{FileKind, segment_file};

/// How long after a full disk the next job may try again.
const RETRY_AFTER: Millis = Millis::new(1_000);

/// Makes everything durable that the log held when the job was made.
#[derive(Debug)]
pub struct SyncLog<D: Disk> {
    disk: D,
    dir: PathBuf,
    files: Vec<UnsyncedFile<D>>,
    snapshots: Vec<(Offset, Vec<u8>)>,
    epochs: Option<Vec<u8>>,
    damage: Option<Vec<DamagedRange>>,
    names_changed: bool,
    up_to: Offset,
    made: Mono,
}

/// What a [`SyncLog`] brought; for [`PartitionLog::synced`].
#[derive(Debug)]
pub struct Synced<D: Disk> {
    /// Exclusive: what the job was to make durable.
    pub up_to: Offset,
    /// Whether it did.
    pub result: Result<(), DiskError>,
    made: Mono,
    /// The records are on disk, but these files could not be written now.
    left: Option<Left<D>>,
}

/// What a [`SyncLog`] could not do for lack of space or descriptors: the next one does it.
#[derive(Debug)]
struct Left<D: Disk> {
    why: DiskError,
    files: Vec<UnsyncedFile<D>>,
    snapshots: Vec<(Offset, Vec<u8>)>,
    epochs: bool,
    damage: bool,
    names: bool,
}

impl<D: Disk> Synced<D> {
    /// Why a part of the job waits for the next one, if one does.
    #[must_use]
    pub const fn postponed(&self) -> Option<&DiskError> {
        match &self.left {
            Some(left) => Some(&left.why),
            None => None,
        }
    }
}

impl<D: Disk> SyncLog<D> {
    /// Exclusive: what becomes durable.
    #[must_use]
    pub const fn up_to(&self) -> Offset {
        self.up_to
    }

    /// Does the work.
    pub fn run(self, b: &Blocking) -> Synced<D> {
        let (up_to, made) = (self.up_to, self.made);
        let (result, left) = match self.sync(b) {
            Ok(left) => (Ok(()), left),
            Err(why) => (Err(why), None),
        };
        Synced {
            up_to,
            result,
            made,
            left,
        }
    }

    fn sync(mut self, b: &Blocking) -> Result<Option<Left<D>>, DiskError> {
        let mut files = std::mem::take(&mut self.files).into_iter();
        while let Some(unsynced) = files.next() {
            let file = match unsynced.open(&self.disk) {
                Err(why) if why.may_pass() => {
                    let files = std::iter::once(unsynced).chain(files).collect();
                    return Ok(Some(self.left(why, files)));
                }
                opened => opened?,
            };
            // Whatever a sync of records fails with, also for lack of space, nothing proves after
            // it that they are on disk.
            if let Some(file) = file {
                file.sync(b)?;
            }
        }
        match self.write_rest(b) {
            Err(why) if why.may_pass() => Ok(Some(self.left(why, Vec::new()))),
            done => done.map(|()| None),
        }
    }

    fn left(self, why: DiskError, files: Vec<UnsyncedFile<D>>) -> Left<D> {
        Left {
            why,
            files,
            snapshots: self.snapshots,
            epochs: self.epochs.is_some(),
            damage: self.damage.is_some(),
            names: self.names_changed,
        }
    }

    fn write_rest(&self, b: &Blocking) -> Result<(), DiskError> {
        for (offset, bytes) in &self.snapshots {
            self.disk.replace(
                &segment_file(&self.dir, *offset, FileKind::Snapshot),
                bytes,
                b,
            )?;
        }
        if let Some(bytes) = &self.epochs {
            self.disk
                .replace(&self.dir.join(leader_epochs::FILE), bytes, b)?;
        }
        if let Some(ranges) = &self.damage {
            write_damage(&self.disk, &self.dir, ranges, b)?;
        }
        if self.names_changed {
            self.disk.sync_dir(&self.dir, b)?;
        }
        Ok(())
    }
}

impl<D: Disk> PartitionLog<D> {
    /// Whether the log itself asks for a sync job now: a segment was closed, which Kafka flushes
    /// then, or recovery read what nobody had flushed.
    #[must_use]
    pub const fn wants_flush(&self) -> bool {
        let is_free = !self.flush.in_flight && self.flush.retry_at.is_none();
        self.flush.wanted && is_free && self.failure().is_none()
    }

    /// When a sync that found no space or descriptors may be tried again, if there was one.
    #[must_use]
    pub const fn sync_retry_at(&self) -> Option<Mono> {
        self.flush.retry_at
    }

    /// A job that makes everything durable that is in the log now. `None` while one is out (what
    /// comes meanwhile waits for the next: group commit), before [`PartitionLog::sync_retry_at`],
    /// and when all is durable.
    ///
    /// # Errors
    /// When the indexes cannot be written.
    pub fn sync_job(&mut self, now: Now) -> Result<Option<SyncLog<D>>, DiskError> {
        let up_to = self.log_end_offset();
        let mut segments = self.segments.iter();
        let has_work = segments.any(|it| it.is_dirty || it.indexes_dirty)
            || !self.flush.unsynced.is_empty()
            || self.flushed_offset < up_to
            || self.flush.epochs_changed
            || self.is_damage_unlisted()
            || self.flush.names_changed
            || !self.flush.snapshots.is_empty();
        let is_early = self.flush.retry_at.is_some_and(|at| now.mono < at);
        if self.flush.in_flight || is_early || self.failure().is_some() {
            return Ok(None);
        }
        self.flush.retry_at = None;
        if !has_work {
            return Ok(None);
        }
        if self.mend_tail().is_err() {
            self.flush.retry_at = Some(now.mono.plus(RETRY_AFTER));
            return Ok(None);
        }
        self.active_mut().write_indexes(false)?;
        let files = self.take_dirty_files();
        let damage = self.take_unlisted_damage();
        let flush = &mut self.flush;
        let epochs =
            std::mem::take(&mut flush.epochs_changed).then(|| leader_epochs::encode(&self.epochs));
        flush.in_flight = true;
        flush.cut_since = None;
        flush.wanted = false;
        Ok(Some(SyncLog {
            disk: self.disk.clone(),
            dir: self.dir.clone(),
            files,
            snapshots: std::mem::take(&mut flush.snapshots),
            epochs,
            damage,
            names_changed: std::mem::take(&mut flush.names_changed),
            up_to,
            made: now.mono,
        }))
    }

    /// Takes in what a [`SyncLog`] brought: [`PartitionLog::flushed_offset`] rises, or the log is
    /// fenced for good, for after a failed sync no later one proves anything.
    ///
    /// # Errors
    /// What the sync failed with: the log directory goes offline.
    pub fn synced(&mut self, synced: Synced<D>) -> Result<Offset, DiskError> {
        self.flush.in_flight = false;
        if let Err(why) = synced.result {
            self.fence = Fence::Failed(why.clone());
            return Err(why);
        }
        if let Some(left) = synced.left {
            self.postpone(left, synced.made);
            return Ok(self.flushed_offset);
        }
        let end = self.log_end_offset();
        let kept = self
            .flush
            .cut_since
            .take()
            .map_or(synced.up_to, |cut| cut.min(synced.up_to));
        self.flushed_offset = self.flushed_offset.max(kept.min(end));
        self.assert_invariants();
        Ok(self.flushed_offset)
    }

    /// Puts back what a job could not do. Its records do not count as flushed before their epochs
    /// and names are.
    fn postpone(&mut self, mut left: Left<D>, made: Mono) {
        let flush = &mut self.flush;
        if let Some(cut) = flush.cut_since.take() {
            left.snapshots.retain(|(offset, _)| *offset <= cut);
        }
        let newer = std::mem::replace(&mut flush.snapshots, left.snapshots);
        flush.snapshots.extend(newer);
        flush.unsynced.extend(left.files);
        flush.epochs_changed |= left.epochs;
        if left.damage {
            flush.damage_listed = None;
        }
        flush.names_changed |= left.names;
        flush.retry_at = Some(made.plus(RETRY_AFTER));
    }

    /// The files with bytes that no sync job has taken on yet. Closed segments let go of theirs.
    pub(super) fn take_dirty_files(&mut self) -> Vec<UnsyncedFile<D>> {
        let mut files = std::mem::take(&mut self.flush.unsynced);
        let active = self.segments.len().saturating_sub(1);
        for (number, segment) in self.segments.iter_mut().enumerate() {
            let is_dirty = std::mem::take(&mut segment.is_dirty);
            let indexes_dirty = std::mem::take(&mut segment.indexes_dirty);
            if is_dirty {
                files.push(segment.lazy_log().unsynced());
            }
            if indexes_dirty {
                files.extend(segment.index_files());
            }
            if (is_dirty || indexes_dirty) && number < active {
                segment.release();
            } else if indexes_dirty {
                segment.release_indexes();
            }
        }
        files
    }

    /// What the damage checkpoint has to list, if it does not.
    pub(super) fn take_unlisted_damage(&mut self) -> Option<Vec<DamagedRange>> {
        let is_unlisted = self.is_damage_unlisted();
        is_unlisted.then(|| {
            let ranges = self.damage.ranges().to_vec();
            self.flush.damage_listed = Some(ranges.clone());
            ranges
        })
    }
}

/// Writes the damage checkpoint, or removes it when there is no damage any more.
pub(super) fn write_damage<D: Disk>(
    disk: &D,
    dir: &Path,
    ranges: &[DamagedRange],
    b: &Blocking,
) -> Result<(), DiskError> {
    let path = dir.join(damage::FILE);
    if ranges.is_empty() {
        disk.remove(&path, b)
    } else {
        disk.replace(&path, &damage::encode(ranges), b)
    }
}
