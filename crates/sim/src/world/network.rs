//! Connections: what travels on them takes its time, keeps its order, and breaks.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use highwater_disk::{DiskFile as _, MemFile};
use highwater_node::{
    Answer, Caller, ConnId, ConnOutput, Connection, Input, MachineId, Piece, Ticket,
};
use highwater_protocol::{ApiKey, ListenerKind};
use highwater_types::{Mono, NodeId};

use super::describe::asked_by;
use super::node::{LiveConn, Peer};
use super::{Event, World};
use crate::client::ClientId;

/// A connection as the network knows it: it may outlive the processes at its ends.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The node that accepted it.
    pub(super) node: NodeId,
    /// In which of its lives.
    pub(super) life: u32,
    /// Where it came in.
    pub(super) listener: ListenerKind,
    /// Who connected.
    pub(super) peer: Peer,
    to_node: Way,
    to_peer: Way,
    /// Requests of another node whose answers did not arrive yet, oldest first.
    pub(super) asked: VecDeque<(ApiKey, i16)>,
    /// Whoever connected knows that it is over.
    is_over: bool,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Towards {
    /// To the node that accepted the connection.
    Node,
    /// To whoever connected.
    Peer,
}

/// What travels.
#[derive(Debug)]
pub(super) enum Packet {
    /// A request frame, without its length.
    Request(Bytes),
    /// An answer frame; its regions are read when it arrives.
    Answer(Vec<Piece<MemFile>>),
    /// Nothing comes after it.
    Close,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// When the last packet arrives: a connection keeps order.
    last: Mono,
    /// Packets that are kept from arriving, each with its place among all that are.
    pub(super) stuck: VecDeque<(u64, Packet)>,
    /// Nothing is carried any more.
    is_broken: bool,
}

impl Wire {
    pub(super) fn way(&mut self, towards: Towards) -> &mut Way {
        match towards {
            Towards::Node => &mut self.to_node,
            Towards::Peer => &mut self.to_peer,
        }
    }

    pub(super) const fn way_of(&self, towards: Towards) -> &Way {
        match towards {
            Towards::Node => &self.to_node,
            Towards::Peer => &self.to_peer,
        }
    }

    /// The nodes at the sending and at the receiving end of a direction, between nodes.
    pub(super) const fn route(&self, towards: Towards) -> Option<(NodeId, NodeId)> {
        let Peer::Node(link) = self.peer else {
            return None;
        };
        Some(match towards {
            Towards::Node => (link.node, self.node),
            Towards::Peer => (self.node, link.node),
        })
    }
}

/// The second copy of a request comes so late at the most: 20 s.
const LATE_COPY_MICROS: u64 = 20_000_000;

impl World {
    /// Connects a client to a node; the node's shards get connections in turn.
    pub(crate) fn connect(&mut self, client: ClientId, node: NodeId) -> Option<ConnId> {
        let listener = self.client(client).listener;
        self.accept(node, listener, Peer::Client(client))
    }

    /// A node accepts a connection, if its listener is open.
    pub(super) fn accept(
        &mut self,
        node: NodeId,
        listener: ListenerKind,
        peer: Peer,
    ) -> Option<ConnId> {
        let conn = ConnId(self.next_conn);
        let life = self.nodes.get(&node)?.life;
        let process = self.process_mut(node)?;
        if !process.listens.contains(&listener) {
            return None;
        }
        let (machine, name) = match listener {
            ListenerKind::Broker => {
                let shard = u16::try_from(conn.0 % process.shards.len() as u64);
                let shard = shard.expect("below the number of shards");
                (MachineId::Shard(shard), "PLAINTEXT")
            }
            ListenerKind::Controller => (MachineId::Control, "CONTROLLER"),
        };
        let caller = Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener,
            listener_name: name.to_owned(),
            host: None,
        };
        self.join_wire(node, life, conn, machine, Arc::new(caller), peer);
        Some(conn)
    }

    /// Makes a connection that ends at a machine of a running node.
    pub(super) fn join_wire(
        &mut self,
        node: NodeId,
        life: u32,
        conn: ConnId,
        machine: MachineId,
        caller: Arc<Caller>,
        peer: Peer,
    ) {
        let listener = caller.listener;
        let live = LiveConn {
            core: Connection::new(conn, caller),
            machine,
            inbox: VecDeque::new(),
        };
        if let Some(process) = self.process_mut(node) {
            process.conns.insert(conn, live);
        }
        let wire = Wire {
            node,
            life,
            listener,
            peer,
            to_node: Way::default(),
            to_peer: Way::default(),
            asked: VecDeque::new(),
            is_over: false,
        };
        self.wires.insert(conn, wire);
        self.next_conn = self.next_conn.max(conn.0 + 1);
    }

    /// Puts a request frame on its way.
    pub(crate) fn send_frame(&mut self, conn: ConnId, frame: Bytes) {
        self.carry(conn, Towards::Node, Packet::Request(frame));
    }

    /// Lets a copy of a request arrive once more, if chance wants it.
    fn copy_by_chance(&mut self, conn: ConnId, packet: &Packet) {
        if self.late_copies == 0 || self.random.below(1000) >= self.late_copies {
            return;
        }
        let Some(wire) = self.wires.get(&conn) else {
            return;
        };
        let (Peer::Node(_), Packet::Request(frame)) = (wire.peer, packet) else {
            return;
        };
        let (node, listener, frame) = (wire.node, wire.listener, frame.clone());
        let at = self.after((0, LATE_COPY_MICROS));
        let event = Event::LateCopy {
            node,
            listener,
            frame,
        };
        self.events.push(at, event);
    }

    /// The second copy of a request arrives: nobody waits for its answer.
    pub(super) fn late_copy_arrives(&mut self, node: NodeId, listener: ListenerKind, frame: Bytes) {
        if let Some(copy) = self.accept(node, listener, Peer::Nobody) {
            self.received(copy, Towards::Node, Packet::Request(frame));
        }
    }

    /// Puts a packet on its way, behind those that left before it.
    pub(super) fn carry(&mut self, conn: ConnId, towards: Towards, packet: Packet) {
        self.copy_by_chance(conn, &packet);
        let at = self.after(self.delays.network);
        let Some(wire) = self.wires.get_mut(&conn) else {
            return;
        };
        if let (Peer::Node(_), Packet::Request(frame)) = (wire.peer, &packet) {
            wire.asked.extend(asked_by(frame));
        }
        let way = wire.way(towards);
        if way.is_broken {
            return;
        }
        let at = at.max(way.last);
        way.last = at;
        let event = Event::Arrive {
            conn,
            towards,
            packet,
        };
        self.events.push(at, event);
    }

    /// Breaks a connection: both ends learn of it in their own time. What was on its way to
    /// whoever connected is lost.
    pub(crate) fn reset(&mut self, conn: ConnId) {
        let ends = [Towards::Node, Towards::Peer];
        let times = ends.map(|_| self.after(self.delays.network));
        let Some(wire) = self.wires.get_mut(&conn) else {
            return;
        };
        wire.to_peer.is_broken = true;
        wire.to_peer.stuck.clear();
        self.events.drop_if(|event| {
            matches!(event, Event::Arrive { conn: of, towards: Towards::Peer, .. } if *of == conn)
        });
        for (at, towards) in times.into_iter().zip(ends) {
            let event = Event::Arrive {
                conn,
                towards,
                packet: Packet::Close,
            };
            self.events.push(at, event);
        }
    }

    /// A packet has travelled. Where the way is shut it stays before the door, and so does what
    /// comes behind it.
    pub(super) fn arrives(&mut self, conn: ConnId, towards: Towards, packet: Packet) {
        let Some(wire) = self.wires.get(&conn) else {
            return;
        };
        // A client learns of a close although its frames are held.
        if matches!((wire.peer, &packet), (Peer::Client(_), Packet::Close)) {
            return self.received(conn, towards, packet);
        }
        let is_shut = self.is_shut(wire, towards);
        let seq = self.next_stuck;
        let Some(wire) = self.wires.get_mut(&conn) else {
            return;
        };
        let way = wire.way(towards);
        if is_shut || !way.stuck.is_empty() {
            way.stuck.push_back((seq, packet));
            self.next_stuck += 1;
            return;
        }
        self.received(conn, towards, packet);
    }

    /// A packet reaches its end.
    pub(super) fn received(&mut self, conn: ConnId, towards: Towards, packet: Packet) {
        let Some(wire) = self.wires.get(&conn) else {
            return;
        };
        let (node, life, peer) = (wire.node, wire.life, wire.peer);
        let receiver = match (towards, peer) {
            (Towards::Node, _) => Some(node),
            (Towards::Peer, Peer::Node(link)) => Some(link.node),
            (Towards::Peer, Peer::Client(_) | Peer::Loopback(..) | Peer::Nobody) => None,
        };
        if let Some(receiver) = receiver
            && self.is_paused(receiver)
        {
            let event = Event::Arrive {
                conn,
                towards,
                packet,
            };
            self.postpone(receiver, event);
            return;
        }
        match (towards, packet) {
            (Towards::Node, _) if !self.lives(node, life) => self.hits_nobody(conn),
            (Towards::Node, Packet::Request(frame)) => self.frame_at_node(node, conn, frame),
            (Towards::Node, Packet::Close) => self.closed_at_node(node, conn),
            (Towards::Peer, Packet::Answer(pieces)) => self.frame_at_peer(conn, pieces),
            (Towards::Peer, Packet::Close) => self.closed_at_peer(conn),
            (Towards::Node, Packet::Answer(_)) | (Towards::Peer, Packet::Request(_)) => {
                panic!("a packet goes the wrong way")
            }
        }
    }

    /// A packet reaches a host whose process is gone. A host that is on answers with a reset.
    fn hits_nobody(&mut self, conn: ConnId) {
        let Some(wire) = self.wires.get(&conn) else {
            return;
        };
        if self.nodes.get(&wire.node).is_some_and(|it| !it.is_off) {
            self.carry(conn, Towards::Peer, Packet::Close);
        }
    }

    fn frame_at_node(&mut self, node: NodeId, conn: ConnId, frame: Bytes) {
        if let Some(live) = self.conn_mut(node, conn) {
            live.inbox.push_back(frame);
        }
        self.feed(node, conn);
    }

    /// Hands frames over while the connection wants some.
    fn feed(&mut self, node: NodeId, conn: ConnId) {
        loop {
            let Some(live) = self.conn_mut(node, conn) else {
                return;
            };
            if !live.core.wants_frames() {
                return;
            }
            let Some(frame) = live.inbox.pop_front() else {
                return;
            };
            let mut outputs = Vec::new();
            live.core.handle_frame(frame, &mut outputs);
            self.conn_outputs(node, conn, outputs);
        }
    }

    pub(super) fn admitted(&mut self, node: NodeId, ticket: Ticket) {
        let Some(live) = self.conn_mut(node, ticket.conn) else {
            return;
        };
        let mut outputs = Vec::new();
        live.core.handle_admitted(ticket, &mut outputs);
        self.conn_outputs(node, ticket.conn, outputs);
        self.feed(node, ticket.conn);
    }

    pub(super) fn answered(&mut self, node: NodeId, ticket: Ticket, answer: Answer<MemFile>) {
        let Some(live) = self.conn_mut(node, ticket.conn) else {
            return;
        };
        let mut outputs = Vec::new();
        live.core.handle_answer(ticket, answer, &mut outputs);
        self.conn_outputs(node, ticket.conn, outputs);
        self.feed(node, ticket.conn);
    }

    pub(super) fn unmuted(&mut self, node: NodeId, conn: ConnId) {
        let Some(live) = self.conn_mut(node, conn) else {
            return;
        };
        let mut outputs = Vec::new();
        live.core.handle_unmuted(&mut outputs);
        self.conn_outputs(node, conn, outputs);
        self.feed(node, conn);
    }

    fn conn_outputs(&mut self, node: NodeId, conn: ConnId, outputs: Vec<ConnOutput<MemFile>>) {
        let life = self.node(node).life;
        let now = self.now();
        for output in outputs {
            let Some(live) = self.conn_mut(node, conn) else {
                return;
            };
            let machine = live.machine;
            match output {
                ConnOutput::Request(incoming) => {
                    let input = Input::Request(incoming);
                    self.events.push(
                        now,
                        Event::Machine {
                            node,
                            life,
                            machine,
                            input,
                        },
                    );
                }
                ConnOutput::Write(pieces) => {
                    self.carry(conn, Towards::Peer, Packet::Answer(pieces));
                }
                ConnOutput::Mute(span) => {
                    self.events
                        .push(now.plus(span), Event::Unmuted { node, life, conn });
                }
                ConnOutput::Close => {
                    self.carry(conn, Towards::Peer, Packet::Close);
                    self.events
                        .push(now, Event::ClosedAtNode { node, life, conn });
                }
                ConnOutput::Event(entry) => self.tell(format!("{node}: {entry}")),
            }
        }
    }

    /// An answer reaches the other end. Regions are read at this moment; where one ends short, the
    /// connection closes, as a server does it.
    fn frame_at_peer(&mut self, conn: ConnId, pieces: Vec<Piece<MemFile>>) {
        let Some(wire) = self.wires.get(&conn) else {
            return;
        };
        let (node, life, peer) = (wire.node, wire.life, wire.peer);
        if let Peer::Loopback(of, channel) = peer {
            return self.looped_back(of, channel, pieces);
        }
        // What a process had not handed to its host when it died is lost.
        if !self.lives(node, life) {
            return;
        }
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.asked.pop_front();
        }
        match (late_bytes(&pieces), peer) {
            (Some(frame), Peer::Client(client)) => self.client_receives(client, conn, frame),
            (Some(frame), Peer::Node(link)) => self.link_receives(link, conn, frame),
            (Some(_), Peer::Loopback(..) | Peer::Nobody) => {}
            (None, _) => {
                self.tell(format!(
                    "{node}: a region ended short, the connection closes"
                ));
                self.closed_at_node(node, conn);
                self.closed_at_peer(conn);
            }
        }
    }

    pub(super) fn closed_at_node(&mut self, node: NodeId, conn: ConnId) {
        let Some(process) = self.process_mut(node) else {
            return;
        };
        let live = process.conns.remove(&conn);
        let is_over = self.wires.get(&conn).is_some_and(|wire| match wire.peer {
            _ if wire.is_over => true,
            Peer::Node(link) => !self.lives(link.node, link.life),
            Peer::Client(_) | Peer::Loopback(..) | Peer::Nobody => false,
        });
        if is_over {
            self.wires.remove(&conn);
        }
        if let Some(live) = live {
            self.step(node, live.machine, Input::Closed(conn));
        }
    }

    /// Whoever connected learns that the connection is gone, and forgets it.
    pub(super) fn closed_at_peer(&mut self, conn: ConnId) {
        let Some(wire) = self.wires.get_mut(&conn) else {
            return;
        };
        wire.to_peer.is_broken = true;
        wire.is_over = true;
        let (node, peer) = (wire.node, wire.peer);
        if self.conn_mut(node, conn).is_none() {
            self.wires.remove(&conn);
        }
        match peer {
            Peer::Client(client) => self.closed_at_client(client, conn),
            Peer::Node(link) => self.link_closed(link, conn),
            Peer::Loopback(..) | Peer::Nobody => {}
        }
    }

    /// Whoever connected has hung up: nothing reaches it any more.
    pub(super) fn forget_peer(&mut self, conn: ConnId) {
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.to_peer.is_broken = true;
            wire.to_peer.stuck.clear();
            wire.is_over = true;
        }
    }

    pub(super) fn conn_mut(&mut self, node: NodeId, conn: ConnId) -> Option<&mut LiveConn> {
        self.process_mut(node)?.conns.get_mut(&conn)
    }
}

/// Reads a frame's regions late and takes its length off.
pub(super) fn late_bytes(pieces: &[Piece<MemFile>]) -> Option<Bytes> {
    let mut frame = BytesMut::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => frame.put_slice(bytes),
            Piece::Region(region) => {
                let mut bytes = vec![0; usize::try_from(region.len).ok()?];
                let read = region.file.read_at(region.position, &mut bytes).ok()?;
                if read < bytes.len() {
                    return None;
                }
                frame.put_slice(&bytes);
            }
        }
    }
    let length = frame.split_to(4);
    let length = u32::from_be_bytes(length.as_ref().try_into().ok()?);
    assert_eq!(
        length as usize,
        frame.len(),
        "a frame is as long as it says"
    );
    Some(frame.freeze())
}
