//! A node of the simulator: what survives its process, and the process while it runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use highwater_disk::{MemDisk, MemFile};
use highwater_node::{
    Channel, ConnId, Connection, Control, Effect, Input, Loopback, Machine, MachineId, NodeConfig,
    Shard,
};
use highwater_protocol::ListenerKind;
use highwater_types::{Mono, NodeId, Now};

use super::peers::{Link, LinkKey};
use crate::client::ClientId;

/// A node: its disks and configuration survive its process.
#[derive(Debug)]
pub(crate) struct SimNode {
    /// The log directories.
    pub(crate) disks: Vec<MemDisk>,
    /// The configuration that the next start reads.
    pub(crate) config: NodeConfig,
    /// Milliseconds that its wall clock is ahead of the world's.
    pub(crate) wall_skew_ms: i64,
    /// Millionths by which its wall clock runs faster than the world's, since `drifts_since`.
    pub(crate) wall_drift_ppm: i64,
    /// When the drift began.
    pub(crate) drifts_since: Mono,
    /// It has no power.
    pub(crate) is_off: bool,
    /// Its process stands still: what happens to it waits.
    pub(crate) is_paused: bool,
    /// Counts starts; events of an earlier life are void.
    pub(crate) life: u32,
    /// The process.
    pub(crate) process: Option<Process>,
}

/// A running node.
#[derive(Debug)]
pub(crate) struct Process {
    /// The machine of metadata and lifecycle.
    pub(crate) control: Control<MemDisk>,
    /// The data shards.
    pub(crate) shards: Vec<Shard<MemDisk>>,
    /// The connections that live here.
    pub(crate) conns: BTreeMap<ConnId, LiveConn>,
    /// The node's requests to itself, with the connection that carries them.
    pub(crate) loopbacks: BTreeMap<Channel, (ConnId, Loopback)>,
    /// Its connections to other nodes.
    pub(crate) links: BTreeMap<LinkKey, Link>,
    /// For each machine, when it is going to be ticked.
    pub(crate) ticks: BTreeMap<MachineId, Mono>,
    /// For each pair of machines, when its last part arrives: first in, first out.
    pub(crate) last_part: BTreeMap<(MachineId, MachineId), Mono>,
    /// Whether control said that everything is closed.
    pub(crate) stopped: bool,
    /// The listeners that are open.
    pub(crate) listens: BTreeSet<ListenerKind>,
}

/// A connection at its node.
#[derive(Debug)]
pub(crate) struct LiveConn {
    /// Order, pipelining, back-pressure.
    pub(crate) core: Connection<MemFile>,
    /// Where it lives.
    pub(crate) machine: MachineId,
    /// Frames that arrived while the core wanted none.
    pub(crate) inbox: VecDeque<Bytes>,
}

/// Who connected to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A simulated client.
    Client(ClientId),
    /// The node itself, which asks its own control machine.
    Loopback(NodeId, Channel),
    /// Another node.
    Node(LinkRef),
    /// Whoever asked is not there any more.
    Nobody,
}

/// A node's connection to another one, by its end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkRef {
    /// The node that connected.
    pub(crate) node: NodeId,
    /// In which of its lives.
    pub(crate) life: u32,
    /// What it is for.
    pub(crate) channel: Channel,
    /// Which of its links.
    pub(crate) number: u64,
}

impl Process {
    /// Steps one machine.
    pub(crate) fn step(
        &mut self,
        machine: MachineId,
        now: Now,
        input: Input<MemDisk>,
        out: &mut Vec<Effect<MemDisk>>,
    ) {
        match self.machine(machine) {
            Some(found) => found.step(now, input, out),
            None => panic!("there is no {machine:?}"),
        }
    }

    /// When a machine wants a tick.
    pub(crate) fn next_deadline(&mut self, machine: MachineId) -> Option<Mono> {
        self.machine(machine).and_then(|it| it.next_deadline())
    }

    /// Every machine.
    pub(crate) fn machine_ids(&self) -> Vec<MachineId> {
        let shards = (0..self.shards.len())
            .map(|at| MachineId::Shard(u16::try_from(at).expect("a handful of shards")));
        std::iter::once(MachineId::Control).chain(shards).collect()
    }

    fn machine(&mut self, machine: MachineId) -> Option<&mut dyn Machine<MemDisk>> {
        match machine {
            MachineId::Control => Some(&mut self.control),
            MachineId::Shard(number) => match self.shards.get_mut(usize::from(number)) {
                Some(shard) => Some(shard),
                None => None,
            },
        }
    }
}
