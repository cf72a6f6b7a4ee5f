use highwater_disk::{Disk, DiskError};
use highwater_types::Offset;

use crate::partition_log::{MARKER_BYTES_MAX, producer_batch};
use crate::producer_state::{CompletedTransaction, ProducerState};
use crate::segment::LogSegment;
use crate::segment::scan::{Found, Located, Scanner};

/// Brings `state` from its end up to the end of `segments`, from the headers of batches and the
/// bodies of control batches. Damage is stepped over. `ended` hears of each transaction that
/// ended, with the base offset of the segment that holds its marker.
pub(crate) fn replay<'a, D: Disk>(
    state: &mut ProducerState,
    segments: impl IntoIterator<Item = &'a LogSegment<D>>,
    mut ended: impl FnMut(Offset, CompletedTransaction),
) -> Result<(), DiskError> {
    for segment in segments {
        let from = state.end_offset();
        if segment.end_offset <= from {
            continue;
        }
        walk(segment, from, |batch, scanner| {
            if let Some(transaction) = apply(state, batch, scanner)? {
                ended(segment.base_offset, transaction);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Applies one batch to `state`.
pub(crate) fn apply<F: highwater_disk::DiskFile>(
    state: &mut ProducerState,
    batch: &Located,
    scanner: &Scanner<F>,
) -> Result<Option<CompletedTransaction>, DiskError> {
    let bytes = if batch.header.attributes.is_control() {
        scanner.whole(batch, MARKER_BYTES_MAX)?
    } else {
        Vec::new()
    };
    Ok(state.apply(&producer_batch(&batch.header, &bytes)))
}

/// Visits the batches of `segment` that end above `from`. Their checksums are looked at: a header
/// in damage would bring producers, transactions and epochs that never were.
pub(crate) fn walk<D: Disk>(
    segment: &LogSegment<D>,
    from: Offset,
    mut visit: impl FnMut(&Located, &Scanner<D::File>) -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    let mut scanner = segment.bodies()?;
    let mut position = 0;
    if from > segment.base_offset {
        let entry = segment.offset_index.lookup(from)?;
        position = entry.map_or(0, |entry| entry.position);
    }
    let mut expected = segment.base_offset;
    loop {
        match scanner.batch_at(position, expected)? {
            Found::Batch(batch) => {
                position = batch.end();
                expected = batch.header.next_offset();
                if expected > from {
                    visit(&batch, &scanner)?;
                }
            }
            Found::End => return Ok(()),
            Found::Bad(_) => {
                match scanner.resync(position + 1..u64::MAX, expected, segment.end_offset)? {
                    Some(batch) => position = batch.position,
                    None => return Ok(()),
                }
            }
        }
    }
}
