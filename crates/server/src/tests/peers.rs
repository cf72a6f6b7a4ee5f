//! A machine on a thread with real sockets that sends to other nodes.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;
use highwater_node::{Channel, Peer, PeerError, Token};
use highwater_protocol::messages::api_versions_response::ApiVersion;
use highwater_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use highwater_protocol::messages::{
    ApiVersionsResponse, FetchRequest, FetchResponse, ListGroupsRequest, ListGroupsResponse,
};
use highwater_protocol::{ApiKey, OutRequest, Response, supported_versions};

use super::*;

const FETCH: i16 = 18;
const LONG: Duration = Duration::from_secs(20);

struct ToSend {
    peer: Peer,
    channel: Channel,
    request: OutRequest,
    within: Millis,
}

/// Sends what the test wants sent, and tells what comes back.
struct Sending {
    wanted: Arc<Mutex<VecDeque<ToSend>>>,
    sent: u64,
    answers: Sender<(u64, Result<Response, PeerError>)>,
}

impl Machine<FileDisk> for Sending {
    fn step(&mut self, now: Now, input: Input<FileDisk>, out: &mut Vec<Effect<FileDisk>>) {
        if let Input::PeerAnswer { token, result } = input {
            let _test_ended = self.answers.send((token.0, result));
        }
        for to_send in self.wanted.lock().expect("lock").drain(..) {
            out.push(Effect::Send {
                peer: to_send.peer,
                channel: to_send.channel,
                token: Token(self.sent),
                request: to_send.request,
                deadline: now.mono.plus(to_send.within),
            });
            self.sent += 1;
        }
    }

    fn next_deadline(&self) -> Option<Mono> {
        None
    }
}

struct Node {
    shared: Arc<Shared>,
    wanted: Arc<Mutex<VecDeque<ToSend>>>,
    answers: Receiver<(u64, Result<Response, PeerError>)>,
}

impl Node {
    fn start() -> Self {
        let config = BrokerConfig::default();
        let settings = SocketSettings::new(&config);
        let (control, _control_mail) = mpsc::unbounded_channel();
        let (shard, mail) = mpsc::unbounded_channel();
        let (told, _) = mpsc::unbounded_channel();
        let memory = InboundMemory::new(settings.inbound_bytes_max);
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            node_id: NodeId::new(1),
            links: Links {
                control,
                shards: [shard].into(),
            },
            pools: Vec::new(),
            warmers: JobPool::new("cold-reads", 1),
            settings,
            quiet: Quiet::default(),
            told,
            stop: tokio::sync::Notify::default(),
        });
        let (tell, answers) = channel();
        let wanted = Arc::<Mutex<VecDeque<ToSend>>>::default();
        let machine = Sending {
            wanted: Arc::clone(&wanted),
            sent: 0,
            answers: tell,
        };
        start_machine(
            Arc::clone(&shared),
            MachineId::Shard(0),
            Box::new(machine),
            mail,
            BufferPool::new(memory, 1 << 20),
        )
        .expect("a thread");
        Self {
            shared,
            wanted,
            answers,
        }
    }

    fn send(&self, to: &str, channel: Channel, request: impl Into<OutRequest>, within: u64) {
        let (host, port) = to.rsplit_once(':').expect("an address");
        let peer = Peer {
            id: NodeId::new(2),
            host: host.into(),
            port: port.parse().expect("a port"),
            listener: ListenerKind::Broker,
        };
        self.wanted.lock().expect("lock").push_back(ToSend {
            peer,
            channel,
            request: request.into(),
            within: Millis::new(within),
        });
        let links = &self.shared.links;
        links.send(MachineId::Shard(0), Mail::Input(Input::Tick));
    }

    fn fetch(&self, to: &SocketAddr, within: u64) {
        let request = FetchRequest::default();
        self.send(&to.to_string(), Channel::Fetcher, request, within);
    }

    fn answer(&self) -> (u64, Result<Response, PeerError>) {
        self.answers.recv_timeout(LONG).expect("an answer")
    }

    fn failure(&self) -> PeerError {
        self.answer().1.expect_err("no answer")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.links.send_all(|| Mail::Exit);
    }
}

fn versions() -> Bytes {
    let range = |it: &highwater_protocol::ApiVersionRange| ApiVersion {
        api_key: it.api_key.raw(),
        min_version: it.min,
        max_version: it.max,
    };
    let both = [ListenerKind::Broker, ListenerKind::Controller].map(supported_versions);
    let answer = ApiVersionsResponse {
        api_keys: both.concat().iter().map(range).collect(),
        ..ApiVersionsResponse::default()
    };
    let (_, version) = ApiKey::ApiVersions.versions();
    Response::from(answer).encode(version).expect("fits")
}

/// The bodies that a peer answers, ApiVersions first on each connection.
fn peer(bodies: Vec<Option<Bytes>>) -> Server {
    let mut bodies = VecDeque::from(bodies);
    Server::start(&[], move || match bodies.pop_front().flatten() {
        Some(body) => Answer::bytes(body),
        None => Answer::close(),
    })
}

fn fetched(bytes: usize) -> (Response, Bytes) {
    let partition = PartitionData {
        high_watermark: 7,
        records: Some(pattern(bytes).into()),
        ..PartitionData::default()
    };
    let topic = FetchableTopicResponse {
        partitions: vec![partition],
        ..FetchableTopicResponse::default()
    };
    let answer = Response::from(FetchResponse {
        responses: vec![topic],
        ..FetchResponse::default()
    });
    let body = answer.encode(FETCH).expect("fits");
    (answer, body)
}

#[test]
fn answers_of_all_sizes_come_whole_and_in_order() {
    let sizes = [0, 1, 100_000, 10 << 20, 5, 11 << 20];
    let (answers, bodies): (Vec<_>, Vec<_>) = sizes.into_iter().map(fetched).unzip();
    let bodies = std::iter::once(versions()).chain(bodies);
    let server = peer(bodies.map(Some).collect());
    let node = Node::start();
    for _ in &answers {
        node.fetch(&server.address, 20_000);
    }
    for (nth, expected) in (0..).zip(answers) {
        let (token, answer) = node.answer();
        assert_eq!(token, nth);
        assert!(answer == Ok(expected), "answer {nth}");
    }
}

#[test]
fn each_channel_has_a_connection_of_its_own() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = silent.local_addr().expect("an address");
    let node = Node::start();
    let channels = [Channel::Fetcher, Channel::Lifecycle, Channel::Fetcher];
    for channel in channels {
        node.send(&at.to_string(), channel, FetchRequest::default(), 20_000);
    }
    let _both = [silent.accept(), silent.accept()];
    silent.set_nonblocking(true).expect("a socket");
    std::thread::sleep(Duration::from_millis(50));
    silent.accept().expect_err("no third one");
}

#[test]
fn who_cannot_be_reached_is_told_so_and_tried_again_with_the_next_request() {
    let node = Node::start();
    node.send(":9092", Channel::Others, FetchRequest::default(), 20_000);
    assert_eq!(node.failure(), PeerError::Disconnected, "no address");
    let (_, body) = fetched(10);
    let first = peer(vec![Some(versions())]);
    let at = first.address;
    drop(first);
    // The listener goes a moment later than its server, and takes connections until then.
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    node.fetch(&closed.expect("an address"), 20_000);
    assert_eq!(node.failure(), PeerError::Disconnected, "nobody listens");
    assert_ne!(at.port(), 0);
    let again = peer(vec![Some(versions()), None, Some(versions()), Some(body)]);
    node.fetch(&again.address, 20_000);
    assert_eq!(node.failure(), PeerError::Disconnected, "closed instead");
    node.fetch(&again.address, 20_000);
    let (token, answer) = node.answer();
    assert_eq!(token, 3);
    answer.expect("a new connection");
}

#[test]
fn a_peer_that_offers_too_little_is_not_asked() {
    let listed = Response::from(ListGroupsResponse::default());
    let body = listed.encode(5).expect("fits");
    let server = peer(vec![Some(versions()), Some(body)]);
    let node = Node::start();
    let ask = |server: &Server| {
        let to = server.address.to_string();
        node.send(&to, Channel::Others, ListGroupsRequest::default(), 20_000);
    };
    ask(&server);
    assert_eq!(node.answer().1, Ok(listed));
    let bare = ApiVersionsResponse::default();
    let (_, version) = ApiKey::ApiVersions.versions();
    let bare = Response::from(bare).encode(version).expect("fits");
    let server = peer(vec![Some(bare)]);
    ask(&server);
    assert_eq!(node.failure(), PeerError::Unsupported);
}

/// What a peer sends as soon as somebody is there, before it closes.
fn raw(bytes: &'static [u8], closes: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().take(8) {
            let mut stream = stream.expect("a connection");
            let mut asked = [0; 4];
            stream.read_exact(&mut asked).expect("asks");
            stream.write_all(bytes).expect("sends");
            if !closes {
                std::mem::forget(stream);
            }
        }
    });
    at
}

#[test]
fn hostile_peers_cost_their_connection_only() {
    let node = Node::start();
    let cases: [(&[u8], bool); 6] = [
        (b"", true),
        (&[0, 0, 0, 9, 0, 0, 0, 0, 0], true),
        (&[0x7f, 0xff, 0xff, 0xff, 0, 0], false),
        (&[0xff, 0xff, 0xff, 0xff, 0, 0], false),
        (&[0, 0, 0, 4, 0, 0, 0, 7], false),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
    ];
    for (bytes, closes) in cases {
        let at = raw(bytes, closes);
        for _ in 0..2 {
            node.fetch(&at, 20_000);
            assert_eq!(node.failure(), PeerError::Disconnected, "{bytes:?}");
        }
    }
}

#[test]
fn a_silent_peer_times_out_and_a_later_request_gets_a_new_connection() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = silent.local_addr().expect("an address");
    let node = Node::start();
    let began = std::time::Instant::now();
    node.fetch(&at, 100);
    assert_eq!(node.failure(), PeerError::TimedOut);
    assert!(began.elapsed() >= Duration::from_millis(100));
    let (mut first, _) = silent.accept().expect("a connection");
    let mut asked = Vec::new();
    first.read_to_end(&mut asked).expect("it was closed");
    node.fetch(&at, 100);
    let _second = silent.accept().expect("a new one");
    assert_eq!(node.failure(), PeerError::TimedOut);
}
