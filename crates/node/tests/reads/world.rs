//! A driver for data shards alone: metadata is made by hand, parts and jobs run at once.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use highwater_disk::{Blocking, DiskFile as _, MemDisk};
use highwater_metadata::MetadataImage;
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_metadata::image::{BrokerEndpoint, BrokerImage, PartitionImage, TopicImage};
use highwater_node::{
    Answer, Caller, Changed, ConnId, Effect, FoundLog, ImageUpdate, Incoming, Input, Job,
    Machine as _, MachineId, Part, PeerError, Piece, Shard, ShardDir, ShardParams, Ticket, Token,
    owner_shard, run_job,
};
use highwater_protocol::messages::{
    EnvelopeResponse, FetchRequest, FetchResponse, ProduceRequest, ProduceResponse,
};
use highwater_protocol::messages::{
    fetch_request::{FetchPartition, FetchTopic},
    fetch_response::PartitionData,
    produce_request::{PartitionProduceData, TopicProduceData},
};
use highwater_protocol::wire::{Message, Writer};
use highwater_protocol::{
    ApiKey, FetchView, ListenerKind, OutRequest, ProduceView, Request, RequestHeader, Response,
    response_header_version,
};
use highwater_records::{BatchBuilder, BatchOptions};
use highwater_types::{
    BrokerEpoch, DirectoryId, ErrorCode, LeaderEpoch, Millis, Mono, NodeId, Now, PartitionEpoch,
    PartitionIndex, TopicId, TopicIdPartition, TopicName, TopicPartition, Uuid, WallMs,
};

use crate::kafka_dir;

pub(crate) type D = MemDisk;
pub(crate) const LISTENER: &str = "PLAINTEXT";
pub(crate) const CLUSTER: &str = "sFZgKj3kQfiXtPP7KgFf4w";

/// The directory id of the only log directory.
fn directory() -> DirectoryId {
    DirectoryId::new(Uuid::from_u128(0x77 << 64))
}

pub(crate) struct World {
    pub(crate) now: Now,
    pub(crate) shards: Vec<Shard<D>>,
    pub(crate) image: MetadataImage,
    /// What was sent to the controller.
    pub(crate) sent: Vec<(usize, Token, OutRequest)>,
    /// Answers that nobody took yet.
    pub(crate) answers: BTreeMap<Ticket, Answer<<D as highwater_disk::Disk>::File>>,
    /// Journal entries as text.
    pub(crate) journal: Vec<String>,
    /// Steps since the start.
    pub(crate) steps: u64,
    /// Parts between shards wait here while set.
    pub(crate) hold_parts: bool,
    pub(crate) held_parts: VecDeque<(u16, MachineId, Part<D>)>,
    /// Jobs wait here while set.
    pub(crate) hold_jobs: bool,
    pub(crate) held_jobs: VecDeque<(usize, Token, Job<D>)>,
    next_seq: u32,
}

pub(crate) fn topic_id(name: &str) -> TopicId {
    let fold =
        |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(0x1_0000_01b3 << 64 | 0x1b3);
    let hash = name
        .bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, fold);
    TopicId::new(Uuid::from_u128(hash | 1 << 127))
}

pub(crate) fn partition_image(leader_epoch: i32) -> PartitionImage {
    PartitionImage {
        assigned_replicas: vec![NodeId::new(1)],
        directories: vec![directory()],
        in_sync_replicas: vec![NodeId::new(1)],
        leader: NodeId::new(1),
        leader_epoch: LeaderEpoch::new(leader_epoch),
        partition_epoch: PartitionEpoch::new(leader_epoch),
        ..PartitionImage::default()
    }
}

pub(crate) fn broker(id: i32, port: u16) -> BrokerImage {
    let endpoint = BrokerEndpoint {
        name: LISTENER.to_owned(),
        host: "127.0.0.1".to_owned(),
        port,
        security_protocol: 0,
    };
    BrokerImage {
        id: NodeId::new(id),
        epoch: BrokerEpoch::new(5),
        endpoints: vec![endpoint],
        directories: vec![directory()],
        ..BrokerImage::default()
    }
}

impl World {
    pub(crate) fn new(shards: u16, properties: &str) -> Self {
        Self::with_disk(shards, properties, MemDisk::new("mem"), &[])
    }

    fn with_disk(shards: u16, properties: &str, disk: MemDisk, found: &[FoundLog]) -> Self {
        let properties = parse_properties(properties).expect("well formed");
        let (config, _) = BrokerConfig::new(&properties).expect("taken");
        let config = Arc::new(config);
        let owned = |number: u16| {
            let found = found.iter().filter(move |log| {
                let topic_id = log.topic.id().unwrap_or_default();
                let partition = log.topic_partition.partition;
                owner_shard(
                    TopicIdPartition {
                        topic_id,
                        partition,
                    },
                    shards,
                ) == number
            });
            found.cloned().collect()
        };
        let shards = (0..shards).map(|number| {
            Shard::new(ShardParams {
                number,
                shards,
                node_id: NodeId::new(1),
                cluster_id: Arc::from(CLUSTER),
                kraft_version: 1,
                broker_config: Arc::clone(&config),
                trace: false,
                old_rule: false,
                dirs: vec![ShardDir {
                    disk: disk.clone(),
                    id: directory(),
                    clean_shutdown: true,
                    found: owned(number),
                    leftovers: Vec::new(),
                }],
                seed: [u8::try_from(number).expect("few shards"); 32],
            })
        });
        let mut image = MetadataImage::default();
        let brokers = BTreeMap::from([(NodeId::new(1), Arc::new(broker(1, 9092)))]);
        image.brokers = Arc::new(brokers);
        let mut world = Self {
            now: Now {
                wall: WallMs::new(1_767_225_600_000),
                ..Now::default()
            },
            shards: shards.collect(),
            image,
            sent: Vec::new(),
            answers: BTreeMap::new(),
            journal: Vec::new(),
            steps: 0,
            hold_parts: false,
            held_parts: VecDeque::new(),
            hold_jobs: false,
            held_jobs: VecDeque::new(),
            next_seq: 0,
        };
        if found.is_empty() {
            world.publish(Changed::Everything);
        }
        world
    }

    /// The logs of a directory that Apache Kafka wrote and stopped cleanly.
    pub(crate) fn of_kafka(shards: u16, set: &str) -> Self {
        Self::of_kafka_with(shards, set, |_| {})
    }

    /// The same after something happened to the files.
    pub(crate) fn of_kafka_with(
        shards: u16,
        set: &str,
        change: impl FnOnce(&mut BTreeMap<PathBuf, Vec<u8>>),
    ) -> Self {
        let files = highwater_fixtures::kafka_data(set);
        let mut data: BTreeMap<PathBuf, Vec<u8>> = files
            .into_iter()
            .filter_map(|(path, bytes)| Some((path.strip_prefix("data").ok()?.to_owned(), bytes)))
            .collect();
        let logs = kafka_dir::logs(&data);
        data.retain(|path, _| !path.starts_with("__cluster_metadata-0"));
        change(&mut data);
        let disk = MemDisk::with_files("kafka", &data);
        let found: Vec<FoundLog> = logs.iter().map(|(log, _)| log.clone()).collect();
        let mut world = Self::with_disk(shards, "", disk, &found);
        for (log, epoch) in logs {
            let TopicPartition { topic, partition } = log.topic_partition;
            let id = log.topic.id().expect("found with its id");
            world.insert_partition(topic.as_str(), id, partition, partition_image(epoch));
        }
        world.publish(Changed::Everything);
        world
    }

    /// Adds a topic with `partitions` partitions, and waits for its logs.
    pub(crate) fn topic(&mut self, name: &str, partitions: i32) -> TopicId {
        self.topic_with_id(name, topic_id(name), partitions)
    }

    pub(crate) fn topic_with_id(&mut self, name: &str, id: TopicId, partitions: i32) -> TopicId {
        for partition in 0..partitions {
            let partition = PartitionIndex::new(partition);
            self.insert_partition(name, id, partition, partition_image(0));
        }
        self.publish(Changed::Everything);
        id
    }

    pub(crate) fn insert_partition(
        &mut self,
        name: &str,
        id: TopicId,
        partition: PartitionIndex,
        image: PartitionImage,
    ) {
        let name = TopicName::new(name).expect("a legal name");
        let mut topic = self.image.topic(id).map_or_else(
            || TopicImage {
                id,
                name: name.clone(),
                partitions: Default::default(),
            },
            |topic| TopicImage::clone(topic),
        );
        topic.partitions.insert(partition, Arc::new(image));
        self.image.topics.insert(id, Arc::new(topic));
        self.image.topic_ids.insert(name, id);
    }

    pub(crate) fn remove_topic(&mut self, name: &str) {
        let topic = self.image.topic_by_name(name).cloned().expect("a topic");
        self.image.topics.remove(&topic.id);
        self.image.topic_ids.remove(&topic.name);
        self.publish(Changed::Everything);
    }

    /// Gives the image to every shard.
    pub(crate) fn publish(&mut self, changed: Changed) {
        self.image.end.offset = self.image.end.offset.next();
        let image = Arc::new(self.image.clone());
        for shard in 0..self.shards.len() {
            let update = ImageUpdate {
                image: Arc::clone(&image),
                changed: changed.clone(),
            };
            let input = Input::Part {
                from: MachineId::Control,
                part: Part::Image(update),
            };
            self.step(shard, input);
            // Much is worked off in several steps.
            while self.shards[shard].next_deadline() == Some(Mono::START) {
                self.step(shard, Input::Tick);
            }
        }
    }

    pub(crate) fn step(&mut self, shard: usize, input: Input<D>) {
        let mut queue = VecDeque::from([(shard, input)]);
        while let Some((shard, input)) = queue.pop_front() {
            self.steps += 1;
            let mut effects = Vec::new();
            self.shards[shard].step(self.now, input, &mut effects);
            let from = MachineId::Shard(u16::try_from(shard).expect("few shards"));
            for effect in effects {
                match effect {
                    Effect::Answer { ticket, answer } => {
                        let before = self.answers.insert(ticket, answer);
                        assert!(before.is_none(), "{ticket:?} was answered twice");
                    }
                    Effect::Part {
                        to: MachineId::Shard(to),
                        part,
                    } if self.hold_parts => {
                        self.held_parts.push_back((to, from, part));
                    }
                    Effect::Part {
                        to: MachineId::Shard(to),
                        part,
                    } => {
                        queue.push_back((usize::from(to), Input::Part { from, part }));
                    }
                    Effect::Job { token, job } if self.hold_jobs => {
                        self.held_jobs.push_back((shard, token, job));
                    }
                    Effect::Job { token, job } => {
                        let result = run_job(job, &Blocking::enter());
                        queue.push_back((shard, Input::JobDone { token, result }));
                    }
                    Effect::Send { token, request, .. } => self.sent.push((shard, token, request)),
                    Effect::Event(entry) => self.journal.push(entry.to_string()),
                    Effect::Part { .. }
                    | Effect::Admitted(_)
                    | Effect::Stopped
                    | Effect::Serving(_) => {}
                }
            }
        }
    }

    /// Delivers the parts that were held, and those that follow from them, in their order.
    pub(crate) fn release_parts(&mut self) {
        self.hold_parts = true;
        while let Some((to, from, part)) = self.held_parts.pop_front() {
            self.step(usize::from(to), Input::Part { from, part });
        }
        self.hold_parts = false;
    }

    /// Does the jobs that were held, and those that follow from them.
    pub(crate) fn release_jobs(&mut self) {
        self.hold_jobs = false;
        while let Some((shard, token, job)) = self.held_jobs.pop_front() {
            let result = run_job(job, &Blocking::enter());
            self.step(shard, Input::JobDone { token, result });
        }
    }

    /// Delivers one held part, chosen by `dice` among the pairs of machines.
    pub(crate) fn release_one_part(&mut self, dice: usize) {
        let mut pairs: Vec<(u16, MachineId)> = self
            .held_parts
            .iter()
            .map(|(to, from, _)| (*to, *from))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        let Some(pair) = pairs.get(dice % pairs.len().max(1)).copied() else {
            return;
        };
        let at = self
            .held_parts
            .iter()
            .position(|(to, from, _)| (*to, *from) == pair);
        if let Some((to, from, part)) = at.and_then(|at| self.held_parts.remove(at)) {
            self.step(usize::from(to), Input::Part { from, part });
        }
    }

    /// Lets time pass, with ticks at the shards' deadlines.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.now.mono.plus(Millis::new(ms));
        loop {
            let due = self
                .shards
                .iter()
                .filter_map(|shard| shard.next_deadline())
                .min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now.mono = self.now.mono.max(due);
            for shard in 0..self.shards.len() {
                if self.shards[shard]
                    .next_deadline()
                    .is_some_and(|it| it <= self.now.mono)
                {
                    self.step(shard, Input::Tick);
                }
            }
        }
        self.now.mono = end;
    }

    pub(crate) fn caller() -> Arc<Caller> {
        Arc::new(Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener: ListenerKind::Broker,
            listener_name: LISTENER.to_owned(),
            host: None,
        })
    }

    /// Gives a request of connection `conn` to a shard.
    pub(crate) fn request_on(
        &mut self,
        shard: usize,
        conn: u64,
        version: i16,
        request: impl Into<Request>,
    ) -> Ticket {
        self.next_seq += 1;
        let ticket = Ticket {
            conn: ConnId(conn),
            seq: self.next_seq,
        };
        let request = request.into();
        let incoming = Incoming {
            ticket,
            caller: Self::caller(),
            client_id: Some(Arc::from("test")),
            version,
            raw: frame(version, &request),
            request,
        };
        self.step(shard, Input::Request(incoming));
        ticket
    }

    /// Gives a request to the first shard.
    pub(crate) fn request(&mut self, version: i16, request: impl Into<Request>) -> Ticket {
        self.request_on(0, 1, version, request)
    }

    pub(crate) fn is_answered(&self, ticket: Ticket) -> bool {
        self.answers.contains_key(&ticket)
    }

    /// The body of an answer, its regions read now.
    pub(crate) fn body(&mut self, ticket: Ticket) -> Bytes {
        let answer = self.answers.remove(&ticket).expect("an answer");
        let mut body = Vec::new();
        for piece in answer.pieces.expect("pieces") {
            match piece {
                Piece::Bytes(bytes) => body.extend_from_slice(&bytes),
                Piece::Region(region) => {
                    let mut bytes = vec![0; usize::try_from(region.len).expect("small")];
                    let read = region
                        .file
                        .read_at(region.position, &mut bytes)
                        .expect("readable");
                    assert_eq!(read, bytes.len(), "a region was short");
                    body.extend_from_slice(&bytes);
                }
            }
        }
        body.into()
    }

    /// Asks and takes the answer, which has to be there at once.
    pub(crate) fn ask<T: TryFrom<Asked>>(&mut self, version: i16, request: impl Into<Request>) -> T
    where
        T::Error: std::fmt::Debug,
    {
        let request = request.into();
        let api = request.api_key();
        let ticket = self.request(version, request);
        let body = self.body(ticket);
        let response = Response::decode(api, version, &body).expect("an answer of this version");
        assert_eq!(response.encode(version).as_ref(), Ok(&body));
        T::try_from(Asked(response)).expect("the answer's type")
    }

    pub(crate) fn answer_send(&mut self, at: usize, result: Result<Response, PeerError>) {
        let (shard, token, _) = self.sent.remove(at);
        self.step(shard, Input::PeerAnswer { token, result });
    }

    /// The request in the envelope that was sent.
    pub(crate) fn forwarded(&self, at: usize) -> Request {
        self.opened(at).1
    }

    fn opened(&self, at: usize) -> (RequestHeader, Request) {
        let Some((_, _, OutRequest::Envelope(envelope))) = self.sent.get(at) else {
            panic!("{:?}", self.sent)
        };
        let principal = envelope.request_principal.as_deref();
        assert_eq!(principal, Some(&b"\0\0\x05User\x0aANONYMOUS\0\0"[..]));
        let mut body = envelope.request_data.clone();
        let header = RequestHeader::decode(&mut body).expect("a header");
        let api = ApiKey::from_raw(header.api_key).expect("known");
        let request = Request::decode(api, header.version, body).expect("a request");
        (header, request)
    }

    /// Answers the request in an envelope as a controller does.
    pub(crate) fn answer_forwarded(&mut self, at: usize, response: impl Into<Response>) {
        let (header, request) = self.opened(at);
        let body = response.into().encode(header.version).expect("legal");
        let mut data = header.correlation_id.to_be_bytes().to_vec();
        if response_header_version(request.api_key(), header.version) == 1 {
            data.push(0);
        }
        data.extend_from_slice(&body);
        let envelope = EnvelopeResponse {
            response_data: Some(data.into()),
            error_code: ErrorCode::NONE,
        };
        self.answer_send(at, Ok(envelope.into()));
    }

    /// Says that the request in an envelope could not be served.
    pub(crate) fn refuse_forwarded(&mut self, at: usize, error_code: ErrorCode) {
        let envelope = EnvelopeResponse {
            response_data: None,
            error_code,
        };
        self.answer_send(at, Ok(envelope.into()));
    }

    /// Appends a batch of `records` records of `bytes` bytes each, at the time of `now`.
    pub(crate) fn produce(&mut self, topic: &str, partition: i32, records: usize, bytes: usize) {
        let times = vec![self.now.wall.raw(); records];
        self.produce_at(topic, partition, &times, bytes);
    }

    /// Appends one batch with records of these timestamps.
    pub(crate) fn produce_at(&mut self, topic: &str, partition: i32, times: &[i64], bytes: usize) {
        let ticket = self.send_batch(topic, partition, times, bytes);
        let body = self.body(ticket);
        let response = ProduceResponse::from_bytes(&body, 9).expect("an answer");
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!(partition.error_code.raw(), 0, "{partition:?}");
    }

    /// Sends one batch with records of these timestamps, acks=all.
    pub(crate) fn send_batch(
        &mut self,
        topic: &str,
        partition: i32,
        times: &[i64],
        bytes: usize,
    ) -> Ticket {
        let mut builder = BatchBuilder::new();
        let value = vec![b'v'; bytes];
        for time in times {
            builder
                .append(WallMs::new(*time), None, Some(&value), &[])
                .expect("small");
        }
        let batch = builder.finish(&BatchOptions::default()).expect("small");
        let request = ProduceRequest {
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![TopicProduceData {
                name: topic.to_owned(),
                partition_data: vec![PartitionProduceData {
                    index: partition,
                    records: Some(batch.into()),
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let view = ProduceView::from_message(&request, 9).expect("a request");
        self.request_on(0, 99, 9, view)
    }

    pub(crate) fn fetch(&mut self, version: i16, request: &FetchRequest) -> Ticket {
        self.fetch_on(0, 1, version, request)
    }

    pub(crate) fn fetch_on(
        &mut self,
        shard: usize,
        conn: u64,
        version: i16,
        request: &FetchRequest,
    ) -> Ticket {
        let view = FetchView::from_message(request, version).expect("a request");
        self.request_on(shard, conn, version, view)
    }

    pub(crate) fn fetched(&mut self, ticket: Ticket, version: i16) -> FetchResponse {
        let body = self.body(ticket);
        FetchResponse::from_bytes(&body, version).expect("an answer")
    }

    /// Fetches and takes the answer, which has to be there at once.
    pub(crate) fn fetch_now(&mut self, version: i16, request: &FetchRequest) -> FetchResponse {
        let ticket = self.fetch(version, request);
        self.fetched(ticket, version)
    }
}

/// A request as its client sends it.
fn frame(version: i16, request: &Request) -> Bytes {
    let header = RequestHeader {
        api_key: request.api_key().raw(),
        version,
        correlation_id: 4711,
        client_id: Some("test".to_owned()),
    };
    let mut w = Writer::new();
    header.encode(&mut w).expect("short");
    // What a version cannot carry no client sends; only its decoded form is tried.
    w.put(&request.encode(version).unwrap_or_default());
    w.into_bytes()
}

/// An answer on its way to its type.
#[derive(Debug)]
pub(crate) struct Asked(pub(crate) Response);

macro_rules! asked {
    ($($name:ident $response:ident)*) => {$(
        impl TryFrom<Asked> for highwater_protocol::messages::$response {
            type Error = Response;

            fn try_from(asked: Asked) -> Result<Self, Response> {
                match asked.0 {
                    Response::$name(response) => Ok(response),
                    other => Err(other),
                }
            }
        }
    )*};
}

asked! {
    ListOffsets ListOffsetsResponse
    Metadata MetadataResponse
    ApiVersions ApiVersionsResponse
    OffsetForLeaderEpoch OffsetForLeaderEpochResponse
    DescribeConfigs DescribeConfigsResponse
    DescribeCluster DescribeClusterResponse
    DescribeTopicPartitions DescribeTopicPartitionsResponse
    InitProducerId InitProducerIdResponse
}

/// A fetch without a session that waits for one byte.
pub(crate) fn fetch_request(topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 50 << 20,
        topics,
        ..FetchRequest::default()
    }
}

/// A topic of a fetch, by name and by id at once: each version takes its own.
pub(crate) fn fetch_topic(name: &str, id: TopicId, partitions: &[(i32, i64)]) -> FetchTopic {
    let partitions = partitions.iter().map(|(partition, offset)| FetchPartition {
        partition: *partition,
        fetch_offset: *offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    });
    FetchTopic {
        topic: name.to_owned(),
        topic_id: id.uuid(),
        partitions: partitions.collect(),
    }
}

/// Every partition of an answer, in order.
pub(crate) fn partitions(response: &FetchResponse) -> Vec<&PartitionData> {
    response
        .responses
        .iter()
        .flat_map(|topic| &topic.partitions)
        .collect()
}

pub(crate) fn record_bytes(partition: &PartitionData) -> usize {
    partition.records.as_ref().map_or(0, Bytes::len)
}
