use highwater_types::{EpochEnd, EpochHistory, LeaderEpoch, Offset, OffsetAndEpoch};

/// A replica's copy of the metadata log, as far as the quorum's rules ask.
///
/// Invariant: a log that starts above zero starts at the end of its oldest snapshot, and the newest
/// ends at or below the log's end.
#[derive(Clone, Copy, Debug)]
pub struct LogState<'a> {
    /// The epochs in it, and its end.
    pub epochs: EpochHistory<'a>,
    /// The first offset in it.
    pub log_start_offset: Offset,
    /// The oldest and the newest snapshot beside it; what `format` leaves is none.
    pub snapshots: Option<(OffsetAndEpoch, OffsetAndEpoch)>,
}

/// How a fetch from the metadata log is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchValidity {
    /// With the records from its offset on.
    Valid,
    /// The log of the one that fetches holds something else: where the last epoch that both may
    /// have in common ends here.
    Diverging(EpochEnd),
    /// The records are gone, or there are faster ways: with this snapshot.
    Snapshot(OffsetAndEpoch),
}

impl LogState<'_> {
    /// Exclusive end of the log.
    #[must_use]
    pub const fn log_end_offset(&self) -> Offset {
        self.epochs.log_end_offset
    }

    /// The epoch of the record before the end, be it in the log or in a snapshot; zero when there
    /// is none.
    #[must_use]
    pub fn last_epoch(&self) -> LeaderEpoch {
        let in_log = self.epochs.entries.last().map(|entry| entry.epoch);
        in_log.unwrap_or_else(|| self.snapshot_epoch())
    }

    /// Judges a fetch from `offset` by a replica whose record before it is of `epoch`, by the
    /// rules of Kafka's leader (KIP-595, KIP-630).
    #[must_use]
    pub fn check_fetch(&self, offset: Offset, epoch: LeaderEpoch) -> FetchValidity {
        let earliest = self.earliest();
        if let Some((_, latest)) = self.snapshots {
            let is_empty = offset == Offset::ZERO;
            let is_gone = offset < self.log_start_offset
                || (offset == self.log_start_offset && epoch != earliest.epoch)
                || epoch < earliest.epoch;
            if is_empty || is_gone {
                return FetchValidity::Snapshot(latest);
            }
        } else if offset == Offset::ZERO && epoch == LeaderEpoch::ZERO {
            return FetchValidity::Valid;
        }
        let end = self.end_of(epoch);
        if end.epoch == epoch && offset <= end.end_offset {
            FetchValidity::Valid
        } else {
            FetchValidity::Diverging(end)
        }
    }

    /// Where `epoch` ends here, or the largest one below it; the log's end for epochs above all.
    fn end_of(&self, epoch: LeaderEpoch) -> EpochEnd {
        let end = self.epochs.end_of(epoch).unwrap_or_else(|| EpochEnd {
            epoch: self.last_epoch(),
            end_offset: self.log_end_offset(),
        });
        // The epochs before the log's start are only known by the snapshot that it starts at.
        let earliest = self.earliest();
        if end.end_offset == earliest.offset && end.epoch == epoch {
            return EpochEnd {
                epoch: earliest.epoch,
                end_offset: earliest.offset,
            };
        }
        end
    }

    /// The snapshot that the log starts at. A log that still has its first record starts at the
    /// one that `format` left.
    fn earliest(&self) -> OffsetAndEpoch {
        let formatted = OffsetAndEpoch {
            offset: Offset::ZERO,
            epoch: LeaderEpoch::ZERO,
        };
        match self.snapshots {
            Some((earliest, _)) if self.log_start_offset > Offset::ZERO => earliest,
            _ => formatted,
        }
    }

    fn snapshot_epoch(&self) -> LeaderEpoch {
        let latest = self.snapshots.map(|(_, latest)| latest.epoch);
        latest.unwrap_or(LeaderEpoch::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use highwater_types::EpochEntry;

    use super::*;

    const fn at(offset: i64, epoch: i32) -> OffsetAndEpoch {
        OffsetAndEpoch {
            offset: Offset::new(offset),
            epoch: LeaderEpoch::new(epoch),
        }
    }

    fn entries(pairs: &[(i32, i64)]) -> Vec<EpochEntry> {
        let entry = |&(epoch, start): &(i32, i64)| EpochEntry {
            epoch: LeaderEpoch::new(epoch),
            start_offset: Offset::new(start),
        };
        pairs.iter().map(entry).collect()
    }

    fn check(
        pairs: &[(i32, i64)],
        (start, end): (i64, i64),
        snapshots: Option<(OffsetAndEpoch, OffsetAndEpoch)>,
        (offset, epoch): (i64, i32),
    ) -> FetchValidity {
        let entries = entries(pairs);
        let log = LogState {
            epochs: EpochHistory {
                entries: &entries,
                log_end_offset: Offset::new(end),
            },
            log_start_offset: Offset::new(start),
            snapshots,
        };
        log.check_fetch(Offset::new(offset), LeaderEpoch::new(epoch))
    }

    const fn diverging(epoch: i32, end: i64) -> FetchValidity {
        FetchValidity::Diverging(EpochEnd {
            epoch: LeaderEpoch::new(epoch),
            end_offset: Offset::new(end),
        })
    }

    #[test]
    fn a_log_that_was_never_cut() {
        let log = [(1, 0), (3, 10)];
        let ask = |asked| check(&log, (0, 20), None, asked);
        assert_eq!(ask((0, 0)), FetchValidity::Valid);
        assert_eq!(ask((5, 1)), FetchValidity::Valid);
        assert_eq!(ask((10, 1)), FetchValidity::Valid);
        assert_eq!(ask((20, 3)), FetchValidity::Valid);
        // Longer than the leader was in that epoch.
        assert_eq!(ask((11, 1)), diverging(1, 10));
        assert_eq!(ask((21, 3)), diverging(3, 20));
        // An epoch that the leader never had.
        assert_eq!(ask((12, 2)), diverging(1, 10));
        assert_eq!(ask((12, 4)), diverging(3, 20));
        // Nothing of it is right: what a JVM controller was seen to answer.
        assert_eq!(check(&[(2, 0)], (0, 1), None, (3, 1)), diverging(0, 0));
    }

    #[test]
    fn what_is_gone_is_in_a_snapshot() {
        let snapshots = Some((at(620, 3), at(700, 4)));
        let snapshot = FetchValidity::Snapshot(at(700, 4));
        let ask = |asked| check(&[(3, 620), (4, 650)], (620, 710), snapshots, asked);
        assert_eq!(ask((0, 0)), snapshot);
        assert_eq!(ask((619, 3)), snapshot);
        assert_eq!(ask((620, 2)), snapshot);
        assert_eq!(ask((640, 2)), snapshot);
        assert_eq!(ask((620, 3)), FetchValidity::Valid);
        assert_eq!(ask((650, 3)), FetchValidity::Valid);
        assert_eq!(ask((651, 3)), diverging(3, 650));
        assert_eq!(ask((710, 4)), FetchValidity::Valid);
    }

    #[test]
    fn an_empty_log_gets_the_snapshot_although_the_records_are_there() {
        let snapshots = Some((at(8, 1), at(8, 1)));
        let ask = |asked| check(&[(1, 0)], (0, 20), snapshots, asked);
        assert_eq!(ask((0, 0)), FetchValidity::Snapshot(at(8, 1)));
        assert_eq!(ask((3, 1)), FetchValidity::Valid);
    }

    #[test]
    fn nothing_came_after_the_snapshot() {
        let snapshots = Some((at(8, 2), at(8, 2)));
        let ask = |asked| check(&[], (8, 8), snapshots, asked);
        assert_eq!(ask((8, 2)), FetchValidity::Valid);
        assert_eq!(ask((9, 2)), diverging(2, 8));
        assert_eq!(ask((8, 1)), FetchValidity::Snapshot(at(8, 2)));
    }
}
