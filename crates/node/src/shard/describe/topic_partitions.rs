use std::collections::BTreeSet;

use highwater_metadata::image::TopicImage;
use highwater_protocol::messages::{
    describe_topic_partitions_request::DescribeTopicPartitionsRequest,
    describe_topic_partitions_response::{
        Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
        DescribeTopicPartitionsResponseTopic,
    },
};
use highwater_types::{ErrorCode, TopicName, Uuid};

use super::DescribeContext;
use super::partitions::is_internal;
use crate::authorizer::Operation;

/// Answers DescribeTopicPartitions (KIP-966): topics by rising name, from the cursor on, up to the
/// smaller of the client's and the broker's limit of partitions.
pub(crate) fn describe_topic_partitions(
    cx: &DescribeContext<'_>,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let cursor = request.cursor.as_ref();
    let from = cursor.map_or("", |it| it.topic_name.as_str());
    let all = request.topics.is_empty();
    let named: BTreeSet<&str> = request.topics.iter().map(|it| it.name.as_str()).collect();
    let misplaced = !all && cursor.is_some() && !named.contains(from);
    if misplaced || cursor.is_some_and(|it| it.partition_index < 0) {
        return invalid(request);
    }
    let names: Vec<&str> = if all {
        // Topics that the caller may not see are left out here, and refused when it names them.
        let names = cx.image.topic_ids.keys().map(TopicName::as_str);
        let names = names.filter(|name| *name >= from);
        names
            .filter(|name| cx.allows(Operation::Describe, name))
            .collect()
    } else {
        named.into_iter().filter(|name| *name >= from).collect()
    };
    let limit = request
        .response_partition_limit
        .min(cx.settings.described_partitions_max)
        .max(1);
    let mut left = usize::try_from(limit).expect("at least one");
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        if left == 0 {
            response.next_cursor = Some(cursor_at(name, 0));
            break;
        }
        if !cx.allows(Operation::Describe, name) {
            response.topics.push(unauthorized(name));
            continue;
        }
        let Some(topic) = cx.image.topic_by_name(name) else {
            response.topics.push(unknown(cx, name));
            continue;
        };
        let first = cursor
            .filter(|it| it.topic_name == name)
            .map_or(0, |it| it.partition_index);
        let (described, next) = describe(cx, topic, first, left);
        left -= described.partitions.len();
        response.topics.push(described);
        if let Some(next) = next {
            response.next_cursor = Some(cursor_at(name, next));
            break;
        }
    }
    response
}

/// Up to `limit` partitions of a topic from number `first` on, and the number to go on with.
fn describe(
    cx: &DescribeContext<'_>,
    topic: &TopicImage,
    first: i32,
    limit: usize,
) -> (DescribeTopicPartitionsResponseTopic, Option<i32>) {
    let mut rest = topic
        .partitions
        .iter()
        .filter(|(index, _)| index.raw() >= first);
    let mut partitions = Vec::with_capacity(limit.min(topic.partitions.len()));
    for (index, partition) in rest.by_ref().take(limit) {
        let view = cx.leader_view(partition, false);
        partitions.push(DescribeTopicPartitionsResponsePartition {
            error_code: view.error,
            partition_index: index.raw(),
            leader_id: view.leader,
            leader_epoch: partition.leader_epoch.raw(),
            replica_nodes: partition.assigned_replicas.clone(),
            isr_nodes: partition.in_sync_replicas.clone(),
            eligible_leader_replicas: Some(partition.eligible_leader_replicas.clone()),
            last_known_elr: Some(partition.last_known_elr.clone()),
            offline_replicas: cx.offline_replicas(partition),
        });
    }
    let next = rest.next().map(|(index, _)| index.raw());
    let described = DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::NONE,
        name: Some(topic.name.to_string()),
        topic_id: topic.id.uuid(),
        is_internal: is_internal(topic.name.as_str()),
        partitions,
        topic_authorized_operations: cx.topic_operations(topic.name.as_str()),
    };
    (described, next)
}

fn unknown(cx: &DescribeContext<'_>, name: &str) -> DescribeTopicPartitionsResponseTopic {
    let error_code = match TopicName::new(name) {
        Ok(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code,
        name: Some(name.to_owned()),
        topic_id: Uuid::ZERO,
        is_internal: is_internal(name),
        partitions: Vec::new(),
        topic_authorized_operations: cx.topic_operations(name),
    }
}

fn unauthorized(name: &str) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        name: Some(name.to_owned()),
        topic_id: Uuid::ZERO,
        ..Default::default()
    }
}

/// Every topic that was named gets INVALID_REQUEST.
fn invalid(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let topics = request
        .topics
        .iter()
        .map(|topic| DescribeTopicPartitionsResponseTopic {
            error_code: ErrorCode::INVALID_REQUEST,
            name: Some(topic.name.clone()),
            ..Default::default()
        });
    DescribeTopicPartitionsResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

fn cursor_at(topic_name: &str, partition_index: i32) -> Cursor {
    Cursor {
        topic_name: topic_name.to_owned(),
        partition_index,
    }
}
