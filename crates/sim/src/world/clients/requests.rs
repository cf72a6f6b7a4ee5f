//! The requests of simulated clients, and what a client remembers of each.

use bytes::Bytes;
use highwater_protocol::client::group::CallId;
use highwater_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use highwater_protocol::messages::delete_topics_request::DeleteTopicState;
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use highwater_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use highwater_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use highwater_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, InitProducerIdRequest,
    ListOffsetsRequest, ProduceRequest,
};
use highwater_protocol::{FetchView, ProduceView, Request};
use highwater_records::{BatchBuilder, BatchOptions, ProducerStamp};
use highwater_types::{
    ErrorCode, LeaderEpoch, NodeId, Offset, PartitionIndex, ProducerId, TopicName, TopicPartition,
    Uuid, WallMs,
};

use super::{SentCommit, SentOffsetFetch};

/// The first versions that name topics by id.
const PRODUCE_TOPIC_IDS_SINCE: i16 = 13;
const FETCH_TOPIC_IDS_SINCE: i16 = 13;
/// The first version of Fetch with leader epochs (KIP-320).
const FETCH_EPOCHS_SINCE: i16 = 9;
/// Bytes that a fetch asks for at the most.
const FETCH_BYTES: i32 = 64 << 10;

/// Why a request was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To append a batch.
    Produce(SentBatch),
    /// To read.
    Fetch(SentFetch),
    /// To make a topic.
    CreateTopic(TopicName),
    /// To delete a topic.
    DeleteTopic(TopicName),
    /// To learn who leads.
    Metadata,
    /// To become an idempotent producer.
    InitProducerId,
    /// A call of a member of a group.
    MemberCall(CallId),
    /// To commit offsets of a group.
    Commit(Box<SentCommit>),
    /// To learn committed offsets.
    OffsetFetch(SentOffsetFetch),
    /// To learn an offset.
    ListOffsets(TopicPartition),
    /// To learn where an epoch ends.
    EpochEnd(TopicPartition),
    /// To do as replicas do.
    ReplicaFetch(TopicPartition),
    /// To do as leaders do.
    AlterPartition(TopicPartition),
}

/// A batch on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentBatch {
    /// Where to.
    pub(crate) partition: TopicPartition,
    /// The topic's id, once known.
    pub(crate) topic_id: Uuid,
    /// The records' values.
    pub(crate) values: Vec<Vec<u8>>,
    /// 0, 1 or -1.
    pub(crate) acks: i16,
    /// For deduplication.
    pub(crate) stamp: ProducerStamp,
}

/// A fetch on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentFetch {
    /// Where from.
    pub(crate) partition: TopicPartition,
    /// The topic's id, once known.
    pub(crate) topic_id: Uuid,
    /// The first offset wanted.
    pub(crate) offset: Offset,
    /// 0 read_uncommitted, 1 read_committed.
    pub(crate) isolation_level: i8,
    /// At least so many bytes, or wait.
    pub(crate) min_bytes: i32,
    /// How long to wait.
    pub(crate) max_wait_ms: i32,
    /// The leader epoch that the client knows of, if it says so (v9 on).
    pub(crate) leader_epoch: Option<LeaderEpoch>,
    /// Whether it goes to a broker that the client does not take for the leader.
    pub(crate) from_follower: bool,
}

impl Purpose {
    /// Whether no answer comes.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Produce(batch) if batch.acks == 0)
    }
}

impl SentBatch {
    /// The Produce request, at `version`.
    pub(crate) fn request(&self, version: i16, wall: WallMs, timeout_ms: i32) -> Request {
        let by_id = version >= PRODUCE_TOPIC_IDS_SINCE;
        let data = PartitionProduceData {
            index: self.partition.partition.raw(),
            records: Some(self.bytes(wall)),
        };
        let message = ProduceRequest {
            transactional_id: None,
            acks: self.acks,
            timeout_ms,
            topic_data: vec![TopicProduceData {
                name: if by_id {
                    String::new()
                } else {
                    self.partition.topic.to_string()
                },
                topic_id: if by_id { self.topic_id } else { Uuid::ZERO },
                partition_data: vec![data],
            }],
        };
        let view = ProduceView::from_message(&message, version);
        view.expect("a produce request of every version").into()
    }

    fn bytes(&self, wall: WallMs) -> Bytes {
        let mut builder = BatchBuilder::new();
        for value in &self.values {
            builder
                .append(wall, None, Some(value), &[])
                .expect("small records");
        }
        let options = BatchOptions {
            producer: self.stamp,
            ..BatchOptions::default()
        };
        builder.finish(&options).expect("a small batch").into()
    }
}

impl SentFetch {
    /// The Fetch request, at `version`, without a session.
    pub(crate) fn request(&self, version: i16) -> Request {
        let by_id = version >= FETCH_TOPIC_IDS_SINCE;
        let mut partition = FetchPartition {
            partition: self.partition.partition.raw(),
            fetch_offset: self.offset.raw(),
            partition_max_bytes: FETCH_BYTES,
            ..FetchPartition::default()
        };
        if let Some(epoch) = self.leader_epoch.filter(|_| version >= FETCH_EPOCHS_SINCE) {
            partition.current_leader_epoch = epoch.raw();
        }
        let message = FetchRequest {
            max_wait_ms: self.max_wait_ms,
            min_bytes: self.min_bytes,
            max_bytes: FETCH_BYTES,
            isolation_level: self.isolation_level,
            topics: vec![FetchTopic {
                topic: if by_id {
                    String::new()
                } else {
                    self.partition.topic.to_string()
                },
                topic_id: if by_id { self.topic_id } else { Uuid::ZERO },
                partitions: vec![partition],
            }],
            ..FetchRequest::default()
        };
        let view = FetchView::from_message(&message, version);
        view.expect("a fetch request of every version").into()
    }
}

/// Where the replicas of a new topic are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replicas {
    /// So many, where the controller likes.
    Count(i16),
    /// On these brokers, the first of which is to lead.
    Assigned(Vec<NodeId>),
}

/// CreateTopics v7 of one topic.
pub(crate) fn create_topic(
    name: &TopicName,
    partitions: i32,
    replicas: &Replicas,
    configs: &[(&str, &str)],
) -> Request {
    let configs = configs.iter().map(|(name, value)| CreatableTopicConfig {
        name: (*name).to_owned(),
        value: Some((*value).to_owned()),
    });
    let assignments: Vec<_> = match replicas {
        Replicas::Count(_) => Vec::new(),
        Replicas::Assigned(brokers) => (0..partitions)
            .map(|partition_index| CreatableReplicaAssignment {
                partition_index,
                broker_ids: brokers.clone(),
            })
            .collect(),
    };
    let assigned = !assignments.is_empty();
    let topic = CreatableTopic {
        name: name.to_string(),
        num_partitions: if assigned { -1 } else { partitions },
        replication_factor: match replicas {
            Replicas::Count(count) => *count,
            Replicas::Assigned(_) => -1,
        },
        assignments,
        configs: configs.collect(),
    };
    CreateTopicsRequest {
        topics: vec![topic],
        timeout_ms: 30_000,
        validate_only: false,
    }
    .into()
}

/// DeleteTopics v6 of one topic.
pub(crate) fn delete_topic(name: &TopicName) -> Request {
    let topic = DeleteTopicState {
        name: Some(name.to_string()),
        topic_id: Uuid::ZERO,
    };
    DeleteTopicsRequest {
        topics: vec![topic],
        timeout_ms: 30_000,
        ..Default::default()
    }
    .into()
}

/// InitProducerId v4 without a transactional id.
pub(crate) fn init_producer_id() -> Request {
    let message = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    message.into()
}

/// ListOffsets v8 of one partition.
pub(crate) fn list_offsets(partition: &TopicPartition, timestamp: i64) -> Request {
    let asked = ListOffsetsPartition {
        partition_index: partition.partition.raw(),
        timestamp,
        ..Default::default()
    };
    let topics = vec![ListOffsetsTopic {
        name: partition.topic.to_string(),
        partitions: vec![asked],
    }];
    ListOffsetsRequest {
        replica_id: NodeId::NONE,
        topics,
        ..Default::default()
    }
    .into()
}

/// The name of a partition of a run.
pub(crate) fn partition(topic: &TopicName, number: i32) -> TopicPartition {
    TopicPartition {
        topic: topic.clone(),
        partition: PartitionIndex::new(number),
    }
}

/// Whether an idempotent producer has to begin anew after this code.
pub(crate) fn needs_new_producer_id(code: ErrorCode, id: ProducerId) -> bool {
    id.is_some()
        && matches!(
            code,
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
                | ErrorCode::UNKNOWN_PRODUCER_ID
                | ErrorCode::INVALID_PRODUCER_EPOCH
        )
}

/// Whether a client has to look for the leader after this code.
pub(crate) const fn asks_for_the_leader(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::FENCED_LEADER_EPOCH
            | ErrorCode::UNKNOWN_LEADER_EPOCH
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::INCONSISTENT_TOPIC_ID
            | ErrorCode::KAFKA_STORAGE_ERROR
    )
}
