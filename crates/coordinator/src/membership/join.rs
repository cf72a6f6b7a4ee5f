use std::sync::Arc;

use highwater_types::ErrorCode;

use crate::answer::{GroupAnswer, GroupState, JoinAnswer};
use crate::coordinator::MemberCaller;
use crate::group::{Group, Member, Phase, StoredGroup, Waiting};
use crate::happening::{GroupEvent, LeaveCause, RebalanceCause};
use crate::ids::RequestId;
use crate::record::Record;
use crate::request::JoinRequest;
use crate::step::Step;
use crate::timers::Timer;
use crate::{GenerationId, MemberId};

/// The longest text that is taken into a group: records hold at most 32,767 bytes of each, and a
/// member id is longer than what it is made of.
const TEXT_BYTES_MAX: usize = 32_000;
const REASON_BYTES_MAX: usize = 255;

impl JoinAnswer {
    /// An answer that says why the member is not in the generation.
    pub(crate) fn refusal(member_id: MemberId, error: ErrorCode) -> Self {
        Self {
            error,
            generation_id: GenerationId::NONE,
            protocol_type: None,
            protocol_name: None,
            leader: MemberId::default(),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        }
    }
}

/// Whether the request itself is in order, before any group is asked.
pub(crate) fn check_request(step: &Step<'_>, request: &JoinRequest) -> Result<(), ErrorCode> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID);
    }
    let bounds = step.settings.session_timeout_min..=step.settings.session_timeout_max;
    if !bounds.contains(&request.session_timeout) {
        return Err(ErrorCode::INVALID_SESSION_TIMEOUT);
    }
    // What no record can hold would keep the whole group from ever being recorded.
    let instance_id = request.instance_id.as_ref().map_or("", |it| it.as_str());
    let names = request.protocols.iter().map(|it| it.name.as_ref());
    let mut texts = names.chain([request.protocol_type.as_ref(), instance_id]);
    if texts.any(|it| it.len() > TEXT_BYTES_MAX) {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    Ok(())
}

impl Group {
    /// Records the group as one that nobody has joined, as Kafka does with the first request.
    pub(crate) fn found(&mut self, step: &mut Step<'_>) -> Result<(), ErrorCode> {
        let foreign = self.foreign.as_ref();
        let mut records = foreign.map_or_else(Vec::new, |it| it.tombstones());
        records.push(Record::Group(Some(StoredGroup::new(step.now.wall))));
        step.commit(self, &records)
            .map_err(|why| why.error_code())?;
        self.members.state_timestamp = step.now.wall;
        Ok(())
    }

    /// Decides a JoinGroup whose request is in order.
    pub(crate) fn join(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        caller: &MemberCaller,
        request: JoinRequest,
    ) {
        if let Err(error) = self.check_join(step, &request) {
            // As in Kafka a member that is one too many is told so without its id.
            let is_too_many = error == ErrorCode::GROUP_MAX_SIZE_REACHED;
            let echo = if is_too_many {
                MemberId::default()
            } else {
                request.member_id.clone()
            };
            self.answer_join(step, Some(id), JoinAnswer::refusal(echo, error));
            if is_too_many {
                self.drop_surplus(step, &request.member_id);
            }
        } else if request.member_id.is_empty() {
            self.join_new(step, id, caller, request);
        } else if self.members.pending.contains(&request.member_id) {
            let member_id = request.member_id.clone();
            self.add_member(step, id, caller, member_id, request);
        } else {
            self.join_again(step, id, request);
        }
    }

    /// Whether the group has a place for the member. Kafka asks in this order.
    pub(crate) fn check_join(
        &self,
        step: &Step<'_>,
        request: &JoinRequest,
    ) -> Result<(), ErrorCode> {
        if !self.has_place(step, &request.member_id) {
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        if !self
            .members
            .supports(&request.protocol_type, &request.protocols)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        let id = &request.member_id;
        if id.is_empty() {
            return Ok(());
        }
        if self.members.pending.contains(id) {
            // A static member never gets an id beforehand.
            let is_static = request.instance_id.is_some();
            return if is_static {
                Err(ErrorCode::UNKNOWN_MEMBER_ID)
            } else {
                Ok(())
            };
        }
        self.members.check(id, request.instance_id.as_ref())
    }

    /// KIP-389. While members join again, those who come first have the places: so a group that
    /// is too large, as the limit was lowered, loses its last ones.
    fn has_place(&self, step: &Step<'_>, id: &MemberId) -> bool {
        let places = step.settings.members_max;
        match self.members.phase {
            Phase::Empty => true,
            Phase::Preparing { .. } => {
                let joins = self.members.get(id).is_some_and(Member::waits_for_join);
                joins || self.members.joining() < places
            }
            Phase::Completing { .. } | Phase::Stable { .. } => {
                self.members.contains(id) || self.members.len() < places
            }
        }
    }

    fn drop_surplus(&mut self, step: &mut Step<'_>, id: &MemberId) {
        self.drop_member(step, id, LeaveCause::GroupTooLarge);
        self.complete_join_if_all(step);
    }

    fn join_new(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        caller: &MemberCaller,
        request: JoinRequest,
    ) {
        let mut member_id = new_member_id(step, caller, &request);
        while self.members.contains(&member_id) || self.members.pending.contains(&member_id) {
            member_id = new_member_id(step, caller, &request);
        }
        let instance_id = request.instance_id.clone();
        let old = instance_id.and_then(|it| self.members.of_instance(&it).cloned());
        if let Some(old) = old {
            self.replace_static(step, id, old, member_id, request);
        } else if request.member_id_required && request.instance_id.is_none() {
            let at = step.now.mono.plus(request.session_timeout);
            step.timers
                .set(Timer::Session(self.id.clone(), member_id.clone()), at);
            self.members.pending.insert(member_id.clone());
            let answer = JoinAnswer::refusal(member_id, ErrorCode::MEMBER_ID_REQUIRED);
            self.answer_join(step, Some(id), answer);
        } else {
            self.add_member(step, id, caller, member_id, request);
        }
    }

    fn add_member(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        caller: &MemberCaller,
        member_id: MemberId,
        request: JoinRequest,
    ) {
        if let Phase::Preparing {
            initial: Some(initial),
        } = &mut self.members.phase
        {
            initial.member_added = true;
        }
        if self.members.is_empty() {
            self.members.protocol_type = Some(request.protocol_type.clone());
        }
        let member = Member {
            instance_id: request.instance_id.clone(),
            client_id: caller.client_id.clone(),
            client_host: caller.client_host.clone(),
            session_timeout: request.session_timeout,
            rebalance_timeout: request.rebalance_timeout.unwrap_or(request.session_timeout),
            protocols: request.protocols,
            assignment: bytes::Bytes::new(),
            is_new: true,
            knows_no_id: request.member_id.is_empty(),
            waiting: Waiting::No,
        };
        self.members.add(member_id.clone(), member);
        self.park(step, &member_id, Waiting::Join(Some(id)));
        // It cannot heartbeat while its join is parked, and a lost connection may go unnoticed.
        let at = step.now.mono.plus(step.settings.new_member_join_timeout);
        step.timers
            .set(Timer::Session(self.id.clone(), member_id.clone()), at);
        let joined = GroupEvent::Joined {
            member_id: member_id.clone(),
            instance_id: request.instance_id,
            client_id: caller.client_id.clone(),
            client_host: caller.client_host.clone(),
        };
        step.happened(self, joined);
        self.rebalance_or_complete(step, RebalanceCause::MemberJoined(member_id));
    }

    /// A member that is one already joins.
    fn join_again(&mut self, step: &mut Step<'_>, id: RequestId, request: JoinRequest) {
        let member_id = request.member_id.clone();
        let is_leader = self.members.is_leader(&member_id);
        let member = self.members.get(&member_id).expect("checked above");
        let is_unchanged = member.protocols == request.protocols;
        let state = self.members.phase.state();
        // In a completed join phase it may not have got the answer. The leader of a stable group
        // comes to have partitions assigned anew.
        let stays = match state {
            GroupState::CompletingRebalance => is_unchanged,
            GroupState::Stable => is_unchanged && !is_leader,
            _ => false,
        };
        if stays {
            let answer = self.generation_answer(&member_id);
            self.answer_join(step, Some(id), answer);
            return;
        }
        let reason = bounded_reason(request.reason.as_ref());
        let cause = if is_leader && state == GroupState::Stable {
            let member_id = member_id.clone();
            RebalanceCause::LeaderRejoined { member_id, reason }
        } else {
            let member_id = member_id.clone();
            RebalanceCause::MemberRejoined { member_id, reason }
        };
        self.update_member(&member_id, request);
        self.park(step, &member_id, Waiting::Join(Some(id)));
        self.rebalance_or_complete(step, cause);
    }

    /// Takes over what a member says of itself when it joins again.
    pub(super) fn update_member(&mut self, member_id: &MemberId, request: JoinRequest) {
        self.members.set_protocols(member_id, request.protocols);
        let member = self
            .members
            .member_mut(member_id)
            .expect("asked of a member");
        member.session_timeout = request.session_timeout;
        member.rebalance_timeout = request.rebalance_timeout.unwrap_or(request.session_timeout);
    }

    /// The answer of a completed join phase.
    pub(super) fn generation_answer(&self, member_id: &MemberId) -> JoinAnswer {
        let is_leader = self.members.is_leader(member_id);
        JoinAnswer {
            error: ErrorCode::NONE,
            generation_id: self.members.generation_id,
            protocol_type: self.members.protocol_type.clone(),
            protocol_name: self.members.protocol_name.clone(),
            leader: self.members.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: member_id.clone(),
            members: if is_leader {
                self.members.for_leader()
            } else {
                Vec::new()
            },
        }
    }

    /// Sends a join's answer, unless its connection is gone.
    pub(super) fn answer_join(
        &self,
        step: &mut Step<'_>,
        request: Option<RequestId>,
        answer: JoinAnswer,
    ) {
        self.answer_to(step, request, self.stored_end, GroupAnswer::Join(answer));
    }
}

/// A reason that a client gives, as much of it as is kept: clients cut theirs at 255 (KIP-800).
pub(super) fn bounded_reason(reason: Option<&Arc<str>>) -> Option<Arc<str>> {
    let reason = reason?;
    let end = reason.floor_char_boundary(REASON_BYTES_MAX);
    Some(reason.get(..end).map_or_else(|| reason.clone(), Arc::from))
}

/// Kafka's form: the client id, or the instance id of a static member, a dash, a random uuid.
fn new_member_id(step: &mut Step<'_>, caller: &MemberCaller, request: &JoinRequest) -> MemberId {
    let name = match &request.instance_id {
        Some(instance_id) => instance_id.as_str(),
        None => &caller.client_id,
    };
    let end = name.floor_char_boundary(TEXT_BYTES_MAX);
    let name = name.get(..end).unwrap_or(name);
    MemberId::from(format!("{name}-{}", step.random.uuid_text()))
}
