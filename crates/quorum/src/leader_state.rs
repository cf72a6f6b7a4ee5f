use highwater_types::{LeaderEpoch, NodeId, Offset};

use crate::{QuorumState, ReplicaKey, VoterSet};

/// The leader of a quorum whose one voter is itself.
///
/// The owner, in this order: (1) calls [`LeaderState::new`] with what is on disk; (2) makes
/// [`LeaderState::quorum_state`] durable; (3) appends the [`LeaderChange`] as the first record of
/// the epoch; (4) reports every flush to [`LeaderState::handle_flushed`], which says how far the
/// log is committed now.
#[derive(Clone, Debug)]
pub struct LeaderState {
    key: ReplicaKey,
    voters: VoterSet,
    epoch: LeaderEpoch,
    /// The log end offset when the epoch began: where its first record goes.
    epoch_start_offset: Offset,
    /// Exclusive: all below it is committed. `None` until a record of this epoch is flushed, for
    /// only then is it known what the epochs before committed.
    ///
    /// Invariant: it never falls.
    high_watermark: Option<Offset>,
}

/// The first record of an epoch: who leads it and who voted for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderChange {
    /// The leader.
    pub leader_id: NodeId,
    /// All voters.
    pub voters: Vec<NodeId>,
    /// Those that voted for it.
    pub granting_voters: Vec<NodeId>,
}

/// Why a node cannot lead its quorum by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BecomeLeaderError {
    /// The voters are others.
    #[error("node {node} is not among the voters ({voters:?}) of the metadata quorum")]
    NotAVoter {
        /// This node.
        node: ReplicaKey,
        /// The voters' ids.
        voters: Vec<NodeId>,
    },
    /// There are other voters too.
    #[error("the metadata quorum has {0} voters; this build can only lead a quorum of one voter")]
    MoreVoters(usize),
    /// No epoch is left.
    #[error("the epochs of the metadata quorum are used up")]
    EpochsUsedUp,
}

impl LeaderState {
    /// Begins a new epoch, above every epoch that this node may have seen: the one in
    /// `quorum-state` and the last one in log or snapshot. `log_end_offset` is where the epoch's
    /// first record goes.
    ///
    /// # Errors
    /// When this node is not the one voter.
    pub fn new(
        key: ReplicaKey,
        voters: VoterSet,
        stored: Option<&QuorumState>,
        last_epoch: LeaderEpoch,
        log_end_offset: Offset,
    ) -> Result<Self, BecomeLeaderError> {
        if !voters.contains(key) {
            return Err(BecomeLeaderError::NotAVoter {
                node: key,
                voters: voters.ids(),
            });
        }
        if voters.voters.len() > 1 {
            return Err(BecomeLeaderError::MoreVoters(voters.voters.len()));
        }
        let stored_epoch = stored.map_or(LeaderEpoch::ZERO, |state| state.leader_epoch);
        let seen = stored_epoch.max(last_epoch).max(LeaderEpoch::ZERO);
        if seen.raw() == i32::MAX {
            return Err(BecomeLeaderError::EpochsUsedUp);
        }
        let epoch = seen.next();
        let epoch_start_offset = log_end_offset;
        Ok(Self {
            key,
            voters,
            epoch,
            epoch_start_offset,
            high_watermark: None,
        })
    }

    /// The epoch that this leader writes in.
    #[must_use]
    pub const fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// Where the epoch's first record goes.
    #[must_use]
    pub const fn epoch_start_offset(&self) -> Offset {
        self.epoch_start_offset
    }

    /// Exclusive: all below it is committed; `None` until that is known.
    #[must_use]
    pub const fn high_watermark(&self) -> Option<Offset> {
        self.high_watermark
    }

    /// The voters.
    #[must_use]
    pub const fn voters(&self) -> &VoterSet {
        &self.voters
    }

    /// What the file `quorum-state` says while this node leads: an elected leader keeps no vote.
    #[must_use]
    pub fn quorum_state(&self) -> QuorumState {
        QuorumState {
            leader_epoch: self.epoch,
            leader_id: Some(self.key.id),
            voted: None,
            current_voters: self.voters.ids(),
        }
    }

    /// The record that begins the epoch.
    #[must_use]
    pub fn leader_change(&self) -> LeaderChange {
        LeaderChange {
            leader_id: self.key.id,
            voters: self.voters.ids(),
            granting_voters: vec![self.key.id],
        }
    }

    /// The log is flushed up to `flushed` (exclusive). Returns the high watermark when it moved:
    /// what the one voter has flushed is committed, once that reaches into this epoch.
    pub fn handle_flushed(&mut self, flushed: Offset) -> Option<Offset> {
        let moved = flushed > self.epoch_start_offset
            && self
                .high_watermark
                .is_none_or(|high_watermark| flushed > high_watermark);
        if moved {
            self.high_watermark = Some(flushed);
        }
        self.assert_invariants();
        moved.then_some(flushed)
    }

    fn assert_invariants(&self) {
        assert!(
            self.epoch > LeaderEpoch::ZERO,
            "an elected leader has an epoch of its own"
        );
        if let Some(high_watermark) = self.high_watermark {
            assert!(
                high_watermark > self.epoch_start_offset,
                "committed {high_watermark}, but the epoch starts at {}",
                self.epoch_start_offset
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: i32) -> ReplicaKey {
        ReplicaKey {
            id: NodeId::new(id),
            directory_id: highwater_types::DirectoryId::ZERO,
        }
    }

    fn voters(text: &str) -> VoterSet {
        VoterSet::parse(text, "CONTROLLER").expect("voters")
    }

    fn stored(epoch: i32) -> QuorumState {
        QuorumState {
            leader_epoch: LeaderEpoch::new(epoch),
            leader_id: Some(NodeId::new(1)),
            voted: None,
            current_voters: Vec::new(),
        }
    }

    fn leader(stored: Option<&QuorumState>, last_epoch: i32, end: i64) -> LeaderState {
        let (last_epoch, end) = (LeaderEpoch::new(last_epoch), Offset::new(end));
        LeaderState::new(key(1), voters("1@h:1"), stored, last_epoch, end).expect("one voter")
    }

    #[test]
    fn i_11_every_start_has_an_epoch_of_its_own() {
        assert_eq!(leader(None, 0, 0).epoch(), LeaderEpoch::new(1));
        assert_eq!(leader(Some(&stored(3)), 2, 10).epoch(), LeaderEpoch::new(4));
        // The file was lost, or is older than the log.
        assert_eq!(leader(None, 5, 10).epoch(), LeaderEpoch::new(6));
        assert_eq!(leader(Some(&stored(3)), 5, 10).epoch(), LeaderEpoch::new(6));
    }

    #[test]
    fn nothing_is_committed_before_a_record_of_the_epoch_is() {
        let mut leader = leader(Some(&stored(1)), 1, 10);
        assert_eq!(leader.handle_flushed(Offset::new(8)), None);
        assert_eq!(leader.handle_flushed(Offset::new(10)), None);
        assert_eq!(leader.high_watermark(), None);
        assert_eq!(
            leader.handle_flushed(Offset::new(11)),
            Some(Offset::new(11))
        );
        assert_eq!(leader.handle_flushed(Offset::new(11)), None);
        assert_eq!(leader.handle_flushed(Offset::new(9)), None);
        assert_eq!(leader.high_watermark(), Some(Offset::new(11)));
    }

    #[test]
    fn only_the_one_voter_leads() {
        let at = |voters, id| {
            LeaderState::new(key(id), voters, None, LeaderEpoch::ZERO, Offset::ZERO).map(|_| ())
        };
        assert_eq!(at(voters("1@h:1"), 1), Ok(()));
        assert!(matches!(
            at(voters("1@h:1"), 2),
            Err(BecomeLeaderError::NotAVoter { .. })
        ));
        assert_eq!(
            at(voters("1@h:1,2@h:2"), 1),
            Err(BecomeLeaderError::MoreVoters(2))
        );
    }

    #[test]
    fn cm_02_time_alone_never_deposes_the_one_voter() {
        // There is no check of a quorum of others, so no timer: the epoch stays.
        let mut leader = leader(None, 0, 0);
        leader.handle_flushed(Offset::new(3));
        assert_eq!(leader.epoch(), LeaderEpoch::new(1));
        assert_eq!(leader.quorum_state().leader_id, Some(NodeId::new(1)));
    }
}
