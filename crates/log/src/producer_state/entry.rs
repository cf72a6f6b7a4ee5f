use std::collections::VecDeque;

use highwater_types::{Offset, ProducerEpoch, ProducerId, WallMs};

use super::batch::{ProducerBatch, sequence_minus};

/// One producer as one log knows it.
///
/// Invariant: at most [`ProducerEntry::BATCHES_MAX`] batches, all of `epoch`, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its latest epoch.
    pub epoch: ProducerEpoch,
    /// The epoch of the coordinator that wrote its latest marker; -1 before the first one.
    pub coordinator_epoch: i32,
    /// When it last wrote, or a marker was written for it (KAFKA-9144).
    pub last_timestamp: WallMs,
    /// Where its open transaction begins, if it has one.
    pub transaction_first_offset: Option<Offset>,
    batches: VecDeque<RememberedBatch>,
    /// How many sequence numbers, up to the last one, are known to be in this log without a gap.
    /// Not in the snapshot: after a load only the newest batch is known.
    known_sequences: u32,
}

/// One batch that a retry may repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedBatch {
    /// The sequence of its last record.
    pub last_sequence: i32,
    /// The offset of its last record.
    pub last_offset: Offset,
    /// How far its first record is from its last.
    pub offset_delta: i32,
    /// Its largest timestamp.
    pub timestamp: WallMs,
}

impl RememberedBatch {
    /// The sequence of its first record.
    #[must_use]
    pub const fn first_sequence(&self) -> i32 {
        sequence_minus(self.last_sequence, self.offset_delta)
    }

    /// The offset of its first record.
    #[must_use]
    pub fn first_offset(&self) -> Offset {
        self.last_offset.plus(-i64::from(self.offset_delta))
    }
}

impl ProducerEntry {
    /// Batches that are remembered per producer: as many as a client may have in flight (KIP-98).
    pub const BATCHES_MAX: usize = 5;

    /// A producer of which nothing was written yet.
    pub(super) fn new(producer_id: ProducerId, epoch: ProducerEpoch) -> Self {
        Self {
            producer_id,
            epoch,
            coordinator_epoch: -1,
            last_timestamp: WallMs::NONE,
            transaction_first_offset: None,
            batches: VecDeque::new(),
            known_sequences: 0,
        }
    }

    /// The remembered batches, oldest first.
    pub fn batches(&self) -> impl DoubleEndedIterator<Item = &RememberedBatch> {
        self.batches.iter()
    }

    /// The newest batch; `None` when only a marker is left of this epoch.
    #[must_use]
    pub fn newest_batch(&self) -> Option<&RememberedBatch> {
        self.batches.back()
    }

    /// The sequence of the last record; -1 when only a marker is left of this epoch.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        self.newest_batch().map_or(-1, |batch| batch.last_sequence)
    }

    /// The remembered batch that `batch` repeats exactly.
    #[must_use]
    pub fn find(&self, batch: &ProducerBatch) -> Option<&RememberedBatch> {
        if batch.producer_epoch != self.epoch {
            return None;
        }
        self.batches.iter().find(|it| {
            it.first_sequence() == batch.base_sequence && it.last_sequence == batch.last_sequence()
        })
    }

    /// Whether every record of `batch` is known to be in the log, in batches older than those
    /// that are remembered.
    pub(super) fn is_older_than_remembered(&self, batch: &ProducerBatch) -> bool {
        let (Some(newest), Some(oldest)) = (self.batches.back(), self.batches.front()) else {
            return false;
        };
        if batch.producer_epoch != self.epoch || batch.base_sequence < 0 {
            return false;
        }
        let back = |sequence| sequence_minus(newest.last_sequence, sequence);
        let remembered = back(oldest.first_sequence());
        let (first, last) = (back(batch.base_sequence), back(batch.last_sequence()));
        let is_known = u32::try_from(first).is_ok_and(|first| first < self.known_sequences);
        remembered < last && last <= first && is_known
    }

    /// Takes in a data batch that is in the log.
    pub(super) fn add(&mut self, batch: &ProducerBatch) {
        let last_sequence = batch.last_sequence();
        let records = batch.last_offset_delta.unsigned_abs().saturating_add(1);
        let follows = sequence_minus(batch.base_sequence, 1) == self.last_sequence();
        self.enter(batch.producer_epoch);
        self.known_sequences = match self.batches.back() {
            Some(_) if follows => self.known_sequences.saturating_add(records),
            _ => records,
        };
        // Distances are counted modulo 2^31: beyond that they say nothing.
        self.known_sequences = self.known_sequences.min(1 << 31);
        if self.batches.len() == Self::BATCHES_MAX {
            self.batches.pop_front();
        }
        self.batches.push_back(RememberedBatch {
            last_sequence,
            last_offset: batch.last_offset(),
            offset_delta: batch.last_offset_delta,
            timestamp: batch.max_timestamp,
        });
        self.last_timestamp = batch.max_timestamp;
    }

    /// Takes in a marker that is in the log: its transaction is over. Batches of an older epoch
    /// are forgotten (a marker of transaction version 2 raises the epoch).
    pub(super) fn end_transaction(&mut self, batch: &ProducerBatch, coordinator_epoch: i32) {
        self.enter(batch.producer_epoch);
        self.coordinator_epoch = coordinator_epoch;
        self.transaction_first_offset = None;
        self.last_timestamp = batch.max_timestamp;
    }

    /// As a snapshot has it: one batch, or none.
    pub(super) fn restore(&mut self, batch: RememberedBatch) {
        self.known_sequences = batch.offset_delta.unsigned_abs().saturating_add(1);
        self.batches.push_back(batch);
    }

    fn enter(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
            self.known_sequences = 0;
        }
    }
}
