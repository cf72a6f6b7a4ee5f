use std::collections::BTreeMap;

use highwater_types::{BrokerEpoch, LeaderEpoch, Mono, NodeId, Offset};

/// What a replica is at the moment.
///
/// Legal transitions, each by metadata with a newer partition epoch: `None -> Leader | Follower`,
/// `Leader -> Leader` (same epoch: refresh; newer epoch: begins anew), `Leader -> Follower`,
/// `Follower -> Leader | Follower`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// No metadata was applied yet.
    None,
    /// It leads.
    Leader(Leader),
    /// It follows, or waits for a leader.
    Follower(Follower),
}

/// The state of a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The epoch that it leads in.
    pub epoch: LeaderEpoch,
    /// The log end offset when the epoch began. Kept while the epoch stays (KAFKA-13790).
    pub epoch_start_offset: Offset,
    /// In the order of the assignment; the first is the preferred leader.
    pub assigned_replicas: Vec<NodeId>,
    /// As the controller committed it.
    pub in_sync_replicas: Vec<NodeId>,
    /// The committed ISR plus pending joiners, plus pending leavers until their leaving is
    /// committed: the high watermark waits for all of it (KIP-497).
    ///
    /// Invariant: holds each member of `in_sync_replicas`.
    pub maximal_isr: Vec<NodeId>,
    /// What each other assigned replica was last seen to hold, in this epoch.
    ///
    /// Invariant: never holds the leader itself, nor a replica that is not assigned.
    pub followers: BTreeMap<NodeId, FollowerProgress>,
}

/// What a leader knows of one follower, from fetches that carried the leader's own epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowerProgress {
    /// Exclusive end of what it holds; zero before its first fetch in this epoch.
    pub log_end_offset: Offset,
    /// When it last fetched at the leader's log end offset.
    pub last_caught_up: Option<Mono>,
    /// The registration that it fetched under (KIP-903).
    pub broker_epoch: BrokerEpoch,
}

/// The state of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Whom it follows; `None` while the partition has no leader.
    pub leader: Option<NodeId>,
    /// The epoch of that leader.
    pub epoch: LeaderEpoch,
}

impl Leader {
    /// The other members of the maximal ISR.
    pub(crate) fn others_of_maximal_isr(&self, own: NodeId) -> impl Iterator<Item = NodeId> {
        self.maximal_isr
            .iter()
            .copied()
            .filter(move |node| *node != own)
    }

    /// Takes over assignment and ISR of the same leader epoch.
    pub(crate) fn refresh(&mut self, own: NodeId, assigned: &[NodeId], in_sync: &[NodeId]) {
        self.assigned_replicas = assigned.to_vec();
        self.in_sync_replicas = in_sync.to_vec();
        self.maximal_isr = in_sync.to_vec();
        self.followers.retain(|node, _| assigned.contains(node));
        for node in assigned.iter().filter(|node| **node != own) {
            self.followers.entry(*node).or_default();
        }
    }
}

impl Role {
    /// The epoch of the current leader, whoever it is; `NONE` before any metadata.
    #[must_use]
    pub const fn leader_epoch(&self) -> LeaderEpoch {
        match self {
            Self::None => LeaderEpoch::NONE,
            Self::Leader(leader) => leader.epoch,
            Self::Follower(follower) => follower.epoch,
        }
    }

    /// The state of a leader, if it leads.
    #[must_use]
    pub const fn as_leader(&self) -> Option<&Leader> {
        match self {
            Self::Leader(leader) => Some(leader),
            Self::None | Self::Follower(_) => None,
        }
    }
}
