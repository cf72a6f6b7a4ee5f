use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile as _, OpenMode};
use highwater_types::Offset;

use super::files::{Files, SegmentFiles};
use super::report::Finding;
use super::segments::Segments;
use super::{Progress, RecoveryStep};
use crate::damage::DamagedRange;
use crate::names::{FileKind, segment_file};
use crate::segment::scan::{Found, Located, Scanner, parse_header};
use crate::segment::{LogSegment, OffsetEntry};

/// How many bytes lie between two calls of `progress`.
const PROGRESS_BYTES: u64 = 8 << 20;

/// What to do about bytes that are no batch.
enum Verdict {
    /// They stay and count as damage; the next batch, if any, goes on behind them.
    Keep(Option<Located>),
    /// They and everything behind them go.
    Cut,
}

impl<D: Disk> Segments<'_, D> {
    /// Reads the batches of `segment` from `position` on, which it has up to there. Returns
    /// whether it was cut.
    pub(super) fn read_on(
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
                Found::Batch(batch) => {
                    self.looks_compacted |= batch.header.base_offset > expected
                        || batch.header.record_count <= batch.header.last_offset_delta;
                    segment.skip_to(position);
                    segment.note(&batch.header, self.open.config.index_interval_bytes);
                    self.see_epoch(segment.base_offset, &batch, expected);
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
            && scanner.is_in_place(&batch, limit)?
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

    fn see_epoch(&mut self, base: Offset, batch: &Located, expected: Offset) {
        if self.found.scanned.contains(&base) {
            self.epoch_runs.note(base, batch, expected);
        }
    }

    /// Judges the epochs of what was read, and takes off a tail that had been cut off before.
    /// Returns the base offsets of segments that go with it.
    pub(super) fn drop_stale(&mut self) -> Result<Vec<Offset>, DiskError> {
        let (high_watermark, recovery_point) = (self.open.high_watermark, self.open.recovery_point);
        let unsure_from = high_watermark.max(recovery_point);
        let judged = self.epoch_runs.judge(unsure_from, self.open.leader_epoch);
        let stale = judged.stale;
        self.found.epochs_seen = judged;
        let Some(stale) = stale else {
            return Ok(Vec::new());
        };
        let opened = &mut self.found.opened;
        let at = opened.partition_point(|segment| segment.base_offset <= stale.base_offset);
        let behind = opened.split_off(at);
        let mut bytes: u64 = behind.iter().map(|segment| segment.size).sum();
        if let Some(segment) = opened.last_mut() {
            bytes += segment.size - stale.position;
            segment.cut(stale.position, stale.expected)?;
            segment.write_indexes(true)?;
            segment.indexes_dirty = true;
        }
        self.found.cut_bytes += bytes;
        self.found.is_tail_damaged = false;
        self.report.add(Finding::TornTail {
            base_offset: stale.base_offset,
            end: stale.expected,
            bytes,
            what: "batches of an older leader epoch",
        });
        Ok(behind.iter().map(|segment| segment.base_offset).collect())
    }

    fn tell(&mut self, position: u64) {
        let scanned_bytes = self.report.scanned_bytes + position;
        if scanned_bytes >= self.told_bytes + PROGRESS_BYTES {
            self.told_bytes = scanned_bytes;
            (self.progress)(Progress {
                step: RecoveryStep::Batches,
                scanned_bytes,
                total_bytes: self.total_bytes,
            });
        }
    }

    /// What to do when the newest opened segment ends below `next`, where the next one begins.
    /// Returns whether everything from there on goes.
    ///
    /// Only a cleaner leaves offsets out, so where none was at work a segment is missing. Above
    /// all that was flushed or acknowledged its name did not survive a loss of power, and what
    /// follows goes with it. Otherwise somebody took it away. That is told at every opening, and
    /// readers go on behind the hole as they do in Apache Kafka, which does not tell: a refusal
    /// would stop them for good, and no retry would bring the records back.
    pub(super) fn judge_hole(&mut self, files: &Files, next: Offset) -> Result<bool, DiskError> {
        let Some(last) = self.found.opened.last_mut() else {
            return Ok(false);
        };
        let (base_offset, from) = (last.base_offset, last.end_offset);
        // What lies below the log start was deleted; so was it where files wait to be removed.
        let missing = from.max(self.open.log_start_offset);
        if missing >= next || self.looks_compacted {
            return Ok(false);
        }
        let deleted = files.deleted.range(from..next).count();
        self.explained.extend(files.deleted.range(from..next));
        if deleted > 0 {
            return Ok(false);
        }
        // The topic may have been compacted once.
        if has_gaps(last)? {
            self.looks_compacted = true;
            return Ok(false);
        }
        let open = self.open;
        let is_flushed = open.clean_shutdown || missing < open.recovery_point;
        if !is_flushed && missing >= open.high_watermark {
            self.report.add(Finding::TornTail {
                base_offset,
                end: from,
                bytes: 0,
                what: "no segment",
            });
            return Ok(true);
        }
        self.report.add(Finding::Hole {
            from: missing,
            to: next,
        });
        Ok(false)
    }
}

/// Whether offsets are missing between or inside the batches of a segment, as a cleaner leaves
/// them. Looks at the headers of all its batches.
fn has_gaps<D: Disk>(segment: &LogSegment<D>) -> Result<bool, DiskError> {
    let mut scanner = segment.headers()?;
    let (mut position, mut expected) = (0, segment.base_offset);
    while let Found::Batch(batch) = scanner.header_at(position, expected)? {
        let header = &batch.header;
        if header.base_offset > expected || header.record_count <= header.last_offset_delta {
            return Ok(true);
        }
        position = batch.end();
        expected = header.next_offset();
    }
    Ok(false)
}

/// The offset index as it is on disk, if its size makes sense at all.
fn old_entries<D: Disk>(
    disk: &D,
    path: &Path,
    base: Offset,
) -> Result<Vec<OffsetEntry>, DiskError> {
    Ok(match disk.open(path, OpenMode::Read) {
        Ok(file) => crate::segment::decode_offset_index(&*file, base)?,
        Err(why) if why.is_not_found() => Vec::new(),
        Err(why) => return Err(why),
    })
}
