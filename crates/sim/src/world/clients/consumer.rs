//! A client that reads each of its partitions from the start on, and waits for more.

use std::collections::BTreeMap;

use highwater_protocol::Response;
use highwater_protocol::messages::FetchResponse;
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_records::{BatchError, Batches};
use highwater_types::{
    ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Offset, ProducerEpoch, TopicName, TopicPartition,
    Uuid,
};

use super::requests::{self, Purpose, SentFetch};
use super::{Load, World};
use crate::client::ClientId;

/// How long a consumer of a cluster waits after a refusal.
const BACKOFF: Millis = Millis::new(20);
/// Output bound for a batch of the simulator.
const BATCH_BYTES_MAX: u64 = 1 << 20;

/// What a consumer of the workload is about.
#[derive(Debug)]
pub(crate) struct ConsumerLoad {
    /// Fetch version.
    pub(crate) version: i16,
    /// 0 read_uncommitted, 1 read_committed.
    pub(crate) isolation_level: i8,
    /// The next offset of each partition.
    pub(crate) positions: BTreeMap<TopicPartition, Offset>,
    /// Of 100 fetches so many go to any replica, where the version lets them (v11 on, KIP-392).
    pub(crate) from_followers_percent: u64,
    turn: usize,
    waits: bool,
    not_before: Mono,
}

impl ConsumerLoad {
    /// A consumer of `partitions`.
    pub(crate) fn new(partitions: &[TopicPartition], version: i16, isolation_level: i8) -> Self {
        let positions = partitions
            .iter()
            .map(|it| (it.clone(), Offset::ZERO))
            .collect();
        Self {
            version,
            isolation_level,
            positions,
            from_followers_percent: 0,
            turn: 0,
            waits: false,
            not_before: Mono::START,
        }
    }

    /// Reads these too, from their start on.
    pub(crate) fn begin(&mut self, partitions: &[TopicPartition]) {
        let begun = partitions.iter().map(|it| (it.clone(), Offset::ZERO));
        self.positions.extend(begun);
    }

    /// A topic is gone.
    pub(crate) fn forget_topic(&mut self, topic: &TopicName) {
        self.positions.retain(|it, _| it.topic != *topic);
    }

    pub(super) fn connection_lost(&mut self, unanswered: Vec<Purpose>) {
        if unanswered.iter().any(|it| matches!(it, Purpose::Fetch(_))) {
            self.waits = false;
        }
    }
}

impl World {
    pub(super) fn consumer_turn(&mut self, id: ClientId) {
        let (wait, bytes) = (self.random.below(50), self.random.between(1, 300));
        let now = self.now();
        let Load::Consumer(load) = &mut self.client(id).load else {
            return;
        };
        if load.waits || load.positions.is_empty() || now < load.not_before {
            return;
        }
        load.turn += 1;
        let at = load.turn % load.positions.len();
        let Some((partition, offset)) = load.positions.iter().nth(at) else {
            return;
        };
        let (partition, offset) = (partition.clone(), *offset);
        let (version, followers) = (load.version, load.from_followers_percent);
        let Some(leader) = self.leader_for(id, &partition) else {
            return;
        };
        let node = self.replica_to_read(id, &partition, leader, followers);
        let client = self.client(id);
        let fetch = SentFetch {
            topic_id: client
                .topic_ids
                .get(&partition.topic)
                .copied()
                .unwrap_or(Uuid::ZERO),
            offset,
            isolation_level: self.isolation_of(id),
            min_bytes: i32::try_from(bytes).unwrap_or(1),
            max_wait_ms: i32::try_from(wait).unwrap_or(0),
            leader_epoch: self.client(id).view.leader_epoch(&partition),
            from_follower: node != leader,
            partition,
        };
        let request = fetch.request(version);
        let asked = self.ask_at(id, node, (&request, version), Purpose::Fetch(fetch));
        if let Load::Consumer(load) = &mut self.client(id).load {
            load.waits = asked.is_ok();
        }
        if asked.is_err() {
            self.is_not_reached(id, node);
            self.consumer_waits(id);
        }
    }

    fn isolation_of(&mut self, id: ClientId) -> i8 {
        match &self.client(id).load {
            Load::Consumer(load) => load.isolation_level,
            _ => 0,
        }
    }

    /// The leader, or any replica for those that like to read there.
    fn replica_to_read(
        &mut self,
        id: ClientId,
        partition: &TopicPartition,
        leader: NodeId,
        percent: u64,
    ) -> NodeId {
        if percent == 0 || !self.random.percent(percent) {
            return leader;
        }
        let replicas = self.client(id).view.replicas(partition).to_vec();
        if replicas.is_empty() {
            return leader;
        }
        *self.random.pick(&replicas)
    }

    /// In a cluster a consumer waits a little after a refusal: others have to learn first.
    fn consumer_waits(&mut self, id: ClientId) {
        let not_before = self.now().plus(BACKOFF);
        if self.brokers().len() > 1
            && let Load::Consumer(load) = &mut self.client(id).load
        {
            load.not_before = not_before;
        }
    }

    /// Takes the answer to a fetch, of a script or of the workload.
    pub(super) fn fetch_answered(
        &mut self,
        id: ClientId,
        node: NodeId,
        fetch: &SentFetch,
        response: &FetchResponse,
    ) {
        let data = response
            .responses
            .first()
            .and_then(|topic| topic.partitions.first());
        let Some(data) = data else {
            let code = response.error_code;
            let who = self.name_of(id);
            self.tell(format!("{who}: answer fetch {} {code}", fetch.partition));
            self.fetch_is_over(id, node, fetch, None);
            return;
        };
        let (records, damage) = records_of(data, fetch.offset);
        if let Some((offset, why)) = damage {
            let partition = self.partition_id(&fetch.partition, fetch.topic_id);
            let known = partition.is_some_and(|it| self.checker.knows_damage(node, it, offset));
            let name = &fetch.partition;
            assert!(
                known,
                "I-17 {name}: a consumer of offset {offset} is given {why}"
            );
            let who = self.name_of(id);
            self.tell(format!("{who}: fetch {name}: damage at {offset}"));
        }
        let line = fetch_line(fetch, data, &records);
        let is_scripted = matches!(self.client(id).load, Load::Scripted);
        if is_scripted || !records.is_empty() || data.error_code.is_error() {
            let who = self.name_of(id);
            self.tell(format!("{who}: {line}"));
        }
        let mut checker = std::mem::take(&mut self.checker);
        checker.was_read(self, node, fetch, data, &records);
        self.checker = checker;
        if requests::asks_for_the_leader(data.error_code) {
            let hint = &data.current_leader;
            let hint = (hint.leader_id, LeaderEpoch::new(hint.leader_epoch));
            self.does_not_lead(id, &fetch.partition, Some(hint));
        }
        if data.error_code.is_error() {
            self.consumer_waits(id);
        }
        let next = match data.error_code {
            ErrorCode::NONE => records.last().map(|(offset, _)| offset.next()),
            // A follower may not know yet what the leader has: the leader is asked next.
            ErrorCode::OFFSET_OUT_OF_RANGE if !fetch.from_follower => Some(Offset::ZERO),
            _ => None,
        };
        self.fetch_is_over(id, node, fetch, next);
    }

    fn fetch_is_over(
        &mut self,
        id: ClientId,
        node: NodeId,
        fetch: &SentFetch,
        next: Option<Offset>,
    ) {
        let restart = next == Some(Offset::ZERO);
        let start = if restart {
            self.log_start_of(node, &fetch.partition)
        } else {
            None
        };
        let next = start.or(next);
        if let Load::Hand(member) = self.client(id).load {
            self.member_has_read(member, fetch, next);
            return;
        }
        let Load::Consumer(load) = &mut self.client(id).load else {
            return;
        };
        load.waits = false;
        if let (Some(position), Some(next)) = (load.positions.get_mut(&fetch.partition), next) {
            *position = next;
        }
    }

    /// Takes the answers that are neither to Produce nor to Fetch.
    pub(super) fn other_answered(&mut self, id: ClientId, purpose: &Purpose, response: Response) {
        match (purpose, response) {
            (Purpose::CreateTopic(name), Response::CreateTopics(response)) => {
                let topic = response.topics.first().expect("one topic was asked for");
                self.tell(format!(
                    "client {}: answer create {name} {}",
                    id.0, topic.error_code
                ));
                self.client(id).code = Some(topic.error_code);
                if !topic.error_code.is_error() {
                    self.topic_is_known(name, topic.topic_id, topic.num_partitions);
                }
            }
            (Purpose::DeleteTopic(name), Response::DeleteTopics(response)) => {
                let topic = response.responses.first().expect("one topic was asked for");
                self.tell(format!(
                    "client {}: answer delete {name} {}",
                    id.0, topic.error_code
                ));
                self.client(id).code = Some(topic.error_code);
            }
            (Purpose::InitProducerId, Response::InitProducerId(response)) => {
                let (code, producer) = (response.error_code, response.producer_id);
                self.tell(format!(
                    "client {}: answer producer-id {code} {producer}",
                    id.0
                ));
                let epoch = ProducerEpoch::new(response.producer_epoch);
                if let Load::Producer(load) = &mut self.client(id).load {
                    if code.is_error() {
                        load.not_identified();
                    } else {
                        load.identified(producer, epoch);
                    }
                }
            }
            (Purpose::ListOffsets(partition), Response::ListOffsets(response)) => {
                let topic = response.topics.first().expect("one topic was asked for");
                let found = topic
                    .partitions
                    .first()
                    .expect("one partition was asked for");
                self.tell(format!(
                    "client {}: answer list-offsets {partition} {} offset={} timestamp={}",
                    id.0, found.error_code, found.offset, found.timestamp
                ));
            }
            (purpose, response) => self.peer_answered(id, purpose, response),
        }
    }

    /// Takes the answers that a story asked for as a broker does.
    fn peer_answered(&mut self, id: ClientId, purpose: &Purpose, response: Response) {
        let line = match (purpose, response) {
            (Purpose::EpochEnd(partition), Response::OffsetForLeaderEpoch(response)) => {
                let topic = response.topics.first().expect("one topic was asked for");
                let end = topic
                    .partitions
                    .first()
                    .expect("one partition was asked for");
                format!(
                    "epoch-end {partition} {} epoch={} end-offset={}",
                    end.error_code, end.leader_epoch, end.end_offset
                )
            }
            (Purpose::ReplicaFetch(partition), Response::Fetch(response)) => {
                let topic = response.responses.first();
                match topic.and_then(|topic| topic.partitions.first()) {
                    Some(data) => replica_fetch_line(partition, data),
                    None => format!(
                        "replica-fetch {partition} {} session={}",
                        response.error_code, response.session_id
                    ),
                }
            }
            (Purpose::AlterPartition(partition), Response::AlterPartition(response)) => {
                let topic = response.topics.first();
                match topic.and_then(|topic| topic.partitions.first()) {
                    Some(it) => format!(
                        "alter-partition {partition} {} leader={} leader-epoch={} isr={} \
                         partition-epoch={}",
                        it.error_code,
                        it.leader_id,
                        it.leader_epoch,
                        comma_list(&it.isr),
                        it.partition_epoch
                    ),
                    None => format!("alter-partition {partition} {}", response.error_code),
                }
            }
            (purpose, response) => panic!("{purpose:?} was answered with {response:?}"),
        };
        self.tell(format!("client {}: answer {line}", id.0));
    }

    /// All clients learn a topic's id, as they would from metadata.
    fn topic_is_known(&mut self, name: &TopicName, topic_id: Uuid, partitions: i32) {
        self.partition_counts.insert(name.clone(), partitions);
        for client in self.clients.values_mut() {
            client.topic_ids.insert(name.clone(), topic_id);
        }
    }
}

/// Ids like `1,2,3`.
pub(crate) fn comma_list(ids: &[NodeId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(",")
}

fn replica_fetch_line(partition: &TopicPartition, data: &PartitionData) -> String {
    let (records, _) = records_of(data, Offset::ZERO);
    let values = records.iter().map(|(_, it)| String::from_utf8_lossy(it));
    let values: Vec<_> = values.collect();
    let diverging = &data.diverging_epoch;
    let diverging = match diverging.end_offset {
        ..0 => String::new(),
        end => format!(" diverging=({}, {end})", diverging.epoch),
    };
    format!(
        "replica-fetch {partition} {} high-watermark={}{diverging} records=[{}]",
        data.error_code,
        data.high_watermark,
        values.join(" ")
    )
}

/// Offsets and values.
type Records = Vec<(Offset, Vec<u8>)>;

/// The records of a fetch answer from `from` on, up to a batch with a wrong CRC if there is one.
/// Control records are skipped, as a client does.
fn records_of(data: &PartitionData, from: Offset) -> (Records, Option<(Offset, BatchError)>) {
    let mut records = Vec::new();
    for batch in Batches::new(data.records.as_deref().unwrap_or_default()) {
        // The last batch may be cut at the answer's limit.
        let Ok(batch) = batch else { break };
        if let Err(why) = batch.check_crc() {
            return (records, Some((batch.header().base_offset, why)));
        }
        if batch.header().attributes.is_control() {
            continue;
        }
        let open = batch.open(BATCH_BYTES_MAX).expect("opens");
        for record in open.records() {
            let record = record.expect("our own record");
            if record.offset >= from {
                records.push((record.offset, record.value.unwrap_or_default().to_vec()));
            }
        }
    }
    (records, None)
}

fn fetch_line(fetch: &SentFetch, data: &PartitionData, records: &[(Offset, Vec<u8>)]) -> String {
    let values: Vec<_> = records
        .iter()
        .map(|(_, value)| String::from_utf8_lossy(value))
        .collect();
    format!(
        "answer fetch {} offset={} {} high-watermark={} log-start={} records=[{}]",
        fetch.partition,
        fetch.offset,
        data.error_code,
        data.high_watermark,
        data.log_start_offset,
        values.join(" ")
    )
}
