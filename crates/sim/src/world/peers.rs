//! Requests from one node to another: the connections that carry them, as their senders have them.

use bytes::{BufMut as _, Bytes, BytesMut};
use highwater_node::loopback::Sender;
use highwater_node::peers::{LinkOutput, PeerLink};
use highwater_node::{Channel, ConnId, Input, MachineId, PeerError, Token};
use highwater_protocol::{ListenerKind, OutRequest, Response};
use highwater_types::{Millis, Mono, NodeId};

use super::network::{Packet, Towards};
use super::node::{LinkRef, Peer};
use super::{Event, World};

/// How long a connection may take to be made.
const CONNECT_PATIENCE: Millis = Millis::new(10_000);
/// How soon the network tries again to reach a host that does not answer.
const CONNECT_AGAIN: Millis = Millis::new(1000);
/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

/// What makes a connection its own: who sends, where to, and what for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkKey {
    machine: MachineId,
    target: NodeId,
    listener: ListenerKind,
    channel: Channel,
}

/// A connection to another node, at the sender's end.
#[derive(Debug)]
pub(crate) struct Link {
    number: u64,
    core: PeerLink,
    conn: Option<ConnId>,
    /// When its deadlines are going to be looked at.
    timer: Option<Mono>,
}

/// The node at an address. Hosts of the simulator are called `sim-1`; controllers listen at 9093.
fn resolve(host: &str, port: u16) -> Option<(NodeId, ListenerKind)> {
    let id = host.strip_prefix("sim-")?.parse().ok()?;
    let listener = match port {
        9092 => ListenerKind::Broker,
        9093 => ListenerKind::Controller,
        _ => return None,
    };
    Some((NodeId::new(id), listener))
}

impl World {
    pub(super) fn send_to_peer(
        &mut self,
        node: NodeId,
        (machine, token): Sender,
        (peer, channel): (highwater_node::Peer, Channel),
        request: OutRequest,
        deadline: Mono,
    ) {
        let Some((target, listener)) = resolve(&peer.host, peer.port) else {
            return self.peer_answer(node, (machine, token), Err(PeerError::Disconnected));
        };
        let key = LinkKey {
            machine,
            target,
            listener,
            channel,
        };
        let known = self.link_mut(node, &key).map(|link| link.number);
        if known.is_none() {
            self.make_link(node, key.clone());
        }
        let Some(link) = self.link_mut(node, &key) else {
            return;
        };
        let mut outputs = Vec::new();
        link.core
            .handle_request(token, request, deadline, &mut outputs);
        self.link_outputs(node, &key, outputs);
    }

    fn link_mut(&mut self, node: NodeId, key: &LinkKey) -> Option<&mut Link> {
        self.process_mut(node)?.links.get_mut(key)
    }

    fn make_link(&mut self, node: NodeId, key: LinkKey) {
        let at = self.after(self.delays.network);
        let gives_up = self.now().plus(CONNECT_PATIENCE);
        let number = self.next_link;
        self.next_link += 1;
        let life = self.node(node).life;
        let Some(process) = self.process_mut(node) else {
            return;
        };
        let link = LinkRef {
            node,
            life,
            channel: key.channel,
            number,
        };
        process.links.insert(
            key,
            Link {
                number,
                core: PeerLink::new(format!("sim-{node}")),
                conn: None,
                timer: None,
            },
        );
        self.events.push(at, Event::Connect { link, gives_up });
    }

    /// The key of a link that is still there.
    fn key_of(&self, link: LinkRef) -> Option<LinkKey> {
        if !self.lives(link.node, link.life) {
            return None;
        }
        let mut links = self.process(link.node)?.links.iter();
        let found = links.find(|(_, it)| it.number == link.number);
        found.map(|(key, _)| key.clone())
    }

    /// A request for a connection reaches its host, or does not.
    pub(super) fn connects(&mut self, link: LinkRef, gives_up: Mono) {
        let Some(key) = self.key_of(link) else {
            return;
        };
        let (from, to) = (link.node, key.target);
        let is_on = self.nodes.get(&to).is_some_and(|it| !it.is_off);
        if !is_on || !self.reaches(from, to) || !self.reaches(to, from) {
            let again = self.now().plus(CONNECT_AGAIN);
            if again <= gives_up {
                self.events.push(again, Event::Connect { link, gives_up });
            } else {
                self.link_is_over(from, &key);
            }
            return;
        }
        let Some(conn) = self.accept(to, key.listener, Peer::Node(link)) else {
            return self.link_is_over(from, &key);
        };
        let Some(found) = self.link_mut(from, &key) else {
            return;
        };
        let mut outputs = Vec::new();
        found.conn = Some(conn);
        found.core.handle_connected(&mut outputs);
        self.link_outputs(from, &key, outputs);
    }

    pub(super) fn link_receives(&mut self, link: LinkRef, conn: ConnId, frame: Bytes) {
        let Some(key) = self.key_of(link) else {
            return;
        };
        let Some(found) = self.link_mut(link.node, &key) else {
            return;
        };
        if found.conn != Some(conn) {
            return;
        }
        let mut outputs = Vec::new();
        found.core.handle_frame(&frame, &mut outputs);
        self.link_outputs(link.node, &key, outputs);
    }

    pub(super) fn link_closed(&mut self, link: LinkRef, conn: ConnId) {
        let Some(key) = self.key_of(link) else {
            return;
        };
        let found = self.link_mut(link.node, &key);
        if found.is_some_and(|it| it.conn == Some(conn)) {
            self.link_is_over(link.node, &key);
        }
    }

    /// The deadline of a request may have come.
    pub(super) fn link_time(&mut self, link: LinkRef) {
        let now = self.now();
        let Some(key) = self.key_of(link) else {
            return;
        };
        let Some(found) = self.link_mut(link.node, &key) else {
            return;
        };
        let mut outputs = Vec::new();
        found.timer = None;
        found.core.handle_time(now, &mut outputs);
        self.link_outputs(link.node, &key, outputs);
    }

    fn link_is_over(&mut self, node: NodeId, key: &LinkKey) {
        let process = self.process_mut(node);
        let link = process.and_then(|process| process.links.remove(key));
        if let Some(mut link) = link {
            let mut outputs = Vec::new();
            link.core.handle_closed(&mut outputs);
            for output in outputs {
                if let LinkOutput::Answer(token, result) = output {
                    self.answer_of_peer(node, (key.machine, token), result);
                }
            }
        }
    }

    fn link_outputs(&mut self, node: NodeId, key: &LinkKey, outputs: Vec<LinkOutput>) {
        for output in outputs {
            match output {
                LinkOutput::Write(frame) => {
                    let conn = self.link_mut(node, key).and_then(|link| link.conn);
                    let mut bytes = BytesMut::new();
                    bytes.put_slice(frame.head.get(LENGTH_BYTES..).unwrap_or_default());
                    bytes.put_slice(&frame.body);
                    if let Some(conn) = conn {
                        self.send_frame(conn, bytes.freeze());
                    }
                }
                LinkOutput::Answer(token, result) => {
                    self.answer_of_peer(node, (key.machine, token), result);
                }
                LinkOutput::Close(why) => {
                    let (channel, target) = (key.channel, key.target);
                    self.tell(format!("{node}: hangs up on {target} ({channel:?}): {why}"));
                    let process = self.process_mut(node);
                    let link = process.and_then(|process| process.links.remove(key));
                    if let Some(conn) = link.and_then(|link| link.conn) {
                        self.carry(conn, Towards::Node, Packet::Close);
                        self.forget_peer(conn);
                    }
                    return;
                }
            }
        }
        self.schedule_link(node, key);
    }

    /// Answers reach their machine in the order in which they came.
    fn answer_of_peer(
        &mut self,
        node: NodeId,
        (machine, token): (MachineId, Token),
        result: Result<Response, PeerError>,
    ) {
        let life = self.node(node).life;
        let event = Event::Machine {
            node,
            life,
            machine,
            input: Input::PeerAnswer { token, result },
        };
        self.events.push(self.now(), event);
    }

    fn schedule_link(&mut self, node: NodeId, key: &LinkKey) {
        let (now, life) = (self.now(), self.node(node).life);
        let Some(link) = self.link_mut(node, key) else {
            return;
        };
        let Some(deadline) = link.core.next_deadline() else {
            return;
        };
        let at = deadline.max(now);
        if link.timer.is_some_and(|timer| timer <= at) {
            return;
        }
        link.timer = Some(at);
        let link = LinkRef {
            node,
            life,
            channel: key.channel,
            number: link.number,
        };
        self.events.push(at, Event::LinkTime { link });
    }
}
