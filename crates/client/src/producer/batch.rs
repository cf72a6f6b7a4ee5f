use bytes::Bytes;
use highwater_records::{
    BATCH_HEADER_BYTES, Batch, BatchBuilder, BatchOptions, Compression, Compressor, ProducerStamp,
    RecordHeader,
};
use highwater_types::{Offset, PartitionIndex, WallMs};
use tokio::sync::watch;
use tokio::time::Instant;

use super::pool::PooledBuffer;
use crate::error::ClientError;
use crate::offsets::PartitionName;

/// Where a record ended up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordMetadata {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// The record's offset; `None` with acks=0, and for a duplicate too old for the broker to
    /// remember.
    pub offset: Option<Offset>,
    /// The record's timestamp: the broker's on a `LogAppendTime` topic.
    pub timestamp: WallMs,
}

/// A record on its way.
#[derive(Clone, Debug)]
pub struct Delivery {
    partition: PartitionName,
    outcome: watch::Receiver<Option<Outcome>>,
    index: i32,
    timestamp: WallMs,
}

/// What became of a batch.
pub(super) type Outcome = Result<Acknowledged, ClientError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) base_offset: Option<Offset>,
    pub(super) log_append_time: Option<WallMs>,
}

/// A batch that is being filled, waits, or is on its way.
pub(super) struct ProducerBatch {
    pub(super) partition: PartitionName,
    pub(super) created: Instant,
    /// Not before this: a pause after a failure.
    pub(super) not_before: Instant,
    pub(super) attempts: u32,
    pub(super) last_error: Option<ClientError>,
    /// Given at the first attempt; a retry must have the same.
    pub(super) stamp: Option<ProducerStamp>,
    records: Records,
    record_count: i32,
    outcome: watch::Sender<Option<Outcome>>,
}

enum Records {
    Open {
        builder: BatchBuilder,
        buffer: PooledBuffer,
        capacity: usize,
    },
    Encoded {
        bytes: Bytes,
        stamp: ProducerStamp,
    },
    Taken,
}

impl Delivery {
    /// Waits until the record is acknowledged or given up.
    ///
    /// # Errors
    /// Why it was given up. It may be in the log all the same when the reason is a lost
    /// connection or a time-out.
    pub async fn wait(mut self) -> Result<RecordMetadata, ClientError> {
        let outcome = match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        let Acknowledged {
            base_offset,
            log_append_time,
        } = outcome.unwrap_or(Err(ClientError::ProducerClosed))?;
        let (topic, partition) = self.partition;
        Ok(RecordMetadata {
            topic,
            partition,
            offset: base_offset.map(|base| base.plus(i64::from(self.index))),
            timestamp: log_append_time.unwrap_or(self.timestamp),
        })
    }
}

impl ProducerBatch {
    pub(super) fn new(partition: PartitionName, mut buffer: PooledBuffer, now: Instant) -> Self {
        let capacity = buffer.capacity();
        let builder = BatchBuilder::with_buffer(buffer.borrow());
        Self {
            partition,
            created: now,
            not_before: now,
            attempts: 0,
            last_error: None,
            stamp: None,
            records: Records::Open {
                builder,
                buffer,
                capacity,
            },
            record_count: 0,
            outcome: watch::Sender::new(None),
        }
    }

    /// Adds a record if there is room for it.
    pub(super) fn append(
        &mut self,
        timestamp: WallMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Option<Delivery> {
        let Records::Open {
            builder, capacity, ..
        } = &mut self.records
        else {
            return None;
        };
        let bytes = BatchBuilder::record_bytes_max(key, value, headers);
        if builder.size_bytes() + bytes > *capacity {
            return None;
        }
        builder.append(timestamp, key, value, headers).ok()?;
        let index = self.record_count;
        self.record_count += 1;
        Some(Delivery {
            partition: self.partition.clone(),
            outcome: self.outcome.subscribe(),
            index,
            timestamp,
        })
    }

    /// Whether another record of usual size has no room.
    pub(super) fn is_full(&self) -> bool {
        match &self.records {
            Records::Open {
                builder, capacity, ..
            } => builder.size_bytes() + 32 > *capacity,
            Records::Encoded { .. } | Records::Taken => true,
        }
    }

    pub(super) const fn record_count(&self) -> i32 {
        self.record_count
    }

    /// Bytes that the batch takes in a request, at the most.
    pub(super) fn size_bytes(&self) -> usize {
        match &self.records {
            Records::Open { builder, .. } => builder.size_bytes(),
            Records::Encoded { bytes, .. } => bytes.len(),
            Records::Taken => 0,
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Outcome>> {
        self.outcome.subscribe()
    }

    /// The batch as it is sent, with `stamp`. The first call closes and compresses it; `scratch`
    /// is for that. Another stamp than before costs a copy.
    pub(super) fn encode(
        &mut self,
        stamp: ProducerStamp,
        compressor: Compressor,
        scratch: &mut Vec<u8>,
    ) -> Result<Bytes, ClientError> {
        self.records = match std::mem::replace(&mut self.records, Records::Taken) {
            Records::Open {
                mut builder,
                mut buffer,
                ..
            } => {
                let options = BatchOptions {
                    compressor,
                    producer: stamp,
                    ..Default::default()
                };
                let failed = |why: highwater_records::BuildError| ClientError::Config {
                    key: "compression.type",
                    value: compressor.compression.to_string(),
                    why: why.to_string(),
                };
                if compressor.compression == Compression::None {
                    buffer.put(builder.finish_in_place(&options).map_err(failed)?);
                } else {
                    scratch.clear();
                    builder.finish_into(&options, scratch).map_err(failed)?;
                    // The open batch and its compressed form never count twice: the one replaces
                    // the other in the same buffer.
                    buffer.put(builder.into_buffer());
                    buffer.bytes_mut().clear();
                    buffer.bytes_mut().extend_from_slice(scratch);
                }
                Records::Encoded {
                    bytes: Bytes::from_owner(buffer),
                    stamp,
                }
            }
            Records::Encoded {
                bytes,
                stamp: before,
            } if before != stamp => Records::Encoded {
                bytes: restamped(&bytes, stamp),
                stamp,
            },
            records => records,
        };
        self.stamp = Some(stamp);
        match &self.records {
            Records::Encoded { bytes, .. } => Ok(bytes.clone()),
            Records::Open { .. } | Records::Taken => Err(ClientError::ProducerClosed),
        }
    }

    /// Tells everybody who waits for one of the batch's records.
    pub(super) fn complete(&mut self, outcome: Outcome) {
        self.outcome.send_if_modified(|told| {
            let first = told.is_none();
            told.get_or_insert(outcome);
            first
        });
    }
}

impl Drop for ProducerBatch {
    fn drop(&mut self) {
        self.complete(Err(ClientError::ProducerClosed));
    }
}

fn restamped(bytes: &Bytes, stamp: ProducerStamp) -> Bytes {
    let batch = Batch::parse(bytes).expect("the builder makes whole batches");
    let mut header = *batch.header();
    header.producer_id = stamp.id;
    header.producer_epoch = stamp.epoch;
    header.base_sequence = stamp.base_sequence;
    let records = bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    let header = header.with_crc_over(records).encode();
    Bytes::from([header.as_slice(), records].concat())
}
