use highwater_types::{Millis, WallMs};

use crate::batch::{RecordErrorKind, TimestampType};
use crate::compression::{Compression, DECOMPRESSED_BYTES_MAX};

/// What a topic and a request demand of a produced batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationRules {
    /// The wall clock, which timestamps are judged by.
    pub now: WallMs,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how old a record may be.
    pub timestamp_before_max_ms: Millis,
    /// `message.timestamp.after.max.ms`: how far in the future it may be.
    pub timestamp_after_max_ms: Millis,
    /// `max.message.bytes`: bytes of the batch, compressed.
    pub max_message_bytes: usize,
    /// Bytes that the records may decompress to.
    pub decompressed_bytes_max: u64,
    /// Whether `cleanup.policy` has `compact`, so that records need keys.
    pub compacted: bool,
    /// Whether the request is new enough for zstd: Produce v7 (KIP-110).
    pub zstd_allowed: bool,
    /// `compression.type`; `None` stands for `producer`.
    pub compression: Option<Compression>,
}

impl Default for ValidationRules {
    /// A topic with Kafka's defaults and a request of today.
    fn default() -> Self {
        Self {
            now: WallMs::new(0),
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: Millis::new(i64::MAX.unsigned_abs()),
            timestamp_after_max_ms: Millis::new(3_600_000),
            max_message_bytes: 1_048_588,
            decompressed_bytes_max: DECOMPRESSED_BYTES_MAX,
            compacted: false,
            zstd_allowed: true,
            compression: None,
        }
    }
}

/// The timestamps that records may have; made once per batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimestampRule {
    earliest: WallMs,
    latest: WallMs,
    /// On a `LogAppendTime` topic no time is judged, but a producer must not set the bit itself.
    log_append_time: bool,
}

impl TimestampRule {
    pub(super) fn new(rules: &ValidationRules) -> Self {
        let now = rules.now.raw();
        let before = i64::try_from(rules.timestamp_before_max_ms.as_u64()).unwrap_or(i64::MAX);
        let after = i64::try_from(rules.timestamp_after_max_ms.as_u64()).unwrap_or(i64::MAX);
        Self {
            earliest: WallMs::new(now.saturating_sub(before)),
            latest: WallMs::new(now.saturating_add(after)),
            log_append_time: rules.timestamp_type == TimestampType::LogAppendTime,
        }
    }

    /// Kafka judges in this order: a record with a time on a `CreateTime` topic by that time; any
    /// other must not come with the log-append-time bit.
    #[inline]
    pub(super) fn judge(
        &self,
        timestamp: WallMs,
        batch_type: TimestampType,
    ) -> Option<RecordErrorKind> {
        if !self.log_append_time && timestamp != WallMs::NONE {
            if self.earliest <= timestamp && timestamp <= self.latest {
                return None;
            }
            let (earliest, latest) = (self.earliest, self.latest);
            return Some(RecordErrorKind::Timestamp {
                timestamp,
                earliest,
                latest,
            });
        }
        match batch_type {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(RecordErrorKind::LogAppendTimeByProducer),
        }
    }
}
