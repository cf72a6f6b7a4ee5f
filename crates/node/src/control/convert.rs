//! Between wire messages and the controller's own words.

use highwater_metadata::config::ConfigEntry;
use highwater_metadata::controller::{
    CreateTopic, CreateTopics, DeleteTopic, DeleteTopics, DeletedTopic, Heartbeat, Registration,
    TopicOutcome,
};
use highwater_metadata::image::{BrokerEndpoint, FeatureRange};
use highwater_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use highwater_protocol::messages::delete_topics_response::DeletableTopicResult;
use highwater_protocol::messages::{
    BrokerHeartbeatRequest, BrokerRegistrationRequest, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse,
};
use highwater_types::{BrokerEpoch, DirectoryId, ErrorCode, Offset, TopicId};

/// From this version on a registration says how its broker stopped; before it, uncleanly.
const PREVIOUS_EPOCH_SINCE: i16 = 3;

pub(crate) fn registration(request: BrokerRegistrationRequest, version: i16) -> Registration {
    let endpoints = request.listeners.into_iter().map(|it| BrokerEndpoint {
        name: it.name,
        host: it.host,
        port: it.port,
        security_protocol: it.security_protocol,
    });
    let features = request.features.into_iter().map(|it| FeatureRange {
        name: it.name,
        min: it.min_supported_version,
        max: it.max_supported_version,
    });
    let says = version >= PREVIOUS_EPOCH_SINCE;
    Registration {
        broker_id: request.broker_id,
        cluster_id: request.cluster_id,
        incarnation: request.incarnation_id,
        endpoints: endpoints.collect(),
        features: features.collect(),
        rack: request.rack,
        is_migrating: request.is_migrating_zk_broker,
        directories: request.log_dirs.into_iter().map(DirectoryId::new).collect(),
        previous_epoch: if says {
            BrokerEpoch::new(request.previous_broker_epoch)
        } else {
            BrokerEpoch::NONE
        },
    }
}

pub(crate) fn heartbeat(request: BrokerHeartbeatRequest) -> Heartbeat {
    let directories = |uuids: Vec<_>| uuids.into_iter().map(DirectoryId::new).collect();
    Heartbeat {
        broker_id: request.broker_id,
        broker_epoch: BrokerEpoch::new(request.broker_epoch),
        current_metadata_offset: Offset::new(request.current_metadata_offset),
        want_fence: request.want_fence,
        want_shut_down: request.want_shut_down,
        offline_directories: directories(request.offline_log_dirs),
        cordoned_directories: request.cordoned_log_dirs.map(directories),
    }
}

pub(crate) fn create_topics(request: CreateTopicsRequest) -> CreateTopics {
    let topics = request.topics.into_iter().map(|topic| CreateTopic {
        name: topic.name,
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic
            .assignments
            .into_iter()
            .map(|it| (it.partition_index, it.broker_ids))
            .collect(),
        configs: topic
            .configs
            .into_iter()
            .map(|it| (it.name, it.value))
            .collect(),
    });
    CreateTopics {
        topics: topics.collect(),
        validate_only: request.validate_only,
    }
}

/// Versions below 5 tell neither numbers nor configs; what they lack is left out when encoded.
pub(crate) fn created_topics(outcomes: Vec<TopicOutcome>) -> CreateTopicsResponse {
    let topics = outcomes.into_iter().map(|outcome| match outcome.result {
        Ok(created) => CreatableTopicResult {
            name: outcome.name,
            topic_id: created.id.uuid(),
            error_code: ErrorCode::NONE,
            error_message: None,
            num_partitions: created.partitions,
            replication_factor: created.replication_factor,
            configs: Some(created.configs.into_iter().map(config).collect()),
            ..CreatableTopicResult::default()
        },
        Err(why) => CreatableTopicResult {
            name: outcome.name,
            error_code: why.code,
            error_message: why.message,
            configs: Some(Vec::new()),
            ..CreatableTopicResult::default()
        },
    });
    CreateTopicsResponse {
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
}

/// The answer when nothing could be decided: each topic gets the error.
pub(crate) fn refused_topics(
    request: &CreateTopicsRequest,
    code: ErrorCode,
) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|topic| CreatableTopicResult {
        name: topic.name.clone(),
        error_code: code,
        error_message: None,
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    });
    CreateTopicsResponse {
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
}

/// The same for deletions.
pub(crate) fn refused_deletions(
    request: &DeleteTopicsRequest,
    error_code: ErrorCode,
) -> DeleteTopicsResponse {
    let named = request.topic_names.iter().map(|name| DeletableTopicResult {
        name: Some(name.clone()),
        error_code,
        ..DeletableTopicResult::default()
    });
    let listed = request.topics.iter().map(|topic| DeletableTopicResult {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        error_code,
        ..DeletableTopicResult::default()
    });
    DeleteTopicsResponse {
        throttle_time_ms: 0,
        responses: named.chain(listed).collect(),
    }
}

fn config(entry: ConfigEntry) -> CreatableTopicConfigs {
    CreatableTopicConfigs {
        name: entry.key.name.to_owned(),
        value: entry.value,
        read_only: entry.read_only,
        config_source: entry.source.to_wire(),
        is_sensitive: entry.key.is_sensitive(),
    }
}

/// Topics come by name below version 6.
pub(crate) fn delete_topics(request: DeleteTopicsRequest) -> DeleteTopics {
    let named = request
        .topic_names
        .into_iter()
        .map(|name| (Some(name), TopicId::ZERO));
    let listed = request
        .topics
        .into_iter()
        .map(|it| (it.name, TopicId::new(it.topic_id)));
    let topics = named
        .chain(listed)
        .map(|(name, id)| DeleteTopic { name, id });
    DeleteTopics {
        topics: topics.collect(),
    }
}

pub(crate) fn deleted_topics(outcomes: Vec<DeletedTopic>, version: i16) -> DeleteTopicsResponse {
    let responses = outcomes.into_iter().map(|outcome| {
        let (error_code, error_message) = match outcome.result {
            Ok(()) => (ErrorCode::NONE, None),
            // The code is newer than the first versions.
            Err(why) if version < 3 && why.code == ErrorCode::TOPIC_DELETION_DISABLED => {
                (ErrorCode::INVALID_REQUEST, why.message)
            }
            Err(why) => (why.code, why.message),
        };
        DeletableTopicResult {
            name: outcome.name,
            topic_id: outcome.id.uuid(),
            error_code,
            error_message,
        }
    });
    DeleteTopicsResponse {
        throttle_time_ms: 0,
        responses: responses.collect(),
    }
}
