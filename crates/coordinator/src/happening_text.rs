//! What happened to a group, in one line each.

use std::fmt;
use std::sync::Arc;

use crate::happening::{GroupEvent, GroupHappening, LeaveCause, RebalanceCause};
use crate::{InstanceId, MemberId};

impl fmt::Display for GroupHappening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}: {}", self.group_id, self.event)
    }
}

impl fmt::Display for GroupEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined {
                member_id,
                instance_id,
                client_id,
                client_host,
            } => {
                let who = Who(member_id, instance_id.as_ref());
                write!(f, "{who} joined, client '{client_id}' at {client_host}")
            }
            Self::Replaced {
                instance_id,
                old_id,
                new_id,
            } => write!(
                f,
                "static member {instance_id} is now {new_id}; {old_id} is fenced"
            ),
            Self::Left {
                member_id,
                instance_id,
                cause,
            } => {
                let who = Who(member_id, instance_id.as_ref());
                write!(f, "{who} is out: {cause}")
            }
            Self::RebalanceBegan {
                generation_id,
                cause,
            } => write!(f, "rebalance of generation {generation_id} began: {cause}"),
            Self::Joins {
                generation_id,
                protocol_name,
                leader,
                members,
            } => write!(
                f,
                "generation {generation_id} has {members} members; {leader} assigns by \
                 {protocol_name}"
            ),
            Self::RebalanceCompleted {
                generation_id,
                members,
            } => write!(
                f,
                "generation {generation_id} of {members} members is stable"
            ),
            Self::Emptied { generation_id } => {
                write!(f, "nobody is left in generation {generation_id}")
            }
            Self::NotRecorded { what, why } => write!(f, "{what} could not be recorded: {why}"),
            Self::Offsets(moved) => moved.fmt(f),
            Self::Deleted { by_request: true } => f.write_str("deleted by request"),
            Self::Deleted { by_request: false } => f.write_str("deleted, as nothing is left of it"),
        }
    }
}

impl fmt::Display for LeaveCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked { reason } => return write!(f, "it left{}", Said(reason)),
            Self::SessionTimeout => "it was silent for longer than its session timeout",
            Self::Disconnected => "its connection was lost before it was told its id",
            Self::RebalanceTimeout => "it did not join again within the rebalance timeout",
            Self::NeverJoined => "it never used the id that it had asked for",
            Self::NeverSynced => "it did not ask for its assignment within the rebalance timeout",
            Self::GroupTooLarge => "the group has no place for it",
        })
    }
}

impl fmt::Display for RebalanceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemberJoined(member_id) => write!(f, "{member_id} joined"),
            Self::MemberRejoined { member_id, reason } => {
                write!(f, "{member_id} joined again{}", Said(reason))
            }
            Self::LeaderRejoined { member_id, reason } => {
                write!(f, "the leader {member_id} joined again{}", Said(reason))
            }
            Self::StaticMemberReplaced { instance_id } => {
                write!(f, "static member {instance_id} came back")
            }
            Self::MemberLeft { member_id, cause } => write!(f, "{member_id} is out: {cause}"),
            Self::AssignmentNotRecorded => f.write_str("the assignment could not be recorded"),
            Self::LoadedTooLarge => f.write_str("the loaded group is too large"),
        }
    }
}

/// A member, with its instance id if it has one.
struct Who<'a>(&'a MemberId, Option<&'a InstanceId>);

impl fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(member_id, instance_id) = self;
        match instance_id {
            Some(instance_id) => write!(f, "static member {instance_id} ({member_id})"),
            None => write!(f, "member {member_id}"),
        }
    }
}

/// The reason that a client gave.
struct Said<'a>(&'a Option<Arc<str>>);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .as_ref()
            .map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}
