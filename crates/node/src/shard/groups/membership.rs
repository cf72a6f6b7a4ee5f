//! JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

use std::sync::Arc;

use bytes::Bytes;
use highwater_coordinator::{
    Assigned, GenerationId, GroupAnswer, GroupRequest, HeartbeatRequest as HeartbeatQuestion,
    InstanceId, JoinAnswer, JoinProtocol, JoinRequest, LeaveAnswer, LeaveRequest, LeavingMember,
    SyncAnswer, SyncRequest,
};
use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    heartbeat_request::HeartbeatRequest,
    heartbeat_response::HeartbeatResponse,
    join_group_request::JoinGroupRequest,
    join_group_response::{JoinGroupResponse, JoinGroupResponseMember},
    leave_group_request::{LeaveGroupRequest, MemberIdentity},
    leave_group_response::{LeaveGroupResponse, MemberResponse},
    sync_group_request::SyncGroupRequest,
    sync_group_response::SyncGroupResponse,
};
use highwater_types::{ErrorCode, Millis, Now};

use super::RowAnswer;
use super::ask::ComposeContext;
use crate::authorizer::{Operation, Resource};
use crate::machine::Incoming;
use crate::shard::requests::push_answer;
use crate::shard::{Effects, Shard};

/// The first JoinGroup version that carries a rebalance timeout.
const REBALANCE_TIMEOUT_SINCE: i16 = 1;
/// The first JoinGroup version whose clients know MEMBER_ID_REQUIRED (KIP-394).
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;
/// The first JoinGroup version that may have no protocol name.
const PROTOCOL_NAME_NULLABLE_SINCE: i16 = 7;
/// The first JoinGroup version that can tell a leader not to assign (KIP-814).
const SKIP_ASSIGNMENT_SINCE: i16 = 9;
/// From this SyncGroup version on members say which protocol they believe in (KIP-559).
const SYNC_NAMES_PROTOCOL_SINCE: i16 = 5;
/// The first LeaveGroup version that names several members (KIP-345).
const LEAVES_IN_BATCHES_SINCE: i16 = 3;
/// Names and metadata of one member's protocols. Far beyond what a group's record can hold, and
/// it bounds what a member that waits makes us hold.
const MEMBER_BYTES_MAX: usize = 4 << 20;
/// Assignments of one group: far beyond what its record can hold, also compressed.
const ASSIGNMENTS_BYTES_MAX: usize = 64 << 20;

impl<D: Disk> Shard<D> {
    pub(crate) fn handle_join_group(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: JoinGroupRequest,
        out: &mut Effects<D>,
    ) {
        let version = incoming.version;
        if let Err(error) = self.check_join(incoming, &request) {
            let response = join_response(version, not_joined(&request.member_id, error));
            push_answer(incoming.ticket, version, &response, out);
            return;
        }
        let at = self.partition_of_group(&request.group_id);
        let member_id = request.member_id.clone();
        let question = (at, GroupRequest::Join(join_question(version, request)));
        let compose = Box::new(move |_: &ComposeContext<'_>, rows: Vec<RowAnswer>| {
            let answer = match only(rows) {
                Ok(GroupAnswer::Join(answer)) => answer,
                other => not_joined(&member_id, error_of(other)),
            };
            join_response(version, answer)
        });
        self.ask_coordinators(now, incoming, vec![question], compose, out);
    }

    pub(crate) fn handle_sync_group(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: SyncGroupRequest,
        out: &mut Effects<D>,
    ) {
        let respond = |answer: Result<SyncAnswer, ErrorCode>| -> Response {
            match answer {
                Ok(answer) => SyncGroupResponse {
                    throttle_time_ms: 0,
                    error_code: answer.error,
                    protocol_type: answer.protocol_type.as_deref().map(str::to_owned),
                    protocol_name: answer.protocol_name.as_deref().map(str::to_owned),
                    assignment: answer.assignment,
                },
                Err(error_code) => SyncGroupResponse {
                    error_code,
                    ..SyncGroupResponse::default()
                },
            }
            .into()
        };
        if let Err(error) = self.check_sync(incoming, &request) {
            push_answer(incoming.ticket, incoming.version, &respond(Err(error)), out);
            return;
        }
        let at = self.partition_of_group(&request.group_id);
        let question = (at, GroupRequest::Sync(sync_question(request)));
        let compose =
            Box::new(
                move |_: &ComposeContext<'_>, rows: Vec<RowAnswer>| match only(rows) {
                    Ok(GroupAnswer::Sync(answer)) => respond(Ok(answer)),
                    other => respond(Err(error_of(other))),
                },
            );
        self.ask_coordinators(now, incoming, vec![question], compose, out);
    }

    pub(crate) fn handle_group_heartbeat(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: HeartbeatRequest,
        out: &mut Effects<D>,
    ) {
        let respond = |error_code| -> Response {
            HeartbeatResponse {
                throttle_time_ms: 0,
                error_code,
            }
            .into()
        };
        if let Err(error) = self.check_member(incoming, &request.group_id) {
            push_answer(incoming.ticket, incoming.version, &respond(error), out);
            return;
        }
        let at = self.partition_of_group(&request.group_id);
        let question = HeartbeatQuestion {
            group_id: request.group_id.into(),
            generation_id: GenerationId::new(request.generation_id),
            member_id: request.member_id.into(),
            instance_id: request.group_instance_id.map(InstanceId::from),
        };
        let question = (at, GroupRequest::Heartbeat(question));
        let compose =
            Box::new(
                move |_: &ComposeContext<'_>, rows: Vec<RowAnswer>| match only(rows) {
                    Ok(GroupAnswer::Heartbeat(answer)) => respond(answer.error),
                    other => respond(error_of(other)),
                },
            );
        self.ask_coordinators(now, incoming, vec![question], compose, out);
    }

    pub(crate) fn handle_leave_group(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: LeaveGroupRequest,
        out: &mut Effects<D>,
    ) {
        let version = incoming.version;
        if let Err(error) = self.check_member(incoming, &request.group_id) {
            let response = leave_response(version, not_left(error));
            push_answer(incoming.ticket, version, &response, out);
            return;
        }
        let at = self.partition_of_group(&request.group_id);
        let question = (at, GroupRequest::Leave(leave_question(version, request)));
        let compose = Box::new(move |_: &ComposeContext<'_>, rows: Vec<RowAnswer>| {
            let answer = match only(rows) {
                Ok(GroupAnswer::Leave(answer)) => answer,
                other => not_left(error_of(other)),
            };
            leave_response(version, answer)
        });
        self.ask_coordinators(now, incoming, vec![question], compose, out);
    }

    /// What Kafka looks at before the coordinator is asked.
    fn check_join(&self, incoming: &Incoming, request: &JoinGroupRequest) -> Result<(), ErrorCode> {
        self.check_member(incoming, &request.group_id)?;
        let settings = &self.groups.settings.coordinator;
        let session = Millis::from_wire(request.session_timeout_ms);
        let allowed = settings.session_timeout_min..=settings.session_timeout_max;
        if request.session_timeout_ms < 0 || !allowed.contains(&session) {
            return Err(ErrorCode::INVALID_SESSION_TIMEOUT);
        }
        let protocols = request.protocols.iter();
        let bytes: usize = protocols.map(|it| it.name.len() + it.metadata.len()).sum();
        if bytes > MEMBER_BYTES_MAX {
            return Err(ErrorCode::MESSAGE_TOO_LARGE);
        }
        Ok(())
    }

    /// What Kafka looks at before the coordinator is asked.
    fn check_sync(&self, incoming: &Incoming, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        let unnamed = request.protocol_type.is_none() || request.protocol_name.is_none();
        if unnamed && incoming.version >= SYNC_NAMES_PROTOCOL_SINCE {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        self.check_member(incoming, &request.group_id)?;
        let assignments = request.assignments.iter();
        let bytes: usize = assignments.map(|it| it.assignment.len()).sum();
        if bytes > ASSIGNMENTS_BYTES_MAX {
            return Err(ErrorCode::MESSAGE_TOO_LARGE);
        }
        Ok(())
    }

    /// Who is, or wants to be, a member reads its group; the group has a name.
    fn check_member(&self, incoming: &Incoming, group_id: &str) -> Result<(), ErrorCode> {
        let group = Resource::Group(group_id);
        if !self.allows(&incoming.caller, Operation::Read, group) {
            return Err(ErrorCode::GROUP_AUTHORIZATION_FAILED);
        }
        if group_id.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        Ok(())
    }
}

/// The answer to the only row.
pub(super) fn only(rows: Vec<RowAnswer>) -> RowAnswer {
    let mut rows = rows.into_iter();
    rows.next().expect("one question was asked")
}

/// Why there is no answer of the kind that was asked for.
///
/// # Panics
/// When there is one: coordinators answer with the variant of the request.
pub(super) fn error_of(answer: RowAnswer) -> ErrorCode {
    match answer {
        Err(error) => error,
        Ok(answer) => unreachable!("a coordinator answered something else: {answer:?}"),
    }
}

/// Bytes of their own: those of a request would keep its whole frame.
fn own(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn text(text: Option<String>) -> Option<Arc<str>> {
    text.map(Arc::from)
}

fn join_question(version: i16, request: JoinGroupRequest) -> JoinRequest {
    let rebalance_timeout = (version >= REBALANCE_TIMEOUT_SINCE)
        .then(|| Millis::from_wire(request.rebalance_timeout_ms));
    let protocols = request.protocols.into_iter().map(|it| JoinProtocol {
        name: it.name.into(),
        metadata: own(&it.metadata),
    });
    JoinRequest {
        group_id: request.group_id.into(),
        member_id: request.member_id.into(),
        instance_id: request.group_instance_id.map(InstanceId::from),
        session_timeout: Millis::from_wire(request.session_timeout_ms),
        rebalance_timeout,
        protocol_type: request.protocol_type.into(),
        protocols: protocols.collect(),
        reason: text(request.reason),
        member_id_required: version >= MEMBER_ID_REQUIRED_SINCE,
        knows_skip_assignment: version >= SKIP_ASSIGNMENT_SINCE,
    }
}

fn not_joined(member_id: &str, error: ErrorCode) -> JoinAnswer {
    JoinAnswer {
        error,
        generation_id: GenerationId::NONE,
        protocol_type: None,
        protocol_name: None,
        leader: "".into(),
        skip_assignment: false,
        member_id: member_id.into(),
        members: Vec::new(),
    }
}

fn join_response(version: i16, answer: JoinAnswer) -> Response {
    let nameless = (version < PROTOCOL_NAME_NULLABLE_SINCE).then(String::new);
    let members = answer
        .members
        .into_iter()
        .map(|it| JoinGroupResponseMember {
            member_id: it.member_id.to_string(),
            group_instance_id: it.instance_id.map(|id| id.to_string()),
            metadata: it.metadata,
        });
    JoinGroupResponse {
        throttle_time_ms: 0,
        error_code: answer.error,
        generation_id: answer.generation_id.raw(),
        protocol_type: answer.protocol_type.as_deref().map(str::to_owned),
        protocol_name: answer
            .protocol_name
            .as_deref()
            .map(str::to_owned)
            .or(nameless),
        leader: answer.leader.to_string(),
        skip_assignment: answer.skip_assignment,
        member_id: answer.member_id.to_string(),
        members: members.collect(),
    }
    .into()
}

fn sync_question(request: SyncGroupRequest) -> SyncRequest {
    let assignments = request.assignments.into_iter().map(|it| Assigned {
        member_id: it.member_id.into(),
        assignment: own(&it.assignment),
    });
    SyncRequest {
        group_id: request.group_id.into(),
        generation_id: GenerationId::new(request.generation_id),
        member_id: request.member_id.into(),
        instance_id: request.group_instance_id.map(InstanceId::from),
        protocol_type: text(request.protocol_type),
        protocol_name: text(request.protocol_name),
        assignments: assignments.collect(),
    }
}

fn leave_question(version: i16, request: LeaveGroupRequest) -> LeaveRequest {
    let member = |it: MemberIdentity| LeavingMember {
        member_id: it.member_id.into(),
        instance_id: it.group_instance_id.map(InstanceId::from),
        reason: text(it.reason),
    };
    let members = if version >= LEAVES_IN_BATCHES_SINCE {
        request.members.into_iter().map(member).collect()
    } else {
        vec![LeavingMember {
            member_id: request.member_id.into(),
            instance_id: None,
            reason: None,
        }]
    };
    LeaveRequest {
        group_id: request.group_id.into(),
        members,
    }
}

const fn not_left(error: ErrorCode) -> LeaveAnswer {
    LeaveAnswer {
        error,
        members: Vec::new(),
    }
}

/// Up to v2 there is one member, and its error is that of the request.
fn leave_response(version: i16, answer: LeaveAnswer) -> Response {
    if version < LEAVES_IN_BATCHES_SINCE {
        let of_member = answer.members.first().map(|it| it.error);
        let error_code = of_member
            .filter(|_| !answer.error.is_error())
            .unwrap_or(answer.error);
        return LeaveGroupResponse {
            error_code,
            ..LeaveGroupResponse::default()
        }
        .into();
    }
    let members = answer.members.into_iter().map(|it| MemberResponse {
        member_id: it.member_id.to_string(),
        group_instance_id: it.instance_id.map(|id| id.to_string()),
        error_code: it.error,
    });
    LeaveGroupResponse {
        throttle_time_ms: 0,
        error_code: answer.error,
        members: members.collect(),
    }
    .into()
}
