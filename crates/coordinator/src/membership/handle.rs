use highwater_types::{ErrorCode, Now, Offset};

use super::join;
use crate::answer::{
    DescribeAnswer, GroupAnswer, HeartbeatAnswer, JoinAnswer, LeaveAnswer, SyncAnswer,
};
use crate::appender::Appender;
use crate::coordinator::{Coordinator, MemberCaller};
use crate::group::Group;
use crate::ids::{GroupId, MemberId, RequestId};
use crate::output::Output;
use crate::request::{DescribeRequest, HeartbeatRequest, JoinRequest, LeaveRequest, SyncRequest};
use crate::step::Step;

/// What is at hand to answer one request.
pub(crate) struct Asked<'a> {
    pub(crate) now: Now,
    pub(crate) id: RequestId,
    pub(crate) log: &'a mut dyn Appender,
    pub(crate) out: &'a mut Vec<Output>,
}

impl Coordinator {
    pub(crate) fn join(&mut self, asked: Asked<'_>, caller: &MemberCaller, request: JoinRequest) {
        let Asked { now, id, log, out } = asked;
        let group_id = request.group_id.clone();
        let removed_end = self.removed_end;
        let (groups, mut step) = self.split(now, log, out);
        let step = &mut step;
        if let Err(error) = join::check_request(step, &request) {
            let answer = JoinAnswer::refusal(request.member_id, error);
            step.answer(id, Offset::ZERO, GroupAnswer::Join(answer));
            return;
        }
        if request.member_id.is_empty() {
            groups
                .entry(group_id.clone())
                .or_insert_with(|| Group::new(group_id.clone()));
        }
        match groups.get_mut(&group_id) {
            Some(group) => join_to(group, step, id, caller, request),
            None => {
                let error = ErrorCode::UNKNOWN_MEMBER_ID;
                let answer = JoinAnswer::refusal(request.member_id, error);
                step.answer(id, removed_end, GroupAnswer::Join(answer));
            }
        }
        self.settle(&group_id);
    }

    pub(crate) fn sync(&mut self, asked: Asked<'_>, request: SyncRequest) {
        let Asked { now, id, log, out } = asked;
        let group_id = request.group_id.clone();
        let removed_end = self.removed_end;
        let (groups, mut step) = self.split(now, log, out);
        let refusal = |error| GroupAnswer::Sync(SyncAnswer::refusal(error));
        if group_id.is_empty() {
            step.answer(id, Offset::ZERO, refusal(ErrorCode::INVALID_GROUP_ID));
        } else if let Some(group) = groups.get_mut(&group_id) {
            group.sync(&mut step, id, request);
        } else {
            step.answer(id, removed_end, refusal(ErrorCode::UNKNOWN_MEMBER_ID));
        }
        self.settle(&group_id);
    }

    pub(crate) fn heartbeat(&mut self, asked: Asked<'_>, request: &HeartbeatRequest) {
        let Asked { now, id, log, out } = asked;
        let removed_end = self.removed_end;
        let (groups, mut step) = self.split(now, log, out);
        let (after, error) = if request.group_id.is_empty() {
            (Offset::ZERO, ErrorCode::INVALID_GROUP_ID)
        } else if let Some(group) = groups.get(&request.group_id) {
            (group.stored_end, group.heartbeat(&mut step, request))
        } else {
            (removed_end, ErrorCode::UNKNOWN_MEMBER_ID)
        };
        step.answer(id, after, GroupAnswer::Heartbeat(HeartbeatAnswer { error }));
    }

    pub(crate) fn leave(&mut self, asked: Asked<'_>, request: LeaveRequest) {
        let Asked { now, id, log, out } = asked;
        let group_id = request.group_id.clone();
        let removed_end = self.removed_end;
        let (groups, mut step) = self.split(now, log, out);
        let (after, answer) = if group_id.is_empty() {
            let error = ErrorCode::INVALID_GROUP_ID;
            let members = Vec::new();
            (Offset::ZERO, LeaveAnswer { error, members })
        } else if let Some(group) = groups.get_mut(&group_id) {
            let answer = group.leave(&mut step, request);
            (group.stored_end, answer)
        } else {
            (removed_end, LeaveAnswer::nobody(request))
        };
        step.answer(id, after, GroupAnswer::Leave(answer));
        self.settle(&group_id);
    }

    pub(crate) fn describe(&mut self, asked: Asked<'_>, request: DescribeRequest) {
        let Asked { now, id, log, out } = asked;
        let removed_end = self.removed_end;
        let (groups, mut step) = self.split(now, log, out);
        let group = groups.get(&request.group_id);
        let after = group.map_or(removed_end, |group| group.stored_end);
        let answer = match group.filter(|group| group.foreign.is_none()) {
            Some(group) => group.describe(&step),
            None => {
                let is_other = group.is_some();
                DescribeAnswer::unknown(request.group_id, is_other, request.unknown_is_error)
            }
        };
        step.answer(id, after, GroupAnswer::Describe(answer));
    }

    /// What ends every change of a group: it is whole; and gone when nothing is left of it.
    pub(crate) fn settle(&mut self, group_id: &GroupId) {
        let Some(group) = self.groups.get(group_id) else {
            return;
        };
        group.members.assert_invariants();
        if group.is_vacant() {
            self.removed_end = self.removed_end.max(group.newest());
            self.groups.remove(group_id);
            self.timers.cancel_group(group_id);
        }
    }
}

fn join_to(
    group: &mut Group,
    step: &mut Step<'_>,
    id: RequestId,
    caller: &MemberCaller,
    request: JoinRequest,
) {
    if let Some(foreign) = &group.foreign
        && !(foreign.can_become_classic() && request.member_id.is_empty())
    {
        let answer = if foreign.can_become_classic() {
            JoinAnswer::refusal(request.member_id, ErrorCode::UNKNOWN_MEMBER_ID)
        } else {
            JoinAnswer::refusal(MemberId::default(), ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
        };
        group.answer_join(step, Some(id), answer);
        return;
    }
    let is_new = group.stored.is_none() && group.offsets.is_empty();
    if (is_new || group.foreign.is_some()) && group.check_join(step, &request).is_ok() {
        // A request that is refused leaves nothing behind.
        if let Err(error) = group.found(step) {
            let answer = JoinAnswer::refusal(MemberId::default(), error);
            group.answer_join(step, Some(id), answer);
            return;
        }
    }
    group.join(step, id, caller, request);
}
