//! Applying what is committed.

use highwater_disk::Disk;
use highwater_metadata::{MetadataDelta, replay_batch};
use highwater_records::Batches;
use highwater_types::Offset;

use super::Observer;

/// Bytes of the log applied in one step.
const STEP_BYTES: u64 = 1 << 20;

/// What was applied.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::control) struct Applied {
    /// Batches.
    pub(in crate::control) batches: usize,
    /// Whether there were records among them.
    pub(in crate::control) records: bool,
}

impl<D: Disk> Observer<D> {
    /// Applies some of the committed records behind the end of `metadata`: whole batches below the
    /// high watermark.
    ///
    /// # Errors
    /// When one cannot be read or does not fit: `metadata` must not be used any more, for it would
    /// be another than the controller's (KAFKA-14203).
    pub(in crate::control) fn apply(
        &mut self,
        metadata: &mut MetadataDelta,
    ) -> Result<Applied, String> {
        let mut applied = Applied::default();
        let from = metadata.image().end.offset;
        let Some(committed) = self.state.high_watermark().filter(|it| *it > from) else {
            return Ok(applied);
        };
        let failed = |at: Offset, why: String| {
            format!("committed metadata at offset {at} cannot be applied: {why}")
        };
        let bytes = self
            .log
            .read(from, committed, STEP_BYTES)
            .map_err(|why| failed(from, why))?;
        let mut at = from;
        for batch in Batches::new(&bytes) {
            let batch = batch.map_err(|why| failed(at, why.to_string()))?;
            let header = *batch.header();
            // A read begins at the batch that holds the offset.
            if header.next_offset() <= at {
                continue;
            }
            let records =
                replay_batch(metadata, &batch).map_err(|why| failed(at, why.to_string()))?;
            applied.records |= !header.attributes.is_control();
            applied.batches += 1;
            self.log.bytes_since_snapshot += batch.size_bytes() as u64;
            at = header.next_offset();
            for record in records {
                self.log.take_quorum_record(record);
                self.voters_changed();
            }
        }
        if applied.batches == 0 {
            let why = format!("no whole batch is there below {committed}");
            return Err(failed(from, why));
        }
        Ok(applied)
    }
}
