use highwater_types::ErrorCode;

use super::join::bounded_reason;
use crate::MemberId;
use crate::answer::{GroupState, LeaveAnswer, LeftMember};
use crate::group::Group;
use crate::happening::{LeaveCause, RebalanceCause};
use crate::request::{LeaveRequest, LeavingMember};
use crate::step::Step;

impl LeaveAnswer {
    /// When no member of the request is one: the group is not there.
    pub(crate) fn nobody(request: LeaveRequest) -> Self {
        let unknown = |it| left(it, ErrorCode::UNKNOWN_MEMBER_ID);
        Self {
            error: ErrorCode::NONE,
            members: request.members.into_iter().map(unknown).collect(),
        }
    }
}

impl Group {
    /// Decides a LeaveGroup of this group: each member for itself, then one rebalance for all.
    pub(crate) fn leave(&mut self, step: &mut Step<'_>, request: LeaveRequest) -> LeaveAnswer {
        let mut members = Vec::new();
        let mut last = None;
        for leaving in request.members {
            let error = match self.member_that_leaves(&leaving) {
                Err(error) => error,
                Ok(id) => {
                    let reason = bounded_reason(leaving.reason.as_ref());
                    let cause = LeaveCause::Asked { reason };
                    let was_member = self.drop_member(step, &id, cause.clone());
                    if was_member {
                        last = Some((id, cause));
                    }
                    ErrorCode::NONE
                }
            };
            members.push(left(leaving, error));
        }
        match last {
            Some((member_id, cause)) => {
                let cause = RebalanceCause::MemberLeft { member_id, cause };
                self.rebalance_or_complete(step, cause);
            }
            // A pending one may have been what the join phase waited for.
            None if self.state() == GroupState::PreparingRebalance => {
                self.complete_join_if_all(step);
            }
            None => {}
        }
        // That nobody is left could not be recorded. It is tried again, but is not certain yet.
        match step.refused {
            Some(why) => LeaveAnswer {
                error: why.error_code(),
                members: Vec::new(),
            },
            None => LeaveAnswer {
                error: ErrorCode::NONE,
                members,
            },
        }
    }

    fn member_that_leaves(&self, leaving: &LeavingMember) -> Result<MemberId, ErrorCode> {
        let id = &leaving.member_id;
        if id.is_empty() {
            // An administrator removes a static member, whatever its id is now.
            let instance_id = leaving.instance_id.as_ref();
            let member = instance_id.and_then(|it| self.members.of_instance(it));
            return member.cloned().ok_or(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        if !self.members.pending.contains(id) {
            self.members.check(id, leaving.instance_id.as_ref())?;
        }
        Ok(id.clone())
    }
}

fn left(leaving: LeavingMember, error: ErrorCode) -> LeftMember {
    LeftMember {
        member_id: leaving.member_id,
        instance_id: leaving.instance_id,
        error,
    }
}
