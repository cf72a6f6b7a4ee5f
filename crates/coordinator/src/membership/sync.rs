use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use highwater_types::ErrorCode;

use crate::MemberId;
use crate::answer::{GroupAnswer, GroupState, SyncAnswer};
use crate::group::{Group, Phase, Waiting};
use crate::happening::{GroupEvent, RebalanceCause};
use crate::ids::RequestId;
use crate::record::Record;
use crate::request::{Assigned, SyncRequest};
use crate::step::Step;
use crate::timers::Timer;

impl SyncAnswer {
    /// An answer that says why there is no assignment.
    pub(crate) const fn refusal(error: ErrorCode) -> Self {
        Self {
            error,
            protocol_type: None,
            protocol_name: None,
            assignment: Bytes::new(),
        }
    }
}

impl Group {
    /// Decides a SyncGroup of this group.
    pub(crate) fn sync(&mut self, step: &mut Step<'_>, id: RequestId, request: SyncRequest) {
        if let Err(error) = self.check_sync(&request) {
            self.answer_sync(step, Some(id), SyncAnswer::refusal(error));
            return;
        }
        let member_id = request.member_id;
        if let Some(to_sync) = self.members.phase.to_sync_mut() {
            to_sync.remove(&member_id);
            if to_sync.is_empty() {
                step.timers.cancel(&Timer::Syncs(self.id.clone()));
            }
        }
        if self.state() == GroupState::Stable {
            let answer = self.assignment_answer(&member_id);
            self.answer_sync(step, Some(id), answer);
            return;
        }
        self.park(step, &member_id, Waiting::Sync(Some(id)));
        if self.members.is_leader(&member_id) {
            self.assign(step, request.assignments);
        }
    }

    fn check_sync(&self, request: &SyncRequest) -> Result<(), ErrorCode> {
        if self.state() == GroupState::Empty {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.members
            .check(&request.member_id, request.instance_id.as_ref())?;
        if request.generation_id != self.members.generation_id {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let differs = |said: &Option<Arc<str>>, is: &Option<Arc<str>>| {
            said.as_ref()
                .zip(is.as_ref())
                .is_some_and(|(said, is)| said != is)
        };
        if differs(&request.protocol_type, &self.members.protocol_type)
            || differs(&request.protocol_name, &self.members.protocol_name)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if self.state() == GroupState::PreparingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    /// The leader has assigned: that is recorded, and everybody who waits is told.
    fn assign(&mut self, step: &mut Step<'_>, assignments: Vec<Assigned>) {
        let mut by_member: BTreeMap<MemberId, Bytes> = BTreeMap::new();
        for it in assignments {
            by_member.insert(it.member_id, it.assignment);
        }
        let mut stored = self.members.to_stored();
        for member in &mut stored.members {
            // Whoever the leader has forgotten gets nothing.
            member.assignment = by_member.remove(&member.member_id).unwrap_or_default();
        }
        let assignments = stored
            .members
            .iter()
            .map(|it| (it.member_id.clone(), it.assignment.clone()));
        let assignments: Vec<(MemberId, Bytes)> = assignments.collect();
        match step.commit(self, &[Record::Group(Some(stored))]) {
            Ok(_) => self.stabilise(step, assignments),
            Err(why) => {
                let what = "the assignment";
                step.happened(self, GroupEvent::NotRecorded { what, why });
                self.refuse_syncs(step, why.error_code());
                self.begin_rebalance(step, RebalanceCause::AssignmentNotRecorded);
            }
        }
    }

    fn stabilise(&mut self, step: &mut Step<'_>, assignments: Vec<(MemberId, Bytes)>) {
        let to_sync = self.members.phase.to_sync().cloned().unwrap_or_default();
        self.enter(step, Phase::Stable { to_sync });
        let completed = GroupEvent::RebalanceCompleted {
            generation_id: self.members.generation_id,
            members: self.members.len(),
        };
        step.happened(self, completed);
        for (id, assignment) in assignments {
            if let Some(member) = self.members.member_mut(&id) {
                member.assignment = assignment;
            }
            if let Waiting::Sync(request) = self.members.set_waiting(&id, Waiting::No) {
                let answer = self.assignment_answer(&id);
                self.answer_sync(step, request, answer);
                self.touch(step, &id);
            }
        }
    }

    fn assignment_answer(&self, member_id: &MemberId) -> SyncAnswer {
        let member = self.members.get(member_id);
        SyncAnswer {
            error: ErrorCode::NONE,
            protocol_type: self.members.protocol_type.clone(),
            protocol_name: self.members.protocol_name.clone(),
            assignment: member.map_or_else(Bytes::new, |it| it.assignment.clone()),
        }
    }

    /// Sends a sync's answer, unless its connection is gone.
    pub(super) fn answer_sync(
        &self,
        step: &mut Step<'_>,
        request: Option<RequestId>,
        answer: SyncAnswer,
    ) {
        self.answer_to(step, request, self.stored_end, GroupAnswer::Sync(answer));
    }
}
