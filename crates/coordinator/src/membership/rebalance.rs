use std::collections::BTreeSet;

use bytes::Bytes;
use highwater_types::{ErrorCode, Millis};

use crate::MemberId;
use crate::answer::{GroupState, SyncAnswer};
use crate::group::{Group, InitialDelay, Phase, Waiting};
use crate::happening::{GroupEvent, LeaveCause, RebalanceCause};
use crate::record::Record;
use crate::step::Step;
use crate::timers::Timer;

/// A join phase that nobody has joined is looked at again no sooner, whatever members ask for.
const POSTPONED_MIN: Millis = Millis::new(1_000);
/// After how long a refused record is tried again.
const RECORD_RETRY: Millis = Millis::new(1_000);

impl Group {
    /// The membership has changed: a rebalance begins, or the one that runs may be complete now.
    pub(super) fn rebalance_or_complete(&mut self, step: &mut Step<'_>, cause: RebalanceCause) {
        if self.state() == GroupState::PreparingRebalance {
            self.complete_join_if_all(step);
        } else {
            self.begin_rebalance(step, cause);
        }
    }

    pub(super) fn begin_rebalance(&mut self, step: &mut Step<'_>, cause: RebalanceCause) {
        self.refuse_syncs(step, ErrorCode::REBALANCE_IN_PROGRESS);
        step.timers.cancel(&Timer::Syncs(self.id.clone()));
        let generation_id = self.members.generation_id;
        step.happened(
            self,
            GroupEvent::RebalanceBegan {
                generation_id,
                cause,
            },
        );
        let is_initial = self.state() == GroupState::Empty;
        let initial = is_initial.then(|| {
            let delay = step.settings.initial_rebalance_delay;
            let remaining = minus(self.members.rebalance_timeout(), delay);
            InitialDelay {
                delay,
                remaining,
                member_added: false,
            }
        });
        self.enter(step, Phase::Preparing { initial });
        match initial {
            Some(initial) => self.set_joins_timer(step, initial.delay),
            None if self.members.all_joined() => self.complete_join(step),
            #[cfg(feature = "planted-bugs")]
            None if highwater_types::is_planted(highwater_types::PlantedBug::TwoOwners) => {
                self.set_joins_timer(step, Millis::new(50));
            }
            None => self.set_joins_timer(step, self.members.rebalance_timeout()),
        }
    }

    /// Ends the join phase if nobody is missing. That of a group that was empty lasts its time.
    pub(super) fn complete_join_if_all(&mut self, step: &mut Step<'_>) {
        let waits_for_all = matches!(self.members.phase, Phase::Preparing { initial: None });
        if waits_for_all && self.members.all_joined() {
            self.complete_join(step);
        }
    }

    /// The time of the join phase is over.
    pub(crate) fn handle_joins_due(&mut self, step: &mut Step<'_>) {
        let Phase::Preparing { initial } = &mut self.members.phase else {
            return;
        };
        if let Some(initial) = initial
            && initial.member_added
            && initial.remaining > Millis::ZERO
        {
            let delay = step.settings.initial_rebalance_delay.min(initial.remaining);
            *initial = InitialDelay {
                delay,
                remaining: minus(initial.remaining, initial.delay),
                member_added: false,
            };
            self.set_joins_timer(step, delay);
            return;
        }
        self.complete_join(step);
    }

    fn complete_join(&mut self, step: &mut Step<'_>) {
        step.timers.cancel(&Timer::Joins(self.id.clone()));
        self.drop_missing(step);
        if !self.members.elect_joined_leader() && !self.members.is_empty() {
            // Only static members are left, and none of them has joined. Their sessions decide.
            self.set_joins_timer(step, self.members.rebalance_timeout().max(POSTPONED_MIN));
            return;
        }
        self.members.generation_id = self.members.generation_id.next();
        self.members.protocol_name = self.members.select_protocol();
        if self.members.is_empty() {
            self.enter(step, Phase::Empty);
            let generation_id = self.members.generation_id;
            step.happened(self, GroupEvent::Emptied { generation_id });
            self.record_empty(step);
        } else {
            self.begin_generation(step);
        }
    }

    /// Takes out the dynamic members that have not joined in time. A static one keeps its place
    /// for as long as its session lasts.
    fn drop_missing(&mut self, step: &mut Step<'_>) {
        let missing = self
            .members
            .iter()
            .filter(|(_, it)| !it.waits_for_join() && !it.is_static());
        let missing: Vec<MemberId> = missing.map(|(id, _)| id.clone()).collect();
        for id in missing {
            self.drop_member(step, &id, LeaveCause::RebalanceTimeout);
        }
    }

    /// Tells all who have joined what the new generation is.
    fn begin_generation(&mut self, step: &mut Step<'_>) {
        let ids = self.members.ids();
        let to_sync: BTreeSet<MemberId> = ids.iter().cloned().collect();
        self.enter(step, Phase::Completing { to_sync });
        let joins = GroupEvent::Joins {
            generation_id: self.members.generation_id,
            protocol_name: self.members.protocol_name.clone().unwrap_or_default(),
            leader: self.members.leader.clone().unwrap_or_default(),
            members: ids.len(),
        };
        step.happened(self, joins);
        for id in ids {
            if let Waiting::Join(request) = self.members.set_waiting(&id, Waiting::No) {
                let answer = self.generation_answer(&id);
                self.answer_join(step, request, answer);
            }
            if let Some(member) = self.members.member_mut(&id) {
                member.is_new = false;
            }
            self.touch(step, &id);
        }
        let at = step.now.mono.plus(self.members.rebalance_timeout());
        step.timers.set(Timer::Syncs(self.id.clone()), at);
    }

    /// Records that nobody is left. A refusal takes nothing back, as the members are gone; it is
    /// tried again. After a reload without the record they would be there until their sessions end.
    pub(crate) fn record_empty(&mut self, step: &mut Step<'_>) {
        let is_recorded = self.stored.as_ref().is_some_and(|stored| {
            stored.members.is_empty() && stored.generation_id == self.members.generation_id
        });
        if self.state() != GroupState::Empty || is_recorded {
            return;
        }
        let stored = self.members.to_stored();
        if let Err(why) = step.commit(self, &[Record::Group(Some(stored))]) {
            let what = "that the group is empty";
            step.happened(self, GroupEvent::NotRecorded { what, why });
            let at = step.now.mono.plus(RECORD_RETRY);
            step.timers.set(Timer::RecordEmpty(self.id.clone()), at);
        }
    }

    /// Takes back the assignment of a generation that was not completed, and tells those who wait
    /// for it.
    pub(super) fn refuse_syncs(&mut self, step: &mut Step<'_>, error: ErrorCode) {
        if !matches!(self.members.phase, Phase::Completing { .. }) {
            return;
        }
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
        }
        for id in self.members.ids() {
            // Who has joined again already has been told.
            if self
                .members
                .get(&id)
                .is_some_and(|it| matches!(it.waiting, Waiting::Sync(_)))
                && let Waiting::Sync(request) = self.members.set_waiting(&id, Waiting::No)
            {
                self.answer_sync(step, request, SyncAnswer::refusal(error));
                self.touch(step, &id);
            }
        }
    }

    pub(super) fn enter(&mut self, step: &Step<'_>, phase: Phase) {
        self.members.phase = phase;
        self.members.state_timestamp = step.now.wall;
    }

    fn set_joins_timer(&self, step: &mut Step<'_>, span: Millis) {
        step.timers
            .set(Timer::Joins(self.id.clone()), step.now.mono.plus(span));
    }
}

fn minus(a: Millis, b: Millis) -> Millis {
    Millis::new(a.as_u64().saturating_sub(b.as_u64()))
}
