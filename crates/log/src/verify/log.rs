//! One log: its files, its segments, and what the checkpoints say of it.

use std::collections::BTreeSet;
use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile, EntryKind};
use highwater_types::{Offset, TopicId};

use super::directory::read;
use super::epochs;
use super::indexes::IndexCheck;
use super::metadata_log;
use super::producers::ProducerCheck;
use super::report::{At, BrokerAction, Findings};
use super::walk::{Span, Visitor, Walk};
use crate::checkpoint::{committed, damage, leader_epochs, partition_metadata};
use crate::durable_end::durable_end;
use crate::names::{FileKind, LogFile, Stage, segment_file, snapshot_end};
use crate::recovery::Severity;
use crate::segment::scan::{Located, Scanner};

/// What the log directory's files say of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpointed {
    /// Zero when the checkpoint lacks the log.
    pub(super) recovery_point: Offset,
    pub(super) high_watermark: Option<Offset>,
    pub(super) log_start: Option<Offset>,
    /// Gaps may be a cleaner's work.
    pub(super) may_be_compacted: bool,
    /// The last stop was clean.
    pub(super) is_clean: bool,
    /// It is the quorum's log.
    pub(super) is_metadata: bool,
}

/// What a log really holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// Base offset of the first segment.
    pub(super) first_base: Offset,
    /// The first readable offset.
    pub(super) start: Offset,
    /// Exclusive: behind the last good batch.
    pub(super) end: Offset,
    /// No damage and no gap was met.
    pub(super) is_whole: bool,
    /// Nothing is missing at the end, as far as the checkpoints say.
    pub(super) is_end_sound: bool,
}

/// The files of a log's directory by what they are.
#[derive(Debug, Default)]
pub(super) struct LogFiles {
    /// Base offsets of `.log` files in service, rising.
    pub(super) segments: Vec<Offset>,
    /// Offsets of producer snapshots, rising.
    pub(super) snapshots: Vec<Offset>,
    /// Other files of segments: base offset, kind.
    sides: Vec<(Offset, FileKind)>,
    /// Names of metadata snapshots.
    pub(super) metadata_snapshots: Vec<String>,
    has_partition_metadata: bool,
    pub(super) has_quorum_state: bool,
    /// Base offsets of segments whose files wait to be removed.
    deleted: BTreeSet<Offset>,
    /// How many files wait to be removed.
    deleted_files: usize,
    /// Files of steps that were not finished.
    unfinished: usize,
}

/// Checks the log in `dir`.
pub(super) fn check_log<D: Disk>(
    disk: &D,
    dir: &Path,
    known: &Checkpointed,
    findings: &mut Findings<'_>,
    progress: &dyn Fn(u64),
) -> Bounds {
    findings.report().logs += 1;
    let mut known = *known;
    if known.is_metadata {
        // It is in none of the checkpoints. What cannot be read here is told below.
        known.recovery_point = durable_end(disk, dir, known.is_clean).unwrap_or_default();
        known.high_watermark = Some(known.recovery_point);
    }
    let known = &known;
    match try_check_log(disk, dir, known, findings, progress) {
        Ok(bounds) => bounds,
        Err(why) => {
            let file = why
                .path
                .file_name()
                .map(|it| it.to_string_lossy().into_owned());
            let action = (Severity::Damage, BrokerAction::TakeOffline);
            findings.add(action, &file.unwrap_or_default(), At::FILE, why.to_string());
            Bounds {
                end: Offset::MAX,
                ..Bounds::default()
            }
        }
    }
}

fn try_check_log<D: Disk>(
    disk: &D,
    dir: &Path,
    known: &Checkpointed,
    findings: &mut Findings<'_>,
    progress: &dyn Fn(u64),
) -> Result<Bounds, DiskError> {
    let files = list(disk, dir, known, findings)?;
    check_partition_metadata(disk, dir, &files, known, findings);
    check_orphans(&files, findings);
    let first_base = files.segments.first().copied().unwrap_or_default();
    let mut bounds = Bounds {
        first_base,
        end: first_base,
        is_whole: true,
        is_end_sound: true,
        start: first_base,
    };
    let mut producers = ProducerCheck::new(disk, dir, first_base, &files.snapshots, findings);
    let mut walk = Walk::new(disk, dir, known);
    let producers_checked = &mut producers;
    walk_all(
        &mut walk,
        &files,
        &mut bounds,
        producers_checked,
        findings,
        progress,
    )?;
    let judged = epochs::judge(&walk.epochs, known, &mut bounds, findings);
    if judged.stale.is_some() {
        producers.blind();
    }
    let start = if known.is_metadata {
        metadata_log::oldest_snapshot(&files)
    } else {
        known.log_start
    };
    bounds.start = start.unwrap_or(first_base).max(first_base);
    bounds.is_end_sound = bounds.is_end_sound && check_end(&bounds, known, findings);
    check_start(&bounds, known, findings);
    producers.end(dir, known, &bounds, findings);
    let is_scanned = |base| is_scanned(&files, known, base);
    let about = (known, &bounds);
    epochs::check(judged, disk, dir, about, &is_scanned, findings);
    if known.is_metadata {
        metadata_log::check(disk, dir, &files, &bounds, findings);
    }
    Ok(bounds)
}

/// Whether opening reads the whole segment.
fn is_scanned(files: &LogFiles, known: &Checkpointed, base: Offset) -> bool {
    let at = files.segments.partition_point(|it| *it <= base);
    let next = files.segments.get(at);
    !known.is_clean && next.is_none_or(|next| *next > known.recovery_point)
}

/// Walks the segments, as far as a broker would keep them. `progress` hears the bytes.
fn walk_all<D: Disk>(
    walk: &mut Walk<'_, D>,
    files: &LogFiles,
    bounds: &mut Bounds,
    producers: &mut ProducerCheck,
    findings: &mut Findings<'_>,
    progress: &dyn Fn(u64),
) -> Result<(), DiskError> {
    let (disk, dir, known) = (walk.disk, walk.dir, walk.known);
    let nexts = files
        .segments
        .iter()
        .skip(1)
        .copied()
        .map(Some)
        .chain([None]);
    for (base, next) in files.segments.iter().copied().zip(nexts) {
        let span = Span { base, next };
        if base > bounds.end {
            bounds.is_whole = false;
            producers.blind();
        }
        // Behind damage nobody knows how far the segment went.
        if bounds.is_end_sound && walk.gap(base, bounds.end, &files.deleted, findings) {
            bounds.is_end_sound = false;
            break;
        }
        let mut visitors = Visitors {
            indexes: check_indexes_of(disk, dir, span, findings),
            producers,
        };
        let walked = walk.segment(span, findings, &mut visitors)?;
        visitors.indexes.end(walked.is_whole, findings);
        if !walked.is_whole {
            producers.blind();
        }
        let compacted = known.may_be_compacted;
        producers.end_segment(disk, dir, base, walked.is_whole, compacted, findings);
        bounds.end = walked.end.max(bounds.end);
        bounds.is_whole &= walked.is_whole;
        bounds.is_end_sound = !walked.has_bad_tail;
        progress(findings.report().bytes);
        if walked.is_cut {
            break;
        }
    }
    Ok(())
}

struct Visitors<'a> {
    indexes: IndexCheck,
    producers: &'a mut ProducerCheck,
}

impl<F: DiskFile> Visitor<F> for Visitors<'_> {
    fn batch(&mut self, batch: &Located, scanner: &Scanner<F>) -> Result<(), DiskError> {
        self.indexes.batch(batch);
        self.producers.batch(batch, scanner)
    }

    fn damage(&mut self, next: &Located) {
        self.indexes.damage(next);
        self.producers.blind();
    }
}

fn list<D: Disk>(
    disk: &D,
    dir: &Path,
    known: &Checkpointed,
    findings: &mut Findings<'_>,
) -> Result<LogFiles, DiskError> {
    let mut files = LogFiles::default();
    for entry in disk.list(dir)? {
        let name = entry.name.as_str();
        if entry.kind == EntryKind::Dir {
            findings.note(BrokerAction::Nothing, name, "no directory of a log");
            continue;
        }
        match name {
            partition_metadata::FILE => files.has_partition_metadata = true,
            leader_epochs::FILE | damage::FILE => {}
            committed::FILE if known.is_metadata => {}
            metadata_log::QUORUM_STATE_FILE if known.is_metadata => files.has_quorum_state = true,
            _ if known.is_metadata && snapshot_end(name).is_some() => {
                files.metadata_snapshots.push(name.to_owned());
            }
            _ => match LogFile::parse(name) {
                Some(file) => sort_in(file, name, &mut files, findings),
                None if name.ends_with(".deleted") => files.deleted_files += 1,
                None if name.ends_with(".tmp") || name.ends_with(".part") => files.unfinished += 1,
                None => findings.note(BrokerAction::Nothing, name, "no file of a log"),
            },
        }
    }
    for (file, count, what) in [
        (
            "*.deleted",
            files.deleted_files,
            "deleted files that were not gone yet",
        ),
        (
            "*.tmp, *.part",
            files.unfinished,
            "files of steps that were not finished",
        ),
    ] {
        if count > 0 {
            findings.note(BrokerAction::Remove, file, format!("{count} {what}"));
        }
    }
    Ok(files)
}

fn sort_in(file: LogFile, name: &str, files: &mut LogFiles, findings: &mut Findings<'_>) {
    match (file.stage, file.kind) {
        (Stage::Live, FileKind::Log) => files.segments.push(file.base),
        (Stage::Live, FileKind::Snapshot) => files.snapshots.push(file.base),
        (Stage::Live, kind) => files.sides.push((file.base, kind)),
        (Stage::Deleted, _) => {
            files.deleted.insert(file.base);
            files.deleted_files += 1;
        }
        (Stage::Cleaned, _) => {
            findings.note(BrokerAction::Remove, name, "a cleaner's unfinished work");
        }
        (Stage::Swap, _) => {
            findings.note(BrokerAction::TakeIn, name, "a cleaner's finished work");
        }
    }
}

fn check_partition_metadata<D: Disk>(
    disk: &D,
    dir: &Path,
    files: &LogFiles,
    known: &Checkpointed,
    findings: &mut Findings<'_>,
) {
    let file = partition_metadata::FILE;
    let set_aside = (Severity::Damage, BrokerAction::SetAside);
    if !files.has_partition_metadata {
        // A log that is being made, or was only formatted, has no segment either.
        if !files.segments.is_empty() {
            if known.is_metadata {
                findings.note(BrokerAction::Nothing, file, "missing; it is written anew");
            } else {
                let what = "missing: nobody knows which topic the log belongs to";
                findings.add(set_aside, file, At::FILE, what);
            }
        }
        return;
    }
    let Some(bytes) = read(disk, &dir.join(file), file, findings) else {
        return;
    };
    match partition_metadata::decode(&bytes.unwrap_or_default()) {
        Ok(id) if known.is_metadata != (id == TopicId::CLUSTER_METADATA) => {
            let what = format!("topic id {id} does not fit the directory's name");
            findings.add(set_aside, file, At::FILE, what);
        }
        Ok(_) => {}
        Err(why) => findings.add(set_aside, file, At::FILE, why.to_string()),
    }
}

/// Files of segments that are not there.
fn check_orphans(files: &LogFiles, findings: &mut Findings<'_>) {
    for (base, kind) in &files.sides {
        if files.segments.binary_search(base).is_err() {
            let name = format!("{:020}.{}", base.raw(), kind.extension());
            findings.note(
                BrokerAction::Remove,
                &name,
                "belongs to a segment that is not there",
            );
        }
    }
    let first = files.segments.first().copied().unwrap_or_default();
    for old in files.snapshots.iter().filter(|it| **it < first) {
        let name = format!("{:020}.{}", old.raw(), FileKind::Snapshot.extension());
        findings.note(
            BrokerAction::Remove,
            &name,
            "a snapshot from before the first segment",
        );
    }
}

fn check_indexes_of<D: Disk>(
    disk: &D,
    dir: &Path,
    span: Span,
    findings: &mut Findings<'_>,
) -> IndexCheck {
    let mut get = |kind| {
        let path = segment_file(dir, span.base, kind);
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned());
        read(disk, &path, &name.unwrap_or_default(), findings).flatten()
    };
    let (index, time_index) = (get(FileKind::Index), get(FileKind::TimeIndex));
    let is_rolled = span.next.is_some();
    IndexCheck::new(
        span.base,
        is_rolled,
        index.as_deref(),
        time_index.as_deref(),
    )
}

/// Whether the log reaches as far as the checkpoints say.
fn check_end(bounds: &Bounds, known: &Checkpointed, findings: &mut Findings<'_>) -> bool {
    let end = bounds.end;
    let high_watermark = known.high_watermark.unwrap_or(Offset::ZERO);
    let (to, what) = if known.recovery_point > end {
        (known.recovery_point, "were flushed, and are missing")
    } else if high_watermark > end {
        (
            high_watermark,
            "were acknowledged but not flushed, and are missing",
        )
    } else {
        return true;
    };
    let what = format!("records {end} to {} {what}", to.raw() - 1);
    let lost = (Severity::Loss, BrokerAction::CutAndAlarm);
    findings.add(lost, "", At::offset(end), what);
    false
}

fn check_start(bounds: &Bounds, known: &Checkpointed, findings: &mut Findings<'_>) {
    let Some(start) = known.log_start else {
        return;
    };
    if start > bounds.end {
        let what = format!("the log starts at {start}, beyond its end: every segment goes");
        // No log start passes the high watermark: such a one is not to be believed.
        let judged = if known.high_watermark.is_some_and(|it| it >= start) {
            (Severity::Normal, BrokerAction::Cut)
        } else {
            (Severity::Loss, BrokerAction::CutAndAlarm)
        };
        findings.add(judged, "", At::offset(start), what);
    } else if start < bounds.first_base {
        let what = format!("the log start {start} is below the first segment");
        findings.repair(BrokerAction::Clamp, "", At::offset(start), what);
    }
}
