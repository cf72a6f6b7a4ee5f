use std::collections::BTreeSet;
use std::path::Path;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_types::Offset;

use super::report::{Finding, RecoveryReport};
use super::{Progress, RecoveryStep};
use crate::names::{FileKind, segment_file};
use crate::producer_state::{CompletedTransaction, ProducerState};
use crate::replay::replay;
use crate::segment::LogSegment;

/// Bytes of segments without a transaction index that are looked through after a clean stop.
///
/// Kafka makes the file only once a transaction aborts, so that most segments rightly have none,
/// and nothing but the batches themselves tells those apart that lost theirs: the producer
/// snapshots around a segment say that a transaction ended in it, and not how. A start must not
/// read every log of transactions whole, so only what consumers read most is looked through;
/// `log verify` looks through all of it.
const TRANSACTION_SEARCH_BYTES_MAX: u64 = 256 << 20;

/// The producers of a log that is being opened.
#[derive(Debug)]
pub(super) struct Producers {
    pub(super) state: ProducerState,
    /// Snapshots that are missing at the bases of segments.
    pub(super) snapshots: Vec<(Offset, Vec<u8>)>,
}

/// What is known when the producers are loaded.
pub(super) struct Context<'a, D: Disk> {
    pub(super) disk: &'a D,
    pub(super) dir: &'a Path,
    pub(super) log_start_offset: Offset,
    /// Offsets of the snapshots on disk, rising.
    pub(super) snapshots: &'a [Offset],
    /// Base offsets of the segments.
    pub(super) bases: BTreeSet<Offset>,
    /// The first segment that was read whole, if any: later snapshots do not count.
    pub(super) first_scanned: Option<Offset>,
    /// Segments whose transaction index must be taken from the batches.
    pub(super) without_transactions: BTreeSet<Offset>,
    pub(super) b: &'a Blocking,
    pub(super) progress: &'a dyn Fn(Progress),
}

/// Loads the newest snapshot that counts and replays the batches after it. Transaction indexes
/// that are missing are filled on the way.
pub(super) fn load<D: Disk>(
    mut context: Context<'_, D>,
    segments: &mut [LogSegment<D>],
    report: &mut RecoveryReport,
) -> Result<Producers, DiskError> {
    let end = segments
        .last()
        .map_or(context.log_start_offset, |segment| segment.end_offset);
    let usable = context.first_scanned.unwrap_or(end);
    let newest = newest_snapshot(&context, usable, report)?;
    let is_current = newest
        .as_ref()
        .is_some_and(|state| state.end_offset() == usable);
    if newest.as_ref().is_some_and(ProducerState::has_seen_marker) {
        find_missing_transactions(&mut context, segments);
    }
    let first = segments.first().map_or(end, |segment| segment.base_offset);
    let mut state = newest.unwrap_or_else(|| ProducerState::new(first));
    let from = state.end_offset();
    // What is read anyway tells whether it has an index that is gone: all of it without a snapshot.
    let read = segments
        .iter()
        .filter(|it| it.end_offset > from && it.transactions.is_empty());
    let read = read.map(|segment| segment.base_offset);
    context.without_transactions.extend(read);
    let mut found = transactions_before(&context, segments, from, report)?;
    let mut snapshots = Vec::new();
    let unread = segments.iter().filter(|segment| segment.end_offset > from);
    let total_bytes = unread.map(|segment| segment.size).sum();
    let mut scanned_bytes = 0;
    for segment in segments.iter() {
        // What is there may not be durable yet: a process was killed before it could see to it.
        let is_scanned = context
            .first_scanned
            .is_some_and(|it| segment.base_offset >= it);
        let has_state = segment.base_offset > first || !state.is_empty();
        if is_scanned && segment.base_offset >= from && has_state {
            state.advance_end(segment.base_offset);
            snapshots.push((segment.base_offset, state.encode_snapshot()));
        }
        replay(&mut state, [segment], |base, ended| {
            found.push((base, ended));
        })?;
        if segment.end_offset > from {
            scanned_bytes += segment.size;
            (context.progress)(Progress {
                step: RecoveryStep::Producers,
                scanned_bytes,
                total_bytes,
            });
        }
    }
    index_aborted(&context, segments, found, report);
    state.advance_end(end);
    state.advance_log_start(context.log_start_offset);
    if context.first_scanned.is_none() && !is_current && from < end && has_batches(segments, from) {
        report.add(Finding::ProducersRebuilt { from, to: end });
    }
    Ok(Producers { state, snapshots })
}

/// Notes the aborted transactions of `found` in the indexes that are taken from the batches.
fn index_aborted<D: Disk>(
    context: &Context<'_, D>,
    segments: &mut [LogSegment<D>],
    found: Vec<(Offset, CompletedTransaction)>,
    report: &mut RecoveryReport,
) {
    for (base, ended) in found {
        let segment = segments
            .iter_mut()
            .find(|segment| segment.base_offset == base);
        if let (Some(segment), Some(aborted)) = (segment, ended.aborted())
            && context.without_transactions.contains(&base)
        {
            let was_scanned = context.first_scanned.is_some_and(|first| base >= first);
            if segment.transactions.is_empty() && !was_scanned {
                let why = "it was missing";
                report.add(Finding::IndexRebuilt {
                    base_offset: base,
                    file: "txnindex",
                    why,
                });
            }
            segment.add_aborted(aborted);
        }
    }
}

/// The transactions that ended below `from` in segments whose transaction index is missing. What
/// is replayed for them is not the state that counts: an older snapshot may know less.
fn transactions_before<D: Disk>(
    context: &Context<'_, D>,
    segments: &[LogSegment<D>],
    from: Offset,
    report: &mut RecoveryReport,
) -> Result<Vec<(Offset, CompletedTransaction)>, DiskError> {
    let mut found = Vec::new();
    let missing = context.without_transactions.first().copied();
    let Some(missing) = missing.filter(|missing| *missing < from) else {
        return Ok(found);
    };
    let start = newest_snapshot(context, missing, report)?;
    let first = segments
        .first()
        .map_or(missing, |segment| segment.base_offset);
    let mut state = start.unwrap_or_else(|| ProducerState::new(first));
    let before = segments.iter().filter(|segment| segment.base_offset < from);
    replay(&mut state, before, |base, ended| {
        if ended.last_offset < from {
            found.push((base, ended));
        }
    })?;
    Ok(found)
}

/// The newest good snapshot at or below `usable`. Bad ones are removed.
fn newest_snapshot<D: Disk>(
    context: &Context<'_, D>,
    usable: Offset,
    report: &mut RecoveryReport,
) -> Result<Option<ProducerState>, DiskError> {
    // One that is at no segment's base and not at the end may be of a log that was cut since.
    let counts = |offset: &&Offset| {
        **offset == usable || **offset < usable && context.bases.contains(*offset)
    };
    for offset in context.snapshots.iter().rev().filter(counts) {
        let path = segment_file(context.dir, *offset, FileKind::Snapshot);
        let Some(bytes) = context.disk.read(&path)? else {
            continue;
        };
        match ProducerState::decode_snapshot(&bytes, *offset) {
            Ok(state) => return Ok(Some(state)),
            Err(why) => {
                let was_unsynced = context.first_scanned == Some(*offset);
                if !was_unsynced {
                    let (offset, why) = (*offset, why.to_string());
                    report.add(Finding::SnapshotDropped { offset, why });
                }
                context.disk.remove(&path, context.b)?;
            }
        }
    }
    Ok(None)
}

/// After a clean stop nobody read the batches, so a transaction index that is gone was not missed.
/// Where markers were seen, segments without one are looked through, newest first.
fn find_missing_transactions<D: Disk>(context: &mut Context<'_, D>, segments: &[LogSegment<D>]) {
    let mut left = TRANSACTION_SEARCH_BYTES_MAX;
    for segment in segments
        .iter()
        .rev()
        .filter(|segment| segment.transactions.is_empty())
        .filter(|segment| segment.end_offset > context.log_start_offset)
    {
        let Some(rest) = left.checked_sub(segment.size) else {
            break;
        };
        left = rest;
        context.without_transactions.insert(segment.base_offset);
    }
}

fn has_batches<D: Disk>(segments: &[LogSegment<D>], from: Offset) -> bool {
    segments
        .iter()
        .any(|segment| segment.size > 0 && segment.end_offset > from)
}
