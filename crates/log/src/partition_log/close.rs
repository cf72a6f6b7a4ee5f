use std::path::PathBuf;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_types::{Mono, Now, Offset, Uuid};

use super::sync::write_damage;
use super::{Fence, PartitionLog};
use crate::checkpoint::leader_epochs;
use crate::names::{FileKind, renamed_dir, segment_file};

/// Closes a log so that the next open need not scan it: all is flushed, indexes are cut to their
/// entries, and a snapshot of the producers stands at the log end offset.
#[derive(Debug)]
pub struct CloseLog<D: Disk> {
    log: PartitionLog<D>,
}

/// What was closed, for the checkpoint files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The log start offset.
    pub log_start_offset: Offset,
    /// Base offset of the oldest segment; log-start-offset-checkpoint has a line only when it
    /// differs from the log start.
    pub first_base_offset: Offset,
    /// The log end offset, which is the recovery point now.
    pub log_end_offset: Offset,
}

/// Removes the directory of a deleted log.
#[derive(Debug)]
pub struct DeleteLog<D: Disk> {
    disk: D,
    dir: PathBuf,
    not_before: Mono,
}

impl<D: Disk> PartitionLog<D> {
    /// The job that closes the log.
    #[must_use]
    pub const fn close(self) -> CloseLog<D> {
        CloseLog { log: self }
    }

    /// Renames the log's directory for deletion and gives the job that removes it after
    /// `file.delete.delay.ms`. `unique` makes the name one of its kind.
    ///
    /// # Errors
    /// When the directory cannot be renamed.
    pub fn delete(self, now: Now, unique: Uuid) -> Result<DeleteLog<D>, DiskError> {
        let dir = renamed_dir(&self.topic_partition, unique, "delete");
        self.disk.rename(&self.dir, &dir)?;
        let not_before = now.mono.plus(self.config.file_delete_delay_ms);
        Ok(DeleteLog {
            disk: self.disk,
            dir,
            not_before,
        })
    }
}

impl<D: Disk> CloseLog<D> {
    /// Does the work.
    ///
    /// # Errors
    /// When the disk refuses, or a sync of the log had failed before: the next open scans.
    pub fn run(mut self, b: &Blocking) -> Result<Closed, DiskError> {
        let log = &mut self.log;
        log.mend_tail()?;
        if let Fence::Failed(why) = &log.fence {
            return Err(why.clone());
        }
        log.active_mut().finish()?;
        for file in log.take_dirty_files() {
            file.sync(&log.disk, b)?;
        }
        let end = log.log_end_offset();
        let has_records = end > log.segments.front().map_or(end, |it| it.base_offset)
            || end > log.log_start_offset;
        let mut snapshots = std::mem::take(&mut log.flush.snapshots);
        if has_records && snapshots.last().is_none_or(|(offset, _)| *offset < end) {
            snapshots.push((end, log.producers.encode_snapshot()));
        }
        for (offset, bytes) in snapshots {
            let path = segment_file(&log.dir, offset, FileKind::Snapshot);
            log.disk.replace(&path, &bytes, b)?;
        }
        let epochs = leader_epochs::encode(&log.epochs);
        log.disk
            .replace(&log.dir.join(leader_epochs::FILE), &epochs, b)?;
        if let Some(ranges) = log.take_unlisted_damage() {
            write_damage(&log.disk, &log.dir, &ranges, b)?;
        }
        log.disk.sync_dir(&log.dir, b)?;
        Ok(Closed {
            log_start_offset: log.log_start_offset,
            first_base_offset: log.segments.front().map_or(end, |it| it.base_offset),
            log_end_offset: end,
        })
    }
}

impl<D: Disk> DeleteLog<D> {
    /// The directory's new name.
    #[must_use]
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// When `file.delete.delay.ms` is over and the job may be run.
    #[must_use]
    pub const fn not_before(&self) -> Mono {
        self.not_before
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn run(self, b: &Blocking) -> Result<(), DiskError> {
        self.disk.remove(&self.dir, b)
    }
}
