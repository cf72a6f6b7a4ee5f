//! The records of `__consumer_offsets`, as this crate uses them.
//!
//! Read: every version that Apache Kafka 4.4 reads. Written: what it writes, byte for byte: offset
//! commits at version 4 with the topic id, or at version 1 when they have an expiry of their own;
//! classic groups at version 3; tombstones.

use highwater_records::stored::GroupRecord;
use highwater_records::stored::coordinator::{
    GroupMetadataKey, LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue,
};
use highwater_records::wire::{DecodeError, EncodeError};
use highwater_types::{
    LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TopicId, TopicName, WallMs,
};

use crate::GroupId;
use crate::appender::NewRecord;
use crate::foreign::ForeignRecord;
use crate::group::StoredGroup;
use crate::offsets::CommittedOffset;

/// The version at which Apache Kafka 4.4 writes a classic group.
const GROUP_METADATA_VERSION: i16 = 3;
/// The version of an offset commit: the first one with a topic id.
const OFFSET_VERSION: i16 = 4;
/// The version of an offset commit that expires at a time of its own. It has neither leader epoch
/// nor topic id; only requests of versions 2 to 4 lead to it.
const OFFSET_VERSION_WITH_EXPIRY: i16 = 1;

/// A record about one group. `None` in place of a value is a tombstone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// What the group is now; `None`: it is gone.
    Group(Option<StoredGroup>),
    /// What is committed for a partition.
    Offset {
        topic: TopicName,
        partition: PartitionIndex,
        /// Its `record_offset` is not stored: replay sets it.
        commit: Option<CommittedOffset>,
    },
    /// Part of a group of another type.
    Foreign(Box<ForeignRecord>),
}

/// Where in the log a replayed record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayedAt {
    /// Its offset.
    pub offset: Offset,
    /// Of its batch; `ProducerId::NONE` for what a coordinator wrote.
    pub producer_id: ProducerId,
    /// Of its batch.
    pub producer_epoch: ProducerEpoch,
    /// Whether its batch belongs to a transaction.
    pub transactional: bool,
    /// Its time.
    pub timestamp: WallMs,
}

/// A record that cannot be replayed: the log is not what a coordinator wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record at offset {offset} cannot be read: {why}")]
pub struct ReplayError {
    /// The record's offset.
    pub offset: Offset,
    /// What is wrong with it.
    pub why: String,
}

impl Record {
    /// The bytes to append; `None` when a field is too long for the format.
    pub(crate) fn encode(&self, group_id: &GroupId) -> Option<NewRecord> {
        let (key, value) = self.to_bytes(group_id).ok()?;
        Some(NewRecord { key, value })
    }

    fn to_bytes(&self, group_id: &GroupId) -> Result<Encoded, EncodeError> {
        let group = group_id.as_str().to_owned();
        match self {
            Self::Group(stored) => {
                let value = stored.as_ref().map(StoredGroup::to_value);
                let key = GroupMetadataKey { group };
                GroupRecord::GroupMetadata(key, value).encode(GROUP_METADATA_VERSION)
            }
            Self::Offset {
                topic,
                partition,
                commit,
            } => {
                let key = OffsetCommitKey {
                    group,
                    topic: topic.as_str().to_owned(),
                    partition: partition.raw(),
                };
                let version = match commit {
                    Some(commit) if commit.expire_timestamp.is_some() => OFFSET_VERSION_WITH_EXPIRY,
                    _ => OFFSET_VERSION,
                };
                let value = commit.as_ref().map(stored_commit);
                GroupRecord::OffsetCommit(key, value).encode(version)
            }
            // Only ever taken away: this build does not lead groups of other types.
            Self::Foreign(record) => Ok((record.key.clone(), None)),
        }
    }

    /// Reads a record, and whose it is. `None`: nothing that could be served. That is a type which
    /// this build does not know, left by a newer Kafka and skipped as Kafka skips it; and an offset
    /// of a topic that cannot exist.
    ///
    /// # Errors
    /// When the bytes are not of the type that the key names, or of a version above those that
    /// Kafka 4.4 knows.
    pub(crate) fn decode(
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Option<(GroupId, Self)>, DecodeError> {
        let record = match GroupRecord::decode(key, value) {
            Ok((record, _)) => record,
            Err(DecodeError::RecordType(_)) => return Ok(None),
            Err(why) => return Err(why),
        };
        Ok(match record {
            GroupRecord::OffsetCommit(key, value) => {
                let commit = value.map(loaded_commit);
                offset(key.group, &key.topic, key.partition, commit)
            }
            GroupRecord::LegacyOffsetCommit(key, value) => {
                let commit = value.map(legacy_commit);
                offset(key.group, &key.topic, key.partition, commit)
            }
            GroupRecord::GroupMetadata(key, value) => Some((
                key.group.into(),
                Self::Group(value.map(StoredGroup::from_value)),
            )),
            other => ForeignRecord::new(key, other)
                .map(|(group, record)| (group, Self::Foreign(Box::new(record)))),
        })
    }
}

type Encoded = (bytes::Bytes, Option<bytes::Bytes>);

fn offset(
    group: String,
    topic: &str,
    partition: i32,
    commit: Option<CommittedOffset>,
) -> Option<(GroupId, Record)> {
    let record = Record::Offset {
        topic: TopicName::new(topic).ok()?,
        partition: PartitionIndex::new(partition),
        commit,
    };
    Some((group.into(), record))
}

fn stored_commit(commit: &CommittedOffset) -> OffsetCommitValue {
    let value = OffsetCommitValue {
        offset: commit.offset.raw(),
        metadata: (*commit.metadata).to_owned(),
        commit_timestamp: commit.commit_timestamp.raw(),
        ..OffsetCommitValue::default()
    };
    match commit.expire_timestamp {
        Some(at) => OffsetCommitValue {
            expire_timestamp: at.raw(),
            ..value
        },
        None => OffsetCommitValue {
            leader_epoch: commit.leader_epoch.raw(),
            topic_id: commit.topic_id.uuid(),
            ..value
        },
    }
}

fn loaded_commit(value: OffsetCommitValue) -> CommittedOffset {
    CommittedOffset {
        offset: Offset::new(value.offset),
        leader_epoch: LeaderEpoch::new(value.leader_epoch.max(LeaderEpoch::NONE.raw())),
        metadata: value.metadata.into(),
        commit_timestamp: WallMs::new(value.commit_timestamp),
        // KAFKA-8069: -1 means no expiry of its own, never one in the past.
        expire_timestamp: (value.expire_timestamp != WallMs::NONE.raw())
            .then(|| WallMs::new(value.expire_timestamp)),
        topic_id: TopicId::new(value.topic_id),
        record_offset: Offset::NONE,
    }
}

fn legacy_commit(value: LegacyOffsetCommitValue) -> CommittedOffset {
    CommittedOffset {
        offset: Offset::new(value.offset),
        leader_epoch: LeaderEpoch::NONE,
        metadata: value.metadata.into(),
        commit_timestamp: WallMs::new(value.commit_timestamp),
        expire_timestamp: None,
        topic_id: TopicId::ZERO,
        record_offset: Offset::NONE,
    }
}
