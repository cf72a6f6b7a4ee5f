use std::collections::BTreeSet;

use highwater_metadata::MetadataImage;
use highwater_metadata::image::TopicImage;
use highwater_protocol::TopicKey;
use highwater_protocol::messages::ProduceResponse;
use highwater_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use highwater_protocol::wire::Message as _;
use highwater_types::{ErrorCode, NodeId, PartitionIndex, TopicId};

use super::outcome::Outcome;
use crate::machine::{Answer, Caller};

/// The answer to a Produce request: `topics` as they were asked for, and the outcome of each
/// partition in the same order. With acks=0 nothing is sent; an error then closes the connection,
/// for that is the only way to tell the client.
pub(super) fn answer<'a, F, P>(
    image: &MetadataImage,
    caller: &Caller,
    version: i16,
    acks: i16,
    topics: impl Iterator<Item = (TopicKey<'a>, P)>,
    mut outcomes: impl Iterator<Item = Outcome>,
) -> Answer<F>
where
    P: Iterator<Item = PartitionIndex>,
{
    if acks == 0 {
        let failed = outcomes.any(|outcome| outcome.error.is_error());
        return if failed {
            Answer::close()
        } else {
            Answer::silent()
        };
    }
    let mut leaders = BTreeSet::new();
    let responses = topics.map(|(topic, partitions)| {
        let known = match topic {
            TopicKey::Name(name) => image.topic_by_name(name),
            TopicKey::Id(id) => image.topic(id),
        };
        let row = |(partition, outcome): (PartitionIndex, Outcome)| {
            let mut row = row(partition, outcome);
            if row.error_code == ErrorCode::NOT_LEADER_OR_FOLLOWER {
                row.current_leader = current_leader(known.map(AsRef::as_ref), partition);
                leaders.insert(row.current_leader.leader_id);
            }
            row
        };
        TopicProduceResponse {
            name: topic.name().unwrap_or_default().to_owned(),
            topic_id: topic.id().map(TopicId::uuid).unwrap_or_default(),
            partition_responses: partitions.zip(outcomes.by_ref()).map(row).collect(),
        }
    });
    // As in Kafka, a topic of which no partition was asked for is not in the answer.
    let responses = responses.filter(|it| !it.partition_responses.is_empty());
    let responses = responses.collect();
    let response = ProduceResponse {
        responses,
        throttle_time_ms: 0,
        node_endpoints: leaders
            .iter()
            .filter_map(|id| endpoint(image, caller, *id))
            .collect(),
    };
    Answer::bytes(
        response
            .to_bytes(version)
            .expect("a legal answer at the request's version"),
    )
}

fn row(partition: PartitionIndex, outcome: Outcome) -> PartitionProduceResponse {
    let (error_message, record_errors) = match outcome.details {
        None => (None, Vec::new()),
        Some(details) => {
            let records = details
                .records
                .iter()
                .map(|record| BatchIndexAndErrorMessage {
                    batch_index: record.batch_index,
                    batch_index_error_message: Some(record.kind.to_string()),
                });
            let records = records.collect();
            (Some(details.message), records)
        }
    };
    PartitionProduceResponse {
        index: partition.raw(),
        error_code: outcome.error,
        base_offset: outcome.base_offset.raw(),
        log_append_time_ms: outcome.log_append_time.raw(),
        log_start_offset: outcome.log_start_offset.raw(),
        record_errors,
        error_message,
        current_leader: LeaderIdAndEpoch::default(),
    }
}

/// Where the client should go instead, as far as this broker knows (KIP-951).
fn current_leader(topic: Option<&TopicImage>, partition: PartitionIndex) -> LeaderIdAndEpoch {
    let known = topic.and_then(|topic| topic.partitions.get(&partition));
    known.map_or_else(LeaderIdAndEpoch::default, |it| LeaderIdAndEpoch {
        leader_id: it.leader,
        leader_epoch: it.leader_epoch.raw(),
    })
}

fn endpoint(image: &MetadataImage, caller: &Caller, id: NodeId) -> Option<NodeEndpoint> {
    let broker = image.broker(id).filter(|it| !it.fenced)?;
    let endpoint = broker.endpoint(&caller.listener_name)?;
    Some(NodeEndpoint {
        node_id: id,
        host: endpoint.host.clone(),
        port: i32::from(endpoint.port),
        rack: broker.rack.clone(),
    })
}
