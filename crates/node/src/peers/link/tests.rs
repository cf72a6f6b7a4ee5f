use highwater_disk::MemFile;
use highwater_protocol::messages::api_versions_response::ApiVersion;
use highwater_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, ApiVersionsResponse,
    BrokerHeartbeatRequest, CreateTopicsRequest, MetadataRequest,
};
use highwater_protocol::wire::Message as _;
use highwater_protocol::{ApiKey, ListenerKind, Request};

use super::*;
use crate::connection::{ConnOutput, Connection};
use crate::machine::{Answer, Caller, ConnId, Incoming, Piece};

const LATE: Mono = Mono::from_micros(1_000_000);

/// A link, and the connection of the node at its other end.
struct Pair {
    link: PeerLink,
    conn: Connection<MemFile>,
    asked: Vec<Incoming>,
    told: Vec<(u64, Result<Response, PeerError>)>,
    closed: Option<LinkError>,
}

impl Pair {
    fn new() -> Self {
        let caller = Caller {
            principal: "User:ANONYMOUS".into(),
            listener: ListenerKind::Controller,
            listener_name: "CONTROLLER".into(),
            host: None,
        };
        Self {
            link: PeerLink::new("node-2".into()),
            conn: Connection::new(ConnId(1), caller.into()),
            asked: Vec::new(),
            told: Vec::new(),
            closed: None,
        }
    }

    /// One whose requests are sent at once.
    fn ready() -> Self {
        let mut it = Self::new();
        it.connect();
        it.answer_versions(&offered());
        it
    }

    fn connect(&mut self) {
        let mut out = Vec::new();
        self.link.handle_connected(&mut out);
        self.perform(out);
    }

    fn send(&mut self, token: u64, request: impl Into<OutRequest>, deadline: Mono) {
        let mut out = Vec::new();
        self.link
            .handle_request(Token(token), request.into(), deadline, &mut out);
        self.perform(out);
    }

    fn perform(&mut self, outputs: Vec<LinkOutput>) {
        for output in outputs {
            assert_eq!(self.closed, None, "nothing comes after a close");
            match output {
                LinkOutput::Write(frame) => {
                    let whole = [frame.head, frame.body].concat();
                    let mut out = Vec::new();
                    self.conn
                        .handle_frame(Bytes::from(whole).slice(4..), &mut out);
                    self.connection(out);
                }
                LinkOutput::Answer(token, result) => self.told.push((token.0, result)),
                LinkOutput::Close(why) => self.closed = Some(why),
            }
        }
    }

    fn connection(&mut self, outputs: Vec<ConnOutput<MemFile>>) {
        for output in outputs {
            match output {
                ConnOutput::Request(incoming) => self.asked.push(incoming),
                ConnOutput::Write(pieces) => self.frame(&whole(pieces).slice(4..)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn frame(&mut self, frame: &Bytes) {
        let mut out = Vec::new();
        self.link.handle_frame(frame, &mut out);
        self.perform(out);
    }

    fn answer(&mut self, response: impl Into<Response>) {
        let asked = self.asked.remove(0);
        let body = response.into().encode(asked.version).expect("fits");
        let mut out = Vec::new();
        self.conn
            .handle_answer(asked.ticket, Answer::bytes(body), &mut out);
        self.connection(out);
    }

    fn answer_versions(&mut self, offered: &ApiVersionsResponse) {
        assert!(matches!(self.asked[0].request, Request::ApiVersions(_)));
        self.answer(offered.clone());
    }

    fn time(&mut self, now: Mono) {
        let mut out = Vec::new();
        self.link.handle_time(now, &mut out);
        self.perform(out);
    }

    fn close(&mut self) {
        let mut out = Vec::new();
        self.link.handle_closed(&mut out);
        self.perform(out);
    }
}

fn whole(pieces: Vec<Piece<MemFile>>) -> Bytes {
    let bytes = pieces.into_iter().map(|it| match it {
        Piece::Bytes(bytes) => bytes,
        Piece::Region(region) => panic!("{region:?}"),
    });
    Bytes::from(bytes.collect::<Vec<_>>().concat())
}

fn offered() -> ApiVersionsResponse {
    let range = |(api_key, max): (ApiKey, i16)| ApiVersion {
        api_key: api_key.raw(),
        min_version: 0,
        max_version: max,
    };
    let ranges = [
        (ApiKey::ApiVersions, 4),
        (ApiKey::AllocateProducerIds, 0),
        (ApiKey::BrokerHeartbeat, 1),
        (ApiKey::CreateTopics, 1),
    ];
    ApiVersionsResponse {
        api_keys: ranges.into_iter().map(range).collect(),
        ..ApiVersionsResponse::default()
    }
}

fn allocate() -> AllocateProducerIdsRequest {
    AllocateProducerIdsRequest::default()
}

fn allocated() -> Response {
    AllocateProducerIdsResponse::default().into()
}

/// A header of version 1 and a body.
fn frame_of(correlation_id: i32, body: &[u8]) -> Bytes {
    [&correlation_id.to_be_bytes()[..], &[0], body]
        .concat()
        .into()
}

fn gone(token: u64) -> (u64, Result<Response, PeerError>) {
    (token, Err(PeerError::Disconnected))
}

#[test]
fn what_was_asked_while_connecting_is_sent_once_versions_are_known() {
    let mut pair = Pair::new();
    pair.send(1, allocate(), LATE);
    pair.connect();
    pair.send(2, BrokerHeartbeatRequest::default(), LATE);
    assert_eq!(pair.asked.len(), 1, "nothing but ApiVersions yet");
    pair.answer_versions(&offered());
    assert_eq!(pair.asked[0].request, allocate().into());
    assert_eq!(pair.asked[0].client_id.as_deref(), Some("node-2"));
    pair.answer(allocated());
    assert_eq!(
        pair.asked[0].version, 1,
        "the highest that both sides speak"
    );
    assert_eq!(pair.told, [(1, Ok(allocated()))]);
    assert!(!pair.link.is_idle());
}

#[test]
fn a_peer_that_knows_only_old_versions_is_asked_at_one_of_them() {
    let mut pair = Pair::new();
    pair.send(1, allocate(), LATE);
    pair.connect();
    let old = ApiVersionsResponse {
        error_code: highwater_types::ErrorCode::UNSUPPORTED_VERSION,
        ..offered()
    };
    let body = old.to_bytes(0).expect("fits");
    pair.frame(&[&[0, 0, 0, 0], &body[..]].concat().into());
    assert_eq!(pair.closed, None);
    let fallback = offered().to_bytes(4).expect("fits");
    pair.frame(&[&[0, 0, 0, 1], &fallback[..]].concat().into());
    assert!(matches!(pair.link.state, State::Ready));
}

#[test]
fn a_request_that_the_peer_does_not_offer_is_refused_and_others_go_on() {
    let mut pair = Pair::ready();
    pair.send(1, MetadataRequest::default(), LATE);
    // The peer's highest is below our lowest.
    pair.send(2, CreateTopicsRequest::default(), LATE);
    let refused = |token| (token, Err(PeerError::Unsupported));
    assert_eq!(pair.told, [refused(1), refused(2)]);
    pair.send(3, allocate(), LATE);
    pair.answer(allocated());
    assert_eq!(pair.told.last(), Some(&(3, Ok(allocated()))));
}

#[test]
fn a_peer_that_offers_nothing_gets_no_request() {
    let mut pair = Pair::new();
    pair.send(1, allocate(), LATE);
    pair.connect();
    pair.answer_versions(&ApiVersionsResponse::default());
    assert_eq!(pair.told, [(1, Err(PeerError::Unsupported))]);
    assert_eq!(pair.closed, None);
}

#[test]
fn a_wrong_correlation_id_closes_the_connection() {
    let mut pair = Pair::ready();
    pair.send(1, allocate(), LATE);
    pair.send(2, allocate(), LATE);
    let body = allocated().encode(0).expect("fits");
    pair.frame(&frame_of(7, &body));
    assert_eq!(pair.told, [gone(1), gone(2)]);
    let wrong = ClientError::OutOfOrder {
        expected: 1,
        received: 7,
    };
    assert_eq!(pair.closed, Some(LinkError::Protocol(wrong)));
}

#[test]
fn garbage_is_told_to_its_sender_and_closes_the_connection() {
    for garbage in [&[][..], &[0xff; 3], &[0xff; 64]] {
        let mut pair = Pair::ready();
        pair.send(1, allocate(), LATE);
        pair.send(2, allocate(), LATE);
        pair.frame(&frame_of(1, garbage));
        assert_eq!(pair.told, [(1, Err(PeerError::Malformed)), gone(2)]);
        assert!(pair.closed.is_some());
        pair.link.handle_frame(&frame_of(2, &[]), &mut Vec::new());
    }
}

#[test]
fn garbage_instead_of_versions_closes_the_connection() {
    for garbage in [
        &[][..],
        &[0, 0, 0, 0],
        &[0, 0, 0, 0, 0xff, 0xff],
        &[0xff; 64],
    ] {
        let mut pair = Pair::new();
        pair.send(1, allocate(), LATE);
        pair.connect();
        pair.frame(&Bytes::copy_from_slice(garbage));
        assert_eq!(pair.told, [gone(1)], "{garbage:?}");
        assert!(pair.closed.is_some());
    }
}

#[test]
fn a_frame_that_nobody_asked_for_closes_the_connection() {
    let mut pair = Pair::ready();
    pair.frame(&frame_of(1, &[0; 12]));
    let unasked = LinkError::Protocol(ClientError::Unasked);
    assert_eq!(pair.closed, Some(unasked));
}

#[test]
fn whoever_waits_hears_of_a_broken_connection_once() {
    let mut pair = Pair::ready();
    pair.send(1, allocate(), LATE);
    pair.send(2, allocate(), LATE);
    pair.answer(allocated());
    pair.close();
    assert_eq!(pair.told, [(1, Ok(allocated())), gone(2)]);
    pair.send(3, allocate(), LATE);
    assert_eq!(
        pair.told.last(),
        Some(&gone(3)),
        "a closed link sends nothing"
    );
    pair.time(LATE);
    assert_eq!(pair.told.len(), 3);

    let mut refused = Pair::new();
    refused.send(1, allocate(), LATE);
    refused.close();
    assert_eq!(refused.told, [gone(1)]);
}

#[test]
fn a_silent_peer_loses_its_connection() {
    let mut pair = Pair::ready();
    pair.send(1, allocate(), Mono::from_micros(20));
    pair.send(2, allocate(), LATE);
    assert_eq!(pair.link.next_deadline(), Some(Mono::from_micros(20)));
    pair.time(Mono::from_micros(19));
    assert_eq!(pair.told, []);
    pair.time(Mono::from_micros(20));
    assert_eq!(pair.told, [(1, Err(PeerError::TimedOut)), gone(2)]);
    assert_eq!(pair.closed, Some(LinkError::Silent));
}

#[test]
fn one_that_is_late_behind_another_only_hears_of_it() {
    let mut pair = Pair::ready();
    pair.send(1, allocate(), LATE);
    pair.send(2, allocate(), Mono::from_micros(20));
    pair.time(Mono::from_micros(30));
    assert_eq!(pair.told, [(2, Err(PeerError::TimedOut))]);
    assert_eq!(pair.closed, None);
    pair.answer(allocated());
    pair.answer(allocated());
    assert_eq!(pair.told.len(), 2, "the late answer is for nobody");
    assert!(pair.link.is_idle());
    assert_eq!(pair.link.next_deadline(), None);
}

#[test]
fn requests_time_out_while_the_connection_is_made() {
    let mut pair = Pair::new();
    pair.send(1, allocate(), Mono::from_micros(20));
    pair.send(2, allocate(), LATE);
    pair.time(Mono::from_micros(20));
    assert_eq!(pair.told, [(1, Err(PeerError::TimedOut))]);
    assert_eq!(pair.closed, None, "it is still being made");
    pair.connect();
    pair.time(LATE);
    assert_eq!(pair.closed, Some(LinkError::Silent), "no versions in time");
}

#[test]
fn what_waits_is_bounded() {
    let mut pair = Pair::new();
    let max = PeerLink::PENDING_MAX as u64;
    for token in 0..=max {
        pair.send(token, allocate(), LATE);
    }
    assert_eq!(pair.told, [gone(max)]);
}
