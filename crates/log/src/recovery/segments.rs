use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_disk::{Disk, DiskError, DiskFile as _};
use highwater_types::{EpochEntry, LeaderEpoch, Offset};

use super::files::{Files, SegmentFiles};
use super::report::{Finding, RecoveryReport};
use super::{OpenLog, Progress};
use crate::damage::{Damage, DamagedRange};
use crate::names::{FileKind, segment_file};
use crate::segment::scan::{Found, Located, Scanner, parse_header};
use crate::segment::{LogSegment, OffsetEntry};
use crate::transaction_index::TransactionIndex;

/// How many bytes lie between two calls of `progress`.
const PROGRESS_BYTES: u64 = 8 << 20;

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
    /// First batch of each epoch in the segments that were read whole.
    pub(super) epochs_seen: Vec<EpochEntry>,
    /// Bytes that were cut off, of all segments.
    pub(super) cut_bytes: u64,
    /// Behind the last batch of the last segment lies damage that stays.
    pub(super) is_tail_damaged: bool,
}

/// Opens the segments of a log, oldest first.
pub(super) struct Segments<'a, D: Disk> {
    open: &'a OpenLog<D>,
    progress: &'a dyn Fn(Progress),
    total_bytes: u64,
    told_bytes: u64,
    report: &'a mut RecoveryReport,
    found: SegmentsFound<D>,
    /// Offsets are missing between or inside batches, as compaction leaves them, whatever the
    /// topic is configured to now.
    looks_compacted: bool,
    /// The newest segment whose end a later one replaces.
    superseded: Option<Offset>,
}

/// What to do about bytes that are no batch.
enum Verdict {
    /// They stay and count as damage; the next batch, if any, goes on behind them.
    Keep(Option<Located>),
    /// They and everything behind them go.
    Cut,
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
                epochs_seen: Vec::new(),
                cut_bytes: 0,
                is_tail_damaged: false,
            },
            looks_compacted: open.config.compacts,
            superseded: None,
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
        let mut rest = files.segments.iter();
        while let Some((base, found)) = rest.next() {
            let next = next_base(files, *base);
            let is_cut = if self.must_scan(files, *base) {
                self.scan(*base, found, next)?
            } else {
                self.open_one(*base, found, next)?
            };
            let is_cut = is_cut || next.is_some_and(|next| self.judge_hole(files, next));
            if is_cut {
                let left: Vec<Offset> = rest.clone().map(|(base, _)| *base).collect();
                self.found.cut_bytes += rest.map(|(_, files)| files.log).sum::<u64>();
                return Ok(left);
            }
        }
        Ok(Vec::new())
    }

    pub(super) fn into_found(self) -> SegmentsFound<D> {
        self.found
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
        self.found.opened.push(segment);
        Ok(is_cut)
    }

    /// Reads the batches of `segment` from `position` on, which it has up to there. Returns
    /// whether it was cut.
    fn read_on(
        &mut self,
        segment: &mut LogSegment<D>,
        scanner: &mut Scanner<D::File>,
        position: u64,
        files: &SegmentFiles,
        next: Option<Offset>,
    ) -> Result<bool, DiskError> {
        let limit = next.unwrap_or(Offset::MAX);
        let mut position = position;
        loop {
            let expected = segment.end_offset;
            match scanner.batch_at(position, expected)? {
                Found::Batch(batch) if batch.header.last_offset() >= limit => {
                    // A truncation had cut here and begun the next segment.
                    self.report.add(Finding::Superseded {
                        base_offset: segment.base_offset,
                        end: limit,
                    });
                    segment.file()?.set_len(position)?;
                    segment.is_dirty = true;
                    self.superseded = Some(segment.base_offset);
                    return Ok(false);
                }
                Found::Batch(batch) if self.is_stale(&batch, expected) => {
                    let what = "batches of an older leader epoch";
                    self.cut(segment, position, files.log, what)?;
                    return Ok(true);
                }
                Found::Batch(batch) => {
                    self.looks_compacted |= batch.header.base_offset > expected
                        || batch.header.record_count <= batch.header.last_offset_delta;
                    segment.skip_to(position);
                    segment.note(&batch.header, self.open.config.index_interval_bytes);
                    self.see_epoch(segment.base_offset, &batch);
                    position = batch.end();
                    self.tell(position);
                }
                Found::End => return Ok(false),
                Found::Bad(what) => match self.judge(segment, scanner, position, next)? {
                    Verdict::Cut => {
                        self.cut(segment, position, files.log, what)?;
                        return Ok(true);
                    }
                    Verdict::Keep(Some(after)) => {
                        self.keep(segment, position, after.header.base_offset, what);
                        segment.end_offset = after.header.base_offset;
                        position = after.position;
                    }
                    Verdict::Keep(None) => {
                        let end = next.unwrap_or(self.open.recovery_point);
                        self.keep_tail(segment, position, files.log, end, what)?;
                        self.found.is_tail_damaged = next.is_none();
                        return Ok(false);
                    }
                },
            }
        }
    }

    /// Bad bytes up to the end of the file stay, for they stand for records up to `end`. Where no
    /// record is missing they stand for none, and go.
    fn keep_tail(
        &mut self,
        segment: &mut LogSegment<D>,
        position: u64,
        len: u64,
        end: Offset,
        what: &'static str,
    ) -> Result<(), DiskError> {
        if segment.end_offset < end {
            self.keep(segment, position, end, what);
            segment.end_offset = end;
            segment.skip_to(len);
            return Ok(());
        }
        segment.file()?.set_len(position)?;
        segment.is_dirty = true;
        let (base_offset, bytes) = (segment.base_offset, len - position);
        self.report.add(Finding::TornTail {
            base_offset,
            end,
            bytes,
            what,
        });
        Ok(())
    }

    /// The three zones of an unclean stop. Below the recovery point bad bytes are rot: what was
    /// flushed is never cut. Above the high watermark they are a torn tail. In between they are
    /// rot if batches follow, for then the records were written and are not missing.
    fn judge(
        &self,
        segment: &LogSegment<D>,
        scanner: &mut Scanner<D::File>,
        position: u64,
        next: Option<Offset>,
    ) -> Result<Verdict, DiskError> {
        let at = segment.end_offset;
        if next == Some(at) {
            // No record is missing: the next segment begins here.
            return Ok(Verdict::Keep(None));
        }
        let was_closed = self.open.clean_shutdown && next.is_some();
        let is_flushed = at < self.open.recovery_point || was_closed;
        if !is_flushed && at >= self.open.high_watermark {
            return Ok(Verdict::Cut);
        }
        let after = self.find_after(segment, scanner, position, next.unwrap_or(Offset::MAX))?;
        if is_flushed || after.is_some() || next.is_some() {
            Ok(Verdict::Keep(after))
        } else {
            Ok(Verdict::Cut)
        }
    }

    /// The first good batch behind the bad bytes at `position`: behind the bad batch by its own
    /// length, or where the offset index on disk says, or wherever one is found.
    fn find_after(
        &self,
        segment: &LogSegment<D>,
        scanner: &mut Scanner<D::File>,
        position: u64,
        limit: Offset,
    ) -> Result<Option<Located>, DiskError> {
        let expected = segment.end_offset;
        let own_size = parse_header(scanner.peek(position)?).map(|it| it.size_bytes() as u64);
        if let Some(size) = own_size
            && let Found::Batch(batch) = scanner.batch_at(position + size, expected)?
            && batch.header.last_offset() < limit
        {
            return Ok(Some(batch));
        }
        let path = segment_file(&self.open.dir, segment.base_offset, FileKind::Index);
        for entry in old_entries(&self.open.disk, &path, segment.base_offset)? {
            if entry.position > position
                && entry.offset >= expected
                && let Found::Batch(batch) = scanner.batch_at(entry.position, expected)?
                && batch.header.last_offset() == entry.offset
            {
                // Batches in front of it may be good too.
                let earlier = scanner.resync(
                    position + 1..entry.position,
                    expected,
                    batch.header.base_offset,
                )?;
                return Ok(Some(earlier.unwrap_or(batch)));
            }
        }
        scanner.resync(position + 1..u64::MAX, expected, limit)
    }

    fn keep(&mut self, segment: &LogSegment<D>, position: u64, to: Offset, what: &'static str) {
        let range = DamagedRange {
            from: segment.end_offset,
            to,
        };
        self.found.damage.add(range);
        if range.from < range.to {
            let base_offset = segment.base_offset;
            self.report.add(Finding::Damage {
                base_offset,
                position,
                range,
                what,
            });
        }
    }

    fn cut(
        &mut self,
        segment: &mut LogSegment<D>,
        position: u64,
        len: u64,
        what: &'static str,
    ) -> Result<(), DiskError> {
        segment.file()?.set_len(position)?;
        segment.is_dirty = true;
        let bytes = len - position;
        self.found.cut_bytes += bytes;
        let (base_offset, end) = (segment.base_offset, segment.end_offset);
        if end >= self.open.high_watermark && end >= self.open.recovery_point {
            self.report.add(Finding::TornTail {
                base_offset,
                end,
                bytes,
                what,
            });
        }
        Ok(())
    }

    /// Epochs never fall along a log. Where they do, a truncation was half undone by a loss of
    /// power: what follows had been cut off.
    fn is_stale(&self, batch: &Located, at: Offset) -> bool {
        let newest = self.found.epochs_seen.last().map(|entry| entry.epoch);
        let epoch = batch.header.leader_epoch;
        at >= self.open.recovery_point
            && epoch >= LeaderEpoch::ZERO
            && newest.is_some_and(|newest| epoch < newest)
    }

    fn see_epoch(&mut self, base: Offset, batch: &Located) {
        if !self.found.scanned.contains(&base) {
            return;
        }
        let epoch = batch.header.leader_epoch;
        let is_new = self
            .found
            .epochs_seen
            .last()
            .is_none_or(|last| last.epoch < epoch);
        if epoch >= LeaderEpoch::ZERO && is_new {
            self.found.epochs_seen.push(EpochEntry {
                epoch,
                start_offset: batch.header.base_offset,
            });
        }
    }

    fn tell(&mut self, position: u64) {
        let scanned_bytes = self.report.scanned_bytes + position;
        if scanned_bytes >= self.told_bytes + PROGRESS_BYTES {
            self.told_bytes = scanned_bytes;
            (self.progress)(Progress {
                scanned_bytes,
                total_bytes: self.total_bytes,
            });
        }
    }

    /// After an unclean stop: what to do when the newest opened segment ends below `next`, where
    /// the next one begins. The name of a segment's file may not have survived. Returns whether
    /// everything from there on goes.
    fn judge_hole(&mut self, files: &Files, next: Offset) -> bool {
        let Some(last) = self.found.opened.last_mut() else {
            return false;
        };
        let (base_offset, from) = (last.base_offset, last.end_offset);
        // What lies below the log start was deleted; so was it where files wait to be removed and
        // the log start is not known to lie in between.
        let missing = from.max(self.open.log_start_offset);
        let was_deleted = missing == from && files.deleted.range(from..next).next().is_some();
        if missing >= next
            || was_deleted
            || self.open.clean_shutdown
            || self.looks_compacted
            || missing < self.open.recovery_point
        {
            return false;
        }
        let what = "no segment";
        if missing >= self.open.high_watermark {
            self.report.add(Finding::TornTail {
                base_offset,
                end: from,
                bytes: 0,
                what,
            });
            return true;
        }
        let range = DamagedRange {
            from: missing,
            to: next,
        };
        self.found.damage.add(range);
        self.report.add(Finding::Damage {
            base_offset,
            position: last.size,
            range,
            what,
        });
        false
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
        let file = Arc::clone(segment.file()?);
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
            let rebuilt = |it: &Finding| matches!(it, Finding::IndexRebuilt { base_offset, .. } if *base_offset == base);
            self.report.findings.retain(|finding| !rebuilt(finding));
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

/// The offset index as it is on disk, if its size makes sense at all.
fn old_entries<D: Disk>(
    disk: &D,
    path: &std::path::Path,
    base: Offset,
) -> Result<Vec<OffsetEntry>, DiskError> {
    Ok(match disk.open(path, highwater_disk::OpenMode::Read) {
        Ok(file) => crate::segment::decode_offset_index(&*file, base)?,
        Err(why) if why.is_not_found() => Vec::new(),
        Err(why) => return Err(why),
    })
}

fn next_base(files: &Files, base: Offset) -> Option<Offset> {
    files
        .segments
        .range(base.next()..)
        .next()
        .map(|(next, _)| *next)
}
