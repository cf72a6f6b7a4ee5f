use std::path::Path;

use highwater_disk::{Disk, DiskError};
use highwater_types::{EpochEntry, LeaderEpoch, Offset};

use super::report::{Finding, RecoveryReport};
use crate::checkpoint::leader_epochs;
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::replay::walk;
use crate::segment::scan::Located;
use crate::segment::{LogSegment, Place};

/// The leader epochs of the log: as the checkpoint has them if the batches agree, else from the
/// batches (KAFKA-7897, 15046, 16541).
///
/// `seen` are the epochs of batches that were read, which lie at `seen_from` and above: there the
/// checkpoint may lag behind the log. What it says is still the better truth where it agrees: of
/// a compacted log it knows where epochs began.
pub(super) fn load<D: Disk>(
    disk: &D,
    dir: &Path,
    segments: &mut [LogSegment<D>],
    log_start_offset: Offset,
    seen: &[EpochEntry],
    seen_from: Option<Offset>,
    report: &mut RecoveryReport,
) -> Result<LeaderEpochCache, DiskError> {
    let end = segments
        .last()
        .map_or(log_start_offset, |segment| segment.end_offset);
    let is_empty = segments.iter().all(|segment| segment.size == 0);
    let first = segments.first().map(|segment| segment.base_offset);
    let all_seen = seen_from.is_some() && seen_from == first;
    let read = match disk.read(&dir.join(leader_epochs::FILE))? {
        // A young log whose epochs never were written; all that it has was read just now.
        None if is_empty || all_seen => Ok(LeaderEpochCache::new()),
        None => Err("it was missing".to_owned()),
        Some(bytes) => leader_epochs::decode(&bytes).map_err(|why| why.to_string()),
    };
    let verified = match read {
        Ok(mut cache) => {
            cache.truncate_from_end(end);
            let mut scanned = cache.clone();
            add_newer(&mut cache, seen);
            scanned.truncate_from_end(seen_from.unwrap_or(end).min(end));
            for entry in seen {
                scanned.assign(entry.epoch, entry.start_offset);
            }
            if agrees(&cache, segments, log_start_offset, end)? {
                Ok(cache)
            } else if seen_from.is_some() && agrees(&scanned, segments, log_start_offset, end)? {
                // As after a truncation that the checkpoint did not get to see.
                Ok(scanned)
            } else {
                Err("it contradicts the batches".to_owned())
            }
        }
        Err(why) => Err(why),
    };
    let mut cache = match verified {
        Ok(cache) => cache,
        Err(why) => {
            report.add(Finding::EpochsRebuilt { why });
            from_batches(segments)?
        }
    };
    cache.truncate_from_start(log_start_offset);
    Ok(cache)
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
/// the batches in between are too.
fn agrees<D: Disk>(
    cache: &LeaderEpochCache,
    segments: &mut [LogSegment<D>],
    log_start_offset: Offset,
    end: Offset,
) -> Result<bool, DiskError> {
    let entries = cache.entries();
    let first = entries.first().map_or(end, |entry| entry.start_offset);
    if let Some(batch) = batch_at(segments, log_start_offset)?
        && batch.header.last_offset() < first
        && batch.header.leader_epoch >= LeaderEpoch::ZERO
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
                .filter(|batch| batch.header.base_offset < to)
                .filter(|batch| batch.header.leader_epoch >= LeaderEpoch::ZERO);
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

fn from_batches<D: Disk>(segments: &[LogSegment<D>]) -> Result<LeaderEpochCache, DiskError> {
    let mut cache = LeaderEpochCache::new();
    for segment in segments {
        walk(segment, segment.base_offset, |batch, _| {
            let epoch = batch.header.leader_epoch;
            let is_new = cache.latest().is_none_or(|latest| latest.epoch < epoch);
            if epoch >= LeaderEpoch::ZERO && is_new {
                cache.assign(epoch, batch.header.base_offset);
            }
            Ok(())
        })?;
    }
    Ok(cache)
}
