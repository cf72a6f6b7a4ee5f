use highwater_disk::DiskError;
use highwater_records::BatchError;
use highwater_types::{ErrorCode, Offset};

use crate::producer_state::ProducerError;

/// Why a batch was not appended. Nothing of it is in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The producer's sequence or epoch does not fit: the client's fault.
    #[error(transparent)]
    Producer(#[from] ProducerError),
    /// The batch is larger than a whole segment may be.
    #[error("batch of {size_bytes} bytes is larger than segment.bytes {segment_bytes}")]
    LargerThanSegment {
        /// Bytes of the batch.
        size_bytes: u64,
        /// `segment.bytes`.
        segment_bytes: u32,
    },
    /// Replicated bytes are no whole batch or their CRC is wrong: the peer's or the network's
    /// fault.
    #[error("replicated batch: {0}")]
    Batch(#[from] BatchError),
    /// A replicated batch lies below the log end offset (KAFKA-14151): the peer's fault.
    #[error("batch at {base_offset} below the log end offset {log_end_offset}")]
    BelowEnd {
        /// First offset of the batch.
        base_offset: Offset,
        /// Where it would have to begin.
        log_end_offset: Offset,
    },
    /// The offset space of the log is used up.
    #[error("the offsets of the log are used up")]
    OffsetsUsedUp,
    /// The disk refused. The log is fenced until its tail is cut to the last good batch, which
    /// the next append tries first.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl AppendError {
    /// What a Produce request is answered.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::Producer(why) => why.error_code(),
            Self::LargerThanSegment { .. } => ErrorCode::RECORD_LIST_TOO_LARGE,
            Self::Batch(why) => why.error_code(),
            Self::BelowEnd { .. } => ErrorCode::UNKNOWN_SERVER_ERROR,
            Self::OffsetsUsedUp => ErrorCode::INVALID_RECORD,
            Self::Disk(_) => ErrorCode::KAFKA_STORAGE_ERROR,
        }
    }
}

/// Why nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The log does not hold the offset: the reader's fault.
    #[error("offset {offset} is outside [{log_start_offset}, {log_end_offset}]")]
    OutOfRange {
        /// What was asked for.
        offset: Offset,
        /// First readable offset.
        log_start_offset: Offset,
        /// Exclusive end; reading there is no error.
        log_end_offset: Offset,
    },
    /// The read starts in a damaged range.
    #[error("offset {offset} lies in the damaged range [{from}, {to})")]
    Damaged {
        /// What was asked for.
        offset: Offset,
        /// First offset of the damage.
        from: Offset,
        /// Exclusive end: reading goes on here.
        to: Offset,
    },
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl ReadError {
    /// What a Fetch or ListOffsets request is answered.
    #[must_use]
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            Self::OutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
            Self::Damaged { .. } => ErrorCode::CORRUPT_MESSAGE,
            Self::Disk(_) => ErrorCode::KAFKA_STORAGE_ERROR,
        }
    }
}
