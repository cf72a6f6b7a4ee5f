use highwater_types::{
    EpochEnd, EpochHistory, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Now, Offset,
    truncation_point,
};

use super::Replica;
use crate::{Follower, NextFetch, Output, Role};

/// How long a follower rests after the first error of its leader; twice as long after each that
/// follows, up to `replica.fetch.backoff.ms`. The leader mostly just has not seen the metadata yet
/// that the follower has seen, and an acks=all write may be waiting.
const REST_MIN: Millis = Millis::new(25);

/// Where a follower fetches: what it sent is compared with where it then is when the answer comes,
/// so that an answer to another life of the log changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPosition {
    /// The leader that is asked.
    pub leader: NodeId,
    /// Its epoch, as the metadata of the follower has it.
    pub leader_epoch: LeaderEpoch,
    /// The follower's log end offset.
    pub fetch_offset: Offset,
    /// The newest epoch of the follower's history; `NONE` when it has none.
    pub last_fetched_epoch: LeaderEpoch,
}

/// What a leader answered about one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderAnswer {
    /// Records from the fetch offset on; maybe none.
    Records,
    /// The histories part: the leader's end of the largest epoch that it shares (KIP-595).
    Diverging(EpochEnd),
    /// An error.
    Error(ErrorCode),
}

/// Where a leader's log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderRange {
    /// First offset.
    pub log_start_offset: Offset,
    /// Exclusive end.
    pub log_end_offset: Offset,
}

/// What a follower does about its leader's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowStep {
    /// Nothing: the answer is to a question that is not asked any more.
    Drop,
    /// Append the records, then tell of the leader's high watermark and log start.
    Append,
    /// Cut the log to this offset and fetch again. Also when that is the log end: the history
    /// above it goes (KAFKA-10706).
    CutTo(Offset),
    /// Delete everything and begin anew at this offset.
    RestartAt(Offset),
    /// Ask the leader where its log begins and ends, and go on with
    /// [`Replica::judge_leader_range`].
    AskRange,
    /// Nothing now: see [`Follower::next_fetch`].
    Rest,
}

impl Replica {
    /// Where it fetches next; `None` when it does not follow anybody.
    #[must_use]
    pub fn fetch_position(&self, last_fetched_epoch: LeaderEpoch) -> Option<FetchPosition> {
        let follower = self.role.as_follower()?;
        Some(FetchPosition {
            leader: follower.leader?,
            leader_epoch: follower.epoch,
            fetch_offset: self.ends.log_end_offset,
            last_fetched_epoch: if self.config.old_rule {
                LeaderEpoch::NONE
            } else {
                last_fetched_epoch
            },
        })
    }

    /// Whether it fetches at `now`: it follows somebody, does not rest, and has nothing to flush
    /// before it may tell the leader that it holds what it holds (a fetch is an acknowledgement).
    #[must_use]
    pub fn may_fetch(&self, now: Mono) -> bool {
        let follower = self.role.as_follower();
        let rests = |follower: &Follower| match follower.next_fetch {
            NextFetch::Now => false,
            NextFetch::At(at) => now < at,
            NextFetch::AfterMetadata => true,
        };
        follower.is_some_and(|it| it.leader.is_some() && !rests(it)) && !self.owes_flush()
    }

    /// Whether the topic wants records flushed that are not.
    #[must_use]
    pub fn owes_flush(&self) -> bool {
        self.own_copy_end < self.ends.log_end_offset
    }

    /// When it fetches again after an error, if it rests until then.
    #[must_use]
    pub fn rests_until(&self) -> Option<Mono> {
        match self.role.as_follower()?.next_fetch {
            NextFetch::At(at) => Some(at),
            NextFetch::Now | NextFetch::AfterMetadata => None,
        }
    }

    /// Judges a leader's answer to a fetch at `sent`. `own` is the log's epoch history.
    pub fn judge_fetch(
        &mut self,
        now: Now,
        sent: FetchPosition,
        own: EpochHistory<'_>,
        answer: LeaderAnswer,
    ) -> FollowStep {
        if !self.is_at(sent, own) {
            return FollowStep::Drop;
        }
        match answer {
            LeaderAnswer::Records => FollowStep::Append,
            LeaderAnswer::Diverging(end) if end.end_offset < Offset::ZERO => self.rest(now),
            #[cfg(feature = "planted-bugs")]
            LeaderAnswer::Diverging(_)
                if highwater_types::is_planted(
                    highwater_types::PlantedBug::TruncateToOwnHighWatermark,
                ) =>
            {
                FollowStep::CutTo(self.high_watermark)
            }
            LeaderAnswer::Diverging(end) => {
                // Without a history there is nothing to compare: all above the high watermark may
                // be another history's.
                FollowStep::CutTo(truncation_point(own, end).unwrap_or(self.high_watermark))
            }
            LeaderAnswer::Error(ErrorCode::OFFSET_OUT_OF_RANGE) => FollowStep::AskRange,
            LeaderAnswer::Error(ErrorCode::FENCED_LEADER_EPOCH) => {
                self.rest_until(NextFetch::AfterMetadata)
            }
            LeaderAnswer::Error(_) => self.rest(now),
        }
    }

    /// An answer was of no use: its records are damaged, cannot be written now, or there is no
    /// answer at all. The replica rests, and others do not (RT-12).
    pub fn handle_fetch_failed(&mut self, now: Now) {
        self.rest(now);
    }

    /// Judges where the leader's log lies, after a fetch at `sent` was out of its range.
    pub fn judge_leader_range(
        &mut self,
        now: Now,
        sent: FetchPosition,
        own: EpochHistory<'_>,
        range: LeaderRange,
    ) -> FollowStep {
        if !self.is_at(sent, own) {
            return FollowStep::Drop;
        }
        let log_end_offset = self.ends.log_end_offset;
        if range.log_start_offset < Offset::ZERO || range.log_end_offset < range.log_start_offset {
            // No log lies so.
            self.rest(now)
        } else if range.log_end_offset < log_end_offset {
            // Only after an unclean election: a clean one leaves the leader with all that is
            // committed, and the histories would have parted first.
            FollowStep::CutTo(range.log_end_offset)
        } else if range.log_start_offset > log_end_offset {
            FollowStep::RestartAt(range.log_start_offset)
        } else {
            // It is in range by now: it fetches again, but not over and over at once.
            self.rest(now)
        }
    }

    /// The leader's answer told its high watermark. Comes after the records of the same answer are
    /// appended: what is not held is not committed here (KAFKA-14704).
    pub fn handle_leader_high_watermark(&mut self, high_watermark: Offset, out: &mut Vec<Output>) {
        if self.role.as_follower().is_none() {
            return;
        }
        self.note_success();
        let to = high_watermark.min(self.ends.log_end_offset);
        self.raise_high_watermark(to, out);
        self.assert_invariants();
    }

    /// Where the log is to start because the leader's does at `leader`; `None` where it does
    /// already. Never above the high watermark: what is not known to be committed is not deleted,
    /// and the log cannot start behind its end (RT-14).
    #[must_use]
    pub fn log_start_to_follow(&self, leader: Offset) -> Option<Offset> {
        self.role.as_follower()?;
        let start = leader.min(self.high_watermark);
        (start > self.ends.log_start_offset).then_some(start)
    }

    /// The follower's copy is damaged from `log_end_offset` on, and about to be cut there and
    /// copied again. Nothing is lost by it that was not lost before.
    pub fn handle_damage_cut(&mut self, log_end_offset: Offset) {
        self.high_watermark = self.high_watermark.min(log_end_offset);
        self.ends.log_start_offset = self.ends.log_start_offset.min(log_end_offset);
        self.handle_truncated(log_end_offset, &mut Vec::new());
    }

    /// Everything was deleted and the log begins anew, empty, at `start`.
    pub fn handle_restarted(&mut self, start: Offset, out: &mut Vec<Output>) {
        let (from, to) = (self.ends.log_start_offset, self.high_watermark);
        if start < to && from < to {
            out.push(Output::DataLoss { from, to });
        }
        self.ends.log_start_offset = start;
        self.ends.log_end_offset = start;
        self.ends.flushed_offset = start;
        self.own_copy_end = start;
        self.unflushed_since = None;
        // All below the start was committed once (KAFKA-9491).
        self.high_watermark = start;
        self.assert_invariants();
    }

    fn rest(&mut self, now: Now) -> FollowStep {
        let Role::Follower(follower) = &mut self.role else {
            return FollowStep::Drop;
        };
        let span = REST_MIN.as_u64() << follower.failures.min(16);
        let span = Millis::new(span.min(self.config.fetch_backoff.as_u64()));
        follower.failures = follower.failures.saturating_add(1);
        self.rest_until(NextFetch::At(now.mono.plus(span)))
    }

    const fn rest_until(&mut self, until: NextFetch) -> FollowStep {
        if let Role::Follower(follower) = &mut self.role {
            follower.next_fetch = until;
        }
        FollowStep::Rest
    }

    const fn note_success(&mut self) {
        if let Role::Follower(follower) = &mut self.role {
            follower.failures = 0;
            follower.next_fetch = NextFetch::Now;
        }
    }

    /// Whether the replica still is where it was when it sent a fetch.
    fn is_at(&self, sent: FetchPosition, own: EpochHistory<'_>) -> bool {
        let newest = own.entries.last();
        let newest = newest.map_or(LeaderEpoch::NONE, |it| it.epoch);
        self.fetch_position(newest) == Some(sent)
    }
}
