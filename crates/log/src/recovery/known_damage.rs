use std::path::Path;

use highwater_disk::{Disk, DiskError};
use highwater_types::Offset;

use super::report::{Finding, RecoveryReport};
use crate::checkpoint::damage;
use crate::damage::{Damage, DamagedRange};
use crate::segment::LogSegment;
use crate::segment::scan::Found;

/// Looks again at what earlier recoveries found to be damaged and this one did not read, and adds
/// what still is to `found`. Returns what the checkpoint listed; `None` when it must be written
/// anew.
pub(super) fn look_again<D: Disk>(
    (disk, dir): (&D, &Path),
    segments: &mut [LogSegment<D>],
    found: &mut Damage,
    report: &mut RecoveryReport,
) -> Result<Option<Vec<DamagedRange>>, DiskError> {
    let Some(bytes) = disk.read(&dir.join(damage::FILE))? else {
        return Ok(Some(Vec::new()));
    };
    let listed = damage::decode(&bytes).unwrap_or_default();
    if listed.is_empty() {
        return Ok(None);
    }
    for range in &listed {
        let known = found.at(range.from);
        if known.is_some_and(|known| known.to >= range.to) {
            continue;
        }
        let overlaps =
            |it: &&mut LogSegment<D>| it.base_offset < range.to && range.from < it.end_offset;
        for segment in segments.iter_mut().filter(overlaps) {
            look_at(segment, *range, found, report)?;
            segment.release();
        }
    }
    Ok(Some(listed))
}

/// Reads the batches of `segment` around `range`, and adds what is bad of it.
fn look_at<D: Disk>(
    segment: &LogSegment<D>,
    range: DamagedRange,
    found: &mut Damage,
    report: &mut RecoveryReport,
) -> Result<(), DiskError> {
    let entry = segment.offset_index.lookup(range.from)?;
    let mut position = entry.map_or(0, |entry| entry.position);
    let mut expected = segment.base_offset;
    let mut scanner = segment.bodies()?;
    while expected < range.to {
        match scanner.batch_at(position, expected)? {
            Found::Batch(batch) => {
                position = batch.end();
                expected = batch.header.next_offset();
            }
            Found::End => break,
            Found::Bad(what) => {
                let end = segment.end_offset;
                let next = scanner.resync(position + 1..u64::MAX, expected, end)?;
                let to = next.as_ref().map_or(end, |it| it.header.base_offset);
                // The index may lead into the middle of it.
                let bad = DamagedRange {
                    from: expected.max(range.from),
                    to: to.min(range.to),
                };
                add(segment.base_offset, position, bad, what, found, report);
                let Some(next) = next else { break };
                position = next.position;
                expected = to;
            }
        }
    }
    Ok(())
}

fn add(
    base_offset: Offset,
    position: u64,
    range: DamagedRange,
    what: &'static str,
    found: &mut Damage,
    report: &mut RecoveryReport,
) {
    let is_known = found.at(range.from).is_some_and(|it| it.to >= range.to);
    if range.from >= range.to || is_known {
        return;
    }
    found.add(range);
    report.add(Finding::Damage {
        base_offset,
        position,
        range,
        what,
    });
}
