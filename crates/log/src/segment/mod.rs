//! One segment of a log: its batches and their indexes.

mod entries;
mod load;
mod locate;
mod offset_index;
pub(crate) mod scan;
mod time_index;

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use highwater_disk::{Disk, DiskError, DiskFile, OpenMode};
use highwater_records::BatchHeader;
use highwater_types::{Offset, WallMs};

pub(crate) use self::load::decode_offset_index;
pub(crate) use self::locate::Place;
pub use self::offset_index::OffsetEntry;
pub(crate) use self::offset_index::OffsetIndex;
use self::scan::{Found, Scanner};
pub use self::time_index::TimeEntry;
pub(crate) use self::time_index::TimeIndex;
use crate::config::LogConfig;
use crate::lazy_file::{LazyFile, UnsyncedFile};
use crate::names::{FileKind, segment_file};
use crate::transaction_index::{AbortedTransaction, TransactionIndex, TransactionIndexError};

/// A `.log` file with its indexes. Exactly one segment of a log, the last, is active.
///
/// Invariant: `base_offset <= end_offset`; bytes `[0, size)` of the file never change again.
#[derive(Debug)]
pub(crate) struct LogSegment<D: Disk> {
    pub(crate) base_offset: Offset,
    /// Exclusive: where the next batch belongs.
    pub(crate) end_offset: Offset,
    log: LazyFile<D>,
    transaction_file: LazyFile<D>,
    /// The transactions whose abort markers are in this segment.
    pub(crate) transactions: TransactionIndex,
    /// Its file is older.
    transactions_changed: bool,
    /// Bytes of the file that count.
    pub(crate) size: u64,
    pub(crate) offset_index: OffsetIndex<D>,
    pub(crate) time_index: TimeIndex<D>,
    /// The greatest timestamp, and the last offset of the first batch that has it.
    pub(crate) greatest: Option<TimeEntry>,
    /// Greatest timestamp of the first batch: what the age of the segment counts from.
    pub(crate) first_timestamp: Option<WallMs>,
    /// When this process made or opened the segment: its age when no record has a timestamp.
    pub(crate) created: WallMs,
    /// Bytes since the batch that has the newest index entry.
    bytes_since_index: u64,
    /// The `.log` file has bytes or a length that no sync job has taken on yet.
    pub(crate) is_dirty: bool,
    /// As `is_dirty`, for the index files of a closed segment.
    pub(crate) indexes_dirty: bool,
}

impl<D: Disk> LogSegment<D> {
    /// A new, empty segment. Its file must not exist; index files are made when first written.
    pub(crate) fn create(
        disk: &D,
        dir: &Path,
        base_offset: Offset,
        now: WallMs,
    ) -> Result<Self, DiskError> {
        let path = segment_file(dir, base_offset, FileKind::Log);
        let file = disk.open(&path, OpenMode::CreateNew)?;
        let mut segment = Self::over(disk, dir, base_offset, now);
        segment.log = LazyFile::opened(disk.clone(), path, OpenMode::Write, file);
        Ok(segment)
    }

    /// A segment over the files of `base_offset`, of which nothing is known yet.
    pub(crate) fn over(disk: &D, dir: &Path, base_offset: Offset, now: WallMs) -> Self {
        let lazy =
            |kind, mode| LazyFile::new(disk.clone(), segment_file(dir, base_offset, kind), mode);
        Self {
            base_offset,
            end_offset: base_offset,
            log: lazy(FileKind::Log, OpenMode::Write),
            transaction_file: lazy(FileKind::TxnIndex, OpenMode::Create),
            transactions: TransactionIndex::new(),
            transactions_changed: false,
            size: 0,
            offset_index: OffsetIndex::new(base_offset, lazy(FileKind::Index, OpenMode::Create)),
            time_index: TimeIndex::new(base_offset, lazy(FileKind::TimeIndex, OpenMode::Create)),
            greatest: None,
            first_timestamp: None,
            created: now,
            bytes_since_index: 0,
            is_dirty: true,
            indexes_dirty: false,
        }
    }

    pub(crate) fn file(&self) -> Result<&Arc<D::File>, DiskError> {
        self.log.open()
    }

    pub(crate) const fn lazy_log(&self) -> &LazyFile<D> {
        &self.log
    }

    /// Lets go of all file handles; they are opened again when needed.
    pub(crate) fn release(&mut self) {
        self.log.release();
        self.release_indexes();
    }

    /// Lets go of the handles of the index files.
    pub(crate) fn release_indexes(&mut self) {
        self.transaction_file.release();
        self.offset_index.0.release();
        self.time_index.0.release();
    }

    /// The greatest timestamp of the segment; `None` when no record has any.
    pub(crate) fn max_timestamp(&self) -> Option<WallMs> {
        self.greatest.map(|entry| entry.timestamp)
    }

    /// Whether the batch of `header`, behind `before_bytes` that are to be written first, may
    /// not come into this segment any more.
    pub(crate) fn must_roll(
        &self,
        config: &LogConfig,
        now: WallMs,
        before_bytes: u64,
        header: &BatchHeader,
    ) -> bool {
        let relative = header.last_offset().distance_from(self.base_offset);
        if i32::try_from(relative).is_err() {
            return true;
        }
        let size = self.size + before_bytes + header.size_bytes() as u64;
        self.size > 0
            && (size > u64::from(config.segment_bytes)
                || self.is_old(config, now, header.max_timestamp)
                || self.offset_index.is_full(config.index_bytes_max)
                || self.time_index.is_full(config.index_bytes_max))
    }

    /// Whether the segment spans more than `segment.ms`, counted in the time of its records.
    fn is_old(&self, config: &LogConfig, now: WallMs, max_timestamp: WallMs) -> bool {
        let waited = match self.first_timestamp {
            Some(first) if first.raw() >= 0 => max_timestamp.since(first),
            _ => now.since(self.created),
        };
        let limit = config
            .segment_ms
            .as_u64()
            .saturating_sub(config.segment_jitter_ms.as_u64());
        i64::try_from(limit).is_ok_and(|limit| waited > limit)
    }

    /// Writes whole batches behind the last one and notes them in the indexes.
    ///
    /// On an error the file may hold some of the bytes behind `size`; the segment is as before.
    pub(crate) fn append<'a>(
        &mut self,
        bytes: &[IoSlice<'_>],
        batches: impl IntoIterator<Item = &'a BatchHeader>,
        index_interval_bytes: u32,
    ) -> Result<(), DiskError> {
        self.log.open()?.write_at(self.size, bytes)?;
        self.is_dirty = true;
        for header in batches {
            self.note(header, index_interval_bytes);
        }
        Ok(())
    }

    /// Takes a batch that lies at the end of the segment into account.
    pub(crate) fn note(&mut self, header: &BatchHeader, index_interval_bytes: u32) {
        assert!(
            header.base_offset >= self.end_offset,
            "batch at {} in a segment that ends at {}",
            header.base_offset,
            self.end_offset
        );
        let last_offset = header.last_offset();
        if self.size == 0 {
            self.first_timestamp = Some(header.max_timestamp);
        }
        let so_far = self.max_timestamp().unwrap_or(WallMs::NONE);
        if header.max_timestamp > so_far {
            let timestamp = header.max_timestamp;
            self.greatest = Some(TimeEntry {
                timestamp,
                offset: last_offset,
            });
        }
        if self.bytes_since_index > u64::from(index_interval_bytes) {
            let position = self.size;
            self.offset_index.append(OffsetEntry {
                offset: last_offset,
                position,
            });
            if let Some(greatest) = self.greatest {
                self.time_index.maybe_append(greatest);
            }
            self.bytes_since_index = 0;
        }
        let size = header.size_bytes() as u64;
        self.size += size;
        self.bytes_since_index += size;
        self.end_offset = header.next_offset();
    }

    /// Ends writing to the segment: the time index gets its last entry, both indexes are written
    /// and cut to their entries.
    pub(crate) fn finish(&mut self) -> Result<(), DiskError> {
        if let Some(greatest) = self.greatest {
            self.time_index.maybe_append(greatest);
        }
        self.write_indexes(true)?;
        self.indexes_dirty = true;
        Ok(())
    }

    /// Writes what the index files lack. The transaction index has a file only once there was an
    /// abort.
    pub(crate) fn write_indexes(&mut self, trim: bool) -> Result<(), DiskError> {
        self.offset_index.0.write(trim)?;
        self.time_index.0.write(trim)?;
        self.write_transactions_if_changed()
    }

    pub(crate) fn write_transactions_if_changed(&mut self) -> Result<(), DiskError> {
        if self.transactions_changed {
            self.write_transactions()?;
            self.transactions_changed = false;
            self.indexes_dirty = true;
        }
        Ok(())
    }

    fn write_transactions(&self) -> Result<(), DiskError> {
        if self.transactions.is_empty() && !self.transaction_file.exists()? {
            return Ok(());
        }
        let file = self.transaction_file.open()?;
        file.write_at(0, &[IoSlice::new(&self.transactions.encode())])?;
        file.set_len(self.transactions.file_bytes())
    }

    /// Reads the transaction index file of `len` bytes.
    pub(crate) fn read_transactions(
        &self,
        len: u64,
    ) -> Result<Result<TransactionIndex, TransactionIndexError>, DiskError> {
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let read = self.transaction_file.open()?.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(TransactionIndex::decode(&bytes, self.base_offset))
    }

    /// Takes the transaction index as its file has it.
    pub(crate) fn set_transactions(&mut self, index: TransactionIndex) {
        self.transactions = index;
        self.transactions_changed = false;
    }

    /// Takes a transaction index that the file does not have yet.
    pub(crate) fn replace_transactions(&mut self, index: TransactionIndex) {
        self.transactions = index;
        self.transactions_changed = true;
    }

    /// Notes a transaction whose abort marker is in this segment.
    pub(crate) fn add_aborted(&mut self, aborted: AbortedTransaction) {
        self.transactions.append(aborted);
        self.transactions_changed = true;
    }

    /// The index files that a sync job must make durable, as far as there are any.
    pub(crate) fn index_files(&self) -> [UnsyncedFile<D>; 3] {
        [
            self.offset_index.0.file().unsynced(),
            self.time_index.0.file().unsynced(),
            self.transaction_file.unsynced(),
        ]
    }

    /// A reader of the segment's headers.
    pub(crate) fn headers(&self) -> Result<Scanner<D::File>, DiskError> {
        Ok(Scanner::headers(
            self.log.open_briefly()?,
            self.base_offset,
            self.size,
        ))
    }

    /// A reader of the segment's batches.
    pub(crate) fn bodies(&self) -> Result<Scanner<D::File>, DiskError> {
        Ok(Scanner::bodies(
            self.log.open_briefly()?,
            self.base_offset,
            self.size,
        ))
    }

    /// Forgets everything that was learnt from batches, to learn it anew.
    pub(crate) fn forget(&mut self) {
        self.size = 0;
        self.end_offset = self.base_offset;
        self.greatest = None;
        self.first_timestamp = None;
        self.bytes_since_index = 0;
        self.offset_index.0.clear();
        self.time_index.0.clear();
    }

    /// Bytes up to `position` are no batches but belong to the segment: damage.
    pub(crate) fn skip_to(&mut self, position: u64) {
        if position > self.size {
            self.bytes_since_index += position - self.size;
            self.size = position;
        }
    }

    /// Cuts the segment in front of the batch at `position`, which holds or follows `offset`.
    pub(crate) fn cut(&mut self, position: u64, offset: Offset) -> Result<(), DiskError> {
        assert!(
            position <= self.size,
            "cut at {position} in a segment of {}",
            self.size
        );
        self.log.open()?.set_len(position)?;
        self.is_dirty = true;
        self.size = position;
        self.end_offset = offset;
        self.offset_index.truncate_to(offset)?;
        self.time_index.truncate_to(offset)?;
        self.transactions_changed |= self.transactions.truncate_from_end(offset);
        let newest = self.time_index.0.last();
        // What lies behind the last time entry is looked at: it may hold a greater timestamp.
        let from = newest.map_or(self.base_offset, |entry| entry.offset.next());
        self.greatest = newest;
        let entry = self.offset_index.lookup(from)?;
        let mut at = entry.map_or(0, |entry| entry.position);
        let mut scanner = self.headers()?;
        while let Found::Batch(batch) = scanner.header_at(at, self.base_offset)? {
            if at == 0 {
                self.first_timestamp = Some(batch.header.max_timestamp);
            }
            if batch.header.max_timestamp > self.max_timestamp().unwrap_or(WallMs::NONE) {
                let timestamp = batch.header.max_timestamp;
                self.greatest = Some(TimeEntry {
                    timestamp,
                    offset: batch.header.last_offset(),
                });
            }
            at = batch.end();
        }
        Ok(())
    }
}
