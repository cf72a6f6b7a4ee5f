use std::ops::ControlFlow;
use std::sync::Arc;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_records::{Batch, BatchError};
use highwater_types::{LeaderEpoch, Offset, WallMs};

use super::PartitionLog;
use crate::lazy_file::LazyFile;
use crate::segment::scan::{Found, Located, Scanner};

/// Largest batch whose bytes a look-up takes into memory.
const BATCH_BYTES_MAX: usize = 256 << 20;

/// A record found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeFound {
    /// The record's own offset, also inside a batch.
    pub offset: Offset,
    /// The record's own timestamp.
    pub timestamp: WallMs,
    /// The leader epoch of its batch.
    pub leader_epoch: LeaderEpoch,
}

/// Looks for a record by its time: reads a few headers and one batch.
#[derive(Debug)]
pub struct TimeLookup<D: Disk> {
    wanted: Wanted,
    log_start_offset: Offset,
    decompressed_bytes_max: u64,
    candidates: Vec<Candidate<D>>,
}

/// Why a look-up by time failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeLookupError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The batch that may hold the answer is damaged.
    #[error("batch at {base_offset}: {why}")]
    Damaged {
        /// First offset of the batch.
        base_offset: Offset,
        /// What is wrong with it.
        why: BatchError,
    },
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// The first record whose timestamp is this or later.
    AtOrAfter(WallMs),
    /// The first record with the log's greatest timestamp, which is this.
    Greatest(WallMs),
}

/// A segment that may hold the answer.
#[derive(Debug)]
struct Candidate<D: Disk> {
    log: LazyFile<D>,
    base_offset: Offset,
    size: u64,
    /// Where to begin: every batch before it is too old.
    position: u64,
}

impl<D: Disk> PartitionLog<D> {
    /// A job that finds the first record whose timestamp is `timestamp` or later. `None` at once
    /// when the log has no such record.
    ///
    /// Only segments whose greatest timestamp is late enough are looked at, and of these only
    /// what the time index leaves over.
    ///
    /// # Errors
    /// When an index cannot be read.
    pub fn time_lookup(&self, timestamp: WallMs) -> Result<Option<TimeLookup<D>>, DiskError> {
        self.lookup(Wanted::AtOrAfter(timestamp), timestamp)
    }

    /// A job that finds the first record that has the greatest timestamp of the log (KIP-734).
    /// `None` when no record has a timestamp.
    ///
    /// # Errors
    /// When an index cannot be read.
    pub fn max_timestamp_lookup(&self) -> Result<Option<TimeLookup<D>>, DiskError> {
        let readable = self
            .segments
            .iter()
            .filter(|it| it.end_offset > self.log_start_offset);
        match readable.filter_map(|segment| segment.max_timestamp()).max() {
            Some(greatest) => self.lookup(Wanted::Greatest(greatest), greatest),
            None => Ok(None),
        }
    }

    fn lookup(
        &self,
        wanted: Wanted,
        timestamp: WallMs,
    ) -> Result<Option<TimeLookup<D>>, DiskError> {
        let mut candidates: Vec<Candidate<D>> = Vec::new();
        for segment in &self.segments {
            let Some(greatest) = segment.greatest else {
                continue;
            };
            if greatest.timestamp < timestamp || segment.end_offset <= self.log_start_offset {
                continue;
            }
            let position = if candidates.is_empty() {
                // Opened here: a deletion may rename it before the job runs.
                segment.file()?;
                let too_old = segment.time_index.lookup_below(timestamp)?;
                let from = too_old.map_or(segment.base_offset, |entry| entry.offset.next());
                let from = from.max(self.log_start_offset);
                segment
                    .offset_index
                    .lookup(from)?
                    .map_or(0, |entry| entry.position)
            } else {
                0
            };
            candidates.push(Candidate {
                log: segment.lazy_log().clone(),
                base_offset: segment.base_offset,
                size: segment.size,
                position,
            });
            if greatest.offset >= self.log_start_offset && !self.config.compacts {
                // Its record with the greatest timestamp will do, if no earlier one does.
                break;
            }
        }
        Ok((!candidates.is_empty()).then(|| TimeLookup {
            wanted,
            log_start_offset: self.log_start_offset,
            decompressed_bytes_max: self.config.decompressed_bytes_max,
            candidates,
        }))
    }
}

impl<D: Disk> TimeLookup<D> {
    /// Does the work. `None` when no record is late enough.
    ///
    /// # Errors
    /// See [`TimeLookupError`].
    pub fn run(self, _b: &Blocking) -> Result<Option<TimeFound>, TimeLookupError> {
        for candidate in &self.candidates {
            let file = match candidate.log.open() {
                Ok(file) => Arc::clone(file),
                // Deleted since the job was made; its records are no answer any more.
                Err(why) if why.is_not_found() => continue,
                Err(why) => return Err(why.into()),
            };
            if let Some(found) = self.search(candidate, file)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn search(
        &self,
        candidate: &Candidate<D>,
        file: Arc<D::File>,
    ) -> Result<Option<TimeFound>, TimeLookupError> {
        let mut scanner = Scanner::headers(file, candidate.base_offset, candidate.size);
        let mut position = candidate.position;
        let mut expected = candidate.base_offset;
        loop {
            match scanner.header_at(position, expected)? {
                Found::Batch(batch) => {
                    if self.may_hold(&batch)
                        && let Some(found) = self.search_batch(&mut scanner, &batch)?
                    {
                        return Ok(Some(found));
                    }
                    position = batch.end();
                    expected = batch.header.next_offset();
                }
                Found::End => return Ok(None),
                Found::Bad(_) => {
                    match scanner.resync(position + 1..u64::MAX, expected, Offset::MAX)? {
                        Some(batch) => position = batch.position,
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    fn may_hold(&self, batch: &Located) -> bool {
        let (Wanted::AtOrAfter(least) | Wanted::Greatest(least)) = self.wanted;
        batch.header.max_timestamp >= least && batch.header.last_offset() >= self.log_start_offset
    }

    fn search_batch(
        &self,
        scanner: &mut Scanner<D::File>,
        batch: &Located,
    ) -> Result<Option<TimeFound>, TimeLookupError> {
        let (Wanted::AtOrAfter(least) | Wanted::Greatest(least)) = self.wanted;
        let base_offset = batch.header.base_offset;
        let damaged = |why| TimeLookupError::Damaged { base_offset, why };
        let bytes = scanner.whole(batch, BATCH_BYTES_MAX)?;
        let view = Batch::parse(&bytes).map_err(damaged)?;
        view.check_crc().map_err(damaged)?;
        let found = view.visit_times(self.decompressed_bytes_max, |record| {
            if record.timestamp >= least && record.offset >= self.log_start_offset {
                ControlFlow::Break(record)
            } else {
                ControlFlow::Continue(())
            }
        });
        Ok(found.map_err(damaged)?.map(|record| TimeFound {
            offset: record.offset,
            timestamp: record.timestamp,
            leader_epoch: batch.header.leader_epoch,
        }))
    }
}
