use highwater_disk::{Disk, DiskError};
use highwater_types::{Offset, WallMs};

use super::entries::{Entries, Entry, be_i32, be_i64};
use crate::lazy_file::LazyFile;

/// A timestamp, and the last offset of the batch that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeEntry {
    /// Greatest timestamp of the segment up to and with that batch.
    pub timestamp: WallMs,
    /// Last offset of the batch that brought it.
    pub offset: Offset,
}

impl Entry for TimeEntry {
    const SIZE: usize = 12;

    fn decode(bytes: &[u8], base: Offset) -> Option<Self> {
        let timestamp = WallMs::new(be_i64(bytes, 0)?);
        Some(Self {
            timestamp,
            offset: base.plus(i64::from(be_i32(bytes, 8)?)),
        })
    }

    fn encode(self, base: Offset, out: &mut Vec<u8>) {
        let relative = i32::try_from(self.offset.distance_from(base))
            .expect("a segment rolls before a relative offset overflows");
        out.extend_from_slice(&self.timestamp.raw().to_be_bytes());
        out.extend_from_slice(&relative.to_be_bytes());
    }
}

/// The `.timeindex` of a segment. Records need not come in order of time: an entry says that all
/// batches up to its offset have timestamps no greater than its own.
///
/// Invariant: timestamps rise strictly, offsets do not fall.
#[derive(Debug)]
pub(crate) struct TimeIndex<D: Disk>(pub(crate) Entries<D, TimeEntry>);

impl<D: Disk> TimeIndex<D> {
    pub(crate) const fn new(base: Offset, file: LazyFile<D>) -> Self {
        Self(Entries::new(base, file))
    }

    /// The greatest entry whose timestamp is below `target`: everything up to its offset is too
    /// old to be the answer of a look-up by time.
    pub(crate) fn lookup_below(&self, target: WallMs) -> Result<Option<TimeEntry>, DiskError> {
        let middle = self.0.len() / 2;
        self.0.last_where(middle, |entry| entry.timestamp < target)
    }

    /// Notes the greatest timestamp so far, if it rose since the last entry. Timestamps that go
    /// back are no error: only the greatest so far is ever noted.
    pub(crate) fn maybe_append(&mut self, entry: TimeEntry) {
        let last = self.0.last();
        let last_timestamp = last.map_or(WallMs::NONE, |last| last.timestamp);
        if entry.timestamp > last_timestamp && last.is_none_or(|last| entry.offset >= last.offset) {
            self.0.push(entry);
        }
    }

    /// Drops the entries of batches that end at or above `offset`.
    pub(crate) fn truncate_to(&mut self, offset: Offset) -> Result<(), DiskError> {
        let keep = self.0.partition_point(|entry| entry.offset < offset)?;
        self.0.truncate(keep)
    }

    /// Whether only the room for the closing entry is left.
    pub(crate) fn is_full(&self, bytes_max: u32) -> bool {
        self.0.len() >= (u64::from(bytes_max) / TimeEntry::SIZE as u64).saturating_sub(1)
    }
}
