use bytes::Bytes;
use highwater_records::{
    BATCH_HEADER_BYTES, Batch, BatchBuilder, BatchOptions, Compression, Compressor, ProducerStamp,
    RecordHeader,
};
use highwater_types::WallMs;
use tokio::sync::watch;
use tokio::time::Instant;

use super::delivery::{Delivery, Outcome};
use super::pool::{PooledBuffer, Room};
use crate::error::ClientError;
use crate::offsets::PartitionName;

/// A batch that is being filled, waits, or is on its way.
pub(super) struct ProducerBatch {
    pub(super) partition: PartitionName,
    pub(super) created: Instant,
    /// Not before this: a pause after a failure.
    pub(super) not_before: Instant,
    pub(super) attempts: u32,
    /// Attempts that ended in a split, which do not count against `retries`.
    pub(super) attempts_forgiven: u32,
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
        /// What the bytes count against, whoever holds them.
        room: Room,
    },
    Taken,
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
            attempts_forgiven: 0,
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
        let (partition, outcome) = (self.partition.clone(), self.outcome.subscribe());
        Some(Delivery::new(partition, outcome, index, timestamp))
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
                    room: buffer.room(),
                    bytes: Bytes::from_owner(buffer),
                    stamp,
                }
            }
            Records::Encoded {
                bytes,
                stamp: before,
                room,
            } if before != stamp => Records::Encoded {
                bytes: restamped(&bytes, stamp),
                stamp,
                room,
            },
            records => records,
        };
        self.stamp = Some(stamp);
        match &self.records {
            Records::Encoded { bytes, .. } => Ok(bytes.clone()),
            Records::Open { .. } | Records::Taken => Err(ClientError::ProducerClosed),
        }
    }

    /// The batch's bytes, once it was encoded.
    pub(super) fn encoded(&self) -> Option<&[u8]> {
        match &self.records {
            Records::Encoded { bytes, .. } => Some(bytes),
            Records::Open { .. } | Records::Taken => None,
        }
    }

    /// A closed batch of some of this one's records, which were sent. It counts against the
    /// memory that this one holds.
    pub(super) fn part(&self, builder: BatchBuilder, stamp: Option<ProducerStamp>) -> Option<Self> {
        let Records::Encoded { room, .. } = &self.records else {
            return None;
        };
        Some(Self {
            partition: self.partition.clone(),
            created: self.created,
            not_before: self.not_before,
            attempts: self.attempts,
            attempts_forgiven: self.attempts,
            last_error: self.last_error.clone(),
            stamp,
            record_count: builder.record_count(),
            records: Records::Open {
                capacity: builder.size_bytes(),
                builder,
                buffer: room.buffer(),
            },
            outcome: watch::Sender::new(None),
        })
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
        self.complete(Outcome::Failed(ClientError::ProducerClosed));
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
