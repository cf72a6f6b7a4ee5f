//! A node's requests to its own controller: encoded bytes, like those to any other node.

use highwater_disk::MemFile;
use highwater_node::loopback::Sender;
use highwater_node::{Channel, ConnId, Input, Loopback, MachineId, PeerError, Piece, Token};
use highwater_protocol::{OutRequest, Response};
use highwater_types::{Mono, NodeId};

use super::node::Peer;
use super::{Event, World};

impl World {
    pub(super) fn send_to_itself(
        &mut self,
        node: NodeId,
        sender: Sender,
        channel: Channel,
        request: &OutRequest,
        deadline: Mono,
    ) {
        let now = self.now();
        let life = self.node(node).life;
        let Some(process) = self.process_mut(node) else {
            return;
        };
        let known = process.loopbacks.get(&channel).map(|(conn, _)| *conn);
        let conn = known.unwrap_or_else(|| self.connect_to_itself(node, life, channel));
        let Some(loopback) = self.loopback(node, channel) else {
            return;
        };
        let (machine, token) = sender;
        match loopback.request_frame(sender, request) {
            Ok(frame) => {
                self.send_frame(conn, frame);
                let at = deadline.max(now);
                self.events.push(
                    at,
                    Event::LoopbackDeadline {
                        node,
                        life,
                        machine,
                        token,
                    },
                );
            }
            Err(why) => self.peer_answer(node, sender, Err(why)),
        }
    }

    fn connect_to_itself(&mut self, node: NodeId, life: u32, channel: Channel) -> ConnId {
        let conn = ConnId(self.next_conn);
        let peer = Peer::Loopback(node, channel);
        self.join_wire(
            node,
            life,
            conn,
            MachineId::Control,
            Loopback::caller(),
            peer,
        );
        if let Some(process) = self.process_mut(node) {
            process
                .loopbacks
                .insert(channel, (conn, Loopback::default()));
        }
        conn
    }

    fn loopback(&mut self, node: NodeId, channel: Channel) -> Option<&mut Loopback> {
        let (_, loopback) = self.process_mut(node)?.loopbacks.get_mut(&channel)?;
        Some(loopback)
    }

    pub(super) fn looped_back(
        &mut self,
        node: NodeId,
        channel: Channel,
        pieces: Vec<Piece<MemFile>>,
    ) {
        let answered = self.loopback(node, channel);
        let answered = answered.and_then(|it| it.handle_frame(pieces));
        if let Some((sender, result)) = answered {
            self.peer_answer(node, sender, result);
        }
    }

    pub(super) fn loopback_deadline(&mut self, node: NodeId, machine: MachineId, token: Token) {
        let sender = (machine, token);
        let waits = Channel::ALL.into_iter().any(|channel| {
            let loopback = self.loopback(node, channel);
            loopback.is_some_and(|it| it.forget(sender))
        });
        if waits {
            self.peer_answer(node, sender, Err(PeerError::TimedOut));
        }
    }

    pub(super) fn peer_answer(
        &mut self,
        node: NodeId,
        (machine, token): Sender,
        result: Result<Response, PeerError>,
    ) {
        let at = self.after(self.delays.part);
        let life = self.node(node).life;
        let input = Input::PeerAnswer { token, result };
        self.events.push(
            at,
            Event::Machine {
                node,
                life,
                machine,
                input,
            },
        );
    }
}
