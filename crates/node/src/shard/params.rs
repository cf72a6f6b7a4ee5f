use std::path::PathBuf;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::config::BrokerConfig;
use highwater_types::{
    DirectoryId, Millis, NodeId, Offset, TopicId, TopicIdPartition, TopicPartition,
};

/// What a shard is built from.
#[derive(Debug)]
pub struct ShardParams<D: Disk> {
    /// The shard's number, below `shards`.
    pub number: u16,
    /// How many shards the node has: at least 1.
    pub shards: u16,
    /// The node.
    pub node_id: NodeId,
    /// `cluster.id` of meta.properties.
    pub cluster_id: Arc<str>,
    /// The level of `kraft.version` that the metadata log is at.
    pub kraft_version: i16,
    /// The node's static config.
    pub broker_config: Arc<BrokerConfig>,
    /// Whether `Level::Trace` events are pushed: for the simulator.
    pub trace: bool,
    /// Whether followers cut by the rule from before leader epochs: for the simulator.
    pub old_rule: bool,
    /// Every log directory, in the order of `LogDirNumber`.
    pub dirs: Vec<ShardDir<D>>,
    /// Seeds the shard's own random source; different for each shard and start.
    pub seed: [u8; 32],
}

/// One log directory as a shard sees it at the start.
#[derive(Debug)]
pub struct ShardDir<D: Disk> {
    /// The files.
    pub disk: D,
    /// Its id of meta.properties.
    pub id: DirectoryId,
    /// Whether the clean-shutdown marker was there.
    pub clean_shutdown: bool,
    /// The logs in it. Every shard is told of all, for only the metadata says whose a stray is.
    pub found: Vec<FoundLog>,
    /// Directories of deleted logs (`..-delete`) that the last run did not get to remove. Each is
    /// given to one shard only.
    pub leftovers: Vec<PathBuf>,
}

/// A log that was found in a directory at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLog {
    /// The name of its directory, `<topic>-<partition>`.
    pub topic_partition: TopicPartition,
    /// Whose it is.
    pub topic: FoundTopic,
    /// Its line in recovery-point-offset-checkpoint, if any.
    pub recovery_point: Option<Offset>,
    /// Its line in replication-offset-checkpoint, if any.
    pub high_watermark: Option<Offset>,
    /// Its line in log-start-offset-checkpoint, if any.
    pub log_start_offset: Option<Offset>,
    /// It has a line in cleaner-offset-checkpoint: it was compacted at some time.
    pub was_cleaned: bool,
}

/// What a log's partition.metadata says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundTopic {
    /// The topic that it belongs to.
    Known(TopicId),
    /// The file is missing or says nothing that is understood.
    Unknown,
    /// The disk did not give the file, and said this.
    Unreadable(String),
    /// There is no such log: only checkpoint files have lines of it.
    Missing,
}

impl FoundTopic {
    /// The topic, when it is known.
    #[must_use]
    pub const fn id(&self) -> Option<TopicId> {
        match self {
            Self::Known(id) => Some(*id),
            Self::Unknown | Self::Unreadable(_) | Self::Missing => None,
        }
    }
}

/// What a shard takes from the node's static config, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// Whether `Level::Trace` events are pushed.
    pub trace: bool,
    /// Whether followers cut by the rule from before leader epochs.
    pub old_rule: bool,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval: Millis,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_checkpoint_interval: Millis,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub recovery_point_checkpoint_interval: Millis,
    /// `log.flush.start.offset.checkpoint.interval.ms`.
    pub log_start_checkpoint_interval: Millis,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration: Millis,
    /// `producer.id.expiration.check.interval.ms`.
    pub producer_id_check_interval: Millis,
    /// `num.recovery.threads.per.data.dir`: logs of this shard opened at once in one directory.
    pub recovery_jobs_per_dir_max: usize,
    /// `replica.lag.time.max.ms`.
    pub replica_lag_time_max: Millis,
    /// `replica.fetch.backoff.ms`.
    pub replica_fetch_backoff: Millis,
    /// `max.decompressed.batch.bytes`: what the records of one batch may decompress to.
    pub decompressed_batch_bytes_max: u64,
}

impl ShardSettings {
    /// Reads what a shard needs.
    #[must_use]
    pub fn new(config: &BrokerConfig, trace: bool, old_rule: bool) -> Self {
        let millis = |name: &str| Millis::new(config.count(name));
        Self {
            trace,
            old_rule,
            retention_check_interval: millis("log.retention.check.interval.ms"),
            high_watermark_checkpoint_interval: millis(
                "replica.high.watermark.checkpoint.interval.ms",
            ),
            recovery_point_checkpoint_interval: millis("log.flush.offset.checkpoint.interval.ms"),
            log_start_checkpoint_interval: millis("log.flush.start.offset.checkpoint.interval.ms"),
            producer_id_expiration: millis("producer.id.expiration.ms"),
            producer_id_check_interval: millis("producer.id.expiration.check.interval.ms"),
            recovery_jobs_per_dir_max: usize::try_from(
                config.count("num.recovery.threads.per.data.dir").max(1),
            )
            .unwrap_or(1),
            replica_lag_time_max: millis("replica.lag.time.max.ms"),
            replica_fetch_backoff: millis("replica.fetch.backoff.ms"),
            decompressed_batch_bytes_max: config.count("max.decompressed.batch.bytes"),
        }
    }
}

/// The shard that owns a partition: a fixed hash of topic id and partition, modulo `shards`.
///
/// The hash is FNV-1a over the id's 16 bytes and the partition's 4 (big-endian). It is no part of
/// any stored format: a node may start with another number of shards.
#[must_use]
pub fn owner_shard(partition: TopicIdPartition, shards: u16) -> u16 {
    let id = partition.topic_id.uuid().to_bytes();
    let number = partition.partition.raw().to_be_bytes();
    let hash = id
        .iter()
        .chain(&number)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    // The low bits of FNV-1a are weak; fold the high half in.
    let owner = (hash ^ (hash >> 32)) % u64::from(shards.max(1));
    u16::try_from(owner).expect("a remainder of a u16")
}

#[cfg(test)]
mod tests {
    use highwater_types::{PartitionIndex, Uuid};

    use super::*;

    #[test]
    fn partitions_spread_over_the_shards() {
        let mut owned = [0_u32; 3];
        for number in 0..300 {
            let topic_id = TopicId::new(Uuid::from_u128(1 << 100));
            let id = TopicIdPartition {
                topic_id,
                partition: PartitionIndex::new(number),
            };
            assert_eq!(owner_shard(id, 1), 0);
            owned[usize::from(owner_shard(id, 3))] += 1;
        }
        assert!(
            owned.iter().all(|count| (60..140).contains(count)),
            "{owned:?}"
        );
    }

    #[test]
    fn every_key_that_a_shard_reads_has_a_default() {
        let settings = ShardSettings::new(&BrokerConfig::default(), false, false);
        assert_eq!(
            settings.high_watermark_checkpoint_interval,
            Millis::new(5000)
        );
        assert_eq!(settings.retention_check_interval, Millis::new(300_000));
        assert_eq!(settings.decompressed_batch_bytes_max, 256 << 20);
    }
}
