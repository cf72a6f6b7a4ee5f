use highwater_types::{Offset, ProducerEpoch, ProducerId, WallMs};

/// What the producer state looks at in a batch: its header, and the marker if it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerBatch {
    /// [`ProducerId::NONE`] for a batch without a producer, which is then of no interest here.
    pub producer_id: ProducerId,
    /// The producer's epoch.
    pub producer_epoch: ProducerEpoch,
    /// The sequence of the first record; -1 in markers.
    pub base_sequence: i32,
    /// The offset of the first record, as the log has or will have it.
    pub base_offset: Offset,
    /// How far the last record is from the first, in offsets and in sequences.
    pub last_offset_delta: i32,
    /// The largest timestamp in the batch.
    pub max_timestamp: WallMs,
    /// Whether the batch is part of a transaction.
    pub is_transactional: bool,
    /// Whether the batch holds control records.
    pub is_control: bool,
    /// The transaction marker that a control batch holds. `None` in data batches, in control
    /// batches of the quorum, and in control batches that a cleaner has emptied.
    pub marker: Option<TransactionMarker>,
}

/// The end of a transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionMarker {
    /// How it ended.
    pub kind: MarkerKind,
    /// The epoch of the transaction coordinator that wrote it.
    pub coordinator_epoch: i32,
}

/// How a transaction ended. The numbers are the types of control records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerKind {
    /// Type 0: its records do not count.
    Abort,
    /// Type 1: its records count.
    Commit,
}

impl ProducerBatch {
    /// The offset of the last record.
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        self.base_offset.plus(i64::from(self.last_offset_delta))
    }

    /// The sequence of the last record; follows 2147483647 with 0.
    #[must_use]
    pub const fn last_sequence(&self) -> i32 {
        sequence_plus(self.base_sequence, self.last_offset_delta)
    }
}

/// The sequence `count` after `sequence`, which wraps from 2147483647 to 0. "No sequence" (-1)
/// stays what it is.
pub(super) const fn sequence_plus(sequence: i32, count: i32) -> i32 {
    if sequence < 0 {
        return sequence;
    }
    sequence.wrapping_add(count) & i32::MAX
}

/// The sequence `count` before `sequence`.
pub(super) const fn sequence_minus(sequence: i32, count: i32) -> i32 {
    if sequence < 0 {
        return sequence;
    }
    sequence.wrapping_sub(count) & i32::MAX
}
