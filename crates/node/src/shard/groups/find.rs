//! FindCoordinator, and the topic of the coordinators, which is made when somebody first asks.

use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    create_topics_request::{CreatableTopic, CreatableTopicConfig},
    find_coordinator_request::FindCoordinatorRequest,
    find_coordinator_response::{Coordinator, FindCoordinatorResponse},
};
use highwater_types::{ErrorCode, Millis, NodeId, Now};

use super::OFFSETS_TOPIC;
use crate::authorizer::{Operation, Resource};
use crate::machine::{Caller, Incoming};
use crate::shard::describe::live_brokers;
use crate::shard::requests::push_answer;
use crate::shard::{Effects, Shard};

/// From this version on a request has many keys.
const MANY_KEYS_SINCE: i16 = 4;
/// From this version on share groups have coordinators (KIP-932).
const SHARE_SINCE: i16 = 6;

/// Clients ask ten times a second; the controller is asked, and its refusal told, less often.
const CREATE_AGAIN_AFTER: Millis = Millis::new(1_000);

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

const NO_SUCH_KIND: &str = "There is no such kind of coordinator.";

/// Who coordinates a key.
struct Found {
    error: ErrorCode,
    /// Instead of what the error says by itself.
    message: Option<&'static str>,
    node_id: NodeId,
    host: String,
    port: i32,
}

impl<D: Disk> Shard<D> {
    pub(crate) fn handle_find_coordinator(
        &mut self,
        now: Now,
        incoming: &Incoming,
        request: FindCoordinatorRequest,
        out: &mut Effects<D>,
    ) {
        let version = incoming.version;
        let caller = &incoming.caller;
        let key_type = request.key_type;
        let mut wants_topic = false;
        let mut find = |key: &str| {
            let found = self.find_coordinator(version, caller, key_type, key);
            wants_topic |= key_type == GROUP && found.error == ErrorCode::COORDINATOR_NOT_AVAILABLE;
            found
        };
        let response: Response = if version < MANY_KEYS_SINCE {
            let found = find(&request.key);
            let message = found.message.unwrap_or_else(|| message(found.error));
            FindCoordinatorResponse {
                error_code: found.error,
                error_message: Some(message.to_owned()),
                node_id: found.node_id,
                host: found.host,
                port: found.port,
                ..FindCoordinatorResponse::default()
            }
            .into()
        } else {
            let coordinators = request.coordinator_keys.into_iter().map(|key| {
                let found = find(&key);
                Coordinator {
                    key,
                    node_id: found.node_id,
                    host: found.host,
                    port: found.port,
                    error_code: found.error,
                    // Kafka gives no text here.
                    error_message: Some(found.message.unwrap_or_default().to_owned()),
                }
            });
            FindCoordinatorResponse {
                coordinators: coordinators.collect(),
                ..FindCoordinatorResponse::default()
            }
            .into()
        };
        if wants_topic && self.groups.topic.is_none() && self.groups.create_not_before <= now.mono {
            self.groups.create_not_before = now.mono.plus(CREATE_AGAIN_AFTER);
            self.create_offsets_topic(now, out);
        }
        push_answer(incoming.ticket, version, &response, out);
    }

    fn find_coordinator(&self, version: i16, caller: &Caller, key_type: i8, key: &str) -> Found {
        let describes = |resource| self.allows(caller, Operation::Describe, resource);
        let none = |error| Found::none(error, None);
        match key_type {
            GROUP if !describes(Resource::Group(key)) => {
                none(ErrorCode::GROUP_AUTHORIZATION_FAILED)
            }
            GROUP => self.group_coordinator(caller, key),
            TRANSACTION if !describes(Resource::TransactionalId(key)) => {
                none(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            }
            TRANSACTION => {
                let message = "This broker does not serve transactions yet.";
                // librdkafka, which asks at version 2, would try any other error again until its
                // time-out; this one it shows at once, with the text.
                let error = if version < MANY_KEYS_SINCE {
                    ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                } else {
                    ErrorCode::UNSUPPORTED_VERSION
                };
                Found::none(error, Some(message))
            }
            SHARE if version >= SHARE_SINCE => {
                let message = "This broker does not serve share groups yet.";
                Found::none(ErrorCode::UNSUPPORTED_VERSION, Some(message))
            }
            SHARE => none(ErrorCode::INVALID_REQUEST),
            _ => Found::none(ErrorCode::INVALID_REQUEST, Some(NO_SUCH_KIND)),
        }
    }

    /// The leader of the group's partition, as the caller's listener can reach it.
    fn group_coordinator(&self, caller: &Caller, group_id: &str) -> Found {
        let at = self.partition_of_group(group_id);
        let leader = at
            .and_then(|at| self.image.partition(at))
            .map(|it| it.leader);
        let mut brokers = live_brokers(&self.image, &caller.listener_name);
        let broker = brokers.find(|broker| Some(broker.id) == leader);
        broker.map_or_else(
            || Found::none(ErrorCode::COORDINATOR_NOT_AVAILABLE, None),
            |broker| Found {
                error: ErrorCode::NONE,
                message: None,
                node_id: broker.id,
                host: broker.host.to_owned(),
                port: i32::from(broker.port),
            },
        )
    }

    /// Has `__consumer_offsets` made as Kafka makes it, but for the number of replicas when
    /// nobody said one. Brokers that are down count too: they come back.
    fn create_offsets_topic(&mut self, now: Now, out: &mut Effects<D>) {
        let settings = &self.groups.settings;
        let brokers = self.image.brokers.len();
        let segment_bytes = settings.segment_bytes.to_string();
        let configs = [
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", segment_bytes.as_str()),
        ];
        let configs = configs.map(|(name, value)| CreatableTopicConfig {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        });
        let topic = CreatableTopic {
            name: OFFSETS_TOPIC.to_owned(),
            num_partitions: settings.partitions,
            replication_factor: settings.replication_factor(brokers),
            configs: configs.to_vec(),
            ..CreatableTopic::default()
        };
        self.create_internal_topic(now, topic, out);
    }
}

impl Found {
    const fn none(error: ErrorCode, message: Option<&'static str>) -> Self {
        Self {
            error,
            message,
            node_id: NodeId::NONE,
            host: String::new(),
            port: -1,
        }
    }
}

/// What Kafka says with these errors, in our words where nobody depends on its.
const fn message(error: ErrorCode) -> &'static str {
    match error {
        ErrorCode::NONE => "NONE",
        ErrorCode::COORDINATOR_NOT_AVAILABLE => "The coordinator is not available.",
        ErrorCode::INVALID_REQUEST => NO_SUCH_KIND,
        ErrorCode::GROUP_AUTHORIZATION_FAILED => "Not allowed to see the group.",
        _ => "Not allowed to see the coordinator.",
    }
}
