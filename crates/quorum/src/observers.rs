use std::collections::BTreeMap;

use highwater_types::{Millis, Mono, Now, Offset, WallMs};

use crate::ReplicaKey;

/// How long the leader remembers an observer that does not fetch, as in Kafka.
const FORGOTTEN_AFTER: Millis = Millis::new(300_000);
/// Most observers that are remembered: whoever may fetch could make up any number of names.
const OBSERVERS_MAX: usize = 10_000;

/// The replicas that follow the metadata log without a vote, as its leader sees them. Nothing
/// depends on them: this is what DescribeQuorum tells.
#[derive(Clone, Debug, Default)]
pub struct Observers {
    by_key: BTreeMap<ReplicaKey, ObserverProgress>,
}

/// How far an observer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserverProgress {
    /// Its log end offset: where it fetched from last.
    pub log_end_offset: Offset,
    /// When it fetched last.
    pub last_fetch: WallMs,
    /// When it last had everything that the leader had.
    pub last_caught_up: WallMs,
    fetched: Mono,
    /// The leader's log end offset at its last fetch.
    leader_end: Offset,
}

impl Observers {
    /// `key` fetched from `offset` while the leader's log ended at `leader_end`. It has caught up
    /// when it asks for what the leader does not have yet, and had when it now asks for what the
    /// leader did not have at its last fetch.
    pub fn handle_fetch(&mut self, now: Now, key: ReplicaKey, offset: Offset, leader_end: Offset) {
        self.forget_silent(now.mono);
        let before = self.by_key.get(&key).copied();
        let caught_up_before = before.map_or(WallMs::NONE, |it| it.last_caught_up);
        let last_caught_up = match before {
            _ if offset >= leader_end => now.wall,
            Some(it) if offset >= it.leader_end => it.last_fetch.max(caught_up_before),
            _ => caught_up_before,
        };
        if before.is_none() && self.by_key.len() >= OBSERVERS_MAX {
            return;
        }
        let progress = ObserverProgress {
            log_end_offset: offset,
            last_fetch: now.wall,
            last_caught_up,
            fetched: now.mono,
            leader_end,
        };
        self.by_key.insert(key, progress);
    }

    /// Those that fetched not too long ago, by key.
    pub fn iter(&self, now: Mono) -> impl Iterator<Item = (ReplicaKey, ObserverProgress)> + '_ {
        let all = self.by_key.iter().map(|(key, it)| (*key, *it));
        all.filter(move |(_, it)| !it.is_silent(now))
    }

    fn forget_silent(&mut self, now: Mono) {
        self.by_key.retain(|_, it| !it.is_silent(now));
    }
}

impl ObserverProgress {
    fn is_silent(&self, now: Mono) -> bool {
        now.since(self.fetched) >= FORGOTTEN_AFTER
    }
}

#[cfg(test)]
mod tests {
    use highwater_types::{DirectoryId, NodeId};

    use super::*;

    fn key(id: i32) -> ReplicaKey {
        ReplicaKey {
            id: NodeId::new(id),
            directory_id: DirectoryId::ZERO,
        }
    }

    fn now(millis: u64) -> Now {
        Now {
            mono: Mono::from_micros(millis * 1000),
            wall: WallMs::new(1_000_000 + i64::try_from(millis).expect("small")),
        }
    }

    fn seen(observers: &Observers, millis: u64) -> Vec<(i32, i64, i64, i64)> {
        let all = observers.iter(now(millis).mono);
        let row = |(key, it): (ReplicaKey, ObserverProgress)| {
            let since = |at: WallMs| {
                if at < WallMs::new(0) {
                    -1
                } else {
                    at.raw() - 1_000_000
                }
            };
            let (fetched, caught_up) = (since(it.last_fetch), since(it.last_caught_up));
            (key.id.raw(), it.log_end_offset.raw(), fetched, caught_up)
        };
        all.map(row).collect()
    }

    #[test]
    fn caught_up_is_judged_by_what_the_leader_had_at_the_fetch_before() {
        let mut observers = Observers::default();
        let mut fetch = |millis, offset, end| {
            observers.handle_fetch(now(millis), key(4), Offset::new(offset), Offset::new(end));
            seen(&observers, millis)
        };
        assert_eq!(fetch(10, 0, 100), [(4, 0, 10, -1)]);
        // It now has what the leader had at 10, but not what came since.
        assert_eq!(fetch(20, 100, 130), [(4, 100, 20, 10)]);
        assert_eq!(fetch(30, 120, 150), [(4, 120, 30, 10)]);
        assert_eq!(fetch(40, 150, 150), [(4, 150, 40, 40)]);
    }

    #[test]
    fn who_does_not_fetch_for_five_minutes_is_forgotten() {
        let mut observers = Observers::default();
        observers.handle_fetch(now(0), key(4), Offset::ZERO, Offset::ZERO);
        observers.handle_fetch(now(200_000), key(5), Offset::ZERO, Offset::ZERO);
        assert_eq!(seen(&observers, 299_999).len(), 2);
        assert_eq!(seen(&observers, 300_000), [(5, 0, 200_000, 200_000)]);
        observers.handle_fetch(now(300_000), key(6), Offset::ZERO, Offset::ZERO);
        assert_eq!(observers.by_key.len(), 2);
    }

    #[test]
    fn the_same_node_with_another_directory_is_another_observer() {
        let mut observers = Observers::default();
        let moved = ReplicaKey {
            directory_id: DirectoryId::new(highwater_types::Uuid::from_u128(1000)),
            ..key(4)
        };
        for key in [key(4), moved] {
            observers.handle_fetch(now(0), key, Offset::ZERO, Offset::ZERO);
        }
        assert_eq!(observers.iter(now(0).mono).count(), 2);
    }

    #[test]
    fn re_05_made_up_names_do_not_fill_the_memory() {
        let mut observers = Observers::default();
        for id in 0..=10_000 {
            observers.handle_fetch(now(0), key(id), Offset::ZERO, Offset::ZERO);
        }
        assert_eq!(observers.by_key.len(), OBSERVERS_MAX);
    }
}
