//! `leader-epoch-checkpoint` and the leader epochs of the batches (I-10, SC-09).

use std::path::Path;

use highwater_disk::Disk;
use highwater_types::Offset;

use super::log::{Bounds, Checkpointed};
use super::report::{At, BrokerAction, Findings};
use crate::checkpoint::leader_epochs;
use crate::epoch_runs::{EpochRuns, Judgement};
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::recovery::Severity;

/// What the epochs of the batches say. A tail that a truncation had cut off counts no more.
pub(super) fn judge(
    runs: &EpochRuns,
    known: &Checkpointed,
    bounds: &mut Bounds,
    findings: &mut Findings<'_>,
) -> Judgement {
    let unsure_from = if known.is_clean {
        Offset::MAX
    } else {
        let high_watermark = known.high_watermark.unwrap_or(Offset::ZERO);
        high_watermark.max(known.recovery_point)
    };
    let judged = runs.judge(unsure_from, None);
    if let Some(stale) = judged.stale {
        let name = format!("{:020}.log", stale.base_offset.raw());
        let what = format!("batches of an older leader epoch, {}", stale.epoch);
        let at = At::batch(stale.position, stale.start_offset);
        findings.add((Severity::Normal, BrokerAction::Cut), &name, at, what);
        bounds.end = stale.expected;
        bounds.is_whole = false;
        bounds.is_end_sound = false;
    }
    judged
}

/// Compares the checkpoint with the batches. `is_scanned` tells of which segments opening reads
/// every batch.
pub(super) fn check<D: Disk>(
    mut judged: Judgement,
    disk: &D,
    dir: &Path,
    (known, bounds): (&Checkpointed, &Bounds),
    is_scanned: &dyn Fn(Offset) -> bool,
    findings: &mut Findings<'_>,
) {
    let file = leader_epochs::FILE;
    let rebuild = BrokerAction::Rebuild;
    match super::directory::read(disk, &dir.join(file), file, findings) {
        None => {}
        Some(None) if judged.history().entries().is_empty() => {}
        Some(None) => {
            let what = "missing; Apache Kafka does not rebuild it after a clean stop";
            findings.repair(rebuild, file, At::FILE, what);
        }
        Some(Some(bytes)) => match leader_epochs::decode(&bytes) {
            Ok(listed) => {
                judged.doubt_what_lacks_in(&listed);
                let actual = judged.history();
                if let Some((at, what)) = first_difference(&actual, &listed, known, bounds) {
                    findings.repair(rebuild, file, at, what);
                }
            }
            Err(why) => findings.repair(rebuild, file, At::FILE, why.to_string()),
        },
    }
    for run in &judged.wrong {
        let name = format!("{:020}.log", run.base_offset.raw());
        let what = format!("leader epoch {} does not fit those around it", run.epoch);
        let judged = if is_scanned(run.base_offset) && run.is_single() {
            (Severity::Repaired, BrokerAction::Restamp)
        } else {
            (Severity::Damage, BrokerAction::Nothing)
        };
        findings.add(
            judged,
            &name,
            At::batch(run.position, run.start_offset),
            what,
        );
    }
}

fn first_difference(
    actual: &LeaderEpochCache,
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
    let actual = actual.entries();
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
