//! What the sender makes of a broker's answer.

use std::collections::BTreeMap;

use highwater_protocol::messages::ProduceResponse;
use highwater_protocol::messages::produce_response::PartitionProduceResponse;
use highwater_types::{ErrorCode, LeaderEpoch, Offset, Uuid, WallMs};
use tokio::time::Instant;

use super::accumulator::{Queue, Sequences};
use super::batch::ProducerBatch;
use super::delivery::{Acknowledged, Outcome};
use super::sender::{Sender, Sent, expired, is_about_leader};
use crate::config::duration;
use crate::error::ClientError;

/// What becomes of a batch.
enum Fate {
    Done(Acknowledged),
    /// Once more, after a pause.
    Again(ClientError),
    /// Once more in a new epoch of the producer: the leader does not know this one any more.
    AgainAnew(ClientError),
    /// In smaller batches.
    Split(ClientError),
    GivenUp(ClientError),
}

impl Sender {
    pub(super) fn handle_answer(
        &mut self,
        sent: Vec<Sent>,
        answer: Result<Option<ProduceResponse>, ClientError>,
        now: Instant,
    ) {
        let mut results = match &answer {
            Ok(Some(answer)) => by_partition(answer),
            Ok(None) | Err(_) => BTreeMap::new(),
        };
        for Sent {
            batch,
            number,
            topic_id,
        } in sent
        {
            let (topic, index) = batch.partition.clone();
            let result = match &answer {
                Err(why) => Err(why.clone()),
                Ok(None) => Ok(None),
                Ok(Some(_)) => {
                    let mut named = results.remove(&(topic.clone(), Uuid::ZERO, index.raw()));
                    if named.is_none() {
                        named = results.remove(&(String::new(), topic_id, index.raw()));
                    }
                    named.map(Some).ok_or_else(|| ClientError::Misbehaved {
                        peer: "the leader".to_owned(),
                        why: format!("its answer does not mention {topic}-{index}"),
                    })
                }
            };
            if let Ok(Some(result)) = result {
                let leader = &result.current_leader;
                let epoch = LeaderEpoch::new(leader.leader_epoch);
                self.shared
                    .client
                    .note_leader(&topic, index, leader.leader_id, epoch);
            }
            self.settle(batch, number, result, now);
        }
    }

    fn settle(
        &mut self,
        mut batch: ProducerBatch,
        number: i64,
        result: Result<Option<&PartitionProduceResponse>, ClientError>,
        now: Instant,
    ) {
        let shared = self.shared.clone();
        let mut accumulator = shared.lock();
        let queue = accumulator
            .queues
            .entry(batch.partition.clone())
            .or_default();
        queue.in_flight.remove(&number);
        let fate = fate_of(&batch, queue, number, result);
        let topic = batch.partition.0.clone();
        let (why, anew) = match fate {
            Fate::Done(acknowledged) => {
                batch.complete(Outcome::Acknowledged(acknowledged));
                self.all_is_well();
                return forget_done(queue);
            }
            Fate::Split(why) => return split(batch, why, queue),
            Fate::GivenUp(why) => return give_up(batch, why, queue),
            Fate::Again(why) => (why, false),
            Fate::AgainAnew(why) => (why, true),
        };
        if why.code().is_none_or(is_about_leader) {
            self.stale.insert(topic);
        }
        queue.sequences.needs_new_epoch |= anew;
        let limit = shared.config.delivery_timeout;
        let pause = duration(shared.client.config().backoff(batch.attempts));
        let is_late = now + pause >= batch.created + duration(limit);
        if batch.attempts - batch.attempts_forgiven > shared.config.retries || is_late {
            queue.sequences.needs_new_epoch |= has_sequence(&queue.sequences);
            let why = if is_late {
                expired(&batch.partition, limit, Some(why))
            } else {
                why
            };
            batch.complete(Outcome::Failed(why));
        } else {
            tracing::debug!(attempts = batch.attempts, %why, "batch is tried again");
            batch.not_before = now + pause;
            batch.last_error = Some(why);
            queue.put_back(batch);
        }
        forget_done(queue);
    }
}

/// Puts a batch back in two, to be sent right away.
fn split(batch: ProducerBatch, why: ClientError, queue: &mut Queue) {
    match batch.split() {
        Ok(halves) => {
            for mut half in halves {
                tracing::debug!(records = half.record_count(), %why, "batch is split");
                half.last_error = Some(why.clone());
                queue.put_back(half);
            }
            forget_done(queue);
        }
        Err(whole) => give_up(*whole, why, queue),
    }
}

fn give_up(mut batch: ProducerBatch, why: ClientError, queue: &mut Queue) {
    if batch.stamp.is_some_and(|stamp| stamp.id.is_some()) {
        queue.sequences.needs_new_epoch = true;
    }
    let (topic, partition) = &batch.partition;
    tracing::debug!(%partition, topic, %why, "given up");
    batch.complete(Outcome::Failed(why));
    forget_done(queue);
}

/// Whether a code means that fewer records in one batch may be taken.
fn is_about_size(code: ErrorCode) -> bool {
    code == ErrorCode::MESSAGE_TOO_LARGE || code == ErrorCode::RECORD_LIST_TOO_LARGE
}

const fn has_sequence(sequences: &Sequences) -> bool {
    sequences.identity.is_some()
}

fn forget_done(queue: &mut Queue) {
    queue
        .outcomes_in_flight
        .retain(|outcome| outcome.borrow().is_none());
}

fn fate_of(
    batch: &ProducerBatch,
    queue: &Queue,
    number: i64,
    result: Result<Option<&PartitionProduceResponse>, ClientError>,
) -> Fate {
    let result = match result {
        // After nonsense the connection is gone, and what it carried may be in the log or not.
        Err(why @ ClientError::Misbehaved { .. }) => return Fate::Again(why),
        Err(why) if why.is_retriable() => return Fate::Again(why),
        Err(why) => return Fate::GivenUp(why),
        Ok(None) => {
            return Fate::Done(Acknowledged {
                base_offset: None,
                log_append_time: None,
            });
        }
        Ok(Some(result)) => result,
    };
    let code = result.error_code;
    // A duplicate that the broker no longer remembers is in the log all the same.
    if code == ErrorCode::NONE || code == ErrorCode::DUPLICATE_SEQUENCE_NUMBER {
        return Fate::Done(Acknowledged {
            base_offset: (result.base_offset >= 0).then(|| Offset::new(result.base_offset)),
            log_append_time: (result.log_append_time_ms >= 0)
                .then(|| WallMs::new(result.log_append_time_ms)),
        });
    }
    let (topic, index) = &batch.partition;
    let what = format!("produce to {topic}-{index}");
    let why = ClientError::refused(what, code, told(result));
    if is_about_size(code) && batch.record_count() > 1 {
        return Fate::Split(why);
    }
    let is_stamped = batch.stamp.is_some_and(|stamp| stamp.id.is_some());
    if code == ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER && is_stamped {
        // Something before it is not in the log: it will be tried again before this one, or was
        // given up, and sequences start anew.
        let earlier = queue.sequences.needs_new_epoch
            || queue.in_flight.iter().any(|&other| other < number)
            || queue.batches.iter().any(|other| other.attempts > 0);
        return if earlier {
            Fate::Again(why)
        } else {
            Fate::GivenUp(why)
        };
    }
    if code == ErrorCode::UNKNOWN_PRODUCER_ID && is_stamped {
        return Fate::AgainAnew(why);
    }
    if code.is_retriable() {
        Fate::Again(why)
    } else {
        Fate::GivenUp(why)
    }
}

/// The broker's words, and the records it names.
fn told(result: &PartitionProduceResponse) -> Option<String> {
    let mut text = result.error_message.clone().unwrap_or_default();
    for error in result.record_errors.iter().take(3) {
        let message = error
            .batch_index_error_message
            .as_deref()
            .unwrap_or("refused");
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&format!("record {}: {message}", error.batch_index));
    }
    Some(text)
}

fn by_partition(
    answer: &ProduceResponse,
) -> BTreeMap<(String, Uuid, i32), &PartitionProduceResponse> {
    let topics = answer.responses.iter();
    topics
        .flat_map(|topic| {
            topic
                .partition_responses
                .iter()
                .map(|it| ((topic.name.clone(), topic.topic_id, it.index), it))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_words_and_the_records_at_fault_are_told() {
        use highwater_protocol::messages::produce_response::BatchIndexAndErrorMessage;
        let error = |batch_index| BatchIndexAndErrorMessage {
            batch_index,
            batch_index_error_message: Some("no key".to_owned()),
        };
        let result = PartitionProduceResponse {
            error_message: Some("bad records".to_owned()),
            record_errors: vec![error(2), error(5)],
            ..PartitionProduceResponse::default()
        };
        let told = told(&result).unwrap();
        assert_eq!(told, "bad records; record 2: no key; record 5: no key");
    }
}
