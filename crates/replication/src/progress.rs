use highwater_types::{BrokerEpoch, Millis, Mono, Offset};

/// What a leader knows of one follower, from fetches that carried the leader's own epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowerProgress {
    /// Exclusive end of what it holds; zero before its first fetch in this epoch.
    pub log_end_offset: Offset,
    /// When it was last known to hold all that the leader held. Never moves back.
    pub last_caught_up: Option<Mono>,
    /// Its last fetch in this epoch.
    pub last_fetch: Option<LastFetch>,
    /// The registration that it fetched under (KIP-903).
    pub broker_epoch: BrokerEpoch,
}

/// The last fetch of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastFetch {
    /// When it came.
    pub at: Mono,
    /// Exclusive end of the leader's log at that moment.
    pub leader_log_end_offset: Offset,
}

impl FollowerProgress {
    /// A follower that a new leader has heard nothing of. Members of the ISR get the benefit of
    /// the doubt: they count as caught up now.
    pub(crate) fn unheard(now: Mono, in_sync: bool) -> Self {
        Self {
            last_caught_up: in_sync.then_some(now),
            ..Self::default()
        }
    }

    /// A fetch at `fetch_offset` came, when the leader's log ended at `leader_log_end_offset`.
    ///
    /// It is caught up now when it asks for what the leader does not have yet; and it was caught
    /// up at its last fetch when it now asks for what the leader did not have then. So a follower
    /// under steady load, which is always a little behind, is known to keep up.
    pub(crate) fn fetched(
        &mut self,
        now: Mono,
        fetch_offset: Offset,
        leader_log_end_offset: Offset,
    ) {
        let caught_up = if fetch_offset >= leader_log_end_offset {
            Some(now)
        } else {
            let last = self.last_fetch;
            last.filter(|it| fetch_offset >= it.leader_log_end_offset)
                .map(|it| it.at)
        };
        self.last_caught_up = self.last_caught_up.max(caught_up);
        self.log_end_offset = fetch_offset;
        self.last_fetch = Some(LastFetch {
            at: now,
            leader_log_end_offset,
        });
    }

    /// Whether it holds all that the leader holds, or did so at most `lag_max` ago.
    pub(crate) fn is_caught_up(
        &self,
        now: Mono,
        leader_log_end_offset: Offset,
        lag_max: Millis,
    ) -> bool {
        let recently = |at: Mono| now.since(at) <= lag_max;
        self.log_end_offset == leader_log_end_offset || self.last_caught_up.is_some_and(recently)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG_MAX: Millis = Millis::new(10);

    fn at(ms: u64) -> Mono {
        Mono::START.plus(Millis::new(ms))
    }

    #[test]
    fn a_follower_that_is_always_a_little_behind_keeps_up() {
        let mut follower = FollowerProgress::unheard(at(0), false);
        let mut end = 0;
        for ms in (0..100).step_by(5) {
            follower.fetched(at(ms), Offset::new(end), Offset::new(end + 10));
            end += 10;
            let caught_up = follower.is_caught_up(at(ms), Offset::new(end), LAG_MAX);
            assert_eq!(caught_up, ms > 0, "at {ms} ms");
        }
    }

    #[test]
    fn a_follower_that_falls_behind_further_and_further_does_not() {
        let mut follower = FollowerProgress::unheard(at(0), true);
        for round in 1..10 {
            let (held, leader) = (Offset::new(round), Offset::new(100 * round));
            follower.fetched(at(5 * round.unsigned_abs()), held, leader);
        }
        assert_eq!(follower.last_caught_up, Some(at(0)));
        assert!(!follower.is_caught_up(at(45), Offset::new(900), LAG_MAX));
        // What counts is the distance in time, not in records.
        assert!(follower.is_caught_up(at(10), Offset::new(900), LAG_MAX));
    }

    #[test]
    fn an_idle_follower_that_holds_everything_is_caught_up_for_ever() {
        let mut follower = FollowerProgress::unheard(at(0), false);
        follower.fetched(at(0), Offset::new(7), Offset::new(7));
        assert!(follower.is_caught_up(at(1_000_000), Offset::new(7), LAG_MAX));
        assert!(!follower.is_caught_up(at(1_000_000), Offset::new(8), LAG_MAX));
    }
}
