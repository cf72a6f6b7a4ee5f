//! A client that produces without end, as an idempotent producer does or without deduplication.

use std::collections::{BTreeMap, VecDeque};

use highwater_protocol::messages::ProduceResponse;
use highwater_records::ProducerStamp;
use highwater_types::{ErrorCode, Offset, ProducerEpoch, ProducerId, TopicPartition, Uuid};

use super::requests::{self, Purpose, SentBatch};
use super::{Load, World};
use crate::client::ClientId;

/// Batches without an answer, as stock clients allow with idempotence.
const IN_FLIGHT_MAX: usize = 5;
/// Records in a batch at the most.
const RECORDS_MAX: u64 = 4;

/// What a producer of the workload is about.
#[derive(Debug)]
pub(crate) struct ProducerLoad {
    /// Where it writes, in turn.
    pub(crate) partitions: Vec<TopicPartition>,
    /// Produce version.
    pub(crate) version: i16,
    /// 1 or -1.
    pub(crate) acks: i16,
    /// Whether it has a producer id and sends again what stays unanswered.
    pub(crate) idempotent: bool,
    /// Batches that it still begins.
    pub(crate) budget: u64,
    identity: Identity,
    next_sequence: BTreeMap<TopicPartition, i32>,
    /// To be sent again, in order, before anything new.
    again: VecDeque<SentBatch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    None,
    Asked,
    Known(ProducerId, ProducerEpoch),
}

impl ProducerLoad {
    /// A producer that writes `budget` batches.
    pub(crate) fn new(
        partitions: Vec<TopicPartition>,
        version: i16,
        acks: i16,
        idempotent: bool,
        budget: u64,
    ) -> Self {
        Self {
            partitions,
            version,
            acks,
            idempotent,
            budget,
            identity: Identity::None,
            next_sequence: BTreeMap::new(),
            again: VecDeque::new(),
        }
    }

    /// Whether everything that it began is answered.
    pub(crate) fn is_done(&self) -> bool {
        self.budget == 0 && self.again.is_empty()
    }

    /// Unanswered batches are sent again by an idempotent producer, in their order; another one
    /// gives them up, for it cannot know.
    pub(super) fn connection_lost(&mut self, unanswered: Vec<Purpose>) {
        if self.identity == Identity::Asked {
            self.identity = Identity::None;
        }
        let batches = unanswered.into_iter().filter_map(|purpose| match purpose {
            Purpose::Produce(batch) => Some(batch),
            _ => None,
        });
        if self.idempotent {
            let mut again: VecDeque<SentBatch> = batches.collect();
            again.append(&mut self.again);
            self.again = again;
        }
    }

    pub(super) fn identified(&mut self, id: ProducerId, epoch: ProducerEpoch) {
        self.identity = Identity::Known(id, epoch);
    }

    pub(super) fn not_identified(&mut self) {
        self.identity = Identity::None;
    }

    /// Forgets producer id and sequences; what was on its way is given up.
    fn begin_anew(&mut self) {
        self.identity = Identity::None;
        self.next_sequence.clear();
        self.again.clear();
    }

    fn next_stamp(&mut self, partition: &TopicPartition, records: i32) -> ProducerStamp {
        let Identity::Known(id, epoch) = self.identity else {
            return ProducerStamp::NONE;
        };
        let next = self.next_sequence.entry(partition.clone()).or_insert(0);
        let base_sequence = *next;
        *next += records;
        ProducerStamp {
            id,
            epoch,
            base_sequence,
        }
    }
}

impl World {
    pub(super) fn producer_turn(&mut self, id: ClientId) {
        let client = self.client(id);
        let in_flight = client.link.in_flight();
        let Load::Producer(load) = &mut client.load else {
            return;
        };
        if load.is_done() || in_flight >= IN_FLIGHT_MAX {
            return;
        }
        if load.idempotent && load.identity == Identity::None {
            load.identity = Identity::Asked;
            let asked = self.ask(
                id,
                &requests::init_producer_id(),
                4,
                Purpose::InitProducerId,
            );
            if asked.is_err() {
                self.with_producer(id, ProducerLoad::not_identified);
            }
            return;
        }
        if load.idempotent && load.identity == Identity::Asked {
            return;
        }
        let Some(batch) = self.next_batch(id) else {
            return;
        };
        self.send_batch(id, batch);
    }

    fn next_batch(&mut self, id: ClientId) -> Option<SentBatch> {
        let (count, choice) = (self.random.between(1, RECORDS_MAX), self.random.any());
        let value = self.checker.next_values(count);
        let client = self.client(id);
        let topic_ids = client.topic_ids.clone();
        let Load::Producer(load) = &mut client.load else {
            return None;
        };
        if let Some(batch) = load.again.pop_front() {
            return Some(batch);
        }
        if load.budget == 0 {
            return None;
        }
        load.budget -= 1;
        let at = usize::try_from(choice % load.partitions.len() as u64).ok()?;
        let partition = load.partitions.get(at)?.clone();
        let records = i32::try_from(value.len()).ok()?;
        let stamp = load.next_stamp(&partition, records);
        let topic_id = topic_ids
            .get(&partition.topic)
            .copied()
            .unwrap_or(Uuid::ZERO);
        Some(SentBatch {
            partition,
            topic_id,
            values: value,
            acks: load.acks,
            stamp,
        })
    }

    fn send_batch(&mut self, id: ClientId, batch: SentBatch) {
        let node = self.client(id).node;
        let wall = self.now_of(node).wall;
        let Load::Producer(load) = &self.client(id).load else {
            return;
        };
        let request = batch.request(load.version, wall, 5000);
        let version = load.version;
        self.checker.sent(&batch);
        if let Err(Purpose::Produce(batch)) =
            self.ask(id, &request, version, Purpose::Produce(batch))
        {
            self.with_producer(id, |load| {
                if load.idempotent {
                    load.again.push_front(batch);
                }
            });
        }
    }

    /// Takes the answer to a batch, of a script or of the workload.
    pub(super) fn produce_answered(
        &mut self,
        id: ClientId,
        batch: SentBatch,
        response: &ProduceResponse,
    ) {
        let answer = response
            .responses
            .first()
            .and_then(|topic| topic.partition_responses.first())
            .expect("one partition was asked for");
        let code = answer.error_code;
        if code == ErrorCode::NONE {
            let node = self.client(id).node;
            let offset = Offset::new(answer.base_offset);
            let mut checker = std::mem::take(&mut self.checker);
            checker.acknowledged(self, node, &batch, offset);
            self.checker = checker;
        }
        let (partition, offset) = (&batch.partition, answer.base_offset);
        self.tell(format!(
            "client {}: answer produce {partition} {code} base-offset={offset}",
            id.0
        ));
        self.with_producer(id, |load| {
            if requests::needs_new_producer_id(code, batch.stamp.id) {
                load.begin_anew();
            } else if code.is_error() && load.idempotent {
                load.again.push_back(batch);
                load.again
                    .make_contiguous()
                    .sort_by_key(|it| it.stamp.base_sequence);
            }
        });
    }

    fn with_producer(&mut self, id: ClientId, act: impl FnOnce(&mut ProducerLoad)) {
        if let Load::Producer(load) = &mut self.client(id).load {
            act(load);
        }
    }
}
