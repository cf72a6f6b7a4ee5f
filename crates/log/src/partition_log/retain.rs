use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_types::{Mono, Now, Offset};

use super::PartitionLog;
use crate::error::ReadError;
use crate::names::{FileKind, segment_file, with_suffix};
use crate::segment::LogSegment;

/// Files that were renamed to `.deleted` and wait to be removed.
#[derive(Debug)]
pub struct RemovedFiles<D: Disk> {
    disk: D,
    /// The log's directory.
    dir: PathBuf,
    paths: Vec<PathBuf>,
    not_before: Mono,
}

/// What retention deleted.
#[derive(Debug)]
pub struct Retained<D: Disk> {
    /// The log start offset now.
    pub log_start_offset: Offset,
    /// How many segments went.
    pub segments: usize,
    /// To be run once their time has come.
    pub files: RemovedFiles<D>,
}

impl<D: Disk> RemovedFiles<D> {
    /// When `file.delete.delay.ms` is over and the job may be run.
    #[must_use]
    pub const fn not_before(&self) -> Mono {
        self.not_before
    }

    /// Whether there is nothing to remove.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Removes the files.
    ///
    /// # Errors
    /// What the disk says of the first that it does not remove; the others are tried all the same.
    pub fn run(self, b: &Blocking) -> Result<(), DiskError> {
        if self.paths.is_empty() {
            return Ok(());
        }
        // The new names first: a segment that is gone without a trace would be a hole.
        let mut result = match self.disk.sync_dir(&self.dir, b) {
            // The whole log was deleted meanwhile.
            Err(why) if why.is_not_found() => return Ok(()),
            result => result,
        };
        for path in &self.paths {
            let removed = self.disk.remove(path, b);
            if result.is_ok() {
                result = removed;
            }
        }
        result
    }

    /// Renames `path` out of the way. A file that is not there needs none of it.
    pub(super) fn retire(&mut self, path: &Path, why: Retire) -> Result<(), DiskError> {
        let to = with_suffix(path, why.suffix());
        match self.disk.rename(path, &to) {
            Ok(()) => self.paths.push(to),
            Err(why) if why.is_not_found() => {}
            Err(why) => return Err(why),
        }
        Ok(())
    }
}

/// Why a file is taken out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retire {
    /// It is past retention.
    Deleted,
    /// Its records were cut off.
    Truncated,
}

impl Retire {
    /// Kafka removes whatever ends in `.deleted` at its start. Recovery tells the two apart: a
    /// segment that is missing since retention deleted it is no loss.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Deleted => ".deleted",
            Self::Truncated => ".truncated.deleted",
        }
    }
}

impl<D: Disk> PartitionLog<D> {
    /// Deletes segments that lie wholly below `high_watermark` and are past retention: below the
    /// log start, too old by their records' timestamps, or more than `retention.bytes`. An active
    /// segment that is too old is rolled first. `None` when there is nothing to delete.
    ///
    /// # Errors
    /// When the disk refuses; segments that were deleted before are gone all the same.
    pub fn retain(
        &mut self,
        now: Now,
        high_watermark: Offset,
    ) -> Result<Option<Retained<D>>, DiskError> {
        let count = self.expired_count(now, high_watermark);
        if count == 0 {
            return Ok(None);
        }
        if count == self.segments.len() {
            self.roll(now)?;
        }
        let mut files = self.removed_files(now);
        let mut deleted = 0;
        let mut result = Ok(());
        while deleted < count && result.is_ok() {
            let first = self.segments.front().map(|segment| segment.base_offset);
            let Some(base_offset) = first else { break };
            result = self.retire_segment(base_offset, Retire::Deleted, &mut files);
            if result.is_ok() {
                self.segments.pop_front();
                deleted += 1;
            }
        }
        let first = self
            .segments
            .front()
            .map_or(self.log_start_offset, |it| it.base_offset);
        self.raise_log_start(first.max(self.log_start_offset));
        self.flush.names_changed = true;
        result?;
        let log_start_offset = self.log_start_offset;
        Ok(Some(Retained {
            log_start_offset,
            segments: deleted,
            files,
        }))
    }

    /// Raises the log start offset, as DeleteRecords and a leader's own log start do. Segments
    /// below it go with the next [`PartitionLog::retain`]. Returns whether it rose.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] above the log end offset. That it is not above the high watermark
    /// is for the caller to see.
    pub fn advance_log_start(&mut self, offset: Offset) -> Result<bool, ReadError> {
        let log_end_offset = self.log_end_offset();
        if offset > log_end_offset {
            let log_start_offset = self.log_start_offset;
            return Err(ReadError::OutOfRange {
                offset,
                log_start_offset,
                log_end_offset,
            });
        }
        let rises = offset > self.log_start_offset;
        if rises {
            self.raise_log_start(offset);
        }
        Ok(rises)
    }

    fn raise_log_start(&mut self, offset: Offset) {
        self.log_start_offset = offset;
        self.flush.epochs_changed |= self.epochs.truncate_from_start(offset);
        self.producers.advance_log_start(offset);
        self.damage.clamp(offset, self.log_end_offset());
        self.assert_invariants();
    }

    /// How many segments, oldest first, may be deleted.
    fn expired_count(&self, now: Now, high_watermark: Offset) -> usize {
        let mut excess = match self.config.retention_bytes {
            Some(bytes) if self.config.deletes => self.size_bytes().saturating_sub(bytes),
            _ => 0,
        };
        let mut count = 0;
        let last = self.segments.len().saturating_sub(1);
        for (number, segment) in self.segments.iter().enumerate() {
            let is_active = number == last;
            let end = match self.segments.get(number + 1) {
                Some(next) => next.base_offset,
                None => segment.end_offset,
            };
            if end > high_watermark || is_active && segment.size == 0 {
                break;
            }
            let is_too_much = !is_active && excess >= segment.size && excess > 0;
            let is_below_start = !is_active && end <= self.log_start_offset;
            if !is_below_start && !is_too_much && !self.is_too_old(now, segment) {
                break;
            }
            excess = excess.saturating_sub(segment.size);
            count += 1;
        }
        count
    }

    /// Judged by the greatest timestamp, which was either seen in the batches by this process or
    /// checked against them when the log was opened (KAFKA-10207).
    fn is_too_old(&self, now: Now, segment: &LogSegment<D>) -> bool {
        let Some(retention) = self.config.retention_ms.filter(|_| self.config.deletes) else {
            return false;
        };
        let newest = segment.max_timestamp().unwrap_or(segment.created);
        i64::try_from(retention.as_u64()).is_ok_and(|limit| now.wall.since(newest) > limit)
    }

    pub(super) fn removed_files(&self, now: Now) -> RemovedFiles<D> {
        let not_before = now.mono.plus(self.config.file_delete_delay_ms);
        RemovedFiles {
            disk: self.disk.clone(),
            dir: self.dir.clone(),
            paths: Vec::new(),
            not_before,
        }
    }

    /// Renames the files of a segment to `.deleted`, its batches first: without them the rest is
    /// worthless and goes at the next open.
    pub(super) fn retire_segment(
        &mut self,
        base_offset: Offset,
        why: Retire,
        files: &mut RemovedFiles<D>,
    ) -> Result<(), DiskError> {
        for kind in FileKind::ALL {
            if why == Retire::Truncated && kind == FileKind::Snapshot {
                // The state below a cut at this base is still right; the caller judges.
                continue;
            }
            files.retire(&segment_file(&self.dir, base_offset, kind), why)?;
        }
        if why == Retire::Deleted {
            self.flush
                .snapshots
                .retain(|(offset, _)| *offset != base_offset);
        }
        Ok(())
    }
}
