//! What the leader tells about the quorum.

use highwater_disk::Disk;
use highwater_protocol::messages::describe_quorum_response::{
    Listener, Node, PartitionData, ReplicaState, TopicData,
};
use highwater_protocol::messages::{DescribeQuorumRequest, DescribeQuorumResponse};
use highwater_types::{ErrorCode, Now, Offset};

use super::Leader;
use crate::authorizer::{Operation, Resource};
use crate::machine::Caller;

const METADATA_TOPIC: &str = "__cluster_metadata";

impl<D: Disk> Leader<D> {
    pub(super) fn describe_quorum(
        &self,
        now: Now,
        caller: &Caller,
        request: DescribeQuorumRequest,
    ) -> DescribeQuorumResponse {
        let cluster = Resource::Cluster;
        if !self.authorizer.allows(caller, Operation::Describe, cluster) {
            return refused(request, ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
        }
        let mut topics = request.topics.iter();
        let is_ours = match (topics.next(), topics.next()) {
            (Some(topic), None) => {
                let partitions = topic.partitions.iter().map(|it| it.partition_index);
                topic.topic_name == METADATA_TOPIC && partitions.eq([0])
            }
            _ => false,
        };
        if !is_ours {
            return refused(request, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        let partition = PartitionData {
            error_message: Some(String::new()),
            leader_id: self.config.node_id,
            leader_epoch: self.state.epoch().raw(),
            high_watermark: self.high_watermark().map_or(-1, Offset::raw),
            current_voters: self.voters(now),
            observers: self.observers(now),
            ..PartitionData::default()
        };
        DescribeQuorumResponse {
            error_message: Some(String::new()),
            topics: vec![TopicData {
                topic_name: METADATA_TOPIC.to_owned(),
                partitions: vec![partition],
            }],
            nodes: self.nodes(),
            ..DescribeQuorumResponse::default()
        }
    }

    /// The one voter is this leader: always there, and caught up.
    fn voters(&self, now: Now) -> Vec<ReplicaState> {
        let voters = self.state.voters().voters.iter();
        let state = voters.map(|voter| ReplicaState {
            replica_id: voter.key.id,
            replica_directory_id: voter.key.directory_id.uuid(),
            log_end_offset: self.log.end().raw(),
            last_fetch_timestamp: now.wall.raw(),
            last_caught_up_timestamp: now.wall.raw(),
        });
        state.collect()
    }

    fn observers(&self, now: Now) -> Vec<ReplicaState> {
        let observers = self.followers.observers.iter(now.mono);
        let state = observers.map(|(key, it)| ReplicaState {
            replica_id: key.id,
            replica_directory_id: key.directory_id.uuid(),
            log_end_offset: it.log_end_offset.raw(),
            last_fetch_timestamp: it.last_fetch.raw(),
            last_caught_up_timestamp: it.last_caught_up.raw(),
        });
        state.collect()
    }

    fn nodes(&self) -> Vec<Node> {
        let voters = self.state.voters().voters.iter();
        let node = voters.map(|voter| Node {
            node_id: voter.key.id,
            listeners: voter
                .endpoints
                .iter()
                .map(|it| Listener {
                    name: it.name.clone(),
                    host: it.host.clone(),
                    port: it.port,
                })
                .collect(),
        });
        node.collect()
    }
}

/// The error for each partition that was asked about.
fn refused(request: DescribeQuorumRequest, error_code: ErrorCode) -> DescribeQuorumResponse {
    let topics = request.topics.into_iter().map(|topic| TopicData {
        topic_name: topic.topic_name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|it| PartitionData {
                partition_index: it.partition_index,
                error_code,
                error_message: Some(error_code.to_string()),
                ..PartitionData::default()
            })
            .collect(),
    });
    DescribeQuorumResponse {
        error_message: Some(String::new()),
        topics: topics.collect(),
        ..DescribeQuorumResponse::default()
    }
}
