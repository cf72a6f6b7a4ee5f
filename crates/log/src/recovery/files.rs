use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use highwater_disk::{Blocking, Disk, DiskError, DiskFile as _, EntryKind, OpenMode};
use highwater_types::Offset;

use super::report::{Finding, RecoveryReport};
use crate::names::{FileKind, LogFile, Stage, segment_file};
use crate::segment::scan::{Found, Scanner};

/// The files of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentFiles {
    /// Bytes of the `.log` file.
    pub(super) log: u64,
    /// Bytes of the `.index` file, if there is one.
    pub(super) index: Option<u64>,
    /// Bytes of the `.timeindex` file, if there is one.
    pub(super) time_index: Option<u64>,
    /// Bytes of the `.txnindex` file, if there is one.
    pub(super) transactions: Option<u64>,
}

/// What is in a log's directory once the traces of unfinished work are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) segments: BTreeMap<Offset, SegmentFiles>,
    /// Offsets of producer snapshots, rising.
    pub(super) snapshots: Vec<Offset>,
    /// Base offsets of segments that retention had deleted and whose files wait to be removed.
    pub(super) deleted: BTreeSet<Offset>,
    /// Names of files that wait to be removed.
    waiting: Vec<String>,
}

/// Finishes or undoes what was under way when the log was last closed, as Kafka does, and lists
/// what is there then.
pub(super) fn tidy<D: Disk>(
    disk: &D,
    dir: &Path,
    report: &mut RecoveryReport,
    b: &Blocking,
) -> Result<Files, DiskError> {
    let mut files = Files::default();
    remove_leftovers(disk, dir, &mut files, report, b)?;
    complete_swaps(disk, dir, report, b)?;
    let listed = list(disk, dir)?;
    for (name, file, len) in &listed {
        if file.stage != Stage::Live {
            continue;
        }
        if file.kind == FileKind::Snapshot {
            files.snapshots.push(file.base);
            continue;
        }
        let has_log = listed.iter().any(|(_, other, _)| {
            other.base == file.base && other.kind == FileKind::Log && other.stage == Stage::Live
        });
        if !has_log {
            remove(disk, dir, name, "it belongs to no segment", report, b)?;
            continue;
        }
        let segment = files.segments.entry(file.base).or_default();
        match file.kind {
            FileKind::Log => segment.log = *len,
            FileKind::Index => segment.index = Some(*len),
            FileKind::TimeIndex => segment.time_index = Some(*len),
            FileKind::TxnIndex => segment.transactions = Some(*len),
            FileKind::Snapshot => {}
        }
    }
    Ok(files)
}

/// Removes the deleted files that waited for it, but for an empty trace of those that explain a
/// hole between segments: retention deletes the oldest first, and a loss of power may undo some of
/// it.
pub(super) fn remove_deleted<D: Disk>(
    disk: &D,
    dir: &Path,
    files: &Files,
    explain: &BTreeSet<Offset>,
    b: &Blocking,
) -> Result<(), DiskError> {
    for name in &files.waiting {
        let path = dir.join(name);
        let file = LogFile::parse(name);
        let is_trace = file.is_some_and(|it| {
            it.stage == Stage::Deleted && it.kind == FileKind::Log && explain.contains(&it.base)
        });
        if is_trace {
            disk.open(&path, OpenMode::Write)?.set_len(0)?;
        } else {
            disk.remove(&path, b)?;
        }
    }
    Ok(())
}

/// Removes a cleaner's unfinished work and unfinished replacements of small files, and notes what
/// waits to be removed.
fn remove_leftovers<D: Disk>(
    disk: &D,
    dir: &Path,
    files: &mut Files,
    report: &mut RecoveryReport,
    b: &Blocking,
) -> Result<(), DiskError> {
    let listed = list(disk, dir)?;
    let bases_of = |stage| {
        let staged = listed
            .iter()
            .filter(move |(_, file, _)| file.stage == stage);
        staged.map(|(_, file, _)| file.base)
    };
    files.deleted = bases_of(Stage::Deleted).collect();
    let first_cleaned = bases_of(Stage::Cleaned).min();
    for entry in disk.list(dir)? {
        if entry.kind != EntryKind::File {
            continue;
        }
        if entry.name.ends_with(".tmp") {
            disk.remove(&dir.join(&entry.name), b)?;
        } else if entry.name.ends_with(".deleted") {
            files.waiting.push(entry.name);
        }
    }
    for (name, file, _) in &listed {
        let why = match file.stage {
            Stage::Live | Stage::Deleted => continue,
            Stage::Cleaned => "it is a cleaner's unfinished work",
            // The cleaner was still at work, so the originals are all there.
            Stage::Swap if first_cleaned.is_some_and(|first| file.base >= first) => {
                "the cleaning that it belongs to was not finished"
            }
            Stage::Swap => continue,
        };
        remove(disk, dir, name, why, report, b)?;
    }
    Ok(())
}

/// Puts cleaned segments in the place of those that they cover. A crash in between leaves the
/// `.swap` file, and the next open goes on.
fn complete_swaps<D: Disk>(
    disk: &D,
    dir: &Path,
    report: &mut RecoveryReport,
    b: &Blocking,
) -> Result<(), DiskError> {
    let listed = list(disk, dir)?;
    let swaps = || {
        listed
            .iter()
            .filter(|(_, file, _)| file.stage == Stage::Swap)
    };
    for (name, swap, len) in swaps().filter(|(_, file, _)| file.kind == FileKind::Log) {
        let end = end_of(disk, &dir.join(name), swap.base, *len)?;
        for (covered, file, _) in &listed {
            let is_covered = swap.base <= file.base && file.base < end || file.base == swap.base;
            if file.stage == Stage::Live && is_covered && file.kind != FileKind::Snapshot {
                disk.remove(&dir.join(covered), b)?;
            }
        }
        report.add(Finding::SwapCompleted {
            base_offset: swap.base,
        });
    }
    // The batches come last: as long as they wait, the next open begins all over.
    let mut order: Vec<_> = swaps().collect();
    order.sort_by_key(|(_, file, _)| (file.kind == FileKind::Log, file.base));
    for (name, swap, _) in order {
        let from = dir.join(name);
        disk.rename(&from, &segment_file(dir, swap.base, swap.kind))?;
    }
    Ok(())
}

/// Exclusive end of the batches in a file.
fn end_of<D: Disk>(
    disk: &D,
    path: &Path,
    base_offset: Offset,
    len: u64,
) -> Result<Offset, DiskError> {
    let mut scanner = Scanner::headers(disk.open(path, OpenMode::Read)?, base_offset, len);
    let (mut position, mut end) = (0, base_offset);
    while let Found::Batch(batch) = scanner.header_at(position, end)? {
        position = batch.end();
        end = batch.header.next_offset();
    }
    Ok(end)
}

fn remove<D: Disk>(
    disk: &D,
    dir: &Path,
    name: &str,
    why: &'static str,
    report: &mut RecoveryReport,
    b: &Blocking,
) -> Result<(), DiskError> {
    disk.remove(&dir.join(name), b)?;
    report.add(Finding::Removed {
        name: name.to_owned(),
        why,
    });
    Ok(())
}

fn list<D: Disk>(disk: &D, dir: &Path) -> Result<Vec<(String, LogFile, u64)>, DiskError> {
    let entries = disk
        .list(dir)?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::File);
    Ok(entries
        .filter_map(|entry| LogFile::parse(&entry.name).map(|file| (entry.name, file, entry.len)))
        .collect())
}
