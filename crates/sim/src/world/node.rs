//! A node of the simulator: what survives its process, and the process while it runs.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use highwater_disk::{MemDisk, MemFile};
use highwater_node::{
    Channel, ConnId, Connection, Control, Effect, Input, Loopback, Machine, MachineId, NodeConfig,
    Shard,
};
use highwater_types::{Mono, Now};

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
    /// The node's requests to itself.
    pub(crate) loopbacks: BTreeMap<Channel, Loopback>,
    /// For each machine, when it is going to be ticked.
    pub(crate) ticks: BTreeMap<MachineId, Mono>,
    /// For each pair of machines, when its last part arrives: first in, first out.
    pub(crate) last_part: BTreeMap<(MachineId, MachineId), Mono>,
    /// Whether control said that everything is closed.
    pub(crate) stopped: bool,
    /// Whether it said that it serves.
    pub(crate) serving: bool,
}

/// A connection at its node.
#[derive(Debug)]
pub(crate) struct LiveConn {
    /// Order, pipelining, back-pressure.
    pub(crate) core: Connection<MemFile>,
    /// Where it lives.
    pub(crate) machine: MachineId,
    /// Who is at the other end.
    pub(crate) peer: Peer,
    /// Frames that arrived while the core wanted none.
    pub(crate) inbox: VecDeque<Bytes>,
    /// When the last frame or close arrives at each side: a connection keeps order.
    pub(crate) last_to_node: Mono,
    /// As `last_to_node`, the other way.
    pub(crate) last_to_peer: Mono,
    /// It broke: nothing reaches the other end any more.
    pub(crate) is_broken: bool,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A simulated client.
    Client(ClientId),
    /// The node itself, which asks its own control machine.
    Loopback(Channel),
}

impl Process {
    /// The sender's end of one of the node's connections to itself.
    pub(crate) fn loopback(&mut self, channel: Channel) -> &mut Loopback {
        self.loopbacks.entry(channel).or_default()
    }

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
