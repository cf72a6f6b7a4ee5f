//! Applying what is committed.

use highwater_disk::Disk;
use highwater_log::RemovedFiles;
use highwater_metadata::{BatchFault, MetadataDelta, replay_batch};
use highwater_records::Batches;
use highwater_types::{Now, Offset};

use super::{Doing, Observer};

/// Bytes of the log applied in one step.
const STEP_BYTES: u64 = 1 << 20;

/// What was applied.
#[derive(Debug)]
pub(in crate::control) enum Applied<D: Disk> {
    /// Nothing: all that is here and committed was applied before.
    Nothing,
    /// Batches; whether there were records in them that are worth a snapshot.
    Batches { records: bool },
    /// The copy is damaged from here on: it was cut, and comes again from the leader.
    Damaged(Offset, String, RemovedFiles<D>),
}

impl<D: Disk> Observer<D> {
    /// Applies some of the committed records behind the end of `metadata`: whole batches below the
    /// high watermark.
    ///
    /// # Errors
    /// When one does not fit: `metadata` must not be used any more, for it would be another than
    /// the controller's (KAFKA-14203).
    pub(in crate::control) fn apply(
        &mut self,
        now: Now,
        metadata: &mut MetadataDelta,
    ) -> Result<Applied<D>, String> {
        let from = metadata.image().end.offset;
        let Some(committed) = self.high_watermark().filter(|it| *it > from) else {
            return Ok(Applied::Nothing);
        };
        let bytes = match self.log.read(from, committed, STEP_BYTES) {
            Ok(bytes) => bytes,
            Err(why) => return self.start_over(now, from, why),
        };
        let mut at = from;
        let mut records = false;
        for batch in Batches::new(&bytes) {
            let batch = match batch {
                Ok(batch) => batch,
                Err(why) => return self.start_over(now, at, why.to_string()),
            };
            let header = *batch.header();
            // A read begins at the batch that holds the offset.
            if header.next_offset() <= at {
                continue;
            }
            let quorum_records = match replay_batch(metadata, &batch) {
                Ok(quorum_records) => quorum_records,
                // The checksum is looked at before any record.
                Err(why) if matches!(why.what, BatchFault::Batch(_)) => {
                    return self.start_over(now, at, why.to_string());
                }
                Err(why) => {
                    return Err(format!("committed metadata cannot be applied: {why}"));
                }
            };
            records |= !header.attributes.is_control();
            self.log.bytes_since_snapshot += batch.size_bytes() as u64;
            at = header.next_offset();
            for record in quorum_records {
                self.log.take_quorum_record(record);
                self.voters_changed();
            }
        }
        if at == from {
            let why = format!("no whole batch is there below {committed}");
            return self.start_over(now, from, why);
        }
        Ok(Applied::Batches { records })
    }

    /// The copy cannot be read from `at` on: the leader has it all.
    fn start_over(&mut self, now: Now, at: Offset, why: String) -> Result<Applied<D>, String> {
        let cut = self.log.log_mut().truncate_to(now, at);
        let files = cut.map_err(|why| format!("the metadata log cannot be cut: {why}"))?;
        if self.log.end() > at {
            return Err(format!("the metadata log cannot be read at {at}: {why}"));
        }
        if matches!(self.doing, Doing::Fetching(_)) {
            // What was asked for is not what is needed now.
            self.doing = Doing::Resting(now.mono);
        }
        Ok(Applied::Damaged(at, why, files))
    }
}
