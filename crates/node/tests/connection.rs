//! The connection core: order, pipelining, back-pressure, and frames that close it.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

use std::path::Path;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use highwater_node::{
    Answer, Caller, ConnId, ConnOutput, Connection, Happening, Piece, Region, Ticket,
};
use highwater_protocol::messages::{ApiVersionsRequest, MetadataRequest, ProduceRequest};
use highwater_protocol::wire::{Message as _, Writer};
use highwater_protocol::{ListenerKind, Request, RequestHeader};
use highwater_types::Millis;
use proptest::prelude::*;

type Conn = Connection<()>;
type Outputs = Vec<ConnOutput<()>>;

fn connection(listener: ListenerKind) -> Conn {
    let caller = Caller {
        principal: "User:ANONYMOUS".to_owned(),
        listener,
        listener_name: "PLAINTEXT".to_owned(),
        host: None,
    };
    Connection::new(ConnId(7), Arc::new(caller))
}

fn broker() -> Conn {
    connection(ListenerKind::Broker)
}

fn frame(api_key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Bytes {
    let header = RequestHeader {
        api_key,
        version,
        correlation_id,
        client_id: Some("test-client".to_owned()),
    };
    let mut w = Writer::new();
    header.encode(&mut w).expect("a legal header");
    w.put(body);
    w.into_bytes()
}

fn produce(correlation_id: i32) -> Bytes {
    let body = ProduceRequest {
        acks: -1,
        timeout_ms: 1000,
        ..ProduceRequest::default()
    };
    frame(0, 9, correlation_id, &body.to_bytes(9).expect("legal"))
}

fn metadata(correlation_id: i32) -> Bytes {
    let body = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    frame(3, 9, correlation_id, &body.to_bytes(9).expect("legal"))
}

/// Feeds frames as an owner must: only while they are wanted. Returns how many were taken.
fn feed(conn: &mut Conn, frames: &[Bytes], out: &mut Outputs) -> usize {
    let taken = frames.iter().take_while(|frame| {
        let wanted = conn.wants_frames();
        if wanted {
            conn.handle_frame((*frame).clone(), out);
        }
        wanted
    });
    taken.count()
}

fn tickets(out: &mut Outputs) -> Vec<Ticket> {
    let tickets = out.iter().filter_map(|output| match output {
        ConnOutput::Request(incoming) => Some(incoming.ticket),
        _ => None,
    });
    let tickets = tickets.collect();
    out.retain(|output| !matches!(output, ConnOutput::Request(_)));
    tickets
}

/// The bytes of each frame written, and what else was put out, in a line each.
fn told(out: &mut Outputs) -> Vec<String> {
    let line = |output: ConnOutput<()>| match output {
        ConnOutput::Request(incoming) => format!("request {:?}", incoming.request.api_key()),
        ConnOutput::Write(pieces) => {
            let bytes: Vec<u8> = pieces
                .into_iter()
                .flat_map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.to_vec(),
                    Piece::Region(_) => panic!("no region was answered"),
                })
                .collect();
            let len = i32::from_be_bytes(bytes[..4].try_into().expect("4 bytes"));
            assert_eq!(
                usize::try_from(len),
                Ok(bytes.len() - 4),
                "the length is that of the rest"
            );
            let id = i32::from_be_bytes(bytes[4..8].try_into().expect("4 bytes"));
            format!("write {id}:{}", String::from_utf8_lossy(&bytes[8..]))
        }
        ConnOutput::Mute(millis) => format!("mute {}", millis.as_u64()),
        ConnOutput::Close => "close".to_owned(),
        ConnOutput::Event(entry) => format!("event {entry}"),
    };
    out.drain(..).map(line).collect()
}

fn answer(text: &'static str) -> Answer<()> {
    Answer::bytes(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_request_comes_out_and_its_answer_goes_back() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    conn.handle_frame(metadata(41), &mut out);
    let [ConnOutput::Request(incoming)] = out.as_slice() else {
        panic!("{out:?}")
    };
    assert_eq!(
        (incoming.version, incoming.client_id.as_deref()),
        (9, Some("test-client"))
    );
    assert!(matches!(incoming.request, Request::Metadata(_)));
    let ticket = tickets(&mut out)[0];
    assert!(!conn.wants_frames(), "one request at a time");
    conn.handle_answer(ticket, answer("body"), &mut out);
    assert_eq!(
        told(&mut out),
        ["write 41:\0body"],
        "a flexible answer has tags in its header"
    );
    assert!(conn.is_idle() && conn.wants_frames());
}

#[test]
fn trap_02_the_answer_to_api_versions_has_a_header_without_tags() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    let body = ApiVersionsRequest {
        client_software_name: "x".to_owned(),
        client_software_version: "1".to_owned(),
        ..ApiVersionsRequest::default()
    };
    conn.handle_frame(frame(18, 3, 5, &body.to_bytes(3).expect("legal")), &mut out);
    let ticket = tickets(&mut out)[0];
    conn.handle_answer(ticket, answer("body"), &mut out);
    assert_eq!(told(&mut out), ["write 5:body"]);
}

#[test]
fn only_a_produce_may_follow_a_waiting_produce() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    let frames = [produce(1), produce(2), metadata(3), produce(4)];
    assert_eq!(
        feed(&mut conn, &frames, &mut out),
        1,
        "the first is not admitted yet"
    );
    let first = tickets(&mut out)[0];
    conn.handle_admitted(first, &mut out);
    assert_eq!(feed(&mut conn, &frames[1..], &mut out), 1);
    let second = tickets(&mut out)[0];
    conn.handle_admitted(second, &mut out);
    // The Metadata request is taken, but does not start before both are answered.
    assert_eq!(feed(&mut conn, &frames[2..], &mut out), 1);
    assert_eq!(told(&mut out), [] as [&str; 0]);
    conn.handle_answer(second, answer("two"), &mut out);
    assert_eq!(
        told(&mut out),
        [] as [&str; 0],
        "answers leave in request order"
    );
    conn.handle_answer(first, answer("one"), &mut out);
    assert_eq!(
        told(&mut out),
        ["write 1:\0one", "write 2:\0two", "request Metadata"]
    );
}

#[test]
fn re_03_waiting_requests_are_bounded() {
    let (conn, mut out) = (broker(), Outputs::new());
    let mut conn = conn.with_waiting_max(3);
    let mut started = Vec::new();
    for number in 0..3 {
        assert_eq!(feed(&mut conn, &[produce(number)], &mut out), 1);
        started.extend(tickets(&mut out));
        conn.handle_admitted(started[started.len() - 1], &mut out);
    }
    assert!(!conn.wants_frames(), "three wait");
    conn.handle_answer(started[0], answer(""), &mut out);
    assert!(conn.wants_frames());
}

proptest! {
    /// NP-05: 50 mixed requests, pipelined; appends are answered in any order; the answers leave
    /// in request order with their correlation ids.
    #[test]
    fn np_05_answers_leave_in_request_order(
        kinds in proptest::collection::vec(any::<bool>(), 50),
        choices in proptest::collection::vec(any::<usize>(), 200),
    ) {
        let (mut conn, mut out) = (broker(), Outputs::new());
        let frames: Vec<Bytes> = (0..).zip(&kinds)
            .map(|(id, is_produce)| if *is_produce { produce(id) } else { metadata(id) })
            .collect();
        let (mut fed, mut open, mut written) = (0, Vec::<Ticket>::new(), Vec::<i32>::new());
        let mut choices = choices.into_iter().cycle();
        while written.len() < frames.len() {
            fed += feed(&mut conn, &frames[fed..], &mut out);
            open.extend(tickets(&mut out));
            for line in told(&mut out) {
                let id = line.trim_start_matches("write ").split(':').next().map(str::parse::<i32>);
                written.push(id.expect("a number").expect("a correlation id"));
            }
            let Some(choice) = choices.next() else { break };
            if open.is_empty() {
                continue;
            }
            // Admit the newest, or answer any.
            let newest = open[open.len() - 1];
            if kinds[newest.seq as usize] && choice % 3 == 0 {
                conn.handle_admitted(newest, &mut out);
            } else {
                let ticket = open.remove(choice % open.len());
                conn.handle_answer(ticket, answer("x"), &mut out);
            }
        }
        prop_assert_eq!(written, (0..50).collect::<Vec<i32>>());
    }
}

#[test]
fn b_07_c_06_an_unknown_version_of_api_versions_is_answered_and_the_connection_stays() {
    for listener in [ListenerKind::Broker, ListenerKind::Controller] {
        let (mut conn, mut out) = (connection(listener), Outputs::new());
        conn.handle_frame(frame(18, 99, 9, b"whatever that version has"), &mut out);
        let [ConnOutput::Write(pieces)] = out.as_slice() else {
            panic!("{out:?}")
        };
        let bytes: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| match piece {
                Piece::Bytes(bytes) => bytes.to_vec(),
                Piece::Region(_) => panic!("no region"),
            })
            .collect();
        let expected = [
            0, 0, 0, 16, 0, 0, 0, 9, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5,
        ];
        assert_eq!(bytes, expected);
        out.clear();
        conn.handle_frame(frame(18, 0, 10, b""), &mut out);
        assert_eq!(tickets(&mut out).len(), 1, "usable");
    }
}

fn refused(frame: Bytes, listener: ListenerKind) -> String {
    let (mut conn, mut out) = (connection(listener), Outputs::new());
    conn.handle_frame(frame, &mut out);
    let [ConnOutput::Event(entry), ConnOutput::Close] = out.as_slice() else {
        panic!("{out:?}")
    };
    assert!(matches!(entry.happening, Happening::RequestRefused { .. }));
    assert!(!conn.wants_frames());
    entry.to_string()
}

#[test]
fn b_02_b_06_b_08_c_01_frames_that_close_the_connection() {
    use ListenerKind::{Broker, Controller};
    for len in 0..8 {
        refused(Bytes::from(vec![0; len]), Broker);
    }
    for key in [32767, -1, 999, 52, 62] {
        refused(frame(key, 0, 1, b""), Broker);
    }
    refused(frame(3, 9, 1, b""), Controller);
    for (key, version) in [(3, 99), (1, 3), (1, -1), (2, 0), (22, 6)] {
        refused(frame(key, version, 1, b""), Broker);
    }
    let told = refused(frame(2, 0, 1, b""), Broker);
    assert!(
        told.contains("api 2 v0") && told.contains("test-client"),
        "C-01: {told}"
    );
    assert!(refused(frame(3, 9, 1, b"\x05"), Broker).contains("cannot be decoded"));
}

#[test]
fn c_02_produce_below_version_3_closes() {
    for version in 0..3 {
        let told = refused(frame(0, version, 1, &[0; 64]), ListenerKind::Broker);
        assert!(told.contains(&format!("api 0 v{version}")), "{told}");
    }
}

#[test]
fn b_10_to_b_13_counts_that_lie_close_and_cost_nothing() {
    // Metadata v1 with 2^31-1 topics, with -2; v9 with compact count 2^28 and cut tags.
    let counts: [(i16, &[u8]); 4] = [
        (1, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0]),
        (1, &[0xff, 0xff, 0xff, 0xfe]),
        (9, &[0xff, 0xff, 0xff, 0x7f, 0]),
        (9, &[0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    ];
    for (version, body) in counts {
        refused(frame(3, version, 1, body), ListenerKind::Broker);
    }
}

#[test]
fn b_14_bytes_after_the_body_are_ignored() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    let mut longer = BytesMut::from(&metadata(1)[..]);
    longer.put_slice(b"abc");
    conn.handle_frame(longer.freeze(), &mut out);
    assert_eq!(tickets(&mut out).len(), 1);
}

#[test]
fn a_refused_frame_lets_earlier_answers_out_first() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    conn.handle_frame(produce(1), &mut out);
    let ticket = tickets(&mut out)[0];
    conn.handle_admitted(ticket, &mut out);
    // Starts with the key of Produce, so it is looked at; but there is no such version.
    conn.handle_frame(frame(0, 99, 2, b""), &mut out);
    assert!(matches!(out.as_slice(), [ConnOutput::Event(_)]), "{out:?}");
    out.clear();
    assert!(!conn.wants_frames());
    conn.handle_answer(ticket, answer("one"), &mut out);
    assert_eq!(told(&mut out), ["write 1:\0one", "close"]);
}

#[test]
fn c_14_an_acks_0_error_closes_after_earlier_answers() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    conn.handle_frame(produce(1), &mut out);
    let first = tickets(&mut out)[0];
    conn.handle_admitted(first, &mut out);
    conn.handle_frame(produce(2), &mut out);
    let second = tickets(&mut out)[0];
    conn.handle_answer(second, Answer::close(), &mut out);
    assert!(out.is_empty() && !conn.wants_frames());
    conn.handle_answer(first, answer("one"), &mut out);
    assert_eq!(told(&mut out), ["write 1:\0one", "close"]);
}

#[test]
fn acks_0_is_answered_with_nothing() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    conn.handle_frame(produce(1), &mut out);
    let ticket = tickets(&mut out)[0];
    conn.handle_answer(ticket, Answer::silent(), &mut out);
    assert!(out.is_empty() && conn.is_idle());
}

#[test]
fn trap_45_the_answer_goes_out_before_the_mute() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    conn.handle_frame(metadata(1), &mut out);
    let ticket = tickets(&mut out)[0];
    let throttled = Answer {
        mute: Millis::new(250),
        ..answer("body")
    };
    conn.handle_answer(ticket, throttled, &mut out);
    assert_eq!(told(&mut out), ["write 1:\0body", "mute 250"]);
    assert!(!conn.wants_frames());
    conn.handle_unmuted(&mut out);
    assert!(conn.wants_frames());
}

#[test]
fn every_captured_request_of_a_served_api_is_taken() {
    let files = highwater_fixtures::wire();
    let index = String::from_utf8(files[Path::new("index.tsv")].clone()).expect("text");
    let mut taken = 0;
    for (path, text) in &files {
        let name = path.to_string_lossy();
        let served = [
            "00-Produce/",
            "01-Fetch/",
            "03-Metadata/",
            "18-ApiVersions/",
        ];
        if !name.ends_with(".request.hex") || !served.iter().any(|dir| name.starts_with(dir)) {
            continue;
        }
        let (mut conn, mut out) = (broker(), Outputs::new());
        conn.handle_frame(Bytes::from(highwater_fixtures::unhex(text)), &mut out);
        let is_refused = out.iter().any(|output| matches!(output, ConnOutput::Close));
        let raft = name.starts_with("01-Fetch/") && is_refused;
        assert!(!is_refused || raft, "{name}: {:?}", told(&mut out));
        taken += usize::from(!is_refused);
    }
    assert!(
        taken > 30,
        "only {taken} of {} lines",
        index.lines().count()
    );
}

#[test]
fn an_answer_that_no_frame_can_hold_closes_the_connection() {
    let (mut conn, mut out) = (broker(), Outputs::new());
    conn.handle_frame(metadata(1), &mut out);
    let ticket = tickets(&mut out)[0];
    let region = Region {
        file: Arc::new(()),
        position: 0,
        len: 3 << 30,
    };
    let too_long = Answer::pieces(vec![Piece::Region(region)]);
    conn.handle_answer(ticket, too_long, &mut out);
    let [event, close] = told(&mut out).try_into().expect("two outputs");
    assert!(event.contains("too long") && close == "close", "{event}");
}
