//! The clients of a run: what they ask for, what they do with answers, and what they remember.

mod consumer;
pub(crate) mod member;
mod producer;
pub(crate) mod requests;

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_node::ConnId;
use highwater_protocol::{Request, Response};
use highwater_types::{Millis, NodeId, TopicName, Uuid};

pub(crate) use self::consumer::ConsumerLoad;
pub(crate) use self::member::{MemberLoad, SentCommit, SentOffsetFetch};
pub(crate) use self::producer::ProducerLoad;
use self::requests::Purpose;
use super::{Event, World};
use crate::client::{Client, ClientId};

/// How long a client waits before it looks again for something to do.
const TURN: Millis = Millis::new(7);

/// One client of a run.
#[derive(Debug)]
pub(crate) struct SimClient {
    /// Whom it talks to.
    pub(crate) node: NodeId,
    /// Its connection.
    pub(crate) link: Client<Purpose>,
    /// What it does by itself.
    pub(crate) load: Load,
    /// Topic ids that it learned.
    pub(crate) topic_ids: BTreeMap<TopicName, Uuid>,
    /// The newest answer, for scripts that wait for one.
    pub(crate) answers: u64,
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
        let link = Client::new();
        let topic_ids = BTreeMap::new();
        self.clients.insert(
            id,
            SimClient {
                node,
                link,
                load,
                topic_ids,
                answers: 0,
            },
        );
        if acts {
            self.events.push(self.now(), Event::Client(id));
        }
    }

    /// Sends a request for a client, connecting first if need be. Gives the purpose back when
    /// the node cannot be reached.
    pub(crate) fn ask(
        &mut self,
        id: ClientId,
        request: &Request,
        version: i16,
        purpose: Purpose,
    ) -> Result<(), Purpose> {
        let node = self.client(id).node;
        let conn = match self.client(id).link.conn() {
            Some(conn) => conn,
            None => match self.connect(id, node) {
                Some(conn) => {
                    self.client(id).link.connected(conn);
                    conn
                }
                None => return Err(purpose),
            },
        };
        let silent = purpose.is_silent();
        let frame = self.client(id).link.send(request, version, purpose, silent);
        self.send_frame(node, conn, frame);
        Ok(())
    }

    /// The client, which must be there.
    pub(crate) fn client(&mut self, id: ClientId) -> &mut SimClient {
        self.clients.get_mut(&id).expect("a client of this world")
    }

    /// Breaks a client's connection, if it has one.
    pub(crate) fn cut_client(&mut self, id: ClientId) {
        let client = self.client(id);
        let node = client.node;
        if let Some(conn) = client.link.conn() {
            self.break_conn(node, conn);
        }
    }

    pub(super) fn client_receives(&mut self, id: ClientId, conn: ConnId, frame: Bytes) {
        let client = self.client(id);
        if client.link.conn() != Some(conn) {
            return;
        }
        let (purpose, response) = client.link.receive(frame);
        client.answers += 1;
        self.answer(id, purpose, response);
    }

    pub(super) fn closed_at_client(&mut self, id: ClientId, conn: ConnId) {
        let client = self.client(id);
        if client.link.conn() != Some(conn) {
            return;
        }
        let unanswered = client.link.disconnected();
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
            Load::Consumer(load) => load.connection_lost(),
            Load::Member(_) | Load::Hand(_) => self.member_connection_lost(id, unanswered),
            Load::Gone => {}
        }
    }

    pub(super) fn client_turn(&mut self, id: ClientId) {
        match &self.client(id).load {
            Load::Scripted | Load::Hand(_) | Load::Gone => return,
            Load::Member(_) => return self.member_turn(id),
            Load::Producer(_) => self.producer_turn(id),
            Load::Consumer(_) => self.consumer_turn(id),
        }
        let jitter = Millis::new(self.random.below(TURN.as_u64()));
        self.events.push(
            self.now().plus(jitter).plus(Millis::new(1)),
            Event::Client(id),
        );
    }

    fn answer(&mut self, id: ClientId, purpose: Purpose, response: Response) {
        match (purpose, response) {
            (Purpose::Produce(batch), Response::Produce(response)) => {
                self.produce_answered(id, batch, &response);
            }
            (Purpose::Fetch(fetch), Response::Fetch(response)) => {
                self.fetch_answered(id, &fetch, &response);
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
