mod following;
mod leading;
mod metadata;
mod old_rule;

pub use self::following::{FetchPosition, FollowStep, LeaderAnswer, LeaderRange};

use std::sync::Arc;

use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Now, Offset, PartitionEpoch,
};

use crate::leader::Judging;
use crate::{EligibleBrokers, FlushPolicy, Output, Role};

/// One replica of one partition. Does no IO and reads no clock.
///
/// The owner, in this order: (1) calls a `handle_*` with what happened and the time; (2) performs
/// what was pushed to `out`, in order; (3) calls `handle_tick` no later than `next_deadline`.
#[derive(Clone, Debug)]
pub struct Replica {
    node_id: NodeId,
    config: ReplicaConfig,
    role: Role,
    /// Of the state applied last, by metadata or by the controller's answer; `NONE` before any.
    partition_epoch: PartitionEpoch,
    /// Who may be in an ISR at all.
    eligible: Arc<EligibleBrokers>,
    ends: LogEnds,
    /// Exclusive: every record below it is on each member of the maximal ISR.
    ///
    /// Invariant: `log_start_offset <= high_watermark <= log_end_offset`; within one leader epoch
    /// it never falls.
    high_watermark: Offset,
    /// Exclusive end of what this replica vouches for by itself: the log end, or what is flushed
    /// while a sync is due.
    ///
    /// Invariant: `flushed_offset <= own_copy_end <= log_end_offset`.
    own_copy_end: Offset,
    /// A lower bound of when the oldest unflushed record was appended.
    ///
    /// Invariant: `None` exactly when everything is flushed.
    unflushed_since: Option<Mono>,
    /// When the sync in flight was asked for.
    flush_asked: Option<Mono>,
}

/// Where a log begins, ends, and what of it is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnds {
    /// First readable offset.
    pub log_start_offset: Offset,
    /// Exclusive end.
    pub log_end_offset: Offset,
    /// Exclusive end of what is on stable storage.
    ///
    /// Invariant: `flushed_offset <= log_end_offset`.
    pub flushed_offset: Offset,
}

/// What the topic's configuration says to its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// `min.insync.replicas`, at least 1; counts no further than the number of replicas.
    pub min_in_sync_replicas: usize,
    /// `flush.messages` and `flush.ms`.
    pub flush: FlushPolicy,
    /// `replica.lag.time.max.ms`: a member of the ISR that has not caught up for longer leaves it.
    pub lag_max: Millis,
    /// `replica.fetch.backoff.ms`: a follower rests this long at most after an error.
    pub fetch_backoff: Millis,
    /// Whether a follower cuts by the rule from before leader epochs; see
    /// [`Replica::old_rule_cut`]. Only the simulator sets it, to show what that rule loses.
    pub old_rule: bool,
}

/// A partition as the metadata has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The leader; `None` while there is none.
    pub leader: Option<NodeId>,
    /// Its epoch.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch of this state.
    pub partition_epoch: PartitionEpoch,
    /// Ordered; the first is the preferred leader.
    pub assigned_replicas: Vec<NodeId>,
    /// The committed ISR.
    pub in_sync_replicas: Vec<NodeId>,
}

/// One fetch of a follower, already checked to hold the same history as the leader.
///
/// The broker epoch is [`BrokerEpoch::NONE`] where the request has no place for one (Fetch below
/// version 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerFetch {
    /// The follower.
    pub replica: NodeId,
    /// Its registration.
    pub broker_epoch: BrokerEpoch,
    /// The leader epoch that it believes in.
    pub leader_epoch: LeaderEpoch,
    /// Everything below it is in its log.
    pub fetch_offset: Offset,
}

impl Replica {
    /// A replica over an opened log. `high_watermark` is what the checkpoint said; it is clamped
    /// to the log. Without metadata it has no role yet.
    #[must_use]
    pub fn new(
        now: Now,
        node_id: NodeId,
        ends: LogEnds,
        high_watermark: Offset,
        config: ReplicaConfig,
    ) -> Self {
        let unflushed = ends.flushed_offset < ends.log_end_offset;
        let replica = Self {
            node_id,
            config,
            role: Role::None,
            partition_epoch: PartitionEpoch::NONE,
            eligible: Arc::default(),
            ends,
            high_watermark: high_watermark
                .max(ends.log_start_offset)
                .min(ends.log_end_offset),
            own_copy_end: ends.log_end_offset,
            unflushed_since: unflushed.then_some(now.mono),
            flush_asked: None,
        };
        replica.assert_invariants();
        replica
    }

    /// What the topic's configuration says to it.
    #[must_use]
    pub const fn config(&self) -> &ReplicaConfig {
        &self.config
    }

    /// What it is at the moment.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// The epoch of the current leader, whoever it is; `NONE` before any metadata.
    #[must_use]
    pub const fn leader_epoch(&self) -> LeaderEpoch {
        self.role.leader_epoch()
    }

    /// Whether it leads.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.role.as_leader().is_some()
    }

    /// The partition epoch of the state applied last; `NONE` before any.
    #[must_use]
    pub const fn partition_epoch(&self) -> PartitionEpoch {
        self.partition_epoch
    }

    /// Exclusive end of what is on every member of the maximal ISR.
    #[must_use]
    pub const fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// Exclusive end of the log, as last reported.
    #[must_use]
    pub const fn log_end_offset(&self) -> Offset {
        self.ends.log_end_offset
    }

    /// `min.insync.replicas`, but no more than there are replicas (KIP-966).
    #[must_use]
    pub fn effective_min_in_sync_replicas(&self) -> usize {
        let assigned = self
            .role
            .as_leader()
            .map_or(1, |it| it.assigned_replicas.len().max(1));
        self.config.min_in_sync_replicas.clamp(1, assigned)
    }

    /// Whether a client's append is allowed now, and in which epoch.
    ///
    /// # Errors
    /// NOT_LEADER_OR_FOLLOWER when it does not lead; NOT_ENOUGH_REPLICAS when `acks_all` and the
    /// committed ISR is below the minimum.
    pub fn check_append(&self, acks_all: bool) -> Result<LeaderEpoch, ErrorCode> {
        let leader = self
            .role
            .as_leader()
            .ok_or(ErrorCode::NOT_LEADER_OR_FOLLOWER)?;
        if acks_all && leader.isr.committed().len() < self.effective_min_in_sync_replicas() {
            return Err(ErrorCode::NOT_ENOUGH_REPLICAS);
        }
        Ok(leader.epoch)
    }

    /// What an acks=all write that ends at `end_offset` (exclusive) is told; `None` while it has
    /// to wait for the high watermark. NOT_ENOUGH_REPLICAS_AFTER_APPEND as soon as the maximal ISR
    /// is below the minimum.
    #[must_use]
    pub fn acks_all_outcome(&self, end_offset: Offset) -> Option<ErrorCode> {
        let Some(leader) = self.role.as_leader() else {
            return Some(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        };
        // Also while the high watermark is below: it stands still until the ISR has grown again
        // (KIP-966), and nobody may be told that his write is safe until then.
        if leader.isr.maximal().count() < self.effective_min_in_sync_replicas() {
            return Some(ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND);
        }
        #[cfg(feature = "planted-bugs")]
        if highwater_types::is_planted(highwater_types::PlantedBug::AcknowledgeBeforeReplication) {
            return Some(ErrorCode::NONE);
        }
        (self.high_watermark >= end_offset).then_some(ErrorCode::NONE)
    }

    /// What an acks=1 write that ends at `end_offset` (exclusive) is told; `None` while it has to
    /// wait for a sync that the topic asks for: flushed before acknowledged holds for it too.
    #[must_use]
    pub fn own_copy_outcome(&self, end_offset: Offset) -> Option<ErrorCode> {
        if !self.is_leader() {
            return Some(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        }
        (self.own_copy_end >= end_offset).then_some(ErrorCode::NONE)
    }

    /// The topic's configuration changed.
    pub fn handle_config(&mut self, now: Now, config: ReplicaConfig, out: &mut Vec<Output>) {
        self.config = config;
        self.advance(now, out);
        self.assert_invariants();
    }

    /// The log grew to `log_end_offset`.
    pub fn handle_appended(&mut self, now: Now, log_end_offset: Offset, out: &mut Vec<Output>) {
        assert!(
            log_end_offset >= self.ends.log_end_offset,
            "an append moved the log end from {} back to {log_end_offset}",
            self.ends.log_end_offset
        );
        self.ends.log_end_offset = log_end_offset;
        if self.ends.flushed_offset < log_end_offset && self.unflushed_since.is_none() {
            self.unflushed_since = Some(now.mono);
        }
        self.advance(now, out);
        self.assert_invariants();
    }

    /// A sync is done: everything below `flushed_offset` is on stable storage.
    pub fn handle_flushed(&mut self, now: Now, flushed_offset: Offset, out: &mut Vec<Output>) {
        let flushed_offset = flushed_offset.min(self.ends.log_end_offset);
        self.ends.flushed_offset = self.ends.flushed_offset.max(flushed_offset);
        let asked = self.flush_asked.take();
        if self.ends.flushed_offset == self.ends.log_end_offset {
            self.unflushed_since = None;
        } else if asked.is_some() {
            // What is left was appended after the sync was asked for.
            self.unflushed_since = asked;
        }
        self.advance(now, out);
        self.assert_invariants();
    }

    /// The log now starts at `log_start_offset`: retention, or records were deleted.
    pub fn handle_log_start(&mut self, log_start_offset: Offset) {
        assert!(
            log_start_offset <= self.high_watermark,
            "log start {log_start_offset} is above the high watermark {}",
            self.high_watermark
        );
        self.ends.log_start_offset = log_start_offset;
        self.assert_invariants();
    }

    /// The log is about to be cut to `log_end_offset`.
    pub fn handle_truncated(&mut self, log_end_offset: Offset, out: &mut Vec<Output>) {
        if log_end_offset < self.high_watermark {
            out.push(Output::DataLoss {
                from: log_end_offset,
                to: self.high_watermark,
            });
        }
        let ends = &mut self.ends;
        ends.log_end_offset = log_end_offset;
        ends.flushed_offset = ends.flushed_offset.min(log_end_offset);
        self.own_copy_end = self.own_copy_end.min(log_end_offset);
        ends.log_start_offset = ends.log_start_offset.min(log_end_offset);
        self.high_watermark = self.high_watermark.min(log_end_offset);
        if ends.flushed_offset == log_end_offset {
            self.unflushed_since = None;
        }
        self.assert_invariants();
    }

    /// Time has come.
    pub fn handle_tick(&mut self, now: Now, out: &mut Vec<Output>) {
        self.advance(now, out);
        self.assert_invariants();
    }

    /// When it wants a tick: the moment at which `flush.ms` makes a sync due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Mono> {
        if self.flush_asked.is_some() {
            return None;
        }
        self.config.flush.deadline(self.unflushed_since)
    }

    /// What followers are judged by at this moment.
    fn judging(&self, now: Mono) -> Judging<'_> {
        Judging {
            now,
            log_end_offset: self.ends.log_end_offset,
            lag_max: self.config.lag_max,
            eligible: &self.eligible,
        }
    }

    /// Asks for a sync when one is due, and raises the high watermark as far as it may go.
    fn advance(&mut self, now: Now, out: &mut Vec<Output>) {
        let LogEnds {
            log_end_offset,
            flushed_offset,
            ..
        } = self.ends;
        let due = self.config.flush.is_due(
            now.mono,
            flushed_offset,
            log_end_offset,
            self.unflushed_since,
        );
        if due && self.flush_asked.is_none() {
            self.flush_asked = Some(now.mono);
            out.push(Output::Flush);
        }
        self.own_copy_end = if due { flushed_offset } else { log_end_offset };
        let Role::Leader(leader) = &self.role else {
            return;
        };
        // Below the minimum nothing new becomes readable: KIP-966, strict minimum ISR.
        if leader.isr.committed().len() < self.effective_min_in_sync_replicas() {
            return;
        }
        let others = leader.smallest_end_of_others(self.node_id, self.judging(now.mono));
        let candidate = others.map_or(self.own_copy_end, |it| it.min(self.own_copy_end));
        self.raise_high_watermark(candidate, out);
    }

    fn raise_high_watermark(&mut self, to: Offset, out: &mut Vec<Output>) {
        if to > self.high_watermark {
            let from = self.high_watermark;
            out.push(Output::HighWatermark { from, to });
            self.high_watermark = to;
        }
    }

    fn assert_invariants(&self) {
        let LogEnds {
            log_start_offset,
            log_end_offset,
            flushed_offset,
        } = self.ends;
        let high_watermark = self.high_watermark;
        assert!(
            log_start_offset <= high_watermark,
            "log start {log_start_offset} above high watermark {high_watermark}"
        );
        assert!(
            high_watermark <= log_end_offset,
            "high watermark {high_watermark} above log end {log_end_offset}"
        );
        assert!(
            flushed_offset <= self.own_copy_end && self.own_copy_end <= log_end_offset,
            "own copy {} outside of flushed {flushed_offset} and log end {log_end_offset}",
            self.own_copy_end
        );
        assert_eq!(
            self.unflushed_since.is_none(),
            flushed_offset == log_end_offset,
            "flushed {flushed_offset}, log end {log_end_offset}"
        );
        let Role::Leader(leader) = &self.role else {
            return;
        };
        assert!(
            leader.epoch_start_offset <= log_end_offset,
            "epoch {} starts at {} above log end {log_end_offset}",
            leader.epoch,
            leader.epoch_start_offset
        );
        assert!(
            !leader.followers.contains_key(&self.node_id),
            "the leader follows itself"
        );
        assert!(
            leader
                .followers
                .keys()
                .all(|node| leader.assigned_replicas.contains(node)),
            "followers {:?} are not all in {:?}",
            leader.followers.keys(),
            leader.assigned_replicas
        );
    }
}
