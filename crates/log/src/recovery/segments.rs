use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_disk::{Disk, DiskError};
use highwater_types::Offset;

use super::files::{Files, SegmentFiles};
use super::report::{Finding, RecoveryReport};
use super::{OpenLog, Progress};
use crate::damage::Damage;
use crate::epoch_runs::{EpochRuns, Judgement};
use crate::segment::LogSegment;
use crate::segment::scan::Scanner;
use crate::transaction_index::TransactionIndex;

/// What the segments of a log are, and what was found in them.
#[derive(Debug)]
pub(super) struct SegmentsFound<D: Disk> {
    /// Oldest first.
    pub(super) opened: Vec<LogSegment<D>>,
    pub(super) damage: Damage,
    /// Base offsets of segments that were read whole.
    pub(super) scanned: BTreeSet<Offset>,
    /// Base offsets of segments whose transaction index must be taken from the batches.
    pub(super) without_transactions: BTreeSet<Offset>,
    /// The epochs of the batches in the segments that were read whole.
    pub(super) epochs_seen: Judgement,
    /// Bytes that were cut off, of all segments.
    pub(super) cut_bytes: u64,
    /// Behind the last batch of the last segment lies damage that stays.
    pub(super) is_tail_damaged: bool,
}

/// Opens the segments of a log, oldest first.
pub(super) struct Segments<'a, D: Disk> {
    pub(super) open: &'a OpenLog<D>,
    pub(super) progress: &'a dyn Fn(Progress),
    pub(super) total_bytes: u64,
    pub(super) told_bytes: u64,
    pub(super) report: &'a mut RecoveryReport,
    pub(super) found: SegmentsFound<D>,
    /// Offsets are missing between or inside batches, as compaction leaves them, whatever the
    /// topic is configured to now.
    pub(super) looks_compacted: bool,
    /// The newest segment whose end a later one replaces.
    pub(super) superseded: Option<Offset>,
    /// Deleted segments whose absence is a hole between others.
    pub(super) explained: BTreeSet<Offset>,
    /// What [`SegmentsFound::epochs_seen`] is judged from.
    pub(super) epoch_runs: EpochRuns,
}

impl<'a, D: Disk> Segments<'a, D> {
    pub(super) fn new(
        open: &'a OpenLog<D>,
        files: &Files,
        report: &'a mut RecoveryReport,
        progress: &'a dyn Fn(Progress),
    ) -> Self {
        let mut segments = Self {
            open,
            progress,
            total_bytes: 0,
            told_bytes: 0,
            report,
            found: SegmentsFound {
                opened: Vec::new(),
                damage: Damage::default(),
                scanned: BTreeSet::new(),
                without_transactions: BTreeSet::new(),
                epochs_seen: Judgement::default(),
                cut_bytes: 0,
                is_tail_damaged: false,
            },
            looks_compacted: open.config.compacts || open.was_cleaned,
            superseded: None,
            explained: BTreeSet::new(),
            epoch_runs: EpochRuns::default(),
        };
        let to_scan = files
            .segments
            .iter()
            .filter(|(base, _)| segments.must_scan(files, **base));
        segments.total_bytes = to_scan.map(|(_, files)| files.log).sum();
        segments
    }

    /// Opens all segments. Returns the base offsets of those that a cut leaves behind.
    pub(super) fn open_all(&mut self, files: &Files) -> Result<Vec<Offset>, DiskError> {
        let behind = self.open_up_to_cut(files)?;
        let mut left = self.drop_stale()?;
        left.extend(behind);
        Ok(left)
    }

    fn open_up_to_cut(&mut self, files: &Files) -> Result<Vec<Offset>, DiskError> {
        let mut rest = files.segments.iter();
        while let Some((base, found)) = rest.next() {
            let next = next_base(files, *base);
            let is_cut = if self.must_scan(files, *base) {
                self.scan(*base, found, next)?
            } else {
                self.open_one(*base, found, next)?
            };
            let is_cut = match next {
                Some(next) if !is_cut => self.judge_hole(files, next)?,
                Some(_) | None => is_cut,
            };
            if is_cut {
                let left: Vec<Offset> = rest.clone().map(|(base, _)| *base).collect();
                self.found.cut_bytes += rest.map(|(_, files)| files.log).sum::<u64>();
                return Ok(left);
            }
        }
        Ok(Vec::new())
    }

    pub(super) fn into_found(self) -> (SegmentsFound<D>, BTreeSet<Offset>) {
        (self.found, self.explained)
    }

    /// After an unclean stop: every segment that reaches above the recovery point.
    fn must_scan(&self, files: &Files, base: Offset) -> bool {
        let is_flushed =
            next_base(files, base).is_some_and(|next| next <= self.open.recovery_point);
        !self.open.clean_shutdown && !is_flushed
    }

    /// Reads a whole segment, and learns indexes and epochs anew. Returns whether it was cut, so
    /// that later segments go.
    fn scan(
        &mut self,
        base: Offset,
        files: &SegmentFiles,
        next: Option<Offset>,
    ) -> Result<bool, DiskError> {
        let open = self.open;
        let mut segment = LogSegment::over(&open.disk, &open.dir, base, open.now.wall);
        let mut scanner = Scanner::bodies(Arc::clone(segment.file()?), base, files.log);
        self.found.scanned.insert(base);
        self.found.without_transactions.insert(base);
        let is_cut = self.read_on(&mut segment, &mut scanner, 0, files, next)?;
        if next.is_some() && !is_cut {
            segment.finish()?;
        } else {
            segment.write_indexes(true)?;
            segment.indexes_dirty = true;
        }
        segment.replace_transactions(TransactionIndex::new());
        self.report.scanned_segments += 1;
        self.report.scanned_bytes += files.log;
        if next.is_some() {
            segment.release();
        }
        self.found.opened.push(segment);
        Ok(is_cut)
    }

    /// Opens a segment without reading it whole: its indexes are checked against a few batches,
    /// and the batches behind the last index entry are looked at. Returns whether it was cut.
    fn open_one(
        &mut self,
        base: Offset,
        files: &SegmentFiles,
        next: Option<Offset>,
    ) -> Result<bool, DiskError> {
        let open = self.open;
        let mut segment = LogSegment::over(&open.disk, &open.dir, base, open.now.wall);
        segment.is_dirty = false;
        // It was rolled after the flush that made its records durable, not its indexes.
        let was_closed_late = !open.clean_shutdown && next == Some(open.recovery_point);
        // Retention may have begun to take its files away.
        let is_expired = next.is_some_and(|next| next <= open.log_start_offset);
        let is_silent = was_closed_late || is_expired;
        let limit = next.unwrap_or(Offset::MAX);
        let mut position = 0;
        let file = Arc::clone(segment.file()?);
        match segment.load_indexes(files.log, files.index, files.time_index, limit)? {
            Ok(()) => position = segment.size,
            Err(bad) => {
                if !bad.is_usual && !is_silent {
                    let (file, why) = (bad.file, bad.why);
                    self.report.add(Finding::IndexRebuilt {
                        base_offset: base,
                        file,
                        why,
                    });
                }
                segment.forget();
                segment.indexes_dirty = true;
            }
        }
        let mut scanner = if segment.indexes_dirty {
            Scanner::bodies(file, base, files.log)
        } else {
            Scanner::headers(file, base, files.log)
        };
        let is_cut = self.read_on(&mut segment, &mut scanner, position, files, next)?;
        if !segment.indexes_dirty && segment.lacks_time_entry() {
            if !is_silent {
                let why = "it lacks the greatest timestamp";
                self.report.add(Finding::IndexRebuilt {
                    base_offset: base,
                    file: "timeindex",
                    why,
                });
            }
            segment.indexes_dirty = true;
        }
        self.load_transactions(&mut segment, files, is_silent)?;
        if segment.indexes_dirty {
            segment.finish()?;
        }
        if self.superseded == Some(base) {
            // Indexes of what had been cut are no damage.
            self.report.findings.retain(|finding| match finding {
                Finding::IndexRebuilt { base_offset, .. } => *base_offset != base,
                _ => true,
            });
        }
        // Right in the page cache is not yet right on the disk.
        segment.indexes_dirty |= was_closed_late;
        segment.is_dirty |= was_closed_late;
        if next.is_some() {
            segment.release();
        }
        self.found.opened.push(segment);
        Ok(is_cut)
    }

    fn load_transactions(
        &mut self,
        segment: &mut LogSegment<D>,
        files: &SegmentFiles,
        is_silent: bool,
    ) -> Result<(), DiskError> {
        let Some(len) = files.transactions.filter(|len| *len > 0) else {
            return Ok(());
        };
        let base_offset = segment.base_offset;
        let why = match segment.read_transactions(len)? {
            Ok(index)
                if index
                    .entries()
                    .last()
                    .is_none_or(|it| it.last_offset < segment.end_offset) =>
            {
                segment.set_transactions(index);
                return Ok(());
            }
            Ok(_) => "it points behind the end of its segment",
            Err(_) => "its bytes are no transaction index",
        };
        if !is_silent {
            self.report.add(Finding::IndexRebuilt {
                base_offset,
                file: "txnindex",
                why,
            });
        }
        segment.replace_transactions(TransactionIndex::new());
        self.found.without_transactions.insert(base_offset);
        Ok(())
    }
}

fn next_base(files: &Files, base: Offset) -> Option<Offset> {
    files
        .segments
        .range(base.next()..)
        .next()
        .map(|(next, _)| *next)
}
