use std::collections::BTreeMap;

use highwater_types::{
    EpochEnd, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Offset, OffsetAndEpoch,
    truncation_point,
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

/// Where a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// The leader of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Who.
    pub id: NodeId,
    /// Where; `None` while nobody said.
    pub address: Option<Address>,
}

/// Where a fetch goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchTarget {
    /// Who is there; `None` when only the address is known.
    pub id: Option<NodeId>,
    /// Where.
    pub address: Address,
}

/// What an observer is told about itself at its start.
#[derive(Clone, Debug)]
pub struct ObserverSettings {
    /// `controller.quorum.bootstrap.servers`, or the addresses of `controller.quorum.voters`.
    pub bootstrap: Vec<Address>,
    /// `controller.quorum.fetch.timeout.ms`.
    pub fetch_timeout: Millis,
    /// `controller.quorum.retry.backoff.ms`.
    pub retry_backoff: Millis,
}

/// Whom an answer names as leader, in each answer to a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderTold {
    /// The newest epoch that the one who answers knows.
    pub epoch: LeaderEpoch,
    /// Who leads in it, if it knows.
    pub id: Option<NodeId>,
    /// Where the leader is, if it says.
    pub address: Option<Address>,
}

/// An answer to a fetch of the metadata log, without its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchAnswer {
    /// Of the partition.
    pub error: ErrorCode,
    /// The leader that is named.
    pub leader: LeaderTold,
    /// Where the logs part, if they do.
    pub diverging: Option<EpochEnd>,
    /// The snapshot to take instead, if the records are gone.
    pub snapshot: Option<OffsetAndEpoch>,
}

/// What is to be done after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchStep {
    /// Append the records, if there are any; then fetch again at once.
    Append,
    /// Cut the log here; then fetch again at once.
    Truncate(Offset),
    /// Get this snapshot from the leader, and go on behind it.
    TakeSnapshot(OffsetAndEpoch),
    /// Another epoch or leader is known now; fetch again at once.
    Moved,
    /// Fetch again after this time.
    Rest(Millis),
    /// What the leader says contradicts what is committed here: the node must stop.
    Contradiction(String),
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
    /// for the fetch timeout, to the controllers of the config in turn. `None` when there is no
    /// address at all.
    pub fn target(&mut self, now: Mono) -> Option<FetchTarget> {
        let is_silent = now.since(self.heard) >= self.fetch_timeout && self.failures > 0;
        let leader = self.leader.as_ref().filter(|_| !is_silent);
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
        let known = self.bootstrap.iter().chain(self.voters.values());
        let count = self.bootstrap.len() + self.voters.len();
        let at = self.next_bootstrap.checked_rem(count)?;
        self.next_bootstrap = at + 1;
        let address = known.cloned().nth(at)?;
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
mod tests {
    use highwater_types::{EpochEntry, EpochHistory};

    use super::*;

    const NOW: Mono = Mono::from_micros(5_000_000);

    fn address(port: u16) -> Address {
        Address {
            host: "h".to_owned(),
            port,
        }
    }

    fn observer(
        stored: Option<&QuorumState>,
        last_epoch: i32,
        committed: Option<i64>,
    ) -> ObserverState {
        let settings = ObserverSettings {
            bootstrap: vec![address(1), address(2)],
            fetch_timeout: Millis::new(2000),
            retry_backoff: Millis::new(20),
        };
        let committed = committed.map(Offset::new);
        ObserverState::new(
            settings,
            stored,
            LeaderEpoch::new(last_epoch),
            committed,
            NOW,
        )
    }

    fn answer(error: ErrorCode, epoch: i32, leader: Option<(i32, u16)>) -> FetchAnswer {
        FetchAnswer {
            error,
            leader: LeaderTold {
                epoch: LeaderEpoch::new(epoch),
                id: leader.map(|(id, _)| NodeId::new(id)),
                address: leader.map(|(_, port)| address(port)),
            },
            diverging: None,
            snapshot: None,
        }
    }

    fn entries(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
        let entry = |&(epoch, start): &(i32, i64)| EpochEntry {
            epoch: LeaderEpoch::new(epoch),
            start_offset: Offset::new(start),
        };
        pairs.iter().map(entry).collect()
    }

    fn judge(
        it: &mut ObserverState,
        answer: &FetchAnswer,
        log: &[(i32, i64)],
        end: i64,
    ) -> FetchStep {
        let entries = entries(log);
        let log = LogState {
            epochs: EpochHistory {
                entries: &entries,
                log_end_offset: Offset::new(end),
            },
            log_start_offset: Offset::ZERO,
            snapshots: None,
        };
        let target = it.target(NOW).expect("an address");
        let epoch = it.epoch();
        it.judge_fetch(NOW, &target, epoch, answer, log)
    }

    fn target(it: &mut ObserverState, now: Mono) -> (Option<i32>, u16) {
        let target = it.target(now).expect("an address");
        (target.id.map(NodeId::raw), target.address.port)
    }

    #[test]
    fn a_fresh_observer_is_told_who_leads() {
        let mut it = observer(None, 0, None);
        assert_eq!(target(&mut it, NOW), (None, 1));
        let told = answer(ErrorCode::FENCED_LEADER_EPOCH, 3, Some((7, 9)));
        assert_eq!(judge(&mut it, &told, &[], 0), FetchStep::Moved);
        assert_eq!(it.epoch(), LeaderEpoch::new(3));
        assert_eq!(target(&mut it, NOW), (Some(7), 9));
        assert_eq!(it.quorum_state(Vec::new()).leader_id, Some(NodeId::new(7)));
        let data = answer(ErrorCode::NONE, 3, Some((7, 9)));
        assert_eq!(judge(&mut it, &data, &[], 0), FetchStep::Append);
    }

    #[test]
    fn while_nobody_knows_the_leader_the_controllers_are_asked_in_turn() {
        let mut it = observer(None, 0, None);
        let told = answer(ErrorCode::NOT_LEADER_OR_FOLLOWER, 0, None);
        assert_eq!(target(&mut it, NOW), (None, 1));
        let rests = [20, 40, 80, 160, 320, 640, 1000, 1000];
        for millis in rests {
            let step = judge(&mut it, &told, &[], 0);
            assert_eq!(step, FetchStep::Rest(Millis::new(millis)));
        }
        // `judge` asked at one each time.
        assert_eq!(target(&mut it, NOW), (None, 2));
        assert_eq!(target(&mut it, NOW), (None, 1));
    }

    #[test]
    fn an_old_leader_is_not_believed() {
        let mut it = observer(None, 5, None);
        let old = answer(ErrorCode::NONE, 4, Some((7, 9)));
        assert!(matches!(
            judge(&mut it, &old, &[(5, 0)], 3),
            FetchStep::Rest(_)
        ));
        let behind = answer(ErrorCode::UNKNOWN_LEADER_EPOCH, 4, Some((7, 9)));
        assert!(matches!(
            judge(&mut it, &behind, &[(5, 0)], 3),
            FetchStep::Rest(_)
        ));
        assert_eq!((it.epoch(), it.leader()), (LeaderEpoch::new(5), None));
    }

    #[test]
    fn i_19_in_one_epoch_there_is_one_leader() {
        let mut it = observer(None, 0, None);
        judge(&mut it, &answer(ErrorCode::NONE, 2, Some((1, 8))), &[], 0);
        let other = answer(ErrorCode::NOT_LEADER_OR_FOLLOWER, 2, Some((2, 9)));
        assert!(matches!(judge(&mut it, &other, &[], 0), FetchStep::Rest(_)));
        assert_eq!(it.leader().map(|it| it.id), Some(NodeId::new(1)));
        // A newer epoch whose leader is not known yet.
        let newer = answer(ErrorCode::FENCED_LEADER_EPOCH, 3, None);
        assert_eq!(judge(&mut it, &newer, &[], 0), FetchStep::Moved);
        assert_eq!((it.epoch(), it.leader()), (LeaderEpoch::new(3), None));
    }

    #[test]
    fn a_leader_that_is_silent_for_the_fetch_timeout_is_looked_for() {
        let mut it = observer(None, 0, None);
        judge(
            &mut it,
            &answer(ErrorCode::FENCED_LEADER_EPOCH, 1, Some((7, 9))),
            &[],
            0,
        );
        judge(&mut it, &answer(ErrorCode::NONE, 1, Some((7, 9))), &[], 0);
        it.handle_failed();
        let later = |millis| NOW.plus(Millis::new(millis));
        assert_eq!(target(&mut it, later(1999)), (Some(7), 9));
        assert_eq!(target(&mut it, later(2000)), (None, 2));
        // It answers where it was all the time.
        judge(&mut it, &answer(ErrorCode::NONE, 1, Some((7, 9))), &[], 0);
        assert_eq!(target(&mut it, NOW), (Some(7), 9));
    }

    #[test]
    fn an_old_version_names_no_address_and_the_config_does() {
        let mut it = observer(None, 0, None);
        it.set_voters(&VoterSet::parse("7@h:9", "C").expect("voters"), "C");
        let mut told = answer(ErrorCode::FENCED_LEADER_EPOCH, 3, Some((7, 0)));
        told.leader.address = None;
        assert_eq!(judge(&mut it, &told, &[], 0), FetchStep::Moved);
        assert_eq!(target(&mut it, NOW), (Some(7), 9));
        // Nor does anybody know the next one: but who serves records leads.
        let mut serves = answer(ErrorCode::NONE, 4, Some((8, 0)));
        serves.leader.address = None;
        assert_eq!(judge(&mut it, &serves, &[], 0), FetchStep::Moved);
        assert_eq!(target(&mut it, NOW), (Some(8), 9));
    }

    #[test]
    fn a_tail_that_the_leader_does_not_have_is_cut() {
        let mut it = observer(None, 3, Some(4));
        judge(
            &mut it,
            &answer(ErrorCode::FENCED_LEADER_EPOCH, 4, Some((7, 9))),
            &[(1, 0)],
            9,
        );
        let mut told = answer(ErrorCode::NONE, 4, Some((7, 9)));
        let end = |epoch, end| EpochEnd {
            epoch: LeaderEpoch::new(epoch),
            end_offset: Offset::new(end),
        };
        told.diverging = Some(end(1, 6));
        let log = [(1, 0), (3, 8)];
        assert_eq!(
            judge(&mut it, &told, &log, 9),
            FetchStep::Truncate(Offset::new(6))
        );
        told.diverging = Some(end(2, 7));
        assert_eq!(
            judge(&mut it, &told, &log, 9),
            FetchStep::Truncate(Offset::new(8))
        );
        // What is committed cannot be taken back.
        told.diverging = Some(end(1, 3));
        assert!(matches!(
            judge(&mut it, &told, &log, 9),
            FetchStep::Contradiction(_)
        ));
        told.diverging = Some(end(0, 0));
        assert!(matches!(
            judge(&mut it, &told, &log, 9),
            FetchStep::Contradiction(_)
        ));
    }

    #[test]
    fn a_snapshot_is_taken_unless_more_is_committed_here() {
        let mut it = observer(None, 1, Some(100));
        it.hear_leader();
        let mut told = answer(ErrorCode::NONE, 1, Some((7, 9)));
        let id = |offset| OffsetAndEpoch {
            offset: Offset::new(offset),
            epoch: LeaderEpoch::new(1),
        };
        told.snapshot = Some(id(620));
        assert_eq!(
            judge(&mut it, &told, &[(1, 0)], 200),
            FetchStep::TakeSnapshot(id(620))
        );
        told.snapshot = Some(id(99));
        assert!(matches!(
            judge(&mut it, &told, &[(1, 0)], 200),
            FetchStep::Contradiction(_)
        ));
    }

    #[test]
    fn the_high_watermark_follows_and_never_falls() {
        let mut it = observer(None, 1, None);
        let mut told = |leaders, end| {
            it.handle_high_watermark(Offset::new(leaders), Offset::new(end))
                .map(Offset::raw)
        };
        assert_eq!(told(-1, 10), None);
        assert_eq!(told(20, 10), Some(10));
        assert_eq!(told(20, 10), None);
        assert_eq!(told(5, 10), None);
        assert_eq!(told(20, 30), Some(20));
    }

    #[test]
    fn what_was_stored_counts_unless_the_log_is_newer() {
        let stored = QuorumState {
            leader_epoch: LeaderEpoch::new(3),
            leader_id: Some(NodeId::new(7)),
            voted: None,
            current_voters: Vec::new(),
        };
        let it = observer(Some(&stored), 2, None);
        assert_eq!(it.epoch(), LeaderEpoch::new(3));
        assert_eq!(it.leader().map(|it| it.id), Some(NodeId::new(7)));
        let it = observer(Some(&stored), 5, None);
        assert_eq!((it.epoch(), it.leader()), (LeaderEpoch::new(5), None));
    }

    impl ObserverState {
        fn hear_leader(&mut self) {
            self.leader = Some(Leader {
                id: NodeId::new(7),
                address: Some(address(9)),
            });
        }
    }
}
