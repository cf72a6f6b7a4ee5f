use highwater_coordinator::{AppendRefused, Appender, NewRecord};
use highwater_disk::Disk;
use highwater_log::{AppendError, Origin};
use highwater_records::{
    Batch, BatchBuilder, BatchOptions, Compression, Compressor, ProducerStamp, Validated,
};
use highwater_types::{ErrorCode, Now, Offset, TopicIdPartition};

use crate::journal::{Happening, Level};
use crate::shard::partition::OnlinePartition;
use crate::shard::{Effects, Shard};

/// Kafka's coordinator writes without a producer, yet with this first sequence.
const BASE_SEQUENCE: i32 = 0;

/// The log of a coordinator: the partition that it stands beside. It is written as clients write,
/// with acks=all.
#[derive(Debug)]
pub(super) struct PartitionAppender<'a, D: Disk> {
    pub(super) shard: &'a mut Shard<D>,
    pub(super) at: TopicIdPartition,
    pub(super) out: &'a mut Effects<D>,
}

impl<D: Disk> Appender for PartitionAppender<'_, D> {
    fn append(&mut self, now: Now, records: &[NewRecord]) -> Result<Offset, AppendRefused> {
        self.shard
            .append_group_records(now, self.at, records, self.out)
    }
}

impl<D: Disk> Shard<D> {
    fn append_group_records(
        &mut self,
        now: Now,
        at: TopicIdPartition,
        records: &[NewRecord],
        out: &mut Effects<D>,
    ) -> Result<Offset, AppendRefused> {
        let is_closing = self.lifecycle.is_closing();
        let default_codec = self.groups.settings.compression;
        let partition = self.partitions.find_mut(at).filter(|_| !is_closing);
        let partition = partition.ok_or(AppendRefused::NotLeader)?;
        let codec = match partition.settings.compression_type.as_str() {
            "producer" => default_codec,
            other => Compression::from_name(other).unwrap_or(Compression::None),
        };
        let bytes_max = u64::from(partition.settings.max_message_bytes);
        let checked = partition.online_mut().and_then(|online| {
            let epoch = online.replica.check_append(true)?;
            Ok((online, epoch))
        });
        let (OnlinePartition { log, .. }, epoch) = checked.map_err(|error| match error {
            ErrorCode::NOT_ENOUGH_REPLICAS => AppendRefused::TooFewInSync,
            ErrorCode::KAFKA_STORAGE_ERROR => AppendRefused::Disk,
            _ => AppendRefused::NotLeader,
        })?;
        let batch = build(now, records, codec).ok_or(AppendRefused::TooLarge)?;
        if batch.len() as u64 > bytes_max {
            return Err(AppendRefused::TooLarge);
        }
        let view = Batch::parse(&batch).expect("a batch of our own making");
        let validated = Validated::trusted(&view);
        let appended = log.append_as_leader(now, epoch, &batch, &validated, Origin::Coordinator);
        let end_offset = log.log_end_offset();
        match appended {
            Ok(appended) => {
                let happening = |partition| Happening::Appended {
                    partition,
                    first_offset: appended.first_offset,
                    end_offset,
                    epoch,
                };
                self.partition_changed(at, Level::Trace, happening, out);
                self.with_replica(now, at, out, |replica, outputs| {
                    replica.handle_appended(now, end_offset, outputs);
                });
                self.after_append(now, at, out);
                Ok(end_offset)
            }
            Err(why) => {
                self.note_disk_error(at, &why, out);
                Err(refusal(&why))
            }
        }
    }
}

fn refusal(why: &AppendError) -> AppendRefused {
    match why {
        // A full disk may have room again: as good as too few replicas.
        AppendError::Disk(error) if error.may_pass() => AppendRefused::TooFewInSync,
        AppendError::LargerThanSegment { .. } => AppendRefused::TooLarge,
        _ => AppendRefused::Disk,
    }
}

/// The records as one batch; `None` when they are too much for one.
fn build(now: Now, records: &[NewRecord], codec: Compression) -> Option<Vec<u8>> {
    let mut builder = BatchBuilder::new();
    for NewRecord { key, value } in records {
        builder
            .append(now.wall, Some(key), value.as_deref(), &[])
            .ok()?;
    }
    let options = BatchOptions {
        compressor: Compressor::new(codec),
        producer: ProducerStamp {
            base_sequence: BASE_SEQUENCE,
            ..ProducerStamp::NONE
        },
        ..BatchOptions::default()
    };
    builder.finish(&options).ok()
}
