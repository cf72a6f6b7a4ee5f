//! A scripted peer on a loopback socket: one broker of one partition's log, whose answers a test
//! may replace.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its part of this module"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use highwater_client::{Client, ClientConfig};
use highwater_protocol::messages::api_versions_response::ApiVersion;
use highwater_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use highwater_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use highwater_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use highwater_protocol::messages::produce_response::{
    PartitionProduceResponse, TopicProduceResponse,
};
use highwater_protocol::messages::{
    ApiVersionsResponse, FetchResponse, InitProducerIdResponse, ListOffsetsResponse,
    MetadataResponse, ProduceResponse,
};
use highwater_protocol::{
    ApiKey, ListenerKind, Request, RequestHeader, Response, TopicKey, response_header_version,
    supported_versions,
};
use highwater_records::{Batch, ValidationRules, stamp, validate};
use highwater_types::{
    ErrorCode, LeaderEpoch, Millis, NodeId, Offset, PartitionIndex, ProducerId, TopicId, Uuid,
    WallMs,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub const TOPIC: &str = "orders";

pub fn topic_id() -> TopicId {
    TopicId::new(Uuid::from_bytes([7; 16]))
}

/// What a script wants instead of the usual answer.
pub enum Reaction {
    /// The broker's own answer.
    Usual,
    Answer(Response),
    /// The usual answer, after the request was carried out, is lost with the connection.
    CarryOutAndClose,
    Close,
    /// Never answers.
    Silence,
    /// The usual answer under another correlation id.
    WrongCorrelation,
    /// This body in the place of the usual one.
    Body(Bytes),
    /// Waits, then the usual answer.
    Later(Millis),
}

type Script = Box<dyn FnMut(&RequestHeader, &Request, &mut FakeLog) -> Reaction + Send>;

pub struct FakeBroker {
    pub port: u16,
    pub state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

pub struct State {
    pub log: FakeLog,
    pub requests: Vec<(ApiKey, i16)>,
    pub connections: usize,
    script: Script,
}

/// Partitions of one topic and what a broker knows of producers.
#[derive(Default)]
pub struct FakeLog {
    pub port: u16,
    pub partitions: Vec<FakePartition>,
    pub versions: BTreeMap<ApiKey, (i16, i16)>,
    pub leader_epoch: i32,
    next_producer_id: i64,
    pub sessions: i32,
    /// Larger batches are refused, with this code.
    pub batch_max: Option<(usize, ErrorCode)>,
    session: BTreeMap<i32, (i64, i32)>,
}

#[derive(Default)]
pub struct FakePartition {
    pub bytes: Vec<u8>,
    pub start_offset: i64,
    pub end_offset: i64,
    pub producers: BTreeMap<ProducerId, (i16, i32)>,
    pub aborted: Vec<highwater_protocol::messages::fetch_response::AbortedTransaction>,
}

impl Drop for FakeBroker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeBroker {
    pub async fn start(
        partitions: usize,
        script: impl FnMut(&RequestHeader, &Request, &mut FakeLog) -> Reaction + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let versions = supported_versions(ListenerKind::Broker).iter();
        let log = FakeLog {
            port,
            partitions: (0..partitions).map(|_| FakePartition::default()).collect(),
            versions: versions.map(|it| (it.api_key, (it.min, it.max))).collect(),
            next_producer_id: 1000,
            ..FakeLog::default()
        };
        let state = Arc::new(Mutex::new(State {
            log,
            requests: Vec::new(),
            connections: 0,
            script: Box::new(script),
        }));
        let task = tokio::spawn({
            let state = state.clone();
            async move {
                loop {
                    let Ok((stream, _)) = listener.accept().await else {
                        return;
                    };
                    state.lock().unwrap().connections += 1;
                    tokio::spawn(serve(stream, state.clone()));
                }
            }
        });
        Self { port, state, task }
    }

    pub async fn usual(partitions: usize) -> Self {
        Self::start(partitions, |_, _, _| Reaction::Usual).await
    }

    pub fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new(&format!("127.0.0.1:{}", self.port));
        config.retry_backoff = Millis::new(5);
        config.retry_backoff_max = Millis::new(20);
        config.request_timeout = Millis::new(5_000);
        config.default_api_timeout = Millis::new(5_000);
        config
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.config()).await.unwrap()
    }

    pub fn asked(&self, api: ApiKey) -> Vec<i16> {
        let state = self.state.lock().unwrap();
        let of_api = state.requests.iter().filter(|(key, _)| *key == api);
        of_api.map(|(_, version)| *version).collect()
    }

    /// The values in a partition, in order.
    pub fn values(&self, partition: usize) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let bytes = &state.log.partitions[partition].bytes;
        let mut values = Vec::new();
        for batch in highwater_records::Batches::new(bytes) {
            let open = batch.unwrap().open(u64::MAX).unwrap();
            for record in open.records() {
                let value = record.unwrap().value.unwrap_or_default().to_vec();
                values.push(String::from_utf8(value).unwrap());
            }
        }
        values
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    loop {
        let Ok(length) = stream.read_i32().await else {
            return;
        };
        let mut frame = vec![0; usize::try_from(length).unwrap()];
        if stream.read_exact(&mut frame).await.is_err() {
            return;
        }
        let mut frame = Bytes::from(frame);
        let header = RequestHeader::decode(&mut frame).unwrap();
        let api = ApiKey::from_raw(header.api_key).unwrap();
        let version = header.version;
        let range = state.lock().unwrap().log.versions.get(&api).copied();
        let range = range.unwrap_or((0, -1));
        if version < range.0 || version > range.1 {
            assert_eq!(
                api,
                ApiKey::ApiVersions,
                "{api} v{version} was sent blindly"
            );
            write(&mut stream, header.correlation_id, 0, &old_versions(range)).await;
            continue;
        }
        let request = Request::decode(api, version, frame).unwrap();
        let (reaction, usual) = react(&mut state.lock().unwrap(), &header, &request);
        let usual = usual.map(|answer| (answer.encode(version).unwrap(), answer));
        let is_idle = matches!(&usual, Some((_, Response::Fetch(it))) if it.responses.is_empty());
        let usual = usual.map(|(body, _)| body);
        let mut correlation_id = header.correlation_id;
        let body = match reaction {
            Reaction::Close | Reaction::CarryOutAndClose => return,
            Reaction::Silence => continue,
            Reaction::Answer(answer) => Some(answer.encode(version).unwrap()),
            Reaction::Body(body) => Some(body),
            Reaction::WrongCorrelation => {
                correlation_id += 1;
                usual
            }
            Reaction::Later(pause) => {
                sleep_ms(pause.as_u64()).await;
                usual
            }
            Reaction::Usual => {
                // An empty fetch waits, as far as a test has time for it.
                sleep_ms(if is_idle { 5 } else { 0 }).await;
                usual
            }
        };
        if let Some(body) = body {
            let header_version = response_header_version(api, version);
            write(&mut stream, correlation_id, header_version, &body).await;
        }
    }
}

/// What the script wants, and the usual answer where the request is carried out.
fn react(
    state: &mut State,
    header: &RequestHeader,
    request: &Request,
) -> (Reaction, Option<Response>) {
    let State {
        log,
        requests,
        script,
        ..
    } = state;
    requests.push((request.api_key(), header.version));
    let reaction = script(header, request, log);
    let is_carried_out = !matches!(
        reaction,
        Reaction::Answer(_) | Reaction::Close | Reaction::Silence | Reaction::Body(_)
    );
    let usual = is_carried_out.then(|| log.answer(request, header.version));
    (reaction, usual.flatten())
}

async fn sleep_ms(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}

async fn write(stream: &mut TcpStream, correlation_id: i32, header_version: i16, body: &Bytes) {
    let mut frame = BytesMut::new();
    let header_bytes = 4 + usize::from(header_version == 1);
    frame.put_i32(i32::try_from(header_bytes + body.len()).unwrap());
    frame.put_i32(correlation_id);
    if header_version == 1 {
        frame.put_u8(0);
    }
    frame.put(body.clone().chunk());
    drop(stream.write_all(&frame).await);
}

fn old_versions((min, max): (i16, i16)) -> Bytes {
    let mut body = BytesMut::new();
    body.put_i16(ErrorCode::UNSUPPORTED_VERSION.raw());
    body.put_i32(1);
    body.put_i16(18);
    body.put_i16(min);
    body.put_i16(max);
    body.freeze()
}

impl FakeLog {
    /// The usual answer, after doing what was asked.
    fn answer(&mut self, request: &Request, version: i16) -> Option<Response> {
        Some(match request {
            Request::ApiVersions(_) => {
                let range = |(api, (min, max)): (&ApiKey, &(i16, i16))| ApiVersion {
                    api_key: api.raw(),
                    min_version: *min,
                    max_version: *max,
                };
                let api_keys = self.versions.iter().map(range).collect();
                ApiVersionsResponse {
                    api_keys,
                    ..Default::default()
                }
                .into()
            }
            Request::Metadata(asked) => {
                let names = asked.topics.clone().unwrap_or_default();
                let all = asked.topics.is_none();
                let names: Vec<_> = names.into_iter().filter_map(|it| it.name).collect();
                self.metadata(if all { vec![TOPIC.to_owned()] } else { names }, version)
                    .into()
            }
            Request::InitProducerId(_) => {
                self.next_producer_id += 1;
                let producer_id = ProducerId::new(self.next_producer_id);
                InitProducerIdResponse {
                    producer_id,
                    producer_epoch: 0,
                    ..Default::default()
                }
                .into()
            }
            Request::Produce(produce) => self.produce(produce)?.into(),
            Request::ListOffsets(asked) => {
                let topics = asked.topics.iter().map(|topic| ListOffsetsTopicResponse {
                    name: topic.name.clone(),
                    partitions: topic
                        .partitions
                        .iter()
                        .map(|it| self.list(it.partition_index, it.timestamp, version))
                        .collect(),
                });
                ListOffsetsResponse {
                    topics: topics.collect(),
                    ..Default::default()
                }
                .into()
            }
            Request::Fetch(fetch) => self.fetch(fetch, version).into(),
            _ => return None,
        })
    }

    /// Nothing with acks=0.
    fn produce(&mut self, produce: &highwater_protocol::ProduceView) -> Option<ProduceResponse> {
        let mut responses = Vec::new();
        for topic in produce.topics() {
            let partitions = topic
                .partitions
                .map(|it| self.append(it.partition, it.records.as_deref().unwrap_or_default()));
            let partition_responses = partitions.collect();
            let (name, topic_id) = match topic.topic {
                TopicKey::Name(name) => (name.to_owned(), Uuid::ZERO),
                TopicKey::Id(id) => (String::new(), id.uuid()),
            };
            responses.push(TopicProduceResponse {
                name,
                topic_id,
                partition_responses,
            });
        }
        (produce.acks() != 0).then(|| ProduceResponse {
            responses,
            ..Default::default()
        })
    }

    fn metadata(&self, names: Vec<String>, version: i16) -> MetadataResponse {
        let topic = |name: String| {
            if name != TOPIC {
                return MetadataResponseTopic {
                    name: Some(name),
                    error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    ..Default::default()
                };
            }
            let partition = |partition_index| MetadataResponsePartition {
                partition_index,
                leader_id: NodeId::new(1),
                leader_epoch: self.leader_epoch,
                replica_nodes: vec![NodeId::new(1)],
                isr_nodes: vec![NodeId::new(1)],
                ..Default::default()
            };
            let count = i32::try_from(self.partitions.len()).unwrap();
            MetadataResponseTopic {
                name: Some(name),
                topic_id: if version >= 10 {
                    topic_id().uuid()
                } else {
                    Uuid::ZERO
                },
                partitions: (0..count).map(partition).collect(),
                ..Default::default()
            }
        };
        MetadataResponse {
            brokers: vec![MetadataResponseBroker {
                node_id: NodeId::new(1),
                host: "127.0.0.1".to_owned(),
                port: i32::from(self.port),
                ..Default::default()
            }],
            cluster_id: Some("fake".to_owned()),
            controller_id: NodeId::new(1),
            topics: names.into_iter().map(topic).collect(),
            ..Default::default()
        }
    }

    pub fn append(&mut self, index: PartitionIndex, bytes: &[u8]) -> PartitionProduceResponse {
        let mut answer = PartitionProduceResponse {
            index: index.raw(),
            base_offset: -1,
            ..Default::default()
        };
        let Some(partition) = self
            .partitions
            .get_mut(usize::try_from(index.raw()).unwrap())
        else {
            answer.error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            return answer;
        };
        if let Some((_, code)) = self.batch_max.filter(|(max, _)| bytes.len() > *max) {
            answer.error_code = code;
            return answer;
        }
        let rules = ValidationRules {
            now: WallMs::new(i64::MAX / 2),
            ..Default::default()
        };
        let validated = match validate(bytes, &rules) {
            Ok(validated) => validated,
            Err(why) => {
                answer.error_code = why.error_code();
                return answer;
            }
        };
        let header = validated.header;
        if header.producer_id.is_some() {
            let known = partition.producers.get(&header.producer_id);
            let (epoch, next) = known
                .copied()
                .unwrap_or_else(|| (header.producer_epoch.raw(), 0));
            let expected = if header.producer_epoch.raw() > epoch {
                0
            } else {
                next
            };
            let sequence = header.base_sequence;
            answer.error_code = if header.producer_epoch.raw() < epoch {
                ErrorCode::INVALID_PRODUCER_EPOCH
            } else if sequence < expected {
                answer.base_offset = 0;
                return answer;
            } else if sequence > expected {
                ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
            } else {
                ErrorCode::NONE
            };
            if answer.error_code.is_error() {
                return answer;
            }
            let next = sequence + header.record_count;
            partition
                .producers
                .insert(header.producer_id, (header.producer_epoch.raw(), next));
        }
        let base = Offset::new(partition.end_offset);
        let epoch = LeaderEpoch::new(self.leader_epoch);
        partition
            .bytes
            .extend_from_slice(&stamp(bytes, &validated, base, epoch, None));
        partition
            .bytes
            .extend_from_slice(&bytes[highwater_records::BATCH_HEADER_BYTES..]);
        partition.end_offset += i64::from(header.record_count);
        answer.base_offset = base.raw();
        answer
    }

    /// Appends bytes as they are: batches that a client would not send.
    pub fn put(&mut self, index: usize, bytes: &[u8]) {
        let header = *Batch::parse(bytes).unwrap().header();
        let partition = &mut self.partitions[index];
        partition.bytes.extend_from_slice(bytes);
        partition.end_offset = header.next_offset().raw();
    }

    fn list(&self, index: i32, timestamp: i64, version: i16) -> ListOffsetsPartitionResponse {
        let partition = &self.partitions[usize::try_from(index).unwrap()];
        let offset = match timestamp {
            -1 => partition.end_offset,
            -2 => partition.start_offset,
            _ => -1,
        };
        ListOffsetsPartitionResponse {
            partition_index: index,
            timestamp: -1,
            offset,
            leader_epoch: if version >= 4 { self.leader_epoch } else { -1 },
            ..Default::default()
        }
    }

    /// One session; a full request begins it anew.
    fn fetch(&mut self, fetch: &highwater_protocol::FetchView, version: i16) -> FetchResponse {
        let request = highwater_protocol::messages::FetchRequest::from_bytes_for_tests(fetch);
        if request.session_epoch == 0 {
            self.sessions += 1;
            self.session.clear();
        } else if request.session_id != self.sessions {
            return FetchResponse {
                error_code: ErrorCode::FETCH_SESSION_ID_NOT_FOUND,
                ..Default::default()
            };
        }
        for partition in request.topics.iter().flat_map(|topic| &topic.partitions) {
            let wanted = (partition.fetch_offset, partition.partition_max_bytes);
            self.session.insert(partition.partition, wanted);
        }
        for gone in request
            .forgotten_topics_data
            .iter()
            .flat_map(|topic| &topic.partitions)
        {
            self.session.remove(gone);
        }
        let mut partitions = Vec::new();
        for (&index, &(offset, max_bytes)) in &self.session {
            let data = self.read(index, offset, max_bytes);
            if data.error_code.is_error() || data.records.as_ref().is_some_and(|it| !it.is_empty())
            {
                partitions.push(data);
            }
        }
        let responses = if partitions.is_empty() {
            Vec::new()
        } else {
            let topic = if version >= 13 {
                String::new()
            } else {
                TOPIC.to_owned()
            };
            let id = if version >= 13 {
                topic_id().uuid()
            } else {
                Uuid::ZERO
            };
            vec![FetchableTopicResponse {
                topic,
                topic_id: id,
                partitions,
            }]
        };
        FetchResponse {
            session_id: self.sessions,
            responses,
            ..Default::default()
        }
    }

    fn read(&self, index: i32, offset: i64, max_bytes: i32) -> PartitionData {
        let partition = &self.partitions[usize::try_from(index).unwrap()];
        let mut data = PartitionData {
            partition_index: index,
            high_watermark: partition.end_offset,
            last_stable_offset: partition.end_offset,
            log_start_offset: partition.start_offset,
            aborted_transactions: Some(partition.aborted.clone()),
            ..Default::default()
        };
        if offset < partition.start_offset || offset > partition.end_offset {
            data.error_code = ErrorCode::OFFSET_OUT_OF_RANGE;
            return data;
        }
        let mut records = Vec::new();
        for batch in highwater_records::Batches::new(&partition.bytes).flatten() {
            if batch.header().last_offset().raw() < offset {
                continue;
            }
            let room = usize::try_from(max_bytes).unwrap();
            if !records.is_empty() && records.len() + batch.size_bytes() > room {
                break;
            }
            records.extend_from_slice(batch.bytes());
        }
        data.records = Some(records.into());
        data
    }
}

/// The message behind a view.
trait ForTests {
    fn from_bytes_for_tests(view: &highwater_protocol::FetchView) -> Self;
}

impl ForTests for highwater_protocol::messages::FetchRequest {
    fn from_bytes_for_tests(view: &highwater_protocol::FetchView) -> Self {
        use highwater_protocol::wire::Message as _;
        Self::from_bytes(view.body(), view.version()).unwrap()
    }
}
