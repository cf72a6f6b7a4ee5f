use highwater_types::{ErrorCode, Mono, Offset};

use crate::MemberId;
use crate::answer::{GroupAnswer, JoinAnswer, SyncAnswer};
use crate::group::{Group, Waiting};
use crate::happening::{GroupEvent, LeaveCause, RebalanceCause};
use crate::ids::RequestId;
use crate::step::Step;
use crate::timers::{Timer, Timers};

impl Group {
    /// The member has been heard of: its session begins anew.
    pub(crate) fn touch(&self, step: &mut Step<'_>, id: &MemberId) {
        if let Some(member) = self.members.get(id) {
            let at = step.now.mono.plus(member.session_timeout);
            step.timers
                .set(Timer::Session(self.id.clone(), id.clone()), at);
        }
    }

    /// A session is over, or an id was given out and not used in time.
    pub(crate) fn handle_session_due(&mut self, step: &mut Step<'_>, id: &MemberId) {
        if self.members.pending.contains(id) {
            self.drop_member(step, id, LeaveCause::NeverJoined);
            self.complete_join_if_all(step);
            return;
        }
        let Some(member) = self.members.get(id) else {
            return;
        };
        if member.may_be_silent() {
            // It is set again when what the member waits for has come.
            return;
        }
        let is_gone = member.is_new && member.waiting == Waiting::Join(None);
        let cause = if is_gone {
            LeaveCause::Disconnected
        } else {
            LeaveCause::SessionTimeout
        };
        self.drop_member(step, id, cause.clone());
        let member_id = id.clone();
        self.rebalance_or_complete(step, RebalanceCause::MemberLeft { member_id, cause });
    }

    /// Members have not asked for their assignment within the rebalance timeout (KAFKA-13435).
    pub(crate) fn handle_syncs_due(&mut self, step: &mut Step<'_>) {
        let to_sync = self.members.phase.to_sync().cloned().unwrap_or_default();
        let Some(last) = to_sync.last().cloned() else {
            return;
        };
        for id in &to_sync {
            self.drop_member(step, id, LeaveCause::NeverSynced);
        }
        let cause = LeaveCause::NeverSynced;
        self.begin_rebalance(
            step,
            RebalanceCause::MemberLeft {
                member_id: last,
                cause,
            },
        );
    }

    /// Takes out a member or a pending one, and answers what it waits for. Gives whether it was a
    /// member. The rebalance is the caller's.
    pub(super) fn drop_member(
        &mut self,
        step: &mut Step<'_>,
        id: &MemberId,
        cause: LeaveCause,
    ) -> bool {
        step.timers
            .cancel(&Timer::Session(self.id.clone(), id.clone()));
        let Some(member) = self.members.remove(id) else {
            return false;
        };
        let error = ErrorCode::UNKNOWN_MEMBER_ID;
        match member.waiting {
            Waiting::No => {}
            Waiting::Join(request) => {
                let answer = JoinAnswer::refusal(MemberId::default(), error);
                self.answer_join(step, request, answer);
            }
            Waiting::Sync(request) => self.answer_sync(step, request, SyncAnswer::refusal(error)),
        }
        let left = GroupEvent::Left {
            member_id: id.clone(),
            instance_id: member.instance_id,
            cause,
        };
        step.happened(self, left);
        true
    }

    /// Makes a member wait. An older request of it that still waits is told to come again: it is
    /// of a connection that the client has given up.
    pub(super) fn park(&mut self, step: &mut Step<'_>, id: &MemberId, waiting: Waiting) {
        let old = self.members.set_waiting(id, waiting);
        let error = ErrorCode::REBALANCE_IN_PROGRESS;
        match old {
            Waiting::No => {}
            Waiting::Join(request) => {
                self.answer_join(step, request, JoinAnswer::refusal(id.clone(), error));
            }
            Waiting::Sync(request) => self.answer_sync(step, request, SyncAnswer::refusal(error)),
        }
        if let Waiting::Join(Some(request)) | Waiting::Sync(Some(request)) = waiting {
            step.waiters.park(request, self.id.clone(), id.clone());
        }
    }

    /// The connection of a member's parked request is gone. The member stays until its session
    /// ends, as in Kafka; but one that was never told its id cannot come back, and goes at once.
    pub(crate) fn forget(&mut self, id: &MemberId, timers: &mut Timers) {
        let Some(member) = self.members.get(id) else {
            return;
        };
        let cannot_return = member.is_new && member.knows_no_id && !member.is_static();
        let waiting = match member.waiting {
            Waiting::No => Waiting::No,
            Waiting::Join(_) => Waiting::Join(None),
            Waiting::Sync(_) => Waiting::Sync(None),
        };
        self.members.set_waiting(id, waiting);
        if cannot_return {
            timers.set(Timer::Session(self.id.clone(), id.clone()), Mono::START);
        }
    }

    /// Sends an answer, unless its connection is gone.
    pub(super) fn answer_to(
        &self,
        step: &mut Step<'_>,
        request: Option<RequestId>,
        after: Offset,
        answer: GroupAnswer,
    ) {
        if let Some(request) = request {
            step.waiters.remove(request);
            step.answer(request, after, answer);
        }
    }
}
