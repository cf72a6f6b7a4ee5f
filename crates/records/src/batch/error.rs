use std::fmt;

use highwater_types::{ErrorCode, Offset, ProducerEpoch, ProducerId, WallMs};

use crate::compression::{Compression, DecompressError};

/// What is wrong with a batch. Always the fault of whoever sent or stored it.
///
/// [`BatchError::error_code`] is the one place that says what a Produce request is answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end before the batch does.
    #[error("batch is cut: {have_bytes} of {need_bytes} bytes")]
    Cut {
        /// Bytes that are there.
        have_bytes: usize,
        /// Bytes that the batch, or its header, should have.
        need_bytes: usize,
    },
    /// The length has no room for a header.
    #[error("batch length {batch_length} is too small")]
    BatchLength {
        /// The length field.
        batch_length: i32,
    },
    /// A format of the future, or no batch at all.
    #[error("unknown magic {magic}")]
    UnknownMagic {
        /// The magic byte.
        magic: i8,
    },
    /// A message set of format 0 or 1, which Kafka 4 no longer takes.
    #[error("magic {magic} is no longer supported")]
    OldMagic {
        /// The magic byte.
        magic: i8,
    },
    /// The checksum does not match the bytes.
    #[error("stored crc {stored:#010x} is not the computed crc {computed:#010x}")]
    Crc {
        /// The field in the header.
        stored: u32,
        /// CRC-32C of the bytes.
        computed: u32,
    },
    /// A codec id that Kafka has not given out.
    #[error("unknown codec {id}")]
    UnknownCodec {
        /// Bits 0 to 2 of the attributes, 5 to 7.
        id: u8,
    },
    /// Zstd from a request version that is too old for it (KIP-110).
    #[error("zstd needs a newer version of the request")]
    ZstdNotAllowed,
    /// A partition's records hold no batch.
    #[error("no batch")]
    NoBatch,
    /// A partition's records hold more than one batch.
    #[error("more than one batch: {extra_bytes} bytes after the first")]
    MoreThanOneBatch {
        /// Bytes after the first batch.
        extra_bytes: usize,
    },
    /// A client numbers its batch from somewhere else than 0.
    #[error("base offset {base_offset} is not 0")]
    BaseOffset {
        /// The field in the header.
        base_offset: Offset,
    },
    /// Record count and last offset delta do not fit together, or there is no record.
    #[error("record count {record_count} does not fit last offset delta {last_offset_delta}")]
    RecordCount {
        /// The field in the header.
        record_count: i32,
        /// The field in the header.
        last_offset_delta: i32,
    },
    /// Clients must not write control batches (KIP-98).
    #[error("control batch from a client")]
    ControlBatch,
    /// A producer id without a sequence.
    #[error("producer {producer_id} without a sequence: {base_sequence}")]
    Sequence {
        /// The field in the header.
        producer_id: ProducerId,
        /// The field in the header.
        base_sequence: i32,
    },
    /// A producer id without an epoch.
    #[error("producer {producer_id} without an epoch: {producer_epoch}")]
    ProducerEpoch {
        /// The field in the header.
        producer_id: ProducerId,
        /// The field in the header.
        producer_epoch: ProducerEpoch,
    },
    /// The transactional bit without a producer id.
    #[error("transactional batch without a producer id")]
    TransactionalWithoutProducer,
    /// The batch is longer than `max.message.bytes`.
    #[error("batch of {size_bytes} bytes is larger than {max_bytes}")]
    TooLarge {
        /// Bytes of the batch.
        size_bytes: usize,
        /// The topic's limit.
        max_bytes: usize,
    },
    /// The records decompress to more than allowed.
    #[error("records decompress to more than {limit_bytes} bytes")]
    DecompressedTooLarge {
        /// The bound.
        limit_bytes: u64,
    },
    /// The compressed block is damaged.
    #[error("{codec} data is damaged: {detail}")]
    Decompress {
        /// The batch's codec.
        codec: Compression,
        /// What the codec found.
        detail: String,
    },
    /// A record's structure is wrong.
    #[error("record {index}: {what}")]
    Record {
        /// Position of the record in the batch, from 0.
        index: i32,
        /// What is wrong.
        what: &'static str,
    },
    /// Bytes are left after the last record.
    #[error("bytes are left after record {record_count} of {record_count}")]
    BytesAfterRecords {
        /// The field in the header.
        record_count: i32,
    },
    /// Whole records that the topic's rules refuse, each with its reason (KIP-467).
    #[error("{0}")]
    Rules(RecordErrors),
}

impl BatchError {
    /// What a Produce request with this batch is answered, as Kafka 4.4 does it
    /// (`fixtures/wire/00-Produce-cases`). One listed difference: Kafka answers an unknown codec
    /// with `UNKNOWN_SERVER_ERROR`.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::BatchLength { .. }
            | Self::UnknownMagic { .. }
            | Self::Crc { .. }
            | Self::Decompress { .. } => ErrorCode::CORRUPT_MESSAGE,
            Self::UnknownCodec { .. } | Self::ZstdNotAllowed => {
                ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
            }
            Self::TooLarge { .. } | Self::DecompressedTooLarge { .. } => {
                ErrorCode::MESSAGE_TOO_LARGE
            }
            Self::ProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
            Self::Rules(errors) => errors.error_code(),
            Self::Cut { .. }
            | Self::OldMagic { .. }
            | Self::NoBatch
            | Self::MoreThanOneBatch { .. }
            | Self::BaseOffset { .. }
            | Self::RecordCount { .. }
            | Self::ControlBatch
            | Self::Sequence { .. }
            | Self::TransactionalWithoutProducer
            | Self::Record { .. }
            | Self::BytesAfterRecords { .. } => ErrorCode::INVALID_RECORD,
        }
    }

    /// The records that are to blame, for `RecordErrors` of Produce v8 and later.
    #[must_use]
    pub fn record_errors(&self) -> &[RecordError] {
        match self {
            Self::Rules(errors) => &errors.first,
            _ => &[],
        }
    }
}

impl From<DecompressError> for BatchError {
    fn from(why: DecompressError) -> Self {
        match why {
            DecompressError::Damaged { codec, detail } => Self::Decompress { codec, detail },
            DecompressError::TooLarge { limit_bytes } => Self::DecompressedTooLarge { limit_bytes },
        }
    }
}

/// The records of a batch that the topic's rules refuse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordErrors {
    /// The first of them, at most [`RecordErrors::KEPT_MAX`].
    pub first: Vec<RecordError>,
    /// How many there are in all.
    pub count: u32,
}

impl RecordErrors {
    /// How many are kept and sent back; a batch of millions of bad records costs no more.
    pub const KEPT_MAX: usize = 1000;

    pub(crate) fn push(&mut self, batch_index: i32, kind: RecordErrorKind) {
        self.count += 1;
        if self.first.len() < Self::KEPT_MAX {
            self.first.push(RecordError { batch_index, kind });
        }
    }

    /// The code of the whole partition: that of the first record at fault.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self.first.first().map(|error| error.kind) {
            Some(RecordErrorKind::Timestamp { .. } | RecordErrorKind::LogAppendTimeByProducer) => {
                ErrorCode::INVALID_TIMESTAMP
            }
            _ => ErrorCode::INVALID_RECORD,
        }
    }
}

impl fmt::Display for RecordErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record(s) refused", self.count)?;
        for error in self.first.iter().take(3) {
            write!(f, "; record {}: {}", error.batch_index, error.kind)?;
        }
        Ok(())
    }
}

/// One record that the topic's rules refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Position of the record in its batch, from 0.
    pub batch_index: i32,
    /// Why; its `Display` is the message for the client.
    pub kind: RecordErrorKind,
}

/// Why a record is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordErrorKind {
    /// A record without a key for a compacted topic.
    #[error("a compacted topic needs a key")]
    NoKey,
    /// Outside `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` (KIP-937).
    #[error("timestamp {timestamp} is outside [{earliest}, {latest}]")]
    Timestamp {
        /// The record's timestamp.
        timestamp: WallMs,
        /// Inclusive.
        earliest: WallMs,
        /// Inclusive.
        latest: WallMs,
    },
    /// The producer set the log-append-time bit on a topic where that bit is the broker's.
    #[error("a producer must not set the log-append-time bit")]
    LogAppendTimeByProducer,
    /// Offset deltas must be 0, 1, 2, ...
    #[error("offset delta {found} where {expected} belongs")]
    OffsetDelta {
        /// The position of the record.
        expected: i32,
        /// What it says.
        found: i32,
    },
}
