//! Several shards in the worst of company: fetch sessions, pipelined and idempotent produce,
//! connections that come and go in the middle of a frame, topics that come and go, and the node
//! killed or stopped under all of that. What was acknowledged stays where it was acknowledged.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_protocol::messages::{
    FetchRequest, FetchResponse, InitProducerIdRequest, InitProducerIdResponse, ProduceResponse,
    fetch_request::FetchTopic,
};
use highwater_records::{BatchBuilder, BatchOptions, ProducerStamp};
use highwater_types::{ErrorCode, ProducerEpoch, ProducerId, Uuid, WallMs};
use support::{Client, Node, batch, fetch_request, produce_request, values};
use tempfile::tempdir;

const PARTITIONS: i32 = 7;
const PRODUCE: i16 = 0;
const FETCH: i16 = 1;

/// What was acknowledged, by partition and offset.
type Acknowledged = Mutex<BTreeMap<(i32, i64), String>>;

/// One life of a node, and all that happens in it.
struct Life<'a> {
    node: &'a Node,
    topic: Uuid,
    name: String,
    /// Everybody stops.
    over: AtomicBool,
    /// The node was told to go: it may refuse, and be gone at any time.
    ending: AtomicBool,
    acknowledged: &'a Acknowledged,
    /// Records that readers saw.
    read: AtomicU64,
}

impl Life<'_> {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::SeqCst)
    }

    /// The node was asked to end before the answer came, or it serves well.
    fn assert_good(&self, error: ErrorCode) -> bool {
        let early =
            error == ErrorCode::NOT_LEADER_OR_FOLLOWER || error == ErrorCode::UNKNOWN_TOPIC_ID;
        let excused = early || self.ending.load(Ordering::SeqCst);
        assert!(error == ErrorCode::NONE || excused, "{error:?}");
        error == ErrorCode::NONE
    }

    /// A connection; `None` when the node is gone, which must not be before it was told to go.
    fn connect(&self) -> Option<Client> {
        let Ok(probe) = TcpStream::connect(&self.node.bootstrap) else {
            assert!(
                self.ending.load(Ordering::SeqCst),
                "refused while it serves"
            );
            return None;
        };
        drop(probe);
        // Its end may come right here.
        std::panic::catch_unwind(|| self.node.connect()).ok()
    }

    fn note(&self, partition: i32, offset: i64, value: String) {
        let mut acknowledged = self.acknowledged.lock().expect("lock");
        let before = acknowledged.insert((partition, offset), value);
        assert_eq!(before, None, "one offset, one record");
    }
}

/// Ten requests in flight at a time; now and then goes away without its answers.
fn pipelined_writer(life: &Life<'_>, writer: i32) {
    let mut number = 0;
    while life.goes_on() {
        let Some(mut client) = life.connect() else {
            return;
        };
        for turn in 0..20 {
            let mut sent = Vec::new();
            for _ in 0..10 {
                let value = format!("{}.{writer}.{number}", life.name);
                let partition = number % PARTITIONS;
                number += 1;
                let request = produce_request(life.topic, partition, batch(&[&value]));
                match client.try_send(PRODUCE, 13, &request) {
                    Some(id) => sent.push((id, partition, value)),
                    None => return,
                }
            }
            if turn == 19 {
                break;
            }
            for (id, partition, value) in sent {
                let Some(answer) = client.try_receive::<ProduceResponse>(PRODUCE, 13, id) else {
                    return;
                };
                let row = &answer.responses[0].partition_responses[0];
                if life.assert_good(row.error_code) {
                    life.note(partition, row.base_offset, value);
                }
            }
        }
    }
}

/// Five batches in flight with sequences: they are appended in order, none is refused.
fn idempotent_writer(life: &Life<'_>, partition: i32) {
    let Some(mut client) = life.connect() else {
        return;
    };
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    let Some(id) = client.try_send(22, 4, &request) else {
        return;
    };
    let Some(known) = client.try_receive::<InitProducerIdResponse>(22, 4, id) else {
        return;
    };
    if !life.assert_good(known.error_code) {
        return;
    }
    let (mut sequence, mut last) = (0, -1);
    while life.goes_on() {
        let mut sent = Vec::new();
        for _ in 0..5 {
            let value = format!("{}.idempotent.{partition}.{sequence}", life.name);
            let records = stamped(&value, known.producer_id, sequence);
            sequence += 1;
            match client.try_send(
                PRODUCE,
                13,
                &produce_request(life.topic, partition, records),
            ) {
                Some(id) => sent.push((id, value)),
                None => return,
            }
        }
        for (id, value) in sent {
            let Some(answer) = client.try_receive::<ProduceResponse>(PRODUCE, 13, id) else {
                return;
            };
            let row = &answer.responses[0].partition_responses[0];
            if !life.assert_good(row.error_code) {
                return;
            }
            assert!(row.base_offset > last, "in the order of the sequences");
            last = row.base_offset;
            life.note(partition, row.base_offset, value);
        }
    }
}

fn stamped(value: &str, id: ProducerId, base_sequence: i32) -> Bytes {
    let mut builder = BatchBuilder::new();
    let now = WallMs::new(1_700_000_000_000);
    builder
        .append(now, None, Some(value.as_bytes()), &[])
        .expect("small");
    let producer = ProducerStamp {
        id,
        epoch: ProducerEpoch::new(0),
        base_sequence,
    };
    let options = BatchOptions {
        producer,
        ..Default::default()
    };
    builder.finish(&options).expect("small").into()
}

/// Follows all partitions by one fetch session after the other; nothing comes twice, out of order
/// or above the high watermark.
fn session_reader(life: &Life<'_>, reader: usize) {
    let mut offsets = [0_i64; PARTITIONS as usize];
    while life.goes_on() {
        let Some(mut client) = life.connect() else {
            return;
        };
        let mut session = (0, 0);
        let mut moved: Vec<usize> = (0..offsets.len()).collect();
        for turn in 0..40 + reader * 10 {
            let request = session_request(life.topic, session, &offsets, &moved);
            let Some(id) = client.try_send(FETCH, 17, &request) else {
                return;
            };
            if turn % 40 == 39 {
                // Gone while it waits.
                break;
            }
            let Some(answer) = client.try_receive::<FetchResponse>(FETCH, 17, id) else {
                return;
            };
            if !life.assert_good(answer.error_code) {
                break;
            }
            session = (answer.session_id, session.1 + 1);
            moved.clear();
            for row in answer.responses.iter().flat_map(|topic| &topic.partitions) {
                if !life.assert_good(row.error_code) {
                    continue;
                }
                let at = usize::try_from(row.partition_index).expect("small");
                let read = values(row.records.as_deref().unwrap_or_default(), offsets[at]);
                offsets[at] += i64::try_from(read.len()).expect("small");
                assert!(
                    offsets[at] <= row.high_watermark,
                    "above the high watermark"
                );
                life.read.fetch_add(read.len() as u64, Ordering::Relaxed);
                if !read.is_empty() {
                    moved.push(at);
                }
            }
        }
    }
}

/// The whole session at its epoch 0, then only what moved.
fn session_request(
    topic: Uuid,
    (session_id, session_epoch): (i32, i32),
    offsets: &[i64],
    moved: &[usize],
) -> FetchRequest {
    let mut request = fetch_request(topic, 0, 0, 20);
    let partition = |&at: &usize| {
        let index = i32::try_from(at).expect("small");
        fetch_request(topic, index, offsets[at], 0).topics[0].partitions[0].clone()
    };
    request.topics = vec![FetchTopic {
        topic_id: topic,
        partitions: moved.iter().map(partition).collect(),
        ..Default::default()
    }];
    if moved.is_empty() {
        request.topics.clear();
    }
    (request.session_id, request.session_epoch) = (session_id, session_epoch);
    request
}

/// Connections that are no use to anybody.
fn nuisance(life: &Life<'_>, number: usize) {
    let mut turn = number;
    while life.goes_on() {
        let Ok(mut stream) = TcpStream::connect(&life.node.bootstrap) else {
            return;
        };
        turn += 1;
        let bytes: &[u8] = match turn % 5 {
            0 => &[],
            // Half a frame, a frame that is none, and requests whose answers nobody reads.
            1 => &[0, 1, 0, 0, 0, 0],
            2 => &[0xff; 64],
            3 => &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 9, 0xff, 0xff],
            _ => &[0, 0, 0, 10, 0, 18, 0],
        };
        if stream.write_all(bytes).is_err() {
            continue;
        }
        if turn.is_multiple_of(3) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Makes topics, writes to them, and deletes them while it still writes.
fn passing_topics(life: &Life<'_>) {
    let mut number = 0;
    while life.goes_on() && !life.ending.load(Ordering::SeqCst) {
        let passing = std::panic::catch_unwind(|| {
            let mut client = life.node.connect();
            let name = format!("passing-{}-{number}", life.name);
            client.create_topic(&name, 3, &[]);
            let id = client.topic(&name);
            let mut late = client.twin();
            for partition in 0..9 {
                let request = produce_request(id, partition % 3, batch(&["x"]));
                late.send(PRODUCE, 13, &request);
            }
            life.node.connect().delete_topic(&name);
        });
        number += 1;
        let excused = life.ending.load(Ordering::SeqCst);
        assert!(
            passing.is_ok() || excused,
            "topic {number} of {}",
            life.name
        );
    }
    assert!(number > 1, "{number} topics");
}

/// How a node ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Kill,
    Stop,
}

fn live(data: &std::path::Path, round: usize, shards: &str, end: End, acknowledged: &Acknowledged) {
    let mut node = Node::start(data, &["--set", &format!("num.shards={shards}")]);
    let mut admin = node.connect();
    if round == 0 {
        admin.create_topic("churn", PARTITIONS, &[]);
    }
    let life = Life {
        topic: admin.topic("churn"),
        node: &node,
        name: format!("{round}"),
        over: AtomicBool::new(false),
        ending: AtomicBool::new(false),
        acknowledged,
        read: AtomicU64::new(0),
    };
    let before = acknowledged.lock().expect("lock").len();
    std::thread::scope(|scope| {
        let life = &life;
        for number in 0..6 {
            scope.spawn(move || pipelined_writer(life, number));
        }
        for partition in 0..3 {
            scope.spawn(move || idempotent_writer(life, partition));
        }
        for number in 0..4 {
            scope.spawn(move || session_reader(life, number));
            scope.spawn(move || nuisance(life, number));
        }
        scope.spawn(move || passing_topics(life));
        // Long enough for each kind to have done something, however slow the machine.
        let late = Instant::now() + support::PATIENCE;
        let enough = || {
            let acknowledged = life.acknowledged.lock().expect("lock").len();
            acknowledged > before + 500 && life.read.load(Ordering::Relaxed) > 500
        };
        std::thread::sleep(Duration::from_millis(700));
        while !enough() && Instant::now() < late {
            std::thread::sleep(Duration::from_millis(10));
        }
        life.ending.store(true, Ordering::SeqCst);
        match end {
            End::Kill => life.node.kill_now(),
            End::Stop => life.node.terminate(),
        }
        std::thread::sleep(Duration::from_millis(100));
        life.over.store(true, Ordering::SeqCst);
    });
    let read = life.read.load(Ordering::Relaxed);
    let new = acknowledged.lock().expect("lock").len() - before;
    assert!(read > 500 && new > 500, "{read} read, {new} acknowledged");
    let status = node.wait();
    assert_eq!(status.success(), end == End::Stop, "{}", node.said());
    let said = node.said();
    assert!(!said.contains("mistake of our own"), "{said}");
}

#[test]
fn several_shards_keep_what_was_acknowledged_whatever_comes_and_goes() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let acknowledged = Acknowledged::default();
    let lives = [
        ("3", End::Kill),
        ("2", End::Stop),
        ("3", End::Stop),
        ("2", End::Kill),
    ];
    for (round, (shards, end)) in lives.into_iter().enumerate() {
        live(&data, round, shards, end, &acknowledged);
    }
    let node = Node::start(&data, &[]);
    let mut client = node.connect();
    let topic = client.topic("churn");
    let logs: Vec<Vec<String>> = (0..PARTITIONS)
        .map(|it| client.read_all(topic, it))
        .collect();
    for ((partition, offset), value) in &acknowledged.into_inner().expect("lock") {
        let log = &logs[usize::try_from(*partition).expect("small")];
        let found = usize::try_from(*offset).ok().and_then(|at| log.get(at));
        assert_eq!(found, Some(value), "partition {partition} offset {offset}");
    }
}
