use std::sync::Arc;

use highwater_types::{Offset, PartitionIndex, WallMs};
use tokio::sync::watch;

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
    outcome: Outcomes,
    /// The record's place in its batch.
    index: i32,
    timestamp: WallMs,
}

/// Tells once what became of a batch.
pub(super) type Outcomes = watch::Receiver<Option<Outcome>>;

/// What became of a batch.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Acknowledged(Acknowledged),
    Failed(ClientError),
    /// It went on as several smaller ones, in this order.
    Split(Arc<[Part]>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    pub(super) base_offset: Option<Offset>,
    pub(super) log_append_time: Option<WallMs>,
}

/// One of the batches that another was split into.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The place that its first record had in the batch that was split.
    pub(super) first: i32,
    pub(super) outcome: Outcomes,
}

impl Delivery {
    pub(super) const fn new(
        partition: PartitionName,
        outcome: Outcomes,
        index: i32,
        timestamp: WallMs,
    ) -> Self {
        Self {
            partition,
            outcome,
            index,
            timestamp,
        }
    }

    /// Waits until the record is acknowledged or given up.
    ///
    /// # Errors
    /// Why it was given up. It may be in the log all the same when the reason is a lost
    /// connection or a time-out.
    pub async fn wait(mut self) -> Result<RecordMetadata, ClientError> {
        let acknowledged = loop {
            match next(&mut self.outcome).await {
                Outcome::Acknowledged(acknowledged) => break acknowledged,
                Outcome::Failed(why) => return Err(why),
                Outcome::Split(parts) => {
                    let part = parts.iter().rfind(|part| part.first <= self.index);
                    let part = part.expect("the first part begins with the first record");
                    self.index -= part.first;
                    self.outcome = part.outcome.clone();
                }
            }
        };
        let (topic, partition) = self.partition;
        let index = i64::from(self.index);
        Ok(RecordMetadata {
            topic,
            partition,
            offset: acknowledged.base_offset.map(|base| base.plus(index)),
            timestamp: acknowledged.log_append_time.unwrap_or(self.timestamp),
        })
    }
}

/// Waits until all records of a batch are acknowledged or given up, whatever it was split into.
pub(super) async fn settled(outcome: Outcomes) {
    let mut waiting = vec![outcome];
    while let Some(mut outcome) = waiting.pop() {
        if let Outcome::Split(parts) = next(&mut outcome).await {
            waiting.extend(parts.iter().map(|part| part.outcome.clone()));
        }
    }
}

async fn next(outcome: &mut Outcomes) -> Outcome {
    let told = match outcome.wait_for(Option::is_some).await {
        Ok(told) => told.clone(),
        Err(_) => None,
    };
    told.unwrap_or(Outcome::Failed(ClientError::ProducerClosed))
}
