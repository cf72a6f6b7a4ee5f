//! What checkers, scenarios and clients may look at from outside.

use highwater_types::{NodeId, Offset, TopicId, TopicIdPartition, TopicPartition, Uuid};

use super::World;

impl World {
    /// Whether the node said that it serves.
    pub(crate) fn serves(&self, id: NodeId) -> bool {
        self.process(id).is_some_and(|it| it.serving)
    }

    /// Whether the process runs.
    pub(crate) fn runs(&self, id: NodeId) -> bool {
        self.process(id).is_some()
    }

    /// A partition by id. Without a topic id, the newest topic of that name is meant.
    pub(crate) fn partition_id(
        &self,
        partition: &TopicPartition,
        topic_id: Uuid,
    ) -> Option<TopicIdPartition> {
        if !topic_id.is_zero() {
            let topic_id = TopicId::new(topic_id);
            return Some(TopicIdPartition {
                topic_id,
                partition: partition.partition,
            });
        }
        let known = |client: &super::SimClient| client.topic_ids.get(&partition.topic).copied();
        let topic_id = TopicId::new(self.clients.values().find_map(known)?);
        Some(TopicIdPartition {
            topic_id,
            partition: partition.partition,
        })
    }

    /// The log start offset of a partition of a running node.
    pub(crate) fn log_start_of(&self, id: NodeId, partition: &TopicPartition) -> Option<Offset> {
        let shards = self.process(id)?.shards.iter();
        let mut partitions = shards.flat_map(|shard| shard.partitions().iter());
        let found = partitions.find(|it| it.name() == partition)?;
        Some(found.online().ok()?.log().log_start_offset())
    }
}
