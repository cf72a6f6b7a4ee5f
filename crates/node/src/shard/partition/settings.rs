use highwater_log::LogConfig;
use highwater_metadata::config::{TimestampKind, TopicSettings};
use highwater_records::TimestampType;
use highwater_replication::{FlushPolicy, ReplicaConfig};
use highwater_types::Millis;

use super::super::ShardSettings;

/// What a topic's configs mean to its logs. `jitter` is this log's share of `segment.jitter.ms`.
pub(crate) fn log_config(
    topic: &TopicSettings,
    shard: &ShardSettings,
    jitter: Millis,
) -> LogConfig {
    LogConfig {
        segment_bytes: topic.segment_bytes,
        segment_ms: topic.segment_ms,
        segment_jitter_ms: jitter,
        index_interval_bytes: topic.index_interval_bytes,
        index_bytes_max: topic.segment_index_bytes,
        retention_ms: topic.retention_ms,
        retention_bytes: topic.retention_bytes,
        timestamp_type: timestamp_type(topic),
        timestamp_before_max_ms: topic.timestamp_before_max.as_u64(),
        timestamp_after_max_ms: topic.timestamp_after_max.as_u64(),
        max_message_bytes: topic.max_message_bytes,
        file_delete_delay_ms: topic.file_delete_delay,
        producer_id_expiration_ms: shard.producer_id_expiration,
        deletes: topic.delete,
        compacts: topic.compact,
        decompressed_bytes_max: shard.decompressed_batch_bytes_max,
    }
}

/// What a topic's configs mean to its replicas.
pub(crate) fn replica_config(topic: &TopicSettings, shard: &ShardSettings) -> ReplicaConfig {
    ReplicaConfig {
        min_in_sync_replicas: usize::try_from(topic.min_in_sync_replicas).unwrap_or(usize::MAX),
        flush: FlushPolicy {
            messages: topic.flush_messages.unwrap_or(u64::MAX),
            age: topic.flush_ms,
        },
        lag_max: shard.replica_lag_time_max,
        fetch_backoff: shard.replica_fetch_backoff,
        old_rule: shard.old_rule,
    }
}

/// Whose clock stamps the records of a topic.
pub(crate) const fn timestamp_type(topic: &TopicSettings) -> TimestampType {
    match topic.timestamp_kind {
        TimestampKind::CreateTime => TimestampType::CreateTime,
        TimestampKind::LogAppendTime => TimestampType::LogAppendTime,
    }
}
