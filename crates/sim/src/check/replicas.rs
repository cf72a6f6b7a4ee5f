//! I-08 and I-10: what a replica says of itself.

use highwater_disk::MemDisk;
use highwater_node::shard::partition::{OnlinePartition, Partition};
use highwater_types::{EpochEntry, LeaderEpoch, Offset};

/// A replica as it was after the event before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastSeen {
    leader_epoch: LeaderEpoch,
    log_start_offset: Offset,
    last_stable_offset: Offset,
    high_watermark: Offset,
    flushed_offset: Offset,
    log_end_offset: Offset,
    epochs: Vec<EpochEntry>,
}

impl LastSeen {
    /// What a replica says of itself now.
    pub(super) fn of(online: &OnlinePartition<MemDisk>) -> Self {
        let log = online.log();
        Self {
            leader_epoch: online.replica().leader_epoch(),
            log_start_offset: log.log_start_offset(),
            last_stable_offset: online.last_stable_offset(),
            high_watermark: online.high_watermark(),
            flushed_offset: log.flushed_offset(),
            log_end_offset: log.log_end_offset(),
            epochs: log.epochs().entries.to_vec(),
        }
    }

    /// Its log end offset then.
    pub(super) const fn log_end_offset(&self) -> Offset {
        self.log_end_offset
    }

    /// Says another high watermark than the replica did, so that the checker has to miss it.
    #[cfg(test)]
    pub(super) const fn plant_high_watermark(&mut self, high_watermark: Offset) {
        self.high_watermark = high_watermark;
    }

    /// Checks it by itself and against what it said before, in the same process.
    pub(super) fn check(
        &self,
        partition: &Partition<MemDisk>,
        online: &OnlinePartition<MemDisk>,
        before: Option<&Self>,
    ) {
        let name = partition.name();
        let offsets = [
            self.log_start_offset,
            self.last_stable_offset,
            self.high_watermark,
            self.log_end_offset,
        ];
        assert!(
            offsets.is_sorted(),
            "I-08 {name}: start, lso, hw, leo are {offsets:?}"
        );
        assert_eq!(
            online.replica().log_end_offset(),
            self.log_end_offset,
            "{name}: replica and log disagree on the log end offset"
        );
        if let Some(before) = before.filter(|it| it.leader_epoch == self.leader_epoch) {
            let (was, is) = (before.high_watermark, self.high_watermark);
            assert!(
                was <= is,
                "I-08 {name}: the high watermark fell from {was} to {is}"
            );
            assert!(
                before.log_start_offset <= self.log_start_offset,
                "I-08 {name}: the log start offset fell"
            );
        }
        self.check_epochs(partition);
    }

    fn check_epochs(&self, partition: &Partition<MemDisk>) {
        let name = partition.name();
        let rises =
            |a: &EpochEntry, b: &EpochEntry| a.epoch < b.epoch && a.start_offset < b.start_offset;
        assert!(
            self.epochs.is_sorted_by(rises),
            "I-10 {name}: {:?}",
            self.epochs
        );
        if let Some(newest) = self.epochs.last() {
            assert!(
                newest.start_offset <= self.log_end_offset,
                "I-10 {name}: {newest:?} above leo"
            );
            assert!(
                newest.epoch <= self.leader_epoch,
                "I-10 {name}: {newest:?} above the epoch"
            );
        }
    }
}
