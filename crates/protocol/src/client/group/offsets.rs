//! Committed offsets: requests and answers of every version as one shape.

use std::collections::BTreeMap;

use highwater_types::{
    ErrorCode, LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName, TopicPartition, Uuid,
};

use super::{MemberIdentity, PartitionSet};
use crate::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use crate::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use crate::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};

/// The last versions of OffsetCommit and OffsetFetch that name topics by name (KIP-848).
const NAMES_UNTIL: i16 = 9;
/// The first version of OffsetFetch that asks for several groups (KIP-709).
const SEVERAL_GROUPS_SINCE: i16 = 8;
/// The first version of OffsetFetch that can insist on stable offsets (KIP-447).
const STABLE_SINCE: i16 = 7;

/// A position in a partition that a group keeps at its coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch of the record before it, or none.
    pub leader_epoch: LeaderEpoch,
    /// What whoever committed it noted.
    pub metadata: String,
}

impl CommittedOffset {
    /// A position without more.
    #[must_use]
    pub const fn new(offset: Offset) -> Self {
        Self {
            offset,
            leader_epoch: LeaderEpoch::NONE,
            metadata: String::new(),
        }
    }
}

/// Ids of topics, as far as they are known.
pub type TopicIds = BTreeMap<TopicName, TopicId>;

/// Committed offsets by partition; `None` where there is none, or why it is not told.
pub type FetchedOffsets = BTreeMap<TopicPartition, Result<Option<CommittedOffset>, ErrorCode>>;

/// A commit of `offsets` under `identity`, or from outside of every generation, and the highest
/// version that can carry it: topics are named by id only when all ids are known.
#[must_use]
pub fn commit_request(
    group_id: &str,
    identity: Option<&MemberIdentity>,
    offsets: &BTreeMap<TopicPartition, CommittedOffset>,
    ids: &TopicIds,
) -> (OffsetCommitRequest, i16) {
    let mut topics: BTreeMap<&TopicName, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
    for (it, committed) in offsets {
        let of_topic = topics.entry(&it.topic).or_default();
        of_topic.push(OffsetCommitRequestPartition {
            partition_index: it.partition.raw(),
            committed_offset: committed.offset.raw(),
            committed_leader_epoch: committed.leader_epoch.raw(),
            committed_metadata: Some(committed.metadata.clone()),
        });
    }
    let version_max = version_max(topics.keys().copied(), ids);
    let topics = topics
        .into_iter()
        .map(|(name, partitions)| OffsetCommitRequestTopic {
            name: name.to_string(),
            topic_id: raw_id(name, ids),
            partitions,
        });
    let request = OffsetCommitRequest {
        group_id: group_id.to_owned(),
        generation_id_or_member_epoch: identity.map_or(-1, |it| it.generation),
        member_id: identity.map(|it| it.member_id.clone()).unwrap_or_default(),
        group_instance_id: identity.and_then(|it| it.instance_id.clone()),
        topics: topics.collect(),
        ..OffsetCommitRequest::default()
    };
    (request, version_max)
}

/// What became of a commit, partition by partition.
#[must_use]
pub fn commit_results(
    answer: &OffsetCommitResponse,
    ids: &TopicIds,
) -> BTreeMap<TopicPartition, ErrorCode> {
    let mut results = BTreeMap::new();
    for topic in &answer.topics {
        let Some(name) = name_of(&topic.name, topic.topic_id, ids) else {
            continue;
        };
        for it in &topic.partitions {
            results.insert(of(&name, it.partition_index), it.error_code);
        }
    }
    results
}

/// Asks for the offsets of `partitions`, or of all that the group has, as `version` has it, and
/// the highest version that can carry it: all offsets are asked for by name, for a topic that is
/// gone has no id that says anything.
#[must_use]
pub fn fetch_request(
    group_id: &str,
    partitions: Option<&PartitionSet>,
    require_stable: bool,
    ids: &TopicIds,
    version: i16,
) -> (OffsetFetchRequest, i16) {
    let mut by_topic: BTreeMap<&TopicName, Vec<i32>> = BTreeMap::new();
    for it in partitions.into_iter().flatten() {
        let numbers = by_topic.entry(&it.topic).or_default();
        numbers.push(it.partition.raw());
    }
    let version_max = match partitions {
        Some(_) => version_max(by_topic.keys().copied(), ids),
        None => NAMES_UNTIL,
    };
    let version = version.min(version_max);
    let mut request = OffsetFetchRequest {
        require_stable: require_stable && version >= STABLE_SINCE,
        ..OffsetFetchRequest::default()
    };
    if version >= SEVERAL_GROUPS_SINCE {
        let topics = by_topic.into_iter();
        let topics = topics.map(|(name, partition_indexes)| OffsetFetchRequestTopics {
            name: name.to_string(),
            topic_id: raw_id(name, ids),
            partition_indexes,
        });
        request.groups = vec![OffsetFetchRequestGroup {
            group_id: group_id.to_owned(),
            topics: partitions.map(|_| topics.collect()),
            ..OffsetFetchRequestGroup::default()
        }];
    } else {
        let topics = by_topic.into_iter();
        let topics = topics.map(|(name, partition_indexes)| OffsetFetchRequestTopic {
            name: name.to_string(),
            partition_indexes,
        });
        group_id.clone_into(&mut request.group_id);
        request.topics = partitions.map(|_| topics.collect());
    }
    (request, version)
}

/// The offsets of `group_id` in an answer of any version.
///
/// # Errors
/// The group's error code.
pub fn fetched_offsets(
    answer: &OffsetFetchResponse,
    group_id: &str,
    ids: &TopicIds,
) -> Result<FetchedOffsets, ErrorCode> {
    let mut offsets = FetchedOffsets::new();
    let group = answer.groups.iter().find(|it| it.group_id == group_id);
    let code = group.map_or(answer.error_code, |it| it.error_code);
    if code.is_error() {
        return Err(code);
    }
    for topic in group.into_iter().flat_map(|it| &it.topics) {
        let Some(name) = name_of(&topic.name, topic.topic_id, ids) else {
            continue;
        };
        for it in &topic.partitions {
            let position = (it.committed_offset, it.committed_leader_epoch);
            let told = told(it.error_code, position, it.metadata.as_ref());
            offsets.insert(of(&name, it.partition_index), told);
        }
    }
    for topic in &answer.topics {
        let Ok(name) = TopicName::new(&topic.name) else {
            continue;
        };
        for it in &topic.partitions {
            let position = (it.committed_offset, it.committed_leader_epoch);
            let told = told(it.error_code, position, it.metadata.as_ref());
            offsets.insert(of(&name, it.partition_index), told);
        }
    }
    Ok(offsets)
}

fn told(
    code: ErrorCode,
    (offset, epoch): (i64, i32),
    metadata: Option<&String>,
) -> Result<Option<CommittedOffset>, ErrorCode> {
    if code.is_error() {
        return Err(code);
    }
    Ok((offset >= 0).then(|| CommittedOffset {
        offset: Offset::new(offset),
        leader_epoch: LeaderEpoch::new(epoch),
        metadata: metadata.cloned().unwrap_or_default(),
    }))
}

fn version_max<'a>(mut topics: impl Iterator<Item = &'a TopicName>, ids: &TopicIds) -> i16 {
    if topics.all(|topic| ids.contains_key(topic)) {
        i16::MAX
    } else {
        NAMES_UNTIL
    }
}

fn raw_id(name: &TopicName, ids: &TopicIds) -> Uuid {
    ids.get(name).map_or(Uuid::ZERO, |id| id.uuid())
}

fn name_of(name: &str, id: Uuid, ids: &TopicIds) -> Option<TopicName> {
    if name.is_empty() {
        let mut known = ids.iter();
        return known
            .find(|(_, it)| it.uuid() == id)
            .map(|(name, _)| name.clone());
    }
    TopicName::new(name).ok()
}

fn of(topic: &TopicName, number: i32) -> TopicPartition {
    TopicPartition {
        topic: topic.clone(),
        partition: PartitionIndex::new(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::group::test_support::{partition_set, topic};
    use crate::messages::offset_fetch_response::{
        OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
        OffsetFetchResponseTopic, OffsetFetchResponseTopics,
    };
    use crate::wire::Message;

    fn ids() -> TopicIds {
        [(topic("a"), TopicId::new(Uuid::from_bytes([7; 16])))].into()
    }

    #[test]
    fn every_version_can_ask_for_offsets() {
        let wanted = partition_set("a-0 a-3");
        for known in [ids(), TopicIds::new()] {
            for partitions in [Some(&wanted), None] {
                let (lowest, highest) = OffsetFetchRequest::VERSIONS;
                for version in lowest..=highest {
                    if partitions.is_none() && version < 2 {
                        // Only from version 2 on can all be asked for.
                        continue;
                    }
                    let (request, version) = fetch_request("g", partitions, true, &known, version);
                    let bytes = request.to_bytes(version).unwrap();
                    let back = OffsetFetchRequest::from_bytes(&bytes, version).unwrap();
                    let group = back.groups.first().map(|it| it.group_id.as_str());
                    assert_eq!(group.unwrap_or(&back.group_id), "g", "{version}");
                    assert_eq!(back.require_stable, version >= 7);
                }
            }
        }
        let (_, version) = fetch_request("g", Some(&wanted), false, &TopicIds::new(), 10);
        assert_eq!(version, 9, "without its id a topic has only its name");
    }

    #[test]
    fn every_version_can_commit() {
        let offsets = wanted_commit();
        for known in [ids(), TopicIds::new()] {
            let (request, version_max) = commit_request("g", None, &offsets, &known);
            let (lowest, highest) = OffsetCommitRequest::VERSIONS;
            for version in lowest..=highest.min(version_max) {
                let bytes = request.to_bytes(version).unwrap();
                let back = OffsetCommitRequest::from_bytes(&bytes, version).unwrap();
                assert_eq!(back.generation_id_or_member_epoch, -1);
                assert_eq!(back.topics[0].partitions[0].committed_offset, 5);
                assert_eq!(back.topics[0].name.is_empty(), version >= 10);
            }
        }
    }

    fn wanted_commit() -> BTreeMap<TopicPartition, CommittedOffset> {
        let of = |it: TopicPartition| (it, CommittedOffset::new(Offset::new(5)));
        partition_set("a-0").into_iter().map(of).collect()
    }

    #[test]
    fn answers_by_name_and_by_id_are_read_alike() {
        let old = OffsetFetchResponse {
            topics: vec![OffsetFetchResponseTopic {
                name: "a".to_owned(),
                partitions: vec![OffsetFetchResponsePartition {
                    committed_offset: 5,
                    committed_leader_epoch: 2,
                    ..Default::default()
                }],
            }],
            ..Default::default()
        };
        let new = OffsetFetchResponse {
            groups: vec![OffsetFetchResponseGroup {
                group_id: "g".to_owned(),
                topics: vec![OffsetFetchResponseTopics {
                    topic_id: Uuid::from_bytes([7; 16]),
                    partitions: vec![OffsetFetchResponsePartitions {
                        committed_offset: 5,
                        committed_leader_epoch: 2,
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let read = fetched_offsets(&old, "g", &TopicIds::new());
        assert_eq!(read, fetched_offsets(&new, "g", &ids()));
        let read = read.unwrap();
        let (name, offset) = read.first_key_value().unwrap();
        assert_eq!(name.to_string(), "a-0");
        let offset = offset.clone().unwrap().unwrap();
        assert_eq!((offset.offset.raw(), offset.leader_epoch.raw()), (5, 2));
    }
}
