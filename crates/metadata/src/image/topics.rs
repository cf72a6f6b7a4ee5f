use std::sync::Arc;

use highwater_types::{
    DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId, TopicName,
};

use crate::shared_map::SharedMap;

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicImage {
    /// Told apart from other topics of the same name before and after it.
    pub id: TopicId,
    /// Its name.
    pub name: TopicName,
    /// Its partitions by number.
    pub partitions: SharedMap<PartitionIndex, Arc<PartitionImage>>,
}

/// A partition as the controller knows it.
///
/// Invariant: the leader, when there is one, is in `in_sync_replicas`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionImage {
    /// Ordered; the first is the preferred leader.
    pub assigned_replicas: Vec<NodeId>,
    /// The log directory of each assigned replica, in the same order.
    pub directories: Vec<DirectoryId>,
    /// Caught up within the lag limit; a subset of the assigned ones.
    pub in_sync_replicas: Vec<NodeId>,
    /// Leave at the end of a reassignment.
    pub removing_replicas: Vec<NodeId>,
    /// Come in by a reassignment.
    pub adding_replicas: Vec<NodeId>,
    /// May lead without loss though outside the ISR (KIP-966).
    pub eligible_leader_replicas: Vec<NodeId>,
    /// Who led when the partition became leaderless (KIP-966).
    pub last_known_elr: Vec<NodeId>,
    /// [`NodeId::NONE`] when there is none.
    pub leader: NodeId,
    /// Elected from outside the ISR, and has not said yet that it recovered.
    pub recovering: bool,
    /// Grows whenever a change record names a leader.
    pub leader_epoch: LeaderEpoch,
    /// Grows with every change record.
    pub partition_epoch: PartitionEpoch,
}

impl PartitionImage {
    /// Whether there is a leader.
    #[must_use]
    pub const fn has_leader(&self) -> bool {
        self.leader.is_some()
    }

    /// The log directory of `replica`; unassigned when it is none of ours.
    #[must_use]
    pub fn directory(&self, replica: NodeId) -> DirectoryId {
        let at = self.assigned_replicas.iter().position(|it| *it == replica);
        at.and_then(|at| self.directories.get(at))
            .copied()
            .unwrap_or(DirectoryId::UNASSIGNED)
    }
}
