use std::path::PathBuf;
use std::sync::Arc;

use highwater_disk::{Blocking, Disk, DiskError, DiskFile as _};
use highwater_types::{Mono, Now, Offset};

use super::{Fence, PartitionLog};
use crate::checkpoint::leader_epochs;
use crate::names::{FileKind, segment_file};

/// Makes everything durable that the log held when the job was made.
#[derive(Debug)]
pub struct SyncLog<D: Disk> {
    disk: D,
    dir: PathBuf,
    files: Vec<Arc<D::File>>,
    snapshots: Vec<(Offset, Vec<u8>)>,
    epochs: Option<Vec<u8>>,
    names_changed: bool,
    up_to: Offset,
    made: Mono,
}

/// What a [`SyncLog`] brought; for [`PartitionLog::synced`].
#[derive(Debug)]
pub struct Synced {
    /// Exclusive: what the job was to make durable.
    pub up_to: Offset,
    /// Whether it did.
    pub result: Result<(), DiskError>,
    made: Mono,
}

impl<D: Disk> SyncLog<D> {
    /// Exclusive: what becomes durable.
    #[must_use]
    pub const fn up_to(&self) -> Offset {
        self.up_to
    }

    /// Does the work.
    pub fn run(self, b: &Blocking) -> Synced {
        Synced {
            result: self.sync(b),
            up_to: self.up_to,
            made: self.made,
        }
    }

    fn sync(&self, b: &Blocking) -> Result<(), DiskError> {
        for file in &self.files {
            file.sync(b)?;
        }
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
        if self.names_changed {
            self.disk.sync_dir(&self.dir, b)?;
        }
        Ok(())
    }
}

impl<D: Disk> PartitionLog<D> {
    /// Whether `flush.messages`, `flush.ms` or a rolled segment asks for a sync job now.
    #[must_use]
    pub fn flush_due(&self, now: Now) -> bool {
        if self.flush.in_flight || self.failure().is_some() {
            return false;
        }
        let unflushed = self.log_end_offset().distance_from(self.flushed_offset);
        let by_count = u64::try_from(unflushed)
            .is_ok_and(|unflushed| unflushed > 0 && unflushed >= self.config.flush_messages);
        by_count || self.flush.rolled || self.flush_deadline().is_some_and(|at| at <= now.mono)
    }

    /// When `flush.ms` asks for a sync job, if it does.
    #[must_use]
    pub fn flush_deadline(&self) -> Option<Mono> {
        Some(self.flush.unflushed_since?.plus(self.config.flush_ms?))
    }

    /// A job that makes everything durable that is in the log now. `None` while one is out (what
    /// comes meanwhile waits for the next: group commit) and when all is durable.
    ///
    /// # Errors
    /// When the indexes cannot be written.
    pub fn sync_job(&mut self, now: Now) -> Result<Option<SyncLog<D>>, DiskError> {
        let up_to = self.log_end_offset();
        let has_files = self
            .segments
            .iter()
            .any(|it| it.is_dirty || it.indexes_dirty);
        let has_work = has_files
            || self.flushed_offset < up_to
            || self.flush.epochs_changed
            || self.flush.names_changed
            || !self.flush.snapshots.is_empty();
        if self.flush.in_flight || !has_work || self.fence != Fence::Open {
            return Ok(None);
        }
        self.active_mut().write_indexes(false)?;
        let files = self.take_dirty_files()?;
        let flush = &mut self.flush;
        let epochs =
            std::mem::take(&mut flush.epochs_changed).then(|| leader_epochs::encode(&self.epochs));
        flush.in_flight = true;
        flush.cut_since = None;
        flush.rolled = false;
        Ok(Some(SyncLog {
            disk: self.disk.clone(),
            dir: self.dir.clone(),
            files,
            snapshots: std::mem::take(&mut flush.snapshots),
            epochs,
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
    pub fn synced(&mut self, synced: Synced) -> Result<Offset, DiskError> {
        self.flush.in_flight = false;
        if let Err(why) = synced.result {
            self.fence = Fence::Failed(why.clone());
            return Err(why);
        }
        let end = self.log_end_offset();
        let kept = self
            .flush
            .cut_since
            .take()
            .map_or(synced.up_to, |cut| cut.min(synced.up_to));
        self.flushed_offset = self.flushed_offset.max(kept.min(end));
        if self.flushed_offset >= end {
            self.flush.unflushed_since = None;
        } else if let Some(since) = &mut self.flush.unflushed_since {
            *since = synced.made.max(*since);
        }
        self.assert_invariants();
        Ok(self.flushed_offset)
    }

    /// The files with bytes that no sync job has taken on yet.
    pub(super) fn take_dirty_files(&mut self) -> Result<Vec<Arc<D::File>>, DiskError> {
        let mut files = Vec::new();
        for segment in &mut self.segments {
            if segment.is_dirty {
                files.push(Arc::clone(segment.file()?));
            }
            if segment.indexes_dirty {
                files.extend(segment.index_files()?);
            }
        }
        for segment in &mut self.segments {
            segment.is_dirty = false;
            if std::mem::take(&mut segment.indexes_dirty) {
                segment.release_indexes();
            }
        }
        Ok(files)
    }
}
