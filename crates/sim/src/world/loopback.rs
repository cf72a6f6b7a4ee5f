//! A node's requests to its own controller: encoded bytes, like those to any other node.

use std::collections::VecDeque;

use highwater_disk::MemFile;
use highwater_node::loopback::Sender;
use highwater_node::{Channel, ConnId, Connection, Input, Loopback, MachineId, PeerError, Piece, Token};
use highwater_protocol::{OutRequest, Response};
use highwater_types::{Mono, NodeId};

use super::node::{LiveConn, Peer};
use super::{Event, World};

/// The connections of each node to itself; those of clients lie between.
const fn id_of(channel: Channel) -> ConnId {
    match channel {
        Channel::Others => ConnId(0),
        Channel::Lifecycle => ConnId(u64::MAX),
        Channel::Metadata => ConnId(u64::MAX - 1),
        Channel::Fetcher => ConnId(u64::MAX - 2),
    }
}

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
        let id = id_of(channel);
        process.conns.entry(id).or_insert_with(|| LiveConn {
            core: Connection::new(id, Loopback::caller()),
            machine: MachineId::Control,
            peer: Peer::Loopback(channel),
            inbox: VecDeque::new(),
            last_to_node: now,
            last_to_peer: now,
            is_broken: false,
        });
        let (machine, token) = sender;
        match process.loopback(channel).request_frame(sender, request) {
            Ok(frame) => {
                self.send_frame(node, id, frame);
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

    pub(super) fn looped_back(
        &mut self,
        node: NodeId,
        channel: Channel,
        pieces: Vec<Piece<MemFile>>,
    ) {
        let Some(process) = self.process_mut(node) else {
            return;
        };
        if let Some((sender, result)) = process.loopback(channel).handle_frame(pieces) {
            self.peer_answer(node, sender, result);
        }
    }

    pub(super) fn loopback_deadline(&mut self, node: NodeId, machine: MachineId, token: Token) {
        let Some(process) = self.process_mut(node) else {
            return;
        };
        let sender = (machine, token);
        if Channel::ALL
            .into_iter()
            .any(|channel| process.loopback(channel).forget(sender))
        {
            self.peer_answer(node, (machine, token), Err(PeerError::TimedOut));
        }
    }

    fn peer_answer(
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
