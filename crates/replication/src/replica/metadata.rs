use std::sync::Arc;

use highwater_types::Now;

use super::{Assignment, Replica};
use crate::{EligibleBrokers, Follower, Leader, NextFetch, Output, Role};

impl Replica {
    /// The metadata says this about the partition. Ignored when it is older than what was applied,
    /// or says what the controller's answer said before: a change that was asked for since then
    /// stays pending.
    pub fn handle_metadata(&mut self, now: Now, assignment: &Assignment, out: &mut Vec<Output>) {
        let outdated = assignment.partition_epoch < self.partition_epoch
            || assignment.leader_epoch < self.leader_epoch();
        if outdated || self.holds_already(assignment) {
            return;
        }
        self.partition_epoch = assignment.partition_epoch;
        if assignment.leader == Some(self.node_id) {
            self.lead(now, assignment, out);
        } else {
            self.follow(assignment, out);
        }
        self.advance(now, out);
        self.assert_invariants();
    }

    /// The metadata says that these brokers may be in an ISR, with their registrations: all that
    /// are neither fenced nor shutting down. Those that are not assigned here do not matter.
    ///
    /// Nobody leaves the ISR by this: that is the controller's decision. But who is out of it and
    /// may not come back is no longer waited for (KAFKA-15021), and who fetches and may come back
    /// now is asked for.
    pub fn handle_brokers(
        &mut self,
        now: Now,
        eligible: Arc<EligibleBrokers>,
        out: &mut Vec<Output>,
    ) {
        self.eligible = eligible;
        self.advance(now, out);
        self.let_anyone_join(now, out);
        self.assert_invariants();
    }

    fn holds_already(&self, assignment: &Assignment) -> bool {
        self.role.as_leader().is_some_and(|leader| {
            assignment.leader == Some(self.node_id)
                && assignment.partition_epoch == self.partition_epoch
                && assignment.leader_epoch == leader.epoch
                && assignment.assigned_replicas == leader.assigned_replicas
                && assignment.in_sync_replicas == leader.isr.committed()
        })
    }

    fn lead(&mut self, now: Now, assignment: &Assignment, out: &mut Vec<Output>) {
        if let Role::Leader(leader) = &mut self.role {
            if leader.epoch == assignment.leader_epoch {
                let before = leader.isr.committed().to_vec();
                #[cfg(feature = "planted-bugs")]
                if highwater_types::is_planted(
                    highwater_types::PlantedBug::ResetFollowersOnAnUnchangedEpoch,
                ) {
                    let end = self.ends.log_end_offset;
                    *leader = Leader::begin(now.mono, self.node_id, assignment, end);
                }
                leader.refresh(now.mono, self.node_id, assignment);
                self.tell_isr(before, out);
                return;
            }
            // Directly after the own epoch nobody else can have led. Otherwise somebody may have:
            // leadership was lost and regained.
            if assignment.leader_epoch != leader.epoch.next() {
                out.push(Output::LeadsNoMore {
                    epoch: leader.epoch,
                });
            }
        }
        let log_end_offset = self.ends.log_end_offset;
        let leader = Leader::begin(now.mono, self.node_id, assignment, log_end_offset);
        out.push(Output::Leads {
            epoch: leader.epoch,
            start_offset: leader.epoch_start_offset,
        });
        self.role = Role::Leader(leader);
    }

    fn follow(&mut self, assignment: &Assignment, out: &mut Vec<Output>) {
        if let Role::Leader(leader) = &self.role {
            out.push(Output::LeadsNoMore {
                epoch: leader.epoch,
            });
        }
        let (leader, epoch) = (assignment.leader, assignment.leader_epoch);
        let same = |it: &Follower| (it.leader, it.epoch) == (leader, epoch);
        // A fetch that was parked or rests is disturbed by a new leader epoch only.
        if !self.role.as_follower().is_some_and(same) {
            let next_fetch = NextFetch::Now;
            self.role = Role::Follower(Follower {
                leader,
                epoch,
                next_fetch,
                failures: 0,
            });
            out.push(Output::Follows { leader, epoch });
        }
    }
}
