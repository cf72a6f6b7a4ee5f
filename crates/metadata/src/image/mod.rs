//! The state of the cluster as of one offset of the metadata log.

mod brokers;
mod configs;
mod features;
mod security;
mod topics;

pub use brokers::{BrokerEndpoint, BrokerImage, ControllerImage, FeatureRange};
pub use configs::{ConfigResource, ResourceKind};
pub use features::{
    ELIGIBLE_LEADER_REPLICAS_VERSION, FeatureLevels, GROUP_VERSION, KRAFT_VERSION,
    METADATA_VERSION, SHARE_VERSION, STREAMS_VERSION, SupportedFeature, TRANSACTION_VERSION,
    feature_range, supported_features,
};

pub use security::{QuotaEntity, SecurityImage};
pub use topics::{PartitionImage, TopicImage};

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_types::{
    DirectoryId, LeaderEpoch, NodeId, Offset, OffsetAndEpoch, PartitionIndex, TopicId,
    TopicIdPartition, TopicName, Uuid,
};

use crate::shared_map::SharedMap;

/// The whole state of the cluster as of one offset of the metadata log.
///
/// Cheap to clone: copies share everything that did not change between them.
///
/// Invariant: `topic_ids` and `topics` name the same topics.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataImage {
    /// The end of what this image contains: the offset after its last record, and that record's
    /// epoch.
    pub end: OffsetAndEpoch,
    /// Finalised feature levels.
    pub features: Arc<FeatureLevels>,
    /// Registered brokers, fenced ones too.
    pub brokers: Arc<BTreeMap<NodeId, Arc<BrokerImage>>>,
    /// Registered controllers.
    pub controllers: Arc<BTreeMap<NodeId, Arc<ControllerImage>>>,
    /// Topics by id.
    pub topics: SharedMap<TopicId, Arc<TopicImage>>,
    /// The id of each topic, by name.
    pub topic_ids: SharedMap<TopicName, TopicId>,
    /// Dynamic configs of topics, brokers, groups and client metrics.
    pub configs: SharedMap<ConfigResource, Arc<BTreeMap<String, String>>>,
    /// The first producer id that no block was handed out for yet.
    pub next_producer_id: i64,
    /// SCRAM credentials, ACLs, quotas and delegation tokens, kept for what is built later.
    pub security: Arc<SecurityImage>,
}

impl Default for MetadataImage {
    fn default() -> Self {
        Self {
            end: OffsetAndEpoch {
                epoch: LeaderEpoch::ZERO,
                offset: Offset::ZERO,
            },
            features: Arc::default(),
            brokers: Arc::default(),
            controllers: Arc::default(),
            topics: SharedMap::new(),
            topic_ids: SharedMap::new(),
            configs: SharedMap::new(),
            next_producer_id: 0,
            security: Arc::default(),
        }
    }
}

impl MetadataImage {
    /// A broker that is registered, fenced or not.
    #[must_use]
    pub fn broker(&self, id: NodeId) -> Option<&Arc<BrokerImage>> {
        self.brokers.get(&id)
    }

    /// A topic by id.
    #[must_use]
    pub fn topic(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.topics.get(&id)
    }

    /// A topic by name.
    #[must_use]
    pub fn topic_by_name(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.topic(*self.topic_ids.get(name)?)
    }

    /// A partition by topic id.
    #[must_use]
    pub fn partition(&self, at: TopicIdPartition) -> Option<&Arc<PartitionImage>> {
        self.topic(at.topic_id)?.partitions.get(&at.partition)
    }

    /// The dynamic configs of a resource; `None` when it has none.
    #[must_use]
    pub fn config(&self, kind: ResourceKind, name: &str) -> Option<&Arc<BTreeMap<String, String>>> {
        self.configs.get(&ConfigResource {
            kind,
            name: name.to_owned(),
        })
    }

    /// Every partition, by rising topic id and number.
    pub fn partitions(
        &self,
    ) -> impl Iterator<Item = (&Arc<TopicImage>, PartitionIndex, &Arc<PartitionImage>)> {
        self.topics.values().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(move |(index, partition)| (topic, *index, partition))
        })
    }

    /// Whether a broker may lead or be in an ISR at all: registered, not fenced, not on its way
    /// out.
    #[must_use]
    pub fn is_active(&self, id: NodeId) -> bool {
        self.broker(id)
            .is_some_and(|it| !it.fenced && !it.in_controlled_shutdown)
    }

    /// Whether a broker has `directory` online. The reserved "unassigned" counts as online: the
    /// broker has not said yet where the replica is (KIP-858).
    #[must_use]
    pub fn has_directory(&self, id: NodeId, directory: DirectoryId) -> bool {
        if directory == DirectoryId::UNASSIGNED || directory == DirectoryId::MIGRATING {
            return true;
        }
        self.broker(id)
            .is_some_and(|it| it.directories.contains(&directory))
    }

    /// The broker other than `except` that owns `directory`, if any.
    #[must_use]
    pub fn directory_owner(&self, directory: DirectoryId, except: NodeId) -> Option<NodeId> {
        let owns = |it: &&Arc<BrokerImage>| it.id != except && it.directories.contains(&directory);
        self.brokers.values().find(owns).map(|it| it.id)
    }

    /// The finalised metadata.version; zero before the bootstrap records.
    #[must_use]
    pub fn metadata_version(&self) -> i16 {
        self.features.level(METADATA_VERSION)
    }

    /// Whether eligible leader replicas are kept (KIP-966).
    #[must_use]
    pub fn elr_enabled(&self) -> bool {
        self.features.level(ELIGIBLE_LEADER_REPLICAS_VERSION) > 0
    }

    /// The incarnation of a registered broker.
    #[must_use]
    pub fn incarnation(&self, id: NodeId) -> Option<Uuid> {
        self.broker(id).map(|it| it.incarnation)
    }

    /// Asserts what the doc of this type promises.
    ///
    /// # Panics
    /// When replay has a bug.
    pub fn assert_invariants(&self) {
        assert_eq!(
            self.topics.len(),
            self.topic_ids.len(),
            "topics by id and by name are the same topics"
        );
    }
}
