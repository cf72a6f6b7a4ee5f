//! `leader-epoch-checkpoint` against the epochs of the batches (I-10, SC-09).

use std::path::Path;

use highwater_disk::{Disk, DiskError};
use highwater_types::LeaderEpoch;

use super::log::{Bounds, Checkpointed};
use super::report::{At, BrokerAction, Findings};
use super::walk::Visitor;
use crate::checkpoint::leader_epochs;
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::segment::scan::{Located, Scanner};

/// The epochs that the batches have, learnt as the walk goes.
#[derive(Debug, Default)]
pub(super) struct EpochCheck {
    from_batches: LeaderEpochCache,
}

impl<F> Visitor<F> for EpochCheck {
    fn batch(&mut self, batch: &Located, _: &Scanner<F>) -> Result<(), DiskError> {
        let (epoch, base) = (batch.header.leader_epoch, batch.header.base_offset);
        let latest = self
            .from_batches
            .latest()
            .map_or(LeaderEpoch::NONE, |it| it.epoch);
        // Batches that no leader stamped have no epoch, and one that falls is told by the walk.
        if epoch < latest.max(LeaderEpoch::ZERO) {
            return Ok(());
        }
        self.from_batches.assign(epoch, base);
        Ok(())
    }
}

impl EpochCheck {
    /// The walk is over.
    pub(super) fn end<D: Disk>(
        self,
        disk: &D,
        dir: &Path,
        known: &Checkpointed,
        bounds: &Bounds,
        findings: &mut Findings<'_>,
    ) {
        let file = leader_epochs::FILE;
        let Some(bytes) = super::directory::read(disk, &dir.join(file), file, findings) else {
            return;
        };
        let rebuild = BrokerAction::Rebuild;
        let Some(bytes) = bytes else {
            if !self.from_batches.entries().is_empty() {
                let what = "missing; Apache Kafka does not rebuild it after a clean stop";
                findings.repair(rebuild, file, At::FILE, what);
            }
            return;
        };
        match leader_epochs::decode(&bytes) {
            Ok(listed) => {
                if let Some((at, what)) = self.first_difference(&listed, known, bounds) {
                    findings.repair(rebuild, file, at, what);
                }
            }
            Err(why) => findings.repair(rebuild, file, At::FILE, why.to_string()),
        }
    }

    fn first_difference(
        &self,
        listed: &LeaderEpochCache,
        known: &Checkpointed,
        bounds: &Bounds,
    ) -> Option<(At, String)> {
        let mut beyond = listed
            .entries()
            .iter()
            .filter(|it| it.start_offset > bounds.end);
        if let Some(it) = beyond.next().filter(|_| bounds.is_end_sound) {
            let what = format!(
                "epoch {} begins beyond the log's end, {}",
                it.epoch, bounds.end
            );
            return Some((At::offset(it.start_offset), what));
        }
        let actual = self.from_batches.entries();
        let ends = actual
            .iter()
            .skip(1)
            .map(|it| it.start_offset)
            .chain([bounds.end]);
        for (entry, end) in actual.iter().zip(ends) {
            // What lies wholly below the log's start no longer counts.
            if end <= bounds.start {
                continue;
            }
            let from = entry.start_offset.max(bounds.start);
            let found = listed.entries().iter().find(|it| it.epoch == entry.epoch);
            let at = At::offset(entry.start_offset);
            let Some(found) = found else {
                let what = format!("epoch {} of the log is not in it", entry.epoch);
                return Some((at, what));
            };
            let is_late = found.start_offset > from;
            // A cleaner or damage may have taken the first batches of an epoch.
            let has_gaps = known.may_be_compacted || !bounds.is_whole;
            let is_early = found.start_offset < entry.start_offset && !has_gaps;
            if is_late || is_early && entry.start_offset > bounds.first_base {
                let what = format!(
                    "epoch {} begins at {}, in the log at {}",
                    found.epoch, found.start_offset, entry.start_offset
                );
                return Some((at, what));
            }
        }
        None
    }
}
