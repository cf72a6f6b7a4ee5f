use std::sync::Arc;

use highwater_types::{ErrorCode, LeaderEpoch, Millis, Offset, PartitionIndex, TopicId, TopicName};

use crate::{GenerationId, GroupId, InstanceId, MemberId};

/// OffsetCommit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitRequest {
    /// The group.
    pub group_id: GroupId,
    /// [`GenerationId::NONE`] from a consumer that is no member.
    pub generation_id: GenerationId,
    /// Empty from a consumer that is no member.
    pub member_id: MemberId,
    /// Of a static member (v7+).
    pub instance_id: Option<InstanceId>,
    /// How long the offsets are to be kept (v2-4); `None` when unset or -1.
    pub retention: Option<Millis>,
    /// Whether the client knows GROUP_ID_NOT_FOUND and member epochs (v9+, KIP-848); for all
    /// others an unknown group is ILLEGAL_GENERATION.
    pub knows_member_epochs: bool,
    /// What is committed.
    pub topics: Vec<CommitTopic>,
}

/// One topic of an OffsetCommit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitTopic {
    /// Its name.
    pub name: TopicName,
    /// Its id, as metadata or the request has it; zero when unknown.
    pub topic_id: TopicId,
    /// Its partitions.
    pub partitions: Vec<CommitPartition>,
}

/// One partition of an OffsetCommit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPartition {
    /// Its number.
    pub partition: PartitionIndex,
    /// The next offset to be consumed.
    pub offset: Offset,
    /// Of the last consumed record (v6+), or `LeaderEpoch::NONE`.
    pub leader_epoch: LeaderEpoch,
    /// The client's own text.
    pub metadata: Arc<str>,
}

/// OffsetCommit's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitAnswer {
    /// One for each topic of the request, in its order.
    pub topics: Vec<CommittedTopic>,
}

/// One topic of an OffsetCommit's or OffsetDelete's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedTopic {
    /// As in the request.
    pub name: TopicName,
    /// As in the request.
    pub topic_id: TopicId,
    /// One for each partition of the request.
    pub partitions: Vec<CommittedPartition>,
}

/// One partition of an OffsetCommit's or OffsetDelete's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedPartition {
    /// Its number.
    pub partition: PartitionIndex,
    /// NONE, or why not.
    pub error: ErrorCode,
}

/// OffsetFetch, of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetFetchRequest {
    /// The group.
    pub group_id: GroupId,
    /// Of a member of a KIP-848 group (v9+).
    pub member_id: Option<MemberId>,
    /// Of a member of a KIP-848 group (v9+), or -1.
    pub member_epoch: i32,
    /// Whether offsets of an open transaction are an error (v7+, KIP-447).
    pub require_stable: bool,
    /// `None`: all of the group's.
    pub topics: Option<Vec<FetchTopic>>,
}

/// One topic of an OffsetFetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchTopic {
    /// Its name.
    pub name: TopicName,
    /// Its id, or zero.
    pub topic_id: TopicId,
    /// Its partitions.
    pub partitions: Vec<PartitionIndex>,
}

/// OffsetFetch's answer, for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetFetchAnswer {
    /// An error of the whole group; `topics` is empty then.
    pub error: ErrorCode,
    /// For a request with topics, each of them in its order; else all of the group's, by name, with
    /// the id that the name has now (zero: none).
    pub topics: Vec<FetchedTopic>,
}

/// One topic of an OffsetFetch's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    /// Its name.
    pub name: TopicName,
    /// Its id, or zero.
    pub topic_id: TopicId,
    /// Its partitions.
    pub partitions: Vec<FetchedPartition>,
}

/// One partition of an OffsetFetch's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition {
    /// Its number.
    pub partition: PartitionIndex,
    /// `Offset::NONE` when nothing is committed.
    pub offset: Offset,
    /// As committed, or `LeaderEpoch::NONE`.
    pub leader_epoch: LeaderEpoch,
    /// As committed; empty when nothing is.
    pub metadata: Arc<str>,
    /// NONE, or UNSTABLE_OFFSET_COMMIT.
    pub error: ErrorCode,
}

/// OffsetDelete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetDeleteRequest {
    /// The group.
    pub group_id: GroupId,
    /// Whose offsets are deleted.
    pub topics: Vec<PartitionsOfTopic>,
}

/// Some partitions of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionsOfTopic {
    /// The topic's name.
    pub name: TopicName,
    /// The partitions.
    pub partitions: Vec<PartitionIndex>,
}

/// OffsetDelete's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetDeleteAnswer {
    /// An error of the whole request; `topics` is empty then.
    pub error: ErrorCode,
    /// One for each topic of the request, in its order; the ids are zero.
    pub topics: Vec<CommittedTopic>,
}

/// DeleteGroups, of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteRequest {
    /// The group.
    pub group_id: GroupId,
}

/// DeleteGroups' answer, for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteAnswer {
    /// NONE, NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND.
    pub error: ErrorCode,
    /// With an error: what is wrong (v3+).
    pub error_message: Option<String>,
}

/// ListGroups, of all groups of one coordinator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Only groups in these states, whatever their case; empty: all (v4+, KIP-518).
    pub states: Vec<String>,
    /// Only groups of these types, whatever their case; empty: all (v5+, KIP-848).
    pub types: Vec<String>,
}
