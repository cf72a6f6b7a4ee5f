use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use highwater_records::{BATCH_HEADER_BYTES, BatchBuilder, RecordHeader};
use highwater_types::{ErrorCode, Millis, PartitionIndex, WallMs};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::accumulator::Accumulator;
use super::batch::ProducerBatch;
use super::config::ProducerConfig;
use super::delivery::{Delivery, settled};
use super::pool::BufferPool;
use super::sender::Sender;
use crate::cluster::Client;
use crate::config::duration;
use crate::error::ClientError;

/// A record to send. Borrowed: its bytes are copied into a batch at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProducerRecord<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition; `None`: by key, or any.
    pub partition: Option<PartitionIndex>,
    /// Null and empty are different.
    pub key: Option<&'a [u8]>,
    /// Null (a tombstone) and empty are different.
    pub value: Option<&'a [u8]>,
    /// Headers, in order.
    pub headers: &'a [RecordHeader<'a>],
    /// The record's timestamp; `None`: now.
    pub timestamp: Option<WallMs>,
}

/// Gathers records into batches and sends them in the background.
///
/// [`Producer::send`] takes a record in, and waits only while `buffer.memory` is full or the topic
/// is not known. The [`Delivery`] that it gives tells later what became of the record. Records of
/// one partition are sent in the order of the calls; with idempotence (the default) each is in
/// the log once and in that order, whatever is tried again.
///
/// Call [`Producer::close`] at the end: dropping the producer gives up what is not acknowledged.
pub struct Producer {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) config: ProducerConfig,
    pub(super) pool: Arc<BufferPool>,
    accumulator: Mutex<Accumulator>,
    /// Rung when the sender should look again.
    pub(super) wake: Notify,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Accumulator> {
        self.accumulator
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Producer {
    /// A producer with connections of its own. Does no IO yet.
    ///
    /// # Errors
    /// [`ClientError::Config`] for keys that contradict each other.
    pub fn new(client: &Client, config: ProducerConfig) -> Result<Self, ClientError> {
        let idempotent = config.check()?;
        let shared = Arc::new(Shared {
            client: client.sibling(),
            pool: BufferPool::new(config.buffer_memory, config.batch_size),
            config,
            accumulator: Mutex::default(),
            wake: Notify::new(),
        });
        let task = tokio::spawn(Sender::new(shared.clone(), idempotent).run());
        Ok(Self { shared, task })
    }

    /// Takes a record in. Waits up to `max.block.ms` for the topic's metadata and for memory.
    ///
    /// # Errors
    /// [`ClientError::BufferFull`], [`ClientError::RecordTooLarge`], what [`Client::topic`] gives,
    /// and [`ClientError::ProducerClosed`]. The record is then not taken in.
    pub async fn send(&self, record: ProducerRecord<'_>) -> Result<Delivery, ClientError> {
        let config = &self.shared.config;
        let deadline = Instant::now() + duration(config.max_block);
        let topic = self
            .shared
            .client
            .topic(record.topic, config.max_block)
            .await?;
        let most = BatchBuilder::record_bytes_max(record.key, record.value, record.headers);
        let size_bytes = BATCH_HEADER_BYTES + most;
        if size_bytes > config.max_request_size {
            let (max_bytes, key) = (config.max_request_size, "max.request.size");
            return Err(ClientError::RecordTooLarge {
                size_bytes,
                max_bytes,
                key,
            });
        }
        let timestamp = record.timestamp.unwrap_or_else(now);
        let mut buffer = None;
        loop {
            // Chosen again each round: a closed batch makes records without a key move on.
            let partition = match record.partition {
                Some(index) => {
                    let known = topic.partitions.iter().any(|it| it.index == index);
                    let what = || format!("partition {}-{index}", topic.name);
                    if !known {
                        return Err(ClientError::Unknown { what: what() });
                    }
                    index
                }
                None => self
                    .shared
                    .lock()
                    .partitioner
                    .choose(&topic, record.key)
                    .ok_or_else(|| {
                        let what = format!("topic {}", topic.name);
                        ClientError::refused(what, ErrorCode::LEADER_NOT_AVAILABLE, None)
                    })?,
            };
            let name = (topic.name.clone(), partition);
            {
                let mut accumulator = self.shared.lock();
                if accumulator.closed {
                    return Err(ClientError::ProducerClosed);
                }
                if let Some(buffer) = buffer.take() {
                    accumulator.push(ProducerBatch::new(name.clone(), buffer, Instant::now()));
                    self.shared.wake.notify_one();
                }
                let (key, value) = (record.key, record.value);
                if let Some(appended) =
                    accumulator.append(&name, timestamp, key, value, record.headers)
                {
                    if appended.is_full {
                        self.shared.wake.notify_one();
                    }
                    return Ok(appended.delivery);
                }
                if record.key.is_none() {
                    accumulator.partitioner.advance(&topic.name);
                }
            }
            // The batch before this one is closed now.
            self.shared.wake.notify_one();
            let pool = &self.shared.pool;
            buffer = Some(pool.take(size_bytes, deadline, config.max_block).await?);
        }
    }

    /// Sends what was taken in without lingering and waits until all of it is acknowledged or
    /// given up. How each record fared is for its [`Delivery`] to tell.
    pub async fn flush(&self) {
        let outcomes = {
            let mut accumulator = self.shared.lock();
            accumulator.flushes += 1;
            accumulator.outcomes()
        };
        let _flushing = Flushing(&self.shared);
        self.shared.wake.notify_one();
        for outcome in outcomes {
            settled(outcome).await;
        }
    }

    /// Takes nothing more in, waits for everything up to `limit`, and gives up the rest.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] when something was given up.
    pub async fn close(mut self, limit: Millis) -> Result<(), ClientError> {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
        let late = || ClientError::timed_out("closing the producer", limit);
        timeout(duration(limit), &mut self.task)
            .await
            .map(drop)
            .map_err(|_| late())
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.task.abort();
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

struct Flushing<'a>(&'a Shared);

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.0.lock().flushes -= 1;
    }
}

fn now() -> WallMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    WallMs::new(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
