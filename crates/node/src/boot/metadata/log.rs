use std::path::Path;
use std::sync::Arc;

use highwater_disk::{Disk, DiskFile as _};
use highwater_log::{
    LogConfig, OpenError, OpenLog, PartitionLog, ReadResult, RecoveryReport, Severity, durable_end,
};
use highwater_metadata::replay_batch;
use highwater_records::Batches;
use highwater_types::{Millis, Now, Offset, PartitionIndex, TopicId, TopicName, TopicPartition};

use super::reader::Reader;
use super::{Start, State};
use crate::boot::{BootError, not_written, shown};
use crate::config::NodeConfig;
use crate::control::files::METADATA_DIR;

/// Bytes of the log read at a time.
const READ_BYTES: u64 = 8 << 20;

impl<D: Disk> Reader<'_, D> {
    /// Opens the log. Says also whether committed records in it are damaged, where that does not
    /// end the start.
    pub(super) fn open_log(
        &mut self,
        start: &Start<'_>,
    ) -> Result<(PartitionLog<D>, bool), BootError> {
        let (was_clean, now) = (start.was_clean, start.now);
        let committed = durable_end(self.dir, Path::new(METADATA_DIR), was_clean)
            .map_err(|why| BootError(format!("{}: {why}", shown(self.dir, METADATA_DIR))))?;
        let topic = TopicName::new("__cluster_metadata").expect("a legal name");
        let open = OpenLog {
            disk: self.dir.clone(),
            dir: METADATA_DIR.into(),
            topic_partition: TopicPartition {
                topic,
                partition: PartitionIndex::new(0),
            },
            topic_id: TopicId::CLUSTER_METADATA,
            config: log_config(start.config),
            recovery_point: committed,
            high_watermark: committed,
            log_start_offset: Offset::ZERO,
            was_cleaned: false,
            leader_epoch: None,
            clean_shutdown: was_clean,
            now,
        };
        let opened = open.run(self.b, &|_| {});
        let (log, report) = opened.map_err(|why| match why {
            OpenError::Disk(why) => not_written(self.dir, METADATA_DIR, 0, &why),
            why => BootError(format!("{}: {why}", shown(self.dir, METADATA_DIR))),
        })?;
        let is_damaged = self.tell(&report)?;
        Ok((log, is_damaged))
    }

    /// What recovery found. Metadata with a hole is no metadata: such a log is not started from.
    fn tell(&mut self, report: &RecoveryReport) -> Result<bool, BootError> {
        let mut is_damaged = false;
        for finding in &report.findings {
            let text = format!("{}: {finding}", shown(self.dir, METADATA_DIR));
            match finding.severity() {
                Severity::Normal => self.info(text),
                Severity::Repaired => self.warn(text),
                Severity::Damage | Severity::Loss if self.is_copy => {
                    self.warn(format!("{text}; fetching it again from the controller"));
                    is_damaged = true;
                }
                Severity::Damage | Severity::Loss => {
                    return Err(BootError(format!(
                        "{text}; committed metadata is damaged: restore the directory from \
                         another copy"
                    )));
                }
            }
        }
        Ok(is_damaged)
    }

    /// Makes sure that the log reaches back to what was loaded, and goes on behind it.
    pub(super) fn fit(
        &mut self,
        log: &mut PartitionLog<D>,
        state: &State,
        is_damaged: bool,
        now: Now,
    ) -> Result<(), BootError> {
        let loaded = state.delta.image().end;
        let end = loaded.offset;
        let start = log.log_start_offset();
        if start > end && !self.is_copy {
            let newest = if end > Offset::ZERO {
                format!("the newest usable snapshot ends at {end}")
            } else {
                "there is no usable snapshot".to_owned()
            };
            return Err(BootError(format!(
                "the metadata log in {} starts at offset {start}, but {newest}: the records from \
                 {end} on are missing; restore the directory from another copy",
                shown(self.dir, METADATA_DIR)
            )));
        }
        let is_short = log.log_end_offset() < end;
        // A snapshot of the leader's was taken over, and the power went before the log was cut.
        let is_older = self.is_copy && log.last_epoch().is_some_and(|it| it < loaded.epoch);
        if is_short {
            // The log was lost or cut; the snapshot has everything that was committed.
            let text = format!(
                "the metadata log ends at {}, before its newest snapshot ({end}); going on there",
                log.log_end_offset()
            );
            self.warn(text);
        }
        if is_short || is_older || is_damaged || start > end {
            let failed = |why| BootError(format!("{}: {why}", shown(self.dir, METADATA_DIR)));
            let cut = log.truncate_fully_and_start_at(now, end).map_err(failed)?;
            cut.run(self.b).map_err(failed)?;
        }
        Ok(())
    }

    /// Applies everything in the log from `from` on. Returns how many bytes that was.
    pub(super) fn replay_log(
        &mut self,
        state: &mut State,
        log: &mut PartitionLog<D>,
        from: Offset,
    ) -> Result<u64, BootError> {
        let end = log.log_end_offset();
        let mut at = from;
        let mut bytes_read = 0;
        while at < end {
            let bytes = self.read_at(log, at, end)?;
            let before = at;
            for batch in Batches::new(&bytes) {
                let batch = batch.map_err(|why| self.unreadable(at, &why.to_string()))?;
                let header = *batch.header();
                // A read begins at the batch that holds the offset.
                if header.next_offset() <= at {
                    continue;
                }
                let records = replay_batch(&mut state.delta, &batch)
                    .map_err(|why| self.unreadable(at, &why.to_string()))?;
                for record in records {
                    state.take_quorum_record(record);
                }
                bytes_read += batch.size_bytes() as u64;
                at = header.next_offset();
            }
            if at == before {
                return Err(self.unreadable(at, "no whole batch is there"));
            }
        }
        Ok(bytes_read)
    }

    fn read_at(
        &self,
        log: &mut PartitionLog<D>,
        at: Offset,
        end: Offset,
    ) -> Result<Vec<u8>, BootError> {
        let failed = |why: String| self.unreadable(at, &why);
        let read = log
            .read(at, end, READ_BYTES, true)
            .map_err(|why| failed(why.to_string()))?;
        let ReadResult::Local(read) = read else {
            return Err(failed("it is in tiered storage".to_owned()));
        };
        let Some(region) = read.region else {
            return Ok(Vec::new());
        };
        let len = usize::try_from(region.len).map_err(|_| failed("too large".to_owned()))?;
        let mut bytes = vec![0; len];
        let file = Arc::clone(&region.file);
        let read = file.read_at(region.position, &mut bytes);
        let count = read.map_err(|why| failed(why.to_string()))?;
        bytes.truncate(count);
        Ok(bytes)
    }

    fn unreadable(&self, at: Offset, why: &str) -> BootError {
        BootError(format!(
            "the metadata log in {} cannot be replayed at offset {at}: {why}; committed metadata \
             is damaged: restore the directory from another copy",
            shown(self.dir, METADATA_DIR)
        ))
    }
}

/// The metadata log keeps everything from its start on; only snapshots move that.
fn log_config(config: &NodeConfig) -> LogConfig {
    let broker = &config.broker;
    let internal = broker.number("internal.metadata.log.segment.bytes");
    let segment_bytes = internal.or_else(|| broker.number("metadata.log.segment.bytes"));
    let segment_bytes = segment_bytes.and_then(|bytes| u32::try_from(bytes).ok());
    LogConfig {
        segment_bytes: segment_bytes.unwrap_or(1 << 30),
        segment_ms: Millis::new(broker.count("metadata.log.segment.ms")),
        retention_ms: None,
        retention_bytes: None,
        max_message_bytes: u32::MAX,
        file_delete_delay_ms: Millis::new(broker.count("internal.metadata.delete.delay.millis")),
        ..LogConfig::default()
    }
}
