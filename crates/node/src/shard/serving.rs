use std::sync::Arc;

use highwater_metadata::config::BrokerConfig;
use highwater_types::Millis;

/// Kafka's default of max.request.partition.size.limit.
const DESCRIBED_PARTITIONS_MAX: i32 = 2_000;

/// What reads, descriptions and forwarded requests need of the node's static config, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServingSettings {
    /// `cluster.id` of meta.properties.
    pub(crate) cluster_id: Arc<str>,
    /// The level of `kraft.version` that the metadata log is at.
    pub(crate) kraft_version: i16,
    /// The static config itself, for DescribeConfigs.
    pub(crate) broker_config: Arc<BrokerConfig>,
    /// `fetch.max.bytes`: records in one fetch answer.
    pub(crate) fetch_bytes_max: u64,
    /// `max.incremental.fetch.session.cache.slots`, over all shards.
    pub(crate) fetch_session_slots: usize,
    /// `max.incremental.fetch.session.partitions`, over all shards.
    pub(crate) fetch_partitions_max: usize,
    /// `auto.create.topics.enable`.
    pub(crate) auto_create_topics: bool,
    /// `transaction.max.timeout.ms`.
    pub(crate) transaction_timeout_max_ms: u64,
    /// Partitions in one DescribeTopicPartitions answer.
    pub(crate) described_partitions_max: i32,
    /// `request.timeout.ms`: how long a request to the controller may take.
    pub(crate) request_timeout: Millis,
}

impl ServingSettings {
    /// Reads what is needed.
    #[must_use]
    pub(crate) fn new(
        cluster_id: Arc<str>,
        kraft_version: i16,
        config: &Arc<BrokerConfig>,
    ) -> Self {
        let slots = config.count("max.incremental.fetch.session.cache.slots");
        let partitions = config.count("max.incremental.fetch.session.partitions");
        Self {
            cluster_id,
            kraft_version,
            broker_config: Arc::clone(config),
            fetch_bytes_max: config.count("fetch.max.bytes"),
            fetch_session_slots: usize::try_from(slots).unwrap_or(usize::MAX),
            fetch_partitions_max: usize::try_from(partitions).unwrap_or(usize::MAX),
            auto_create_topics: config.boolean("auto.create.topics.enable"),
            transaction_timeout_max_ms: config.count("transaction.max.timeout.ms"),
            described_partitions_max: DESCRIBED_PARTITIONS_MAX,
            request_timeout: Millis::new(config.count("request.timeout.ms")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_read_has_kafkas_default() {
        let settings = ServingSettings::new("".into(), 1, &Arc::default());
        assert_eq!(settings.fetch_bytes_max, 57_671_680);
        assert_eq!(settings.fetch_session_slots, 1_000);
        assert_eq!(settings.fetch_partitions_max, 100_000);
        assert!(settings.auto_create_topics);
        assert_eq!(settings.transaction_timeout_max_ms, 900_000);
        assert_eq!(settings.described_partitions_max, 2_000);
        assert_eq!(settings.request_timeout, Millis::new(30_000));
    }
}
