use std::sync::Arc;

use bytes::Bytes;
use highwater_types::{ErrorCode, Millis};

use crate::happening::PastEvent;
use crate::offset_request::{
    DeleteAnswer, OffsetCommitAnswer, OffsetDeleteAnswer, OffsetFetchAnswer,
};
use crate::{GenerationId, GroupId, InstanceId, MemberId};

/// The answer to a [`crate::GroupRequest`], of the same variant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named after its request")]
pub enum GroupAnswer {
    Join(JoinAnswer),
    Sync(SyncAnswer),
    Heartbeat(HeartbeatAnswer),
    Leave(LeaveAnswer),
    Describe(DescribeAnswer),
    OffsetCommit(OffsetCommitAnswer),
    OffsetFetch(OffsetFetchAnswer),
    OffsetDelete(OffsetDeleteAnswer),
    Delete(DeleteAnswer),
    List(Vec<ListedGroup>),
}

/// JoinGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinAnswer {
    /// NONE, or why the member is not in the generation.
    pub error: ErrorCode,
    /// [`GenerationId::NONE`] with an error.
    pub generation_id: GenerationId,
    /// `None` with most errors (v7+).
    pub protocol_type: Option<Arc<str>>,
    /// `None` with an error; where the wire's field is not nullable (up to v6) it is empty then.
    pub protocol_name: Option<Arc<str>>,
    /// Empty with an error.
    pub leader: MemberId,
    /// Whether the leader must not compute an assignment (v9+).
    pub skip_assignment: bool,
    /// The member's id, also with MEMBER_ID_REQUIRED.
    pub member_id: MemberId,
    /// All members, in the leader's answer only.
    pub members: Vec<JoinedMember>,
}

/// One member, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member_id: MemberId,
    /// Of a static member.
    pub instance_id: Option<InstanceId>,
    /// Its metadata for the chosen protocol.
    pub metadata: Bytes,
}

/// SyncGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncAnswer {
    /// NONE, or why there is no assignment.
    pub error: ErrorCode,
    /// `None` with an error (v5+).
    pub protocol_type: Option<Arc<str>>,
    /// `None` with an error (v5+).
    pub protocol_name: Option<Arc<str>>,
    /// Empty with an error.
    pub assignment: Bytes,
}

/// Heartbeat's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// NONE, or what the member has to do.
    pub error: ErrorCode,
}

/// LeaveGroup's answer. Up to v2 the wire has one error: this one, or that of the only member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveAnswer {
    /// An error of the whole request.
    pub error: ErrorCode,
    /// One for each member of the request, in its order.
    pub members: Vec<LeftMember>,
}

/// One member that was asked to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftMember {
    /// As in the request.
    pub member_id: MemberId,
    /// As in the request.
    pub instance_id: Option<InstanceId>,
    /// NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    pub error: ErrorCode,
}

/// The state of a group, with Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupState {
    /// No members; it may still have offsets.
    Empty,
    /// Members are asked to join again.
    PreparingRebalance,
    /// The join phase is over; the leader's assignment is awaited.
    CompletingRebalance,
    /// Every member has its assignment.
    Stable,
    /// The group is not, or no longer, there.
    Dead,
    /// Of a group of another type (KIP-848): a new assignment is due.
    Assigning,
    /// Of a group of another type (KIP-848): members are on their way to their assignment.
    Reconciling,
    /// Of a streams group (KIP-1071): its topology is not there yet.
    NotReady,
}

impl GroupState {
    /// Kafka's name, as ListGroups and DescribeGroups carry it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::NotReady => "NotReady",
        }
    }
}

/// DescribeGroups' answer, for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeAnswer {
    /// NONE, or GROUP_ID_NOT_FOUND.
    pub error: ErrorCode,
    /// With an error: what is wrong (v6+).
    pub error_message: Option<String>,
    /// The group.
    pub group_id: GroupId,
    /// Its state.
    pub state: GroupState,
    /// Empty when nobody ever joined.
    pub protocol_type: Arc<str>,
    /// The chosen protocol; empty unless the group is Stable.
    pub protocol: Arc<str>,
    /// The members, by id.
    pub members: Vec<DescribedMember>,
    /// Ours alone: what happened last, oldest first; at most 16, since the load.
    pub past: Vec<PastEvent>,
    /// Ours alone: whom a rebalance waits for.
    pub waits_for: Vec<WaitsFor>,
}

/// One member of a described group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member_id: MemberId,
    /// Of a static member.
    pub instance_id: Option<InstanceId>,
    /// Its client id.
    pub client_id: Arc<str>,
    /// Where it is, as Kafka writes it: `/127.0.0.1`.
    pub client_host: Arc<str>,
    /// Its metadata for the chosen protocol; empty unless the group is Stable.
    pub metadata: Bytes,
    /// Its assignment: while members join again, that of the generation that ends.
    pub assignment: Bytes,
}

/// Whom a rebalance waits for, and how much longer at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitsFor {
    /// The member that has to join or to sync.
    pub member_id: MemberId,
    /// Until then the rebalance waits at most.
    pub left: Millis,
}

/// One group of a ListGroups answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group.
    pub group_id: GroupId,
    /// Empty when nobody ever joined.
    pub protocol_type: Arc<str>,
    /// Its state.
    pub state: GroupState,
    /// Kafka's name of the group's type: "classic", "consumer", "share" or "streams".
    pub group_type: &'static str,
}
