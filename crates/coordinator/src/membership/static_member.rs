use highwater_types::ErrorCode;

use crate::MemberId;
use crate::answer::{GroupState, JoinAnswer, SyncAnswer};
use crate::group::{Group, Waiting};
use crate::happening::{GroupEvent, RebalanceCause};
use crate::ids::RequestId;
use crate::record::Record;
use crate::request::JoinRequest;
use crate::step::Step;
use crate::timers::Timer;

impl Group {
    /// A static member joins without an id, so it has restarted: it takes the place of `old_id`
    /// under `new_id`. In a stable group it goes on with its old assignment, and nobody notices
    /// (KIP-345). Its new id is recorded at once then: after a reload the old one stays fenced.
    pub(super) fn replace_static(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        old_id: MemberId,
        new_id: MemberId,
        request: JoinRequest,
    ) {
        let old_leader = self.members.leader.clone().unwrap_or_default();
        let knows_skip = request.knows_skip_assignment;
        let instance_id = request
            .instance_id
            .clone()
            .expect("asked of a static member");
        let was_stable = self.state() == GroupState::Stable;
        // Kept, to be taken back when the record is refused.
        let before = was_stable.then(|| self.members.clone());

        let was_to_sync = self
            .members
            .phase
            .to_sync()
            .is_some_and(|it| it.contains(&old_id));
        let waited = self.members.rename(&old_id, new_id.clone());
        self.update_member(&new_id, request);
        let keeps_protocol = self.members.select_protocol() == self.members.protocol_name;
        if let Some(before) = before.filter(|_| keeps_protocol) {
            let stored = self.members.to_stored();
            if let Err(why) = step.commit(self, &[Record::Group(Some(stored))]) {
                self.members = before;
                let what = "the new id of a static member";
                step.happened(self, GroupEvent::NotRecorded { what, why });
                let answer = JoinAnswer::refusal(MemberId::default(), why.error_code());
                self.answer_join(step, Some(id), answer);
                return;
            }
        }
        if let Some(to_sync) = self.members.phase.to_sync_mut().filter(|_| was_to_sync) {
            to_sync.insert(new_id.clone());
        }
        self.fence(step, &old_id, waited);
        self.touch(step, &new_id);
        let replaced = GroupEvent::Replaced {
            instance_id: instance_id.clone(),
            old_id,
            new_id: new_id.clone(),
        };
        step.happened(self, replaced);

        if was_stable && keeps_protocol {
            // A leader that cannot be told to skip the assignment is shown the old leader: it
            // then takes itself for a follower, and assigns nothing (KIP-814).
            let mut answer = self.generation_answer(&new_id);
            if knows_skip {
                answer.skip_assignment = self.members.is_leader(&new_id);
            } else {
                answer.leader = old_leader;
                answer.members = Vec::new();
            }
            self.answer_join(step, Some(id), answer);
            return;
        }
        self.park(step, &new_id, Waiting::Join(Some(id)));
        self.rebalance_or_complete(step, RebalanceCause::StaticMemberReplaced { instance_id });
    }

    /// Tells the old member, if it waits, that another has taken its place.
    fn fence(&self, step: &mut Step<'_>, old_id: &MemberId, waited: Waiting) {
        step.timers
            .cancel(&Timer::Session(self.id.clone(), old_id.clone()));
        let error = ErrorCode::FENCED_INSTANCE_ID;
        match waited {
            Waiting::No => {}
            Waiting::Join(request) => {
                self.answer_join(step, request, JoinAnswer::refusal(old_id.clone(), error));
            }
            Waiting::Sync(request) => self.answer_sync(step, request, SyncAnswer::refusal(error)),
        }
    }
}
