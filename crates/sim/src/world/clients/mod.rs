//! The clients of a run: what they ask for, what they do with answers, and what they remember.

mod consumer;
pub(crate) mod member;
mod producer;
pub(crate) mod requests;
mod view;

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_node::ConnId;
use highwater_protocol::{ListenerKind, Request, Response};
use highwater_types::{ErrorCode, Millis, NodeId, TopicName, Uuid};

pub(crate) use self::consumer::ConsumerLoad;
pub(crate) use self::member::{MemberLoad, SentCommit, SentOffsetFetch};
pub(crate) use self::producer::ProducerLoad;
use self::requests::Purpose;
pub(crate) use self::view::ClusterView;
use super::{Event, World};
use crate::client::{Client, ClientId};

/// How long a client waits before it looks again for something to do.
const TURN: Millis = Millis::new(7);

/// How long a client waits for an answer before it closes the connection.
const REQUEST_TIMEOUT: Millis = Millis::new(7000);

/// One client of a run.
#[derive(Debug)]
pub(crate) struct SimClient {
    /// Whom it talks to unless it knows better.
    pub(crate) node: NodeId,
    /// Its connections, one to a node.
    links: BTreeMap<NodeId, Client<Purpose>>,
    /// The listener that it connects to.
    pub(crate) listener: ListenerKind,
    /// What it does by itself.
    pub(crate) load: Load,
    /// Topic ids that it learned.
    pub(crate) topic_ids: BTreeMap<TopicName, Uuid>,
    /// Where it believes leaders to be.
    pub(crate) view: ClusterView,
    /// What it was told last, where it asked for one thing.
    pub(crate) code: Option<ErrorCode>,
    /// Counts answers, for scripts that wait for one.
    pub(crate) answers: u64,
}

impl SimClient {
    /// Requests without an answer, at all nodes.
    pub(crate) fn in_flight(&self) -> usize {
        self.links.values().map(Client::in_flight).sum()
    }

    /// Requests without an answer at one node.
    pub(crate) fn in_flight_at(&self, node: NodeId) -> usize {
        self.links.get(&node).map_or(0, Client::in_flight)
    }

    /// The connection to a node.
    pub(crate) fn conn(&self, node: NodeId) -> Option<ConnId> {
        self.links.get(&node)?.conn()
    }

    /// The end of a connection, if it still lives.
    fn end_of(&mut self, conn: ConnId) -> Option<(NodeId, &mut Client<Purpose>)> {
        let mut links = self.links.iter_mut();
        let found = links.find(|(_, link)| link.conn() == Some(conn));
        found.map(|(node, link)| (*node, link))
    }
}

/// What a client does by itself.
#[derive(Debug)]
pub(crate) enum Load {
    /// Nothing: a script tells it what to do.
    Scripted,
    /// Produces without end.
    Producer(ProducerLoad),
    /// Reads what there is, and waits for more.
    Consumer(ConsumerLoad),
    /// Is a member of a group.
    Member(Box<MemberLoad>),
    /// The other connection of a member.
    Hand(ClientId),
    /// Nothing: the process is dead.
    Gone,
}

impl World {
    /// Adds a client of `node`.
    pub(crate) fn add_client(&mut self, id: ClientId, node: NodeId, load: Load) {
        let acts = matches!(load, Load::Producer(_) | Load::Consumer(_));
        self.clients.insert(
            id,
            SimClient {
                node,
                links: BTreeMap::new(),
                listener: ListenerKind::Broker,
                load,
                topic_ids: BTreeMap::new(),
                view: ClusterView::default(),
                code: None,
                answers: 0,
            },
        );
        if acts {
            self.events.push(self.now(), Event::Client(id));
        }
    }

    /// Sends a request for a client to its own node; see [`World::ask_at`].
    pub(crate) fn ask(
        &mut self,
        id: ClientId,
        request: &Request,
        version: i16,
        purpose: Purpose,
    ) -> Result<(), Purpose> {
        let node = self.client(id).node;
        self.ask_at(id, node, (request, version), purpose)
    }

    /// Sends a request for a client, connecting first if need be. Gives the purpose back when
    /// the node cannot be reached.
    pub(crate) fn ask_at(
        &mut self,
        id: ClientId,
        node: NodeId,
        request: (&Request, i16),
        purpose: Purpose,
    ) -> Result<(), Purpose> {
        let conn = match self.client(id).conn(node) {
            Some(conn) => conn,
            None => match self.connect(id, node) {
                Some(conn) => conn,
                None => return Err(purpose),
            },
        };
        let (silent, now) = (purpose.is_silent(), self.now());
        let links = &mut self.client(id).links;
        let link = links.entry(node).or_insert_with(Client::new);
        if link.conn() != Some(conn) {
            link.connected(conn);
        }
        let frame = link.send(now, request, purpose, silent);
        self.send_frame(conn, frame);
        Ok(())
    }

    /// The client, which must be there.
    pub(crate) fn client(&mut self, id: ClientId) -> &mut SimClient {
        self.clients.get_mut(&id).expect("a client of this world")
    }

    /// Breaks a client's connections.
    pub(crate) fn cut_client(&mut self, id: ClientId) {
        let links = self.client(id).links.values();
        let conns: Vec<ConnId> = links.filter_map(Client::conn).collect();
        for conn in conns {
            self.reset(conn);
        }
    }

    /// A client closes its connection to a node: gives what stays unanswered.
    pub(crate) fn hang_up(&mut self, id: ClientId, node: NodeId) -> Vec<Purpose> {
        let Some(link) = self.client(id).links.get_mut(&node) else {
            return Vec::new();
        };
        let (conn, unanswered) = (link.conn(), link.disconnected());
        if let Some(conn) = conn {
            self.reset(conn);
        }
        unanswered
    }

    /// A client closes all its connections.
    pub(super) fn hang_up_all(&mut self, id: ClientId) {
        let nodes: Vec<NodeId> = self.client(id).links.keys().copied().collect();
        for node in nodes {
            self.hang_up(id, node);
        }
    }

    /// Connections on which nothing is answered are closed.
    fn give_up_waiting(&mut self, id: ClientId) {
        let now = self.now();
        let links = self.client(id).links.iter();
        let late = links.filter(|(_, link)| {
            let since = link.waits_since();
            since.is_some_and(|since| since.plus(REQUEST_TIMEOUT) <= now)
        });
        let late: Vec<NodeId> = late.map(|(node, _)| *node).collect();
        for node in late {
            let unanswered = self.hang_up(id, node);
            self.unanswered(id, node, unanswered);
        }
    }

    pub(super) fn client_receives(&mut self, id: ClientId, conn: ConnId, frame: Bytes) {
        let client = self.client(id);
        let Some((node, link)) = client.end_of(conn) else {
            return;
        };
        let (purpose, response) = link.receive(frame);
        client.answers += 1;
        self.answer(id, node, purpose, response);
    }

    pub(super) fn closed_at_client(&mut self, id: ClientId, conn: ConnId) {
        let Some((node, link)) = self.client(id).end_of(conn) else {
            return;
        };
        let unanswered = link.disconnected();
        self.unanswered(id, node, unanswered);
    }

    fn unanswered(&mut self, id: ClientId, node: NodeId, unanswered: Vec<Purpose>) {
        self.view_connection_lost(id, &unanswered);
        self.is_not_reached(id, node);
        let client = self.client(id);
        match &mut client.load {
            Load::Scripted => {
                if !unanswered.is_empty() {
                    let count = unanswered.len();
                    self.tell(format!(
                        "client {}: connection lost, {count} unanswered",
                        id.0
                    ));
                }
            }
            Load::Producer(load) => load.connection_lost(unanswered),
            Load::Consumer(load) => load.connection_lost(unanswered),
            Load::Member(_) | Load::Hand(_) => self.member_connection_lost(id, node, unanswered),
            Load::Gone => {}
        }
    }

    pub(super) fn client_turn(&mut self, id: ClientId) {
        match &self.client(id).load {
            Load::Scripted | Load::Hand(_) | Load::Gone => return,
            Load::Member(_) => return self.member_turn(id),
            Load::Producer(_) => {
                self.give_up_waiting(id);
                self.producer_turn(id);
            }
            Load::Consumer(_) => {
                self.give_up_waiting(id);
                self.consumer_turn(id);
            }
        }
        let jitter = Millis::new(self.random.below(TURN.as_u64()));
        self.events.push(
            self.now().plus(jitter).plus(Millis::new(1)),
            Event::Client(id),
        );
    }

    fn answer(&mut self, id: ClientId, node: NodeId, purpose: Purpose, response: Response) {
        match (purpose, response) {
            (Purpose::Produce(batch), Response::Produce(response)) => {
                self.produce_answered(id, node, batch, &response);
            }
            (Purpose::Fetch(fetch), Response::Fetch(response)) => {
                self.fetch_answered(id, node, &fetch, &response);
            }
            (Purpose::Metadata, Response::Metadata(response)) => {
                self.metadata_answered(id, &response);
            }
            (Purpose::MemberCall(call), response) => self.member_answered(id, call, response),
            (Purpose::Commit(commit), Response::OffsetCommit(response)) => {
                self.commit_answered(id, &commit, &response);
            }
            (Purpose::OffsetFetch(fetch), Response::OffsetFetch(response)) => {
                self.offsets_answered(id, &fetch, &response);
            }
            (purpose, response) => self.other_answered(id, &purpose, response),
        }
    }
}
