//! A real node as a process of its own, and a client that speaks raw frames to it.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part of this"
)]
#![allow(
    clippy::indexing_slicing,
    missing_docs,
    reason = "a helper of tests fails by panics"
)]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_protocol::messages::{
    self, CreateTopicsRequest, CreateTopicsResponse, FetchRequest, FetchResponse, MetadataRequest,
    MetadataResponse, ProduceRequest, ProduceResponse,
};
use highwater_protocol::wire::{Message, Writer};
use highwater_protocol::{RequestHeader, response_header_version};
use highwater_records::{BatchBuilder, BatchOptions, Batches, Compression, Compressor};
use highwater_types::{ErrorCode, NodeId, Uuid, WallMs};

/// Longer than anything here takes on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The command under test.
pub fn highwater() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.env_remove("HIGHWATER_BOOTSTRAP");
    command
}

/// One `highwater start`, killed when dropped.
pub struct Node {
    child: Child,
    pub bootstrap: String,
    pub cluster_id: String,
    pub ready_line: String,
    pub errors: PathBuf,
}

impl Node {
    /// Starts a node on a free port and waits until it is ready.
    pub fn start(data: &Path, more: &[&str]) -> Self {
        Self::try_start(data, more).unwrap_or_else(|why| panic!("no ready line: {why}"))
    }

    /// The same; gives what it said on standard error when it does not get ready.
    pub fn try_start(data: &Path, more: &[&str]) -> Result<Self, String> {
        let mut command = highwater();
        command
            .arg("start")
            .arg("--data")
            .arg(data)
            .args(["--listen", "127.0.0.1:0"])
            .args(more);
        Self::spawn(command, data)
    }

    /// Runs a prepared `start` and waits for its ready line.
    pub fn spawn(mut command: Command, data: &Path) -> Result<Self, String> {
        let errors = data.with_extension(format!("{}.log", next_number()));
        let log = File::create(&errors).expect("file for standard error");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().expect("the binary runs");
        let stdout = child.stdout.take().expect("piped");
        let (lines, first) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _end = BufReader::new(stdout).read_line(&mut line);
            let _gone = lines.send(line);
        });
        let line = first.recv_timeout(PATIENCE).unwrap_or_default();
        let mut node = Self {
            child,
            bootstrap: String::new(),
            cluster_id: String::new(),
            ready_line: line.trim_end().to_owned(),
            errors,
        };
        if !node.ready_line.starts_with("highwater ready ") {
            let _dead = node.child.kill();
            let _dead = node.child.wait();
            return Err(node.said());
        }
        let serves_clients = node.ready_line.contains(" bootstrap=");
        let address = if serves_clients {
            "bootstrap"
        } else {
            "controller"
        };
        node.bootstrap = field(&node.ready_line, address);
        node.cluster_id = field(&node.ready_line, "cluster-id");
        Ok(node)
    }

    /// What it wrote to standard error so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }

    /// kill -9, while others still use it.
    pub fn kill_now(&self) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill")
            .args(["-KILL", &pid])
            .status()
            .expect("kill runs");
        assert!(done.success());
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("kill runs");
        assert!(done.success());
    }

    /// SIGTERM, then waits for the end.
    pub fn stop(mut self) -> ExitStatus {
        self.terminate();
        self.wait()
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> ExitStatus {
        let late = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < late, "it does not stop: {}", self.said());
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn connect(&self) -> Client {
        Client::connect(&self.bootstrap)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _dead = self.child.wait();
    }
}

fn next_number() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn field(line: &str, name: &str) -> String {
    let found = line
        .split(' ')
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found
        .unwrap_or_else(|| panic!("no {name} in {line}"))
        .to_owned()
}

/// A connection that sends and reads frames.
pub struct Client {
    pub stream: TcpStream,
    next_correlation: i32,
}

impl Client {
    pub fn connect(to: &str) -> Self {
        let stream = TcpStream::connect(to).expect("connects");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self {
            stream,
            next_correlation: 1,
        }
    }

    /// The same connection again, for a thread that only sends.
    pub fn twin(&self) -> Self {
        let stream = self.stream.try_clone().expect("a socket");
        Self {
            stream,
            next_correlation: self.next_correlation,
        }
    }

    /// Sends a request; gives its correlation id.
    pub fn send<Q: Message>(&mut self, api: i16, version: i16, request: &Q) -> i32 {
        let (correlation_id, frame) = self.encode(api, version, request);
        self.send_frame(&frame);
        correlation_id
    }

    fn encode<Q: Message>(&mut self, api: i16, version: i16, request: &Q) -> (i32, Bytes) {
        let correlation_id = self.next_correlation;
        self.next_correlation += 1;
        let client_id = Some("end-to-end".to_owned());
        let header = RequestHeader {
            api_key: api,
            version,
            correlation_id,
            client_id,
        };
        let mut w = Writer::new();
        header.encode(&mut w).expect("header");
        request.encode(&mut w, version).expect("request");
        (correlation_id, w.into_bytes())
    }

    pub fn send_frame(&mut self, frame: &[u8]) {
        let length = u32::try_from(frame.len()).expect("small").to_be_bytes();
        self.stream
            .write_all(&[&length, frame].concat())
            .expect("sends");
    }

    /// The same; `None` when the server is gone.
    pub fn try_send<Q: Message>(&mut self, api: i16, version: i16, request: &Q) -> Option<i32> {
        let (correlation_id, frame) = self.encode(api, version, request);
        let length = u32::try_from(frame.len()).expect("small").to_be_bytes();
        self.stream
            .write_all(&[&length[..], &frame].concat())
            .ok()?;
        Some(correlation_id)
    }

    /// Reads one answer; `None` when the server is gone.
    pub fn try_receive<A: Message>(&mut self, api: i16, version: i16, id: i32) -> Option<A> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).ok()?;
        Some(decode(api, version, id, &Bytes::from(frame)))
    }

    /// Reads one answer.
    pub fn receive<A: Message>(&mut self, api: i16, version: i16, correlation_id: i32) -> A {
        let frame = Bytes::from(self.read_frame().expect("an answer"));
        decode(api, version, correlation_id, &frame)
    }

    pub fn call<Q: Message, A: Message>(&mut self, api: i16, version: i16, request: &Q) -> A {
        let id = self.send(api, version, request);
        self.receive(api, version, id)
    }

    /// One frame without its length; `None` when the server closed.
    pub fn read_frame(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(why) if closed(&why) => return None,
            Err(why) => panic!("no answer: {why}"),
        }
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).expect("a whole frame");
        Some(frame)
    }

    /// Asserts that the server closes without a word.
    pub fn assert_closed(&mut self) {
        assert_eq!(
            self.read_frame(),
            None,
            "the connection is closed without an answer"
        );
    }

    /// The id of a topic, made if it is not there. Waits until its leader is known.
    pub fn topic(&mut self, name: &str) -> Uuid {
        let topic = messages::metadata_request::MetadataRequestTopic {
            name: Some(name.to_owned()),
            ..Default::default()
        };
        let request = MetadataRequest {
            topics: Some(vec![topic]),
            allow_auto_topic_creation: true,
            ..Default::default()
        };
        let late = Instant::now() + PATIENCE;
        loop {
            let answer: MetadataResponse = self.call(3, 12, &request);
            let topic = answer.topics.first().expect("the topic");
            let ready = topic.error_code == ErrorCode::NONE
                && topic.partitions.iter().all(|it| it.leader_id.is_some());
            if ready {
                return topic.topic_id;
            }
            assert!(
                Instant::now() < late,
                "topic {name}: {:?}",
                topic.error_code
            );
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn create_topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let configs = configs.iter().map(|&(name, value)| {
            messages::create_topics_request::CreatableTopicConfig {
                name: name.to_owned(),
                value: Some(value.to_owned()),
            }
        });
        let topic = messages::create_topics_request::CreatableTopic {
            name: name.to_owned(),
            num_partitions: partitions,
            replication_factor: -1,
            configs: configs.collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest {
            topics: vec![topic],
            timeout_ms: 10_000,
            validate_only: false,
        };
        let answer: CreateTopicsResponse = self.call(19, 7, &request);
        assert_eq!(
            answer.topics[0].error_code,
            ErrorCode::NONE,
            "{:?}",
            answer.topics[0]
        );
        self.topic(name);
    }

    pub fn delete_topic(&mut self, name: &str) {
        let topic = messages::delete_topics_request::DeleteTopicState {
            name: Some(name.to_owned()),
            ..Default::default()
        };
        let request = messages::DeleteTopicsRequest {
            topics: vec![topic],
            timeout_ms: 10_000,
            ..Default::default()
        };
        let answer: messages::DeleteTopicsResponse = self.call(20, 6, &request);
        assert_eq!(
            answer.responses[0].error_code,
            ErrorCode::NONE,
            "{:?}",
            answer.responses[0]
        );
    }

    /// Appends one batch; gives error and base offset.
    pub fn produce(&mut self, topic: Uuid, partition: i32, records: Bytes) -> (ErrorCode, i64) {
        let answer: ProduceResponse = self.call(0, 13, &produce_request(topic, partition, records));
        let partition = &answer.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    /// All records of a partition from `offset` on that one fetch gives.
    pub fn fetch(&mut self, topic: Uuid, partition: i32, offset: i64) -> Vec<String> {
        let answer: FetchResponse = self.call(1, 17, &fetch_request(topic, partition, offset, 100));
        let data = &answer.responses[0].partitions[0];
        assert_eq!(data.error_code, ErrorCode::NONE);
        values(data.records.as_deref().unwrap_or_default(), offset)
    }

    /// All values of a partition.
    pub fn read_all(&mut self, topic: Uuid, partition: i32) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let offset = i64::try_from(all.len()).expect("small");
            let more = self.fetch(topic, partition, offset);
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }
}

fn decode<A: Message>(api: i16, version: i16, correlation_id: i32, frame: &Bytes) -> A {
    assert_eq!(
        frame[..4],
        correlation_id.to_be_bytes(),
        "the correlation id"
    );
    let key = highwater_protocol::ApiKey::from_raw(api).expect("a known api");
    let header = if response_header_version(key, version) == 0 {
        4
    } else {
        5
    };
    A::from_bytes(&frame.slice(header..), version).expect("a well-formed answer")
}

fn closed(why: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        why.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
    )
}

pub fn produce_request(topic: Uuid, partition: i32, records: Bytes) -> ProduceRequest {
    let data = messages::produce_request::PartitionProduceData {
        index: partition,
        records: Some(records),
    };
    ProduceRequest {
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![messages::produce_request::TopicProduceData {
            topic_id: topic,
            partition_data: vec![data],
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub fn fetch_request(topic: Uuid, partition: i32, offset: i64, wait_ms: i32) -> FetchRequest {
    let partition = messages::fetch_request::FetchPartition {
        partition,
        current_leader_epoch: -1,
        fetch_offset: offset,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        partition_max_bytes: 50 << 20,
        ..Default::default()
    };
    FetchRequest {
        replica_id: NodeId::new(-1),
        max_wait_ms: wait_ms,
        min_bytes: 1,
        max_bytes: 50 << 20,
        session_id: 0,
        session_epoch: -1,
        topics: vec![messages::fetch_request::FetchTopic {
            topic_id: topic,
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A batch of text values.
pub fn batch<T: AsRef<[u8]>>(values: &[T]) -> Bytes {
    batch_of(values, Compressor::new(Compression::None))
}

/// The same, compressed.
pub fn batch_of<T: AsRef<[u8]>>(values: &[T], compressor: Compressor) -> Bytes {
    let mut builder = BatchBuilder::new();
    for value in values {
        let now = WallMs::new(1_700_000_000_000);
        builder
            .append(now, None, Some(value.as_ref()), &[])
            .expect("small");
    }
    let options = BatchOptions {
        compressor,
        ..BatchOptions::default()
    };
    builder.finish(&options).expect("small").into()
}

/// The values of the records from `offset` on.
pub fn values(bytes: &[u8], offset: i64) -> Vec<String> {
    let mut values = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch.expect("whole batches");
        batch.check_crc().expect("good bytes");
        let open = batch.open(1 << 28).expect("opens");
        for record in open.records() {
            let record = record.expect("a good record");
            if record.offset.raw() >= offset {
                let value = record.value.unwrap_or_default();
                values.push(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
    values
}

/// Runs a command to its end: exit code, standard output, standard error.
pub fn run(args: &[&str], stdin: &str) -> (i32, String, String) {
    let mut command = highwater();
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut to = child.stdin.take().expect("piped");
    let text = stdin.to_owned();
    let feeder = thread::spawn(move || {
        let _closed = to.write_all(text.as_bytes());
    });
    let out = child.wait_with_output().expect("it ends");
    feeder.join().expect("fed");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        out.status.code().unwrap_or(-1),
        text(&out.stdout),
        text(&out.stderr),
    )
}
