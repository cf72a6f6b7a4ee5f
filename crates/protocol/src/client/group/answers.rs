//! What a member makes of answers.

use highwater_types::{ErrorCode, Mono};

use super::assignor::wanted_topics;
use super::member::{PROTOCOL_TYPE, Stage, refused};
use super::{
    Assignor, CallId, GroupCoordinator, GroupError, GroupMember, GroupMemberView, MemberIdentity,
    MemberOutput, PartitionSet, Rebalancing, Subscription, decode_assignment,
};
use crate::messages::join_group_response::JoinGroupResponseMember;
use crate::messages::{FindCoordinatorResponse, JoinGroupResponse, SyncGroupResponse};
use crate::response::Response;

impl GroupMember {
    /// Takes the answer to a call. One that is not waited for any more is skipped.
    pub fn handle_answer(
        &mut self,
        now: Mono,
        id: CallId,
        answer: Response,
        out: &mut Vec<MemberOutput>,
    ) {
        if self.call != Some(id) {
            return;
        }
        self.call = None;
        match (&self.stage, answer) {
            (_, Response::FindCoordinator(answer)) => self.found(now, &answer, out),
            (Stage::Joining, Response::JoinGroup(answer)) => self.joined(now, answer, out),
            (Stage::Syncing { protocol, .. }, Response::SyncGroup(answer)) => {
                let protocol = *protocol;
                self.synced(now, protocol, &answer, out);
            }
            (Stage::Stable | Stage::Releasing, Response::Heartbeat(answer)) => {
                self.heard(now, answer.error_code, out);
            }
            // Whatever the coordinator says: who wants to leave is gone.
            (Stage::Leaving { idle, .. }, _) => {
                let idle = *idle;
                self.left(idle, out);
            }
            // The heartbeat was under way when joining was decided; the join tells more.
            (Stage::Joining, Response::Heartbeat(_)) => {}
            // An answer to another question: the driver's mistake, or the broker's.
            _ => self.pause(now),
        }
        self.drive(now, out);
    }

    /// A call was not answered: the connection broke, could not be made, or the answer did not
    /// come in time. The coordinator is looked for anew.
    pub fn handle_failure(&mut self, now: Mono, id: CallId, out: &mut Vec<MemberOutput>) {
        if self.call != Some(id) {
            return;
        }
        self.call = None;
        self.coordinator = None;
        self.pause(now);
        match self.stage {
            // It may have been carried out; only joining again tells.
            Stage::Syncing { .. } => self.stage = Stage::Joining,
            Stage::Leaving { idle, .. } => self.left(idle, out),
            _ => {}
        }
        self.drive(now, out);
    }

    /// A commit or an offset fetch under `identity` was answered with `code`: what that says about
    /// the membership. Codes that say nothing about it are skipped.
    pub fn handle_offsets_refused(
        &mut self,
        now: Mono,
        identity: &MemberIdentity,
        code: ErrorCode,
        out: &mut Vec<MemberOutput>,
    ) {
        let is_current = self.identity().as_ref() == Some(identity);
        match code {
            ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                self.coordinator = None;
            }
            ErrorCode::REBALANCE_IN_PROGRESS if is_current && self.stage == Stage::Stable => {
                self.rejoin("a commit came while the group rebalances", out);
            }
            ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::FENCED_INSTANCE_ID
                // Who is joining may be in the next generation without having heard of it; the
                // answer to that join tells.
                if is_current && matches!(self.stage, Stage::Stable | Stage::Releasing) =>
            {
                self.call = None;
                self.expelled(code, out);
            }
            _ => {}
        }
        self.drive(now, out);
    }

    fn found(&mut self, now: Mono, answer: &FindCoordinatorResponse, out: &mut Vec<MemberOutput>) {
        match coordinator_of(answer, &self.config.group_id) {
            Ok(coordinator) => {
                self.coordinator = Some(coordinator);
                // A new coordinator gives the member its whole session.
                self.heartbeat_at = self.heartbeat_at.min(now);
            }
            Err(code) if code.is_retriable() => self.pause(now),
            Err(code) => self.fail(refused("find the group's coordinator", code), out),
        }
    }

    fn joined(&mut self, now: Mono, answer: JoinGroupResponse, out: &mut Vec<MemberOutput>) {
        match answer.error_code {
            ErrorCode::NONE => self.enter(now, answer, out),
            ErrorCode::MEMBER_ID_REQUIRED => self.member_id = answer.member_id,
            code => self.not_joined(now, code, "join the group", out),
        }
    }

    fn not_joined(
        &mut self,
        now: Mono,
        code: ErrorCode,
        what: &'static str,
        out: &mut Vec<MemberOutput>,
    ) {
        self.stage = Stage::Joining;
        match code {
            ErrorCode::REBALANCE_IN_PROGRESS => self.pause(now),
            ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                self.coordinator = None;
                self.pause(now);
            }
            ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::FENCED_INSTANCE_ID => {
                self.pause(now);
                self.expelled(code, out);
            }
            code if code.is_retriable() => self.pause(now),
            code => self.fail(refused(what, code), out),
        }
    }

    /// In a new generation; as its leader, deals.
    fn enter(&mut self, now: Mono, answer: JoinGroupResponse, out: &mut Vec<MemberOutput>) {
        let protocol_type = answer.protocol_type.as_deref().unwrap_or(PROTOCOL_TYPE);
        let name = answer.protocol_name.as_deref().unwrap_or_default();
        let protocol = Assignor::from_name(name)
            .filter(|it| protocol_type == PROTOCOL_TYPE && self.config.assignors.contains(it));
        let Some(protocol) = protocol else {
            let theirs = format!("{protocol_type} {name}");
            self.fail(GroupError::Protocol { theirs }, out);
            return;
        };
        self.failures = 0;
        self.heartbeat_at = now.plus(self.config.heartbeat_interval);
        let leads = answer.leader == answer.member_id;
        self.member_id = answer.member_id;
        self.generation = Some(answer.generation_id);
        self.dealt = None;
        let members: Vec<_> = answer.members.iter().map(view_of).collect();
        if leads {
            let topics = wanted_topics(&members);
            self.stage = Stage::Dealing {
                protocol,
                members,
                skips: answer.skip_assignment,
            };
            out.push(MemberOutput::CountTopics(topics));
        } else {
            let assignments = Vec::new();
            self.stage = Stage::Syncing {
                protocol,
                assignments,
            };
        }
    }

    fn synced(
        &mut self,
        now: Mono,
        protocol: Assignor,
        answer: &SyncGroupResponse,
        out: &mut Vec<MemberOutput>,
    ) {
        if answer.error_code == ErrorCode::REBALANCE_IN_PROGRESS {
            // Somebody came or went since: the next generation begins at once.
            "the group rebalances".clone_into(&mut self.reason);
            self.stage = Stage::Joining;
            return;
        }
        if answer.error_code.is_error() {
            "it could not sync".clone_into(&mut self.reason);
            self.not_joined(now, answer.error_code, "fetch the assignment", out);
            return;
        }
        let other_type = answer
            .protocol_type
            .as_deref()
            .is_some_and(|it| it != PROTOCOL_TYPE);
        let other_name = answer
            .protocol_name
            .as_deref()
            .is_some_and(|it| it != protocol.name());
        if other_type || other_name {
            let name = |it: &Option<String>| it.clone().unwrap_or_default();
            let theirs = format!(
                "{} {}",
                name(&answer.protocol_type),
                name(&answer.protocol_name)
            );
            self.fail(GroupError::Protocol { theirs }, out);
            return;
        }
        match decode_assignment(&answer.assignment) {
            Ok(assigned) => self.settle(now, assigned, out),
            Err(why) => self.fail(GroupError::Assignment(why), out),
        }
    }

    /// Takes over an assignment, as far as it still wants it.
    fn settle(&mut self, now: Mono, mut assigned: PartitionSet, out: &mut Vec<MemberOutput>) {
        assigned.retain(|it| self.topics.contains(&it.topic));
        self.failures = 0;
        self.heartbeat_at = now.plus(self.config.heartbeat_interval);
        self.stage = Stage::Stable;
        let before = std::mem::replace(&mut self.owned, assigned);
        let new: PartitionSet = self.owned.difference(&before).cloned().collect();
        let given_up: PartitionSet = before.difference(&self.owned).cloned().collect();
        if Assignor::rebalancing(&self.config.assignors) == Rebalancing::Eager {
            assert!(
                before.is_empty(),
                "who rebalances eagerly gave up everything"
            );
        }
        if !given_up.is_empty() {
            "it gave up partitions that are to move".clone_into(&mut self.reason);
            self.stage = Stage::Releasing;
            out.push(MemberOutput::Revoke(given_up));
        }
        out.push(MemberOutput::Assigned(new));
        if self.stage == Stage::Stable && self.joined_topics != self.topics {
            self.rejoin("its subscription changed", out);
        }
    }

    fn heard(&mut self, now: Mono, code: ErrorCode, out: &mut Vec<MemberOutput>) {
        match code {
            ErrorCode::NONE => self.failures = 0,
            // Who gives up partitions joins anyway, once that is done.
            ErrorCode::REBALANCE_IN_PROGRESS if self.stage == Stage::Releasing => {}
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.rejoin("the group rebalances", out);
            }
            ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                self.coordinator = None;
                self.pause(now);
            }
            ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::FENCED_INSTANCE_ID => self.expelled(code, out),
            code if code.is_retriable() => self.pause(now),
            code => self.fail(refused("heartbeat", code), out),
        }
    }

    /// The coordinator does not know us any more as what we say we are.
    fn expelled(&mut self, code: ErrorCode, out: &mut Vec<MemberOutput>) {
        if code == ErrorCode::FENCED_INSTANCE_ID {
            let instance_id = self.config.instance_id.clone().unwrap_or_default();
            self.fail(GroupError::Fenced { instance_id }, out);
            return;
        }
        self.lose(out);
        if code == ErrorCode::UNKNOWN_MEMBER_ID {
            self.member_id.clear();
        }
        self.reason = format!("the coordinator answered {code}");
        self.stage = Stage::Joining;
    }
}

/// The coordinator of `group_id` in an answer of any version, or why there is none.
///
/// # Errors
/// The answer's error code; [`ErrorCode::COORDINATOR_NOT_AVAILABLE`] when the group is not in it.
pub fn coordinator_of(
    answer: &FindCoordinatorResponse,
    group_id: &str,
) -> Result<GroupCoordinator, ErrorCode> {
    if answer.error_code.is_error() {
        return Err(answer.error_code);
    }
    let several = answer.coordinators.iter().find(|it| it.key == group_id);
    let (code, node, host, port) = match several {
        Some(it) => (it.error_code, it.node_id, &it.host, it.port),
        None if answer.coordinators.is_empty() => {
            (ErrorCode::NONE, answer.node_id, &answer.host, answer.port)
        }
        None => return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
    };
    if code.is_error() {
        return Err(code);
    }
    Ok(GroupCoordinator {
        node,
        host: host.clone(),
        port,
    })
}

/// A member as the leader is told of it. One whose words cannot be read gets nothing.
fn view_of(member: &JoinGroupResponseMember) -> GroupMemberView {
    GroupMemberView {
        member_id: member.member_id.clone(),
        instance_id: member.group_instance_id.clone(),
        subscription: Subscription::decode(&member.metadata).unwrap_or_default(),
    }
}
