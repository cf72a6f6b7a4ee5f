//! What lies between a committed offset and the end: data, or control records that no consumer
//! ever gets.

use highwater_protocol::messages::FetchRequest;
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use highwater_protocol::{ApiKey, FetchView};
use highwater_records::{Batch, Batches};
use highwater_types::{Millis, NodeId, Offset, TopicId, Uuid};

use super::coordinator::call_up_to;
use crate::cluster::Client;
use crate::error::ClientError;
use crate::offsets::PartitionName;

/// The last version of Fetch that names topics by name.
const NAMES_UNTIL: i16 = 12;
/// Bytes of records that one request asks for.
const FETCH_BYTES: u64 = 1024 * 1024;
/// Most that one batch may decompress to when its records must be looked at one by one.
const BATCH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Records of a range of offsets, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordCounts {
    /// Records with keys and values of producers, of aborted transactions too.
    pub data: u64,
    /// Records that brokers wrote to end transactions.
    pub control: u64,
    /// Up to here was counted, exclusively.
    pub counted_to: Offset,
}

impl Client {
    /// Counts the records from `from` up to `to` by the headers of their batches, and stops early
    /// once `bytes_max` were read: then `counted_to` is below `to`.
    ///
    /// # Errors
    /// When the partition's leader cannot be asked or refuses, and
    /// [`ClientError::Corrupt`] for bytes that are no batches.
    pub async fn count_records(
        &self,
        partition: &PartitionName,
        (from, to): (Offset, Offset),
        bytes_max: u64,
    ) -> Result<RecordCounts, ClientError> {
        let mut counts = RecordCounts {
            data: 0,
            control: 0,
            counted_to: from,
        };
        let mut left = bytes_max;
        while counts.counted_to < to && left > 0 {
            let bytes = self
                .fetch_some(partition, counts.counted_to, left.min(FETCH_BYTES))
                .await?;
            left = left.saturating_sub(bytes.len() as u64);
            let before = counts.counted_to;
            count(&bytes, to, &mut counts).map_err(|why| ClientError::Corrupt {
                partition: format!("{}-{}", partition.0, partition.1),
                offset: counts.counted_to,
                why: why.to_string(),
            })?;
            if counts.counted_to == before {
                break;
            }
        }
        Ok(counts)
    }

    async fn fetch_some(
        &self,
        partition: &PartitionName,
        from: Offset,
        bytes: u64,
    ) -> Result<bytes::Bytes, ClientError> {
        let (topic, index) = partition;
        let leader = self
            .known_leader(topic, *index)
            .ok_or_else(|| self.why_no_leader(topic, *index))?;
        let connection = self.connection(leader.node).await?;
        let metadata = self.metadata();
        let id = metadata.topics.get(topic).and_then(|topic| topic.id);
        let bytes_max = i32::try_from(bytes).unwrap_or(i32::MAX);
        let request = FetchRequest {
            replica_id: NodeId::new(-1),
            max_wait_ms: 100,
            min_bytes: 1,
            max_bytes: bytes_max,
            session_epoch: -1,
            topics: vec![FetchTopic {
                topic: topic.clone(),
                topic_id: id.map_or(Uuid::ZERO, TopicId::uuid),
                partitions: vec![FetchPartition {
                    partition: index.raw(),
                    current_leader_epoch: leader.epoch.raw(),
                    fetch_offset: from.raw(),
                    partition_max_bytes: bytes_max,
                    ..FetchPartition::default()
                }],
            }],
            ..FetchRequest::default()
        };
        let mut version = connection.version(ApiKey::Fetch)?;
        if id.is_none() {
            version = version.min(NAMES_UNTIL);
        }
        let view =
            FetchView::from_message(&request, version).map_err(|why| ClientError::Encode {
                peer: connection.peer().to_owned(),
                api: ApiKey::Fetch,
                why: why.to_string(),
            })?;
        let limit: Millis = self.config().request_timeout;
        let answer = call_up_to(&connection, view, version, limit).await?;
        let what = || format!("fetch {topic}-{index}");
        ClientError::check(what, answer.error_code, None)?;
        let topics = answer.responses.into_iter();
        let data = topics.flat_map(|topic| topic.partitions).next();
        let Some(data) = data else {
            return Ok(bytes::Bytes::new());
        };
        ClientError::check(what, data.error_code, None)?;
        Ok(data.records.unwrap_or_default())
    }
}

/// Counts the whole batches in `bytes`, as far as they lie below `to`.
fn count(
    bytes: &[u8],
    to: Offset,
    counts: &mut RecordCounts,
) -> Result<(), highwater_records::BatchError> {
    for batch in Batches::new(bytes) {
        let batch = batch?;
        let header = *batch.header();
        if header.base_offset >= to {
            counts.counted_to = to;
            return Ok(());
        }
        let from = counts.counted_to;
        if header.last_offset() < from {
            continue;
        }
        let is_inside = header.base_offset >= from && header.last_offset() < to;
        let records = if is_inside {
            u64::try_from(header.record_count).unwrap_or_default()
        } else {
            count_inside(&batch, from, to)?
        };
        if header.attributes.is_control() {
            counts.control += records;
        } else {
            counts.data += records;
        }
        counts.counted_to = header.next_offset().min(to);
    }
    Ok(())
}

/// Looks at each record of a batch that begins before `from` or ends behind `to`.
fn count_inside(
    batch: &Batch<'_>,
    from: Offset,
    to: Offset,
) -> Result<u64, highwater_records::BatchError> {
    let open = batch.open(BATCH_BYTES_MAX)?;
    let mut count = 0;
    for record in open.records() {
        let offset = record?.offset;
        count += u64::from(offset >= from && offset < to);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use highwater_records::{BatchBuilder, BatchHeader, BatchOptions, EndTransactionMarker};
    use highwater_types::{LeaderEpoch, ProducerEpoch, ProducerId, WallMs};

    use super::*;

    fn data(base: i64, count: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        for _ in 0..count {
            builder
                .append(WallMs::new(1), None, Some(b"v"), &[])
                .unwrap();
        }
        let options = BatchOptions {
            base_offset: Offset::new(base),
            ..BatchOptions::default()
        };
        builder.finish(&options).unwrap().to_vec()
    }

    fn marker(base: i64) -> Vec<u8> {
        let marker = EndTransactionMarker {
            committed: true,
            coordinator_epoch: LeaderEpoch::new(0),
        };
        let (id, epoch) = (ProducerId::new(1), ProducerEpoch::new(0));
        let bytes = BatchBuilder::end_transaction(WallMs::new(1), id, epoch, marker);
        let mut header = BatchHeader::parse(&bytes).unwrap();
        header.base_offset = Offset::new(base);
        [header.encode().as_slice(), &bytes[61..]].concat()
    }

    fn counted(bytes: &[u8], from: i64, to: i64) -> (u64, u64, i64) {
        let mut counts = RecordCounts {
            data: 0,
            control: 0,
            counted_to: Offset::new(from),
        };
        count(bytes, Offset::new(to), &mut counts).unwrap();
        (counts.data, counts.control, counts.counted_to.raw())
    }

    #[test]
    fn data_and_control_records_are_told_apart() {
        let log = [data(0, 5), marker(5), data(6, 2), marker(8), marker(9)].concat();
        assert_eq!(counted(&log, 0, 10), (7, 3, 10));
        assert_eq!(counted(&log, 3, 7), (3, 1, 7), "inside of two batches");
        assert_eq!(counted(&log, 5, 6), (0, 1, 6));
        let cut = &log[..log.len() - 1];
        assert_eq!(
            counted(cut, 0, 10),
            (7, 2, 9),
            "the cut batch is not counted"
        );
    }

    #[test]
    fn offsets_that_compaction_left_out_are_no_records() {
        let log = [data(0, 1), data(100, 1)].concat();
        assert_eq!(counted(&log, 0, 101), (2, 0, 101));
        assert_eq!(counted(&log, 1, 101), (1, 0, 101));
    }
}
