//! The groups' log as its bytes tell it, read apart from the coordinator's own code.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, Bytes};
use highwater_protocol::client::group::{PartitionSet, Subscription, decode_assignment};
use highwater_types::{Offset, PartitionIndex, TopicName, TopicPartition};

/// The first versions with compact strings.
const COMPACT_OFFSETS_SINCE: i16 = 4;
/// Leader epochs are there.
const EPOCHS_SINCE: i16 = 3;
const STATE_TIMESTAMP_SINCE: i16 = 2;
const REBALANCE_TIMEOUT_SINCE: i16 = 1;
const INSTANCE_IDS_SINCE: i16 = 3;

/// A record of `__consumer_offsets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GroupRecord {
    /// A group as a whole; `None`: it is deleted.
    Group(String, Option<StoredGroup>),
    /// A committed offset; `None`: it is deleted.
    Offset(String, TopicPartition, Option<StoredOffset>),
    /// Something else.
    Other,
}

/// A group in a generation that is complete, or that nobody is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredGroup {
    pub(super) generation: i32,
    /// By member id.
    pub(super) members: BTreeMap<String, StoredMember>,
}

/// A member in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredMember {
    pub(super) instance_id: Option<String>,
    pub(super) topics: BTreeSet<TopicName>,
    pub(super) assigned: PartitionSet,
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredOffset {
    pub(super) offset: Offset,
    pub(super) mark: String,
}

/// The records of one partition of `__consumer_offsets`, as far as its log holds them.
#[derive(Debug, Default)]
pub(super) struct GroupLog {
    pub(super) records: BTreeMap<Offset, GroupRecord>,
}

impl GroupLog {
    /// Exclusive end of the newest record.
    pub(super) fn end(&self) -> Offset {
        let newest = self.records.keys().next_back();
        newest.map_or(Offset::ZERO, |it| it.next())
    }

    /// What the newest record of the group before `end` says; the outer `None`: there is none.
    pub(super) fn group(&self, group: &str, end: Offset) -> Option<Option<&StoredGroup>> {
        let mut before = self.records.range(..end).rev();
        before.find_map(|(_, record)| match record {
            GroupRecord::Group(of, stored) if of == group => Some(stored.as_ref()),
            _ => None,
        })
    }

    /// Every value that the committed offset has had from `from` on, the one at `from` first.
    pub(super) fn values(
        &self,
        group: &str,
        partition: &TopicPartition,
        from: Offset,
    ) -> Vec<Option<&StoredOffset>> {
        let of = |record: &GroupRecord| match record {
            GroupRecord::Offset(it, at, _) => it == group && at == partition,
            GroupRecord::Group(..) | GroupRecord::Other => false,
        };
        let before = self.records.range(..from).rev();
        let first = before.map(|(_, it)| it).find(|it| of(it));
        let later = self.records.range(from..).map(|(_, it)| it);
        let later = later.filter(|it| of(it));
        let mut values = vec![first.and_then(GroupRecord::offset)];
        values.extend(later.map(GroupRecord::offset));
        values
    }

    /// The group in this generation, as the newest record of it has it.
    pub(super) fn generation(&self, group: &str, generation: i32) -> Option<&StoredGroup> {
        self.records.values().rev().find_map(|record| match record {
            GroupRecord::Group(of, Some(stored))
                if of == group && stored.generation == generation =>
            {
                Some(stored)
            }
            _ => None,
        })
    }

    /// Whether a commit with this mark is in the log.
    pub(super) fn holds(&self, partition: &TopicPartition, mark: &str) -> bool {
        self.records.values().any(|record| match record {
            GroupRecord::Offset(_, of, Some(stored)) => of == partition && stored.mark == mark,
            _ => false,
        })
    }
}

impl GroupRecord {
    /// Reads a record.
    ///
    /// # Panics
    /// When it is none: the coordinator's mistake.
    pub(super) fn decode(key: &[u8], value: Option<&[u8]>) -> Self {
        let mut key = Bytes::copy_from_slice(key);
        let value = value.map(Bytes::copy_from_slice);
        match key.get_i16() {
            0 | 1 => {
                let (group, topic) = (string(&mut key), string(&mut key));
                let partition = TopicPartition {
                    topic: TopicName::new(&topic).expect("a legal name"),
                    partition: PartitionIndex::new(key.get_i32()),
                };
                Self::Offset(group, partition, value.map(offset_of))
            }
            2 => Self::Group(string(&mut key), value.map(group_of)),
            _ => Self::Other,
        }
    }

    const fn offset(&self) -> Option<&StoredOffset> {
        match self {
            Self::Offset(_, _, stored) => stored.as_ref(),
            Self::Group(..) | Self::Other => None,
        }
    }
}

impl StoredMember {
    /// Under which name it owns partitions.
    pub(super) fn owner<'a>(&'a self, member_id: &'a str) -> &'a str {
        self.instance_id.as_deref().unwrap_or(member_id)
    }
}

fn offset_of(mut value: Bytes) -> StoredOffset {
    let version = value.get_i16();
    let offset = Offset::new(value.get_i64());
    if version >= EPOCHS_SINCE {
        value.get_i32();
    }
    let mark = if version >= COMPACT_OFFSETS_SINCE {
        let length = usize::from(value.get_u8());
        assert!((1..0x80).contains(&length), "a mark is short");
        text(&mut value, length - 1)
    } else {
        string(&mut value)
    };
    StoredOffset { offset, mark }
}

fn group_of(mut value: Bytes) -> StoredGroup {
    let version = value.get_i16();
    assert!(version <= INSTANCE_IDS_SINCE, "a version that we write");
    string(&mut value);
    let generation = value.get_i32();
    let (_protocol, _leader) = (nullable(&mut value), nullable(&mut value));
    if version >= STATE_TIMESTAMP_SINCE {
        value.get_i64();
    }
    let count = value.get_i32();
    let members = (0..count).map(|_| member_of(version, &mut value)).collect();
    StoredGroup {
        generation,
        members,
    }
}

fn member_of(version: i16, value: &mut Bytes) -> (String, StoredMember) {
    let member_id = string(value);
    let instance_id = if version >= INSTANCE_IDS_SINCE {
        nullable(value)
    } else {
        None
    };
    let (_client_id, _client_host) = (string(value), string(value));
    if version >= REBALANCE_TIMEOUT_SINCE {
        value.get_i32();
    }
    value.get_i32();
    let (subscription, assignment) = (bytes(value), bytes(value));
    let subscription = Subscription::decode(&subscription).expect("our members subscribe");
    let assigned = if assignment.is_empty() {
        PartitionSet::new()
    } else {
        decode_assignment(&assignment).expect("our leaders assign")
    };
    let member = StoredMember {
        instance_id,
        topics: subscription.topics,
        assigned,
    };
    (member_id, member)
}

fn string(from: &mut Bytes) -> String {
    nullable(from).expect("a string that is there")
}

fn nullable(from: &mut Bytes) -> Option<String> {
    let length = usize::try_from(from.get_i16()).ok()?;
    Some(text(from, length))
}

fn text(from: &mut Bytes, length: usize) -> String {
    let bytes = from.copy_to_bytes(length);
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn bytes(from: &mut Bytes) -> Bytes {
    let length = usize::try_from(from.get_i32()).unwrap_or(0);
    from.copy_to_bytes(length)
}
