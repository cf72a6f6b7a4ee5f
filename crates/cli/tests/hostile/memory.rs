//! What greedy peers cost: the memory of the node's process, as the system counts it.

use std::io::{ErrorKind, Write as _};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use highwater_protocol::messages::{
    FetchResponse, ProduceResponse,
    fetch_request::{FetchPartition, FetchTopic},
};
use highwater_protocol::wire::Message as _;
use highwater_records::{BATCH_HEADER_BYTES, BatchBuilder, BatchOptions, Compression, Compressor};
use highwater_types::{ErrorCode, Uuid, WallMs};

use crate::support::{Node, batch, fetch_request};
use crate::{
    assert_serves, assert_usable, batches, frame, list_offset, log_end_offset, node, produce,
    produce_named,
};

const MIB: u64 = 1 << 20;

fn status(node: &Node, field: &str) -> u64 {
    let path = format!("/proc/{}/status", node.id());
    let text = std::fs::read_to_string(path).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|it| {
        it.trim_matches(&[':', ' ', '\t', 'k', 'B'][..])
            .parse::<u64>()
            .ok()
    });
    kib.expect("a number of KiB") * 1024
}

/// The most memory that the node ever had, in bytes.
pub(crate) fn peak(node: &Node) -> u64 {
    status(node, "VmHWM")
}

/// Memory growth of the node over what it has now, in bytes.
fn growth(node: &Node, work: impl FnOnce()) -> u64 {
    assert_serves(node);
    // From here on the peak counts anew.
    let before = if std::fs::write(format!("/proc/{}/clear_refs", node.id()), "5").is_ok() {
        status(node, "VmRSS")
    } else {
        peak(node)
    };
    work();
    assert_serves(node);
    let grown = peak(node).saturating_sub(before);
    eprintln!("grew by {} KiB from {} KiB", grown / 1024, before / 1024);
    grown
}

#[test]
fn b_05_five_hundred_declared_frames_of_100_mb() {
    let (_root, node) = node(&[]);
    let mut clients = Vec::new();
    let grown = growth(&node, || {
        for _ in 0..500 {
            let mut client = node.connect();
            client
                .stream
                .write_all(&100_000_000_i32.to_be_bytes())
                .expect("sends");
            client.stream.write_all(b"x").expect("sends");
            clients.push(client);
        }
    });
    assert!(grown < 8 * MIB, "{grown} bytes");
}

#[test]
fn b_05_the_global_budget_holds_whatever_is_sent() {
    let (_root, node) = node(&["max.inbound.memory.bytes=16777216"]);
    let lump = vec![7; 64 << 10];
    let mut clients = Vec::new();
    let grown = growth(&node, || {
        clients.extend((0..40).map(|_| {
            let client = node.connect();
            client.stream.set_nonblocking(true).expect("a socket");
            client
        }));
        for client in &mut clients {
            client
                .stream
                .write_all(&100_000_000_i32.to_be_bytes())
                .expect("sends");
        }
        // Each offers up to 8 MB of its frame.
        for _ in 0..128 {
            for client in &mut clients {
                match client.stream.write(&lump) {
                    Ok(_) => {}
                    Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                    Err(why) => panic!("{why}"),
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(clients);
    });
    // The budget, and the one frame that may be drawn beyond it.
    assert!(grown < (16 + 32 + 8) * MIB, "{grown} bytes");
}

/// One record of `bytes` zeros in `codec`.
fn bomb(codec: Compression, bytes: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder
        .append(
            WallMs::new(1_700_000_000_000),
            None,
            Some(&vec![0; bytes]),
            &[],
        )
        .expect("fits");
    let batch = builder.finish(&BatchOptions::default()).expect("fits");
    let mut block = Vec::new();
    Compressor::new(codec)
        .compress(&batch[BATCH_HEADER_BYTES..], &mut block)
        .expect("compresses");
    block
}

#[test]
fn b_25_bombs_are_too_large_and_never_unpacked_whole() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.create_topic("bombs", 1, &[("max.message.bytes", "104857600")]);
    for codec in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let block = bomb(codec, 300 << 20);
        let bytes = block.len() as u64;
        let records = batches::compressed(codec, &block, 1);
        let mut code = ErrorCode::NONE;
        let grown = growth(&node, || {
            code = produce(&mut client, "bombs", 0, records).0;
        });
        assert_eq!(code, ErrorCode::MESSAGE_TOO_LARGE, "{codec}");
        assert!(
            grown < 4 * bytes + 16 * MIB,
            "{codec}: {grown} bytes for {bytes}"
        );
    }
    assert_eq!(log_end_offset(&mut client, "bombs", 0), 0);
}

#[test]
fn b_25_what_is_within_the_limit_is_looked_up_by_time_in_little_memory() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.create_topic("large", 1, &[("max.message.bytes", "104857600")]);
    let records = batches::compressed(Compression::Zstd, &bomb(Compression::Zstd, 200 << 20), 1);
    let bytes = records.len() as u64;
    let grown = growth(&node, || {
        assert_eq!(
            produce(&mut client, "large", 0, records),
            (ErrorCode::NONE, 0)
        );
        assert_eq!(
            list_offset(&mut client, "large", 0, 5),
            (0, 1_700_000_000_000, 0)
        );
        assert_eq!(
            list_offset(&mut client, "large", 0, -3),
            (0, 1_700_000_000_000, 0)
        );
    });
    assert!(grown < 4 * bytes + 16 * MIB, "{grown} bytes for {bytes}");
}

/// A Fetch v17 request of `count` partitions of topics, each of which wants 2 GB.
fn greedy(topics: &[Uuid], count: i32) -> highwater_protocol::messages::FetchRequest {
    let mut request = fetch_request(topics[0], 0, 0, 0);
    request.max_bytes = i32::MAX;
    let topic = |(index, id): (usize, &Uuid)| {
        let first = i32::try_from(index).expect("small");
        let step = topics.len();
        let partition = |partition| FetchPartition {
            partition,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: i32::MAX,
            ..Default::default()
        };
        FetchTopic {
            topic_id: *id,
            partitions: (first..count).step_by(step).map(partition).collect(),
            ..Default::default()
        }
    };
    request.topics = topics.iter().enumerate().map(topic).collect();
    request
}

#[test]
fn b_43_an_answer_is_capped_whatever_is_asked() {
    let (_root, node) = node(&["fetch.max.bytes=2097152"]);
    let mut client = node.connect();
    client.create_topic("t", 8, &[]);
    let topic = client.topic("t");
    let value = "v".repeat(900_000);
    for partition in 0..8 {
        for _ in 0..3 {
            assert_eq!(
                client.produce(topic, partition, batch(&[&value])).0,
                ErrorCode::NONE
            );
        }
    }
    let request = greedy(&[topic], 100_000);
    let mut frame = Vec::new();
    let grown = growth(&node, || {
        client.send(1, 17, &request);
        frame = client.read_frame().expect("an answer");
    });
    let answer =
        FetchResponse::from_bytes(&Bytes::from(frame).slice(5..), 17).expect("well formed");
    let rows = &answer.responses[0].partitions;
    assert_eq!(rows.len(), 100_000);
    let records = |it: &highwater_protocol::messages::fetch_response::PartitionData| {
        it.records.as_ref().map_or(0, Bytes::len)
    };
    let bytes: usize = rows.iter().map(records).sum();
    assert!(
        (900_000..=2_097_152).contains(&bytes),
        "{bytes} bytes of records"
    );
    assert!(
        rows[8..]
            .iter()
            .all(|it| it.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    );
    let asked = framed_len(&request);
    assert!(
        grown < 16 * asked + 8 * MIB,
        "{grown} bytes for a request of {asked}"
    );
    // The same partition again and again gets its records once.
    let mut request = greedy(&[topic], 1);
    let one = request.topics[0].partitions[0].clone();
    request.topics[0].partitions = vec![one; 100_000];
    let answer: FetchResponse = client.call(1, 17, &request);
    let rows = answer.responses.iter().flat_map(|it| &it.partitions);
    let bytes: usize = rows.map(records).sum();
    assert!(bytes <= 2_097_152, "{bytes} bytes of records");
    for max_bytes in [0, -1, i32::MIN] {
        request.topics[0].partitions.truncate(1);
        request.max_bytes = max_bytes;
        let answer: FetchResponse = client.call(1, 17, &request);
        let bytes = records(&answer.responses[0].partitions[0]);
        assert!(
            (900_000..1_000_000).contains(&bytes),
            "one batch, or nobody gets on: {bytes}"
        );
    }
    for offset in [-5, i64::MIN, 4, i64::MAX] {
        let answer: FetchResponse = client.call(1, 17, &fetch_request(topic, 0, offset, 0));
        let code = answer.responses[0].partitions[0].error_code;
        assert_eq!(code, ErrorCode::OFFSET_OUT_OF_RANGE, "{offset}");
    }
}

fn framed_len<Q: highwater_protocol::wire::Message>(request: &Q) -> u64 {
    crate::framed(1, 17, request).len() as u64
}

/// Many sessions over what does not exist must not fill the memory.
#[test]
fn re_05_sessions_over_names_that_are_none_remember_little() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let name = "n".repeat(30_000);
    let topic = |number: usize| FetchTopic {
        topic: format!("{number}{name}"),
        partitions: vec![FetchPartition {
            partition_max_bytes: 1,
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut request = fetch_request(Uuid::ZERO, 0, 0, 0);
    (request.session_id, request.session_epoch) = (0, 0);
    request.topics = (0..300).map(topic).collect();
    let grown = growth(&node, || {
        for _ in 0..30 {
            let answer: FetchResponse = client.call(1, 12, &request);
            assert_eq!(answer.responses.len(), 300);
        }
    });
    // 9 MB each.
    assert!(grown < 80 * MIB, "{grown} bytes for 30 sessions");
}

/// A body of `count` times the same bytes after a compact count.
fn many(head: &[u8], count: u32, element: &[u8], tail: &[u8]) -> Vec<u8> {
    let mut body = BytesMut::with_capacity(element.len() * count as usize + 64);
    body.put_slice(head);
    let mut number = count + 1;
    while number >= 0x80 {
        body.put_u8(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    body.put_u8(u8::try_from(number).expect("seven bits"));
    for _ in 0..count {
        body.put_slice(element);
    }
    body.put_slice(tail);
    body.to_vec()
}

/// A name, then a request of many elements: API, version, what comes before the count, one element,
/// what comes behind the last.
type Greedy = (
    &'static str,
    i16,
    i16,
    &'static [u8],
    Vec<u8>,
    &'static [u8],
);

fn greedy_requests() -> Vec<Greedy> {
    [greedy_data(), greedy_admin()].concat()
}

/// An id that no topic has, and more.
fn by_id(rest: &[u8]) -> Vec<u8> {
    let id = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
    [&id, rest].concat()
}

fn greedy_data() -> Vec<Greedy> {
    let acks_1 = b"\0\0\x01\0\0\x03\xe8";
    let nobody = b"\xff\xff\xff\xff\0";
    let topic = || NAMED.to_vec();
    vec![
        ("ListOffsets topics", 2, 7, nobody, topic(), b"\0"),
        (
            "ListOffsets partitions",
            2,
            7,
            LIST_HEAD,
            vec![0; 17],
            b"\0\0",
        ),
        (
            "Fetch topics",
            1,
            13,
            &[0xff; 25],
            by_id(&[1, 0]),
            b"\x01\x01\0",
        ),
        (
            "Fetch partitions",
            1,
            17,
            FETCH_HEAD,
            vec![0; 33],
            b"\0\x01\x01\0",
        ),
        ("Produce topics", 0, 13, acks_1, by_id(&[1, 0]), b"\0"),
        (
            "Produce partitions",
            0,
            13,
            PRODUCE_HEAD,
            vec![0; 6],
            b"\0\0",
        ),
        (
            "OffsetForLeaderEpoch",
            23,
            4,
            b"\xff\xff\xff\xfe",
            topic(),
            b"\0",
        ),
    ]
}

fn greedy_admin() -> Vec<Greedy> {
    let name = |rest: &[u8]| [b"\x0bnnnnnnnnnn", rest].concat();
    let topic = [b"\x02".as_slice(), &name(b"\0\0")].concat();
    let deleted = [b"\0".as_slice(), &by_id(b"\0")].concat();
    vec![
        ("Metadata by id", 3, 12, b"", by_id(&[0, 0]), b"\0\0\0"),
        ("Metadata by name", 3, 9, b"", name(b"\0"), b"\0\0\0\0"),
        ("CreateTopics", 19, 7, b"", CREATE.to_vec(), b"\0\0\0\0\0\0"),
        ("DeleteTopics by id", 20, 6, b"", deleted, b"\0\0\0\0\0"),
        ("DeleteTopics by name", 20, 5, b"", name(b""), b"\0\0\0\0\0"),
        ("DescribeConfigs", 32, 4, b"", topic, b"\0\0\0"),
        (
            "DescribeConfigs keys",
            32,
            4,
            b"\x02\x04\x021",
            name(b""),
            b"\0\0\0\0",
        ),
        (
            "DescribeTopicPartitions",
            75,
            0,
            b"",
            name(b"\0"),
            b"\0\0\x07\xd0\xff\0",
        ),
    ]
}

/// A topic without partitions.
const NAMED: &[u8] = b"\x0bnnnnnnnnnn\x01\0";
/// One topic, up to its partitions.
const FETCH_HEAD: &[u8] =
    b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01";
const PRODUCE_HEAD: &[u8] = b"\0\0\x01\0\0\x03\xe8\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01";
const LIST_HEAD: &[u8] = b"\xff\xff\xff\xff\0\x02\x02t";
/// A topic of one partition and one replica.
const CREATE: &[u8] = b"\x0bnnnnnnnnnn\0\0\0\x01\0\x01\x01\x01\0";

/// Sends such a request of `count` elements; gives the answer's bytes, and what it cost.
fn ask_for_many(node: &Node, greedy: &Greedy, count: u32) -> (Option<usize>, u64, u64) {
    let (what, api, version, head, element, tail) = greedy;
    let body = many(head, count, element, tail);
    let bytes = body.len() as u64;
    let mut answer = None;
    let began = Instant::now();
    let grown = growth(node, || {
        let mut client = node.connect();
        client.send_frame(&frame(*api, *version, true, &body));
        answer = client.read_frame();
    });
    let (took, answer) = (began.elapsed(), answer.map(|it| it.len()));
    eprintln!(
        "{what}: {answer:?} in {took:?}, {} KiB for {} KiB",
        grown >> 10,
        bytes >> 10
    );
    assert!(took < Duration::from_secs(10), "{what}: {took:?}");
    (answer, grown, bytes)
}

/// As many elements as a frame of 32 MiB holds: refused, at the cost of the frame itself.
#[test]
fn b_10_millions_of_elements_close_the_connection_in_each_api() {
    let (_root, node) = node(&[]);
    for greedy in greedy_requests() {
        let count = u32::try_from((32 << 20) / greedy.4.len()).expect("small");
        let (answer, grown, bytes) = ask_for_many(&node, &greedy, count);
        assert_eq!(answer, None, "{}", greedy.0);
        assert!(
            grown < bytes + 8 * MIB,
            "{}: {grown} bytes for a frame of {bytes}",
            greedy.0
        );
    }
}

/// More than any client asks about, and answered: memory stays small.
#[test]
fn b_10_a_hundred_thousand_elements_are_answered_in_each_api() {
    let (_root, node) = node(&[]);
    for greedy in greedy_requests() {
        let (answer, grown, _) = ask_for_many(&node, &greedy, 100_000);
        assert!(answer.is_some(), "{}", greedy.0);
        assert!(grown < 64 * MIB, "{}: {grown} bytes", greedy.0);
    }
}

#[test]
fn b_43_a_session_of_a_hundred_thousand_partitions_is_bounded() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let mut request = greedy(&[Uuid::from_u128(1 << 90)], 100_000);
    (request.session_id, request.session_epoch) = (0, 0);
    let grown = growth(&node, || {
        for _ in 0..20 {
            client.send(1, 17, &request);
            client.read_frame().expect("an answer");
        }
    });
    assert!(grown < 250 * MIB, "{grown} bytes for 20 sessions");
    assert_usable(&mut client);
}

/// Produce over the same partitions again and again.
#[test]
fn re_03_rows_of_one_produce_are_bounded() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.topic("t");
    let rows: Vec<(i32, Option<Bytes>)> = (0..100_000).map(|it| (it % 7, None)).collect();
    let request = produce_named("t", -1, &rows);
    let grown = growth(&node, || {
        let answer: ProduceResponse = client.call(0, 12, &request);
        assert_eq!(answer.responses[0].partition_responses.len(), 100_000);
    });
    assert!(grown < 64 * MIB, "{grown} bytes");
}
