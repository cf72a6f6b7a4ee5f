use highwater_types::{LeaderEpoch, Mono, NodeId};

use crate::Leader;

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

/// The state of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Whom it follows; `None` while the partition has no leader.
    pub leader: Option<NodeId>,
    /// The epoch of that leader.
    pub epoch: LeaderEpoch,
    /// When it fetches.
    pub next_fetch: NextFetch,
    /// Fetches that brought nothing but an error, since the last that did not.
    pub failures: u32,
}

/// When a follower fetches next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFetch {
    /// At once.
    Now,
    /// Not before this time: the leader answered an error that may pass.
    At(Mono),
    /// Not before the metadata names another leader epoch: the leader knows a newer one.
    AfterMetadata,
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

    /// The state of a follower, if it follows.
    #[must_use]
    pub const fn as_follower(&self) -> Option<&Follower> {
        match self {
            Self::Follower(follower) => Some(follower),
            Self::None | Self::Leader(_) => None,
        }
    }
}
