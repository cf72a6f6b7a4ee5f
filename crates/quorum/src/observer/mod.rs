mod messages;

use std::collections::BTreeMap;

use highwater_types::{ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Offset, truncation_point};

pub use self::messages::{
    Address, FetchAnswer, FetchStep, FetchTarget, Leader, LeaderTold, ObserverSettings,
};

use crate::{LogState, QuorumState, VoterSet};

/// Longest rest between two fetches that failed.
const REST_MAX: Millis = Millis::new(1000);

/// A node that follows the metadata log without a vote: which epoch and leader it knows, where it
/// fetches, and what an answer means for its log.
///
/// The owner, in this order: (1) sends a fetch to [`ObserverState::target`] from its log's end, in
/// [`ObserverState::epoch`], one at a time; (2) hands the answer to [`ObserverState::judge_fetch`],
/// or that there was none to [`ObserverState::handle_failed`]; (3) performs the [`FetchStep`];
/// (4) after an append, [`ObserverState::handle_high_watermark`], and applies what is below it.
/// When [`ObserverState::quorum_state`] changed, it goes to disk.
#[derive(Clone, Debug)]
pub struct ObserverState {
    /// Invariant: it never falls.
    epoch: LeaderEpoch,
    /// Who leads in `epoch`, if known.
    leader: Option<Leader>,
    /// Exclusive: all below it is committed. `None` until a leader or a snapshot says.
    ///
    /// Invariant: it never falls.
    high_watermark: Option<Offset>,
    /// Addresses of controllers from the config, asked one after the other.
    bootstrap: Vec<Address>,
    next_bootstrap: usize,
    /// Where voters are, as config or metadata log say.
    voters: BTreeMap<NodeId, Address>,
    fetch_timeout: Millis,
    retry_backoff: Millis,
    /// The last answer of the leader that was no error, or the start.
    heard: Mono,
    /// Failures since.
    failures: u32,
}

/// What the leader that an answer names means here.
enum Heard {
    /// Nothing new: the answer counts.
    Usual,
    /// Another epoch or leader is known: the answer itself is not for this epoch.
    Moved,
    /// Of an older epoch, or of no use.
    Stale,
}

impl ObserverState {
    /// A node that knows what `stored` says, and whose log ends in `last_epoch`. Everything below
    /// `snapshot_end` is committed.
    #[must_use]
    pub fn new(
        settings: ObserverSettings,
        stored: Option<&QuorumState>,
        last_epoch: LeaderEpoch,
        snapshot_end: Option<Offset>,
        now: Mono,
    ) -> Self {
        let stored_epoch = stored.map_or(LeaderEpoch::ZERO, |state| state.leader_epoch);
        let id = stored
            .filter(|state| state.leader_epoch >= last_epoch)
            .and_then(|state| state.leader_id);
        Self {
            epoch: stored_epoch.max(last_epoch),
            leader: id.map(|id| Leader { id, address: None }),
            high_watermark: snapshot_end,
            bootstrap: settings.bootstrap,
            next_bootstrap: 0,
            voters: BTreeMap::new(),
            fetch_timeout: settings.fetch_timeout,
            retry_backoff: settings.retry_backoff,
            heard: now,
            failures: 0,
        }
    }

    /// The newest epoch that is known.
    #[must_use]
    pub const fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// Who leads in it, if known.
    #[must_use]
    pub const fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref()
    }

    /// Exclusive: all below it is committed; `None` until that is known.
    #[must_use]
    pub const fn high_watermark(&self) -> Option<Offset> {
        self.high_watermark
    }

    /// How long no leader has answered, since the start at most.
    #[must_use]
    pub const fn silent_for(&self, now: Mono) -> Millis {
        now.since(self.heard)
    }

    /// What the file `quorum-state` says. An observer has no vote.
    #[must_use]
    pub fn quorum_state(&self, voters: Vec<NodeId>) -> QuorumState {
        QuorumState {
            leader_epoch: self.epoch,
            leader_id: self.leader.as_ref().map(|leader| leader.id),
            voted: None,
            current_voters: voters,
        }
    }

    /// Voters are at these addresses, as config or metadata say.
    pub fn set_voters(&mut self, set: &VoterSet, listener: &str) {
        let mut voters = BTreeMap::new();
        for voter in &set.voters {
            let mut endpoints = voter.endpoints.iter();
            let named = endpoints.clone().find(|it| it.name == listener);
            if let Some(endpoint) = named.or_else(|| endpoints.next()) {
                let address = Address {
                    host: endpoint.host.clone(),
                    port: endpoint.port,
                };
                voters.insert(voter.key.id, address);
            }
        }
        if let Some(leader) = self.leader.as_mut().filter(|it| it.address.is_none()) {
            leader.address = voters.get(&leader.id).cloned();
        }
        self.voters = voters;
    }

    /// Where the next fetch goes: to the leader, or, while that is not known or has not answered
    /// for the fetch timeout, to the controllers of the config in turn. A leader that fails once
    /// may have moved, so they are asked with every second try. `None` when there is no address at
    /// all.
    pub fn target(&mut self, now: Mono) -> Option<FetchTarget> {
        let is_silent = now.since(self.heard) >= self.fetch_timeout && self.failures > 0;
        let is_turn = self.failures.is_multiple_of(2) && !is_silent;
        let leader = self.leader.as_ref().filter(|_| is_turn);
        if let Some(Leader {
            id,
            address: Some(address),
        }) = leader
        {
            return Some(FetchTarget {
                id: Some(*id),
                address: address.clone(),
            });
        }
        let mut known = self.bootstrap.iter().chain(self.voters.values());
        let count = self.bootstrap.len() + self.voters.len();
        let at = self.next_bootstrap.checked_rem(count)?;
        self.next_bootstrap = at + 1;
        let address = known.nth(at).cloned()?;
        Some(FetchTarget { id: None, address })
    }

    /// Judges an answer to a fetch that was sent to `target` in `sent_epoch`, from the end of
    /// `log`, which has not changed since.
    pub fn judge_fetch(
        &mut self,
        now: Mono,
        target: &FetchTarget,
        sent_epoch: LeaderEpoch,
        answer: &FetchAnswer,
        log: LogState<'_>,
    ) -> FetchStep {
        match self.hear(target, sent_epoch, answer.error, &answer.leader) {
            Heard::Moved => return FetchStep::Moved,
            Heard::Stale => return FetchStep::Rest(self.rest()),
            Heard::Usual if answer.error.is_error() => return FetchStep::Rest(self.rest()),
            Heard::Usual => {}
        }
        self.handle_heard(now);
        // Of what is committed, this log may lack some after damage.
        let end = log.log_end_offset();
        let committed = self.high_watermark.unwrap_or(log.log_start_offset).min(end);
        if let Some(end) = answer.diverging {
            // An answer from before the first epoch known here leaves nothing of the log.
            let cut = truncation_point(log.epochs, end).unwrap_or(log.log_start_offset);
            let cut = cut.max(log.log_start_offset).min(log.log_end_offset());
            if cut < committed {
                return FetchStep::Contradiction(format!(
                    "the leader of epoch {} knows nothing behind offset {cut}, but everything \
                     below {committed} is committed here",
                    self.epoch
                ));
            }
            return FetchStep::Truncate(cut);
        }
        if let Some(id) = answer.snapshot {
            if id.offset < committed {
                return FetchStep::Contradiction(format!(
                    "the leader of epoch {} offers a snapshot up to {}, but everything below \
                     {committed} is committed here",
                    self.epoch, id.offset
                ));
            }
            return FetchStep::TakeSnapshot(id);
        }
        FetchStep::Append
    }

    /// Judges whom an answer to another request names as leader. `None` when the answer counts;
    /// else what to do instead.
    pub fn judge_leader(
        &mut self,
        now: Mono,
        target: &FetchTarget,
        sent_epoch: LeaderEpoch,
        error: ErrorCode,
        told: &LeaderTold,
    ) -> Option<FetchStep> {
        match self.hear(target, sent_epoch, error, told) {
            Heard::Usual => {
                if !error.is_error() {
                    self.handle_heard(now);
                }
                None
            }
            Heard::Moved => Some(FetchStep::Moved),
            Heard::Stale => Some(FetchStep::Rest(self.rest())),
        }
    }

    /// No answer came, or none that can be used. Returns how long to rest.
    pub fn handle_failed(&mut self) -> Millis {
        self.rest()
    }

    /// The leader says that everything below `leaders` is committed, and the own log now ends at
    /// `log_end_offset`. Returns the high watermark when it moved.
    pub fn handle_high_watermark(
        &mut self,
        leaders: Offset,
        log_end_offset: Offset,
    ) -> Option<Offset> {
        let committed = leaders.min(log_end_offset);
        let known = committed >= Offset::ZERO;
        let moved = known && self.high_watermark.is_none_or(|it| committed > it);
        if moved {
            self.high_watermark = Some(committed);
        }
        moved.then_some(committed)
    }

    fn handle_heard(&mut self, now: Mono) {
        self.heard = now;
        self.failures = 0;
    }

    fn rest(&mut self) -> Millis {
        let doubled = self
            .retry_backoff
            .as_u64()
            .max(1)
            .saturating_mul(1_u64.checked_shl(self.failures).unwrap_or(u64::MAX));
        self.failures = self.failures.saturating_add(1).min(32);
        Millis::new(doubled).min(REST_MAX)
    }

    /// What the leader that an answer names means: an epoch is only ever left for a newer one, and
    /// in one epoch there is one leader.
    fn hear(
        &mut self,
        target: &FetchTarget,
        sent_epoch: LeaderEpoch,
        error: ErrorCode,
        told: &LeaderTold,
    ) -> Heard {
        if told.epoch < self.epoch || error == ErrorCode::UNKNOWN_LEADER_EPOCH {
            return Heard::Stale;
        }
        let address = |id: NodeId, voters: &BTreeMap<NodeId, Address>| {
            let own = (!error.is_error()).then(|| target.address.clone());
            let told = told.address.clone();
            told.or_else(|| voters.get(&id).cloned()).or(own)
        };
        let leader = told.id.map(|id| Leader {
            id,
            address: address(id, &self.voters),
        });
        if told.epoch > self.epoch {
            self.epoch = told.epoch;
            self.leader = leader;
            return Heard::Moved;
        }
        let mut is_new = false;
        match (&mut self.leader, leader) {
            (None, Some(leader)) => {
                self.leader = Some(leader);
                is_new = true;
            }
            // It may have moved to another address.
            (Some(known), Some(leader)) if known.id == leader.id => {
                let moved = leader.address.is_some() && leader.address != known.address;
                if moved {
                    known.address = leader.address;
                    is_new = error.is_error();
                }
            }
            _ => {}
        }
        let is_refused =
            error == ErrorCode::FENCED_LEADER_EPOCH || error == ErrorCode::NOT_LEADER_OR_FOLLOWER;
        match (is_refused, is_new) {
            (true, true) => Heard::Moved,
            (true, false) => Heard::Stale,
            (false, _) if sent_epoch != self.epoch => Heard::Stale,
            (false, _) => Heard::Usual,
        }
    }
}

#[cfg(test)]
mod tests;
