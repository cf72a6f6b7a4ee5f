use std::collections::BTreeMap;

use highwater_types::{BrokerEpoch, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Offset};

use crate::isr::{EligibleBrokers, Isr, IsrCause, Lagging};
use crate::{Assignment, FollowerFetch, FollowerProgress};

/// The state of a leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The epoch that it leads in.
    pub epoch: LeaderEpoch,
    /// The log end offset when the epoch began. Kept while the epoch stays (KAFKA-13790).
    pub epoch_start_offset: Offset,
    /// In the order of the assignment; the first is the preferred leader.
    pub assigned_replicas: Vec<NodeId>,
    /// The ISR, and what the controller was asked to make of it.
    pub isr: Isr,
    /// What each other assigned replica was last seen to hold, in this epoch.
    ///
    /// Invariant: never holds the leader itself, nor a replica that is not assigned.
    pub followers: BTreeMap<NodeId, FollowerProgress>,
}

/// What a leader judges its followers by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judging<'a> {
    pub(crate) now: Mono,
    /// Exclusive end of the leader's log.
    pub(crate) log_end_offset: Offset,
    /// `replica.lag.time.max.ms`.
    pub(crate) lag_max: Millis,
    /// Who may be in an ISR at all.
    pub(crate) eligible: &'a EligibleBrokers,
}

impl Leader {
    /// A leader whose epoch begins at `log_end_offset`.
    pub(crate) fn begin(
        now: Mono,
        own: NodeId,
        assignment: &Assignment,
        log_end_offset: Offset,
    ) -> Self {
        let mut leader = Self {
            epoch: assignment.leader_epoch,
            epoch_start_offset: log_end_offset,
            assigned_replicas: Vec::new(),
            isr: Isr::new(Vec::new()),
            followers: BTreeMap::new(),
        };
        leader.refresh(now, own, assignment);
        leader
    }

    /// Takes over assignment and ISR of the same leader epoch. What is known of the followers
    /// stays.
    pub(crate) fn refresh(&mut self, now: Mono, own: NodeId, assignment: &Assignment) {
        let assigned = &assignment.assigned_replicas;
        self.assigned_replicas.clone_from(assigned);
        self.isr.commit(&assignment.in_sync_replicas);
        self.followers.retain(|node, _| assigned.contains(node));
        for node in assigned.iter().filter(|node| **node != own) {
            let in_sync = assignment.in_sync_replicas.contains(node);
            self.followers
                .entry(*node)
                .or_insert_with(|| FollowerProgress::unheard(now, in_sync));
        }
    }

    /// Notes a fetch that was checked to hold the same history as this log.
    ///
    /// # Errors
    /// As [`crate::Replica::handle_follower_fetch`] says.
    pub(crate) fn fetched(
        &mut self,
        now: Mono,
        fetch: FollowerFetch,
        log_end_offset: Offset,
    ) -> Result<(), ErrorCode> {
        #[cfg(feature = "planted-bugs")]
        let fetch =
            if highwater_types::is_planted(highwater_types::PlantedBug::SkipTheEpochCheckOnFetch) {
                let leader_epoch = self.epoch;
                FollowerFetch {
                    leader_epoch,
                    ..fetch
                }
            } else {
                fetch
            };
        if fetch.leader_epoch < self.epoch {
            return Err(ErrorCode::FENCED_LEADER_EPOCH);
        }
        if fetch.leader_epoch > self.epoch || fetch.fetch_offset > log_end_offset {
            return Err(ErrorCode::UNKNOWN_LEADER_EPOCH);
        }
        let Some(follower) = self.followers.get_mut(&fetch.replica) else {
            return Err(ErrorCode::UNKNOWN_LEADER_EPOCH);
        };
        let is_stale = fetch.broker_epoch < follower.broker_epoch;
        #[cfg(feature = "planted-bugs")]
        let is_stale = is_stale
            && !highwater_types::is_planted(highwater_types::PlantedBug::AcceptAStaleBrokerEpoch);
        if is_stale {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        }
        follower.broker_epoch = fetch.broker_epoch;
        follower.fetched(now, fetch.fetch_offset, log_end_offset);
        Ok(())
    }

    /// Notes that a follower that fetched so before did it once more at `at`. Nothing when such a
    /// fetch does not count, or was noted.
    pub(crate) fn heard(&mut self, at: Mono, fetch: FollowerFetch, log_end_offset: Offset) {
        let follower = self.followers.get_mut(&fetch.replica);
        let same_epoch = fetch.leader_epoch == self.epoch;
        let Some(follower) = follower.filter(|_| same_epoch) else {
            return;
        };
        // Less than is known: a session that was left behind by another one. More: a copy of an
        // older fetch, which was late, came in between.
        let counts = follower.broker_epoch == fetch.broker_epoch
            && follower.log_end_offset <= fetch.fetch_offset
            && fetch.fetch_offset <= log_end_offset;
        if counts && follower.last_fetch.is_some_and(|last| last.at < at) {
            follower.fetched(at, fetch.fetch_offset, log_end_offset);
        }
    }

    /// The followers that fetched within the lag limit, whether they are in the ISR or not.
    pub(crate) fn heard_of(&self, judging: Judging<'_>) -> impl Iterator<Item = NodeId> {
        let heard = self.followers.iter().filter(move |(_, follower)| {
            let last = follower.last_fetch;
            last.is_some_and(|last| judging.now.since(last.at) <= judging.lag_max)
        });
        heard.map(|(node, _)| *node)
    }

    /// Why a follower may join the ISR now: nothing else is pending, it is eligible, and it has
    /// reached both the high watermark and the start of this leader epoch (KAFKA-7128: what the
    /// epoch before acknowledged may lie above this leader's own high watermark).
    pub(crate) fn joins(
        &self,
        replica: NodeId,
        high_watermark: Offset,
        judging: Judging<'_>,
    ) -> Option<IsrCause> {
        let log_end_offset = self.followers.get(&replica)?.log_end_offset;
        let least = high_watermark.max(self.epoch_start_offset);
        #[cfg(feature = "planted-bugs")]
        let least =
            if highwater_types::is_planted(highwater_types::PlantedBug::AdmitBelowTheEpochStart) {
                high_watermark
            } else {
                least
            };
        let may_join = self.isr.pending().is_none()
            && !self.isr.committed().contains(&replica)
            && self.is_eligible(replica, judging.eligible)
            && log_end_offset >= least;
        may_join.then_some(IsrCause::Joins {
            replica,
            log_end_offset,
            high_watermark,
        })
    }

    /// Why members have to leave the ISR: they have not caught up for too long. One change for
    /// all of them, and none while another one is pending.
    pub(crate) fn lags(&self, own: NodeId, judging: Judging<'_>) -> Option<IsrCause> {
        if self.isr.pending().is_some() {
            return None;
        }
        let Judging {
            now,
            log_end_offset,
            lag_max,
            ..
        } = judging;
        let members = self.isr.committed().iter().filter(|node| **node != own);
        let lagging = members.filter_map(|node| {
            let follower = self.followers.get(node).copied().unwrap_or_default();
            let lags = !follower.is_caught_up(now, log_end_offset, lag_max);
            lags.then(|| Lagging {
                replica: *node,
                log_end_offset: follower.log_end_offset,
                leader_log_end_offset: log_end_offset,
                behind_for: follower.last_caught_up.map(|at| now.since(at)),
                last_fetch: follower.last_fetch.map(|it| now.since(it.at)),
            })
        });
        let lagging: Vec<_> = lagging.collect();
        (!lagging.is_empty()).then_some(IsrCause::Lag(lagging))
    }

    /// The smallest end of the other replicas that the high watermark has to wait for: the maximal
    /// ISR, and whoever keeps up and may join it next. `None`: there are no others.
    pub(crate) fn smallest_end_of_others(
        &self,
        own: NodeId,
        judging: Judging<'_>,
    ) -> Option<Offset> {
        let Judging {
            now,
            log_end_offset,
            lag_max,
            eligible,
        } = judging;
        #[cfg(feature = "planted-bugs")]
        if highwater_types::is_planted(
            highwater_types::PlantedBug::HighWatermarkOverTheCommittedIsr,
        ) {
            let others = self.isr.committed().iter().filter(|node| **node != own);
            let ends = others.map(|node| self.followers.get(node));
            return ends
                .map(|it| it.map_or(Offset::ZERO, |it| it.log_end_offset))
                .min();
        }
        let in_sync = self.isr.maximal().filter(|node| *node != own).map(|node| {
            let follower = self.followers.get(&node);
            follower.map_or(Offset::ZERO, |it| it.log_end_offset)
        });
        let keep_up = self.followers.iter().filter(|(node, follower)| {
            self.is_eligible(**node, eligible)
                && follower.is_caught_up(now, log_end_offset, lag_max)
        });
        let keep_up = keep_up.map(|(_, follower)| follower.log_end_offset);
        in_sync.chain(keep_up).min()
    }

    /// The members of `isr` with their registrations, as a proposal names them.
    pub(crate) fn with_broker_epochs(
        &self,
        own: NodeId,
        isr: Vec<NodeId>,
        eligible: &EligibleBrokers,
    ) -> Vec<(NodeId, BrokerEpoch)> {
        let epoch = |node: NodeId| {
            let of_fetches = self.followers.get(&node).map(|it| it.broker_epoch);
            let own = || eligible.get(&own).copied();
            of_fetches.or_else(own).unwrap_or(BrokerEpoch::NONE)
        };
        isr.into_iter().map(|node| (node, epoch(node))).collect()
    }

    /// Whether the metadata lets a follower be in the ISR: registered under the very epoch that it
    /// fetches with (KIP-903), neither fenced nor shutting down (KIP-841). One whose fetches have
    /// no place for an epoch is taken for the registered one, as in Kafka; one that has not
    /// fetched yet is not.
    fn is_eligible(&self, replica: NodeId, eligible: &EligibleBrokers) -> bool {
        let fetches_as = self.followers.get(&replica);
        let fetches_as = fetches_as.filter(|it| it.last_fetch.is_some());
        let registered = eligible.get(&replica);
        #[cfg(feature = "planted-bugs")]
        if highwater_types::is_planted(highwater_types::PlantedBug::AcceptAStaleBrokerEpoch) {
            return fetches_as.is_some() && registered.is_some();
        }
        fetches_as.zip(registered).is_some_and(|(it, registered)| {
            it.broker_epoch == BrokerEpoch::NONE || it.broker_epoch == *registered
        })
    }
}
