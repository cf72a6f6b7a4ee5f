use std::sync::Arc;

use bytes::Bytes;
use highwater_types::Millis;

use crate::offset_request::{
    DeleteRequest, ListRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
};
use crate::{GenerationId, GroupId, InstanceId, MemberId};

/// One request about one group. What differs by API version is a field, never a version number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named after its request")]
pub enum GroupRequest {
    Join(JoinRequest),
    Sync(SyncRequest),
    Heartbeat(HeartbeatRequest),
    Leave(LeaveRequest),
    Describe(DescribeRequest),
    OffsetCommit(OffsetCommitRequest),
    OffsetFetch(OffsetFetchRequest),
    OffsetDelete(OffsetDeleteRequest),
    Delete(DeleteRequest),
    /// Of all groups of this coordinator.
    List(ListRequest),
}

/// JoinGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// The group.
    pub group_id: GroupId,
    /// Empty when the member has none yet.
    pub member_id: MemberId,
    /// Of a static member (v5+).
    pub instance_id: Option<InstanceId>,
    /// How long the member may be silent; a negative one counts as zero.
    pub session_timeout: Millis,
    /// How long the member may take to join again; `None` at v0: the session timeout.
    pub rebalance_timeout: Option<Millis>,
    /// "consumer" for consumers.
    pub protocol_type: Arc<str>,
    /// In the member's order of preference.
    pub protocols: Vec<JoinProtocol>,
    /// Why the member joins (v8+).
    pub reason: Option<Arc<str>>,
    /// Whether a dynamic member without an id is first sent one (v4+, KIP-394).
    pub member_id_required: bool,
    /// Whether the answer can tell a leader not to assign (v9+, KIP-814).
    pub knows_skip_assignment: bool,
}

/// One protocol (assignor) that a member offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinProtocol {
    /// Its name, such as "range".
    pub name: Arc<str>,
    /// What the member tells the leader; for consumers the subscription.
    pub metadata: Bytes,
}

/// SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member joined.
    pub generation_id: GenerationId,
    /// The member.
    pub member_id: MemberId,
    /// Of a static member (v3+).
    pub instance_id: Option<InstanceId>,
    /// What the member believes the protocol type to be (v5+).
    pub protocol_type: Option<Arc<str>>,
    /// What the member believes the protocol to be (v5+).
    pub protocol_name: Option<Arc<str>>,
    /// The leader's assignment; empty from all others.
    pub assignments: Vec<Assigned>,
}

/// What the leader gives to one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The member.
    pub member_id: MemberId,
    /// Its assignment.
    pub assignment: Bytes,
}

/// Heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatRequest {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member believes in.
    pub generation_id: GenerationId,
    /// The member.
    pub member_id: MemberId,
    /// Of a static member (v3+).
    pub instance_id: Option<InstanceId>,
}

/// LeaveGroup in its batch form (KIP-345); up to v2 it names one member, without instance id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveRequest {
    /// The group.
    pub group_id: GroupId,
    /// Who leaves.
    pub members: Vec<LeavingMember>,
}

/// One member that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingMember {
    /// Empty when an administrator removes a static member by its instance id.
    pub member_id: MemberId,
    /// Of a static member.
    pub instance_id: Option<InstanceId>,
    /// Why it leaves (v5+).
    pub reason: Option<Arc<str>>,
}

/// DescribeGroups, of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeRequest {
    /// The group.
    pub group_id: GroupId,
    /// Whether an unknown group is GROUP_ID_NOT_FOUND (v6+, KIP-1043); else it is Dead, without an
    /// error.
    pub unknown_is_error: bool,
}
