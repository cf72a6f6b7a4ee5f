//! A tiny driver for data shards: one loop performs effects in order, jobs run in place or are
//! held back, metadata images are made by hand instead of by a control machine.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::indexing_slicing,
    reason = "each test file uses a part of it, and a test may panic"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use highwater_disk::{Blocking, Disk as _, DiskFile as _, MemDisk};
use highwater_log::checkpoint::offsets::{
    HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE,
};
use highwater_log::checkpoint::{OffsetCheckpoint, partition_metadata};
use highwater_metadata::MetadataImage;
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_metadata::image::{
    BrokerEndpoint, BrokerImage, ConfigResource, PartitionImage, ResourceKind, TopicImage,
};
use highwater_node::{
    Caller, Changed, ConnId, ConnOutput, Connection, Effect, FoundLog, FoundTopic, ImageUpdate,
    Input, Job, Level, LogDirNumber, Machine as _, MachineId, Part, PeerError, Piece, Shard,
    ShardDir, ShardParams, Token, Work, owner_shard, run_job,
};
use highwater_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use highwater_protocol::messages::produce_response::PartitionProduceResponse;
use highwater_protocol::messages::{ProduceRequest, ProduceResponse};
use highwater_protocol::wire::{Message as _, Writer};
use highwater_protocol::{
    ApiKey, ListenerKind, OutRequest, RequestHeader, Response, response_header_version,
};
use highwater_records::{BatchBuilder, BatchOptions, ProducerStamp};
use highwater_types::{
    DirectoryId, LeaderEpoch, Millis, Mono, NodeId, Now, Offset, PartitionEpoch, PartitionIndex,
    ProducerEpoch, ProducerId, TopicId, TopicIdPartition, TopicName, TopicPartition, Uuid, WallMs,
};

pub const NODE: NodeId = NodeId::new(1);

/// Data shards of one node with their disks and connections.
pub struct World {
    pub disks: Vec<MemDisk>,
    pub now: Now,
    pub image: MetadataImage,
    pub config: Arc<BrokerConfig>,
    shards_count: u16,
    pub shards: Vec<Shard<MemDisk>>,
    parts: VecDeque<(MachineId, MachineId, Part<MemDisk>)>,
    /// Jobs that are held back, by shard.
    pub held: VecDeque<(u16, Token, Job<MemDisk>)>,
    /// Answers are not sent while set: their regions are read late.
    pub hold_writes: bool,
    /// Steps of shards since the start.
    pub steps: u64,
    /// Which jobs are held back.
    pub hold: fn(&Work<MemDisk>) -> bool,
    conns: BTreeMap<u64, Conn>,
    /// The shard that each new connection lands on.
    pub next_home: u16,
    next_conn: u64,
    next_correlation_id: i32,
    /// Journal lines, and what was told to control.
    pub events: Vec<String>,
    /// Those of them that people are told.
    pub loud: Vec<String>,
    pub stopped: BTreeSet<u16>,
    /// What shards sent to the controller, and nobody has answered.
    pub sent: Vec<(u16, Token, OutRequest)>,
    clean: bool,
    starts: u8,
    topics_made: u64,
}

struct Conn {
    home: u16,
    core: Connection<<MemDisk as highwater_disk::Disk>::File>,
    waiting_frames: VecDeque<Bytes>,
    written: VecDeque<Bytes>,
    /// Pieces that were not sent yet.
    unsent: VecDeque<Vec<Piece<<MemDisk as highwater_disk::Disk>::File>>>,
    closed: bool,
}

pub fn never(_: &Work<MemDisk>) -> bool {
    false
}

pub fn syncs(work: &Work<MemDisk>) -> bool {
    matches!(work, Work::SyncLog(_))
}

pub fn prepares(work: &Work<MemDisk>) -> bool {
    matches!(work, Work::PrepareBatch(_))
}

pub fn everything(_: &Work<MemDisk>) -> bool {
    true
}

impl World {
    /// One shard, one log directory, no topics, started.
    pub fn new() -> Self {
        Self::with(1, 1, "")
    }

    pub fn with(shards: u16, dirs: u16, properties: &str) -> Self {
        let properties = parse_properties(properties).expect("properties");
        let (config, _) = BrokerConfig::new(&properties).expect("a legal config");
        let now = Now {
            mono: Mono::from_micros(5_000_000),
            wall: WallMs::new(1_700_000_000_000),
        };
        let mut world = Self {
            disks: (0..dirs)
                .map(|dir| MemDisk::new(format!("/data{dir}")))
                .collect(),
            now,
            image: MetadataImage::default(),
            config: Arc::new(config),
            shards_count: shards,
            shards: Vec::new(),
            parts: VecDeque::new(),
            held: VecDeque::new(),
            hold_writes: false,
            steps: 0,
            hold: never,
            conns: BTreeMap::new(),
            next_home: 0,
            next_conn: 0,
            next_correlation_id: 0,
            events: Vec::new(),
            loud: Vec::new(),
            stopped: BTreeSet::new(),
            sent: Vec::new(),
            clean: false,
            starts: 0,
            topics_made: 0,
        };
        world.add_broker(NODE);
        world.start();
        world
    }

    /// Registers a broker with an endpoint. Told to the shards with the next change.
    pub fn add_broker(&mut self, id: NodeId) {
        let broker = BrokerImage {
            id,
            endpoints: vec![BrokerEndpoint {
                name: "PLAINTEXT".to_owned(),
                host: "h".to_owned(),
                port: 9092,
                security_protocol: 0,
            }],
            ..BrokerImage::default()
        };
        Arc::make_mut(&mut self.image.brokers).insert(id, Arc::new(broker));
    }

    /// Starts the shards on what the disks hold.
    pub fn start(&mut self) {
        self.start_without_image();
        self.publish(Changed::Everything);
    }

    /// Starts the shards; control is not ready yet.
    pub fn start_without_image(&mut self) {
        self.starts += 1;
        self.stopped.clear();
        self.shards = (0..self.shards_count)
            .map(|number| self.make_shard(number))
            .collect();
    }

    fn make_shard(&self, number: u16) -> Shard<MemDisk> {
        let dirs = self.disks.iter().zip(0..).map(|(disk, dir)| {
            let session = disk.session();
            let (found, leftovers) = inventory(&session, number, self.shards_count);
            ShardDir {
                disk: session,
                id: dir_id(dir),
                clean_shutdown: self.clean,
                found,
                leftovers: if dir % self.shards_count == number {
                    leftovers
                } else {
                    Vec::new()
                },
            }
        });
        Shard::new(ShardParams {
            number,
            shards: self.shards_count,
            node_id: NODE,
            cluster_id: "cluster".into(),
            kraft_version: 1,
            broker_config: Arc::clone(&self.config),
            trace: true,
            old_rule: false,
            dirs: dirs.collect(),
            seed: [self.starts; 32],
        })
    }

    /// The process dies; what it wrote stays in the page cache.
    pub fn kill(&mut self) {
        self.drop_all();
        self.disks.iter().for_each(MemDisk::crash);
        self.clean = false;
    }

    /// The power goes: everything unsynced is lost.
    pub fn power_off(&mut self) {
        self.drop_all();
        self.disks
            .iter()
            .for_each(MemDisk::power_off_losing_unsynced);
        self.clean = false;
    }

    fn drop_all(&mut self) {
        self.shards.clear();
        self.parts.clear();
        self.held.clear();
        self.conns.clear();
    }

    /// Control says that hand-over is done.
    pub fn close(&mut self) {
        for shard in 0..self.shards_count {
            self.parts
                .push_back((MachineId::Shard(shard), MachineId::Control, Part::Close));
        }
        self.run();
    }

    /// A clean stop.
    pub fn stop(&mut self) {
        self.close();
        assert_eq!(
            self.stopped.len(),
            usize::from(self.shards_count),
            "{:?}",
            self.events
        );
        self.drop_all();
        self.clean = true;
    }

    /// Makes a topic led by this node, and tells the shards.
    pub fn topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> TopicId {
        self.topics_made += 1;
        let id = TopicId::new(Uuid::from_u128(
            0xfeed_0000_0000_0000 + u128::from(self.topics_made),
        ));
        let topic_name = TopicName::new(name).expect("a legal name");
        let mut topic = TopicImage {
            id,
            name: topic_name.clone(),
            partitions: highwater_metadata::SharedMap::new(),
        };
        for number in 0..partitions {
            let partition = PartitionImage {
                assigned_replicas: vec![NODE],
                directories: vec![DirectoryId::UNASSIGNED],
                in_sync_replicas: vec![NODE],
                leader: NODE,
                leader_epoch: LeaderEpoch::ZERO,
                partition_epoch: PartitionEpoch::ZERO,
                ..PartitionImage::default()
            };
            topic
                .partitions
                .insert(PartitionIndex::new(number), Arc::new(partition));
        }
        self.image.topics.insert(id, Arc::new(topic));
        self.image.topic_ids.insert(topic_name, id);
        self.set_configs(name, configs);
        self.publish(Changed::Topics(Arc::new(BTreeSet::from([id]))));
        id
    }

    pub fn set_configs(&mut self, topic: &str, configs: &[(&str, &str)]) {
        let own = configs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let resource = ConfigResource {
            kind: ResourceKind::Topic,
            name: topic.to_owned(),
        };
        self.image.configs.insert(resource, Arc::new(own));
    }

    /// Changes one partition's metadata, and tells the shards.
    pub fn change(
        &mut self,
        topic: TopicId,
        number: i32,
        change: impl FnOnce(&mut PartitionImage),
    ) {
        let mut image = self
            .image
            .topics
            .get(&topic)
            .expect("a topic")
            .as_ref()
            .clone();
        let number = PartitionIndex::new(number);
        let mut partition = image.partitions.get(&number).expect("one").as_ref().clone();
        change(&mut partition);
        partition.partition_epoch = partition.partition_epoch.next();
        image.partitions.insert(number, Arc::new(partition));
        self.image.topics.insert(topic, Arc::new(image));
        self.publish(Changed::Topics(Arc::new(BTreeSet::from([topic]))));
    }

    /// Changes the metadata of every partition of a topic, and tells the shards.
    pub fn change_all(&mut self, topic: TopicId, change: impl Fn(&mut PartitionImage)) {
        let image = self.image.topics.get(&topic).expect("a topic");
        let mut image = TopicImage::clone(image);
        let before: Vec<_> = image
            .partitions
            .range_from(&PartitionIndex::new(0))
            .map(|(number, it)| (*number, PartitionImage::clone(it)))
            .collect();
        for (number, mut partition) in before {
            change(&mut partition);
            partition.partition_epoch = partition.partition_epoch.next();
            image.partitions.insert(number, Arc::new(partition));
        }
        self.image.topics.insert(topic, Arc::new(image));
        self.publish(Changed::Topics(Arc::new(BTreeSet::from([topic]))));
    }

    /// Adds a partition to a topic, and tells the shards.
    pub fn add_partition(&mut self, topic: TopicId) {
        let mut image = self
            .image
            .topics
            .get(&topic)
            .expect("a topic")
            .as_ref()
            .clone();
        let next = i32::try_from(image.partitions.len()).expect("a few");
        let like = image
            .partitions
            .get(&PartitionIndex::new(0))
            .expect("one")
            .clone();
        image.partitions.insert(PartitionIndex::new(next), like);
        self.image.topics.insert(topic, Arc::new(image));
        self.publish(Changed::Topics(Arc::new(BTreeSet::from([topic]))));
    }

    pub fn delete_topic(&mut self, topic: TopicId) {
        let image = self.image.topics.remove(&topic).expect("a topic");
        self.image.topic_ids.remove(&image.name);
        self.publish(Changed::Topics(Arc::new(BTreeSet::from([topic]))));
    }

    pub fn publish(&mut self, changed: Changed) {
        let image = Arc::new(self.image.clone());
        for shard in 0..self.shards_count {
            let update = ImageUpdate {
                image: Arc::clone(&image),
                changed: changed.clone(),
            };
            let to = MachineId::Shard(shard);
            self.parts
                .push_back((to, MachineId::Control, Part::Image(update)));
        }
        self.run();
    }

    /// Gives a shard a part of control's.
    pub fn give(&mut self, shard: u16, part: Part<MemDisk>) {
        self.parts
            .push_back((MachineId::Shard(shard), MachineId::Control, part));
        self.run();
    }

    /// Time passes, and nobody notices: the process stands still.
    pub fn stand_still(&mut self, ms: u64) {
        self.now.mono = self.now.mono.plus(Millis::new(ms));
        self.now.wall = WallMs::new(self.now.wall.raw() + i64::try_from(ms).expect("small"));
    }

    /// Time passes; the shards get their ticks.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now.mono.plus(Millis::new(ms));
        loop {
            self.run();
            let due = |shard: &Shard<MemDisk>| shard.next_deadline().filter(|due| *due <= end);
            let next = self.shards.iter().filter_map(due).min();
            let Some(next) = next else { break };
            let step = next.max(self.now.mono).since(self.now.mono).as_u64();
            self.now.mono = next.max(self.now.mono);
            self.now.wall = WallMs::new(self.now.wall.raw() + i64::try_from(step).expect("small"));
            for number in 0..self.shards_count {
                self.step(number, Input::Tick);
            }
        }
        let left = end.since(self.now.mono).as_u64();
        self.now.mono = end;
        self.now.wall = WallMs::new(self.now.wall.raw() + i64::try_from(left).expect("small"));
    }

    /// Runs the jobs that were held back so far, oldest first.
    pub fn release(&mut self) {
        for (shard, token, job) in std::mem::take(&mut self.held) {
            let result = run_job(job, &Blocking::enter());
            self.step(shard, Input::JobDone { token, result });
        }
        self.run();
    }

    /// The controller's answer to something that was sent.
    pub fn answer_peer(
        &mut self,
        (shard, token): (u16, Token),
        result: Result<Response, PeerError>,
    ) {
        self.step(shard, Input::PeerAnswer { token, result });
        self.run();
    }

    /// Works until nothing is left to do.
    pub fn run(&mut self) {
        loop {
            if let Some((to, from, part)) = self.parts.pop_front() {
                let MachineId::Shard(number) = to else {
                    continue;
                };
                self.step(number, Input::Part { from, part });
            } else if !self.feed_frames() {
                return;
            }
        }
    }

    fn feed_frames(&mut self) -> bool {
        let mut out = Vec::new();
        let ready = self.conns.iter_mut().find(|(_, conn)| {
            !conn.closed && !conn.waiting_frames.is_empty() && conn.core.wants_frames()
        });
        let Some((id, conn)) = ready else {
            return false;
        };
        let id = *id;
        let frame = conn.waiting_frames.pop_front().expect("one is waiting");
        conn.core.handle_frame(frame, &mut out);
        self.perform_conn(id, out);
        true
    }

    fn step(&mut self, number: u16, input: Input<MemDisk>) {
        let mut out = Vec::new();
        let Some(shard) = self.shards.get_mut(usize::from(number)) else {
            return;
        };
        if self.stopped.contains(&number) {
            return;
        }
        self.steps += 1;
        shard.step(self.now, input, &mut out);
        for effect in out {
            self.perform(number, effect);
        }
    }

    fn perform(&mut self, number: u16, effect: Effect<MemDisk>) {
        let from = MachineId::Shard(number);
        match effect {
            Effect::Admitted(ticket) => {
                self.events.push(format!("admitted {}", ticket.seq));
                let mut out = Vec::new();
                if let Some(conn) = self.conns.get_mut(&ticket.conn.0) {
                    conn.core.handle_admitted(ticket, &mut out);
                    self.perform_conn(ticket.conn.0, out);
                }
            }
            Effect::Answer { ticket, answer } => {
                let mut out = Vec::new();
                if let Some(conn) = self.conns.get_mut(&ticket.conn.0) {
                    conn.core.handle_answer(ticket, answer, &mut out);
                    self.perform_conn(ticket.conn.0, out);
                }
            }
            Effect::Part {
                to: MachineId::Control,
                part,
            } => {
                self.events.push(format!("to control: {part:?}"));
            }
            Effect::Part { to, part } => self.parts.push_back((to, from, part)),
            Effect::Job { token, job } => {
                if (self.hold)(&job.work) {
                    self.held.push_back((number, token, job));
                } else {
                    let result = run_job(job, &Blocking::enter());
                    self.step(number, Input::JobDone { token, result });
                }
            }
            Effect::Event(entry) => {
                let line = entry.to_string();
                if entry.level > Level::Trace {
                    self.loud.push(line.clone());
                }
                self.events.push(line);
            }
            Effect::Stopped => drop(self.stopped.insert(number)),
            Effect::Send { token, request, .. } => self.sent.push((number, token, request)),
            Effect::Serving(_) => {}
        }
    }

    fn perform_conn(
        &mut self,
        id: u64,
        out: Vec<ConnOutput<<MemDisk as highwater_disk::Disk>::File>>,
    ) {
        for output in out {
            let Some(conn) = self.conns.get_mut(&id) else {
                return;
            };
            match output {
                ConnOutput::Request(incoming) => {
                    let home = conn.home;
                    self.step(home, Input::Request(incoming));
                }
                ConnOutput::Write(pieces) if self.hold_writes => conn.unsent.push_back(pieces),
                ConnOutput::Write(pieces) => {
                    let mut bytes = Vec::new();
                    for piece in pieces {
                        match piece {
                            Piece::Bytes(part) => bytes.extend_from_slice(&part),
                            Piece::Region(region) => {
                                let mut part = vec![0; usize::try_from(region.len).expect("small")];
                                let read = region.file.read_at(region.position, &mut part);
                                assert_eq!(read.expect("readable"), part.len());
                                bytes.extend_from_slice(&part);
                            }
                        }
                    }
                    conn.written.push_back(Bytes::from(bytes));
                }
                ConnOutput::Mute(_) => {}
                ConnOutput::Close => {
                    conn.closed = true;
                    let home = conn.home;
                    self.step(home, Input::Closed(ConnId(id)));
                }
                ConnOutput::Event(entry) => self.events.push(entry.to_string()),
            }
        }
    }

    // Connections.

    pub fn connect(&mut self) -> u64 {
        self.next_conn += 1;
        let caller = Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener: ListenerKind::Broker,
            listener_name: "PLAINTEXT".to_owned(),
            host: Some(IpAddr::from([127, 0, 0, 1])),
        };
        let home = self.next_home % self.shards_count;
        self.next_home += 1;
        let core = Connection::new(ConnId(self.next_conn), Arc::new(caller));
        let conn = Conn {
            home,
            core,
            waiting_frames: VecDeque::new(),
            written: VecDeque::new(),
            unsent: VecDeque::new(),
            closed: false,
        };
        self.conns.insert(self.next_conn, conn);
        self.next_conn
    }

    /// The client goes away.
    pub fn disconnect(&mut self, conn: u64) {
        let Some(gone) = self.conns.remove(&conn) else {
            return;
        };
        self.step(gone.home, Input::Closed(ConnId(conn)));
        self.run();
    }

    /// Sends the next answer that was held, its regions read only now. The bytes that there are,
    /// and how many there were to be.
    pub fn send_held(&mut self, conn: u64) -> Option<(Vec<u8>, u64)> {
        let pieces = self.conns.get_mut(&conn)?.unsent.pop_front()?;
        let wanted = pieces.iter().map(Piece::len).sum();
        let mut bytes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Bytes(part) => bytes.extend_from_slice(&part),
                Piece::Region(region) => {
                    let mut part = vec![0; usize::try_from(region.len).expect("small")];
                    let read = region.file.read_at(region.position, &mut part);
                    part.truncate(read.unwrap_or(0));
                    let is_short = (part.len() as u64) < region.len;
                    bytes.extend_from_slice(&part);
                    if is_short {
                        break;
                    }
                }
            }
        }
        Some((bytes, wanted))
    }

    /// Sends a frame without its length.
    pub fn send_frame(&mut self, conn: u64, frame: Bytes) {
        self.conns
            .get_mut(&conn)
            .expect("connected")
            .waiting_frames
            .push_back(frame);
        self.run();
    }

    /// Sends a request.
    pub fn send(&mut self, conn: u64, api_key: ApiKey, version: i16, body: &[u8]) {
        self.next_correlation_id += 1;
        let header = RequestHeader {
            api_key: api_key.raw(),
            version,
            correlation_id: self.next_correlation_id,
            client_id: Some("test".to_owned()),
        };
        let mut w = Writer::new();
        header.encode(&mut w).expect("a legal header");
        w.put(body);
        self.send_frame(conn, w.into_bytes());
    }

    /// The next frame that came back, without its length.
    pub fn receive_frame(&mut self, conn: u64) -> Option<Bytes> {
        self.run();
        let mut frame = self.conns.get_mut(&conn)?.written.pop_front()?;
        frame.advance(4);
        Some(frame)
    }

    /// The next answer's body.
    pub fn receive(&mut self, conn: u64, api_key: ApiKey, version: i16) -> Option<Bytes> {
        let mut frame = self.receive_frame(conn)?;
        frame.advance(4 + usize::from(response_header_version(api_key, version) > 0));
        Some(frame)
    }

    pub fn is_closed(&self, conn: u64) -> bool {
        self.conns.get(&conn).is_none_or(|conn| conn.closed)
    }

    // Produce.

    /// Sends one batch to one partition.
    pub fn send_produce(&mut self, conn: u64, acks: i16, to: (&str, i32), records: Bytes) {
        self.send_produce_of(conn, acks, 30_000, &[(to.0, to.1, Some(records))]);
    }

    pub fn send_produce_of(
        &mut self,
        conn: u64,
        acks: i16,
        timeout_ms: i32,
        rows: &[(&str, i32, Option<Bytes>)],
    ) {
        let topic = |(name, index, records): &(&str, i32, Option<Bytes>)| TopicProduceData {
            name: (*name).to_owned(),
            partition_data: vec![PartitionProduceData {
                index: *index,
                records: records.clone(),
            }],
            ..TopicProduceData::default()
        };
        let request = ProduceRequest {
            transactional_id: None,
            acks,
            timeout_ms,
            topic_data: rows.iter().map(topic).collect(),
        };
        self.send(
            conn,
            ApiKey::Produce,
            12,
            &request.to_bytes(12).expect("legal"),
        );
    }

    /// The rows of the next Produce answer.
    pub fn receive_produce(&mut self, conn: u64) -> Option<Vec<PartitionProduceResponse>> {
        let body = self.receive(conn, ApiKey::Produce, 12)?;
        let response = ProduceResponse::from_bytes(&body, 12).expect("an answer of Produce");
        Some(
            response
                .responses
                .into_iter()
                .flat_map(|it| it.partition_responses)
                .collect(),
        )
    }

    /// Produces and returns error code and base offset.
    pub fn produce(&mut self, acks: i16, to: (&str, i32), records: Bytes) -> (i16, i64) {
        let conn = self.connect();
        self.send_produce(conn, acks, to, records);
        let rows = self.receive_produce(conn).expect("an answer");
        self.disconnect(conn);
        let [row] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        (row.error_code.raw(), row.base_offset)
    }

    // What is there.

    pub fn id(&self, topic: &str, number: i32) -> TopicIdPartition {
        let topic_id = self.image.topic_by_name(topic).expect("a topic").id;
        TopicIdPartition {
            topic_id,
            partition: PartitionIndex::new(number),
        }
    }

    /// Log start, high watermark, flushed offset and log end offset.
    pub fn offsets(&self, topic: &str, number: i32) -> [i64; 4] {
        let id = self.id(topic, number);
        let shard = &self.shards[usize::from(owner_shard(id, self.shards_count))];
        let online = shard
            .partitions()
            .find(id)
            .expect("owned")
            .online()
            .expect("online");
        let log = online.log();
        [
            log.log_start_offset(),
            online.high_watermark(),
            log.flushed_offset(),
            log.log_end_offset(),
        ]
        .map(Offset::raw)
    }

    pub fn has_event(&self, part: &str) -> bool {
        self.events.iter().any(|event| event.contains(part))
    }

    /// The lines of a checkpoint file of the first directory.
    pub fn checkpoint(&self, name: &str) -> BTreeMap<String, i64> {
        let bytes = self.disks[0]
            .read(name.as_ref())
            .expect("readable")
            .unwrap_or_default();
        let checkpoint = OffsetCheckpoint::decode(&bytes).expect("well formed");
        checkpoint
            .offsets
            .iter()
            .map(|(log, offset)| (log.to_string(), offset.raw()))
            .collect()
    }

    pub fn dir_names(&self) -> Vec<String> {
        let entries = self.disks[0].list(Path::new("")).expect("a root");
        entries.into_iter().map(|entry| entry.name).collect()
    }
}

pub fn dir_id(number: u16) -> DirectoryId {
    DirectoryId::new(Uuid::from_u128((7 << 100) + u128::from(number)))
}

/// What a boot finds in a log directory for one shard.
pub fn inventory(
    disk: &MemDisk,
    number: u16,
    shards: u16,
) -> (Vec<FoundLog>, Vec<std::path::PathBuf>) {
    let lines = |name: &str| {
        let bytes = disk
            .read(name.as_ref())
            .expect("readable")
            .unwrap_or_default();
        OffsetCheckpoint::decode(&bytes).unwrap_or_default().offsets
    };
    let (recovery, watermarks, starts) = (
        lines(RECOVERY_POINT_FILE),
        lines(HIGH_WATERMARK_FILE),
        lines(LOG_START_FILE),
    );
    let mut found = Vec::new();
    let mut leftovers = Vec::new();
    for entry in disk.list(Path::new("")).expect("a root") {
        if entry.name.ends_with("-delete") {
            leftovers.push(entry.name.into());
            continue;
        }
        let Some(log) = TopicPartition::parse(&entry.name) else {
            continue;
        };
        let path = Path::new(&entry.name).join(partition_metadata::FILE);
        let bytes = disk.read(&path).expect("readable");
        let topic_id = bytes.and_then(|bytes| partition_metadata::decode(&bytes).ok());
        let id = TopicIdPartition {
            topic_id: topic_id.unwrap_or_default(),
            partition: log.partition,
        };
        if owner_shard(id, shards) == number {
            found.push(FoundLog {
                recovery_point: recovery.get(&log).copied(),
                high_watermark: watermarks.get(&log).copied(),
                log_start_offset: starts.get(&log).copied(),
                was_cleaned: false,
                topic: topic_id.map_or(FoundTopic::Unknown, FoundTopic::Known),
                topic_partition: log,
            });
        }
    }
    (found, leftovers)
}

/// A batch of `values`.
pub fn batch(values: &[&str]) -> Bytes {
    batch_with(values, BatchOptions::default())
}

/// A batch of an idempotent producer.
pub fn idempotent(id: i64, epoch: i16, base_sequence: i32, count: usize) -> Bytes {
    let values: Vec<String> = (0..count).map(|number| format!("v{number}")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let producer = ProducerStamp {
        id: ProducerId::new(id),
        epoch: ProducerEpoch::new(epoch),
        base_sequence,
    };
    batch_with(
        &values,
        BatchOptions {
            producer,
            ..BatchOptions::default()
        },
    )
}

pub fn batch_with(values: &[&str], options: BatchOptions) -> Bytes {
    let mut builder = BatchBuilder::new();
    for value in values {
        let time = WallMs::new(1_700_000_000_000);
        builder
            .append(time, None, Some(value.as_bytes()), &[])
            .expect("fits");
    }
    builder.finish(&options).expect("compresses").into()
}

pub const DIR_0: LogDirNumber = LogDirNumber(0);
