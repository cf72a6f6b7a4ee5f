//! Bad, slow and greedy peers at a node's sockets (rows B-, RE- and NP- of the fault list).
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, FetchResponse};
use highwater_protocol::wire::Message as _;
use highwater_types::{ErrorCode, Uuid};
use support::{Client, Node, batch, fetch_request, produce_request, values};
use tempfile::{TempDir, tempdir};

fn node(more: &[&str]) -> (TempDir, Node) {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&root.path().join("data"), more);
    (root, node)
}

fn api_versions() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "end-to-end".to_owned(),
        client_software_version: "1".to_owned(),
        ..Default::default()
    }
}

fn assert_serves(node: &Node) {
    let answer: ApiVersionsResponse = node.connect().call(18, 4, &api_versions());
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

/// Resident memory of the node, in bytes.
fn resident(node: &Node) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", node.id())).expect("it runs");
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse().ok())
        .expect("a number");
    pages * 4096
}

/// CPU time of the node, in clock ticks of 10 ms.
fn cpu_ticks(node: &Node) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", node.id())).expect("it runs");
    let after_name = text.rsplit(')').next().expect("a name");
    let mut fields = after_name.split_whitespace().skip(11);
    let mut next = || {
        fields
            .next()
            .and_then(|it| it.parse::<u64>().ok())
            .expect("a number")
    };
    next() + next()
}

#[test]
fn b_01_b_02_bad_lengths_close_without_a_word() {
    let (_root, node) = node(&[]);
    for length in [-1, i32::MIN, 0, 1, 3, 7] {
        let mut client = node.connect();
        client
            .stream
            .write_all(&length.to_be_bytes())
            .expect("sends");
        client.assert_closed();
    }
    assert_serves(&node);
}

#[test]
fn b_03_tls_and_http_close_at_once_and_are_named() {
    let (_root, node) = node(&[]);
    for bytes in [
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3][..],
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut client = node.connect();
        client.stream.write_all(bytes).expect("sends");
        client.assert_closed();
    }
    let mut client = node.connect();
    client
        .stream
        .write_all(&104_857_601_i32.to_be_bytes())
        .expect("sends");
    client.assert_closed();
    let said = node.said();
    assert!(said.contains("likely a TLS client"), "{said}");
    assert!(said.contains("likely an HTTP client"), "{said}");
    assert!(said.contains("socket.request.max.bytes"), "{said}");
    assert_serves(&node);
}

#[test]
fn b_05_declared_frames_reserve_nothing() {
    let (_root, node) = node(&[]);
    assert_serves(&node);
    let before = resident(&node);
    let mut clients: Vec<Client> = (0..300).map(|_| node.connect()).collect();
    for client in &mut clients {
        client
            .stream
            .write_all(&100_000_000_i32.to_be_bytes())
            .expect("sends");
        client.stream.write_all(b"x").expect("sends");
    }
    assert_serves(&node);
    let grown = resident(&node).saturating_sub(before);
    assert!(
        grown < 16 << 20,
        "{grown} bytes for 300 declared frames of 100 MB"
    );
}

#[test]
fn b_05_a_frame_that_never_comes_is_given_up() {
    let (_root, node) = node(&["--set", "connection.handshake.timeout.ms=300"]);
    let mut silent = node.connect();
    let mut slow = node.connect();
    slow.stream
        .write_all(&1_000_i32.to_be_bytes())
        .expect("sends");
    let began = Instant::now();
    silent.assert_closed();
    slow.assert_closed();
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    assert!(
        node.said().contains("connection.handshake.timeout.ms"),
        "{}",
        node.said()
    );
}

#[test]
fn b_06_b_08_unknown_apis_and_versions_close() {
    let (_root, node) = node(&[]);
    for (api, version) in [
        (32767, 0),
        (-1, 0),
        (3, 99),
        (0, 2),
        (1, 3),
        (52, 0),
        (62, 4),
    ] {
        let mut client = node.connect();
        let mut frame = Vec::new();
        for number in [api, version] {
            frame.extend(i16::to_be_bytes(number));
        }
        frame.extend([0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
        client.send_frame(&frame);
        client.assert_closed();
    }
    assert_serves(&node);
}

#[test]
fn b_07_an_unknown_version_of_api_versions_is_answered() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let frame = [0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 0, 1, 2, 3];
    client.send_frame(&frame);
    let answer = client.read_frame().expect("an answer");
    assert_eq!(answer, [0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5]);
    let answer: ApiVersionsResponse = client.call(18, 4, &api_versions());
    assert_eq!(
        answer.error_code,
        ErrorCode::NONE,
        "the connection stays usable"
    );
}

#[test]
fn np_05_pipelined_requests_are_answered_in_order() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let topic = client.topic("mixed");
    let mut sent = Vec::new();
    for round in 0..20 {
        sent.push((
            0,
            client.send(
                0,
                13,
                &produce_request(topic, 0, batch(&[format!("{round}")])),
            ),
        ));
        sent.push((18, client.send(18, 4, &api_versions())));
        sent.push((
            1,
            client.send(1, 17, &fetch_request(topic, 0, i64::MAX >> 1, 5)),
        ));
    }
    for (_, correlation_id) in sent {
        let frame = client.read_frame().expect("an answer");
        assert_eq!(frame[..4], correlation_id.to_be_bytes());
    }
    assert_eq!(client.read_all(topic, 0).len(), 20);
}

#[test]
fn frames_in_pieces_and_frames_in_one_are_the_same() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let topic = client.topic("pieces");
    let big = "x".repeat(700_000);
    let records = batch(&["small", &big, "end"]);
    let id = client.send(0, 13, &produce_request(topic, 0, Bytes::new()));
    let _refused = client.read_frame().expect("an answer");
    // The same request again, byte by byte in front and in lumps behind.
    let mut w = highwater_protocol::wire::Writer::new();
    let header = highwater_protocol::RequestHeader {
        api_key: 0,
        version: 13,
        correlation_id: id,
        client_id: None,
    };
    header.encode(&mut w).expect("header");
    produce_request(topic, 0, records)
        .encode(&mut w, 13)
        .expect("request");
    let frame = w.into_bytes();
    let length = u32::try_from(frame.len()).expect("small").to_be_bytes();
    for byte in length.iter().chain(&frame[..20]) {
        client.stream.write_all(&[*byte]).expect("sends");
    }
    for lump in frame[20..].chunks(33_333) {
        client.stream.write_all(lump).expect("sends");
        std::thread::sleep(Duration::from_millis(1));
    }
    let _appended = client.read_frame().expect("an answer");
    assert_eq!(client.read_all(topic, 0), ["small", &big, "end"]);
}

#[test]
fn re_04_a_reader_that_does_not_read_costs_no_memory() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let topic = client.topic("large");
    let big = "y".repeat(900_000);
    for _ in 0..20 {
        assert_eq!(client.produce(topic, 0, batch(&[&big])).0, ErrorCode::NONE);
    }
    let before = resident(&node);
    let mut deaf = node.connect();
    deaf.stream.set_nonblocking(true).expect("a socket");
    let mut asked = 0;
    for _ in 0..1000 {
        let request = fetch_request(topic, 0, 0, 0);
        match try_send(&mut deaf, &request) {
            Ok(()) => asked += 1,
            Err(ErrorKind::WouldBlock) => break,
            Err(why) => panic!("{why}"),
        }
    }
    assert_serves(&node);
    let ticks = cpu_ticks(&node);
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        cpu_ticks(&node) - ticks <= 10,
        "a blocked connection keeps nobody busy"
    );
    let grown = resident(&node).saturating_sub(before);
    assert!(
        grown < 24 << 20,
        "{grown} bytes for {asked} fetches of 18 MB that nobody reads"
    );
    // And when it reads after all, everything is there.
    deaf.stream.set_nonblocking(false).expect("a socket");
    let frame = Bytes::from(deaf.read_frame().expect("an answer"));
    let answer = FetchResponse::from_bytes(&frame.slice(5..), 17).expect("well formed");
    let records = answer.responses[0].partitions[0]
        .records
        .clone()
        .unwrap_or_default();
    assert_eq!(values(&records, 0).len(), 20);
}

fn try_send(
    client: &mut Client,
    request: &highwater_protocol::messages::FetchRequest,
) -> Result<(), ErrorKind> {
    let mut w = highwater_protocol::wire::Writer::new();
    let header = highwater_protocol::RequestHeader {
        api_key: 1,
        version: 17,
        correlation_id: 5,
        client_id: None,
    };
    header.encode(&mut w).expect("header");
    request.encode(&mut w, 17).expect("request");
    let frame = w.into_bytes();
    let length = u32::try_from(frame.len()).expect("small").to_be_bytes();
    let whole = [&length[..], &frame].concat();
    match client.stream.write(&whole) {
        Ok(sent) if sent == whole.len() => Ok(()),
        // A cut request in the end: nothing more is sent on this connection.
        Ok(_) => Err(ErrorKind::WouldBlock),
        Err(why) => Err(why.kind()),
    }
}

#[test]
fn idle_connections_are_closed_and_hold_nothing() {
    let (_root, node) = node(&["--set", "connections.max.idle.ms=500"]);
    let mut client = node.connect();
    let answer: ApiVersionsResponse = client.call(18, 4, &api_versions());
    assert_eq!(answer.error_code, ErrorCode::NONE);
    let began = Instant::now();
    client.assert_closed();
    let idle = began.elapsed();
    assert!(
        idle > Duration::from_millis(300) && idle < Duration::from_secs(10),
        "{idle:?}"
    );
}

#[test]
fn connections_per_address_are_limited() {
    let (_root, node) = node(&["--set", "max.connections.per.ip=3"]);
    let mut kept: Vec<Client> = (0..3).map(|_| node.connect()).collect();
    for client in &mut kept {
        let _answer: ApiVersionsResponse = client.call(18, 4, &api_versions());
    }
    node.connect().assert_closed();
    kept.pop();
    let late = Instant::now() + support::PATIENCE;
    loop {
        let mut client = node.connect();
        client.send(18, 4, &api_versions());
        if client.read_frame().is_some() {
            break;
        }
        assert!(
            Instant::now() < late,
            "the place of a closed connection is free again"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_beyond_the_maximum_wait_for_a_place() {
    let (_root, node) = node(&["--set", "max.connections=3"]);
    let mut kept: Vec<Client> = (0..3).map(|_| node.connect()).collect();
    for client in &mut kept {
        let _answer: ApiVersionsResponse = client.call(18, 4, &api_versions());
    }
    let mut fourth = node.connect();
    let id = fourth.send(18, 4, &api_versions());
    let short = Some(Duration::from_millis(200));
    fourth.stream.set_read_timeout(short).expect("a socket");
    let waits = fourth.stream.read(&mut [0; 4]).map_err(|why| why.kind());
    assert_eq!(waits, Err(ErrorKind::WouldBlock), "it waits in the backlog");
    drop(kept.pop());
    fourth
        .stream
        .set_read_timeout(Some(support::PATIENCE))
        .expect("a socket");
    let answer: ApiVersionsResponse = fourth.receive(18, 4, id);
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

#[test]
fn frames_above_a_smaller_maximum_close() {
    let (_root, node) = node(&["--set", "socket.request.max.bytes=10000"]);
    let mut client = node.connect();
    client.topic("t");
    client
        .stream
        .write_all(&10_001_i32.to_be_bytes())
        .expect("sends");
    client.assert_closed();
    let mut client = node.connect();
    let frame = [&[0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff][..], &[0; 9990]].concat();
    client.send_frame(&frame);
    assert!(client.read_frame().is_some(), "the maximum itself is fine");
}

#[test]
fn waiting_requests_of_one_connection_are_bounded_and_all_answered() {
    let (_root, node) = node(&["--set", "max.waiting.requests.per.connection=4"]);
    let mut client = node.connect();
    client.create_topic("flushed", 1, &[("flush.messages", "1")]);
    let topic = client.topic("flushed");
    let sent: Vec<i32> = (0..200)
        .map(|number| {
            let records = batch(&[format!("{number}")]);
            client.send(0, 13, &produce_request(topic, 0, records))
        })
        .collect();
    for id in sent {
        let frame = client.read_frame().expect("an answer");
        assert_eq!(frame[..4], id.to_be_bytes());
    }
    assert_eq!(client.read_all(topic, 0).len(), 200);
}

#[test]
fn the_inbound_budget_holds_and_everybody_gets_through() {
    let (_root, node) = node(&["--set", "max.inbound.memory.bytes=2097152"]);
    let topic = node.connect().topic("budget");
    let value = "z".repeat(900_000);
    let records = batch(&[&value]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = node.connect();
                for _ in 0..4 {
                    assert_eq!(client.produce(topic, 0, records.clone()).0, ErrorCode::NONE);
                }
            });
        }
    });
    assert_eq!(node.connect().read_all(topic, 0).len(), 32);
}

#[test]
fn an_idle_node_with_connections_uses_no_cpu() {
    let (_root, node) = node(&[]);
    let mut clients: Vec<Client> = (0..50).map(|_| node.connect()).collect();
    for client in &mut clients {
        let _answer: ApiVersionsResponse = client.call(18, 4, &api_versions());
    }
    std::thread::sleep(Duration::from_millis(300));
    let before = cpu_ticks(&node);
    std::thread::sleep(Duration::from_secs(2));
    // 0.5 % of a core would be 1 tick in 2 s; the machine is shared with other tests.
    let used = cpu_ticks(&node) - before;
    assert!(used <= 4, "{used} ticks of 10 ms in 2 s");
}

#[test]
fn a_client_that_vanishes_in_a_long_poll_hurts_nobody() {
    let (_root, node) = node(&[]);
    let topic: Uuid = node.connect().topic("gone");
    for _ in 0..20 {
        let mut client = node.connect();
        client.send(1, 17, &fetch_request(topic, 0, 0, 500));
        drop(client);
    }
    let mut stream = TcpStream::connect(&node.bootstrap).expect("connects");
    stream.write_all(&[0, 0]).expect("sends");
    drop(stream);
    assert_eq!(
        node.connect().produce(topic, 0, batch(&["still here"])).0,
        ErrorCode::NONE
    );
    let mut rest = Vec::new();
    let mut stream = TcpStream::connect(&node.bootstrap).expect("connects");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("a socket");
    stream.read_to_end(&mut rest).expect("closed in order");
    assert!(rest.is_empty());
}

#[test]
fn one_connection_never_holds_more_than_its_share() {
    let (_root, node) = node(&["--set", "max.inbound.memory.per.connection.bytes=65536"]);
    let mut client = node.connect();
    let topic = client.topic("share");
    let records = batch(&["s".repeat(100_000)]);
    let mut sender = client.twin();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..100 {
                sender.send(0, 13, &produce_request(topic, 0, records.clone()));
            }
        });
        for _ in 0..100 {
            assert!(client.read_frame().is_some());
        }
    });
    assert_eq!(client.read_all(topic, 0).len(), 100);
}

#[test]
fn beyond_max_connections_newcomers_wait() {
    let (_root, node) = node(&["--set", "max.connections=2"]);
    let mut first = node.connect();
    let mut second = node.connect();
    for client in [&mut first, &mut second] {
        let _answer: ApiVersionsResponse = client.call(18, 4, &api_versions());
    }
    let mut third = node.connect();
    let id = third.send(18, 4, &api_versions());
    third
        .stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a socket");
    let mut byte = [0];
    let waits = third
        .stream
        .peek(&mut byte)
        .expect_err("nobody answers yet");
    assert_eq!(waits.kind(), ErrorKind::WouldBlock);
    drop(first);
    third
        .stream
        .set_read_timeout(Some(support::PATIENCE))
        .expect("a socket");
    let answer: ApiVersionsResponse = third.receive(18, 4, id);
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

#[test]
fn an_empty_host_listens_on_all_addresses() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let mut command = support::highwater();
    command
        .arg("start")
        .arg("--data")
        .arg(&data)
        .args(["--listen", ":0"]);
    let node = Node::spawn(command, &data).expect("starts");
    let (host, port) = node.bootstrap.rsplit_once(':').expect("HOST:PORT");
    assert_eq!(host, "localhost");
    let answer: ApiVersionsResponse =
        Client::connect(&format!("127.0.0.1:{port}")).call(18, 4, &api_versions());
    assert_eq!(answer.error_code, ErrorCode::NONE);
}
