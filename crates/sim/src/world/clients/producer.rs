//! A client that produces without end, as an idempotent producer does or without deduplication.

use std::collections::{BTreeMap, VecDeque};

use highwater_protocol::messages::ProduceResponse;
use highwater_records::ProducerStamp;
use highwater_types::{
    ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Offset, ProducerEpoch, ProducerId, TopicName,
    TopicPartition, Uuid,
};

use super::requests::{self, Purpose, SentBatch};
use super::{Load, World};
use crate::client::ClientId;

/// Batches without an answer, as stock clients allow with idempotence.
const IN_FLIGHT_MAX: usize = 5;
/// How long a producer of a cluster waits after a refusal.
const BACKOFF: Millis = Millis::new(20);
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
    /// What is on its way.
    flying: BTreeMap<TopicPartition, Flying>,
    /// Nothing is sent before, after a refusal.
    not_before: Mono,
}

/// The batches of a partition that are on their way, all to one node.
#[derive(Debug)]
struct Flying {
    node: NodeId,
    base_sequences: Vec<i32>,
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
            flying: BTreeMap::new(),
            not_before: Mono::START,
        }
    }

    /// Whether everything that it began is answered.
    pub(crate) fn is_done(&self) -> bool {
        self.budget == 0 && self.again.is_empty()
    }

    /// A topic is gone, and with it what was to be written there.
    pub(crate) fn forget_topic(&mut self, topic: &TopicName) {
        self.partitions.retain(|it| it.topic != *topic);
        self.again.retain(|it| it.partition.topic != *topic);
        self.next_sequence.retain(|it, _| it.topic != *topic);
        if self.partitions.is_empty() {
            self.budget = 0;
        }
    }

    /// Unanswered batches are sent again by an idempotent producer, in their order; another one
    /// gives them up, for it cannot know.
    pub(super) fn connection_lost(&mut self, unanswered: Vec<Purpose>) {
        for purpose in unanswered {
            match purpose {
                Purpose::Produce(batch) => {
                    self.has_landed(&batch);
                    self.take_back(batch);
                }
                Purpose::InitProducerId if self.identity == Identity::Asked => {
                    self.identity = Identity::None;
                }
                _ => {}
            }
        }
    }

    /// A batch is to be sent again, if this producer does that.
    fn take_back(&mut self, batch: SentBatch) {
        let Identity::Known(id, _) = self.identity else {
            return;
        };
        if self.idempotent && batch.stamp.id == id && self.partitions.contains(&batch.partition) {
            self.again.push_back(batch);
            let again = self.again.make_contiguous();
            again.sort_by_key(|it| it.stamp.base_sequence);
        }
    }

    fn takes_off(&mut self, batch: &SentBatch, node: NodeId) {
        let partition = batch.partition.clone();
        let flying = self.flying.entry(partition).or_insert_with(|| Flying {
            node,
            base_sequences: Vec::new(),
        });
        flying.node = node;
        flying.base_sequences.push(batch.stamp.base_sequence);
    }

    fn has_landed(&mut self, batch: &SentBatch) {
        if let Some(flying) = self.flying.get_mut(&batch.partition) {
            let sequence = batch.stamp.base_sequence;
            let found = flying.base_sequences.iter().position(|it| *it == sequence);
            if let Some(found) = found {
                flying.base_sequences.remove(found);
            }
            if flying.base_sequences.is_empty() {
                self.flying.remove(&batch.partition);
            }
        }
    }

    /// Whether the leader may be sent something of the partition now.
    fn may_fly_to(&self, partition: &TopicPartition, leader: NodeId) -> bool {
        self.flying.get(partition).is_none_or(|flying| {
            flying.node == leader && flying.base_sequences.len() < IN_FLIGHT_MAX
        })
    }

    /// Whether an earlier batch of its partition has no answer yet.
    fn is_preceded(&self, batch: &SentBatch) -> bool {
        let flying = self.flying.get(&batch.partition);
        let flying = flying
            .into_iter()
            .flat_map(|it| &it.base_sequences)
            .copied();
        let again = self
            .again
            .iter()
            .filter(|it| it.partition == batch.partition);
        let mut earlier = flying.chain(again.map(|it| it.stamp.base_sequence));
        earlier.any(|sequence| sequence < batch.stamp.base_sequence)
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
        let now = self.now();
        let Load::Producer(load) = &mut self.client(id).load else {
            return;
        };
        if load.is_done() || now < load.not_before {
            return;
        }
        if load.idempotent && load.identity == Identity::None {
            load.identity = Identity::Asked;
            let node = self.any_broker(id);
            let request = requests::init_producer_id();
            let asked = self.ask_at(id, node, (&request, 4), Purpose::InitProducerId);
            if asked.is_err() {
                self.with_producer(id, ProducerLoad::not_identified);
            }
            return;
        }
        if load.idempotent && load.identity == Identity::Asked {
            return;
        }
        if let Some((batch, node)) = self.next_batch(id) {
            self.send_batch(id, node, batch);
        }
    }

    /// What to send next, and where to.
    fn next_batch(&mut self, id: ClientId) -> Option<(SentBatch, NodeId)> {
        let (count, choice) = (self.random.between(1, RECORDS_MAX), self.random.any());
        if let Some(batch) = self.next_again(id) {
            return Some(batch);
        }
        let client = self.client(id);
        let Load::Producer(load) = &mut client.load else {
            return None;
        };
        if load.budget == 0 {
            return None;
        }
        let at = usize::try_from(choice % load.partitions.len() as u64).ok()?;
        let partition = load.partitions.get(at)?.clone();
        if load.again.iter().any(|it| it.partition == partition) {
            return None;
        }
        let leader = self.leader_for(id, &partition)?;
        if self.client(id).in_flight_at(leader) >= IN_FLIGHT_MAX {
            return None;
        }
        let values = self.checker.next_values(count);
        let topic_id = self.client(id).topic_ids.get(&partition.topic).copied();
        let Load::Producer(load) = &mut self.client(id).load else {
            return None;
        };
        if !load.may_fly_to(&partition, leader) {
            return None;
        }
        load.budget -= 1;
        let stamp = load.next_stamp(&partition, i32::try_from(values.len()).ok()?);
        let batch = SentBatch {
            partition,
            topic_id: topic_id.unwrap_or(Uuid::ZERO),
            values,
            acks: load.acks,
            stamp,
        };
        Some((batch, leader))
    }

    /// The first batch that is to be sent again and may be.
    fn next_again(&mut self, id: ClientId) -> Option<(SentBatch, NodeId)> {
        let Load::Producer(load) = &self.client(id).load else {
            return None;
        };
        let mut partitions: Vec<TopicPartition> = Vec::new();
        for batch in &load.again {
            if !partitions.contains(&batch.partition) {
                partitions.push(batch.partition.clone());
            }
        }
        for partition in partitions {
            let Some(leader) = self.leader_for(id, &partition) else {
                continue;
            };
            let client = self.client(id);
            let is_full = client.in_flight_at(leader) >= IN_FLIGHT_MAX;
            let Load::Producer(load) = &mut client.load else {
                return None;
            };
            if is_full || !load.may_fly_to(&partition, leader) {
                continue;
            }
            let at = load.again.iter().position(|it| it.partition == partition)?;
            return Some((load.again.remove(at)?, leader));
        }
        None
    }

    fn send_batch(&mut self, id: ClientId, node: NodeId, batch: SentBatch) {
        let wall = self.now_of(node).wall;
        let Load::Producer(load) = &mut self.client(id).load else {
            return;
        };
        let request = batch.request(load.version, wall, 5000);
        let version = load.version;
        load.takes_off(&batch, node);
        self.checker.sent(&batch);
        let purpose = Purpose::Produce(batch);
        if let Err(purpose) = self.ask_at(id, node, (&request, version), purpose) {
            self.is_not_reached(id, node);
            self.with_producer(id, |load| load.connection_lost(vec![purpose]));
            self.producer_waits(id);
        }
    }

    /// Takes the answer to a batch, of a script or of the workload.
    pub(super) fn produce_answered(
        &mut self,
        id: ClientId,
        node: NodeId,
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
        if requests::asks_for_the_leader(code) {
            let hint = &answer.current_leader;
            let hint = (hint.leader_id, LeaderEpoch::new(hint.leader_epoch));
            self.does_not_lead(id, &batch.partition, Some(hint));
        }
        if code.is_error() {
            self.producer_waits(id);
        }
        self.with_producer(id, |load| {
            load.has_landed(&batch);
            let is_fatal = requests::needs_new_producer_id(code, batch.stamp.id);
            let is_ours = matches!(load.identity, Identity::Known(id, _) if id == batch.stamp.id);
            if is_fatal && is_ours && !load.is_preceded(&batch) {
                load.begin_anew();
            } else if code.is_error() {
                load.take_back(batch);
            }
        });
    }

    /// In a cluster a producer waits a little after a refusal: others have to learn first.
    fn producer_waits(&mut self, id: ClientId) {
        let not_before = self.now().plus(BACKOFF);
        if self.brokers().len() > 1 {
            self.with_producer(id, |load| load.not_before = not_before);
        }
    }

    fn with_producer(&mut self, id: ClientId, act: impl FnOnce(&mut ProducerLoad)) {
        if let Load::Producer(load) = &mut self.client(id).load {
            act(load);
        }
    }
}
