use std::collections::BTreeSet;

use highwater_types::{ErrorCode, Millis, NodeId, TopicName};

use super::PartitionSet;
use crate::api::ApiKey;
use crate::messages::leave_group_request::MemberIdentity as LeavingMember;
use crate::messages::{
    FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest,
};
use crate::request::Request;
use crate::wire::DecodeError;

/// The first version of FindCoordinator that asks for several coordinators (KIP-699).
const SEVERAL_KEYS_SINCE: i16 = 4;
/// The first version of LeaveGroup that names several members (KIP-345).
const SEVERAL_MEMBERS_SINCE: i16 = 3;

/// Names a call of one member until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// The broker that coordinates a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCoordinator {
    /// Its id.
    pub node: NodeId,
    /// The host it is reached at.
    pub host: String,
    /// The port it is reached at.
    pub port: i32,
}

/// Where a call goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallTo {
    /// To whichever broker can be reached.
    AnyBroker,
    /// To the group's coordinator.
    Coordinator(GroupCoordinator),
}

/// One request of a member, in no version yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberCall {
    /// Who coordinates the group?
    FindCoordinator {
        /// The group.
        group_id: String,
    },
    /// Joins, or rejoins.
    Join(JoinGroupRequest),
    /// Tells (as leader) and fetches the assignment.
    Sync(SyncGroupRequest),
    /// Still here.
    Heartbeat(HeartbeatRequest),
    /// Leaves.
    Leave {
        /// The group.
        group_id: String,
        /// The member that leaves.
        member_id: String,
        /// Why, for whoever looks at the coordinator.
        reason: String,
    },
}

impl MemberCall {
    /// The API that is called.
    #[must_use]
    pub const fn api(&self) -> ApiKey {
        match self {
            Self::FindCoordinator { .. } => ApiKey::FindCoordinator,
            Self::Join(_) => ApiKey::JoinGroup,
            Self::Sync(_) => ApiKey::SyncGroup,
            Self::Heartbeat(_) => ApiKey::Heartbeat,
            Self::Leave { .. } => ApiKey::LeaveGroup,
        }
    }

    /// The request as `version` of the API has it.
    #[must_use]
    pub fn request(self, version: i16) -> Request {
        match self {
            Self::FindCoordinator { group_id } => find_coordinator(group_id, version).into(),
            Self::Join(request) => request.into(),
            Self::Sync(request) => request.into(),
            Self::Heartbeat(request) => request.into(),
            Self::Leave {
                group_id,
                member_id,
                reason,
            } => leave(group_id, member_id, reason, version).into(),
        }
    }
}

/// Asks for the coordinator of one group.
#[must_use]
pub fn find_coordinator(group_id: String, version: i16) -> FindCoordinatorRequest {
    let mut request = FindCoordinatorRequest::default();
    if version >= SEVERAL_KEYS_SINCE {
        request.coordinator_keys = vec![group_id];
    } else {
        request.key = group_id;
    }
    request
}

fn leave(group_id: String, member_id: String, reason: String, version: i16) -> LeaveGroupRequest {
    let mut request = LeaveGroupRequest {
        group_id,
        ..LeaveGroupRequest::default()
    };
    if version >= SEVERAL_MEMBERS_SINCE {
        request.members = vec![LeavingMember {
            member_id,
            group_instance_id: None,
            reason: Some(reason),
        }];
    } else {
        request.member_id = member_id;
    }
    request
}

/// What the owner of a member must do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberOutput {
    /// Send this and tell what came of it by [`handle_answer`](super::GroupMember::handle_answer)
    /// or [`handle_failure`](super::GroupMember::handle_failure).
    Send {
        /// Names the call.
        id: CallId,
        /// Where it goes.
        to: CallTo,
        /// What is sent.
        call: MemberCall,
        /// How long an answer may take.
        timeout: Millis,
    },
    /// The call under way is not waited for any more. Close its connection: what comes next must
    /// not queue up behind it.
    Abandon(CallId),
    /// Stop reading these and commit what was read, then call
    /// [`released`](super::GroupMember::released). They are ours until then.
    Revoke(PartitionSet),
    /// Stop reading everything at once: others may own it already, and a commit would be refused.
    Lost,
    /// Begin to read these, from their committed offsets. Everything that is owned is in
    /// [`owned`](super::GroupMember::owned).
    Assigned(PartitionSet),
    /// Look up how many partitions these topics have now and call
    /// [`handle_topics`](super::GroupMember::handle_topics): this member deals.
    CountTopics(BTreeSet<TopicName>),
    /// The member has left, or never was in, and does nothing until it subscribes again.
    Left,
    /// The member is out for good, for this reason.
    Failed(GroupError),
}

/// Why a member cannot be in its group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The coordinator refuses.
    #[error("{what}: {code}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// The coordinator's answer.
        code: ErrorCode,
    },
    /// Another member has the same `group.instance.id` and is newer.
    #[error("another member has taken over group.instance.id={instance_id}")]
    Fenced {
        /// The id in question.
        instance_id: String,
    },
    /// The group is not one of consumers, or speaks a protocol that was not offered.
    #[error("the group works by {theirs}, which this member does not")]
    Protocol {
        /// Protocol type and name as they were told.
        theirs: String,
    },
    /// The leader's assignment cannot be read.
    #[error("the assignment that the group's leader made cannot be read: {0}")]
    Assignment(DecodeError),
}
