use bytes::{Buf as _, BufMut as _};
use highwater_types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, WallMs};

use super::{Attributes, BatchError};

/// Bytes of a batch before its first record.
pub const BATCH_HEADER_BYTES: usize = 61;
/// Bytes in front of what the batch length counts: base offset and the length itself.
pub const LOG_OVERHEAD_BYTES: usize = 12;
/// The batch format that this build reads and writes. Formats 0 and 1 are older than Kafka 0.11;
/// Kafka 4 no longer writes them.
pub const MAGIC: i8 = 2;

/// The checksum covers everything from the attributes to the end.
pub(crate) const CRC_COVERS_FROM: usize = 21;

/// The fixed front of a record batch, decoded.
///
/// Big-endian on disk and on the wire: base offset (8), batch length (4), leader epoch (4), magic
/// (1), CRC-32C of all that follows it (4), attributes (2), last offset delta (4), base timestamp
/// (8), maximum timestamp (8), producer id (8), producer epoch (2), base sequence (4), record
/// count (4). The first four are outside the checksum, so a leader stamps them for free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record; stays even when compaction removes that record.
    pub base_offset: Offset,
    /// Bytes of the batch after this field.
    ///
    /// Invariant: at least 49, when parsed.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch.
    pub leader_epoch: LeaderEpoch,
    /// Batch format; always [`MAGIC`] when parsed.
    pub magic: i8,
    /// CRC-32C from the attributes to the end of the batch.
    pub crc: u32,
    /// Codec and flags.
    pub attributes: Attributes,
    /// Last offset minus base offset; stays when compaction removes records.
    pub last_offset_delta: i32,
    /// What the records' timestamp deltas count from, or the delete horizon.
    pub base_timestamp: WallMs,
    /// Largest timestamp, or the append time for `LogAppendTime`.
    pub max_timestamp: WallMs,
    /// The idempotent producer, or [`ProducerId::NONE`].
    pub producer_id: ProducerId,
    /// That producer's epoch.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the first record, or -1.
    pub base_sequence: i32,
    /// Records in the batch; zero for one that compaction emptied.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the front of `bytes`, which may go on behind the batch or end inside
    /// it. Checks the magic and that the length has room for a header; nothing else.
    ///
    /// # Errors
    /// [`BatchError::Cut`] with fewer than 61 bytes, [`BatchError::BatchLength`],
    /// [`BatchError::UnknownMagic`] and [`BatchError::OldMagic`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        Self::check_front(bytes)?;
        let cut = BatchError::Cut {
            have_bytes: bytes.len(),
            need_bytes: BATCH_HEADER_BYTES,
        };
        let Some((fixed, _)) = bytes.split_first_chunk::<BATCH_HEADER_BYTES>() else {
            return Err(cut);
        };
        let mut fixed = fixed.as_slice();
        let header = Self {
            base_offset: Offset::new(fixed.get_i64()),
            batch_length: fixed.get_i32(),
            leader_epoch: LeaderEpoch::new(fixed.get_i32()),
            magic: fixed.get_i8(),
            crc: fixed.get_u32(),
            attributes: Attributes::new(fixed.get_u16()),
            last_offset_delta: fixed.get_i32(),
            base_timestamp: WallMs::new(fixed.get_i64()),
            max_timestamp: WallMs::new(fixed.get_i64()),
            producer_id: ProducerId::new(fixed.get_i64()),
            producer_epoch: ProducerEpoch::new(fixed.get_i16()),
            base_sequence: fixed.get_i32(),
            record_count: fixed.get_i32(),
        };
        assert!(fixed.is_empty(), "the header has 61 bytes");
        Ok(header)
    }

    /// Checks the 17 bytes that every batch format has at its front. An unknown magic counts
    /// before a length that is too short, for only a known format says what is too short.
    fn check_front(bytes: &[u8]) -> Result<(), BatchError> {
        let Some((front, _)) = bytes.split_first_chunk::<17>() else {
            return Err(BatchError::Cut {
                have_bytes: bytes.len(),
                need_bytes: BATCH_HEADER_BYTES,
            });
        };
        let mut front = front.as_slice();
        front.advance(8);
        let batch_length = front.get_i32();
        front.advance(4);
        let magic = front.get_i8();
        let length_min = match magic {
            0 | 1 => 14,
            MAGIC => BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES,
            _ => return Err(BatchError::UnknownMagic { magic }),
        };
        if usize::try_from(batch_length).is_ok_and(|length| length >= length_min) {
            if magic == MAGIC {
                Ok(())
            } else {
                Err(BatchError::OldMagic { magic })
            }
        } else {
            Err(BatchError::BatchLength { batch_length })
        }
    }

    /// The 61 bytes of this header, field by field, checksum included as it stands.
    #[must_use]
    pub fn encode(&self) -> [u8; BATCH_HEADER_BYTES] {
        let mut bytes = [0; BATCH_HEADER_BYTES];
        let mut out = bytes.as_mut_slice();
        out.put_i64(self.base_offset.raw());
        out.put_i32(self.batch_length);
        out.put_i32(self.leader_epoch.raw());
        out.put_i8(self.magic);
        out.put_u32(self.crc);
        out.put_u16(self.attributes.raw());
        out.put_i32(self.last_offset_delta);
        out.put_i64(self.base_timestamp.raw());
        out.put_i64(self.max_timestamp.raw());
        out.put_i64(self.producer_id.raw());
        out.put_i16(self.producer_epoch.raw());
        out.put_i32(self.base_sequence);
        out.put_i32(self.record_count);
        assert!(out.is_empty(), "the header has 61 bytes");
        bytes
    }

    /// This header with the checksum that it and `records` (all bytes after the header) have.
    #[must_use]
    pub fn with_crc_over(mut self, records: &[u8]) -> Self {
        let head = self.encode();
        let (_, covered) = head.split_at(CRC_COVERS_FROM);
        self.crc = crc32c::crc32c_append(crc32c::crc32c(covered), records);
        self
    }

    /// Bytes of the whole batch, header included.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        usize::try_from(self.batch_length).unwrap_or(0) + LOG_OVERHEAD_BYTES
    }

    /// Offset of the last record.
    #[must_use]
    pub const fn last_offset(&self) -> Offset {
        self.base_offset.plus(self.last_offset_delta as i64)
    }

    /// The offset right after the batch.
    #[must_use]
    pub const fn next_offset(&self) -> Offset {
        self.last_offset().next()
    }

    /// Sequence of the last record; sequences start again at 0 after `i32::MAX`. -1 without
    /// sequences.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        sequence_after(self.base_sequence, self.last_offset_delta)
    }

    /// When the tombstones and markers of this batch may go (KIP-534).
    #[must_use]
    pub const fn delete_horizon(&self) -> Option<WallMs> {
        if self.attributes.has_delete_horizon() {
            Some(self.base_timestamp)
        } else {
            None
        }
    }
}

/// The sequence `count` after `sequence`, from 0 again after `i32::MAX`.
pub(crate) fn sequence_after(sequence: i32, count: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(count);
    i32::try_from(sum).unwrap_or_else(|_| {
        i32::try_from(sum - i64::from(i32::MAX) - 1).expect("two i32 differ by less than 2^32")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(sequence_after(5, 3), 8);
        assert_eq!(sequence_after(i32::MAX, 0), i32::MAX);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 1, 4), 2);
        assert_eq!(sequence_after(i32::MAX, i32::MAX), i32::MAX - 1);
    }

    #[test]
    fn encode_is_the_inverse_of_parse() {
        let mut bytes: Vec<u8> = (0..61).collect();
        bytes[8..12].copy_from_slice(&100_i32.to_be_bytes());
        bytes[16] = 2;
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(header.encode().as_slice(), bytes.as_slice());
        assert_eq!(header.size_bytes(), 112);
    }

    #[test]
    fn b_16_lengths_without_room_for_a_header_are_refused() {
        let mut bytes = [0; 61];
        bytes[16] = 2;
        for length in [i32::MIN, -1, 0, 13, 14, 48] {
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            assert_eq!(
                BatchHeader::parse(&bytes),
                Err(BatchError::BatchLength {
                    batch_length: length
                })
            );
        }
        bytes[8..12].copy_from_slice(&49_i32.to_be_bytes());
        assert!(BatchHeader::parse(&bytes).is_ok());
        assert_eq!(
            BatchHeader::parse(&bytes[..60]),
            Err(BatchError::Cut {
                have_bytes: 60,
                need_bytes: 61
            })
        );
    }
}
