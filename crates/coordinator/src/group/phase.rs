use std::collections::BTreeSet;

use highwater_types::Millis;

use crate::MemberId;
use crate::answer::GroupState;

/// Where a group is. Its legal ways:
///
/// ```text
/// Empty -> Preparing            a first member joins
/// Preparing -> Completing       the join phase is over
/// Preparing -> Empty            the join phase is over, and nobody is left
/// Completing -> Stable          the leader's assignment is recorded
/// Completing, Stable -> Preparing
///                               somebody joined, left or was lost; the record was refused
/// ```
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// No members.
    Empty,
    /// Members are asked to join again.
    Preparing {
        /// When the group was empty before: its end is not "all have joined" but the delay's end.
        initial: Option<InitialDelay>,
    },
    /// The leader's assignment is awaited.
    Completing {
        /// Who has not asked for its assignment yet.
        to_sync: BTreeSet<MemberId>,
    },
    /// Every member has its assignment, or may ask for it.
    Stable {
        /// Who has not asked for its assignment yet.
        to_sync: BTreeSet<MemberId>,
    },
}

/// The wait for more members of a group that was empty (KIP-134).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialDelay {
    /// The part of the wait that runs now.
    pub(crate) delay: Millis,
    /// By how much it may be extended after that.
    pub(crate) remaining: Millis,
    /// Whether somebody joined in this part, which is the reason to extend it.
    pub(crate) member_added: bool,
}

impl Phase {
    pub(crate) const fn state(&self) -> GroupState {
        match self {
            Self::Empty => GroupState::Empty,
            Self::Preparing { .. } => GroupState::PreparingRebalance,
            Self::Completing { .. } => GroupState::CompletingRebalance,
            Self::Stable { .. } => GroupState::Stable,
        }
    }

    /// Who has not asked for its assignment yet.
    pub(crate) const fn to_sync(&self) -> Option<&BTreeSet<MemberId>> {
        match self {
            Self::Empty | Self::Preparing { .. } => None,
            Self::Completing { to_sync } | Self::Stable { to_sync } => Some(to_sync),
        }
    }

    pub(crate) const fn to_sync_mut(&mut self) -> Option<&mut BTreeSet<MemberId>> {
        match self {
            Self::Empty | Self::Preparing { .. } => None,
            Self::Completing { to_sync } | Self::Stable { to_sync } => Some(to_sync),
        }
    }
}
