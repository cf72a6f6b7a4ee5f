use std::collections::BTreeMap;

use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, Millis, NodeId, Offset, PartitionEpoch,
};

/// The ISR as its leader has it: what the controller committed, and the one change that the
/// controller was asked for (KIP-497). The leader never decides alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isr {
    committed: Vec<NodeId>,
    pending: Option<PendingIsr>,
}

/// A change of the ISR that the controller has not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PendingIsr {
    /// The partition epoch that the change was asked at: its answer is known by it.
    asked_at: PartitionEpoch,
    cause: IsrCause,
}

/// Why a leader wants another ISR, with the numbers that it judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsrCause {
    /// A follower has caught up with the high watermark and with the start of the leader epoch.
    Joins {
        /// The follower.
        replica: NodeId,
        /// Exclusive end of what it holds.
        log_end_offset: Offset,
        /// The leader's high watermark at that moment.
        high_watermark: Offset,
    },
    /// Followers have not caught up for `replica.lag.time.max.ms`. Never empty.
    Lag(Vec<Lagging>),
}

/// A follower that has not caught up in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagging {
    /// The follower.
    pub replica: NodeId,
    /// Exclusive end of what it holds.
    pub log_end_offset: Offset,
    /// Exclusive end of the leader's log at that moment.
    pub leader_log_end_offset: Offset,
    /// For how long it has not been caught up; `None`: never in this leader epoch.
    pub behind_for: Option<Millis>,
    /// How long ago it fetched last; `None`: never in this leader epoch.
    pub last_fetch: Option<Millis>,
}

/// A change of the ISR, as the controller is to be asked for it (AlterPartition).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrProposal {
    /// The epoch that the sender leads in.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch that the change starts from.
    pub partition_epoch: PartitionEpoch,
    /// The whole new ISR with the registration of each member as its fetches told it (KIP-903);
    /// [`BrokerEpoch::NONE`] for a member that has not fetched in this leader epoch.
    pub in_sync_replicas: Vec<(NodeId, BrokerEpoch)>,
    /// Why.
    pub cause: IsrCause,
}

/// What the controller said to an [`IsrProposal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrAnswer {
    /// The leader epoch of the proposal.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch of the proposal.
    pub asked_at: PartitionEpoch,
    /// The state that is committed now, or why nothing was done.
    pub result: Result<CommittedIsr, ErrorCode>,
}

/// An ISR that the controller committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedIsr {
    /// The leader epoch after the change.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch after the change.
    pub partition_epoch: PartitionEpoch,
    /// The ISR.
    pub in_sync_replicas: Vec<NodeId>,
}

impl Isr {
    /// An ISR with nothing pending.
    #[must_use]
    pub const fn new(committed: Vec<NodeId>) -> Self {
        Self {
            committed,
            pending: None,
        }
    }

    /// As the controller committed it.
    #[must_use]
    pub fn committed(&self) -> &[NodeId] {
        &self.committed
    }

    /// What the controller was asked for and has not answered.
    #[must_use]
    pub fn pending(&self) -> Option<&IsrCause> {
        self.pending.as_ref().map(|it| &it.cause)
    }

    /// Everybody whom the high watermark waits for: the committed ISR, and who is about to join.
    /// Who is about to leave stays until that is committed (KIP-497).
    pub fn maximal(&self) -> impl Iterator<Item = NodeId> {
        let joins = match self.pending() {
            Some(IsrCause::Joins { replica, .. }) => Some(*replica),
            Some(IsrCause::Lag(_)) | None => None,
        };
        self.committed
            .iter()
            .copied()
            .chain(joins.filter(|it| !self.committed.contains(it)))
    }

    /// Notes a change that the controller is now asked for; the whole new ISR.
    ///
    /// # Panics
    /// When another change is pending: at most one is in flight (KAFKA-12686).
    pub(crate) fn propose(&mut self, asked_at: PartitionEpoch, cause: IsrCause) -> Vec<NodeId> {
        assert!(self.pending.is_none(), "two changes of an ISR in flight");
        self.pending = Some(PendingIsr { asked_at, cause });
        self.proposed()
    }

    /// The controller's state: whatever was pending is decided by it.
    pub(crate) fn commit(&mut self, committed: &[NodeId]) {
        *self = Self::new(committed.to_vec());
    }

    /// The pending change was certainly not made.
    pub(crate) fn revert(&mut self) {
        self.pending = None;
    }

    /// Whether the change that was asked for at `epoch` is the pending one.
    pub(crate) fn is_pending_since(&self, epoch: PartitionEpoch) -> bool {
        self.pending.as_ref().is_some_and(|it| it.asked_at == epoch)
    }

    /// The pending ISR; the committed one when nothing is pending.
    pub(crate) fn proposed(&self) -> Vec<NodeId> {
        let leaves = match self.pending() {
            Some(IsrCause::Lag(lagging)) => lagging.as_slice(),
            Some(IsrCause::Joins { .. }) | None => &[],
        };
        let stays = |node: &NodeId| leaves.iter().all(|it| it.replica != *node);
        self.maximal().filter(stays).collect()
    }
}

/// The brokers that may be in an ISR as this broker's metadata has it, with their registrations:
/// neither fenced nor shutting down (KIP-841).
pub type EligibleBrokers = BTreeMap<NodeId, BrokerEpoch>;

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ids: &[i32]) -> Vec<NodeId> {
        ids.iter().copied().map(NodeId::new).collect()
    }

    fn lagging(id: i32) -> Lagging {
        Lagging {
            replica: NodeId::new(id),
            log_end_offset: Offset::ZERO,
            leader_log_end_offset: Offset::new(1),
            behind_for: None,
            last_fetch: None,
        }
    }

    #[test]
    fn who_joins_counts_at_once_and_who_leaves_counts_until_it_is_committed() {
        let at = PartitionEpoch::new(3);
        let mut isr = Isr::new(nodes(&[1, 2]));
        let joins = IsrCause::Joins {
            replica: NodeId::new(3),
            log_end_offset: Offset::ZERO,
            high_watermark: Offset::ZERO,
        };
        assert_eq!(isr.propose(at, joins), nodes(&[1, 2, 3]));
        assert_eq!(isr.maximal().collect::<Vec<_>>(), nodes(&[1, 2, 3]));
        isr.commit(&nodes(&[1, 2, 3]));
        let lag = IsrCause::Lag(vec![lagging(2), lagging(3)]);
        assert_eq!(isr.propose(at, lag), nodes(&[1]));
        assert_eq!(isr.maximal().collect::<Vec<_>>(), nodes(&[1, 2, 3]));
        assert!(isr.is_pending_since(at));
        isr.revert();
        assert_eq!((isr.proposed(), isr.pending()), (nodes(&[1, 2, 3]), None));
    }
}
