use highwater_disk::{Disk, DiskError};
use highwater_types::Offset;

use super::entries::{Entries, Entry, be_i32};
use crate::lazy_file::LazyFile;

/// Where a batch lies in a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetEntry {
    /// Last offset of the batch.
    pub offset: Offset,
    /// The batch's first byte in the segment file.
    pub position: u64,
}

impl Entry for OffsetEntry {
    const SIZE: usize = 8;

    fn decode(bytes: &[u8], base: Offset) -> Option<Self> {
        let relative = be_i32(bytes, 0)?;
        // A position is written as int32; a negative one is damage and lies beyond every file.
        let position = u64::try_from(be_i32(bytes, 4)?).unwrap_or(u64::MAX);
        Some(Self {
            offset: base.plus(i64::from(relative)),
            position,
        })
    }

    fn encode(self, base: Offset, out: &mut Vec<u8>) {
        let relative = i32::try_from(self.offset.distance_from(base))
            .expect("a segment rolls before a relative offset overflows");
        let position =
            i32::try_from(self.position).expect("a segment rolls before it passes 2 GiB");
        out.extend_from_slice(&relative.to_be_bytes());
        out.extend_from_slice(&position.to_be_bytes());
    }
}

/// The `.index` of a segment: sparse, one entry about every `index.interval.bytes`.
///
/// Invariant: offsets and positions rise strictly.
#[derive(Debug)]
pub(crate) struct OffsetIndex<D: Disk>(pub(crate) Entries<D, OffsetEntry>);

impl<D: Disk> OffsetIndex<D> {
    pub(crate) const fn new(base: Offset, file: LazyFile<D>) -> Self {
        Self(Entries::new(base, file))
    }

    /// The greatest entry whose offset is not above `target`.
    pub(crate) fn lookup(&self, target: Offset) -> Result<Option<OffsetEntry>, DiskError> {
        // Batches are much alike, so that entries lie evenly.
        let share = self.0.last().and_then(|last| {
            let span = u64::try_from(last.offset.distance_from(self.0.base())).ok()?;
            let wanted = u64::try_from(target.distance_from(self.0.base())).ok()?;
            self.0.len().checked_mul(wanted)?.checked_div(span)
        });
        self.0
            .last_where(share.unwrap_or(0), |entry| entry.offset <= target)
    }

    /// Notes a batch; its last offset and position must lie above those of the last entry.
    pub(crate) fn append(&mut self, entry: OffsetEntry) {
        if let Some(last) = self.0.last() {
            assert!(
                entry.offset > last.offset,
                "index entry {entry:?} after {last:?}"
            );
            assert!(
                entry.position > last.position,
                "index entry {entry:?} after {last:?}"
            );
        }
        self.0.push(entry);
    }

    /// Drops the entries of batches that end at or above `offset`.
    pub(crate) fn truncate_to(&mut self, offset: Offset) -> Result<(), DiskError> {
        let keep = self.0.partition_point(|entry| entry.offset < offset)?;
        self.0.truncate(keep)
    }

    pub(crate) fn is_full(&self, bytes_max: u32) -> bool {
        self.0.len() >= u64::from(bytes_max) / OffsetEntry::SIZE as u64
    }
}
