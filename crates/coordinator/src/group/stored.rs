use std::sync::Arc;

use bytes::Bytes;
use highwater_records::stored::coordinator::GroupMetadataValue;
use highwater_records::stored::coordinator::group_metadata_value::MemberMetadata;
use highwater_types::{Millis, WallMs};

use super::member::{Member, Waiting};
use crate::request::JoinProtocol;
use crate::{GenerationId, InstanceId, MemberId};

/// A group as its newest record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredGroup {
    /// Empty when nobody ever joined.
    pub(crate) protocol_type: Arc<str>,
    pub(crate) generation_id: GenerationId,
    /// `None` in an empty group.
    pub(crate) protocol_name: Option<Arc<str>>,
    /// `None` in an empty group.
    pub(crate) leader: Option<MemberId>,
    /// When the group came into its state, or -1: how long a group is empty counts from here.
    pub(crate) state_timestamp: WallMs,
    pub(crate) members: Vec<StoredMember>,
}

/// A member as its group's record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredMember {
    pub(crate) member_id: MemberId,
    pub(crate) instance_id: Option<InstanceId>,
    pub(crate) client_id: Arc<str>,
    pub(crate) client_host: Arc<str>,
    pub(crate) session_timeout: Millis,
    pub(crate) rebalance_timeout: Millis,
    /// The member's metadata for the group's protocol.
    pub(crate) subscription: Bytes,
    pub(crate) assignment: Bytes,
}

impl StoredGroup {
    /// Of a group that nobody has joined yet, as Kafka records it with the first request to join.
    pub(crate) fn new(state_timestamp: WallMs) -> Self {
        Self {
            protocol_type: "".into(),
            generation_id: GenerationId::default(),
            protocol_name: None,
            leader: None,
            state_timestamp,
            members: Vec::new(),
        }
    }

    pub(crate) fn to_value(&self) -> GroupMetadataValue {
        GroupMetadataValue {
            protocol_type: self.protocol_type.as_ref().to_owned(),
            generation: self.generation_id.raw(),
            protocol: self.protocol_name.as_deref().map(str::to_owned),
            leader: self.leader.as_ref().map(|it| it.as_str().to_owned()),
            current_state_timestamp: self.state_timestamp.raw(),
            members: self.members.iter().map(StoredMember::to_value).collect(),
        }
    }

    /// Reads a record's value of any version that Kafka wrote.
    pub(crate) fn from_value(value: GroupMetadataValue) -> Self {
        Self {
            protocol_type: value.protocol_type.into(),
            generation_id: GenerationId::new(value.generation),
            protocol_name: value.protocol.map(Into::into),
            leader: value.leader.map(Into::into),
            state_timestamp: WallMs::new(value.current_state_timestamp),
            members: value
                .members
                .into_iter()
                .map(StoredMember::from_value)
                .collect(),
        }
    }
}

impl StoredMember {
    /// The member that it is after a load.
    pub(super) fn to_member(&self, protocols: Vec<JoinProtocol>) -> Member {
        Member {
            instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            session_timeout: self.session_timeout,
            rebalance_timeout: self.rebalance_timeout,
            protocols,
            assignment: self.assignment.clone(),
            is_new: false,
            knows_no_id: false,
            waiting: Waiting::No,
        }
    }

    fn to_value(&self) -> MemberMetadata {
        MemberMetadata {
            member_id: self.member_id.as_str().to_owned(),
            group_instance_id: self.instance_id.as_ref().map(|it| it.as_str().to_owned()),
            client_id: self.client_id.as_ref().to_owned(),
            client_host: self.client_host.as_ref().to_owned(),
            rebalance_timeout: wire_ms(self.rebalance_timeout),
            session_timeout: wire_ms(self.session_timeout),
            subscription: self.subscription.clone(),
            assignment: self.assignment.clone(),
        }
    }

    fn from_value(value: MemberMetadata) -> Self {
        let session_timeout = Millis::from_wire(value.session_timeout);
        // Before version 1 there was one timeout.
        let rebalance_timeout = match value.rebalance_timeout {
            -1 => session_timeout,
            other => Millis::from_wire(other),
        };
        Self {
            member_id: value.member_id.into(),
            instance_id: value.group_instance_id.map(Into::into),
            client_id: value.client_id.into(),
            client_host: value.client_host.into(),
            session_timeout,
            rebalance_timeout,
            subscription: value.subscription,
            assignment: value.assignment,
        }
    }
}

fn wire_ms(span: Millis) -> i32 {
    i32::try_from(span.as_u64()).unwrap_or(i32::MAX)
}
