//! Every batch of a log in order, with what lies between them.

use std::collections::BTreeSet;
use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile, OpenMode};
use highwater_types::Offset;

use super::log::Checkpointed;
use super::report::{At, BrokerAction, Findings};
use crate::checkpoint::damage;
use crate::damage::DamagedRange;
use crate::epoch_runs::EpochRuns;
use crate::names::{FileKind, segment_file};
use crate::recovery::Severity;
use crate::segment::decode_offset_index;
use crate::segment::scan::{Found, Located, Scanner, WRONG_CRC};

/// What hears of each good batch of a segment.
pub(super) trait Visitor<F> {
    /// A batch whose checksum is right.
    fn batch(&mut self, batch: &Located, scanner: &Scanner<F>) -> Result<(), DiskError>;

    /// Damage ends in front of `next`.
    fn damage(&mut self, _next: &Located) {}
}

/// One segment as far as the walk needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) base: Offset,
    /// The base of the next segment.
    pub(super) next: Option<Offset>,
}

/// How a segment ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    /// Exclusive: behind the last good batch.
    pub(super) end: Offset,
    /// Whether no bad bytes and no gap were met.
    pub(super) is_whole: bool,
    /// Whether it ends in bad bytes: then there was more once than up to `end`.
    pub(super) has_bad_tail: bool,
    /// Whether a broker cuts the log there, so that later segments go.
    pub(super) is_cut: bool,
}

/// Walks the segments of one log, oldest first, and judges what is no batch as opening it does.
#[derive(Debug)]
pub(super) struct Walk<'a, D> {
    pub(super) disk: &'a D,
    pub(super) dir: &'a Path,
    pub(super) known: &'a Checkpointed,
    /// Damage that an earlier recovery has noted.
    listed: Vec<DamagedRange>,
    /// The leader epochs of the good batches.
    pub(super) epochs: EpochRuns,
    /// Offsets are missing between or inside batches, as a cleaner leaves them.
    looks_compacted: bool,
}

impl<'a, D: Disk> Walk<'a, D> {
    pub(super) fn new(disk: &'a D, dir: &'a Path, known: &'a Checkpointed) -> Self {
        let listed = disk.read(&dir.join(damage::FILE)).ok().flatten();
        let listed = listed.and_then(|bytes| damage::decode(&bytes).ok());
        Self {
            disk,
            dir,
            known,
            listed: listed.unwrap_or_default(),
            epochs: EpochRuns::default(),
            looks_compacted: known.may_be_compacted,
        }
    }

    /// Visits the batches of one segment.
    pub(super) fn segment(
        &mut self,
        span: Span,
        findings: &mut Findings<'_>,
        visitor: &mut impl Visitor<D::File>,
    ) -> Result<Walked, DiskError> {
        let path = segment_file(self.dir, span.base, FileKind::Log);
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let file = self.disk.open(&path, OpenMode::Read)?;
        let size = file.len()?;
        findings.report().segments += 1;
        findings.report().bytes += size;
        let mut scanner = Scanner::bodies(file, span.base, size);
        let (mut at, mut expected) = (0, span.base);
        let mut walked = Walked {
            end: expected,
            is_whole: true,
            has_bad_tail: false,
            is_cut: false,
        };
        loop {
            match scanner.batch_at(at, expected)? {
                Found::End => break,
                Found::Batch(batch) => {
                    if !self.belongs(&batch, span, &name, findings, &mut walked) {
                        break;
                    }
                    self.epochs.note(span.base, &batch, expected);
                    walked.is_whole &= self.follows(&batch, expected, &name, findings);
                    visitor.batch(&batch, &scanner)?;
                    findings.report().batches += 1;
                    expected = batch.header.next_offset();
                    walked.end = expected;
                    at = batch.end();
                }
                Found::Bad(what) => {
                    walked.is_whole = false;
                    let next = self.behind(&mut scanner, at, expected, span)?;
                    let is_followed = next.is_some() || span.next.is_some();
                    let holds_nothing = next.is_none() && span.next == Some(expected);
                    let judged = if holds_nothing {
                        (Severity::Normal, BrokerAction::Nothing)
                    } else {
                        let is_noticed = self.is_noticed(span, (at, expected), what);
                        self.judge(expected, is_followed, span.next.is_some(), is_noticed)
                    };
                    walked.is_cut = is_cut(judged.1);
                    let kept = next.filter(|_| !walked.is_cut);
                    let until = kept.as_ref().map_or(size, |batch| batch.position);
                    let more = if walked.is_cut && is_followed {
                        ", and all behind it"
                    } else {
                        ""
                    };
                    let what = format!("{what}: {} bytes{more}", until - at);
                    findings.add(judged, &name, At::batch(at, expected), what);
                    let Some(batch) = kept else {
                        walked.has_bad_tail = true;
                        break;
                    };
                    visitor.damage(&batch);
                    expected = batch.header.base_offset;
                    at = batch.position;
                }
            }
        }
        Ok(walked)
    }

    /// Between two segments. Returns whether a broker cuts the log there.
    pub(super) fn gap(
        &self,
        base: Offset,
        end: Offset,
        deleted: &BTreeSet<Offset>,
        findings: &mut Findings<'_>,
    ) -> bool {
        if base <= end || self.looks_compacted && !self.known.is_metadata {
            return false;
        }
        let name = format!("{:020}.log", base.raw());
        let what = format!("offsets {end} to {} are missing before it", base.raw() - 1);
        let known = self.known;
        let high_watermark = known.high_watermark.unwrap_or(Offset::ZERO);
        let was_deleted = deleted.range(end..base).next().is_some();
        let judged = if known.is_metadata {
            (Severity::Damage, BrokerAction::Refuse)
        } else if was_deleted {
            return false;
        } else if !known.is_clean && end >= high_watermark.max(known.recovery_point) {
            (Severity::Normal, BrokerAction::Cut)
        } else {
            (Severity::Loss, BrokerAction::Nothing)
        };
        findings.add(judged, &name, At::offset(end), what);
        is_cut(judged.1)
    }

    /// The good batch behind bad bytes at `at`: behind the bad batch by its own length, or
    /// wherever one is found.
    fn behind(
        &self,
        scanner: &mut Scanner<D::File>,
        at: u64,
        expected: Offset,
        span: Span,
    ) -> Result<Option<Located>, DiskError> {
        scanner.resync(at + 1..u64::MAX, expected, span.next.unwrap_or(Offset::MAX))
    }

    /// Whether opening the log, or a reader who comes along, finds out about the bad bytes where
    /// the batch at `expected` should be.
    fn is_noticed(&self, span: Span, (at, expected): (u64, Offset), what: &str) -> bool {
        let known = self.known;
        let is_scanned =
            !known.is_clean && span.next.is_none_or(|next| next > known.recovery_point);
        what != WRONG_CRC
            || is_scanned
            || self.listed.iter().any(|it| it.contains(expected))
            || at >= self.last_indexed(span)
    }

    /// Opening reads a segment from here on.
    fn last_indexed(&self, span: Span) -> u64 {
        let path = segment_file(self.dir, span.base, FileKind::Index);
        let file = self.disk.open(&path, OpenMode::Read);
        let entries = file.and_then(|file| decode_offset_index(&*file, span.base));
        let entries = entries.unwrap_or_default();
        entries.last().map_or(0, |entry| entry.position)
    }

    /// What a broker does about bytes that are no batches where the batch at `expected` should
    /// be: the three zones. Below the recovery point they were flushed: rot, never cut. Below
    /// the high watermark they were acknowledged: kept when records follow, else an unflushed
    /// loss. Above: a torn tail.
    fn judge(
        &self,
        expected: Offset,
        is_followed: bool,
        is_rolled: bool,
        is_noticed: bool,
    ) -> (Severity, BrokerAction) {
        let known = self.known;
        if known.is_metadata {
            return if known.is_clean && is_rolled || expected < known.recovery_point {
                (Severity::Damage, BrokerAction::Refuse)
            } else {
                (Severity::Normal, BrokerAction::Cut)
            };
        }
        let high_watermark = known.high_watermark.unwrap_or(Offset::ZERO);
        let is_flushed = expected < known.recovery_point || (known.is_clean && is_rolled);
        if is_flushed && !is_noticed {
            (Severity::Damage, BrokerAction::SendAsIs)
        } else if is_flushed || (expected < high_watermark && is_followed) {
            (Severity::Damage, BrokerAction::ServeCorrupt)
        } else if expected < high_watermark {
            (Severity::Loss, BrokerAction::CutAndAlarm)
        } else {
            (Severity::Normal, BrokerAction::Cut)
        }
    }

    /// Whether a good batch is part of the log at all. In front of one that is not, the segment
    /// is cut.
    fn belongs(
        &self,
        batch: &Located,
        span: Span,
        name: &str,
        findings: &mut Findings<'_>,
        walked: &mut Walked,
    ) -> bool {
        let base = batch.header.base_offset;
        let at = At::batch(batch.position, base);
        if span
            .next
            .is_some_and(|next| batch.header.last_offset() >= next)
        {
            walked.is_whole = false;
            let what = "the batch reaches into the next segment: an unfinished truncation";
            findings.add((Severity::Normal, BrokerAction::Cut), name, at, what);
            return false;
        }
        true
    }

    /// Whether no offset is missing in front of a good batch.
    fn follows(
        &mut self,
        batch: &Located,
        expected: Offset,
        name: &str,
        findings: &mut Findings<'_>,
    ) -> bool {
        let header = &batch.header;
        let was_compacted = self.looks_compacted && !self.known.is_metadata;
        self.looks_compacted |=
            header.base_offset > expected || header.record_count <= header.last_offset_delta;
        if header.base_offset == expected || was_compacted {
            return true;
        }
        let last = header.base_offset.raw() - 1;
        let what = format!("offsets {expected} to {last} are missing before it");
        let judged = if self.known.is_metadata {
            (Severity::Damage, BrokerAction::Refuse)
        } else {
            // Whether the topic is compacted is not written in the directory.
            (Severity::Normal, BrokerAction::Nothing)
        };
        findings.add(
            judged,
            name,
            At::batch(batch.position, header.base_offset),
            what,
        );
        false
    }
}

const fn is_cut(action: BrokerAction) -> bool {
    matches!(action, BrokerAction::Cut | BrokerAction::CutAndAlarm)
}
