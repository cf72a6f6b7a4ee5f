//! The controller's decisions: an image and a request become records and an answer. Only replay of
//! the records changes the image.

mod alter_partition;
mod assign_dirs;
mod bootstrap;
mod controllers;
mod create_topics;
mod delete_topics;
mod elect;
mod elections;
mod heartbeat;
mod partition_change;
mod placement;
mod producer_ids;
mod registration;
mod sessions;

pub use alter_partition::{AlterPartition, AlteredPartition, IsrChange, PartitionState};
pub use assign_dirs::{AssignDirs, DIRECTORIES_SINCE};
pub use bootstrap::{bootstrap_records, voters_record};
pub use controllers::CONTROLLERS_SINCE;
pub use create_topics::{
    CreateTopic, CreateTopics, CreatedTopic, PARTITIONS_PER_REQUEST_MAX, TopicOutcome,
};
pub use delete_topics::{DeleteTopic, DeleteTopics, DeletedTopic};
pub use elect::{Forced, ForcedElection};
pub use heartbeat::{Heartbeat, HeartbeatAnswer};
pub use producer_ids::{AllocatedProducerIds, PRODUCER_IDS_PER_BLOCK};
pub use registration::Registration;
pub use sessions::BrokerSessions;

use std::sync::Arc;

use highwater_records::stored::MetadataRecord;
use highwater_types::{BrokerEpoch, ErrorCode, Millis, NodeId, Offset};

use crate::config::{BrokerConfig, ConfigLayers, TopicSettings};
use crate::image::{MetadataImage, ResourceKind};

/// What a decision brings: records to append, all in one batch, and the answer that may be given
/// once they are committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<A> {
    /// In the order in which they are to be replayed; may be empty.
    pub records: Vec<MetadataRecord>,
    /// What the asker is told.
    pub answer: A,
}

impl<A> Decision<A> {
    /// An answer that changes nothing.
    pub const fn answer(answer: A) -> Self {
        Self {
            records: Vec::new(),
            answer,
        }
    }
}

/// An error with its text, as answers carry both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: ErrorCode,
    /// The text; `None` leaves it to the asker.
    pub message: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
        }
    }
}

/// What decisions need beside the image. Owned by the one active controller.
///
/// Every decision is a function of the image with all records appended so far (committed or not),
/// the request, the time and random bytes.
#[derive(Clone, Debug)]
pub struct Controller {
    /// The cluster.
    pub cluster_id: Arc<str>,
    /// This node.
    pub node_id: NodeId,
    /// This node's static config: the defaults of new topics.
    pub config: Arc<BrokerConfig>,
    /// `broker.session.timeout.ms`.
    pub session_timeout: Millis,
    /// Whether an uncleanly stopped broker stays in its ISRs and ELRs, as before there were leader
    /// epochs. Only the simulator sets it, to show what comes of it.
    pub old_rule: bool,
    /// When each broker was last heard of. Not in the image: it starts anew with each controller.
    pub sessions: BrokerSessions,
}

impl Controller {
    /// A controller that has heard of nobody yet; see [`BrokerSessions::begin`].
    #[must_use]
    pub fn new(cluster_id: Arc<str>, node_id: NodeId, config: Arc<BrokerConfig>) -> Self {
        let session_timeout = Millis::new(config.count("broker.session.timeout.ms"));
        let sessions = BrokerSessions::default();
        Self {
            cluster_id,
            node_id,
            config,
            session_timeout,
            old_rule: false,
            sessions,
        }
    }

    /// The config layers below a topic's own configs, as this node has them.
    #[must_use]
    pub fn layers<'a>(&'a self, image: &'a MetadataImage) -> ConfigLayers<'a> {
        let dynamic = |name: &str| image.config(ResourceKind::Broker, name).map(AsRef::as_ref);
        ConfigLayers {
            dynamic_broker: dynamic(&self.node_id.to_string()),
            dynamic_default: dynamic(""),
            static_config: &self.config,
        }
    }

    /// The configs of a topic in force.
    #[must_use]
    pub fn topic_settings(&self, image: &MetadataImage, topic: &str) -> TopicSettings {
        let own = image.config(ResourceKind::Topic, topic).map(AsRef::as_ref);
        TopicSettings::resolve(self.layers(image), own)
    }

    /// Whether `epoch` is that of the registered broker `id`.
    ///
    /// # Errors
    /// STALE_BROKER_EPOCH (77), for an unknown broker too.
    fn check_broker_epoch(
        image: &MetadataImage,
        id: NodeId,
        epoch: BrokerEpoch,
    ) -> Result<(), ErrorCode> {
        let known = image.broker(id).is_some_and(|broker| broker.epoch == epoch);
        if known {
            Ok(())
        } else {
            Err(ErrorCode::STALE_BROKER_EPOCH)
        }
    }
}

/// Where the records of a decision will lie: the offset of the next record to be appended.
pub type NextOffset = Offset;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
pub(crate) mod testing;
