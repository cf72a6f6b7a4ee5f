//! Drives a whole node: control and shards, jobs, the loopback, and client connections, all on
//! memory disks. Effects are performed in order; jobs run at once unless they are held back.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use highwater_disk::{Blocking, Disk as _, MemDisk};
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_node::{
    Authorizer, BootError, Caller, Channel, ConnId, ConnOutput, Connection, Control, Effect,
    FormatOptions, FormatVoters, Input, Job, Loopback, Machine as _, MachineId, Node, NodeConfig,
    Part, Peer, PeerError, Piece, Shard, Token, Work, boot, format, run_job,
};
use highwater_protocol::wire::Writer;
use highwater_protocol::{
    ApiKey, ListenerKind, OutRequest, Request, RequestHeader, Response, response_header_version,
    supported_versions,
};
use highwater_types::{Millis, Mono, NodeId, Now, WallMs};

pub(crate) type File = <MemDisk as highwater_disk::Disk>::File;

pub(crate) const ONE_NODE: &str = "process.roles=broker,controller\nnode.id=1\nlog.dirs=a\n\
    listeners=CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:20193\n\
    listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
    inter.broker.listener.name=CLIENT\ncontroller.listener.names=CONTROLLER\n";

pub(crate) fn config(extra: &str) -> NodeConfig {
    let properties = parse_properties(&format!("{ONE_NODE}{extra}")).expect("well formed");
    let (broker, _) = BrokerConfig::new(&properties).expect("values");
    NodeConfig::new(broker).expect("a node").with_trace()
}

pub(crate) fn options() -> FormatOptions {
    FormatOptions {
        cluster_id: Some("sFZgKj3kQfiXtPP7KgFf4w".to_owned()),
        voters: FormatVoters::Standalone,
        ignore_formatted: false,
        features: Vec::new(),
    }
}

pub(crate) fn formatted(config: &NodeConfig) -> Vec<MemDisk> {
    let dirs: Vec<_> = config.log_dirs.iter().map(MemDisk::new).collect();
    format(
        config,
        &dirs,
        &options(),
        Now::default(),
        [9; 32],
        &Blocking::enter(),
    )
    .expect("formatted");
    dirs
}

/// The disks of a fixture.
pub(crate) fn fixture(set: &str, node: &str) -> Vec<MemDisk> {
    let files = highwater_fixtures::kafka_data(set);
    let inside = Path::new("data").join(node);
    let files = files.iter().filter_map(|(path, bytes)| {
        let path = path.strip_prefix(&inside).ok()?;
        Some((path.to_path_buf(), bytes.clone()))
    });
    let files: BTreeMap<PathBuf, Vec<u8>> = files.collect();
    vec![MemDisk::with_files("a", &files)]
}

pub(crate) struct Host {
    pub(crate) control: Control<MemDisk>,
    pub(crate) shards: Vec<Shard<MemDisk>>,
    pub(crate) now: Now,
    pub(crate) events: Vec<String>,
    pub(crate) serving: bool,
    /// The kinds of listeners that are open.
    pub(crate) opened: Vec<ListenerKind>,
    pub(crate) stopped: bool,
    parts: VecDeque<(MachineId, MachineId, Part<MemDisk>)>,
    loopbacks: BTreeMap<Channel, Link>,
    clients: BTreeMap<u64, Client>,
    next_correlation: i32,
    /// Jobs of this kind wait in `held`.
    pub(crate) hold: fn(&Work<MemDisk>) -> bool,
    pub(crate) held: VecDeque<(MachineId, Token, Job<MemDisk>)>,
    pub(crate) syncs: usize,
    /// Heartbeats that the controller got from its own broker.
    pub(crate) heartbeats: usize,
    /// How many of the next AssignReplicasToDirs get lost.
    pub(crate) lose_assignments: usize,
    node_id: NodeId,
    /// Requests to other nodes, for whoever carries them.
    pub(crate) sent: VecDeque<Sent>,
}

/// A request to another node.
pub(crate) struct Sent {
    pub(crate) from: MachineId,
    pub(crate) peer: Peer,
    pub(crate) channel: Channel,
    pub(crate) token: Token,
    pub(crate) request: OutRequest,
    pub(crate) deadline: Mono,
}

struct Client {
    home: MachineId,
    core: Connection<File>,
    written: VecDeque<Bytes>,
    closed: bool,
}

struct Link {
    ends: Loopback,
    core: Connection<File>,
}

/// The connection id of a channel to itself.
const fn loopback_id(channel: Channel) -> ConnId {
    ConnId(u64::MAX - channel as u64)
}

fn loopback_of(id: ConnId) -> Option<Channel> {
    Channel::ALL.into_iter().find(|it| loopback_id(*it) == id)
}

impl Host {
    pub(crate) fn start(config: &NodeConfig, dirs: &[MemDisk]) -> Self {
        Self::try_start(config, dirs).unwrap_or_else(|why| panic!("{why}"))
    }

    pub(crate) fn try_start(config: &NodeConfig, dirs: &[MemDisk]) -> Result<Self, BootError> {
        let now = Now {
            mono: Mono::from_micros(1_000_000),
            wall: WallMs::new(1_796_100_000_000),
        };
        Self::start_at(config, dirs, now)
    }

    pub(crate) fn start_at(
        config: &NodeConfig,
        dirs: &[MemDisk],
        now: Now,
    ) -> Result<Self, BootError> {
        let dirs: Vec<MemDisk> = dirs.iter().map(MemDisk::session).collect();
        // Each start has randomness of its own, as incarnations must differ.
        static STARTS: AtomicU8 = AtomicU8::new(1);
        let seed = [STARTS.fetch_add(1, Ordering::Relaxed); 32];
        let node = boot(config.clone(), dirs, now, seed, &Blocking::enter())?;
        let Node {
            control,
            shards,
            events,
            ..
        } = node;
        Ok(Self {
            control,
            shards,
            now,
            events: events.iter().map(ToString::to_string).collect(),
            serving: false,
            opened: Vec::new(),
            stopped: false,
            parts: VecDeque::new(),
            loopbacks: Channel::ALL
                .map(|channel| {
                    let ends = Loopback::default();
                    let core = Connection::new(loopback_id(channel), Loopback::caller());
                    (channel, Link { ends, core })
                })
                .into(),
            clients: BTreeMap::new(),
            next_correlation: 0,
            hold: |_| false,
            held: VecDeque::new(),
            syncs: 0,
            heartbeats: 0,
            lose_assignments: 0,
            node_id: config.node_id,
            sent: VecDeque::new(),
        })
    }

    /// The same with a controller that asks another authorizer.
    pub(crate) fn authorized_by(self, authorizer: Arc<dyn Authorizer>) -> Self {
        let control = self.control.with_authorizer(authorizer);
        Self { control, ..self }
    }

    /// Starts, and runs until clients are served.
    pub(crate) fn serving(config: &NodeConfig, dirs: &[MemDisk]) -> Self {
        let mut host = Self::start(config, dirs);
        host.run_until_serving();
        host
    }

    pub(crate) fn run_until_serving(&mut self) {
        assert!(self.try_serve(1000), "never served: {:?}", self.events);
    }

    /// Runs for at most `steps` times 10 ms; says whether clients are served.
    pub(crate) fn try_serve(&mut self, steps: usize) -> bool {
        self.tick();
        for _ in 0..steps {
            if self.serving || self.stopped {
                break;
            }
            self.advance(Millis::new(10));
        }
        self.serving && !self.stopped
    }

    fn machines(&self) -> Vec<MachineId> {
        let shards = 0..u16::try_from(self.shards.len()).expect("a few");
        std::iter::once(MachineId::Control)
            .chain(shards.map(MachineId::Shard))
            .collect()
    }

    fn deadline(&self, machine: MachineId) -> Option<Mono> {
        match machine {
            MachineId::Control => self.control.next_deadline(),
            MachineId::Shard(number) => self.shards[usize::from(number)].next_deadline(),
        }
    }

    /// Ticks every machine that wants it, until none does.
    pub(crate) fn tick(&mut self) {
        for _ in 0..1000 {
            let due = self
                .machines()
                .into_iter()
                .find(|id| self.deadline(*id).is_some_and(|at| at <= self.now.mono));
            match due {
                Some(id) if !self.stopped => self.step(id, Input::Tick),
                _ => return,
            }
        }
        panic!("ticks never end");
    }

    pub(crate) fn advance(&mut self, span: Millis) {
        let wall = i64::try_from(span.as_u64()).expect("a short span");
        self.now.mono = self.now.mono.plus(span);
        self.now.wall = WallMs::new(self.now.wall.raw() + wall);
        self.tick();
    }

    /// Advances in steps that are short enough for heartbeats.
    pub(crate) fn pass(&mut self, span: Millis) {
        let mut left = span.as_u64();
        while left > 0 {
            let step = left.min(500);
            self.advance(Millis::new(step));
            left -= step;
        }
    }

    pub(crate) fn step(&mut self, machine: MachineId, input: Input<MemDisk>) {
        let mut out = Vec::new();
        match machine {
            MachineId::Control => self.control.step(self.now, input, &mut out),
            MachineId::Shard(number) => {
                self.shards[usize::from(number)].step(self.now, input, &mut out);
            }
        }
        self.perform(machine, out);
        while let Some((from, to, part)) = self.parts.pop_front() {
            self.step(to, Input::Part { from, part });
        }
    }

    fn perform(&mut self, machine: MachineId, effects: Vec<Effect<MemDisk>>) {
        for effect in effects {
            match effect {
                Effect::Admitted(ticket) => {
                    let mut out = Vec::new();
                    let client = self.clients.get_mut(&ticket.conn.0);
                    client
                        .expect("a client")
                        .core
                        .handle_admitted(ticket, &mut out);
                    self.connection(ticket.conn, out);
                }
                Effect::Answer { ticket, answer } => {
                    let mut out = Vec::new();
                    if let Some(channel) = loopback_of(ticket.conn) {
                        let link = self.loopbacks.get_mut(&channel).expect("a link");
                        link.core.handle_answer(ticket, answer, &mut out);
                    } else if let Some(client) = self.clients.get_mut(&ticket.conn.0) {
                        client.core.handle_answer(ticket, answer, &mut out);
                    }
                    self.connection(ticket.conn, out);
                }
                Effect::Part { to, part } => self.parts.push_back((machine, to, part)),
                Effect::Send {
                    peer,
                    channel,
                    token,
                    request,
                    ..
                } if peer.is_loopback(self.node_id) => {
                    self.send(machine, channel, token, &request);
                }
                Effect::Send {
                    peer,
                    channel,
                    token,
                    request,
                    deadline,
                } => self.sent.push_back(Sent {
                    from: machine,
                    peer,
                    channel,
                    token,
                    request,
                    deadline,
                }),
                Effect::Job { token, job } => {
                    self.syncs += usize::from(matches!(job.work, Work::SyncLog(_)));
                    if (self.hold)(&job.work) {
                        self.held.push_back((machine, token, job));
                    } else {
                        let result = run_job(job, &Blocking::enter());
                        self.step(machine, Input::JobDone { token, result });
                    }
                }
                Effect::Event(entry) => self.events.push(entry.to_string()),
                Effect::Serving(kind) => {
                    self.opened.push(kind);
                    self.serving |= kind == ListenerKind::Broker;
                }
                Effect::Stopped => self.stopped |= machine == MachineId::Control,
            }
        }
    }

    pub(crate) fn release(&mut self) {
        self.hold = |_| false;
        while let Some((machine, token, job)) = self.held.pop_front() {
            let result = run_job(job, &Blocking::enter());
            self.step(machine, Input::JobDone { token, result });
        }
    }

    fn send(&mut self, machine: MachineId, channel: Channel, token: Token, request: &OutRequest) {
        let assigns = matches!(request, OutRequest::AssignReplicasToDirs(_));
        if assigns && self.lose_assignments > 0 {
            self.lose_assignments -= 1;
            let result = Err(PeerError::Disconnected);
            return self.step(machine, Input::PeerAnswer { token, result });
        }
        let link = self.loopbacks.get_mut(&channel).expect("a link");
        match link.ends.request_frame((machine, token), request) {
            Ok(frame) => {
                let mut out = Vec::new();
                link.core.handle_frame(frame, &mut out);
                self.connection(loopback_id(channel), out);
            }
            Err(why) => self.step(
                machine,
                Input::PeerAnswer {
                    token,
                    result: Err(why),
                },
            ),
        }
    }

    fn connection(&mut self, conn: ConnId, outputs: Vec<ConnOutput<File>>) {
        for output in outputs {
            match output {
                ConnOutput::Request(incoming) => {
                    let is_own = loopback_of(conn).is_some();
                    let beats = matches!(incoming.request, Request::BrokerHeartbeat(_));
                    self.heartbeats += usize::from(is_own && beats);
                    let home = self
                        .clients
                        .get(&conn.0)
                        .map_or(MachineId::Control, |it| it.home);
                    self.step(home, Input::Request(incoming));
                }
                ConnOutput::Write(frame) if loopback_of(conn).is_some() => {
                    let channel = loopback_of(conn).expect("a link's");
                    let link = self.loopbacks.get_mut(&channel).expect("a link");
                    let answered = link.ends.handle_frame(frame);
                    let ((machine, token), result) = answered.expect("somebody waits");
                    self.step(machine, Input::PeerAnswer { token, result });
                }
                ConnOutput::Write(frame) => {
                    let bytes = gather(frame);
                    self.clients
                        .get_mut(&conn.0)
                        .expect("a client")
                        .written
                        .push_back(bytes);
                }
                ConnOutput::Mute(_) => {}
                ConnOutput::Close => {
                    if let Some(client) = self.clients.get_mut(&conn.0) {
                        client.closed = true;
                    }
                }
                ConnOutput::Event(entry) => self.events.push(entry.to_string()),
            }
        }
    }

    /// Opens a connection to a listener of `kind`; client ones live on shard 0.
    pub(crate) fn connect(&mut self, kind: ListenerKind) -> u64 {
        let id = self.clients.len() as u64;
        let home = match kind {
            ListenerKind::Broker => MachineId::Shard(0),
            ListenerKind::Controller => MachineId::Control,
        };
        let caller = Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener: kind,
            listener_name: match kind {
                ListenerKind::Broker => "CLIENT".to_owned(),
                ListenerKind::Controller => "CONTROLLER".to_owned(),
            },
            host: None,
        };
        let core = Connection::new(ConnId(id), caller.into());
        self.clients.insert(
            id,
            Client {
                home,
                core,
                written: VecDeque::new(),
                closed: false,
            },
        );
        id
    }

    /// Sends a request; its answer comes with [`Host::answer`].
    pub(crate) fn ask(&mut self, client: u64, request: &Request, version: i16) {
        let body = request.encode(version).expect("fits");
        self.ask_encoded(client, request.api_key(), version, body);
    }

    pub(crate) fn ask_encoded(&mut self, client: u64, key: ApiKey, version: i16, body: Bytes) {
        let header = RequestHeader {
            api_key: key.raw(),
            version,
            correlation_id: self.next_correlation,
            client_id: Some("test".to_owned()),
        };
        self.next_correlation += 1;
        let mut head = Writer::new();
        header.encode(&mut head).expect("a header");
        let mut frame = BytesMut::new();
        frame.put(head.into_bytes());
        frame.put(body);
        let mut out = Vec::new();
        let it = self.clients.get_mut(&client).expect("a client");
        it.core.handle_frame(frame.freeze(), &mut out);
        self.connection(ConnId(client), out);
    }

    pub(crate) fn answer(
        &mut self,
        client: u64,
        request: &Request,
        version: i16,
    ) -> Option<Response> {
        self.answer_to(client, request.api_key(), version)
    }

    pub(crate) fn answer_to(&mut self, client: u64, key: ApiKey, version: i16) -> Option<Response> {
        let client = self.clients.get_mut(&client).expect("a client");
        let mut frame = client.written.pop_front()?;
        let header = 8 + usize::from(response_header_version(key, version) == 1);
        frame.advance(header);
        Some(Response::decode(key, version, &frame).expect("an answer"))
    }

    /// Whether the connection was closed by the node.
    pub(crate) fn is_closed(&self, client: u64) -> bool {
        self.clients[&client].closed
    }

    /// The other end of a connection goes.
    pub(crate) fn hang_up(&mut self, client: u64) {
        let it = self.clients.get_mut(&client).expect("a client");
        it.closed = true;
        let home = it.home;
        self.step(home, Input::Closed(ConnId(client)));
    }

    /// A request at its highest version and the answer to it, by a connection of its own.
    pub(crate) fn call(&mut self, kind: ListenerKind, request: impl Into<Request>) -> Response {
        let request = request.into();
        let offered = supported_versions(kind).iter();
        let range = offered
            .clone()
            .find(|it| it.api_key == request.api_key())
            .expect("offered");
        let client = self.connect(kind);
        self.ask(client, &request, range.max);
        for _ in 0..100 {
            if let Some(response) = self.answer(client, &request, range.max) {
                return response;
            }
            assert!(!self.clients[&client].closed, "closed: {:?}", self.events);
            self.advance(Millis::new(10));
        }
        panic!("no answer to {request:?}");
    }

    /// Stops as the process would on a signal.
    pub(crate) fn stop(mut self) -> Vec<String> {
        if self.try_stop(1000) {
            return self.events;
        }
        let tail = self.events.len().saturating_sub(20);
        panic!(
            "never stopped: {:#?}\n{:?}",
            &self.events[tail..],
            self.control.phase()
        );
    }
}

impl Host {
    /// Asks to stop and runs for at most `steps` times 10 ms; says whether it stopped.
    pub(crate) fn try_stop(&mut self, steps: usize) -> bool {
        for machine in self.machines() {
            if !self.stopped {
                self.step(machine, Input::Stop);
            }
        }
        for _ in 0..steps {
            if self.stopped {
                break;
            }
            self.advance(Millis::new(10));
        }
        self.stopped
    }
}

fn gather(frame: Vec<Piece<File>>) -> Bytes {
    use highwater_disk::DiskFile as _;
    let mut bytes = BytesMut::new();
    for piece in frame {
        match piece {
            Piece::Bytes(it) => bytes.put(it),
            Piece::Region(region) => {
                let mut buf = vec![0; usize::try_from(region.len).expect("small")];
                let read = region
                    .file
                    .read_at(region.position, &mut buf)
                    .expect("readable");
                assert_eq!(read, buf.len(), "a short region");
                bytes.put(buf.as_slice());
            }
        }
    }
    bytes.freeze()
}

/// The bytes of a file of the first log directory.
pub(crate) fn file(dirs: &[MemDisk], path: &str) -> Option<Vec<u8>> {
    dirs[0].read(Path::new(path)).expect("readable")
}
