use super::BatchError;
use crate::compression::Compression;

/// What a record's timestamp means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// Set by the producer.
    #[default]
    CreateTime,
    /// Set by the leader at the append: every record has the batch's maximum timestamp.
    LogAppendTime,
}

impl TimestampType {
    /// The name in `message.timestamp.type` and in Kafka's dump.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }
}

/// The 16 attribute bits of a batch: codec (0-2), timestamp type (3), transactional (4), control
/// (5), delete horizon (6). Higher bits are kept as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes(u16);

const CODEC_MASK: u16 = 0b111;
const LOG_APPEND_TIME: u16 = 1 << 3;
const TRANSACTIONAL: u16 = 1 << 4;
const CONTROL: u16 = 1 << 5;
const DELETE_HORIZON: u16 = 1 << 6;

impl Attributes {
    /// Wraps the bits as they are in the batch.
    #[must_use]
    pub const fn new(raw: u16) -> Self {
        Self(raw)
    }

    /// The bits as they are in the batch.
    #[must_use]
    pub const fn raw(self) -> u16 {
        self.0
    }

    /// The codec.
    ///
    /// # Errors
    /// [`BatchError::UnknownCodec`] for the ids 5 to 7.
    pub fn compression(self) -> Result<Compression, BatchError> {
        let id = (self.0 & CODEC_MASK) as u8;
        Compression::from_id(id).ok_or(BatchError::UnknownCodec { id })
    }

    /// Whether the records are compressed, be it by a codec that this build does not know.
    #[must_use]
    pub const fn is_compressed(self) -> bool {
        self.0 & CODEC_MASK != 0
    }

    /// What the records' timestamps mean.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch is part of a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & TRANSACTIONAL != 0
    }

    /// Whether the records are for the log itself: transaction markers or quorum records.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & CONTROL != 0
    }

    /// Whether the base timestamp field holds a delete horizon instead (KIP-534).
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & DELETE_HORIZON != 0
    }

    /// These bits with another codec.
    #[must_use]
    pub const fn with_compression(self, codec: Compression) -> Self {
        Self(self.0 & !CODEC_MASK | codec.id() as u16)
    }

    /// These bits with another timestamp type.
    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        self.with(
            LOG_APPEND_TIME,
            matches!(timestamp_type, TimestampType::LogAppendTime),
        )
    }

    /// These bits with the transactional bit set or cleared.
    #[must_use]
    pub const fn with_transactional(self, on: bool) -> Self {
        self.with(TRANSACTIONAL, on)
    }

    /// These bits with the control bit set or cleared.
    #[must_use]
    pub const fn with_control(self, on: bool) -> Self {
        self.with(CONTROL, on)
    }

    /// These bits with the delete horizon bit set or cleared.
    #[must_use]
    pub const fn with_delete_horizon(self, on: bool) -> Self {
        self.with(DELETE_HORIZON, on)
    }

    const fn with(self, bit: u16, on: bool) -> Self {
        if on {
            Self(self.0 | bit)
        } else {
            Self(self.0 & !bit)
        }
    }
}
