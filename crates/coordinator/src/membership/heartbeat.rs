use highwater_types::ErrorCode;

use crate::answer::GroupState;
use crate::group::Group;
use crate::request::HeartbeatRequest;
use crate::step::Step;

impl Group {
    /// Decides a Heartbeat of this group.
    pub(crate) fn heartbeat(&self, step: &mut Step<'_>, request: &HeartbeatRequest) -> ErrorCode {
        if let Err(error) = self
            .members
            .check(&request.member_id, request.instance_id.as_ref())
        {
            return error;
        }
        if request.generation_id != self.members.generation_id {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        self.touch(step, &request.member_id);
        match self.state() {
            GroupState::PreparingRebalance => ErrorCode::REBALANCE_IN_PROGRESS,
            _ => ErrorCode::NONE,
        }
    }
}
