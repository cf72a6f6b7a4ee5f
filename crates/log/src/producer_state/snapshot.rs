//! The bytes of a producer snapshot (`<end offset, 20 digits>.snapshot`), all big-endian:
//! int16 version (1), uint32 CRC-32C of all that follows it, int32 count, then 46 bytes for each
//! producer: int64 id, int16 epoch, int32 last sequence, int64 last offset, int32 offset delta,
//! int64 timestamp, int32 coordinator epoch, int64 first offset of the open transaction.
//! Sequence, offset and transaction are -1 when there is none. Kafka's order of producers is that
//! of a hash map; ours is by id.

use highwater_types::{Offset, ProducerEpoch, ProducerId, WallMs};

use super::entry::{ProducerEntry, RememberedBatch};
use super::state::ProducerState;

const VERSION: i16 = 1;
/// Version and CRC.
const CHECKED_FROM: usize = 6;
const HEADER_BYTES: usize = 10;
const PRODUCER_BYTES: usize = 46;

/// Why bytes are not a producer snapshot. The remedy is an older snapshot, or a full scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Shorter than a header, or not as long as its count says.
    #[error("the file has {bytes} bytes, {expected} are expected")]
    Length {
        /// What it has.
        bytes: usize,
        /// What it should have.
        expected: usize,
    },
    /// A version that is not 1.
    #[error("the file has version {version}, 1 is expected")]
    Version {
        /// What it has.
        version: i16,
    },
    /// The checksum does not match.
    #[error("the file has checksum {stored:#010x}, its bytes have {computed:#010x}")]
    Crc {
        /// What the file says.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// A producer contradicts itself or the file's name.
    #[error("producer {index} of the file contradicts itself or the file's name")]
    Producer {
        /// Counted from 0.
        index: usize,
    },
}

impl ProducerState {
    /// The snapshot of this state; its file is named by [`ProducerState::end_offset`].
    #[must_use]
    pub fn encode_snapshot(&self) -> Vec<u8> {
        let count = i32::try_from(self.len()).expect("2^31 producers do not fit in memory");
        let mut body = Vec::with_capacity(4 + self.len() * PRODUCER_BYTES);
        body.extend(count.to_be_bytes());
        for entry in self.producers() {
            encode_producer(entry, &mut body);
        }
        let mut bytes = Vec::with_capacity(CHECKED_FROM + body.len());
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(crc32c::crc32c(&body).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    /// Reads the snapshot file that is named by `end_offset`.
    ///
    /// Producers that have expired since are kept: see [`ProducerState::remove_expired`].
    ///
    /// # Errors
    /// When the bytes are no such snapshot.
    pub fn decode_snapshot(bytes: &[u8], end_offset: Offset) -> Result<Self, SnapshotError> {
        let mut rest = Fields(bytes);
        let short = SnapshotError::Length {
            bytes: bytes.len(),
            expected: HEADER_BYTES,
        };
        let version = rest.take().map(i16::from_be_bytes).ok_or(short)?;
        if version != VERSION {
            return Err(SnapshotError::Version { version });
        }
        let stored = rest.take().map(u32::from_be_bytes).ok_or(short)?;
        let computed = crc32c::crc32c(rest.0);
        if stored != computed {
            return Err(SnapshotError::Crc { stored, computed });
        }
        let count = rest.take().map(i32::from_be_bytes).ok_or(short)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let expected = count.saturating_mul(PRODUCER_BYTES);
        if rest.0.len() != expected {
            let expected = expected.saturating_add(HEADER_BYTES);
            return Err(SnapshotError::Length {
                bytes: bytes.len(),
                expected,
            });
        }
        let mut state = Self::new(end_offset);
        for index in 0..count {
            let entry = decode_producer(&mut rest, end_offset);
            let entry = entry.filter(|it| state.has_room_for(it));
            state.restore(entry.ok_or(SnapshotError::Producer { index })?);
        }
        Ok(state)
    }
}

fn encode_producer(entry: &ProducerEntry, to: &mut Vec<u8>) {
    let newest = entry.newest_batch();
    to.extend(entry.producer_id.raw().to_be_bytes());
    to.extend(entry.epoch.raw().to_be_bytes());
    to.extend(entry.last_sequence().to_be_bytes());
    to.extend(
        newest
            .map_or(Offset::NONE, |it| it.last_offset)
            .raw()
            .to_be_bytes(),
    );
    to.extend(newest.map_or(0, |it| it.offset_delta).to_be_bytes());
    to.extend(entry.last_timestamp.raw().to_be_bytes());
    to.extend(entry.coordinator_epoch.to_be_bytes());
    to.extend(
        entry
            .transaction_first_offset
            .unwrap_or(Offset::NONE)
            .raw()
            .to_be_bytes(),
    );
}

/// `None` when the fields are not all there or contradict each other.
fn decode_producer(from: &mut Fields<'_>, end_offset: Offset) -> Option<ProducerEntry> {
    let producer_id = ProducerId::new(from.take().map(i64::from_be_bytes)?);
    let epoch = ProducerEpoch::new(from.take().map(i16::from_be_bytes)?);
    let last_sequence = from.take().map(i32::from_be_bytes)?;
    let last_offset = Offset::new(from.take().map(i64::from_be_bytes)?);
    let offset_delta = from.take().map(i32::from_be_bytes)?;
    let timestamp = WallMs::new(from.take().map(i64::from_be_bytes)?);
    let coordinator_epoch = from.take().map(i32::from_be_bytes)?;
    let first_offset = Offset::new(from.take().map(i64::from_be_bytes)?);
    let is_sound = producer_id.is_some()
        && offset_delta >= 0
        && last_offset < end_offset
        && first_offset < end_offset;
    let mut entry = ProducerEntry::new(producer_id, epoch);
    entry.coordinator_epoch = coordinator_epoch;
    entry.last_timestamp = timestamp;
    entry.transaction_first_offset = (first_offset >= Offset::ZERO).then_some(first_offset);
    if last_offset >= Offset::ZERO {
        entry.restore(RememberedBatch {
            last_sequence,
            last_offset,
            offset_delta,
            timestamp,
        });
    }
    is_sound.then_some(entry)
}

/// What is left to read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }
}
