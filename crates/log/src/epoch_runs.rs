use highwater_types::{LeaderEpoch, Offset};

use crate::leader_epoch_cache::LeaderEpochCache;
use crate::segment::scan::Located;

/// Consecutive batches of one leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochRun {
    pub(crate) epoch: LeaderEpoch,
    /// Offset of the first batch.
    pub(crate) start_offset: Offset,
    /// The offset that was due there: lower only where offsets are missing.
    pub(crate) expected: Offset,
    /// Segment of the first batch.
    pub(crate) base_offset: Offset,
    /// The first batch's first byte in that segment.
    pub(crate) position: u64,
    batches: u64,
}

impl EpochRun {
    pub(crate) const fn is_single(&self) -> bool {
        self.batches == 1
    }

    const fn begins_segment(&self) -> bool {
        self.position == 0
    }
}

/// The leader epochs of a log's batches, in order.
///
/// The epoch is the one field of a batch, besides the base offset, that no checksum covers.
/// Epochs never fall along a log, so where they do there are two explanations. Either the field of
/// a batch is damaged: then records are all right, and nobody may cut a thing. (Apache Kafka takes
/// too high an epoch into its history and leaves it there.) Or a loss of power undid half of a
/// truncation, and what follows had been cut off: then it must go again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EpochRuns {
    runs: Vec<EpochRun>,
}

/// What the epochs of the batches say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// What is neither wrong nor stale. Epochs rise strictly.
    kept: Vec<EpochRun>,
    /// Batches whose epoch is damaged.
    pub(crate) wrong: Vec<EpochRun>,
    /// From here on everything had been cut off before.
    pub(crate) stale: Option<EpochRun>,
}

impl EpochRuns {
    /// Notes the next good batch, which lies in the segment at `base_offset`.
    pub(crate) fn note(&mut self, base_offset: Offset, batch: &Located, expected: Offset) {
        let epoch = batch.header.leader_epoch;
        if let Some(last) = self.runs.last_mut().filter(|last| last.epoch == epoch) {
            last.batches += 1;
            return;
        }
        self.runs.push(EpochRun {
            epoch,
            start_offset: batch.header.base_offset,
            expected,
            base_offset,
            position: batch.position,
            batches: 1,
        });
    }

    /// Tells damaged epochs from batches that had been cut off.
    ///
    /// A single batch whose epoch fits neither side is damaged. What is stale is a tail: nothing
    /// of the new epoch or a later one follows, and either it is of several batches or it begins a
    /// segment, for a truncation of ours always ends one. Below `unsure_from`, an offset that was
    /// flushed or acknowledged, nothing is stale. No epoch is above `newest`, if that is known.
    pub(crate) fn judge(&self, unsure_from: Offset, newest: Option<LeaderEpoch>) -> Judgement {
        let mut judged = Judgement::default();
        let kept = &mut judged.kept;
        let later = self.newest_behind();
        'runs: for (run, later) in self.runs.iter().zip(later) {
            let is_impossible =
                run.epoch < LeaderEpoch::NONE || newest.is_some_and(|newest| run.epoch > newest);
            if run.is_single() && is_impossible {
                judged.wrong.push(*run);
                continue;
            }
            while let Some(top) = kept.last().copied().filter(|top| run.epoch < top.epoch) {
                let goes_on = later.is_some_and(|later| later >= top.epoch);
                if run.is_single() && goes_on {
                    judged.wrong.push(*run);
                    continue 'runs;
                }
                let below = kept.iter().rev().nth(1);
                let is_unsure = run.start_offset >= unsure_from;
                let may_be_cut =
                    top.begins_segment() && run.begins_segment() && is_unsure && !goes_on;
                let fits_below = below.is_none_or(|below| below.epoch <= run.epoch);
                if top.is_single() && fits_below && !may_be_cut {
                    judged.wrong.extend(kept.pop());
                    continue;
                }
                let is_tail = run.begins_segment() || !run.is_single();
                if is_unsure && is_tail && !goes_on && run.epoch >= LeaderEpoch::ZERO {
                    judged.stale = Some(*run);
                    break 'runs;
                }
                judged.wrong.push(*run);
                continue 'runs;
            }
            match kept.last_mut().filter(|last| last.epoch == run.epoch) {
                Some(last) => last.batches += run.batches,
                None => kept.push(*run),
            }
        }
        judged
    }

    /// For each run, the newest epoch behind it.
    fn newest_behind(&self) -> Vec<Option<LeaderEpoch>> {
        let mut newest = None;
        let backwards = self.runs.iter().rev().map(|run| {
            let behind = newest;
            newest = newest.max(Some(run.epoch));
            behind
        });
        let mut found: Vec<_> = backwards.collect();
        found.reverse();
        found
    }
}

impl Judgement {
    /// Which epoch began where, strictly rising.
    pub(crate) fn history(&self) -> LeaderEpochCache {
        let mut history = LeaderEpochCache::new();
        // What is wrong in front of all others is of the first epoch.
        let mut from = self.wrong.iter().map(|run| run.start_offset).min();
        let known = self.kept.iter();
        for run in known.filter(|run| run.epoch >= LeaderEpoch::ZERO) {
            let own = run.start_offset;
            history.assign(run.epoch, from.take().map_or(own, |it| it.min(own)));
        }
        history
    }

    /// Takes a checkpoint's word against that of a single batch: its epoch is between those around
    /// it, but the checkpoint, which knows the later one, has never heard of it.
    pub(crate) fn doubt_what_lacks_in(&mut self, listed: &LeaderEpochCache) {
        let lists = |epoch| listed.entries().iter().any(|entry| entry.epoch == epoch);
        let mut before = None;
        let mut rest = std::mem::take(&mut self.kept).into_iter().peekable();
        while let Some(run) = rest.next() {
            let said = listed.epoch_at(run.start_offset);
            let after = rest.peek().map(|next| next.epoch);
            let knows_later = after.is_some_and(lists);
            let is_between = said.is_some() && (said == before || said == after);
            if run.is_single() && knows_later && is_between && !lists(run.epoch) {
                self.wrong.push(run);
            } else {
                before = Some(run.epoch);
                self.kept.push(run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of (epoch, batches, whether it begins a segment). Each batch has one record.
    fn judge(runs: &[(i32, u64, bool)], unsure_from: i64, newest: Option<i32>) -> String {
        let mut at = 0;
        let mut all = EpochRuns::default();
        for (epoch, batches, begins_segment) in runs {
            all.runs.push(EpochRun {
                epoch: LeaderEpoch::new(*epoch),
                start_offset: Offset::new(at),
                expected: Offset::new(at),
                base_offset: Offset::ZERO,
                position: u64::from(!begins_segment),
                batches: *batches,
            });
            at += batches.cast_signed();
        }
        let judged = all.judge(Offset::new(unsure_from), newest.map(LeaderEpoch::new));
        let history = judged.history();
        let entries = history.entries().iter();
        let history: Vec<_> = entries
            .map(|it| format!("{}@{}", it.epoch, it.start_offset))
            .collect();
        let wrong = judged.wrong.iter();
        let wrong: Vec<_> = wrong.map(|it| it.start_offset.to_string()).collect();
        let stale = judged.stale;
        format!(
            "{}; wrong {}; stale {}",
            history.join(" "),
            wrong.join(" "),
            stale.map_or_else(|| "-".to_owned(), |it| it.start_offset.to_string())
        )
    }

    #[test]
    fn one_damaged_epoch_is_told_from_both_sides() {
        let low = [(4, 5, true), (1, 1, false), (4, 5, false)];
        assert_eq!(judge(&low, 0, None), "4@0; wrong 5; stale -");
        let high = [(4, 5, true), (900, 1, false), (4, 5, false)];
        assert_eq!(judge(&high, 0, None), "4@0; wrong 5; stale -");
        let negative = [(0, 5, true), (-7, 1, false), (0, 5, false)];
        assert_eq!(judge(&negative, 0, None), "0@0; wrong 5; stale -");
        let first = [(900, 1, true), (4, 5, false)];
        assert_eq!(judge(&first, 0, None), "4@0; wrong 0; stale -");
        let at_change = [(4, 5, true), (900, 1, false), (5, 5, false)];
        assert_eq!(judge(&at_change, 0, None), "4@0 5@6; wrong 5; stale -");
        let two = [(4, 5, true), (900, 1, false), (77, 1, false), (4, 5, false)];
        assert_eq!(judge(&two, 0, None), "4@0; wrong 5 6; stale -");
    }

    #[test]
    fn the_last_batch_is_damaged_and_not_stale_in_the_middle_of_a_segment() {
        let low = [(4, 5, true), (1, 1, false)];
        assert_eq!(judge(&low, 0, None), "4@0; wrong 5; stale -");
        let high = [(4, 5, true), (900, 1, false)];
        assert_eq!(judge(&high, 0, Some(4)), "4@0; wrong 5; stale -");
        assert_eq!(judge(&high, 0, None), "4@0 900@5; wrong ; stale -");
    }

    #[test]
    fn a_tail_that_had_been_cut_off_is_stale() {
        let own = [(4, 5, true), (5, 3, true), (4, 1, true)];
        assert_eq!(judge(&own, 5, None), "4@0 5@5; wrong ; stale 8");
        let one_batch = [(4, 5, true), (5, 1, true), (4, 9, true)];
        assert_eq!(judge(&one_batch, 5, None), "4@0 5@5; wrong ; stale 6");
        let within = [(4, 5, true), (5, 3, false), (4, 2, false)];
        assert_eq!(judge(&within, 5, None), "4@0 5@5; wrong ; stale 8");
        let several = [(4, 5, true), (5, 3, true), (3, 2, true), (4, 2, false)];
        assert_eq!(judge(&several, 5, None), "4@0 5@5; wrong ; stale 8");
    }

    #[test]
    fn what_was_acknowledged_is_never_stale() {
        let tail = [(4, 5, true), (5, 3, true), (4, 2, true)];
        assert_eq!(judge(&tail, 9, None), "4@0 5@5; wrong 8; stale -");
        let goes_on = [(4, 5, true), (5, 3, true), (4, 2, true), (5, 1, false)];
        assert_eq!(judge(&goes_on, 0, None), "4@0 5@5; wrong 8; stale -");
        let tiny = [(0, 1, true), (900, 1, true), (0, 1, true), (0, 1, true)];
        assert_eq!(judge(&tiny, 0, Some(0)), "0@0; wrong 1; stale -");
    }
}
