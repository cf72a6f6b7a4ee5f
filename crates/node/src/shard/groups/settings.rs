use std::sync::Arc;

use highwater_coordinator::GroupSettings;
use highwater_metadata::config::BrokerConfig;
use highwater_records::Compression;
use highwater_types::Millis;

/// Bytes that are read and replayed in one go, whatever `offsets.load.buffer.size` allows: a
/// step is short.
const LOAD_BYTES_MAX: u64 = 256 << 10;
/// How many replicas `__consumer_offsets` gets when nobody says, if there are as many brokers.
const REPLICAS_WANTED: usize = 3;

/// What serving groups needs of the node's static config, read once.
#[derive(Clone, Debug)]
pub(super) struct GroupServing {
    /// What coordinators need.
    pub(super) coordinator: Arc<GroupSettings>,
    /// Bytes of a log that are loaded at once.
    pub(super) load_bytes: u64,
    /// `offsets.commit.timeout.ms`: how long an answer waits for the high watermark.
    pub(super) commit_timeout: Millis,
    /// `offsets.topic.compression.codec`: of the coordinator's batches.
    pub(super) compression: Compression,
    /// `offsets.topic.num.partitions`.
    pub(super) partitions: i32,
    /// `offsets.topic.segment.bytes`.
    pub(super) segment_bytes: u64,
    /// `offsets.topic.replication.factor`, if it was set.
    replication_factor: Option<i16>,
    /// `max.decompressed.batch.bytes`.
    pub(super) decompressed_batch_bytes_max: u64,
}

impl GroupServing {
    /// Reads what is needed.
    pub(super) fn new(config: &BrokerConfig) -> Self {
        let count = |name: &str| config.count(name);
        let millis = |name: &str| Millis::new(count(name));
        let size = |name: &str| usize::try_from(count(name)).unwrap_or(usize::MAX);
        let coordinator = GroupSettings {
            initial_rebalance_delay: millis("group.initial.rebalance.delay.ms"),
            session_timeout_min: millis("group.min.session.timeout.ms"),
            session_timeout_max: millis("group.max.session.timeout.ms"),
            members_max: size("group.max.size"),
            offset_metadata_bytes_max: size("offset.metadata.max.bytes"),
            offsets_retention: Millis::new(
                count("offsets.retention.minutes").saturating_mul(60_000),
            ),
            offsets_retention_check_interval: millis("offsets.retention.check.interval.ms"),
            ..GroupSettings::default()
        };
        let replication_factor = config
            .static_value("offsets.topic.replication.factor")
            .and_then(|it| it.parse().ok());
        let codec = u8::try_from(count("offsets.topic.compression.codec")).unwrap_or(0);
        Self {
            coordinator: Arc::new(coordinator),
            load_bytes: count("offsets.load.buffer.size").min(LOAD_BYTES_MAX),
            commit_timeout: millis("offsets.commit.timeout.ms"),
            compression: Compression::from_id(codec).unwrap_or(Compression::None),
            partitions: i32::try_from(count("offsets.topic.num.partitions")).unwrap_or(i32::MAX),
            segment_bytes: count("offsets.topic.segment.bytes"),
            replication_factor,
            decompressed_batch_bytes_max: count("max.decompressed.batch.bytes"),
        }
    }

    /// The replicas of a new `__consumer_offsets` among so many registered brokers. Kafka wants
    /// three also of a lone broker, which then never gets the topic unless somebody says otherwise.
    pub(super) fn replication_factor(&self, brokers: usize) -> i16 {
        let few = i16::try_from(brokers.clamp(1, REPLICAS_WANTED)).unwrap_or(1);
        self.replication_factor.unwrap_or(few)
    }
}

#[cfg(test)]
mod tests {
    use highwater_metadata::config::parse_properties;

    use super::*;

    fn settings(text: &str) -> GroupServing {
        let properties = parse_properties(text).expect("well formed");
        let (config, notices) = BrokerConfig::new(&properties).expect("values");
        assert_eq!(notices, [], "these keys take effect");
        GroupServing::new(&config)
    }

    #[test]
    fn every_key_that_is_read_has_kafkas_default() {
        let it = settings("");
        assert_eq!(*it.coordinator, GroupSettings::default());
        assert_eq!(it.commit_timeout, Millis::new(5_000));
        assert_eq!((it.partitions, it.segment_bytes), (50, 104_857_600));
        assert_eq!(it.compression, Compression::None);
        assert_eq!(it.load_bytes, LOAD_BYTES_MAX);
    }

    #[test]
    fn every_key_takes_effect() {
        let it = settings(
            "group.initial.rebalance.delay.ms=0\ngroup.min.session.timeout.ms=1\n\
             group.max.session.timeout.ms=2\ngroup.max.size=3\noffset.metadata.max.bytes=4\n\
             offsets.retention.minutes=5\noffsets.retention.check.interval.ms=6\n\
             offsets.commit.timeout.ms=7\noffsets.topic.num.partitions=8\n\
             offsets.topic.segment.bytes=9\noffsets.topic.compression.codec=4\n\
             offsets.load.buffer.size=10\n",
        );
        let expected = GroupSettings {
            initial_rebalance_delay: Millis::ZERO,
            session_timeout_min: Millis::new(1),
            session_timeout_max: Millis::new(2),
            members_max: 3,
            offset_metadata_bytes_max: 4,
            offsets_retention: Millis::new(300_000),
            offsets_retention_check_interval: Millis::new(6),
            ..GroupSettings::default()
        };
        assert_eq!(*it.coordinator, expected);
        assert_eq!(it.commit_timeout, Millis::new(7));
        assert_eq!((it.partitions, it.segment_bytes), (8, 9));
        assert_eq!(it.compression, Compression::Zstd);
        assert_eq!(it.load_bytes, 10);
    }

    #[test]
    fn unset_replicas_are_three_or_as_many_as_there_are_brokers() {
        let unset = settings("");
        let factors = [0, 1, 2, 3, 4].map(|brokers| unset.replication_factor(brokers));
        assert_eq!(factors, [1, 1, 2, 3, 3]);
        let set = settings("offsets.topic.replication.factor=2");
        assert_eq!(set.replication_factor(1), 2);
    }
}
