use highwater_types::{EpochEntry, EpochHistory, LeaderEpoch, Offset};

/// Which leader epoch began where in one log.
///
/// Pure: its owner writes `leader-epoch-checkpoint` (see
/// [`checkpoint::leader_epochs`](crate::checkpoint::leader_epochs)) when a method says that the
/// entries changed.
///
/// Invariant: entries rise strictly in epoch and in start offset, and none is negative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderEpochCache {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochCache {
    /// A cache that knows of no epoch.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// A cache of what a checkpoint file listed. `None` when the entries break the invariant.
    #[must_use]
    pub fn from_entries(entries: Vec<EpochEntry>) -> Option<Self> {
        let rising = entries
            .iter()
            .zip(entries.iter().skip(1))
            .all(|(earlier, later)| {
                earlier.epoch < later.epoch && earlier.start_offset < later.start_offset
            });
        let legal = entries.iter().all(is_legal);
        (rising && legal).then_some(Self { entries })
    }

    /// Notes that `epoch` began at `start_offset`: on becoming leader at the log end offset, even
    /// if nothing will be written; on each append, with the batch's own epoch and base offset.
    ///
    /// Ignored when the epoch is the latest one and begins no earlier than known. Otherwise the
    /// entries that contradict the new one (as high an epoch, or as high an offset) go first.
    /// Returns whether the entries changed.
    ///
    /// # Panics
    /// On a negative epoch or offset: the caller has checked what comes from outside.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        let new = EpochEntry {
            epoch,
            start_offset,
        };
        assert!(
            is_legal(&new),
            "epoch {epoch} cannot begin at offset {start_offset}"
        );
        if self
            .latest()
            .is_some_and(|it| it.epoch == epoch && it.start_offset <= start_offset)
        {
            return false;
        }
        let agrees = |it: &EpochEntry| it.epoch < epoch && it.start_offset < start_offset;
        let keep = self.entries.partition_point(agrees);
        self.entries.truncate(keep);
        self.entries.push(new);
        self.assert_invariants();
        true
    }

    /// The log now ends at `end`: drops the entries that begin there or later, also when the log
    /// ended there before (KAFKA-10706). Returns whether the entries changed.
    pub fn truncate_from_end(&mut self, end: Offset) -> bool {
        #[cfg(feature = "planted-bugs")]
        if highwater_types::is_planted(highwater_types::PlantedBug::KeepEpochEntriesAboveACut) {
            return false;
        }
        let keep = self.entries.partition_point(|it| it.start_offset < end);
        let changed = keep < self.entries.len();
        self.entries.truncate(keep);
        changed
    }

    /// The log now starts at `start`: drops the entries that end there or earlier; the one that
    /// covers `start` begins there now. Returns whether the entries changed.
    pub fn truncate_from_start(&mut self, start: Offset) -> bool {
        let at_or_below = self.entries.partition_point(|it| it.start_offset <= start);
        let Some(covering) = at_or_below.checked_sub(1) else {
            return false;
        };
        self.entries.drain(..covering);
        let raised = self.entries.first_mut().is_some_and(|first| {
            let raised = first.start_offset < start;
            first.start_offset = start;
            raised
        });
        self.assert_invariants();
        covering > 0 || raised
    }

    /// Forgets everything. Returns whether the entries changed.
    pub fn clear(&mut self) -> bool {
        let changed = !self.entries.is_empty();
        self.entries.clear();
        changed
    }

    /// The entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The latest epoch and where it began.
    #[must_use]
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// The epoch of the record at `offset`, or that one there would have.
    #[must_use]
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|it| it.start_offset <= offset);
        self.entries.get(after.checked_sub(1)?).map(|it| it.epoch)
    }

    /// The history as the divergence rules see it.
    #[must_use]
    pub fn history(&self, log_end_offset: Offset) -> EpochHistory<'_> {
        EpochHistory {
            entries: &self.entries,
            log_end_offset,
        }
    }

    fn assert_invariants(&self) {
        for (earlier, later) in self.entries.iter().zip(self.entries.iter().skip(1)) {
            assert!(
                earlier.epoch < later.epoch,
                "epochs fall: {earlier:?}, {later:?}"
            );
            assert!(
                earlier.start_offset < later.start_offset,
                "start offsets fall: {earlier:?}, {later:?}"
            );
        }
    }
}

fn is_legal(entry: &EpochEntry) -> bool {
    entry.epoch >= LeaderEpoch::ZERO && entry.start_offset >= Offset::ZERO
}

#[cfg(test)]
mod tests {
    use highwater_types::truncation_point;

    use super::*;

    fn cache(pairs: &[(i32, i64)]) -> LeaderEpochCache {
        let mut cache = LeaderEpochCache::new();
        for (epoch, start) in pairs {
            assign(&mut cache, *epoch, *start);
        }
        cache
    }

    fn assign(cache: &mut LeaderEpochCache, epoch: i32, start: i64) -> bool {
        cache.assign(LeaderEpoch::new(epoch), Offset::new(start))
    }

    fn pairs(cache: &LeaderEpochCache) -> Vec<(i32, i64)> {
        cache
            .entries()
            .iter()
            .map(|it| (it.epoch.raw(), it.start_offset.raw()))
            .collect()
    }

    #[test]
    fn assigning_the_latest_epoch_again_changes_nothing() {
        let mut it = cache(&[(1, 0), (2, 10)]);
        assert!(!assign(&mut it, 2, 10));
        assert!(!assign(&mut it, 2, 15));
        assert_eq!(pairs(&it), [(1, 0), (2, 10)]);
    }

    #[test]
    fn an_epoch_may_begin_without_a_record() {
        let it = cache(&[(1, 0), (2, 10), (5, 11)]);
        assert_eq!(pairs(&it), [(1, 0), (2, 10), (5, 11)]);
    }

    #[test]
    fn what_contradicts_the_new_entry_goes() {
        // As high an offset: epoch 2 turned out to have no record.
        let mut it = cache(&[(1, 0), (2, 10)]);
        assert!(assign(&mut it, 3, 10));
        assert_eq!(pairs(&it), [(1, 0), (3, 10)]);
        // As high an epoch.
        let mut it = cache(&[(1, 0), (2, 10), (4, 20)]);
        assert!(assign(&mut it, 3, 30));
        assert_eq!(pairs(&it), [(1, 0), (2, 10), (3, 30)]);
        // The same epoch, earlier than known.
        let mut it = cache(&[(1, 0), (2, 10)]);
        assert!(assign(&mut it, 2, 5));
        assert_eq!(pairs(&it), [(1, 0), (2, 5)]);
        // Everything.
        let mut it = cache(&[(3, 10), (4, 20)]);
        assert!(assign(&mut it, 2, 5));
        assert_eq!(pairs(&it), [(2, 5)]);
    }

    #[test]
    #[should_panic(expected = "epoch -1 cannot begin")]
    fn a_negative_epoch_is_our_bug() {
        assign(&mut LeaderEpochCache::new(), -1, 0);
    }

    #[test]
    fn a_cut_drops_epochs_that_begin_at_or_beyond_it() {
        for (end, left) in [
            (0, &[][..]),
            (1, &[(1, 0)][..]),
            (10, &[(1, 0)][..]),
            (11, &[(1, 0), (2, 10)][..]),
            (20, &[(1, 0), (2, 10)][..]),
            (99, &[(1, 0), (2, 10), (4, 20)][..]),
        ] {
            let mut it = cache(&[(1, 0), (2, 10), (4, 20)]);
            assert_eq!(
                it.truncate_from_end(Offset::new(end)),
                left.len() < 3,
                "{end}"
            );
            assert_eq!(pairs(&it), left, "{end}");
        }
    }

    #[test]
    fn a_new_start_keeps_the_epoch_that_covers_it() {
        for (start, left) in [
            (0, &[(1, 5), (2, 10), (4, 20)][..]),
            (5, &[(1, 5), (2, 10), (4, 20)][..]),
            (7, &[(1, 7), (2, 10), (4, 20)][..]),
            (10, &[(2, 10), (4, 20)][..]),
            (19, &[(2, 19), (4, 20)][..]),
            (50, &[(4, 50)][..]),
        ] {
            let mut it = cache(&[(1, 5), (2, 10), (4, 20)]);
            assert_eq!(
                it.truncate_from_start(Offset::new(start)),
                start > 5,
                "{start}"
            );
            assert_eq!(pairs(&it), left, "{start}");
        }
    }

    #[test]
    fn the_epoch_of_an_offset() {
        let it = cache(&[(1, 5), (2, 10)]);
        let at = |offset| it.epoch_at(Offset::new(offset)).map(LeaderEpoch::raw);
        assert_eq!(
            [at(4), at(5), at(9), at(10), at(99)],
            [None, Some(1), Some(1), Some(2), Some(2)]
        );
    }

    #[test]
    fn a_file_that_breaks_the_invariant_is_no_cache() {
        let entry = |epoch, start| EpochEntry {
            epoch: LeaderEpoch::new(epoch),
            start_offset: Offset::new(start),
        };
        assert!(LeaderEpochCache::from_entries(vec![entry(1, 0), entry(3, 4)]).is_some());
        for bad in [
            vec![entry(1, 0), entry(1, 4)],
            vec![entry(2, 0), entry(1, 4)],
            vec![entry(1, 4), entry(2, 4)],
            vec![entry(-1, 0)],
            vec![entry(0, -5)],
        ] {
            assert_eq!(LeaderEpochCache::from_entries(bad.clone()), None, "{bad:?}");
        }
    }

    #[test]
    fn rt_06_a_cut_at_the_log_end_drops_an_epoch_without_records() {
        // B led epoch 2 without a write; A leads epoch 3 without a write.
        let mut b = cache(&[(1, 0), (2, 5)]);
        let a = cache(&[(1, 0), (3, 5)]);
        let end = Offset::new(5);
        let said = a
            .history(end)
            .end_of(LeaderEpoch::new(2))
            .expect("A knows older epochs");
        let cut = truncation_point(b.history(end), said).expect("B has a history");
        assert_eq!(cut, end, "no record is cut");
        assert!(b.truncate_from_end(cut), "and yet the cache changes");
        let asks = b.latest().expect("epoch 1 is left").epoch;
        assert_eq!(asks, LeaderEpoch::new(1));
        let said = a.history(end).end_of(asks).expect("A knows epoch 1");
        assert_eq!(said.end_offset, end, "B's next fetch does not diverge");
    }

    #[test]
    fn i_10_one_entry_per_epoch_of_the_log_at_its_first_offset() {
        // (epoch, base offset) of the batches of a log, as recovery replays them.
        let batches = [(0, 0), (0, 3), (2, 7), (2, 8), (2, 20), (5, 21), (5, 40)];
        assert_eq!(pairs(&cache(&batches)), [(0, 0), (2, 7), (5, 21)]);
    }
}
