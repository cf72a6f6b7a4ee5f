//! A few nodes of data shards, wired by hand: what one sends to another goes through `PeerLink` and
//! `Connection` as bytes. Metadata images are made by hand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use highwater_disk::{Blocking, DiskFile as _, MemDisk};
use highwater_metadata::MetadataImage;
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_metadata::image::{
    BrokerEndpoint, BrokerImage, ConfigResource, PartitionImage, ResourceKind, TopicImage,
};
use highwater_node::peers::{LinkOutput, PeerLink};
use highwater_node::{
    Caller, Changed, Channel, ConnId, ConnOutput, Connection, Effect, ImageUpdate, Input, Job,
    Machine as _, MachineId, Part, Peer, PeerError, Piece, Shard, ShardDir, ShardParams, Token,
    Work, owner_shard, run_job,
};
use highwater_protocol::client::OutFrame;
use highwater_protocol::messages::ProduceRequest;
use highwater_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use highwater_protocol::wire::{Message as _, Writer};
use highwater_protocol::{ApiKey, ListenerKind, RequestHeader, Response};
use highwater_types::{
    BrokerEpoch, DirectoryId, LeaderEpoch, Millis, Mono, NodeId, Now, Offset, PartitionEpoch,
    PartitionIndex, TopicId, TopicIdPartition, TopicName, Uuid, WallMs,
};

use crate::support::{dir_id, inventory, never};

/// A hook that may change an answer before the follower gets it.
pub(crate) type Tamper = Box<dyn FnMut(&mut Response)>;

/// The nodes, by id.
pub(crate) struct Cluster {
    pub(crate) now: Now,
    pub(crate) image: MetadataImage,
    pub(crate) hosts: BTreeMap<i32, Host>,
    queue: VecDeque<Event>,
    links: BTreeMap<LinkKey, Link>,
    /// Frames from the one node to the other stay on their way.
    pub(crate) held: BTreeSet<(i32, i32)>,
    /// What stays on its way.
    on_hold: VecDeque<Event>,
    pub(crate) tamper: Option<Tamper>,
    /// Bytes of frames that were delivered between nodes.
    pub(crate) frame_bytes: usize,
    topics_made: u64,
}

/// A node: its shards and its one disk.
pub(crate) struct Host {
    pub(crate) id: NodeId,
    pub(crate) disk: MemDisk,
    config: Arc<BrokerConfig>,
    pub(crate) shards: Vec<Shard<MemDisk>>,
    shards_count: u16,
    old_rule: bool,
    clean: bool,
    starts: u8,
    conns: BTreeMap<u64, Conn>,
    next_conn: u64,
    pub(crate) events: Vec<String>,
    /// Which jobs are held back, and those that are.
    pub(crate) hold_jobs: fn(&Work<MemDisk>) -> bool,
    held_jobs: VecDeque<(u16, Token, Job<MemDisk>)>,
    stopped: BTreeSet<u16>,
}

struct Conn {
    core: Connection<<MemDisk as highwater_disk::Disk>::File>,
    home: u16,
    frames: VecDeque<Bytes>,
    /// Whose answers it carries: of another node, or of a client.
    link: Option<LinkKey>,
    written: Vec<Bytes>,
}

type LinkKey = (i32, u16, Peer, Channel);

struct Link {
    core: PeerLink,
    /// The other end: node and connection there.
    to: Option<(i32, u64)>,
}

enum Event {
    Part(i32, MachineId, MachineId, Box<Part<MemDisk>>),
    Answer(i32, u16, Token, Result<Response, PeerError>),
    ToServer(LinkKey, Bytes),
    ToClient(LinkKey, Bytes),
}

impl Cluster {
    /// Nodes 1 to `count`, started, with this many shards each.
    pub(crate) fn new(count: i32, shards: u16, properties: &str) -> Self {
        Self::with_rule(count, shards, properties, false)
    }

    pub(crate) fn with_rule(count: i32, shards: u16, properties: &str, old_rule: bool) -> Self {
        let properties = parse_properties(properties).expect("properties");
        let (config, _) = BrokerConfig::new(&properties).expect("a legal config");
        let config = Arc::new(config);
        let mut cluster = Self {
            now: Now {
                mono: Mono::from_micros(5_000_000),
                wall: WallMs::new(1_700_000_000_000),
            },
            image: MetadataImage::default(),
            hosts: BTreeMap::new(),
            queue: VecDeque::new(),
            links: BTreeMap::new(),
            held: BTreeSet::new(),
            on_hold: VecDeque::new(),
            tamper: None,
            frame_bytes: 0,
            topics_made: 0,
        };
        for number in 1..=count {
            let host = Host {
                id: NodeId::new(number),
                disk: MemDisk::new(format!("/data{number}")),
                config: Arc::clone(&config),
                shards: Vec::new(),
                shards_count: shards,
                old_rule,
                clean: false,
                starts: 0,
                conns: BTreeMap::new(),
                next_conn: 0,
                events: Vec::new(),
                hold_jobs: never,
                held_jobs: VecDeque::new(),
                stopped: BTreeSet::new(),
            };
            cluster.hosts.insert(number, host);
            cluster.register(number);
        }
        for number in 1..=count {
            cluster.start(number);
        }
        cluster
    }

    /// Registers a node anew.
    pub(crate) fn register(&mut self, node: i32) {
        let before = self.image.broker(NodeId::new(node));
        let epoch = before.map_or(100, |it| it.epoch.raw() + 100);
        let broker = BrokerImage {
            id: NodeId::new(node),
            epoch: BrokerEpoch::new(epoch),
            endpoints: vec![BrokerEndpoint {
                name: "PLAINTEXT".to_owned(),
                host: format!("h{node}"),
                port: 9092,
                security_protocol: 0,
            }],
            directories: vec![dir_id(0)],
            ..BrokerImage::default()
        };
        Arc::make_mut(&mut self.image.brokers).insert(NodeId::new(node), Arc::new(broker));
    }

    pub(crate) fn start(&mut self, node: i32) {
        let host = self.hosts.get_mut(&node).expect("a node");
        host.start();
        self.publish_to(node, &Changed::Everything);
        self.run();
    }

    /// The process dies and its connections break; what it wrote stays in the page cache.
    pub(crate) fn kill(&mut self, node: i32) {
        self.host(node).disk.crash();
        self.gone(node);
    }

    /// The power goes: what was not synced is lost.
    pub(crate) fn power_off(&mut self, node: i32) {
        self.host(node).disk.power_off_losing_unsynced();
        self.gone(node);
    }

    fn gone(&mut self, node: i32) {
        let host = self.hosts.get_mut(&node).expect("a node");
        host.shards.clear();
        host.conns.clear();
        host.held_jobs.clear();
        host.clean = false;
        let is_there = |event: &Event| match event {
            Event::Part(at, ..) | Event::Answer(at, ..) => *at != node,
            Event::ToServer(key, _) | Event::ToClient(key, _) => {
                key.0 != node && key.2.id != NodeId::new(node)
            }
        };
        self.queue.retain(is_there);
        self.on_hold.retain(is_there);
        let is_of = |key: &&LinkKey| key.0 == node || key.2.id.raw() == node;
        let broken = self.links.keys().filter(is_of);
        let broken: Vec<LinkKey> = broken.cloned().collect();
        for key in broken {
            self.break_link(&key);
        }
        self.run();
    }

    /// All connections between two nodes break.
    pub(crate) fn reset(&mut self, from: i32, to: i32) {
        let broken = self.links.keys();
        let broken = broken.filter(|key| (key.0, key.2.id.raw()) == (from, to));
        let broken: Vec<LinkKey> = broken.cloned().collect();
        let of_a_link = |event: &Event| match event {
            Event::ToServer(key, _) | Event::ToClient(key, _) => !broken.contains(key),
            _ => true,
        };
        self.queue.retain(of_a_link);
        self.on_hold.retain(of_a_link);
        for key in &broken {
            self.break_link(key);
        }
        self.run();
    }

    fn break_link(&mut self, key: &LinkKey) {
        let Some(mut link) = self.links.remove(key) else {
            return;
        };
        let mut out = Vec::new();
        link.core.handle_closed(&mut out);
        self.perform_link(key, out);
        if let Some((node, conn)) = link.to {
            self.close_conn(node, conn);
        }
    }

    fn close_conn(&mut self, node: i32, conn: u64) {
        let Some(gone) = self
            .hosts
            .get_mut(&node)
            .and_then(|it| it.conns.remove(&conn))
        else {
            return;
        };
        self.step(node, gone.home, Input::Closed(ConnId(conn)));
    }

    /// A clean stop.
    pub(crate) fn stop(&mut self, node: i32) {
        let shards = self.host(node).shards_count;
        for shard in 0..shards {
            let part = Box::new(Part::Close);
            let (to, from) = (MachineId::Shard(shard), MachineId::Control);
            self.queue.push_back(Event::Part(node, to, from, part));
        }
        self.run();
        let host = self.host(node);
        assert_eq!(host.stopped.len(), usize::from(shards), "{:?}", host.events);
        self.gone(node);
        self.hosts.get_mut(&node).expect("a node").clean = true;
    }

    /// A byte in the middle of a file of a node that is stopped turns, and the node does not know
    /// that it stopped cleanly.
    pub(crate) fn rot(&mut self, node: i32, path: &str) {
        let host = self.hosts.get_mut(&node).expect("a node");
        let mut files = host.disk.files();
        let bytes = files.get_mut(std::path::Path::new(path)).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        host.disk = MemDisk::with_files(format!("/data{node}"), &files);
        host.clean = false;
    }

    pub(crate) fn host(&self, node: i32) -> &Host {
        self.hosts.get(&node).expect("a node")
    }

    // Metadata.

    /// Makes a topic; its replicas in order, the first leads.
    pub(crate) fn topic(
        &mut self,
        name: &str,
        partitions: i32,
        replicas: &[i32],
        configs: &[(&str, &str)],
    ) -> TopicId {
        self.topics_made += 1;
        let made = u128::from(self.topics_made);
        let id = TopicId::new(Uuid::from_u128(0xfeed_0000_0000_0000 + made));
        let topic_name = TopicName::new(name).expect("a legal name");
        let nodes: Vec<NodeId> = replicas.iter().copied().map(NodeId::new).collect();
        let mut topic = TopicImage {
            id,
            name: topic_name.clone(),
            partitions: highwater_metadata::SharedMap::new(),
        };
        for number in 0..partitions {
            let partition = PartitionImage {
                assigned_replicas: nodes.clone(),
                directories: vec![DirectoryId::UNASSIGNED; nodes.len()],
                in_sync_replicas: nodes.clone(),
                leader: nodes[0],
                leader_epoch: LeaderEpoch::ZERO,
                partition_epoch: PartitionEpoch::ZERO,
                ..PartitionImage::default()
            };
            let number = PartitionIndex::new(number);
            topic.partitions.insert(number, Arc::new(partition));
        }
        self.image.topics.insert(id, Arc::new(topic));
        self.image.topic_ids.insert(topic_name, id);
        let own = configs.iter();
        let own = own.map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let resource = ConfigResource {
            kind: ResourceKind::Topic,
            name: name.to_owned(),
        };
        self.image.configs.insert(resource, Arc::new(own.collect()));
        self.publish(&BTreeSet::from([id]));
        id
    }

    /// Changes a partition; nobody is told.
    pub(crate) fn change(
        &mut self,
        topic: TopicId,
        number: i32,
        change: impl FnOnce(&mut PartitionImage),
    ) {
        let image = self.image.topics.get(&topic).expect("a topic");
        let mut image = image.as_ref().clone();
        let number = PartitionIndex::new(number);
        let mut partition = image.partitions.get(&number).expect("one").as_ref().clone();
        change(&mut partition);
        partition.partition_epoch = partition.partition_epoch.next();
        image.partitions.insert(number, Arc::new(partition));
        self.image.topics.insert(topic, Arc::new(image));
    }

    /// Elects a leader with this ISR, and tells everybody.
    pub(crate) fn elect(&mut self, topic: TopicId, number: i32, leader: i32, isr: &[i32]) {
        self.elect_silently(topic, number, leader, isr);
        self.publish(&BTreeSet::from([topic]));
    }

    /// The same, and nobody is told.
    pub(crate) fn elect_silently(&mut self, topic: TopicId, number: i32, leader: i32, isr: &[i32]) {
        self.change(topic, number, |it| {
            it.leader = NodeId::new(leader);
            it.leader_epoch = it.leader_epoch.next();
            it.in_sync_replicas = isr.iter().copied().map(NodeId::new).collect();
        });
    }

    pub(crate) fn delete_topic(&mut self, topic: TopicId) {
        let image = self.image.topics.remove(&topic).expect("a topic");
        self.image.topic_ids.remove(&image.name);
        self.publish(&BTreeSet::from([topic]));
    }

    /// Tells every node that runs.
    pub(crate) fn publish(&mut self, topics: &BTreeSet<TopicId>) {
        let nodes: Vec<i32> = self.hosts.keys().copied().collect();
        for node in nodes {
            self.publish_to(node, &Changed::Topics(Arc::new(topics.clone())));
        }
        self.run();
    }

    /// Tells one node.
    pub(crate) fn publish_to(&mut self, node: i32, changed: &Changed) {
        let image = Arc::new(self.image.clone());
        for shard in 0..self.host(node).shards_count {
            let update = ImageUpdate {
                image: Arc::clone(&image),
                changed: changed.clone(),
            };
            let (to, from) = (MachineId::Shard(shard), MachineId::Control);
            let part = Box::new(Part::Image(update));
            self.queue.push_back(Event::Part(node, to, from, part));
        }
    }

    // Driving.

    /// Works until nothing is left to do at this moment.
    pub(crate) fn run(&mut self) {
        let mut left = 1_000_000_u32;
        while let Some(event) = self.queue.pop_front() {
            left = left.checked_sub(1).expect("it comes to rest");
            self.perform_event(event);
        }
    }

    /// Everybody hears of all metadata, and nothing is on its way for ever.
    pub(crate) fn heal(&mut self) {
        self.held.clear();
        self.queue.append(&mut self.on_hold);
        let nodes: Vec<i32> = self.hosts.keys().copied().collect();
        for node in nodes {
            self.publish_to(node, &Changed::Everything);
        }
        self.run();
    }

    /// Who leads, if anybody does.
    pub(crate) fn leader(&self, topic: TopicId, number: i32) -> i32 {
        let partition = PartitionIndex::new(number);
        let id = TopicIdPartition {
            topic_id: topic,
            partition,
        };
        self.image.partition(id).expect("one").leader.raw()
    }

    fn perform_event(&mut self, event: Event) {
        match event {
            Event::Part(node, to, from, part) => {
                if let MachineId::Shard(number) = to {
                    self.step(node, number, Input::Part { from, part: *part });
                }
            }
            Event::Answer(node, shard, token, mut result) => {
                if let (Ok(response), Some(tamper)) = (&mut result, &mut self.tamper) {
                    tamper(response);
                }
                self.step(node, shard, Input::PeerAnswer { token, result });
            }
            Event::ToServer(key, frame) if self.held.contains(&(key.0, key.2.id.raw())) => {
                self.on_hold.push_back(Event::ToServer(key, frame));
            }
            Event::ToClient(key, frame) if self.held.contains(&(key.2.id.raw(), key.0)) => {
                self.on_hold.push_back(Event::ToClient(key, frame));
            }
            Event::ToServer(key, frame) => {
                let to = self.links.get(&key).and_then(|it| it.to);
                let Some((node, conn)) = to else { return };
                self.frame_bytes += frame.len();
                let host = self.hosts.get_mut(&node).expect("a node");
                if let Some(conn) = host.conns.get_mut(&conn) {
                    conn.frames.push_back(frame);
                }
                self.feed(node, conn);
            }
            Event::ToClient(key, frame) => {
                self.frame_bytes += frame.len();
                let mut out = Vec::new();
                if let Some(link) = self.links.get_mut(&key) {
                    link.core.handle_frame(&frame, &mut out);
                }
                self.perform_link(&key, out);
            }
        }
    }

    /// What was held between two nodes comes, in order.
    pub(crate) fn release(&mut self, from: i32, to: i32) {
        self.held.remove(&(from, to));
        self.queue.append(&mut self.on_hold);
        self.run();
    }

    /// Time passes; shards and links get their ticks.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.now.mono.plus(Millis::new(ms));
        loop {
            self.run();
            let shards = self.hosts.values().flat_map(|it| &it.shards);
            let shards = shards.filter_map(Shard::next_deadline);
            let links = self.links.values();
            let links = links.filter_map(|it| it.core.next_deadline());
            let Some(next) = shards.chain(links).min().filter(|due| *due <= end) else {
                break;
            };
            self.set_time(next.max(self.now.mono));
            self.tick();
        }
        self.set_time(end);
    }

    fn set_time(&mut self, to: Mono) {
        let span = to.since(self.now.mono).as_u64();
        self.now.mono = to;
        let wall = self.now.wall.raw() + i64::try_from(span).expect("small");
        self.now.wall = WallMs::new(wall);
    }

    fn tick(&mut self) {
        let all: Vec<(i32, u16)> = self
            .hosts
            .iter()
            .flat_map(|(node, host)| (0..host.shards_count).map(|shard| (*node, shard)))
            .collect();
        for (node, shard) in all {
            self.step(node, shard, Input::Tick);
        }
        let keys: Vec<LinkKey> = self.links.keys().cloned().collect();
        for key in keys {
            let mut out = Vec::new();
            if let Some(link) = self.links.get_mut(&key) {
                link.core.handle_time(self.now.mono, &mut out);
            }
            self.perform_link(&key, out);
        }
    }

    /// Runs the jobs that a node held back.
    pub(crate) fn release_jobs(&mut self, node: i32) {
        let host = self.hosts.get_mut(&node).expect("a node");
        for (shard, token, job) in std::mem::take(&mut host.held_jobs) {
            let result = run_job(job, &Blocking::enter());
            self.step(node, shard, Input::JobDone { token, result });
        }
        self.run();
    }

    fn step(&mut self, node: i32, shard: u16, input: Input<MemDisk>) {
        let host = self.hosts.get_mut(&node).expect("a node");
        if host.stopped.contains(&shard) {
            return;
        }
        let Some(machine) = host.shards.get_mut(usize::from(shard)) else {
            return;
        };
        let mut out = Vec::new();
        machine.step(self.now, input, &mut out);
        for effect in out {
            self.perform(node, shard, effect);
        }
    }

    fn perform(&mut self, node: i32, shard: u16, effect: Effect<MemDisk>) {
        let host = self.hosts.get_mut(&node).expect("a node");
        match effect {
            Effect::Admitted(ticket) => {
                let mut out = Vec::new();
                if let Some(conn) = host.conns.get_mut(&ticket.conn.0) {
                    conn.core.handle_admitted(ticket, &mut out);
                    self.perform_conn(node, ticket.conn.0, out);
                }
            }
            Effect::Answer { ticket, answer } => {
                let mut out = Vec::new();
                if let Some(conn) = host.conns.get_mut(&ticket.conn.0) {
                    conn.core.handle_answer(ticket, answer, &mut out);
                    self.perform_conn(node, ticket.conn.0, out);
                    self.feed(node, ticket.conn.0);
                }
            }
            Effect::Part { to, part } => {
                let (from, part) = (MachineId::Shard(shard), Box::new(part));
                self.queue.push_back(Event::Part(node, to, from, part));
            }
            Effect::Job { token, job } => {
                if (host.hold_jobs)(&job.work) {
                    host.held_jobs.push_back((shard, token, job));
                } else {
                    let result = run_job(job, &Blocking::enter());
                    self.step(node, shard, Input::JobDone { token, result });
                }
            }
            Effect::Event(entry) => host.events.push(entry.to_string()),
            Effect::Stopped => drop(host.stopped.insert(shard)),
            Effect::Send {
                peer,
                channel,
                token,
                request,
                deadline,
            } => {
                let to = peer.id.raw();
                let is_there = peer.listener == ListenerKind::Broker
                    && !peer.host.is_empty()
                    && self.hosts.get(&to).is_some_and(|it| !it.shards.is_empty());
                if !is_there {
                    let result = Err(PeerError::Disconnected);
                    self.queue
                        .push_back(Event::Answer(node, shard, token, result));
                    return;
                }
                let key = (node, shard, peer, channel);
                let mut out = Vec::new();
                if !self.links.contains_key(&key) {
                    let to = self.connect(to, Some(key.clone()));
                    let core = PeerLink::new(format!("node-{node}"));
                    let link = Link { core, to: Some(to) };
                    self.links.insert(key.clone(), link);
                    let link = self.links.get_mut(&key).expect("made");
                    link.core.handle_connected(&mut out);
                }
                let link = self.links.get_mut(&key).expect("made");
                link.core.handle_request(token, request, deadline, &mut out);
                self.perform_link(&key, out);
            }
            Effect::Serving(_) => {}
        }
    }

    fn perform_link(&mut self, key: &LinkKey, out: Vec<LinkOutput>) {
        for output in out {
            match output {
                LinkOutput::Write(OutFrame { head, body }) => {
                    // Without its length.
                    let mut frame = head.get(4..).expect("a length").to_vec();
                    frame.extend_from_slice(&body);
                    let event = Event::ToServer(key.clone(), frame.into());
                    self.queue.push_back(event);
                }
                LinkOutput::Answer(token, result) => {
                    let event = Event::Answer(key.0, key.1, token, result);
                    self.queue.push_back(event);
                }
                LinkOutput::Close(_) => {
                    if let Some((node, conn)) = self.links.remove(key).and_then(|it| it.to) {
                        self.close_conn(node, conn);
                    }
                }
            }
        }
    }

    fn connect(&mut self, node: i32, link: Option<LinkKey>) -> (i32, u64) {
        let host = self.hosts.get_mut(&node).expect("a node");
        host.next_conn += 1;
        let caller = Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener: ListenerKind::Broker,
            listener_name: "PLAINTEXT".to_owned(),
            host: None,
        };
        let conn = Conn {
            core: Connection::new(ConnId(host.next_conn), Arc::new(caller)),
            home: u16::try_from(host.next_conn % u64::from(host.shards_count)).expect("small"),
            frames: VecDeque::new(),
            link,
            written: Vec::new(),
        };
        host.conns.insert(host.next_conn, conn);
        (node, host.next_conn)
    }

    /// Gives a connection the frames that it takes.
    fn feed(&mut self, node: i32, id: u64) {
        loop {
            let host = self.hosts.get_mut(&node).expect("a node");
            let Some(conn) = host.conns.get_mut(&id) else {
                return;
            };
            if !conn.core.wants_frames() {
                return;
            }
            let Some(frame) = conn.frames.pop_front() else {
                return;
            };
            let mut out = Vec::new();
            conn.core.handle_frame(frame, &mut out);
            self.perform_conn(node, id, out);
        }
    }

    fn perform_conn(
        &mut self,
        node: i32,
        id: u64,
        out: Vec<ConnOutput<<MemDisk as highwater_disk::Disk>::File>>,
    ) {
        for output in out {
            let host = self.hosts.get_mut(&node).expect("a node");
            let Some(conn) = host.conns.get_mut(&id) else {
                return;
            };
            match output {
                ConnOutput::Request(incoming) => {
                    let home = conn.home;
                    self.step(node, home, Input::Request(incoming));
                }
                ConnOutput::Write(pieces) => {
                    let frame = whole(pieces);
                    match conn.link.clone() {
                        Some(key) => {
                            let frame = frame.slice(4..);
                            self.queue.push_back(Event::ToClient(key, frame));
                        }
                        None => conn.written.push(frame),
                    }
                }
                ConnOutput::Mute(_) => {}
                ConnOutput::Close => {
                    let link = conn.link.clone();
                    match link {
                        Some(key) => self.break_link(&key),
                        None => self.close_conn(node, id),
                    }
                }
                ConnOutput::Event(entry) => host.events.push(entry.to_string()),
            }
        }
    }

    // Clients.

    /// Writes one batch; returns the connection, which may wait for its answer.
    pub(crate) fn send_produce(
        &mut self,
        node: i32,
        acks: i16,
        to: (&str, i32),
        records: Bytes,
    ) -> u64 {
        let (_, conn) = self.connect(node, None);
        let request = ProduceRequest {
            transactional_id: None,
            acks,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: to.0.to_owned(),
                partition_data: vec![PartitionProduceData {
                    index: to.1,
                    records: Some(records),
                }],
                ..TopicProduceData::default()
            }],
        };
        let header = RequestHeader {
            api_key: ApiKey::Produce.raw(),
            version: 12,
            correlation_id: 1,
            client_id: Some("test".to_owned()),
        };
        let mut w = Writer::new();
        header.encode(&mut w).expect("a legal header");
        w.put(&request.to_bytes(12).expect("legal"));
        let host = self.hosts.get_mut(&node).expect("a node");
        let connection = host.conns.get_mut(&conn).expect("connected");
        connection.frames.push_back(w.into_bytes());
        self.feed(node, conn);
        self.run();
        conn
    }

    /// The error code and base offset of an answered write.
    pub(crate) fn produced(&mut self, node: i32, conn: u64) -> Option<(i16, i64)> {
        let host = self.hosts.get_mut(&node)?;
        let frame = host.conns.get_mut(&conn)?.written.pop()?;
        // Length, correlation id, tags.
        let body = frame.slice(9..);
        let response = Response::decode(ApiKey::Produce, 12, &body).expect("an answer");
        let Response::Produce(response) = response else {
            panic!("{response:?}")
        };
        let row = &response.responses[0].partition_responses[0];
        Some((row.error_code.raw(), row.base_offset))
    }

    /// Writes one batch that must be taken at once, with acks=1.
    pub(crate) fn produce(&mut self, node: i32, to: (&str, i32), records: Bytes) -> i64 {
        let conn = self.send_produce(node, 1, to, records);
        let (error, base_offset) = self.produced(node, conn).expect("an answer");
        assert_eq!(error, 0, "{:?}", self.host(node).events);
        base_offset
    }

    // What is there.

    pub(crate) fn id(&self, topic: &str, number: i32) -> TopicIdPartition {
        let topic_id = self.image.topic_by_name(topic).expect("a topic").id;
        TopicIdPartition {
            topic_id,
            partition: PartitionIndex::new(number),
        }
    }

    /// Log start, high watermark and log end offset.
    pub(crate) fn offsets(&self, node: i32, topic: &str, number: i32) -> [i64; 3] {
        let online = self.online(node, topic, number);
        let log = online.log();
        [
            log.log_start_offset(),
            online.high_watermark(),
            log.log_end_offset(),
        ]
        .map(Offset::raw)
    }

    fn online(
        &self,
        node: i32,
        topic: &str,
        number: i32,
    ) -> &highwater_node::shard::partition::OnlinePartition<MemDisk> {
        let id = self.id(topic, number);
        let host = self.host(node);
        let shard = &host.shards[usize::from(owner_shard(id, host.shards_count))];
        let partition = shard.partitions().find(id).expect("owned");
        partition.online().expect("online")
    }

    /// The epoch history of a log.
    pub(crate) fn epochs(&self, node: i32, topic: &str, number: i32) -> Vec<(i32, i64)> {
        let online = self.online(node, topic, number);
        let entries = online.log().epochs().entries.iter();
        entries
            .map(|it| (it.epoch.raw(), it.start_offset.raw()))
            .collect()
    }

    /// All bytes of a log, in order, wherever its segments begin.
    pub(crate) fn bytes(&self, node: i32, topic: &str, number: i32) -> Vec<u8> {
        let dir = format!("{topic}-{number}/");
        let disk = &self.host(node).disk;
        let files = disk.files().into_iter();
        let logs = files.filter(|(path, _)| {
            let path = path.display().to_string();
            path.starts_with(&dir) && path.ends_with(".log")
        });
        logs.flat_map(|(_, bytes)| bytes).collect()
    }

    pub(crate) fn has_event(&self, node: i32, part: &str) -> bool {
        self.host(node).events.iter().any(|it| it.contains(part))
    }
}

impl Host {
    fn start(&mut self) {
        self.starts += 1;
        self.stopped.clear();
        let shards = 0..self.shards_count;
        self.shards = shards.map(|number| self.make_shard(number)).collect();
    }

    fn make_shard(&self, number: u16) -> Shard<MemDisk> {
        let session = self.disk.session();
        let (found, leftovers) = inventory(&session, number, self.shards_count);
        let dir = ShardDir {
            disk: session,
            id: dir_id(0),
            clean_shutdown: self.clean,
            found,
            leftovers: if number == 0 { leftovers } else { Vec::new() },
        };
        Shard::new(ShardParams {
            number,
            shards: self.shards_count,
            node_id: self.id,
            cluster_id: "cluster".into(),
            kraft_version: 1,
            broker_config: Arc::clone(&self.config),
            trace: true,
            old_rule: self.old_rule,
            dirs: vec![dir],
            seed: [self.starts; 32],
        })
    }
}

/// A frame's bytes; regions are read now.
fn whole(pieces: Vec<Piece<<MemDisk as highwater_disk::Disk>::File>>) -> Bytes {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(part) => bytes.extend_from_slice(&part),
            Piece::Region(region) => {
                let mut part = vec![0; usize::try_from(region.len).expect("small")];
                let read = region.file.read_at(region.position, &mut part);
                part.truncate(read.expect("readable"));
                bytes.extend_from_slice(&part);
            }
        }
    }
    bytes.into()
}
