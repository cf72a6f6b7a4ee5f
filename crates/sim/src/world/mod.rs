//! The world around nodes: virtual time, a network of encoded bytes, disks that lose what was not
//! synced, clients, and the checkers that look after every event.
//!
//! [`World`] drives the very machines that a server drives. Everything that production leaves to
//! chance - delays, the order of jobs, how shards interleave - is drawn from one seed.

pub(crate) mod clients;
mod describe;
mod events;
mod faults;
mod gates;
mod looks;
mod loopback;
mod network;
mod node;
mod pause;
mod peers;
mod perform;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_disk::{Blocking, MemDisk};
use highwater_node::{
    ConnId, FormatOptions, FormatVoters, Input, Job, MachineId, NodeConfig, Token, boot, format,
    run_job,
};
use highwater_protocol::ListenerKind;
use highwater_types::{Millis, Mono, NodeId, Now, TopicName, WallMs};

use self::clients::SimClient;
use self::events::EventQueue;
pub(crate) use self::faults::{ProcessEnd, ReloadAt};
use self::gates::Gates;
pub(crate) use self::gates::{Hold, Which};
use self::network::{Packet, Towards, Wire};
use self::node::{LinkRef, Process, SimNode};
use crate::check::Checker;
use crate::client::ClientId;
use crate::random::Random;
use crate::trace::Trace;

/// The wall clock at the start of every run: 2026-01-01.
const WALL_AT_START_MS: i64 = 1_767_225_600_000;

/// How long things take, in microseconds: drawn between both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// A frame on the network.
    pub(crate) network: (u64, u64),
    /// A part from one machine to another of its node.
    pub(crate) part: (u64, u64),
    /// A job, from being handed out to its result.
    pub(crate) job: (u64, u64),
}

impl Delays {
    /// Nothing overtakes anything: a scenario reads as a story.
    pub(crate) const STEADY: Self = Self {
        network: (1000, 1000),
        part: (10, 10),
        job: (200, 200),
    };
    /// Everything that can overtake does.
    pub(crate) const WILD: Self = Self {
        network: (50, 20_000),
        part: (0, 3000),
        job: (50, 30_000),
    };
}

/// Something that is going to happen.
#[derive(Debug)]
enum Event {
    /// An input for a machine.
    Machine {
        node: NodeId,
        life: u32,
        machine: MachineId,
        input: Input<MemDisk>,
    },
    /// A machine may want a tick.
    Tick {
        node: NodeId,
        life: u32,
        machine: MachineId,
    },
    /// A job's turn has come.
    Job {
        node: NodeId,
        life: u32,
        machine: MachineId,
        token: Token,
        job: Job<MemDisk>,
    },
    /// A packet has travelled along a connection.
    Arrive {
        conn: ConnId,
        towards: Towards,
        packet: Packet,
    },
    /// A node closes a connection.
    ClosedAtNode {
        node: NodeId,
        life: u32,
        conn: ConnId,
    },
    /// A muted connection reads again.
    Unmuted {
        node: NodeId,
        life: u32,
        conn: ConnId,
    },
    /// The deadline of a request of the node to itself.
    LoopbackDeadline {
        node: NodeId,
        life: u32,
        machine: MachineId,
        token: Token,
    },
    /// A node asks another one for a connection, until it gives up.
    Connect { link: LinkRef, gives_up: Mono },
    /// The deadline of a request to another node.
    LinkTime { link: LinkRef },
    /// A second copy of a request between nodes arrives, on a connection of its own.
    LateCopy {
        node: NodeId,
        listener: ListenerKind,
        frame: Bytes,
    },
    /// A client looks at what to do next.
    Client(ClientId),
}

impl Event {
    /// The process that it happens to, if it is one, and which life of it.
    const fn process(&self) -> Option<(NodeId, u32)> {
        match self {
            Self::Machine { node, life, .. }
            | Self::Tick { node, life, .. }
            | Self::Job { node, life, .. }
            | Self::ClosedAtNode { node, life, .. }
            | Self::LoopbackDeadline { node, life, .. }
            | Self::Unmuted { node, life, .. } => Some((*node, *life)),
            Self::Connect { link, .. } | Self::LinkTime { link } => Some((link.node, link.life)),
            Self::Arrive { .. } | Self::LateCopy { .. } | Self::Client(_) => None,
        }
    }
}

/// One run.
#[derive(Debug)]
pub(crate) struct World {
    now: Mono,
    events: EventQueue<Event>,
    pub(crate) random: Random,
    pub(crate) delays: Delays,
    pub(crate) trace: Trace,
    pub(crate) checker: Checker,
    nodes: BTreeMap<NodeId, SimNode>,
    pub(crate) clients: BTreeMap<ClientId, SimClient>,
    /// How many partitions topics were made with.
    pub(crate) partition_counts: BTreeMap<TopicName, i32>,
    /// Every connection.
    wires: BTreeMap<ConnId, Wire>,
    /// Where the ways of the network are shut.
    gates: Gates,
    /// Counts packets that stay before a gate.
    next_stuck: u64,
    next_conn: u64,
    next_link: u64,
    /// What happened to processes that stand still.
    postponed: BTreeMap<NodeId, Vec<Event>>,
    /// When a process ends and starts by itself.
    pub(crate) reload_at: Option<ReloadAt>,
    /// Of a thousand requests between nodes so many arrive twice.
    pub(crate) late_copies: u64,
    /// Events so far.
    pub(crate) steps: u64,
}

impl World {
    /// An empty world whose chance comes from `seed`.
    pub(crate) fn new(seed: u64, delays: Delays) -> Self {
        Self {
            now: Mono::START.plus(Millis::new(1000)),
            events: EventQueue::new(),
            random: Random::new(seed),
            delays,
            trace: Trace::default(),
            checker: Checker::default(),
            nodes: BTreeMap::new(),
            clients: BTreeMap::new(),
            partition_counts: BTreeMap::new(),
            wires: BTreeMap::new(),
            gates: Gates::default(),
            next_stuck: 0,
            next_conn: 1,
            next_link: 1,
            postponed: BTreeMap::new(),
            reload_at: None,
            late_copies: 0,
            steps: 0,
        }
    }

    /// The virtual time.
    pub(crate) const fn now(&self) -> Mono {
        self.now
    }

    /// Adds a node with fresh disks and starts it.
    pub(crate) fn add_node(&mut self, id: NodeId, config: NodeConfig, disks: Vec<MemDisk>) {
        let node = SimNode {
            disks,
            config,
            wall_skew_ms: 0,
            wall_drift_ppm: 0,
            drifts_since: Mono::START,
            is_off: false,
            is_paused: false,
            life: 0,
            process: None,
        };
        self.nodes.insert(id, node);
        self.start(id);
    }

    /// Formats the disks of a node that is to be added; gives the id of its cluster.
    pub(crate) fn format(
        &mut self,
        id: NodeId,
        config: &NodeConfig,
        disks: &[MemDisk],
        cluster_id: Option<String>,
        voters: FormatVoters,
    ) -> String {
        let options = FormatOptions {
            cluster_id,
            voters,
            ignore_formatted: false,
            features: Vec::new(),
        };
        let (seed, now) = (self.random.seed(), self.now_of(id));
        let sessions: Vec<MemDisk> = disks.iter().map(MemDisk::session).collect();
        let done = format(config, &sessions, &options, now, seed, &Blocking::enter());
        let done = done.unwrap_or_else(|why| panic!("node {id} cannot be formatted: {why}"));
        done.cluster_id
    }

    /// The node, which must be there.
    pub(crate) fn node(&self, id: NodeId) -> &SimNode {
        self.nodes.get(&id).expect("a node of this world")
    }

    /// The node, which must be there.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut SimNode {
        self.nodes.get_mut(&id).expect("a node of this world")
    }

    /// Every node.
    pub(crate) const fn nodes(&self) -> &BTreeMap<NodeId, SimNode> {
        &self.nodes
    }

    /// Adds a line about something that the world did.
    pub(crate) fn tell(&mut self, line: impl Into<String>) {
        self.trace.push(self.now, line.into());
    }

    /// Starts the process of a node.
    ///
    /// # Panics
    /// When it runs already, or refuses to start: no disk fault of ours makes that right.
    pub(crate) fn start(&mut self, id: NodeId) {
        let seed = self.random.seed();
        let now = self.now_of(id);
        let node = self.node_mut(id);
        assert!(node.process.is_none(), "node {id} runs already");
        node.life += 1;
        node.is_off = false;
        let disks = node.disks.iter().map(MemDisk::session).collect();
        let booted = boot(node.config.clone(), disks, now, seed, &Blocking::enter());
        let booted = booted.unwrap_or_else(|why| panic!("node {id} does not start: {why}"));
        node.process = Some(Process {
            control: booted.control,
            shards: booted.shards,
            conns: BTreeMap::new(),
            loopbacks: BTreeMap::new(),
            links: BTreeMap::new(),
            ticks: BTreeMap::new(),
            last_part: BTreeMap::new(),
            stopped: false,
            listens: BTreeSet::new(),
        });
        self.tell(format!("{id}: start"));
        for entry in booted.events {
            self.tell(format!("{id}: {entry}"));
        }
        let machines = self
            .process(id)
            .map_or_else(Vec::new, |it| it.machine_ids());
        for machine in machines {
            self.step(id, machine, Input::Tick);
        }
    }

    /// Lets everything happen that happens within `span`.
    pub(crate) fn run_for(&mut self, span: Millis) {
        let until = self.now.plus(span);
        while self.step_until(until) {}
        self.now = self.now.max(until);
    }

    /// Runs until `done`, at most `span` long; whether it came true.
    pub(crate) fn run_until(&mut self, span: Millis, mut done: impl FnMut(&Self) -> bool) -> bool {
        let until = self.now.plus(span);
        loop {
            if done(self) {
                return true;
            }
            if !self.step_until(until) {
                self.now = self.now.max(until);
                return done(self);
            }
        }
    }

    /// Lets the next event happen, if it does so by `until`.
    fn step_until(&mut self, until: Mono) -> bool {
        let Some((at, event)) = self.events.pop_until(until) else {
            return false;
        };
        self.now = self.now.max(at);
        self.steps += 1;
        self.happen(event);
        self.check();
        self.reload_if_due();
        true
    }

    fn happen(&mut self, event: Event) {
        if let Some(node) = event.process() {
            if !self.lives(node.0, node.1) {
                return;
            }
            if self.is_paused(node.0) {
                return self.postpone(node.0, event);
            }
        }
        match event {
            Event::Machine {
                node,
                machine,
                input,
                ..
            } => self.step(node, machine, input),
            Event::Tick { node, machine, .. } => self.tick(node, machine),
            Event::Job {
                node,
                machine,
                token,
                job,
                ..
            } => {
                let result = run_job(job, &Blocking::enter());
                self.step(node, machine, Input::JobDone { token, result });
            }
            Event::ClosedAtNode { node, conn, .. } => self.closed_at_node(node, conn),
            Event::Unmuted { node, conn, .. } => self.unmuted(node, conn),
            Event::LoopbackDeadline {
                node,
                machine,
                token,
                ..
            } => self.loopback_deadline(node, machine, token),
            Event::Arrive {
                conn,
                towards,
                packet,
            } => self.arrives(conn, towards, packet),
            Event::Connect { link, gives_up } => self.connects(link, gives_up),
            Event::LinkTime { link } => self.link_time(link),
            Event::LateCopy {
                node,
                listener,
                frame,
            } => self.late_copy_arrives(node, listener, frame),
            Event::Client(client) => self.client_turn(client),
        }
    }

    fn tick(&mut self, node: NodeId, machine: MachineId) {
        let now = self.now;
        let Some(process) = self.process_mut(node) else {
            return;
        };
        process.ticks.remove(&machine);
        match process.next_deadline(machine) {
            Some(deadline) if deadline <= now => self.step(node, machine, Input::Tick),
            _ => self.schedule_tick(node, machine),
        }
    }

    /// Whether this life of the node still runs.
    fn lives(&self, node: NodeId, life: u32) -> bool {
        self.nodes
            .get(&node)
            .is_some_and(|it| it.life == life && it.process.is_some())
    }

    fn process(&self, node: NodeId) -> Option<&Process> {
        self.nodes.get(&node)?.process.as_ref()
    }

    fn process_mut(&mut self, node: NodeId) -> Option<&mut Process> {
        self.nodes.get_mut(&node)?.process.as_mut()
    }

    pub(crate) fn now_of(&self, node: NodeId) -> Now {
        let mut wall = Self::true_wall(self.now);
        if let Some(node) = self.nodes.get(&node) {
            let drifts = wall - Self::true_wall(node.drifts_since);
            wall += node.wall_skew_ms + drifts * node.wall_drift_ppm / 1_000_000;
        }
        Now {
            mono: self.now,
            wall: WallMs::new(wall),
        }
    }

    /// The wall clock of the world, in milliseconds.
    fn true_wall(at: Mono) -> i64 {
        let since = i64::try_from(at.as_micros() / 1000).unwrap_or(i64::MAX);
        WALL_AT_START_MS + since
    }

    fn after(&mut self, (from, to): (u64, u64)) -> Mono {
        let micros = self.random.between(from, to);
        Mono::from_micros(self.now.as_micros() + micros)
    }

    fn check(&mut self) {
        let mut checker = std::mem::take(&mut self.checker);
        checker.after_event(self);
        let news = checker.verdicts.take_news();
        self.checker = checker;
        for line in news {
            self.tell(line);
        }
    }
}
