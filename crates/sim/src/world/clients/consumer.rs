//! A client that reads each of its partitions from the start on, and waits for more.

use std::collections::BTreeMap;

use highwater_protocol::Response;
use highwater_protocol::messages::FetchResponse;
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_records::{BatchError, Batches};
use highwater_types::{ErrorCode, Offset, ProducerEpoch, TopicName, TopicPartition, Uuid};

use super::requests::{Purpose, SentFetch};
use super::{Load, World};
use crate::client::ClientId;

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
    turn: usize,
    waits: bool,
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
            turn: 0,
            waits: false,
        }
    }

    pub(super) const fn connection_lost(&mut self) {
        self.waits = false;
    }
}

impl World {
    pub(super) fn consumer_turn(&mut self, id: ClientId) {
        let (wait, bytes) = (self.random.below(50), self.random.between(1, 300));
        let client = self.client(id);
        let Load::Consumer(load) = &mut client.load else {
            return;
        };
        if load.waits || load.positions.is_empty() {
            return;
        }
        load.turn += 1;
        let at = load.turn % load.positions.len();
        let Some((partition, offset)) = load.positions.iter().nth(at) else {
            return;
        };
        let fetch = SentFetch {
            partition: partition.clone(),
            topic_id: client
                .topic_ids
                .get(&partition.topic)
                .copied()
                .unwrap_or(Uuid::ZERO),
            offset: *offset,
            isolation_level: load.isolation_level,
            min_bytes: i32::try_from(bytes).unwrap_or(1),
            max_wait_ms: i32::try_from(wait).unwrap_or(0),
        };
        let version = load.version;
        load.waits = true;
        let request = fetch.request(version);
        let asked = self.ask(id, &request, version, Purpose::Fetch(fetch));
        if asked.is_err()
            && let Load::Consumer(load) = &mut self.client(id).load
        {
            load.waits = false;
        }
    }

    /// Takes the answer to a fetch, of a script or of the workload.
    pub(super) fn fetch_answered(
        &mut self,
        id: ClientId,
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
            self.fetch_is_over(id, fetch, None);
            return;
        };
        let (records, damage) = records_of(data, fetch.offset);
        if let Some((offset, why)) = damage {
            let node = self.client(id).node;
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
        let node = self.client(id).node;
        let mut checker = std::mem::take(&mut self.checker);
        checker.was_read(self, node, fetch, data, &records);
        self.checker = checker;
        let next = match data.error_code {
            ErrorCode::NONE => records.last().map(|(offset, _)| offset.next()),
            ErrorCode::OFFSET_OUT_OF_RANGE => Some(Offset::ZERO),
            _ => None,
        };
        self.fetch_is_over(id, fetch, next);
    }

    fn fetch_is_over(&mut self, id: ClientId, fetch: &SentFetch, next: Option<Offset>) {
        let restart = next == Some(Offset::ZERO);
        let node = self.client(id).node;
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
                self.topic_is_known(name, topic.topic_id, topic.num_partitions);
            }
            (Purpose::DeleteTopic(name), Response::DeleteTopics(response)) => {
                let topic = response.responses.first().expect("one topic was asked for");
                self.tell(format!(
                    "client {}: answer delete {name} {}",
                    id.0, topic.error_code
                ));
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
            (purpose, response) => panic!("{purpose:?} was answered with {response:?}"),
        }
    }

    /// All clients learn a topic's id, as they would from metadata.
    fn topic_is_known(&mut self, name: &TopicName, topic_id: Uuid, partitions: i32) {
        self.partition_counts.insert(name.clone(), partitions);
        for client in self.clients.values_mut() {
            client.topic_ids.insert(name.clone(), topic_id);
        }
    }
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
