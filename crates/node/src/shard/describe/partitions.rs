//! What Metadata and DescribeTopicPartitions say of one partition.

use highwater_metadata::MetadataImage;
use highwater_metadata::image::{BrokerImage, PartitionImage};
use highwater_types::{ErrorCode, NodeId};

use super::DescribeContext;

/// Kafka's own topics.
const INTERNAL_TOPICS: [&str; 3] = [
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
];

/// Whether a topic is one of Kafka's own.
pub(crate) fn is_internal(topic: &str) -> bool {
    INTERNAL_TOPICS.contains(&topic)
}

/// What a client is told of a partition's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaderView {
    /// LEADER_NOT_AVAILABLE, or LISTENER_NOT_FOUND when the leader lives but not on the caller's
    /// listener.
    pub(crate) error: ErrorCode,
    /// None together with an error.
    pub(crate) leader: NodeId,
}

impl DescribeContext<'_> {
    /// The leader as the caller's listener can reach it. `listener_errors`: whether the version
    /// knows LISTENER_NOT_FOUND (Metadata v6).
    pub(crate) fn leader_view(
        &self,
        partition: &PartitionImage,
        listener_errors: bool,
    ) -> LeaderView {
        let leader = partition.leader;
        if self.is_reachable(leader) {
            return LeaderView {
                error: ErrorCode::NONE,
                leader,
            };
        }
        let registered = self.image.broker(leader).is_some();
        let error = if registered && listener_errors {
            ErrorCode::LISTENER_NOT_FOUND
        } else {
            ErrorCode::LEADER_NOT_AVAILABLE
        };
        LeaderView {
            error,
            leader: NodeId::NONE,
        }
    }

    /// Whether a broker lives and announces the caller's listener.
    pub(crate) fn is_reachable(&self, broker: NodeId) -> bool {
        let broker = self.image.broker(broker);
        broker.is_some_and(|it| !it.fenced && it.endpoint(self.listener_name()).is_some())
    }

    /// The replicas that cannot serve: their broker is not reachable, or their directory is
    /// offline.
    pub(crate) fn offline_replicas(&self, partition: &PartitionImage) -> Vec<NodeId> {
        let offline = |replica: &NodeId| {
            let directory = partition.directory(*replica);
            !self.is_reachable(*replica) || !self.image.has_directory(*replica, directory)
        };
        partition
            .assigned_replicas
            .iter()
            .copied()
            .filter(offline)
            .collect()
    }
}

/// The brokers that live and announce a listener, by rising id.
pub(crate) fn live_brokers<'a>(
    image: &'a MetadataImage,
    listener_name: &'a str,
) -> impl Iterator<Item = LiveBroker<'a>> {
    image
        .brokers
        .values()
        .filter(|it| !it.fenced)
        .filter_map(move |broker| told(broker, listener_name))
}

/// The brokers that a client of `own` is told of: those that live, and never none. A client that
/// is told of no broker forgets every address that it knew (librdkafka, without
/// `metadata.recovery.strategy`), so when all are fenced, as while a lone node stops, the one
/// that answers names itself.
pub(crate) fn listed_brokers<'a>(
    image: &'a MetadataImage,
    listener_name: &'a str,
    own: NodeId,
) -> Vec<LiveBroker<'a>> {
    let mut brokers: Vec<_> = live_brokers(image, listener_name).collect();
    if brokers.is_empty() {
        let own = image.broker(own);
        brokers.extend(own.and_then(|broker| told(broker, listener_name)));
    }
    brokers
}

fn told<'a>(broker: &'a BrokerImage, listener_name: &str) -> Option<LiveBroker<'a>> {
    let endpoint = broker.endpoint(listener_name)?;
    Some(LiveBroker {
        id: broker.id,
        host: &endpoint.host,
        port: endpoint.port,
        rack: broker.rack.as_deref(),
    })
}

/// A broker as a client is told it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveBroker<'a> {
    pub(crate) id: NodeId,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) rack: Option<&'a str>,
}
