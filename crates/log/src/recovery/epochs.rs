use std::io::IoSlice;
use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile as _};
use highwater_types::{EpochEntry, LeaderEpoch, Offset};

use super::report::{Finding, RecoveryReport};
use crate::checkpoint::leader_epochs;
use crate::epoch_runs::{EpochRun, EpochRuns, Judgement};
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::replay::walk;
use crate::segment::scan::Located;
use crate::segment::{LogSegment, Place};

/// Where a batch has its leader epoch.
const EPOCH_AT: u64 = 12;

/// What is known when the epochs are loaded.
pub(super) struct Context<'a, D: Disk> {
    pub(super) disk: &'a D,
    pub(super) dir: &'a Path,
    pub(super) log_start_offset: Offset,
    /// The newest that there can be.
    pub(super) leader_epoch: Option<LeaderEpoch>,
    /// The epochs of batches that were read, which lie at `seen_from` and above: there the
    /// checkpoint may lag behind the log. What it says is still the better truth where it agrees:
    /// of a compacted log it knows where epochs began.
    pub(super) seen: &'a Judgement,
    pub(super) seen_from: Option<Offset>,
}

/// The leader epochs of the log: as the checkpoint has them if the batches agree, else from the
/// batches (KAFKA-7897, 15046, 16541). Batches whose own epoch is damaged get the right one.
pub(super) fn load<D: Disk>(
    context: &Context<'_, D>,
    segments: &mut [LogSegment<D>],
    report: &mut RecoveryReport,
) -> Result<LeaderEpochCache, DiskError> {
    let (log_start_offset, seen_from) = (context.log_start_offset, context.seen_from);
    let end = segments
        .last()
        .map_or(log_start_offset, |segment| segment.end_offset);
    let bounds = (log_start_offset, end);
    let mut seen = context.seen.clone();
    let mut cache = match read(context, segments)? {
        Ok(listed) => match choose(&listed, &mut seen, seen_from, segments, bounds)? {
            Some(cache) => cache,
            None => {
                seen = from_batches(segments, context.leader_epoch)?;
                match choose(&listed, &mut seen, None, segments, bounds)? {
                    // It was a batch that was wrong.
                    Some(cache) if !seen.wrong.is_empty() => cache,
                    Some(_) | None => {
                        let why = "it contradicts the batches".to_owned();
                        report.add(Finding::EpochsRebuilt { why });
                        seen.history()
                    }
                }
            }
        },
        Err(why) => {
            report.add(Finding::EpochsRebuilt { why });
            seen = from_batches(segments, context.leader_epoch)?;
            seen.history()
        }
    };
    for run in &seen.wrong {
        restamp(run, &cache, segments, report)?;
    }
    cache.truncate_from_start(log_start_offset);
    Ok(cache)
}

/// What the checkpoint has `listed` together with what was `seen` since, if the batches agree.
fn choose<D: Disk>(
    listed: &LeaderEpochCache,
    seen: &mut Judgement,
    seen_from: Option<Offset>,
    segments: &mut [LogSegment<D>],
    (log_start_offset, end): (Offset, Offset),
) -> Result<Option<LeaderEpochCache>, DiskError> {
    seen.doubt_what_lacks_in(listed);
    let mut cache = listed.clone();
    cache.truncate_from_end(end);
    let mut scanned = cache.clone();
    add_newer(&mut cache, seen.history().entries());
    let is_wrong = |batch: &Located| {
        let at = batch.header.base_offset;
        seen.wrong.iter().any(|run| run.start_offset == at)
    };
    if agrees(&cache, segments, log_start_offset, end, &is_wrong)? {
        return Ok(Some(cache));
    }
    let Some(seen_from) = seen_from else {
        return Ok(None);
    };
    // As after a truncation that the checkpoint did not get to see.
    scanned.truncate_from_end(seen_from.min(end));
    for entry in seen.history().entries() {
        scanned.assign(entry.epoch, entry.start_offset);
    }
    let agrees = agrees(&scanned, segments, log_start_offset, end, &is_wrong)?;
    Ok(agrees.then_some(scanned))
}

/// The checkpoint, or what is wrong with it.
fn read<D: Disk>(
    context: &Context<'_, D>,
    segments: &[LogSegment<D>],
) -> Result<Result<LeaderEpochCache, String>, DiskError> {
    let is_empty = segments.iter().all(|segment| segment.size == 0);
    let first = segments.first().map(|segment| segment.base_offset);
    let all_seen = context.seen_from.is_some() && context.seen_from == first;
    let path = context.dir.join(leader_epochs::FILE);
    Ok(match context.disk.read(&path)? {
        // A young log whose epochs never were written; all that it has was read just now.
        None if is_empty || all_seen => Ok(LeaderEpochCache::new()),
        None => Err("it was missing".to_owned()),
        Some(bytes) => leader_epochs::decode(&bytes).map_err(|why| why.to_string()),
    })
}

/// Epochs that began after the checkpoint was written.
fn add_newer(cache: &mut LeaderEpochCache, seen: &[EpochEntry]) {
    for entry in seen {
        let is_newer = cache.latest().is_none_or(|latest| {
            latest.epoch < entry.epoch && latest.start_offset < entry.start_offset
        });
        if is_newer {
            cache.assign(entry.epoch, entry.start_offset);
        }
    }
}

/// Whether each entry's first and last batch are of its epoch. Epochs never fall along a log, so
/// the batches in between are too. What batches say that are known to be wrong does not count.
fn agrees<D: Disk>(
    cache: &LeaderEpochCache,
    segments: &mut [LogSegment<D>],
    log_start_offset: Offset,
    end: Offset,
    is_wrong: &dyn Fn(&Located) -> bool,
) -> Result<bool, DiskError> {
    let says = |batch: &Located| batch.header.leader_epoch >= LeaderEpoch::ZERO && !is_wrong(batch);
    let entries = cache.entries();
    let first = entries.first().map_or(end, |entry| entry.start_offset);
    if let Some(batch) = batch_at(segments, log_start_offset)?.filter(says)
        && batch.header.last_offset() < first
    {
        return Ok(false);
    }
    for (number, entry) in entries.iter().enumerate() {
        let from = entry.start_offset.max(log_start_offset);
        let to = entries
            .get(number + 1)
            .map_or(end, |next| next.start_offset);
        if from >= to {
            continue;
        }
        for offset in [from, to.plus(-1)] {
            let inside = batch_at(segments, offset)?
                .filter(says)
                .filter(|batch| batch.header.base_offset < to);
            if inside.is_some_and(|batch| batch.header.leader_epoch != entry.epoch) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The first batch that ends at or above `offset`; `None` also where damage is in the way.
fn batch_at<D: Disk>(
    segments: &mut [LogSegment<D>],
    offset: Offset,
) -> Result<Option<Located>, DiskError> {
    let at = segments
        .partition_point(|segment| segment.base_offset <= offset)
        .saturating_sub(1);
    for segment in segments.iter_mut().skip(at) {
        let place = segment.locate(offset)?;
        segment.release();
        match place {
            Place::Batch(batch) => return Ok(Some(batch)),
            Place::End => {}
            Place::Damaged { .. } | Place::IndexLies => return Ok(None),
        }
    }
    Ok(None)
}

fn from_batches<D: Disk>(
    segments: &[LogSegment<D>],
    newest: Option<LeaderEpoch>,
) -> Result<Judgement, DiskError> {
    let mut runs = EpochRuns::default();
    for segment in segments {
        walk(segment, segment.base_offset, |batch, _| {
            runs.note(segment.base_offset, batch, batch.header.base_offset);
            Ok(())
        })?;
    }
    // Whatever is to be cut was cut before.
    Ok(runs.judge(Offset::MAX, newest))
}

/// Gives a batch the epoch that the history has at its place. The only bytes of a log that are
/// ever written a second time, and before anybody can have read them.
fn restamp<D: Disk>(
    run: &EpochRun,
    cache: &LeaderEpochCache,
    segments: &mut [LogSegment<D>],
    report: &mut RecoveryReport,
) -> Result<(), DiskError> {
    let first = cache.entries().first().map(|entry| entry.epoch);
    let Some(epoch) = cache.epoch_at(run.start_offset).or(first) else {
        return Ok(());
    };
    let segment = segments
        .iter_mut()
        .find(|segment| segment.base_offset == run.base_offset);
    let Some(segment) = segment.filter(|_| run.is_single()) else {
        return Ok(());
    };
    let bytes = epoch.raw().to_be_bytes();
    let at = run.position + EPOCH_AT;
    segment.file()?.write_at(at, &[IoSlice::new(&bytes)])?;
    segment.is_dirty = true;
    segment.release();
    report.add(Finding::EpochRestamped {
        offset: run.start_offset,
        found: run.epoch,
        written: epoch,
    });
    Ok(())
}
