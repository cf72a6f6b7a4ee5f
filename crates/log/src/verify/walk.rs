//! Every batch of a log in order, with what lies between them.

use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile as _, OpenMode};
use highwater_types::Offset;

use super::log::Checkpointed;
use super::report::{At, BrokerAction, Findings};
use crate::names::{FileKind, segment_file};
use crate::recovery::Severity;
use crate::segment::scan::{Found, Located, Scanner};

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
    /// Whether bytes that are no batches, or a gap, were met.
    pub(super) is_whole: bool,
    /// Whether it ends in bad bytes: then there was more once than up to `end`.
    pub(super) has_bad_tail: bool,
    /// Whether a broker cuts the log there, so that later segments go.
    pub(super) is_cut: bool,
}

/// Visits the batches of one segment, which should begin at `expected` or later.
pub(super) fn walk<D: Disk>(
    disk: &D,
    dir: &Path,
    span: Span,
    expected: Offset,
    known: &Checkpointed,
    findings: &mut Findings<'_>,
    visitor: &mut impl Visitor<D::File>,
) -> Result<Walked, DiskError> {
    let path = segment_file(dir, span.base, FileKind::Log);
    let name = path
        .file_name()
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default();
    let file = disk.open(&path, OpenMode::Read)?;
    let size = file.len()?;
    findings.report().segments += 1;
    findings.report().bytes += size;
    let mut scanner = Scanner::bodies(file, span.base, size);
    let mut expected = expected.max(span.base);
    let mut at = 0;
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
                if !fits(&batch, span, &name, findings) {
                    walked.is_whole = false;
                    break;
                }
                walked.is_whole &= follows(&batch, expected, known, &name, findings);
                visitor.batch(&batch, &scanner)?;
                findings.report().batches += 1;
                expected = batch.header.next_offset();
                walked.end = expected;
                at = batch.end();
            }
            Found::Bad(what) => {
                walked.is_whole = false;
                let below = span.next.unwrap_or(Offset::MAX);
                let next = scanner.resync(at + 1..u64::MAX, expected, below)?;
                let is_followed = next.is_some() || span.next.is_some();
                let judged = judge(expected, is_followed, span.next.is_some(), known);
                walked.is_cut = matches!(judged.1, BrokerAction::Cut | BrokerAction::CutAndAlarm);
                let until = next
                    .as_ref()
                    .filter(|_| !walked.is_cut)
                    .map_or(size, |it| it.position);
                let behind = if walked.is_cut && is_followed {
                    ", and all behind them"
                } else {
                    ""
                };
                let what = format!("{what}: {} bytes{behind}", until - at);
                findings.add(judged, &name, At::batch(at, expected), what);
                let Some(batch) = next.filter(|_| !walked.is_cut) else {
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

/// What a broker does about bytes that are no batches where the batch at `expected` should be:
/// the three zones. Below the recovery point they were flushed: rot, never cut. Below the high
/// watermark they were acknowledged: kept when records follow, else an unflushed loss. Above: a
/// torn tail.
pub(super) fn judge(
    expected: Offset,
    is_followed: bool,
    is_rolled: bool,
    known: &Checkpointed,
) -> (Severity, BrokerAction) {
    if known.is_metadata {
        return if is_followed {
            (Severity::Damage, BrokerAction::Refuse)
        } else {
            (Severity::Normal, BrokerAction::Cut)
        };
    }
    let high_watermark = known.high_watermark.unwrap_or(Offset::ZERO);
    let is_flushed = expected < known.recovery_point || (known.is_clean && is_rolled);
    if is_flushed || (expected < high_watermark && is_followed) {
        (Severity::Damage, BrokerAction::ServeCorrupt)
    } else if expected < high_watermark {
        (Severity::Loss, BrokerAction::CutAndAlarm)
    } else {
        (Severity::Normal, BrokerAction::Cut)
    }
}

/// Whether a good batch is within its segment. The segment is cut in front of one that is not.
fn fits(batch: &Located, span: Span, name: &str, findings: &mut Findings<'_>) -> bool {
    let last = batch.header.last_offset();
    let at = At::batch(batch.position, batch.header.base_offset);
    if span.next.is_some_and(|next| last >= next) {
        let what = "the batch reaches into the next segment: an unfinished truncation";
        findings.add((Severity::Normal, BrokerAction::Cut), name, at, what);
        return false;
    }
    true
}

/// Whether no offset is missing in front of a good batch.
fn follows(
    batch: &Located,
    expected: Offset,
    known: &Checkpointed,
    name: &str,
    findings: &mut Findings<'_>,
) -> bool {
    let base = batch.header.base_offset;
    if base == expected || known.may_be_compacted && !known.is_metadata {
        return true;
    }
    let what = format!(
        "offsets {expected} to {} are missing before it",
        base.raw() - 1
    );
    let judged = if known.is_metadata {
        (Severity::Damage, BrokerAction::Refuse)
    } else {
        // Whether the topic is compacted is not written in the directory.
        (Severity::Normal, BrokerAction::Nothing)
    };
    findings.add(judged, name, At::batch(batch.position, base), what);
    false
}
