//! What the controller decides: requests go there, and its answers come back to the client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_protocol::messages::{
    create_topics_request::{CreatableTopic, CreateTopicsRequest},
    create_topics_response::{CreatableTopicResult, CreateTopicsResponse},
    delete_topics_request::{DeleteTopicState, DeleteTopicsRequest},
    delete_topics_response::{DeletableTopicResult, DeleteTopicsResponse},
};
use highwater_protocol::{OutRequest, Response};
use highwater_types::{ErrorCode, Millis, Mono, Now, TopicId, TopicName, Uuid};

use super::describe::is_internal;
use super::lifecycle::ToApply;
use super::requests::push_answer;
use super::{Effects, Shard};
use crate::authorizer::{Operation, Resource};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Caller, Channel, ConnId, Effect, Incoming, PeerError, Ticket, Token};

/// How long an answer is held back until this broker's metadata knows what it says.
const CATCH_UP_MAX: Millis = Millis::new(1_000);
/// Topics that are made at once for clients that only asked about them; others wait for the
/// next time that somebody asks.
const AUTO_CREATING_MAX: usize = 1_000;
/// What is added to a client's own time-out: the controller's answer is better than ours.
const GRACE: Millis = Millis::new(500);

/// Requests that are with the controller, and answers that wait for the metadata.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {
    sent: BTreeMap<Token, Forwarded>,
    /// Topics that are being made for clients that only asked for their metadata.
    auto_creating: BTreeSet<TopicName>,
    held: Vec<Held>,
}

/// A request that is with the controller.
#[derive(Debug)]
enum Forwarded {
    Create {
        asked: Asked,
        names: Vec<String>,
        validate_only: bool,
        /// Topics that the caller may not make: nobody else is asked about them.
        denied: Vec<String>,
    },
    Delete {
        asked: Asked,
        topics: Vec<(Option<String>, Uuid)>,
        /// Topics that the caller may not delete.
        denied: Vec<(Option<String>, Uuid)>,
    },
    AutoCreate {
        names: Vec<TopicName>,
    },
    ProducerIds,
}

/// Who asked for what is forwarded.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) ticket: Ticket,
    pub(crate) version: i16,
    pub(crate) caller: Arc<Caller>,
    /// The frame. It stays counted against the memory for requests until the answer is there: a
    /// decoded copy of it waits for the controller.
    #[expect(dead_code, reason = "held for what it counts against")]
    pub(crate) raw: Bytes,
}

impl From<Incoming> for Asked {
    fn from(incoming: Incoming) -> Self {
        let Incoming {
            ticket,
            version,
            caller,
            raw,
            ..
        } = incoming;
        Self {
            ticket,
            version,
            caller,
            raw,
        }
    }
}

/// An answer that waits until the metadata of this broker has caught up with it, so that a client
/// that acts on it at once is not told the contrary.
#[derive(Debug)]
struct Held {
    ticket: Ticket,
    body: Bytes,
    deadline: Mono,
    topics: Vec<TopicId>,
    /// Whether the topics are to be there, or gone.
    there: bool,
}

impl Held {
    fn is_caught_up(&self, image: &MetadataImage, to_apply: &ToApply) -> bool {
        let caught_up =
            |id: &TopicId| image.topic(*id).is_some() == self.there && !to_apply.contains(*id);
        self.topics.iter().all(caught_up)
    }
}

impl Forwarding {
    /// When a held answer is given all the same.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.held.iter().map(|it| it.deadline).min()
    }

    pub(crate) fn connection_closed(&mut self, conn: ConnId) {
        self.held.retain(|it| it.ticket.conn != conn);
        self.sent.retain(|_, forwarded| match forwarded {
            Forwarded::Create { asked, .. } | Forwarded::Delete { asked, .. } => {
                asked.ticket.conn != conn
            }
            Forwarded::AutoCreate { .. } | Forwarded::ProducerIds => true,
        });
    }
}

impl<D: Disk> Shard<D> {
    /// Sends CreateTopics to the controller.
    pub(crate) fn forward_create_topics(
        &mut self,
        now: Now,
        asked: Asked,
        mut request: CreateTopicsRequest,
        out: &mut Effects<D>,
    ) {
        let denied = self.take_denied_creations(&asked.caller, &mut request.topics);
        let names = request.topics.iter().map(|it| it.name.clone()).collect();
        let validate_only = request.validate_only;
        let forwarded = Forwarded::Create {
            asked,
            names,
            validate_only,
            denied,
        };
        let time_out = Millis::from_wire(request.timeout_ms);
        self.send_to_controller(now, forwarded, request.into(), time_out, out);
    }

    /// Sends DeleteTopics to the controller.
    pub(crate) fn forward_delete_topics(
        &mut self,
        now: Now,
        asked: Asked,
        mut request: DeleteTopicsRequest,
        out: &mut Effects<D>,
    ) {
        // Old versions have names only; the newest, which the controller gets, has pairs.
        for name in std::mem::take(&mut request.topic_names) {
            let topic = DeleteTopicState {
                name: Some(name),
                ..Default::default()
            };
            request.topics.push(topic);
        }
        let denied = self.take_denied_deletions(&asked.caller, &mut request.topics);
        let topics = request
            .topics
            .iter()
            .map(|it| (it.name.clone(), it.topic_id))
            .collect();
        let forwarded = Forwarded::Delete {
            asked,
            topics,
            denied,
        };
        let time_out = Millis::from_wire(request.timeout_ms);
        self.send_to_controller(now, forwarded, request.into(), time_out, out);
    }

    /// Has topics made that a client asked about (`auto.create.topics.enable`), with the
    /// controller's default partitions and replication factor. Kafka's own topics are left to
    /// those who need them.
    pub(crate) fn auto_create_topics(
        &mut self,
        now: Now,
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
        let time_out = self.serve.settings.request_timeout;
        let request = CreateTopicsRequest {
            topics: topics.collect(),
            timeout_ms: i32::try_from(time_out.as_u64()).unwrap_or(i32::MAX),
            validate_only: false,
        };
        let forwarded = Forwarded::AutoCreate { names };
        self.send_to_controller(now, forwarded, request.into(), time_out, out);
    }

    /// Has one of Kafka's own topics made, unless that is under way.
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
        let time_out = self.serve.settings.request_timeout;
        let request = CreateTopicsRequest {
            topics: vec![topic],
            timeout_ms: i32::try_from(time_out.as_u64()).unwrap_or(i32::MAX),
            validate_only: false,
        };
        let forwarded = Forwarded::AutoCreate { names: vec![name] };
        self.send_to_controller(now, forwarded, request.into(), time_out, out);
    }

    /// Asks the controller for a block of producer ids.
    pub(crate) fn send_for_producer_ids(
        &mut self,
        now: Now,
        request: OutRequest,
        out: &mut Effects<D>,
    ) {
        let time_out = self.serve.settings.request_timeout;
        self.send_to_controller(now, Forwarded::ProducerIds, request, time_out, out);
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
        let Some(forwarded) = self.serve.forwarding.sent.remove(&token) else {
            return;
        };
        match forwarded {
            Forwarded::Create {
                asked,
                names,
                validate_only,
                denied,
            } => {
                let mut response = match result {
                    Ok(Response::CreateTopics(response)) => response,
                    other => not_created(names, no_answer(&other)),
                };
                let made = response
                    .topics
                    .iter()
                    .filter(|it| !it.error_code.is_error());
                let made = made.map(|it| it.topic_id).filter(|_| !validate_only);
                let topics = named(made);
                self.hide_configs(&asked.caller, &mut response);
                response.topics.extend(denied.into_iter().map(not_allowed));
                self.give_or_hold(now, &asked, response.into(), topics, true, out);
            }
            Forwarded::Delete {
                asked,
                topics,
                denied,
            } => {
                let mut response = match result {
                    Ok(Response::DeleteTopics(response)) => response,
                    other => not_deleted(topics, no_answer(&other)),
                };
                let gone = response
                    .responses
                    .iter()
                    .filter(|it| !it.error_code.is_error());
                let topics = named(gone.map(|it| it.topic_id));
                let denied = denied.into_iter();
                let denied = denied.map(|(name, topic_id)| DeletableTopicResult {
                    name,
                    topic_id,
                    error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
                    ..Default::default()
                });
                response.responses.extend(denied);
                self.give_or_hold(now, &asked, response.into(), topics, false, out);
            }
            Forwarded::AutoCreate { names } => {
                for name in &names {
                    self.serve.forwarding.auto_creating.remove(name);
                }
                tell_auto_created(&result, out);
            }
            Forwarded::ProducerIds => self.producer_ids_came(now, result, out),
        }
    }

    /// Gives the answers whose time has come: the metadata has caught up, or never mind.
    pub(crate) fn give_held_answers(&mut self, now: Now, out: &mut Effects<D>) {
        let (image, to_apply) = (&self.image, &self.lifecycle.to_apply);
        self.serve.forwarding.held.retain(|held| {
            let give = held.is_caught_up(image, to_apply) || held.deadline <= now.mono;
            if give {
                let answer = Answer::bytes(held.body.clone());
                out.push(Effect::Answer {
                    ticket: held.ticket,
                    answer,
                });
            }
            !give
        });
    }

    fn give_or_hold(
        &mut self,
        now: Now,
        asked: &Asked,
        response: Response,
        topics: Vec<TopicId>,
        there: bool,
        out: &mut Effects<D>,
    ) {
        let (ticket, version) = (asked.ticket, asked.version);
        let Ok(body) = response.encode(version) else {
            push_answer(ticket, version, &response, out);
            return;
        };
        let deadline = now.mono.plus(CATCH_UP_MAX);
        self.serve.forwarding.held.push(Held {
            ticket,
            body,
            deadline,
            topics,
            there,
        });
        self.give_held_answers(now, out);
    }

    fn send_to_controller(
        &mut self,
        now: Now,
        forwarded: Forwarded,
        request: OutRequest,
        time_out: Millis,
        out: &mut Effects<D>,
    ) {
        let token = self.new_token();
        self.serve.forwarding.sent.insert(token, forwarded);
        let deadline = now.mono.plus(time_out).plus(GRACE);
        out.push(Effect::Send {
            peer: self.to_controller(),
            channel: Channel::Others,
            token,
            request,
            deadline,
        });
    }
}

impl<D: Disk> Shard<D> {
    /// Takes out the topics that the caller may not make; each name once.
    fn take_denied_creations(
        &self,
        caller: &Caller,
        topics: &mut Vec<CreatableTopic>,
    ) -> Vec<String> {
        if self.allows(caller, Operation::Create, Resource::Cluster) {
            return Vec::new();
        }
        let mut denied = BTreeSet::new();
        topics.retain(|topic| {
            let allowed = self.allows(caller, Operation::Create, Resource::Topic(&topic.name));
            if !allowed {
                denied.insert(topic.name.clone());
            }
            allowed
        });
        denied.into_iter().collect()
    }

    /// Takes out the topics that the caller may not delete, as they are to be named to it: the
    /// name of a topic that it may not see is not told to one who knows its id.
    fn take_denied_deletions(
        &self,
        caller: &Caller,
        topics: &mut Vec<DeleteTopicState>,
    ) -> Vec<(Option<String>, Uuid)> {
        let mut denied = BTreeSet::new();
        topics.retain(|topic| {
            let by_id = self.image.topic(TopicId::new(topic.topic_id));
            let by_id = by_id.map(|topic| topic.name.as_str());
            let Some(name) = topic.name.as_deref().or(by_id) else {
                return true;
            };
            let allows = |operation| self.allows(caller, operation, Resource::Topic(name));
            if allows(Operation::Delete) {
                return true;
            }
            let shown = topic.name.is_some() || allows(Operation::Describe);
            denied.insert((shown.then(|| name.to_owned()), topic.topic_id));
            false
        });
        denied.into_iter().collect()
    }

    /// A new topic's configs are for those only who may see them.
    fn hide_configs(&self, caller: &Caller, response: &mut CreateTopicsResponse) {
        let made = response.topics.iter_mut();
        for topic in made.filter(|topic| !topic.error_code.is_error()) {
            let resource = Resource::Topic(&topic.name);
            if !self.allows(caller, Operation::DescribeConfigs, resource) {
                topic.topic_config_error_code = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
                topic.num_partitions = -1;
                topic.replication_factor = -1;
                topic.configs = None;
            }
        }
    }
}

fn not_allowed(name: String) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        configs: Some(Vec::new()),
        ..Default::default()
    }
}

fn named(ids: impl Iterator<Item = Uuid>) -> Vec<TopicId> {
    ids.filter(|id| !id.is_zero()).map(TopicId::new).collect()
}

/// What a client is told when the controller said nothing that makes sense.
fn no_answer(result: &Result<Response, PeerError>) -> ErrorCode {
    match result {
        Ok(_) | Err(PeerError::Malformed) => ErrorCode::UNKNOWN_SERVER_ERROR,
        Err(PeerError::Unsupported) => ErrorCode::UNSUPPORTED_VERSION,
        Err(PeerError::Disconnected | PeerError::TimedOut) => ErrorCode::REQUEST_TIMED_OUT,
    }
}

fn not_created(names: Vec<String>, error_code: ErrorCode) -> CreateTopicsResponse {
    let topics = names.into_iter().map(|name| CreatableTopicResult {
        name,
        error_code,
        error_message: Some(no_answer_text(error_code)),
        ..Default::default()
    });
    CreateTopicsResponse {
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
}

fn not_deleted(topics: Vec<(Option<String>, Uuid)>, error_code: ErrorCode) -> DeleteTopicsResponse {
    let responses = topics
        .into_iter()
        .map(|(name, topic_id)| DeletableTopicResult {
            name,
            topic_id,
            error_code,
            error_message: Some(no_answer_text(error_code)),
        });
    DeleteTopicsResponse {
        throttle_time_ms: 0,
        responses: responses.collect(),
    }
}

fn no_answer_text(error_code: ErrorCode) -> String {
    match error_code {
        ErrorCode::REQUEST_TIMED_OUT => {
            "The controller did not answer in time; the change may still be made.".to_owned()
        }
        code => format!("The controller did not answer as expected: {code}."),
    }
}

/// Nobody waits for topics that are made on the side, so failures are told here.
fn tell_auto_created<D: Disk>(result: &Result<Response, PeerError>, out: &mut Effects<D>) {
    match result {
        Ok(Response::CreateTopics(response)) => {
            let failed = response.topics.iter().filter(|it| {
                // Somebody else was faster: just as well.
                it.error_code.is_error() && it.error_code != ErrorCode::TOPIC_ALREADY_EXISTS
            });
            for topic in failed {
                let why = topic.error_message.as_deref().unwrap_or_default();
                let name = topic.name.as_str();
                let text = format!("topic {name} was not made: {}: {why}", topic.error_code);
                out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
            }
        }
        other => {
            let code = no_answer(other);
            let text = format!("topics were not made: {}", no_answer_text(code));
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
        }
    }
}
