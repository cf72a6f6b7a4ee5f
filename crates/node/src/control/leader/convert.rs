//! Between wire messages and the controller's own words.

use highwater_metadata::config::ConfigEntry;
use highwater_metadata::controller::{
    AlterPartition, AlteredPartition, AssignDirs, CreateTopic, CreateTopics, DeleteTopic,
    DeleteTopics, DeletedTopic, Heartbeat, IsrChange, Registration, TopicOutcome,
};
use highwater_metadata::image::{BrokerEndpoint, FeatureRange};
use highwater_protocol::messages::assign_replicas_to_dirs_response::{
    DirectoryData as AssignedDirectory, PartitionData as AssignedPartition,
    TopicData as AssignedTopic,
};
use highwater_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use highwater_protocol::messages::delete_topics_response::DeletableTopicResult;
use highwater_protocol::messages::{
    AlterPartitionRequest, AlterPartitionResponse, AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse, BrokerHeartbeatRequest, BrokerRegistrationRequest,
    CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    alter_partition_response,
};
use highwater_protocol::wire::STRING_BYTES_MAX;
use highwater_types::{
    BrokerEpoch, DirectoryId, ErrorCode, LeaderEpoch, Offset, PartitionEpoch, PartitionIndex,
    TopicId, TopicIdPartition,
};

/// The wire's number for a leader that was elected uncleanly and has not recovered.
const RECOVERING: i8 = 1;
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
///
/// As in Kafka, a text that repeats so much of the request that no answer can hold it makes the
/// whole answer an unexpected error.
pub(crate) fn created_topics(outcomes: Vec<TopicOutcome>) -> CreateTopicsResponse {
    let too_long = outcomes.iter().any(|outcome| {
        let message = outcome.result.as_ref().err();
        let message = message.and_then(|why| why.message.as_ref());
        message.is_some_and(|text| text.len() > STRING_BYTES_MAX)
    });
    if too_long {
        let names = outcomes.into_iter().map(|outcome| outcome.name);
        return refused_names(names, ErrorCode::UNKNOWN_SERVER_ERROR);
    }
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
    let names = request.topics.iter().map(|topic| topic.name.clone());
    refused_names(names, code)
}

fn refused_names(names: impl Iterator<Item = String>, code: ErrorCode) -> CreateTopicsResponse {
    let topics = names.map(|name| CreatableTopicResult {
        name,
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

/// What a leader asks for. Version 2 names the members without their registrations.
pub(crate) fn alter_partition(request: AlterPartitionRequest) -> AlterPartition {
    let rows = request.topics.into_iter().flat_map(|topic| {
        let topic_id = TopicId::new(topic.topic_id);
        topic.partitions.into_iter().map(move |it| (topic_id, it))
    });
    let changes = rows.map(|(topic_id, it)| {
        let plain = it.new_isr.into_iter().map(|id| (id, BrokerEpoch::NONE));
        let with_epochs = it.new_isr_with_epochs.into_iter();
        let with_epochs = with_epochs.map(|it| (it.broker_id, BrokerEpoch::new(it.broker_epoch)));
        IsrChange {
            at: TopicIdPartition {
                topic_id,
                partition: PartitionIndex::new(it.partition_index),
            },
            leader_epoch: LeaderEpoch::new(it.leader_epoch),
            partition_epoch: PartitionEpoch::new(it.partition_epoch),
            in_sync_replicas: plain.chain(with_epochs).collect(),
            recovering: it.leader_recovery_state == RECOVERING,
        }
    });
    AlterPartition {
        broker_id: request.broker_id,
        broker_epoch: BrokerEpoch::new(request.broker_epoch),
        changes: changes.collect(),
    }
}

/// What became of it, in the order of the request.
pub(crate) fn altered_partitions(outcomes: Vec<AlteredPartition>) -> AlterPartitionResponse {
    let mut topics: Vec<alter_partition_response::TopicData> = Vec::new();
    for AlteredPartition { at, result } in outcomes {
        let topic_id = at.topic_id.uuid();
        if topics.last().is_none_or(|topic| topic.topic_id != topic_id) {
            let partitions = Vec::new();
            topics.push(alter_partition_response::TopicData {
                topic_id,
                partitions,
            });
        }
        let mut row = alter_partition_response::PartitionData {
            partition_index: at.partition.raw(),
            ..Default::default()
        };
        match result {
            Ok(state) => {
                row.leader_id = state.leader;
                row.leader_epoch = state.leader_epoch.raw();
                row.isr = state.in_sync_replicas;
                row.leader_recovery_state = if state.recovering { RECOVERING } else { 0 };
                row.partition_epoch = state.partition_epoch.raw();
            }
            Err(error_code) => row.error_code = error_code,
        }
        if let Some(topic) = topics.last_mut() {
            topic.partitions.push(row);
        }
    }
    AlterPartitionResponse {
        topics,
        ..AlterPartitionResponse::default()
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

pub(crate) fn assign_dirs(request: &AssignReplicasToDirsRequest) -> AssignDirs {
    let directories = request.directories.iter().flat_map(|directory| {
        let id = DirectoryId::new(directory.id);
        directory.topics.iter().flat_map(move |topic| {
            topic.partitions.iter().map(move |partition| {
                let at = TopicIdPartition {
                    topic_id: TopicId::new(topic.topic_id),
                    partition: PartitionIndex::new(partition.partition_index),
                };
                (at, id)
            })
        })
    });
    AssignDirs {
        broker_id: request.broker_id,
        broker_epoch: BrokerEpoch::new(request.broker_epoch),
        replicas: directories.collect(),
    }
}

/// `codes` are those of the request's replicas, in their order.
pub(crate) fn assigned_dirs(
    request: AssignReplicasToDirsRequest,
    codes: Vec<ErrorCode>,
) -> AssignReplicasToDirsResponse {
    let mut codes = codes.into_iter();
    let directories = request.directories.into_iter().map(|directory| {
        let topics = directory.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter().zip(codes.by_ref());
            let partitions = partitions.map(|(partition, error_code)| AssignedPartition {
                partition_index: partition.partition_index,
                error_code,
            });
            AssignedTopic {
                topic_id: topic.topic_id,
                partitions: partitions.collect(),
            }
        });
        AssignedDirectory {
            id: directory.id,
            topics: topics.collect(),
        }
    });
    AssignReplicasToDirsResponse {
        directories: directories.collect(),
        ..AssignReplicasToDirsResponse::default()
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
