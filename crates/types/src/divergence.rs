use crate::{LeaderEpoch, Offset};

/// One line of a leader-epoch history: `epoch` began at `start_offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEntry {
    /// The epoch that began.
    pub epoch: LeaderEpoch,
    /// Its first offset (inclusive), also when nothing was written in it yet.
    pub start_offset: Offset,
}

/// Where an epoch ended, as an OffsetForLeaderEpoch answer or a diverging-epoch field says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch that the answering log knows and that is not above the one asked for.
    pub epoch: LeaderEpoch,
    /// Exclusive end of `epoch` in the answering log.
    pub end_offset: Offset,
}

/// A borrowed epoch history together with the log end offset that bounds its last epoch.
///
/// Invariant: `entries` rise strictly in epoch and in start offset.
#[derive(Clone, Copy, Debug)]
pub struct EpochHistory<'a> {
    /// The history, oldest first.
    pub entries: &'a [EpochEntry],
    /// Exclusive end of the log.
    pub log_end_offset: Offset,
}

impl EpochHistory<'_> {
    /// Where `asked` ended in this log: the rule of KIP-101 as amended by KIP-279.
    ///
    /// `None` when this log cannot say: it has no history, `asked` is negative, or `asked` is
    /// newer than all it knows. An epoch older than the first known one ends where that begins,
    /// and is answered as itself.
    #[must_use]
    pub fn end_of(&self, asked: LeaderEpoch) -> Option<EpochEnd> {
        let newest = self.entries.last()?;
        if asked < LeaderEpoch::ZERO || asked > newest.epoch {
            return None;
        }
        if asked == newest.epoch {
            return Some(EpochEnd {
                epoch: asked,
                end_offset: self.log_end_offset,
            });
        }
        let after = self.entries.partition_point(|entry| entry.epoch <= asked);
        let end_offset = self.entries.get(after)?.start_offset;
        let epoch = match after.checked_sub(1).and_then(|at| self.entries.get(at)) {
            Some(entry) => entry.epoch,
            None => asked,
        };
        Some(EpochEnd { epoch, end_offset })
    }
}

/// Where a follower whose history is `own` cuts its log after the leader said that the follower's
/// last epoch ended there at `leader_end`. Never above the follower's log end offset.
///
/// When the follower does not know the leader's epoch it cuts to the end of the largest epoch
/// below it, and asks again: histories may part more than once (KIP-279). `None` when the
/// follower has no history to compare.
#[must_use]
pub fn truncation_point(own: EpochHistory<'_>, leader_end: EpochEnd) -> Option<Offset> {
    let own_end = own.end_of(leader_end.epoch).or_else(|| {
        // The leader named an epoch above all of ours: everything we hold is older.
        own.entries
            .last()
            .filter(|entry| leader_end.epoch > entry.epoch)
            .map(|entry| EpochEnd {
                epoch: entry.epoch,
                end_offset: own.log_end_offset,
            })
    })?;
    let cut = if own_end.epoch == leader_end.epoch {
        own_end.end_offset.min(leader_end.end_offset)
    } else {
        own_end.end_offset
    };
    Some(cut.min(own.log_end_offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
        pairs
            .iter()
            .map(|&(epoch, start)| EpochEntry {
                epoch: LeaderEpoch::new(epoch),
                start_offset: Offset::new(start),
            })
            .collect()
    }

    fn cut(
        own: &[(i32, i64)],
        own_end: i64,
        leader: &[(i32, i64)],
        leader_end: i64,
    ) -> Option<i64> {
        let (own, leader) = (history(own), history(leader));
        let own = EpochHistory {
            entries: &own,
            log_end_offset: Offset::new(own_end),
        };
        let leader = EpochHistory {
            entries: &leader,
            log_end_offset: Offset::new(leader_end),
        };
        let end = leader.end_of(own.entries.last()?.epoch)?;
        truncation_point(own, end).map(Offset::raw)
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        let entries = history(&[(1, 0), (3, 10), (5, 20)]);
        let log = EpochHistory {
            entries: &entries,
            log_end_offset: Offset::new(25),
        };
        let end = |epoch| {
            log.end_of(LeaderEpoch::new(epoch))
                .map(|it| (it.epoch.raw(), it.end_offset.raw()))
        };
        assert_eq!(end(0), Some((0, 0)));
        assert_eq!(end(1), Some((1, 10)));
        assert_eq!(end(2), Some((1, 10)));
        assert_eq!(end(4), Some((3, 20)));
        assert_eq!(end(5), Some((5, 25)));
        assert_eq!(end(6), None);
        assert_eq!(end(-1), None);
    }

    #[test]
    fn rt_02_same_length_but_another_epoch() {
        assert_eq!(cut(&[(1, 0)], 2, &[(1, 0), (2, 1)], 2), Some(1));
    }

    #[test]
    fn rt_03_the_leader_lacks_the_followers_epoch() {
        assert_eq!(
            cut(&[(1, 0), (2, 10)], 15, &[(1, 0), (3, 20)], 21),
            Some(10)
        );
    }

    #[test]
    fn rt_06_a_cut_at_the_end_is_no_data_loss() {
        assert_eq!(cut(&[(1, 0), (2, 5)], 5, &[(1, 0), (3, 5)], 5), Some(5));
    }
}
