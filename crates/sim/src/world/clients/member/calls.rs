//! The calls of a member: sent in its versions, answered or lost.

use highwater_protocol::client::group::{CallId, CallTo, MemberCall};
use highwater_protocol::{ApiKey, Response};
use highwater_types::{ErrorCode, Millis, Mono};

use super::super::World;
use super::super::requests::Purpose;
use super::hand_of;
use crate::check::{CoordinatorLife, GROUPS_TOPIC};
use crate::client::ClientId;

/// The versions that a member speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberVersions {
    find: i16,
    join: i16,
    sync: i16,
    heartbeat: i16,
    leave: i16,
    /// OffsetCommit.
    pub(crate) commit: i16,
    /// OffsetFetch.
    pub(crate) offset_fetch: i16,
    /// Fetch.
    pub(crate) fetch: i16,
}

impl MemberVersions {
    /// Of a client of today.
    pub(crate) const NEWEST: Self = Self {
        find: 6,
        join: 9,
        sync: 5,
        heartbeat: 4,
        leave: 5,
        commit: 10,
        offset_fetch: 10,
        fetch: 18,
    };
    /// The first with static members.
    pub(crate) const STATIC: Self = Self {
        find: 2,
        join: 5,
        sync: 3,
        heartbeat: 3,
        leave: 3,
        commit: 7,
        offset_fetch: 5,
        fetch: 11,
    };
    /// Before member ids had to be asked for.
    pub(crate) const OLD: Self = Self {
        find: 1,
        join: 2,
        sync: 1,
        heartbeat: 1,
        leave: 1,
        commit: 3,
        offset_fetch: 3,
        fetch: 7,
    };

    const fn of(&self, call: &MemberCall) -> i16 {
        match call {
            MemberCall::FindCoordinator { .. } => self.find,
            MemberCall::Join(_) => self.join,
            MemberCall::Sync(_) => self.sync,
            MemberCall::Heartbeat(_) => self.heartbeat,
            MemberCall::Leave { .. } => self.leave,
        }
    }
}

/// The one call of a member that waits for its answer.
#[derive(Debug)]
pub(crate) struct CallUnderWay {
    pub(super) id: CallId,
    pub(super) deadline: Mono,
    sent_at: Mono,
    /// What the group's generation was known to be at the sending.
    floor: Option<crate::check::JoinFloor>,
}

impl World {
    pub(super) fn send_member_call(
        &mut self,
        id: ClientId,
        (call, to): (CallId, &CallTo),
        what: MemberCall,
        timeout: Millis,
    ) {
        let now = self.now();
        self.member_talks_to(id, to);
        let Some(load) = self.member(id) else {
            return;
        };
        let version = load.versions.of(&what);
        let group = load.config.group_id.clone();
        let life = self.coordinators_life(id);
        let floor = matches!(what, MemberCall::Join(_))
            .then(|| self.checker.groups.join_floor(&group, life));
        let under_way = CallUnderWay {
            id: call,
            deadline: now.plus(timeout),
            sent_at: now,
            floor,
        };
        if let Some(load) = self.member_mut(id) {
            load.call = Some(under_way);
        }
        let purpose = Purpose::MemberCall(call);
        let asked = self.ask(id, &what.request(version), version, purpose);
        if asked.is_err() {
            self.member_lost_connection(id);
        }
    }

    /// Whom a member and its hand talk to from now on.
    fn member_talks_to(&mut self, id: ClientId, to: &CallTo) {
        let node = match to {
            CallTo::Coordinator(coordinator) => coordinator.node,
            CallTo::AnyBroker => match self.brokers().as_slice() {
                [only] => *only,
                _ => self.any_broker(id),
            },
        };
        if *to != CallTo::AnyBroker {
            self.client(hand_of(id)).node = node;
        }
        self.client(id).node = node;
    }

    /// Takes the answer to a call of a member.
    pub(in super::super) fn member_answered(
        &mut self,
        id: ClientId,
        call: CallId,
        response: Response,
    ) {
        let Some(load) = self.member_mut(id) else {
            return;
        };
        let Some(under_way) = load.call.take_if(|it| it.id == call) else {
            return;
        };
        if is_sign_of_life(&response) {
            load.heard_at = load.heard_at.max(Some(under_way.sent_at));
        }
        if let (Response::JoinGroup(answer), Some(floor)) = (&response, &under_way.floor)
            && answer.error_code == ErrorCode::NONE
        {
            let group = load.config.group_id.clone();
            let life = self.coordinators_life(id);
            let joined = (life, answer.generation_id);
            self.checker.groups.was_joined(&group, floor, joined);
        }
        if let Some(line) = refusal(&response) {
            self.tell(format!("member {}: {line}", id.0));
        }
        self.with_member(id, |load, now, out| {
            load.member.handle_answer(now, call, response, out);
        });
    }

    /// Names the life of the coordinator that a member talks to: it forgets what it did not record
    /// when its process ends, and when another leader takes over from it.
    fn coordinators_life(&self, id: ClientId) -> CoordinatorLife {
        let node = self.clients.get(&id).expect("a client of this world").node;
        CoordinatorLife {
            node,
            life: self.node(node).life,
            is_alone: self.brokers().len() == 1,
            leader_epochs: self.leader_epochs_of(node, GROUPS_TOPIC),
        }
    }
}

/// Whether the coordinator began the session anew when it answered so.
const fn is_sign_of_life(response: &Response) -> bool {
    match response {
        Response::JoinGroup(it) => matches!(it.error_code, ErrorCode::NONE),
        Response::SyncGroup(it) => matches!(it.error_code, ErrorCode::NONE),
        Response::Heartbeat(it) => matches!(
            it.error_code,
            ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS
        ),
        _ => false,
    }
}

fn refusal(response: &Response) -> Option<String> {
    let (api, code) = match response {
        Response::FindCoordinator(it) => {
            let first = it.coordinators.first();
            let code = first.map_or(it.error_code, |it| it.error_code);
            (ApiKey::FindCoordinator, code)
        }
        Response::JoinGroup(it) => (ApiKey::JoinGroup, it.error_code),
        Response::SyncGroup(it) => (ApiKey::SyncGroup, it.error_code),
        Response::Heartbeat(it) => (ApiKey::Heartbeat, it.error_code),
        Response::LeaveGroup(it) => (ApiKey::LeaveGroup, it.error_code),
        _ => return None,
    };
    code.is_error().then(|| format!("{api:?} {code}"))
}
