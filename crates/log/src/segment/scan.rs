use std::ops::Range;
use std::sync::Arc;

use highwater_disk::{DiskError, DiskFile};
use highwater_records::{BATCH_HEADER_BYTES, BatchHeader, MAGIC};
use highwater_types::Offset;

/// Where a batch has its magic, and the only one that is read.
const MAGIC_AT: usize = 16;
const MAGIC_BYTE: u8 = 2;
/// First byte that the CRC covers.
const CRC_FROM: u64 = 21;
/// Bytes at a batch's start that no check covers: base offset, length, leader epoch.
const UNCHECKED_BYTES: u64 = 16;
/// What disks write whole or not at all, in bytes.
const SECTOR_BYTES: u64 = 512;

/// A batch's header and its place in a segment file.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) header: BatchHeader,
    /// First byte in the file.
    pub(crate) position: u64,
    /// The whole batch in bytes.
    pub(crate) size: u64,
}

impl Located {
    pub(crate) const fn end(&self) -> u64 {
        self.position + self.size
    }
}

/// What [`Found::Bad`] says of a batch whose header makes sense. A walk from header to header does
/// not notice it.
pub(crate) const WRONG_CRC: &str = "a batch with a wrong CRC";

/// What lies at a position of a segment file.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// A batch whose header makes sense there.
    Batch(Located),
    /// The end of the file.
    End,
    /// Bytes that are no whole batch.
    Bad(&'static str),
}

/// Reads a segment file through a buffer of its own, header by header or with all bytes.
#[derive(Debug)]
pub(crate) struct Scanner<F> {
    file: Arc<F>,
    /// Base offset of the segment.
    base: Offset,
    /// Bytes of the file that count.
    end: u64,
    buffer: Vec<u8>,
    /// What of the file is in `buffer`.
    start: u64,
    chunk: usize,
}

impl<F: DiskFile> Scanner<F> {
    /// For a walk from header to header, which takes a little around each.
    pub(crate) const fn headers(file: Arc<F>, base: Offset, end: u64) -> Self {
        Self {
            file,
            base,
            end,
            buffer: Vec::new(),
            start: 0,
            chunk: 4 << 10,
        }
    }

    /// For reading everything in order.
    pub(crate) const fn bodies(file: Arc<F>, base: Offset, end: u64) -> Self {
        Self {
            file,
            base,
            end,
            buffer: Vec::new(),
            start: 0,
            chunk: 256 << 10,
        }
    }

    /// The batch at `position`, which must not begin below `expected`. Its CRC is not looked at.
    pub(crate) fn header_at(
        &mut self,
        position: u64,
        expected: Offset,
    ) -> Result<Found, DiskError> {
        if position >= self.end {
            return Ok(Found::End);
        }
        let (base, end) = (self.base, self.end);
        let bytes = self.bytes_at(position, BATCH_HEADER_BYTES)?;
        if bytes.len() < BATCH_HEADER_BYTES {
            return Ok(Found::Bad("a torn batch header"));
        }
        let Some(header) = parse_header(bytes) else {
            return Ok(Found::Bad("no batch header"));
        };
        let size = header.size_bytes() as u64;
        if header.base_offset < expected {
            return Ok(Found::Bad("a batch that is older than the one before it"));
        }
        if position + size > end {
            return Ok(Found::Bad("a batch that is cut short"));
        }
        // The base offset is not under the checksum; an index entry is an int32 (KAFKA-5413).
        if header.last_offset().distance_from(base) > i64::from(i32::MAX) {
            return Ok(Found::Bad("a batch too far from the start of its segment"));
        }
        Ok(Found::Batch(Located {
            header,
            position,
            size,
        }))
    }

    /// As [`Scanner::header_at`], and the CRC must be right.
    pub(crate) fn batch_at(&mut self, position: u64, expected: Offset) -> Result<Found, DiskError> {
        let found = self.header_at(position, expected)?;
        let Found::Batch(batch) = &found else {
            return Ok(found);
        };
        let batch = batch.clone();
        if self.crc_of(&batch)? == batch.header.crc {
            Ok(found)
        } else {
            Ok(Found::Bad(WRONG_CRC))
        }
    }

    /// All bytes of a batch whose size is at most `max`; empty when it is larger.
    pub(crate) fn whole(&self, batch: &Located, max: usize) -> Result<Vec<u8>, DiskError> {
        let size = usize::try_from(batch.size).unwrap_or(usize::MAX);
        if size > max {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; size];
        let read = self.file.read_at(batch.position, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The bytes at `position`, as many as a header has, or fewer at the end.
    pub(crate) fn peek(&mut self, position: u64) -> Result<&[u8], DiskError> {
        self.bytes_at(position, BATCH_HEADER_BYTES)
    }

    /// Whether a batch behind damage is where it says. The end of a lost sector may have taken its
    /// base offset, which the CRC does not cover, and left another that is too small: then what
    /// follows has to begin where it ends.
    pub(crate) fn is_in_place(
        &mut self,
        batch: &Located,
        below: Offset,
    ) -> Result<bool, DiskError> {
        let last = batch.position + UNCHECKED_BYTES - 1;
        let next = batch.header.next_offset();
        if batch.position / SECTOR_BYTES == last / SECTOR_BYTES || next == below {
            return Ok(true);
        }
        let behind = self.batch_at(batch.end(), next)?;
        Ok(matches!(behind, Found::Batch(batch) if batch.header.base_offset == next))
    }

    /// The first position in `positions` at which a whole batch with a right CRC begins that is in
    /// its place, with offsets in `[expected, below)`. For finding the way after damage.
    pub(crate) fn resync(
        &mut self,
        positions: Range<u64>,
        expected: Offset,
        below: Offset,
    ) -> Result<Option<Located>, DiskError> {
        let mut at = positions.start;
        while at < positions.end && at + BATCH_HEADER_BYTES as u64 <= self.end {
            let bytes = self.bytes_at(at, BATCH_HEADER_BYTES)?;
            // Only where the magic byte fits is more looked at.
            let magics = bytes.get(MAGIC_AT..).unwrap_or_default();
            let Some(skip) = magics.iter().position(|byte| *byte == MAGIC_BYTE) else {
                at += magics.len().max(1) as u64;
                continue;
            };
            at += skip as u64;
            let plausible = parse_header(self.peek(at)?).is_some_and(|header| {
                header.base_offset >= expected && header.last_offset() < below
            });
            if plausible
                && at < positions.end
                && let Found::Batch(batch) = self.batch_at(at, expected)?
                && self.is_in_place(&batch, below)?
            {
                return Ok(Some(batch));
            }
            at += 1;
        }
        Ok(None)
    }

    fn crc_of(&mut self, batch: &Located) -> Result<u32, DiskError> {
        let mut crc = 0;
        let mut at = batch.position + CRC_FROM;
        while at < batch.end() {
            let want = usize::try_from(batch.end() - at)
                .unwrap_or(usize::MAX)
                .min(self.chunk);
            let bytes = self.bytes_at(at, want)?;
            if bytes.is_empty() {
                break;
            }
            let bytes = bytes.get(..want).unwrap_or(bytes);
            crc = crc32c::crc32c_append(crc, bytes);
            at += bytes.len() as u64;
        }
        Ok(crc)
    }

    /// Bytes from `position`: at least `want` unless the file ends before. More may come.
    fn bytes_at(&mut self, position: u64, want: usize) -> Result<&[u8], DiskError> {
        let held = self.start + self.buffer.len() as u64;
        let wanted_end = (position + want as u64).min(self.end);
        if position < self.start || wanted_end > held {
            let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
            self.buffer.resize(self.chunk.max(want).min(left), 0);
            let read = self.file.read_at(position, &mut self.buffer)?;
            self.buffer.truncate(read);
            self.start = position;
        }
        let from = usize::try_from(position - self.start).unwrap_or(usize::MAX);
        Ok(self.buffer.get(from..).unwrap_or_default())
    }
}

/// The header at the start of `bytes`, if it can be one: magic 2 and sizes that make sense.
pub(crate) fn parse_header(bytes: &[u8]) -> Option<BatchHeader> {
    let header = BatchHeader::parse(bytes).ok()?;
    let sane = header.magic == MAGIC
        && header.base_offset >= Offset::ZERO
        && header.last_offset_delta >= 0
        && header.record_count >= 0;
    sane.then_some(header)
}
