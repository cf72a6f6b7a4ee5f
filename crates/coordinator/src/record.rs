//! The records of `__consumer_offsets`, as this crate uses them.

use highwater_records::stored::GroupRecord;
use highwater_records::stored::coordinator::GroupMetadataKey;
use highwater_types::{Offset, ProducerEpoch, ProducerId, WallMs};

use crate::GroupId;
use crate::appender::NewRecord;
use crate::group::StoredGroup;

/// The version at which Apache Kafka 4.4 writes a classic group.
const GROUP_METADATA_VERSION: i16 = 3;

/// A record about one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// What the group is now; `None`: it is gone.
    Group(Option<StoredGroup>),
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
        let (record, version) = match self {
            Self::Group(stored) => (
                GroupRecord::GroupMetadata(
                    GroupMetadataKey {
                        group: group_id.as_str().to_owned(),
                    },
                    stored.as_ref().map(StoredGroup::to_value),
                ),
                GROUP_METADATA_VERSION,
            ),
        };
        let (key, value) = record.encode(version).ok()?;
        Some(NewRecord { key, value })
    }
}
