use highwater_types::{ErrorCode, Offset, ProducerEpoch, ProducerId, WallMs};

use super::batch::{ProducerBatch, TransactionMarker, sequence_plus};
use super::entry::ProducerEntry;
use super::state::ProducerState;

/// Who wants a batch in the log; decides what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProducerOrigin {
    /// A Produce request: epoch, sequence and transaction state are checked.
    Client,
    /// A coordinator of this node, or WriteTxnMarkers: epochs are checked.
    Coordinator,
    /// A leader's batches on a follower, or the log itself in recovery: nothing is checked, the
    /// leader has.
    Replica,
}

/// What is to be done with a batch that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Append it.
    New,
    /// It is in the log already: answer with where, append nothing.
    Duplicate {
        /// The offset of its first record.
        first_offset: Offset,
        /// The offset of its last record.
        last_offset: Offset,
        /// Its largest timestamp; the append time in a log that stamps.
        timestamp: WallMs,
    },
}

/// Why a batch may not be appended: the producer's mistake, or that of a former self of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProducerError {
    /// A newer life of the producer has written already.
    #[error("producer {producer_id} is at epoch {current}, the batch is of {got}")]
    InvalidEpoch {
        /// The producer.
        producer_id: ProducerId,
        /// The epoch that the log knows.
        current: ProducerEpoch,
        /// The epoch of the batch.
        got: ProducerEpoch,
    },
    /// Not the sequence that comes next.
    #[error("producer {producer_id} is to go on with sequence {expected}, the batch has {got}")]
    OutOfOrder {
        /// The producer.
        producer_id: ProducerId,
        /// The sequence that comes next.
        expected: i32,
        /// The sequence of the batch.
        got: i32,
    },
    /// In the log already, but so long ago that its offset is forgotten.
    #[error("producer {producer_id} wrote sequence {got} already, its offset is forgotten")]
    Duplicate {
        /// The producer.
        producer_id: ProducerId,
        /// The sequence of the batch.
        got: i32,
    },
    /// Only a marker is left of this epoch, so that nobody knows which sequence comes next.
    #[error("no record of producer {producer_id} is left, the batch has sequence {got}")]
    UnknownProducer {
        /// The producer.
        producer_id: ProducerId,
        /// The sequence of the batch.
        got: i32,
    },
    /// Outside of a transaction, while one of the same producer is open.
    #[error("producer {producer_id} has a transaction open, the batch is not part of it")]
    InvalidTransactionState {
        /// The producer.
        producer_id: ProducerId,
    },
    /// A newer transaction coordinator has written a marker already.
    #[error("a marker of coordinator epoch {current} is in the log, this one is of {got}")]
    CoordinatorFenced {
        /// The coordinator epoch that the log knows.
        current: i32,
        /// That of the marker.
        got: i32,
    },
}

impl ProducerError {
    /// The wire's code for it.
    #[must_use]
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            Self::InvalidEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
            Self::OutOfOrder { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            Self::Duplicate { .. } => ErrorCode::DUPLICATE_SEQUENCE_NUMBER,
            Self::UnknownProducer { .. } => ErrorCode::UNKNOWN_PRODUCER_ID,
            Self::InvalidTransactionState { .. } => ErrorCode::INVALID_TXN_STATE,
            Self::CoordinatorFenced { .. } => ErrorCode::TRANSACTION_COORDINATOR_FENCED,
        }
    }
}

impl ProducerState {
    /// Whether a batch may be appended. Changes nothing: [`ProducerState::apply`] follows once the
    /// batch is in the log.
    ///
    /// A producer that the log does not know may start at any sequence (KIP-360). The offsets of
    /// the batch are not looked at.
    ///
    /// # Errors
    /// Says which rule the batch breaks; its [`ProducerError::error_code`] is the answer.
    pub fn check(
        &self,
        batch: &ProducerBatch,
        origin: ProducerOrigin,
    ) -> Result<Check, ProducerError> {
        if !batch.producer_id.is_some() || origin == ProducerOrigin::Replica {
            return Ok(Check::New);
        }
        let Some(entry) = self.producer(batch.producer_id) else {
            return Ok(Check::New);
        };
        match batch.marker {
            Some(marker) => check_marker(entry, batch, marker).map(|()| Check::New),
            None if batch.is_control => Ok(Check::New),
            None => check_data(entry, batch, origin),
        }
    }
}

fn check_data(
    entry: &ProducerEntry,
    batch: &ProducerBatch,
    origin: ProducerOrigin,
) -> Result<Check, ProducerError> {
    if origin == ProducerOrigin::Client
        && let Some(found) = entry.find(batch)
    {
        return Ok(Check::Duplicate {
            first_offset: found.first_offset(),
            last_offset: found.last_offset,
            timestamp: found.timestamp,
        });
    }
    check_epoch(entry, batch)?;
    if origin == ProducerOrigin::Client {
        check_sequence(entry, batch)?;
    }
    if entry.transaction_first_offset.is_some() && !batch.is_transactional {
        let producer_id = batch.producer_id;
        return Err(ProducerError::InvalidTransactionState { producer_id });
    }
    Ok(Check::New)
}

fn check_epoch(entry: &ProducerEntry, batch: &ProducerBatch) -> Result<(), ProducerError> {
    if batch.producer_epoch < entry.epoch {
        return Err(ProducerError::InvalidEpoch {
            producer_id: batch.producer_id,
            current: entry.epoch,
            got: batch.producer_epoch,
        });
    }
    Ok(())
}

fn check_sequence(entry: &ProducerEntry, batch: &ProducerBatch) -> Result<(), ProducerError> {
    let (producer_id, got) = (batch.producer_id, batch.base_sequence);
    if batch.producer_epoch != entry.epoch {
        // A new epoch begins at 0 (KAFKA-12152).
        let in_order = got == 0;
        let error = ProducerError::OutOfOrder {
            producer_id,
            expected: 0,
            got,
        };
        return if in_order { Ok(()) } else { Err(error) };
    }
    let Some(newest) = entry.newest_batch() else {
        let error = ProducerError::UnknownProducer { producer_id, got };
        return if got == 0 { Ok(()) } else { Err(error) };
    };
    let expected = sequence_plus(newest.last_sequence, 1);
    if got == expected {
        return Ok(());
    }
    if entry.is_older_than_remembered(batch) {
        return Err(ProducerError::Duplicate { producer_id, got });
    }
    Err(ProducerError::OutOfOrder {
        producer_id,
        expected,
        got,
    })
}

fn check_marker(
    entry: &ProducerEntry,
    batch: &ProducerBatch,
    marker: TransactionMarker,
) -> Result<(), ProducerError> {
    check_epoch(entry, batch)?;
    if marker.coordinator_epoch < entry.coordinator_epoch {
        return Err(ProducerError::CoordinatorFenced {
            current: entry.coordinator_epoch,
            got: marker.coordinator_epoch,
        });
    }
    Ok(())
}
