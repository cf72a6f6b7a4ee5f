//! What checkers, scenarios and clients may look at from outside.

use std::sync::Arc;

use highwater_disk::MemDisk;
use highwater_metadata::MetadataImage;
use highwater_metadata::image::PartitionImage;
use highwater_node::shard::partition::OnlinePartition;
use highwater_protocol::ListenerKind;
use highwater_types::{
    LeaderEpoch, NodeId, Offset, TopicId, TopicIdPartition, TopicName, TopicPartition, Uuid,
};

use super::World;

/// How far a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaOffsets {
    /// Its high watermark.
    pub(crate) high_watermark: Offset,
    /// Where its log ends.
    pub(crate) log_end_offset: Offset,
}

impl World {
    /// Whether the node said that it serves.
    pub(crate) fn serves(&self, id: NodeId) -> bool {
        self.listens(id, ListenerKind::Broker)
    }

    /// Whether a listener of the node is open.
    pub(crate) fn listens(&self, id: NodeId, listener: ListenerKind) -> bool {
        let process = self.process(id);
        process.is_some_and(|it| it.listens.contains(&listener))
    }

    /// Whether a node does all that it is for.
    pub(crate) fn is_up(&self, id: NodeId) -> bool {
        let roles = self.node(id).config.roles;
        (!roles.broker || self.serves(id))
            && (!roles.controller || self.listens(id, ListenerKind::Controller))
    }

    /// The nodes that are brokers, in order.
    pub(crate) fn brokers(&self) -> Vec<NodeId> {
        let nodes = self.nodes.iter();
        let brokers = nodes.filter(|(_, node)| node.config.roles.broker);
        brokers.map(|(id, _)| *id).collect()
    }

    /// The one voter.
    pub(crate) fn controller(&self) -> NodeId {
        let mut nodes = self.nodes.iter();
        let found = nodes.find(|(_, node)| node.config.roles.controller);
        *found.expect("a run has a controller").0
    }

    /// Whether the process runs.
    pub(crate) fn runs(&self, id: NodeId) -> bool {
        self.process(id).is_some()
    }

    /// What the controller has published; the newest of what the brokers have while it is down.
    pub(crate) fn image(&self) -> Option<&Arc<MetadataImage>> {
        let at = self.controller();
        let others = self.brokers();
        let mut running = std::iter::once(at)
            .chain(others)
            .filter_map(|id| self.process(id));
        running.next().map(|process| process.control.image())
    }

    /// A partition as the controller has it committed.
    pub(crate) fn committed(&self, partition: &TopicPartition) -> Option<&Arc<PartitionImage>> {
        let topic = self.image()?.topic_by_name(partition.topic.as_str())?;
        topic.partitions.get(&partition.partition)
    }

    /// Whether the controller has fenced a broker that it knows.
    pub(crate) fn is_fenced(&self, id: NodeId) -> Option<bool> {
        self.image()?.broker(id).map(|it| it.fenced)
    }

    /// The epoch of a broker's registration; -1 when it has none.
    pub(crate) fn broker_epoch(&self, id: NodeId) -> i64 {
        let broker = self.image().and_then(|image| image.broker(id));
        broker.map_or(-1, |it| it.epoch.raw())
    }

    /// The id of the newest topic of that name.
    pub(crate) fn topic_id(&self, topic: &TopicName) -> Option<Uuid> {
        let known = |client: &super::SimClient| client.topic_ids.get(topic).copied();
        self.clients.values().find_map(known)
    }

    /// The name of a topic that clients know.
    pub(super) fn topic_name(&self, id: Uuid) -> Option<&TopicName> {
        let mut ids = self.clients.values().flat_map(|it| &it.topic_ids);
        ids.find(|(_, it)| **it == id).map(|(name, _)| name)
    }

    /// A replica of a running node, once its log is open.
    pub(crate) fn online(
        &self,
        id: NodeId,
        partition: &TopicPartition,
    ) -> Option<&OnlinePartition<MemDisk>> {
        let shards = self.process(id)?.shards.iter();
        let mut partitions = shards.flat_map(|shard| shard.partitions().iter());
        let found = partitions.find(|it| it.name() == partition)?;
        found.online().ok()
    }

    /// The running replica that leads, by its own belief; of two the one of the newer epoch.
    pub(crate) fn leader_of(&self, partition: &TopicPartition) -> Option<NodeId> {
        let leaders = self.brokers().into_iter().filter_map(|id| {
            let replica = self.online(id, partition)?.replica();
            replica.is_leader().then_some((replica.leader_epoch(), id))
        });
        leaders.max().map(|(_, id)| id)
    }

    /// The leader epochs of what a running node leads of a topic.
    pub(crate) fn leader_epochs_of(&self, id: NodeId, topic: &str) -> Vec<LeaderEpoch> {
        let process = self.process(id);
        let shards = process.into_iter().flat_map(|it| &it.shards);
        let partitions = shards.flat_map(|shard| shard.partitions().iter());
        let partitions = partitions.filter(|it| it.name().topic.as_str() == topic);
        let replicas = partitions.filter_map(|it| Some(it.online().ok()?.replica()));
        let led = replicas.filter(|it| it.is_leader());
        led.map(|it| it.leader_epoch()).collect()
    }

    /// How far a replica of a running node is.
    pub(crate) fn offsets_of(
        &self,
        id: NodeId,
        partition: &TopicPartition,
    ) -> Option<ReplicaOffsets> {
        let online = self.online(id, partition)?;
        Some(ReplicaOffsets {
            high_watermark: online.replica().high_watermark(),
            log_end_offset: online.log().log_end_offset(),
        })
    }

    /// Whether every replica of a topic on a running broker is open, and each partition has a
    /// leader that leads.
    pub(crate) fn is_open(&self, topic: &TopicName) -> bool {
        let image = self.image();
        let Some(found) = image.and_then(|it| it.topic_by_name(topic.as_str())) else {
            return false;
        };
        found.partitions.iter().all(|(number, partition)| {
            let name = TopicPartition {
                topic: topic.clone(),
                partition: *number,
            };
            let leads = self.leader_of(&name) == Some(partition.leader);
            let mut assigned = partition.assigned_replicas.iter();
            let are_open = assigned.all(|id| !self.runs(*id) || self.online(*id, &name).is_some());
            leads && are_open
        })
    }

    /// I-26: why things have not come to rest; `None` when everything is as it should be.
    pub(crate) fn why_not_settled(&self) -> Option<String> {
        self.checker.why_not_settled()
    }

    /// A partition by id. Without a topic id, the newest topic of that name is meant.
    pub(crate) fn partition_id(
        &self,
        partition: &TopicPartition,
        topic_id: Uuid,
    ) -> Option<TopicIdPartition> {
        let topic_id = if topic_id.is_zero() {
            self.topic_id(&partition.topic)?
        } else {
            topic_id
        };
        Some(TopicIdPartition {
            topic_id: TopicId::new(topic_id),
            partition: partition.partition,
        })
    }

    /// The log start offset of a partition of a running node.
    pub(crate) fn log_start_of(&self, id: NodeId, partition: &TopicPartition) -> Option<Offset> {
        Some(self.online(id, partition)?.log().log_start_offset())
    }
}
