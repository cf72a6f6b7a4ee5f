//! Ways of the network that are shut: cuts between nodes, and packets that a story or a pause holds
//! back, to be let through one by one, late or never.

use std::collections::BTreeSet;

use highwater_node::{Channel, ConnId};
use highwater_types::NodeId;

use super::World;
use super::network::{Packet, Towards, Wire};
use super::node::Peer;
use crate::client::ClientId;

/// Where the ways are shut.
#[derive(Debug, Default)]
pub(super) struct Gates {
    /// From the first node to the second nothing comes through.
    cuts: BTreeSet<(NodeId, NodeId)>,
    /// What stories hold back.
    holds: BTreeSet<Hold>,
    /// Clients that get nothing.
    clients: BTreeSet<ClientId>,
}

/// What is held back between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hold {
    /// Who sends it.
    pub(crate) from: NodeId,
    /// Who should get it.
    pub(crate) to: NodeId,
    /// On this channel only.
    pub(crate) channel: Option<Channel>,
    /// Requests, answers or both.
    pub(crate) which: Which,
}

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Which {
    /// Requests and answers.
    Both,
    /// Requests of the sender.
    Requests,
    /// Its answers.
    Answers,
}

impl Hold {
    /// Whether everything that `other` holds back is held back so.
    fn covers(&self, other: &Self) -> bool {
        (self.from, self.to) == (other.from, other.to)
            && self.channel.is_none_or(|it| other.channel == Some(it))
            && (self.which == Which::Both || self.which == other.which)
    }

    fn matches(&self, wire: &Wire, towards: Towards) -> bool {
        let Peer::Node(link) = wire.peer else {
            return false;
        };
        wire.route(towards) == Some((self.from, self.to))
            && self.channel.is_none_or(|it| it == link.channel)
            && match self.which {
                Which::Both => true,
                Which::Requests => towards == Towards::Node,
                Which::Answers => towards == Towards::Peer,
            }
    }
}

impl World {
    /// Whether nothing comes through.
    pub(super) fn is_shut(&self, wire: &Wire, towards: Towards) -> bool {
        match wire.peer {
            Peer::Client(client) => {
                towards == Towards::Peer && self.gates.clients.contains(&client)
            }
            Peer::Loopback(..) | Peer::Nobody => false,
            Peer::Node(_) => {
                let route = wire.route(towards);
                route.is_some_and(|route| self.gates.cuts.contains(&route))
                    || self.gates.holds.iter().any(|it| it.matches(wire, towards))
            }
        }
    }

    /// Whether one node reaches another one.
    pub(super) fn reaches(&self, from: NodeId, to: NodeId) -> bool {
        !self.gates.cuts.contains(&(from, to))
    }

    /// From now on nothing comes through from one node to the other.
    pub(crate) fn cut(&mut self, from: NodeId, to: NodeId) {
        self.gates.cuts.insert((from, to));
    }

    /// Nothing is cut any more, and what stuck comes through.
    pub(crate) fn heal(&mut self) {
        self.gates.cuts.clear();
        self.let_through();
    }

    /// Nothing is cut any more from one node to the other.
    pub(crate) fn heal_way(&mut self, from: NodeId, to: NodeId) {
        self.gates.cuts.remove(&(from, to));
        self.let_through();
    }

    /// From now on this stays on the way.
    pub(crate) fn hold_back(&mut self, hold: Hold) {
        self.gates.holds.insert(hold);
    }

    /// Everything that was held back so, or in part, comes through, in order; it is held no more.
    pub(crate) fn let_go(&mut self, hold: &Hold) {
        self.gates.holds.retain(|it| !hold.covers(it));
        self.let_through();
    }

    /// The oldest packet that is held back so, and its connection.
    pub(crate) fn take_held(&mut self, hold: &Hold) -> Option<(ConnId, Held)> {
        let (_, conn, towards) = self.first_stuck(|wire, towards| hold.matches(wire, towards))?;
        let wire = self.wires.get_mut(&conn)?;
        let (_, packet) = wire.way(towards).stuck.pop_front()?;
        Some((conn, Held { towards, packet }))
    }

    /// A copy of the oldest request that is held back so arrives on a connection of its own;
    /// whether there is one.
    pub(crate) fn repeat_held(&mut self, hold: &Hold) -> bool {
        let only_requests = Hold {
            which: Which::Requests,
            ..*hold
        };
        let found = self.first_stuck(|wire, towards| only_requests.matches(wire, towards));
        let Some((_, conn, towards)) = found else {
            return false;
        };
        let Some(wire) = self.wires.get(&conn) else {
            return false;
        };
        let node = wire.node;
        let front = wire.way_of(towards).stuck.front();
        let Some((_, Packet::Request(frame))) = front else {
            return false;
        };
        let frame = frame.clone();
        let Some(copy) = self.accept(node, wire.listener, Peer::Nobody) else {
            return false;
        };
        self.received(copy, Towards::Node, Packet::Request(frame));
        true
    }

    /// A packet that was held back arrives.
    pub(crate) fn pass(&mut self, conn: ConnId, held: Held) {
        self.received(conn, held.towards, held.packet);
    }

    /// Frames to the client stay on the way.
    pub(crate) fn hold(&mut self, client: ClientId) {
        self.gates.clients.insert(client);
    }

    /// Everything that was held for clients arrives now, in order; nothing is held any more.
    pub(crate) fn deliver(&mut self) {
        self.gates.clients.clear();
        self.let_through();
    }

    /// What was held for these clients arrives now, in order.
    pub(crate) fn deliver_to(&mut self, clients: &[ClientId]) {
        self.gates.clients.retain(|it| !clients.contains(it));
        self.let_through();
    }

    /// What sticks where nothing is shut arrives now, in the order in which it came to the gates.
    fn let_through(&mut self) {
        loop {
            let mut open: Vec<(u64, ConnId, Towards)> = Vec::new();
            for (conn, wire) in &self.wires {
                for towards in [Towards::Node, Towards::Peer] {
                    if let Some((seq, _)) = wire.way_of(towards).stuck.front()
                        && !self.is_shut(wire, towards)
                    {
                        open.push((*seq, *conn, towards));
                    }
                }
            }
            let Some((_, conn, towards)) = open.into_iter().min_by_key(|(seq, ..)| *seq) else {
                return;
            };
            let wire = self.wires.get_mut(&conn);
            let packet = wire.and_then(|wire| wire.way(towards).stuck.pop_front());
            if let Some((_, packet)) = packet {
                self.received(conn, towards, packet);
            }
        }
    }

    fn first_stuck(
        &self,
        wanted: impl Fn(&Wire, Towards) -> bool,
    ) -> Option<(u64, ConnId, Towards)> {
        let ends = [Towards::Node, Towards::Peer];
        let ways = self.wires.iter().flat_map(|(conn, wire)| {
            let stuck = ends.map(|towards| {
                let front = wire.way_of(towards).stuck.front();
                front.map(|(seq, _)| (*seq, *conn, towards))
            });
            stuck
                .into_iter()
                .flatten()
                .filter(|(.., towards)| wanted(wire, *towards))
        });
        ways.min_by_key(|(seq, ..)| *seq)
    }
}

/// A packet that was held back.
#[derive(Debug)]
pub(crate) struct Held {
    pub(super) towards: Towards,
    pub(super) packet: Packet,
}
