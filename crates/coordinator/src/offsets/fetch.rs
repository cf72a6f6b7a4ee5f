//! OffsetFetch.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_types::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName};

use super::CommittedOffset;
use crate::coordinator::TopicNames;
use crate::group::Group;
use crate::offset_request::{
    FetchTopic, FetchedPartition, FetchedTopic, OffsetFetchAnswer, OffsetFetchRequest,
};

/// What is committed. A group that is not there has committed nothing, which is no error.
pub(crate) fn fetch(
    group: Option<&Group>,
    topics: &dyn TopicNames,
    request: &OffsetFetchRequest,
) -> OffsetFetchAnswer {
    let group = match group.map(|group| (group, check(group, request))) {
        None | Some((_, Err(ErrorCode::GROUP_ID_NOT_FOUND))) => None,
        Some((group, Ok(()))) => Some(group),
        Some((_, Err(error))) => {
            return OffsetFetchAnswer {
                error,
                topics: Vec::new(),
            };
        }
    };
    let require_stable = request.require_stable;
    let topics = match (&request.topics, group) {
        (Some(asked), group) => {
            let fetched = |topic| some(group, topic, require_stable);
            asked.iter().map(fetched).collect()
        }
        (None, Some(group)) => all(group, topics, require_stable),
        (None, None) => Vec::new(),
    };
    OffsetFetchAnswer {
        error: ErrorCode::NONE,
        topics,
    }
}

/// Only groups of other types know who asks; in a classic group anybody may read.
fn check(group: &Group, request: &OffsetFetchRequest) -> Result<(), ErrorCode> {
    let Some(foreign) = &group.foreign else {
        return Ok(());
    };
    let member = request.member_id.as_ref().map(|it| it.as_str());
    foreign.check_fetch(member, request.member_epoch)
}

fn some(group: Option<&Group>, topic: &FetchTopic, require_stable: bool) -> FetchedTopic {
    let fetched = |&partition: &PartitionIndex| {
        let Some(group) = group else {
            return none(partition);
        };
        if require_stable && group.offsets.is_pending(&topic.name, partition) {
            return unstable(partition);
        }
        match group.offsets.get(&topic.name, partition) {
            Some(commit) if is_of(topic.topic_id, commit) => committed(partition, commit),
            _ => none(partition),
        }
    };
    FetchedTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(fetched).collect(),
    }
}

/// Every committed offset, by topic and partition. What was committed for an older topic of the
/// same name is left out: a tool would take it for an offset of the topic that is there now.
fn all(group: &Group, topics: &dyn TopicNames, require_stable: bool) -> Vec<FetchedTopic> {
    let mut fetched: BTreeMap<&TopicName, FetchedTopic> = BTreeMap::new();
    for (name, partition, commit) in group.offsets.iter() {
        let topic = fetched.entry(name).or_insert_with(|| FetchedTopic {
            name: name.clone(),
            topic_id: topics.id_of(name.as_str()).unwrap_or(TopicId::ZERO),
            partitions: Vec::new(),
        });
        if require_stable && group.offsets.is_pending(name, partition) {
            topic.partitions.push(unstable(partition));
        } else if is_of(topic.topic_id, commit) {
            topic.partitions.push(committed(partition, commit));
        }
    }
    let fetched = fetched.into_values();
    fetched
        .filter(|topic| !topic.partitions.is_empty())
        .collect()
}

/// Whether a commit is for the topic that is asked for and not for an older one of its name. Where
/// one of the two does not tell its id, only the name counts, as in Kafka.
fn is_of(topic_id: TopicId, commit: &CommittedOffset) -> bool {
    topic_id.is_zero() || commit.topic_id.is_zero() || topic_id == commit.topic_id
}

fn committed(partition: PartitionIndex, commit: &CommittedOffset) -> FetchedPartition {
    FetchedPartition {
        partition,
        offset: commit.offset,
        leader_epoch: commit.leader_epoch,
        metadata: Arc::clone(&commit.metadata),
        error: ErrorCode::NONE,
    }
}

fn none(partition: PartitionIndex) -> FetchedPartition {
    FetchedPartition {
        partition,
        offset: Offset::NONE,
        leader_epoch: LeaderEpoch::NONE,
        metadata: Arc::default(),
        error: ErrorCode::NONE,
    }
}

/// A transaction that is open has something to commit: what will be committed is not known yet
/// (KIP-447).
fn unstable(partition: PartitionIndex) -> FetchedPartition {
    FetchedPartition {
        error: ErrorCode::UNSTABLE_OFFSET_COMMIT,
        ..none(partition)
    }
}
