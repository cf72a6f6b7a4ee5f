use highwater_types::{ErrorCode, Mono, NodeId, Now};

use super::{FollowerFetch, Replica};
use crate::{CommittedIsr, IsrAnswer, IsrCause, IsrProposal, Output, Role};

impl Replica {
    /// A follower fetched. Only a fetch in the leader's own epoch counts (KIP-320): one that was
    /// held up in the network changes nothing.
    ///
    /// The caller has compared the histories: a fetch that diverges must not come here, for where
    /// it fetches is no acknowledgement then (KAFKA-13141).
    ///
    /// # Errors
    /// NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH; and
    /// NOT_LEADER_OR_FOLLOWER again when the follower's registration is older than one seen.
    pub fn handle_follower_fetch(
        &mut self,
        now: Now,
        fetch: FollowerFetch,
        out: &mut Vec<Output>,
    ) -> Result<(), ErrorCode> {
        let log_end_offset = self.ends.log_end_offset;
        let Role::Leader(leader) = &mut self.role else {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        };
        leader.fetched(now.mono, fetch, log_end_offset)?;
        self.advance(now, out);
        self.let_join(now, fetch.replica, out);
        self.assert_invariants();
        Ok(())
    }

    /// A follower fetched once more, at `at`, exactly as it did in `fetch` before: so it is with
    /// the partitions that a fetch session does not mention (KIP-227). The owner says so before it
    /// tells of anything that happened later: an append, a look for who lags.
    ///
    /// Only the last of such fetches needs to be told: the others say nothing more. One that does
    /// not count any more, or that is not news, is ignored.
    pub fn handle_follower_heard(&mut self, at: Mono, fetch: FollowerFetch) {
        let log_end_offset = self.ends.log_end_offset;
        if let Role::Leader(leader) = &mut self.role {
            leader.heard(at, fetch, log_end_offset);
        }
    }

    /// Whether the follower said in this leader epoch, under the same registration, that it holds
    /// more than in `fetch`: then that is an older word of it, of another fetch session.
    #[must_use]
    pub fn has_heard_more(&self, fetch: FollowerFetch) -> bool {
        let leader = self.role.as_leader();
        let leader = leader.filter(|it| it.epoch == fetch.leader_epoch);
        let follower = leader.and_then(|it| it.followers.get(&fetch.replica));
        follower.is_some_and(|it| {
            it.last_fetch.is_some()
                && it.broker_epoch == fetch.broker_epoch
                && it.log_end_offset > fetch.fetch_offset
        })
    }

    /// Looks for members of the ISR that have not caught up for too long. The owner calls it at
    /// least every half of `replica.lag.time.max.ms`, and after a stall of its own only once all
    /// fetches that waited meanwhile are handled: what the leader did not hear is not the
    /// followers' fault.
    pub fn handle_lag_check(&mut self, now: Now, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &self.role else {
            return;
        };
        if let Some(cause) = leader.lags(self.node_id, self.judging(now.mono)) {
            self.propose(cause, out);
        }
        // Whoever was waited for because it kept up may not keep up any more.
        self.advance(now, out);
        self.let_anyone_join(now, out);
        self.assert_invariants();
    }

    /// The controller's answer to an [`Output::ProposeIsr`]. One that belongs to no pending change
    /// says nothing any more and is ignored (KAFKA-12686).
    pub fn handle_isr_answer(&mut self, now: Now, answer: &IsrAnswer, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &self.role else {
            return;
        };
        let is_ours =
            answer.leader_epoch == leader.epoch && leader.isr.is_pending_since(answer.asked_at);
        if !is_ours {
            return;
        }
        match &answer.result {
            Ok(committed) => self.take_committed(committed, out),
            Err(error) => self.take_refusal(*error, out),
        }
        self.advance(now, out);
        if answer.result.is_ok() {
            self.let_anyone_join(now, out);
        }
        self.assert_invariants();
    }

    /// Asks for the change that is pending once more: nobody knows what became of it.
    fn propose_again(&self, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &self.role else {
            return;
        };
        if let Some(cause) = leader.isr.pending().cloned() {
            let isr = leader.isr.proposed();
            out.push(self.proposal(isr, cause));
        }
    }

    fn let_join(&mut self, now: Now, replica: NodeId, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &self.role else {
            return;
        };
        let judging = self.judging(now.mono);
        if let Some(cause) = leader.joins(replica, self.high_watermark, judging) {
            self.propose(cause, out);
        }
    }

    /// As when each follower that is heard of fetched now: something else than its fetch may have
    /// stood in its way, and a follower that has all there is does not fetch anything new.
    pub(super) fn let_anyone_join(&mut self, now: Now, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &self.role else {
            return;
        };
        let judging = self.judging(now.mono);
        let joins = leader
            .heard_of(judging)
            .find_map(|replica| leader.joins(replica, self.high_watermark, judging));
        if let Some(cause) = joins {
            self.propose(cause, out);
        }
    }

    fn propose(&mut self, cause: IsrCause, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let isr = leader.isr.propose(self.partition_epoch, cause.clone());
        out.push(self.proposal(isr, cause));
    }

    fn proposal(&self, isr: Vec<NodeId>, cause: IsrCause) -> Output {
        let leader = self.role.as_leader().expect("only a leader proposes");
        Output::ProposeIsr(Box::new(IsrProposal {
            leader_epoch: leader.epoch,
            partition_epoch: self.partition_epoch,
            in_sync_replicas: leader.with_broker_epochs(self.node_id, isr, &self.eligible),
            cause,
        }))
    }

    /// The controller committed a state. It is not necessarily what was asked for: an equal
    /// partition epoch means that nothing had to be changed.
    fn take_committed(&mut self, committed: &CommittedIsr, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let outdated = committed.leader_epoch != leader.epoch
            || committed.partition_epoch < self.partition_epoch;
        if outdated {
            // Metadata that is on its way says more.
            return;
        }
        let before = leader.isr.committed().to_vec();
        leader.isr.commit(&committed.in_sync_replicas);
        self.partition_epoch = committed.partition_epoch;
        self.tell_isr(before, out);
    }

    /// Nothing was done, or nobody knows.
    fn take_refusal(&mut self, error: ErrorCode, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        match error {
            // Proof that the change was not made: the committed state holds.
            ErrorCode::INELIGIBLE_REPLICA | ErrorCode::OPERATION_NOT_ATTEMPTED => {
                leader.isr.revert();
            }
            // The controller knows something newer, which may be this very change (KAFKA-14144).
            // Metadata will tell; until then the change stays pending, which is the safe side.
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::FENCED_LEADER_EPOCH
            | ErrorCode::INVALID_UPDATE_VERSION
            | ErrorCode::INVALID_REQUEST
            | ErrorCode::NEW_LEADER_ELECTED => {}
            _ => self.propose_again(out),
        }
    }

    /// Tells of another committed ISR.
    pub(super) fn tell_isr(&self, from: Vec<NodeId>, out: &mut Vec<Output>) {
        let Role::Leader(leader) = &self.role else {
            return;
        };
        let to = leader.isr.committed();
        let same = from.len() == to.len() && from.iter().all(|node| to.contains(node));
        if !same {
            let to = to.to_vec();
            out.push(Output::IsrChanged { from, to });
        }
    }
}
