use std::collections::BTreeSet;

use highwater_metadata::image::TopicImage;
use highwater_protocol::messages::{
    metadata_request::{MetadataRequest, MetadataRequestTopic},
    metadata_response::{
        MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    },
};
use highwater_types::{ErrorCode, NodeId, TopicId, TopicName, Uuid};

use super::DescribeContext;
use super::cluster::live_broker;
use super::partitions::{is_internal, listed_brokers};
use crate::authorizer::{OPERATIONS_NOT_ASKED, Operation, Resource};

/// An answer to Metadata, and what follows from it.
#[derive(Debug)]
pub(crate) struct MetadataAnswer {
    pub(crate) response: MetadataResponse,
    /// Topics that the client may have made for it, by legal name, each once.
    pub(crate) missing: Vec<TopicName>,
}

/// Whether a request wants every topic: null, and in v0 also the empty list.
pub(crate) fn wants_all(version: i16, request: &MetadataRequest) -> bool {
    request
        .topics
        .as_ref()
        .is_none_or(|topics| version == 0 && topics.is_empty())
}

/// Answers Metadata. Topics that are made for the client are answered as unknown this time, as
/// Kafka 4.4 does: the client asks again.
pub(crate) fn metadata(
    cx: &DescribeContext<'_>,
    version: i16,
    request: &MetadataRequest,
) -> MetadataAnswer {
    let mut answer = MetadataAnswer {
        response: frame(cx, request),
        missing: Vec::new(),
    };
    let topics = &mut answer.response.topics;
    match &request.topics {
        Some(wanted) if !wants_all(version, request) => {
            if version < 12
                && wanted
                    .iter()
                    .any(|it| it.name.is_none() || !it.topic_id.is_zero())
            {
                answer.response = MetadataResponse {
                    topics: wanted.iter().map(refused).collect(),
                    ..Default::default()
                };
                return answer;
            }
            let by_id = wanted.iter().any(|it| !it.topic_id.is_zero());
            if by_id {
                *topics = described_by_id(cx, version, wanted);
            } else {
                let (described, missing) = described_by_name(cx, version, request, wanted);
                *topics = described;
                answer.missing = missing;
            }
        }
        _ => {
            let images = cx
                .image
                .topic_ids
                .values()
                .filter_map(|id| cx.image.topic(*id))
                .filter(|topic| cx.allows(Operation::Describe, topic.name.as_str()));
            *topics = images.map(|topic| describe(cx, version, topic)).collect();
        }
    }
    if request.include_topic_authorized_operations {
        for topic in topics.iter_mut() {
            // Of an id that nobody knows, and of what is not shown, nothing is told.
            let shown = topic.error_code != ErrorCode::TOPIC_AUTHORIZATION_FAILED;
            if let Some(name) = topic.name.as_deref().filter(|_| shown) {
                topic.topic_authorized_operations = cx.topic_operations(name);
            }
        }
    }
    answer
}

/// The answer without topics.
fn frame(cx: &DescribeContext<'_>, request: &MetadataRequest) -> MetadataResponse {
    let listed = listed_brokers(cx.image, cx.listener_name(), cx.node_id);
    let brokers = listed.iter().map(|broker| MetadataResponseBroker {
        node_id: broker.id,
        host: broker.host.to_owned(),
        port: i32::from(broker.port),
        rack: broker.rack.map(str::to_owned),
    });
    let operations = if request.include_cluster_authorized_operations {
        cx.cluster_operations()
    } else {
        OPERATIONS_NOT_ASKED
    };
    MetadataResponse {
        brokers: brokers.collect(),
        cluster_id: Some(cx.settings.cluster_id.to_string()),
        controller_id: live_broker(cx.image, cx.node_id),
        cluster_authorized_operations: operations,
        ..Default::default()
    }
}

/// Ids that are not known come first, as in Kafka.
fn described_by_id(
    cx: &DescribeContext<'_>,
    version: i16,
    wanted: &[MetadataRequestTopic],
) -> Vec<MetadataResponseTopic> {
    let ids = wanted
        .iter()
        .map(|it| it.topic_id)
        .filter(|id| !id.is_zero());
    let ids: BTreeSet<Uuid> = ids.collect();
    let (known, unknown): (Vec<Uuid>, Vec<Uuid>) = ids
        .into_iter()
        .partition(|id| cx.image.topic(TopicId::new(*id)).is_some());
    let unknown = unknown.into_iter().map(|topic_id| MetadataResponseTopic {
        error_code: ErrorCode::UNKNOWN_TOPIC_ID,
        topic_id,
        name: None,
        ..Default::default()
    });
    let known = known
        .into_iter()
        .filter_map(|id| cx.image.topic(TopicId::new(id)));
    let (shown, hidden): (Vec<_>, Vec<_>) =
        known.partition(|topic| cx.allows(Operation::Describe, topic.name.as_str()));
    // An id tells nothing about a topic; its name would.
    let hidden = hidden.into_iter().map(|topic| MetadataResponseTopic {
        error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        topic_id: topic.id.uuid(),
        name: None,
        ..Default::default()
    });
    let shown = shown.into_iter().map(|topic| describe(cx, version, topic));
    unknown.chain(shown).chain(hidden).collect()
}

/// Topics that are there, those that are not, and those that the caller may not make or see. Of
/// those that are not there, the ones that are to be made.
fn described_by_name(
    cx: &DescribeContext<'_>,
    version: i16,
    request: &MetadataRequest,
    wanted: &[MetadataRequestTopic],
) -> (Vec<MetadataResponseTopic>, Vec<TopicName>) {
    let mut known = Vec::with_capacity(wanted.len());
    let mut unknown = Vec::new();
    let mut refused = Vec::new();
    let mut missing = Vec::new();
    let creates = cx.settings.auto_create_topics && request.allow_auto_topic_creation;
    let mut seen = BTreeSet::new();
    for topic in wanted {
        let name = topic.name.as_deref().unwrap_or_default();
        if !seen.insert(name) {
            continue;
        }
        let is_shown = cx.allows(Operation::Describe, name);
        if let Some(topic) = cx.image.topic_by_name(name).filter(|_| is_shown) {
            known.push(describe(cx, version, topic));
            continue;
        }
        if !is_shown || (creates && !may_create(cx, name)) {
            refused.push(unauthorized(name, is_shown));
            continue;
        }
        let error_code = match TopicName::new(name) {
            Ok(name) => {
                if creates {
                    missing.push(name);
                }
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            }
            Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
        };
        unknown.push(MetadataResponseTopic {
            error_code,
            name: Some(name.to_owned()),
            is_internal: is_internal(name),
            ..Default::default()
        });
    }
    known.append(&mut unknown);
    refused.sort_by_key(|it: &(bool, MetadataResponseTopic)| !it.0);
    known.extend(refused.into_iter().map(|(_, topic)| topic));
    (known, missing)
}

/// Who may make any topic, or this one.
fn may_create(cx: &DescribeContext<'_>, name: &str) -> bool {
    let any = cx
        .authorizer
        .allows(cx.caller, Operation::Create, Resource::Cluster);
    any || cx.allows(Operation::Create, name)
}

/// A topic that the caller may not make (`is_shown`), or not even see. Whether it is there is not
/// told, nor its id.
fn unauthorized(name: &str, is_shown: bool) -> (bool, MetadataResponseTopic) {
    let topic = MetadataResponseTopic {
        error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        name: Some(name.to_owned()),
        is_internal: is_shown && is_internal(name),
        ..Default::default()
    };
    (is_shown, topic)
}

fn describe(cx: &DescribeContext<'_>, version: i16, topic: &TopicImage) -> MetadataResponseTopic {
    let partitions = topic.partitions.iter().map(|(index, partition)| {
        let view = cx.leader_view(partition, version >= 6);
        let mut described = MetadataResponsePartition {
            error_code: view.error,
            partition_index: index.raw(),
            leader_id: view.leader,
            leader_epoch: partition.leader_epoch.raw(),
            replica_nodes: partition.assigned_replicas.clone(),
            isr_nodes: partition.in_sync_replicas.clone(),
            offline_replicas: cx.offline_replicas(partition),
        };
        if version == 0 {
            only_reachable(cx, &mut described);
        }
        described
    });
    MetadataResponseTopic {
        error_code: ErrorCode::NONE,
        name: Some(topic.name.to_string()),
        topic_id: topic.id.uuid(),
        is_internal: is_internal(topic.name.as_str()),
        partitions: partitions.collect(),
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
    }
}

/// Clients of v0 cannot do with brokers that the answer does not list (KAFKA-1367's time).
fn only_reachable(cx: &DescribeContext<'_>, partition: &mut MetadataResponsePartition) {
    let before = partition.replica_nodes.len() + partition.isr_nodes.len();
    let reachable = |id: &NodeId| cx.is_reachable(*id);
    partition.replica_nodes.retain(reachable);
    partition.isr_nodes.retain(reachable);
    let after = partition.replica_nodes.len() + partition.isr_nodes.len();
    if after < before && !partition.error_code.is_error() {
        partition.error_code = ErrorCode::REPLICA_NOT_AVAILABLE;
    }
}

/// Topics without a name, or with an id where the version has none to give (KIP-516).
fn refused(topic: &MetadataRequestTopic) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::INVALID_REQUEST,
        name: Some(topic.name.clone().unwrap_or_default()),
        topic_id: topic.topic_id,
        ..Default::default()
    }
}
