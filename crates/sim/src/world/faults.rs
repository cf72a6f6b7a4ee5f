//! What goes wrong: processes die, power goes, connections break, clocks jump.

use std::path::Path;

use highwater_disk::Disk as _;
use highwater_log::checkpoint::OffsetCheckpoint;
use highwater_log::checkpoint::offsets::HIGH_WATERMARK_FILE;
use highwater_metadata::controller::ForcedElection;
use highwater_node::{Input, MachineId};
use highwater_types::{Millis, Mono, NodeId, TopicPartition, Uuid};

use super::World;
use super::network::{Packet, Towards};
use super::node::Peer;

/// How long a graceful stop may take.
const STOP_PATIENCE: Millis = Millis::new(60_000);

/// A group that is never left alone comes to nothing: each step that it takes is a record.
const RELOAD_PAUSE: Millis = Millis::new(3000);

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// As by kill -9.
    Crash,
    /// The power goes, and all that was not synced is lost.
    PowerOff,
    /// A graceful stop.
    Stop,
}

/// When a process ends and starts by itself, in the middle of whatever goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReloadAt {
    /// Whose process.
    pub(crate) node: NodeId,
    /// When the groups' log holds so many records.
    pub(crate) records: u64,
    /// No sooner than then.
    pub(crate) not_before: Mono,
    /// Again with the first record that comes after [`RELOAD_PAUSE`].
    pub(crate) every: bool,
    /// How it ends.
    pub(crate) how: ProcessEnd,
}

impl World {
    /// Ends and starts a process, if that is due.
    pub(super) fn reload_if_due(&mut self) {
        let (now, records) = (self.now(), self.checker.groups.records());
        let Some(at) = self
            .reload_at
            .take_if(|it| it.records <= records && it.not_before <= now)
        else {
            return;
        };
        if !self.serves(at.node) {
            self.reload_at = Some(at);
            return;
        }
        match at.how {
            ProcessEnd::Crash => self.crash(at.node),
            ProcessEnd::PowerOff => self.power_off_losing_unsynced(at.node),
            ProcessEnd::Stop => self.stop(at.node),
        }
        self.start(at.node);
        self.reload_at = at.every.then(|| ReloadAt {
            records: self.checker.groups.records() + 1,
            not_before: now.plus(RELOAD_PAUSE),
            ..at
        });
    }

    /// The process dies; what it wrote stays in the page cache.
    pub(crate) fn crash(&mut self, id: NodeId) {
        self.tell(format!("{id}: crash"));
        self.end_process(id);
        self.hosts_say_so(id);
        for disk in &self.node(id).disks {
            disk.crash();
        }
    }

    /// The power goes: of what was not synced, chance decides what survives.
    pub(crate) fn power_off(&mut self, id: NodeId) {
        self.tell(format!("{id}: power off"));
        self.end_process(id);
        self.node_mut(id).is_off = true;
        let disks = self.node(id).disks.clone();
        for disk in disks {
            disk.power_off(&mut || self.random.any());
        }
        self.power_was_lost(id);
    }

    /// The power goes, and everything that was not synced is lost.
    pub(crate) fn power_off_losing_unsynced(&mut self, id: NodeId) {
        self.tell(format!("{id}: power off, all unsynced writes lost"));
        self.end_process(id);
        self.node_mut(id).is_off = true;
        for disk in &self.node(id).disks {
            disk.power_off_losing_unsynced();
        }
        self.power_was_lost(id);
    }

    /// Asks the process to stop and waits until it has.
    ///
    /// # Panics
    /// When it does not stop.
    pub(crate) fn stop(&mut self, id: NodeId) {
        self.tell(format!("{id}: stop"));
        assert!(!self.is_paused(id), "node {id} stands still");
        self.step(id, MachineId::Control, Input::Stop);
        let stopped = self.run_until(STOP_PATIENCE, |world| {
            world.process(id).is_none_or(|it| it.stopped)
        });
        assert!(stopped, "node {id} does not stop");
        self.end_process(id);
        self.hosts_say_so(id);
        for disk in &self.node(id).disks {
            disk.crash();
        }
    }

    /// Breaks the connections that a node has made to others.
    pub(crate) fn reset_links(&mut self, id: NodeId) {
        self.tell(format!("{id}: its connections to other nodes break"));
        let wires = self.wires.iter();
        let links = wires.filter(|(_, wire)| matches!(wire.peer, Peer::Node(it) if it.node == id));
        for conn in links.map(|(conn, _)| *conn).collect::<Vec<_>>() {
            self.reset(conn);
        }
    }

    /// Everything that the node has written is on its disks now.
    pub(crate) fn write_back(&mut self, id: NodeId) {
        for disk in &self.node(id).disks {
            disk.write_back();
        }
    }

    /// The wall clock of a node is set so many milliseconds ahead of the world's.
    pub(crate) fn skew(&mut self, id: NodeId, ahead_ms: i64) {
        self.tell(format!("{id}: clock is {ahead_ms} ms ahead"));
        self.node_mut(id).wall_skew_ms = ahead_ms;
    }

    /// The wall clock of a node gains so many millionths from now on.
    pub(crate) fn drift(&mut self, id: NodeId, ppm: i64) {
        self.tell(format!("{id}: clock gains {ppm} ppm"));
        let now = self.now();
        let ahead = self.now_of(id).wall.raw() - Self::true_wall(now);
        let node = self.node_mut(id);
        node.wall_skew_ms = ahead;
        node.wall_drift_ppm = ppm;
        node.drifts_since = now;
    }

    /// Makes a broker the leader of a partition, through the controller's own log.
    pub(crate) fn elect(
        &mut self,
        partition: &TopicPartition,
        leader: NodeId,
        in_sync_replicas: Option<Vec<NodeId>>,
        unclean: bool,
    ) -> Result<(), String> {
        let at = self.partition_id(partition, Uuid::ZERO);
        let at = at.ok_or_else(|| format!("{partition} is unknown"))?;
        let asked = ForcedElection {
            at,
            leader,
            in_sync_replicas,
            unclean,
        };
        let controller = self.controller();
        let now = self.now_of(controller);
        let Some(process) = self.process_mut(controller) else {
            return Err("the controller does not run".to_owned());
        };
        let mut effects = Vec::new();
        let elected = process.control.elect(now, &asked, &mut effects);
        self.perform_all(controller, MachineId::Control, effects);
        elected.map(drop).map_err(|why| format!("{why:?}"))
    }

    /// The checker learns which high watermarks survived in checkpoints: what is missing below
    /// them must be told as a loss.
    fn power_was_lost(&mut self, id: NodeId) {
        let disks = self.node(id).disks.clone();
        for disk in disks {
            let text = disk
                .session()
                .read(Path::new(HIGH_WATERMARK_FILE))
                .ok()
                .flatten();
            let lines = text.and_then(|text| OffsetCheckpoint::decode(&text).ok());
            self.checker
                .power_was_lost(id, lines.unwrap_or_default().offsets);
        }
    }

    fn end_process(&mut self, id: NodeId) {
        let mut checker = std::mem::take(&mut self.checker);
        checker.process_ends(self, id);
        self.checker = checker;
        self.forget_pause(id);
        let Some(process) = self.node_mut(id).process.take() else {
            return;
        };
        for conn in process.conns.keys() {
            // Clients do not wait: a test of what they make of silence is the pause.
            if let Some(Peer::Client(_)) = self.wires.get(conn).map(|it| it.peer) {
                self.closed_at_peer(*conn);
            }
        }
    }

    /// The process is gone and its host is not: whoever has a connection with it learns that. When
    /// the power goes nobody says so.
    fn hosts_say_so(&mut self, id: NodeId) {
        let wires = self.wires.iter();
        let ends = wires.filter_map(|(conn, wire)| match wire.peer {
            Peer::Node(link) if link.node == id => Some((*conn, Towards::Node)),
            Peer::Node(_) if wire.node == id => Some((*conn, Towards::Peer)),
            _ => None,
        });
        for (conn, towards) in ends.collect::<Vec<_>>() {
            self.carry(conn, towards, Packet::Close);
        }
    }
}
