//! The world around nodes: virtual time, a network of encoded bytes, disks that lose what was not
//! synced, clients, and the checkers that look after every event.
//!
//! [`World`] drives the very machines that a server drives. Everything that production leaves to
//! chance - delays, the order of jobs, how shards interleave - is drawn from one seed.

pub(crate) mod clients;
mod events;
mod faults;
mod hold;
mod looks;
mod loopback;
mod network;
mod node;
mod perform;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_disk::{Blocking, MemDisk, MemFile};
use highwater_node::{
    ConnId, FormatOptions, FormatVoters, Input, Job, MachineId, NodeConfig, Piece, Token, boot,
    format, run_job,
};
use highwater_types::{Millis, Mono, NodeId, Now, TopicName, WallMs};

use self::clients::SimClient;
use self::events::EventQueue;
pub(crate) use self::faults::{ProcessEnd, ReloadAt};
use self::node::{Process, SimNode};
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
    /// A frame reaches its node.
    ToNode {
        node: NodeId,
        life: u32,
        conn: ConnId,
        frame: Bytes,
    },
    /// A frame reaches the other end: regions are read now, late.
    ToPeer {
        node: NodeId,
        life: u32,
        conn: ConnId,
        pieces: Vec<Piece<MemFile>>,
    },
    /// A connection ends, seen from the node.
    ClosedAtNode {
        node: NodeId,
        life: u32,
        conn: ConnId,
    },
    /// A connection ends, seen from the client.
    ClosedAtClient { client: ClientId, conn: ConnId },
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
    /// A client looks at what to do next.
    Client(ClientId),
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
    /// Clients whose frames are held, and the frames.
    holding: BTreeSet<ClientId>,
    held: Vec<(NodeId, ConnId, Vec<Piece<MemFile>>)>,
    next_conn: u64,
    /// When a process ends and starts by itself.
    pub(crate) reload_at: Option<ReloadAt>,
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
            holding: BTreeSet::new(),
            held: Vec::new(),
            next_conn: 1,
            reload_at: None,
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
            life: 0,
            process: None,
        };
        self.nodes.insert(id, node);
        self.start(id);
    }

    /// Formats the disks of a node that is to be added.
    pub(crate) fn format(&mut self, id: NodeId, config: &NodeConfig, disks: &[MemDisk]) {
        let options = FormatOptions {
            cluster_id: None,
            voters: FormatVoters::Standalone,
            ignore_formatted: false,
            features: Vec::new(),
        };
        let (seed, now) = (self.random.seed(), self.now_of(id));
        let sessions: Vec<MemDisk> = disks.iter().map(MemDisk::session).collect();
        let done = format(config, &sessions, &options, now, seed, &Blocking::enter());
        done.unwrap_or_else(|why| panic!("node {id} cannot be formatted: {why}"));
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
        let disks = node.disks.iter().map(MemDisk::session).collect();
        let booted = boot(node.config.clone(), disks, now, seed, &Blocking::enter());
        let booted = booted.unwrap_or_else(|why| panic!("node {id} does not start: {why}"));
        node.process = Some(Process {
            control: booted.control,
            shards: booted.shards,
            conns: BTreeMap::new(),
            loopbacks: BTreeMap::new(),
            ticks: BTreeMap::new(),
            last_part: BTreeMap::new(),
            stopped: false,
            serving: false,
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
        match event {
            Event::Machine {
                node,
                life,
                machine,
                input,
            } if self.lives(node, life) => {
                self.step(node, machine, input);
            }
            Event::Tick {
                node,
                life,
                machine,
            } if self.lives(node, life) => {
                self.tick(node, machine);
            }
            Event::Job {
                node,
                life,
                machine,
                token,
                job,
            } if self.lives(node, life) => {
                let result = run_job(job, &Blocking::enter());
                self.step(node, machine, Input::JobDone { token, result });
            }
            Event::ToNode {
                node,
                life,
                conn,
                frame,
            } if self.lives(node, life) => {
                self.frame_at_node(node, conn, frame);
            }
            Event::ToPeer {
                node,
                life,
                conn,
                pieces,
            } if self.lives(node, life) => {
                self.frame_at_peer(node, conn, pieces);
            }
            Event::ClosedAtNode { node, life, conn } if self.lives(node, life) => {
                self.closed_at_node(node, conn);
            }
            Event::ClosedAtClient { client, conn } => self.closed_at_client(client, conn),
            Event::Unmuted { node, life, conn } if self.lives(node, life) => {
                self.unmuted(node, conn);
            }
            Event::LoopbackDeadline {
                node,
                life,
                machine,
                token,
            } if self.lives(node, life) => {
                self.loopback_deadline(node, machine, token);
            }
            Event::Client(client) => self.client_turn(client),
            Event::Machine { .. }
            | Event::Tick { .. }
            | Event::Job { .. }
            | Event::ToNode { .. }
            | Event::ToPeer { .. }
            | Event::ClosedAtNode { .. }
            | Event::LoopbackDeadline { .. }
            | Event::Unmuted { .. } => {}
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
        let skew = self.nodes.get(&node).map_or(0, |it| it.wall_skew_ms);
        let since = i64::try_from(self.now.as_micros() / 1000).unwrap_or(i64::MAX);
        Now {
            mono: self.now,
            wall: WallMs::new(WALL_AT_START_MS + since + skew),
        }
    }

    fn after(&mut self, (from, to): (u64, u64)) -> Mono {
        let micros = self.random.between(from, to);
        Mono::from_micros(self.now.as_micros() + micros)
    }

    fn check(&mut self) {
        let mut checker = std::mem::take(&mut self.checker);
        checker.after_event(self);
        self.checker = checker;
    }
}
