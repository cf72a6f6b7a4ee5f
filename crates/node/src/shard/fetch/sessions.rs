use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_types::{ErrorCode, Millis, Mono};

use super::SetId;

/// A request that opens a session, or that brings a whole list of partitions.
const EPOCH_INITIAL: i32 = 0;
/// A request that closes its session, or wants none.
const EPOCH_FINAL: i32 = -1;
/// No session.
pub(crate) const SESSION_NONE: i32 = 0;

/// The fetch sessions of one shard's connections (KIP-227).
///
/// A newcomer that finds every slot taken, or no room for its partitions, evicts the least recently
/// used sessions that were not used for the minimum age; a follower (privileged) also evicts the
/// least recently used consumer sessions of that age since their creation. Otherwise it gets no
/// session (KAFKA-9137). Kafka counts sessions only; ours are bounded by their partitions too.
///
/// Invariant: `by_use` holds one entry per session.
#[derive(Debug)]
pub(crate) struct FetchSessions {
    slots_max: usize,
    partitions_max: usize,
    evict_age_min: Millis,
    sessions: BTreeMap<i32, FetchSession>,
    by_use: BTreeSet<(Mono, i32)>,
    partitions: usize,
}

/// One session: what a client fetches over and over.
#[derive(Debug)]
pub(crate) struct FetchSession {
    /// Its partitions.
    pub(crate) set: SetId,
    /// The epoch that the next request must carry: 1 to 2^31-1, then 1 again.
    pub(crate) epoch: i32,
    /// Whether its partitions are named by topic id.
    pub(crate) uses_topic_ids: bool,
    privileged: bool,
    created: Mono,
    last_used: Mono,
    partitions: usize,
}

/// What the session fields of a request mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionWish {
    /// No session; a named one is closed.
    Sessionless {
        /// The session to close, or [`SESSION_NONE`].
        close: i32,
    },
    /// Open a session over the request's partitions; a named one is closed.
    Create {
        /// The session to close, or [`SESSION_NONE`].
        close: i32,
    },
    /// Go on with a session.
    Incremental {
        /// Its id.
        id: i32,
        /// The epoch that the client is at.
        epoch: i32,
    },
}

impl SessionWish {
    /// Reads the fields of a request.
    pub(crate) const fn of(id: i32, epoch: i32) -> Self {
        match epoch {
            EPOCH_FINAL => Self::Sessionless { close: id },
            EPOCH_INITIAL => Self::Create { close: id },
            epoch => Self::Incremental { id, epoch },
        }
    }
}

/// What became of a newcomer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The new session's id; [`SESSION_NONE`] when everything is in good use.
    pub(crate) id: i32,
    /// The partitions of the sessions that had to go.
    pub(crate) evicted: Vec<SetId>,
}

/// Who opens a session, over what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    /// Its partitions.
    pub(crate) set: SetId,
    /// How many there are.
    pub(crate) partitions: usize,
    /// Whether they are named by topic id.
    pub(crate) uses_topic_ids: bool,
    /// Whether a replica fetches, not a consumer.
    pub(crate) privileged: bool,
}

impl FetchSessions {
    /// No session yet; room for `slots_max` of them, with `partitions_max` partitions in all.
    pub(crate) const fn new(
        slots_max: usize,
        partitions_max: usize,
        evict_age_min: Millis,
    ) -> Self {
        Self {
            slots_max,
            partitions_max,
            evict_age_min,
            sessions: BTreeMap::new(),
            by_use: BTreeSet::new(),
            partitions: 0,
        }
    }

    /// The partitions of a session.
    pub(crate) fn set_of(&self, id: i32) -> Option<SetId> {
        self.sessions.get(&id).map(|session| session.set)
    }

    /// Finds the session of an incremental request and moves it to its next epoch.
    ///
    /// # Errors
    /// FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or FETCH_SESSION_TOPIC_ID_ERROR
    /// when the version names topics in the other way. Nothing changes then.
    pub(crate) fn advance(
        &mut self,
        now: Mono,
        id: i32,
        epoch: i32,
        uses_topic_ids: bool,
    ) -> Result<SetId, ErrorCode> {
        let session = self
            .sessions
            .get_mut(&id)
            .ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        if session.epoch != epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if session.uses_topic_ids != uses_topic_ids {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        self.by_use.remove(&(session.last_used, id));
        session.last_used = now;
        session.epoch = next_epoch(epoch);
        self.by_use.insert((now, id));
        Ok(session.set)
    }

    /// The partitions of a session were changed by a request. Whether it may stay: it is closed
    /// when it has none left, as in Kafka, or when it grew beyond what all may have together.
    pub(crate) fn resize(&mut self, id: i32, partitions: usize) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        let before = std::mem::replace(&mut session.partitions, partitions);
        self.partitions = self.partitions - before + partitions;
        let grew_too_far = partitions > before && self.partitions > self.partitions_max;
        let stays = partitions > 0 && !grew_too_far;
        if !stays {
            self.close(id);
        }
        stays
    }

    /// Opens a session if there is room, or if others may be evicted for it. `random` draws bits.
    pub(crate) fn open(
        &mut self,
        now: Mono,
        newcomer: Newcomer,
        mut random: impl FnMut() -> u32,
    ) -> Opened {
        let mut evicted = Vec::new();
        let full = |evicted| Opened {
            id: SESSION_NONE,
            evicted,
        };
        if self.slots_max == 0 || newcomer.partitions > self.partitions_max {
            return full(evicted);
        }
        while self.sessions.len() >= self.slots_max
            || self.partitions + newcomer.partitions > self.partitions_max
        {
            let Some(id) = self.victim(now, newcomer.privileged) else {
                return full(evicted);
            };
            evicted.extend(self.close(id));
        }
        let id = loop {
            let id = i32::try_from(random() & 0x7fff_ffff).expect("31 bits");
            if id != SESSION_NONE && !self.sessions.contains_key(&id) {
                break id;
            }
        };
        let session = FetchSession {
            set: newcomer.set,
            epoch: next_epoch(EPOCH_INITIAL),
            uses_topic_ids: newcomer.uses_topic_ids,
            privileged: newcomer.privileged,
            created: now,
            last_used: now,
            partitions: newcomer.partitions,
        };
        self.partitions += newcomer.partitions;
        self.sessions.insert(id, session);
        self.by_use.insert((now, id));
        Opened { id, evicted }
    }

    /// Forgets a session; its partitions are the caller's to drop.
    pub(crate) fn close(&mut self, id: i32) -> Option<SetId> {
        let session = self.sessions.remove(&id)?;
        self.by_use.remove(&(session.last_used, id));
        self.partitions -= session.partitions;
        Some(session.set)
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        assert_eq!(
            self.sessions.len(),
            self.by_use.len(),
            "each session was used once last"
        );
        self.sessions.len()
    }

    fn victim(&self, now: Mono, privileged: bool) -> Option<i32> {
        let (used, id) = self.by_use.first().copied()?;
        if now.since(used) > self.evict_age_min {
            return Some(id);
        }
        if !privileged {
            return None;
        }
        let may_go = |id: &i32| {
            self.sessions
                .get(id)
                .is_some_and(|it| !it.privileged && now.since(it.created) > self.evict_age_min)
        };
        self.by_use.iter().map(|(_, id)| *id).find(may_go)
    }
}

/// 1 to 2^31-1, then 1 again.
const fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

/// The client for whom there was no room, told once in a while.
#[derive(Debug)]
pub(crate) struct FullNotice {
    what: &'static str,
    last: Option<Mono>,
    refused: u64,
}

impl FullNotice {
    /// Nobody was refused yet. `what` says what is full, and what the usual cause is.
    pub(crate) const fn new(what: &'static str) -> Self {
        Self {
            what,
            last: None,
            refused: 0,
        }
    }

    /// Counts a refusal; the text to tell when it is time again.
    pub(crate) fn refused(&mut self, now: Mono, client: Option<&Arc<str>>) -> Option<String> {
        self.refused += 1;
        let due = self
            .last
            .is_none_or(|last| now.since(last) >= Millis::new(60_000));
        if !due {
            return None;
        }
        self.last = Some(now);
        let refused = std::mem::take(&mut self.refused);
        let client = client.map_or("(none)", |it| it.as_ref());
        let what = self.what;
        Some(format!(
            "{what}; {refused} requests were refused, the last one of client {client}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Millis = Millis::new(120_000);
    const ROOM: usize = 1000;

    fn second(seconds: u64) -> Mono {
        Mono::from_micros(seconds * 1_000_000)
    }

    const fn newcomer(set: u64, privileged: bool) -> Newcomer {
        Newcomer {
            set: SetId(set),
            partitions: 1,
            uses_topic_ids: true,
            privileged,
        }
    }

    fn dice() -> impl FnMut() -> u32 {
        let mut next = 0;
        move || {
            next += 1;
            next
        }
    }

    fn id(opened: Opened) -> i32 {
        assert_ne!(opened.id, SESSION_NONE, "no session");
        opened.id
    }

    fn full() -> Opened {
        Opened {
            id: SESSION_NONE,
            evicted: Vec::new(),
        }
    }

    #[test]
    fn np_04_a_wrong_epoch_is_refused_and_changes_nothing() {
        let mut sessions = FetchSessions::new(2, ROOM, AGE);
        let session = id(sessions.open(second(0), newcomer(1, false), dice()));
        assert_eq!(sessions.advance(second(1), session, 1, true), Ok(SetId(1)));
        for wrong in [1, 3, 0, -7] {
            let refused = sessions.advance(second(2), session, wrong, true);
            assert_eq!(
                refused,
                Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH),
                "{wrong}"
            );
        }
        assert_eq!(
            sessions.advance(second(2), session, 2, false),
            Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR)
        );
        assert_eq!(sessions.advance(second(2), session, 2, true), Ok(SetId(1)));
        assert_eq!(
            sessions.advance(second(2), session + 1, 1, true),
            Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)
        );
    }

    #[test]
    fn an_epoch_wraps_to_one() {
        let mut sessions = FetchSessions::new(1, ROOM, AGE);
        let session = id(sessions.open(second(0), newcomer(1, false), dice()));
        sessions.sessions.get_mut(&session).expect("session").epoch = i32::MAX;
        assert_eq!(
            sessions.advance(second(1), session, i32::MAX, true),
            Ok(SetId(1))
        );
        assert_eq!(sessions.advance(second(1), session, 1, true), Ok(SetId(1)));
    }

    #[test]
    fn np_02_the_least_recently_used_session_goes_first_and_followers_stay() {
        let mut sessions = FetchSessions::new(3, ROOM, AGE);
        let mut dice = dice();
        let follower = id(sessions.open(second(0), newcomer(1, true), &mut dice));
        let idle = id(sessions.open(second(1), newcomer(2, false), &mut dice));
        let busy = id(sessions.open(second(2), newcomer(3, false), &mut dice));
        for (at, epoch) in [(100, 1), (130, 2)] {
            sessions
                .advance(second(at), follower, epoch, true)
                .expect("follower");
            sessions
                .advance(second(at), busy, epoch, true)
                .expect("busy");
        }
        // At 121 s after its last use the idle one is stale; at 120 s it is not.
        assert_eq!(
            sessions.open(second(121), newcomer(4, false), &mut dice),
            full()
        );
        let opened = sessions.open(second(122), newcomer(4, false), &mut dice);
        assert_eq!(opened.evicted, [SetId(2)], "{opened:?}");
        assert_ne!(opened.id, SESSION_NONE);
        assert!(sessions.advance(second(122), idle, 1, true).is_err());
        // Nobody is stale now: a consumer gets none, a follower takes an old consumer's place.
        assert_eq!(
            sessions.open(second(131), newcomer(5, false), &mut dice),
            full()
        );
        let opened = sessions.open(second(131), newcomer(5, true), &mut dice);
        assert_eq!(opened.evicted, [SetId(3)], "{opened:?}");
        assert_ne!(opened.id, SESSION_NONE);
        assert_eq!(sessions.sessions.len(), 3);
        assert!(sessions.advance(second(132), follower, 3, true).is_ok());
    }

    #[test]
    fn c_20_sessions_in_use_outlive_a_client_that_opens_one_per_poll() {
        let mut sessions = FetchSessions::new(100, ROOM, AGE);
        let mut dice = dice();
        let good: Vec<i32> = (0..100)
            .map(|set| id(sessions.open(second(0), newcomer(set, false), &mut dice)))
            .collect();
        let mut notice = FullNotice::new("every session is in use");
        let mut told = Vec::new();
        for poll in 0..300_u64 {
            let now = second(poll);
            assert_eq!(
                sessions.open(now, newcomer(1000 + poll, false), &mut dice),
                full()
            );
            told.extend(notice.refused(now, Some(&"platformatic".into())));
            if poll % 60 == 0 {
                let epoch = i32::try_from(poll / 60).expect("small") + 1;
                for session in &good {
                    sessions
                        .advance(now, *session, epoch, true)
                        .expect("good session");
                }
            }
        }
        assert_eq!(told.len(), 5);
        assert!(told.iter().all(|text| text.contains("client platformatic")));
    }

    #[test]
    fn sessions_hold_a_bounded_number_of_partitions() {
        let mut sessions = FetchSessions::new(10, 5, AGE);
        let mut dice = dice();
        let of = |set, partitions| Newcomer {
            partitions,
            ..newcomer(set, false)
        };
        let first = id(sessions.open(second(0), of(1, 3), &mut dice));
        assert_eq!(sessions.open(second(0), of(2, 3), &mut dice), full());
        let other = id(sessions.open(second(0), of(2, 2), &mut dice));
        assert!(sessions.resize(first, 2), "it may shrink");
        assert!(sessions.resize(first, 3), "and grow again");
        assert!(!sessions.resize(other, 3), "but not beyond the limit");
        assert!(
            sessions.advance(second(1), other, 1, true).is_err(),
            "it is closed then"
        );
        assert!(!sessions.resize(first, 0));
        assert_eq!((sessions.len(), sessions.partitions), (0, 0));
    }

    #[test]
    fn np_02_room_for_partitions_is_made_as_room_for_sessions_is() {
        let mut sessions = FetchSessions::new(10, 5, AGE);
        let mut dice = dice();
        let of = |set, partitions, privileged| Newcomer {
            partitions,
            ..newcomer(set, privileged)
        };
        for set in 1..=3 {
            id(sessions.open(second(set), of(set, 1, false), &mut dice));
        }
        assert_eq!(sessions.open(second(5), of(4, 3, true), &mut dice), full());
        // The first two are stale at 123 s; one would be enough for 3 partitions.
        let opened = sessions.open(second(123), of(4, 3, false), &mut dice);
        assert_eq!(opened.evicted, [SetId(1)]);
        // A follower may also have the place of consumers that are in use, once they are old.
        let opened = sessions.open(second(244), of(5, 4, true), &mut dice);
        assert_eq!(opened.evicted, [SetId(2), SetId(3), SetId(4)]);
        assert_ne!(opened.id, SESSION_NONE);
        // What can never fit evicts nobody.
        assert_eq!(
            sessions.open(second(999), of(6, 6, true), &mut dice),
            full()
        );
        assert_eq!((sessions.len(), sessions.partitions), (1, 4));
    }

    #[test]
    fn the_fields_of_a_request_say_what_it_wants() {
        assert_eq!(
            SessionWish::of(0, -1),
            SessionWish::Sessionless { close: 0 }
        );
        assert_eq!(
            SessionWish::of(7, -1),
            SessionWish::Sessionless { close: 7 }
        );
        assert_eq!(SessionWish::of(0, 0), SessionWish::Create { close: 0 });
        assert_eq!(SessionWish::of(7, 0), SessionWish::Create { close: 7 });
        assert_eq!(
            SessionWish::of(7, 3),
            SessionWish::Incremental { id: 7, epoch: 3 }
        );
    }
}
