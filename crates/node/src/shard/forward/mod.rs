//! What the controller decides: a client's request goes there in an envelope, as it came, and the
//! answer comes back to the client (KIP-590). While nobody knows the controller, or it is another
//! one, the request is sent again until the client's time is over.

mod answer;
mod held;

use std::collections::{BTreeMap, BTreeSet};

use bytes::{BufMut as _, BytesMut};
use highwater_disk::Disk;
use highwater_protocol::messages::CreateTopicsRequest;
use highwater_protocol::messages::create_topics_request::CreatableTopic;
use highwater_protocol::wire::Writer;
use highwater_protocol::{ApiKey, OutRequest, Request, RequestHeader, Response};
use highwater_types::{ErrorCode, Millis, Mono, Now, TopicName};

pub(crate) use self::answer::Asked;
use self::held::{Awaited, Held};
use super::describe::is_internal;
use super::{Effects, Shard};
use crate::envelope;
use crate::machine::{Answer, Caller, Channel, ConnId, Effect, Incoming, PeerError, Token};

/// Topics that are made at once for clients that only asked about them; others wait for the
/// next time that somebody asks.
const AUTO_CREATING_MAX: usize = 1_000;
/// What is added to a client's own time-out: the controller's answer is better than ours.
const GRACE: Millis = Millis::new(500);
/// How long a request waits before it is sent again to whoever is the controller then.
const AGAIN_AFTER: Millis = Millis::new(50);
/// The version of CreateTopics that topics are made with on the side.
const CREATE_TOPICS: i16 = 7;

/// Requests that are with the controller, and answers that wait for the metadata.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {
    sent: BTreeMap<Token, Sent>,
    /// Requests that reached no controller, and when each is sent again.
    again: Vec<(Mono, Sent)>,
    /// Topics that are being made for clients that only asked for their metadata.
    auto_creating: BTreeSet<TopicName>,
    held: Vec<Held>,
}

/// A request that is with the controller, or on its way to it.
#[derive(Debug)]
struct Sent {
    what: Forwarded,
    request: OutRequest,
    /// Nobody waits for longer.
    until: Mono,
}

/// Who waits for the controller's answer.
#[derive(Debug)]
enum Forwarded {
    /// A client, whose request is in the envelope.
    Client(Asked),
    /// Nobody: topics are made on the side.
    AutoCreate { names: Vec<TopicName> },
    /// Producers without an id.
    ProducerIds,
}

impl Forwarding {
    /// When a held answer is given all the same, or a request is sent again.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let held = self.held.iter().map(|it| it.deadline);
        let again = self.again.iter().map(|(at, _)| *at);
        held.chain(again).min()
    }

    pub(crate) fn connection_closed(&mut self, conn: ConnId) {
        let stays = |sent: &Sent| match &sent.what {
            Forwarded::Client(asked) => asked.ticket.conn != conn,
            Forwarded::AutoCreate { .. } | Forwarded::ProducerIds => true,
        };
        self.held.retain(|it| it.ticket.conn != conn);
        self.again.retain(|(_, sent)| stays(sent));
        self.sent.retain(|_, sent| stays(sent));
    }
}

impl<D: Disk> Shard<D> {
    /// Sends a client's request to the controller. Who may do what is asked there.
    pub(crate) fn forward(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: &Request,
        out: &mut Effects<D>,
    ) {
        let ticket = incoming.ticket;
        let Ok(header) = RequestHeader::decode(&mut incoming.raw.clone()) else {
            // `Connection` has read it before.
            let answer = Answer::close();
            out.push(Effect::Answer { ticket, answer });
            return;
        };
        let time_out = match request {
            Request::CreateTopics(request) => Millis::from_wire(request.timeout_ms),
            Request::DeleteTopics(request) => Millis::from_wire(request.timeout_ms),
            _ => self.serve.settings.request_timeout,
        };
        let asked = Asked {
            ticket,
            api_key: request.api_key(),
            version: incoming.version,
            correlation_id: header.correlation_id,
            frame: incoming.raw.clone(),
            awaited: Awaited::of(request, &self.image),
        };
        let envelope = envelope::seal(&incoming.caller, incoming.raw.clone());
        let sent = Sent {
            what: Forwarded::Client(asked),
            request: envelope.into(),
            until: now.mono.plus(time_out).plus(GRACE),
        };
        self.send_to_controller(sent, out);
    }

    /// Has topics made that a client asked about (`auto.create.topics.enable`), with the
    /// controller's default partitions and replication factor, in the client's name. Kafka's own
    /// topics are left to those who need them.
    pub(crate) fn auto_create_topics(
        &mut self,
        now: Now,
        caller: &Caller,
        missing: Vec<TopicName>,
        out: &mut Effects<D>,
    ) {
        let creating = &mut self.serve.forwarding.auto_creating;
        let names: Vec<TopicName> = missing
            .into_iter()
            .filter(|name| {
                let room = creating.len() < AUTO_CREATING_MAX && !is_internal(name.as_str());
                room && creating.insert(name.clone())
            })
            .collect();
        if names.is_empty() {
            return;
        }
        let topics = names.iter().map(|name| CreatableTopic {
            name: name.to_string(),
            num_partitions: -1,
            replication_factor: -1,
            ..Default::default()
        });
        let topics = topics.collect();
        let request = in_envelope(caller, &self.create_topics_request(topics));
        self.send_auto_create(now, names, request, out);
    }

    /// Has one of Kafka's own topics made, unless that is under way. The broker asks for itself.
    pub(crate) fn create_internal_topic(
        &mut self,
        now: Now,
        topic: CreatableTopic,
        out: &mut Effects<D>,
    ) {
        let name = TopicName::new(&topic.name).expect("a name of our own choosing");
        if !self.serve.forwarding.auto_creating.insert(name.clone()) {
            return;
        }
        let request = self.create_topics_request(vec![topic]);
        self.send_auto_create(now, vec![name], request.into(), out);
    }

    /// Asks the controller for a block of producer ids.
    pub(crate) fn send_for_producer_ids(
        &mut self,
        now: Now,
        request: OutRequest,
        out: &mut Effects<D>,
    ) {
        let sent = Sent {
            what: Forwarded::ProducerIds,
            request,
            until: now.mono.plus(self.serve.settings.request_timeout),
        };
        self.send_to_controller(sent, out);
    }

    /// Takes the controller's answer, or learns that there is none.
    pub(crate) fn handle_peer_answer(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) {
        if self.directories_told(now, token, &result, out) {
            return;
        }
        let Some(sent) = self.serve.forwarding.sent.remove(&token) else {
            return;
        };
        let patient = !matches!(sent.what, Forwarded::ProducerIds);
        if patient && reached_no_controller(&result) {
            let at = now.mono.plus(AGAIN_AFTER).min(sent.until);
            self.serve.forwarding.again.push((at, sent));
            return;
        }
        match sent.what {
            Forwarded::Client(asked) => self.forwarded_answered(now, asked, result, out),
            Forwarded::AutoCreate { names } => self.auto_created(&names, result, out),
            Forwarded::ProducerIds => self.producer_ids_came(now, result, out),
        }
    }

    /// Sends again what reached no controller, and gives the answers whose time has come.
    pub(crate) fn forwarding_settle(&mut self, now: Now, out: &mut Effects<D>) {
        let is_due = |(at, _): &mut (Mono, Sent)| *at <= now.mono;
        let due: Vec<_> = self.serve.forwarding.again.extract_if(.., is_due).collect();
        for (_, sent) in due {
            if now.mono < sent.until {
                self.send_to_controller(sent, out);
                continue;
            }
            let late = Err(PeerError::TimedOut);
            match sent.what {
                Forwarded::Client(asked) => self.forwarded_answered(now, asked, late, out),
                Forwarded::AutoCreate { names } => self.auto_created(&names, late, out),
                Forwarded::ProducerIds => self.producer_ids_came(now, late, out),
            }
        }
        self.give_held_answers(now, out);
    }

    fn create_topics_request(&self, topics: Vec<CreatableTopic>) -> CreateTopicsRequest {
        let time_out = self.serve.settings.request_timeout.as_u64();
        CreateTopicsRequest {
            topics,
            timeout_ms: i32::try_from(time_out).unwrap_or(i32::MAX),
            validate_only: false,
        }
    }

    fn send_auto_create(
        &mut self,
        now: Now,
        names: Vec<TopicName>,
        request: OutRequest,
        out: &mut Effects<D>,
    ) {
        let sent = Sent {
            what: Forwarded::AutoCreate { names },
            request,
            until: now.mono.plus(self.serve.settings.request_timeout),
        };
        self.send_to_controller(sent, out);
    }

    fn send_to_controller(&mut self, sent: Sent, out: &mut Effects<D>) {
        let token = self.new_token();
        out.push(Effect::Send {
            peer: self.to_controller(),
            channel: Channel::Others,
            token,
            request: sent.request.clone(),
            deadline: sent.until,
        });
        self.serve.forwarding.sent.insert(token, sent);
    }
}

/// A request of our own making, in the name of a client.
fn in_envelope(caller: &Caller, request: &CreateTopicsRequest) -> OutRequest {
    let header = RequestHeader {
        api_key: ApiKey::CreateTopics.raw(),
        version: CREATE_TOPICS,
        correlation_id: 0,
        client_id: None,
    };
    let mut head = Writer::new();
    header.encode(&mut head).expect("a header without a name");
    let body = OutRequest::from(request.clone()).encode(CREATE_TOPICS);
    let body = body.expect("topics with legal names and nothing else");
    let mut frame = BytesMut::from(head.into_bytes());
    frame.put(body);
    envelope::seal(caller, frame.freeze()).into()
}

/// Whether a request was not decided on: nobody was there, or it was not the controller.
fn reached_no_controller(result: &Result<Response, PeerError>) -> bool {
    let not_controller = ErrorCode::NOT_CONTROLLER;
    match result {
        Err(PeerError::Disconnected) => true,
        Ok(Response::Envelope(response)) => response.error_code == not_controller,
        Ok(Response::CreateTopics(response)) => {
            let mut topics = response.topics.iter();
            topics.any(|topic| topic.error_code == not_controller)
        }
        _ => false,
    }
}
