use std::sync::Arc;

use highwater_types::WallMs;

use crate::offsets::OffsetsMoved;
use crate::{GenerationId, GroupId, InstanceId, MemberId};

/// Something that happened to a group, for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHappening {
    /// The group.
    pub group_id: GroupId,
    /// What happened.
    pub event: GroupEvent,
}

/// A [`GroupEvent`] with its time, as a describe answer gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastEvent {
    /// When.
    pub at: WallMs,
    /// What.
    pub event: GroupEvent,
}

/// What happened to a group. `Display` says it in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupEvent {
    /// A member is new in the group.
    Joined {
        /// Its id.
        member_id: MemberId,
        /// Of a static member.
        instance_id: Option<InstanceId>,
        /// Its client id.
        client_id: Arc<str>,
        /// Where it is.
        client_host: Arc<str>,
    },
    /// A static member came back under a new id; the old one is fenced.
    Replaced {
        /// Its instance id.
        instance_id: InstanceId,
        /// Fenced.
        old_id: MemberId,
        /// In its place.
        new_id: MemberId,
    },
    /// A member is no longer in the group.
    Left {
        /// Its id.
        member_id: MemberId,
        /// Of a static member.
        instance_id: Option<InstanceId>,
        /// Why.
        cause: LeaveCause,
    },
    /// Members are asked to join again.
    RebalanceBegan {
        /// The generation that ends.
        generation_id: GenerationId,
        /// Why, and by whom.
        cause: RebalanceCause,
    },
    /// The join phase is over.
    Joins {
        /// The new generation.
        generation_id: GenerationId,
        /// The chosen protocol.
        protocol_name: Arc<str>,
        /// Who assigns.
        leader: MemberId,
        /// How many members it has.
        members: usize,
    },
    /// The leader's assignment is recorded: the group is stable.
    RebalanceCompleted {
        /// The generation.
        generation_id: GenerationId,
        /// How many members it has.
        members: usize,
    },
    /// The last member is gone.
    Emptied {
        /// The new generation.
        generation_id: GenerationId,
    },
    /// The group's state could not be recorded.
    NotRecorded {
        /// What was to be recorded.
        what: &'static str,
        /// Why it was refused.
        why: crate::AppendRefused,
    },
    /// Offsets moved, were deleted or expired.
    Offsets(OffsetsMoved),
    /// The group is gone.
    Deleted {
        /// By request, or because nothing of it was left.
        by_request: bool,
    },
}

/// Why a member is no longer in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaveCause {
    /// It said so.
    Asked {
        /// The reason it gave (KIP-800).
        reason: Option<Arc<str>>,
    },
    /// It was silent for longer than its session timeout.
    SessionTimeout,
    /// Its connection was lost before it was told its id.
    Disconnected,
    /// It did not join again within the rebalance timeout.
    RebalanceTimeout,
    /// It never used the id that it had asked for.
    NeverJoined,
    /// It did not ask for its assignment within the rebalance timeout.
    NeverSynced,
    /// The group is larger than `group.max.size`.
    GroupTooLarge,
}

/// Why a rebalance began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebalanceCause {
    /// A new member.
    MemberJoined(MemberId),
    /// A member came again, with other protocols or after it had lost its way.
    MemberRejoined {
        /// Who.
        member_id: MemberId,
        /// The reason it gave (KIP-800).
        reason: Option<Arc<str>>,
    },
    /// The leader came again, as it does to have partitions assigned anew.
    LeaderRejoined {
        /// Who.
        member_id: MemberId,
        /// The reason it gave (KIP-800).
        reason: Option<Arc<str>>,
    },
    /// A static member came back, and the group cannot stay as it is.
    StaticMemberReplaced {
        /// Its instance id.
        instance_id: InstanceId,
    },
    /// A member left or was removed.
    MemberLeft {
        /// Who.
        member_id: MemberId,
        /// Why.
        cause: LeaveCause,
    },
    /// The leader's assignment could not be recorded.
    AssignmentNotRecorded,
    /// The loaded group is larger than `group.max.size`.
    LoadedTooLarge,
}
