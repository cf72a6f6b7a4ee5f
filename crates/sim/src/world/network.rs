//! Connections: frames of encoded bytes that take their time, keep their order, and break.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use highwater_disk::{DiskFile as _, MemFile};
use highwater_node::{
    Answer, Caller, ConnId, ConnOutput, Connection, Input, MachineId, Piece, Ticket,
};
use highwater_protocol::ListenerKind;
use highwater_types::NodeId;

use super::node::{LiveConn, Peer};
use super::{Event, World};
use crate::client::ClientId;

impl World {
    /// Connects a client to a node; the node's shards get connections in turn.
    pub(crate) fn connect(&mut self, client: ClientId, node: NodeId) -> Option<ConnId> {
        let conn = ConnId(self.next_conn);
        let now = self.now();
        let process = self.process_mut(node)?;
        if !process.serving {
            return None;
        }
        let shards = process.shards.len() as u64;
        let shard = u16::try_from(conn.0 % shards).expect("below the number of shards");
        let caller = Caller {
            principal: "User:ANONYMOUS".to_owned(),
            listener: ListenerKind::Broker,
            listener_name: "PLAINTEXT".to_owned(),
            host: None,
        };
        let live = LiveConn {
            core: Connection::new(conn, Arc::new(caller)),
            machine: MachineId::Shard(shard),
            peer: Peer::Client(client),
            inbox: VecDeque::new(),
            last_to_node: now,
            last_to_peer: now,
            is_broken: false,
        };
        process.conns.insert(conn, live);
        self.next_conn += 1;
        Some(conn)
    }

    /// Puts a frame of a client on its way.
    pub(crate) fn send_frame(&mut self, node: NodeId, conn: ConnId, frame: Bytes) {
        let at = self.after(self.delays.network);
        let life = self.node(node).life;
        let Some(live) = self.conn_mut(node, conn) else {
            return;
        };
        let at = at.max(live.last_to_node);
        live.last_to_node = at;
        self.events.push(
            at,
            Event::ToNode {
                node,
                life,
                conn,
                frame,
            },
        );
    }

    /// Breaks a connection: both ends learn of it in their own time.
    pub(crate) fn break_conn(&mut self, node: NodeId, conn: ConnId) {
        let (to_node, to_client) = (
            self.after(self.delays.network),
            self.after(self.delays.network),
        );
        let life = self.node(node).life;
        let Some(LiveConn {
            peer: Peer::Client(client),
            is_broken,
            ..
        }) = self.conn_mut(node, conn)
        else {
            return;
        };
        *is_broken = true;
        let client = *client;
        self.events
            .push(to_node, Event::ClosedAtNode { node, life, conn });
        self.events
            .push(to_client, Event::ClosedAtClient { client, conn });
        // What was on its way to the client is lost, and so is what the node still says.
        self.events
            .drop_if(|event| matches!(event, Event::ToPeer { conn: of, .. } if *of == conn));
    }

    pub(super) fn frame_at_node(&mut self, node: NodeId, conn: ConnId, frame: Bytes) {
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
        for output in outputs {
            let delay = self.after(self.delays.network);
            let now = self.now();
            let Some(live) = self.conn_mut(node, conn) else {
                return;
            };
            let (machine, peer) = (live.machine, live.peer);
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
                ConnOutput::Write(_) if live.is_broken => {}
                ConnOutput::Write(pieces) => {
                    let at = delay.max(live.last_to_peer);
                    live.last_to_peer = at;
                    self.events.push(
                        at,
                        Event::ToPeer {
                            node,
                            life,
                            conn,
                            pieces,
                        },
                    );
                }
                ConnOutput::Mute(span) => {
                    self.events
                        .push(now.plus(span), Event::Unmuted { node, life, conn });
                }
                ConnOutput::Close => {
                    let at = delay.max(live.last_to_peer);
                    if let Peer::Client(client) = peer {
                        self.events.push(at, Event::ClosedAtClient { client, conn });
                    }
                    self.events
                        .push(now, Event::ClosedAtNode { node, life, conn });
                }
                ConnOutput::Event(entry) => self.tell(format!("{node}: {entry}")),
            }
        }
    }

    /// A frame reaches the other end. Regions are read at this moment; where one ends short, the
    /// connection closes, as a server does it.
    pub(super) fn frame_at_peer(
        &mut self,
        node: NodeId,
        conn: ConnId,
        pieces: Vec<Piece<MemFile>>,
    ) {
        let Some(live) = self.conn_mut(node, conn) else {
            return;
        };
        let client = match live.peer {
            Peer::Client(client) => client,
            Peer::Loopback(channel) => return self.looped_back(node, channel, pieces),
        };
        if self.is_held(client) {
            self.held.push((node, conn, pieces));
            return;
        }
        match late_bytes(&pieces) {
            Some(frame) => self.client_receives(client, conn, frame),
            None => {
                self.tell(format!(
                    "{node}: a region ended short, the connection closes"
                ));
                self.closed_at_node(node, conn);
                self.closed_at_client(client, conn);
            }
        }
    }

    pub(super) fn closed_at_node(&mut self, node: NodeId, conn: ConnId) {
        let Some(process) = self.process_mut(node) else {
            return;
        };
        if let Some(live) = process.conns.remove(&conn) {
            self.step(node, live.machine, Input::Closed(conn));
        }
    }

    pub(super) fn conn_mut(&mut self, node: NodeId, conn: ConnId) -> Option<&mut LiveConn> {
        self.process_mut(node)?.conns.get_mut(&conn)
    }
}

/// Reads a frame's regions late and takes its length off.
fn late_bytes(pieces: &[Piece<MemFile>]) -> Option<Bytes> {
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
