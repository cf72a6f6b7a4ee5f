//! Groups of other types in a log that Kafka wrote: consumer (KIP-848), share (KIP-932) and streams
//! (KIP-1071) groups.
//!
//! This build does not lead them. It knows enough of them to keep their records, to refuse classic
//! members while they have members of their own, to list them, to keep, expire and delete the
//! offsets that they committed, and to take an empty one away when it is deleted or becomes a
//! classic group, as Kafka does: by a tombstone for each of its records.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_records::stored::GroupRecord;
use highwater_types::ErrorCode;

use crate::answer::GroupState;
use crate::offset_request::OffsetCommitRequest;
use crate::record::Record;
use crate::subscription::Subscribed;
use crate::{GenerationId, GroupId};

/// A member whose assignment is the one it was told, in all three types.
const MEMBER_STATE_STABLE: i8 = 0;

/// The types of groups, with Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GroupType {
    /// The group protocol that this build leads.
    Classic,
    /// KIP-848.
    Consumer,
    /// KIP-932.
    Share,
    /// KIP-1071.
    Streams,
}

impl GroupType {
    /// Kafka's name, as ListGroups carries it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }

    /// The protocol type that such a group is listed with.
    pub(crate) const fn protocol_type(self) -> &'static str {
        match self {
            Self::Classic => "",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }
}

/// One record of a group of another type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForeignRecord {
    group_type: GroupType,
    /// As it is in the log: a tombstone needs nothing else.
    pub(crate) key: Bytes,
    /// Where its tombstone stands among those of the group: the group itself goes last.
    rank: u8,
    is_tombstone: bool,
    part: Part,
}

/// What of a record matters here.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Group {
        epoch: Option<i32>,
    },
    Assignment {
        epoch: Option<i32>,
    },
    Member {
        id: String,
        topics: Option<Vec<String>>,
    },
    Current {
        id: String,
        epoch: Option<(i32, bool)>,
    },
    Topology {
        topics: Option<Vec<String>>,
    },
    Other,
}

impl ForeignRecord {
    /// The record, and whose it is. `None` for a record that is not one of these groups'.
    pub(crate) fn new(key: &[u8], record: GroupRecord) -> Option<(GroupId, Self)> {
        let (group, group_type, rank, is_tombstone, part) = dissect(record)?;
        let record = Self {
            group_type,
            key: Bytes::copy_from_slice(key),
            rank,
            is_tombstone,
            part,
        };
        Some((group.into(), record))
    }

    pub(crate) const fn is_tombstone(&self) -> bool {
        self.is_tombstone
    }
}

type Dissected = (String, GroupType, u8, bool, Part);

fn dissect(record: GroupRecord) -> Option<Dissected> {
    use GroupRecord as R;
    use GroupType::{Consumer, Share, Streams};
    // The ranks are the order of Kafka's own tombstones.
    Some(match record {
        R::ConsumerGroupCurrentMemberAssignment(k, v) => {
            let epoch = v
                .as_ref()
                .map(|v| (v.member_epoch, v.state == MEMBER_STATE_STABLE));
            current(k.group_id, Consumer, k.member_id, epoch)
        }
        R::ConsumerGroupTargetAssignmentMember(k, v) => other(k.group_id, Consumer, 1, v.is_none()),
        R::ConsumerGroupTargetAssignmentMetadata(k, v) => {
            assignment(k.group_id, Consumer, v.map(|v| v.assignment_epoch))
        }
        R::ConsumerGroupMemberMetadata(k, v) => member(
            k.group_id,
            Consumer,
            k.member_id,
            v.map(|v| v.subscribed_topic_names),
        ),
        R::ConsumerGroupRegularExpression(k, v) => other(k.group_id, Consumer, 4, v.is_none()),
        R::ConsumerGroupPartitionMetadata(k, v) => other(k.group_id, Consumer, 5, v.is_none()),
        R::ConsumerGroupMetadata(k, v) => group(k.group_id, Consumer, v.map(|v| v.epoch)),
        R::ShareGroupCurrentMemberAssignment(k, v) => {
            let epoch = v
                .as_ref()
                .map(|v| (v.member_epoch, v.state == MEMBER_STATE_STABLE));
            current(k.group_id, Share, k.member_id, epoch)
        }
        R::ShareGroupTargetAssignmentMember(k, v) => other(k.group_id, Share, 1, v.is_none()),
        R::ShareGroupTargetAssignmentMetadata(k, v) => {
            assignment(k.group_id, Share, v.map(|v| v.assignment_epoch))
        }
        R::ShareGroupMemberMetadata(k, v) => member(
            k.group_id,
            Share,
            k.member_id,
            v.map(|v| v.subscribed_topic_names),
        ),
        R::ShareGroupStatePartitionMetadata(k, v) => other(k.group_id, Share, 5, v.is_none()),
        R::ShareGroupMetadata(k, v) => group(k.group_id, Share, v.map(|v| v.epoch)),
        R::StreamsGroupCurrentMemberAssignment(k, v) => {
            let epoch = v
                .as_ref()
                .map(|v| (v.member_epoch, v.state == MEMBER_STATE_STABLE));
            current(k.group_id, Streams, k.member_id, epoch)
        }
        R::StreamsGroupTargetAssignmentMember(k, v) => other(k.group_id, Streams, 1, v.is_none()),
        R::StreamsGroupTargetAssignmentMetadata(k, v) => {
            assignment(k.group_id, Streams, v.map(|v| v.assignment_epoch))
        }
        R::StreamsGroupMemberMetadata(k, v) => {
            member(k.group_id, Streams, k.member_id, v.map(|_| Vec::new()))
        }
        R::StreamsGroupTopology(k, v) => {
            let topics = v.map(|v| v.subtopologies.into_iter().flat_map(|s| s.source_topics));
            let topics = topics.map(Iterator::collect::<Vec<_>>);
            (
                k.group_id,
                Streams,
                5,
                topics.is_none(),
                Part::Topology { topics },
            )
        }
        R::StreamsGroupMetadata(k, v) => group(k.group_id, Streams, v.map(|v| v.epoch)),
        R::LegacyOffsetCommit(..) | R::OffsetCommit(..) | R::GroupMetadata(..) => return None,
    })
}

fn current(group: String, of: GroupType, id: String, epoch: Option<(i32, bool)>) -> Dissected {
    (group, of, 0, epoch.is_none(), Part::Current { id, epoch })
}

fn assignment(group: String, of: GroupType, epoch: Option<i32>) -> Dissected {
    (group, of, 2, epoch.is_none(), Part::Assignment { epoch })
}

fn member(group: String, of: GroupType, id: String, topics: Option<Vec<String>>) -> Dissected {
    (group, of, 3, topics.is_none(), Part::Member { id, topics })
}

fn group(group: String, of: GroupType, epoch: Option<i32>) -> Dissected {
    (group, of, 6, epoch.is_none(), Part::Group { epoch })
}

fn other(group: String, of: GroupType, rank: u8, is_tombstone: bool) -> Dissected {
    (group, of, rank, is_tombstone, Part::Other)
}

/// A group of another type.
#[derive(Clone, Debug)]
pub(crate) struct ForeignGroup {
    group_type: GroupType,
    epoch: i32,
    assignment_epoch: i32,
    members: BTreeMap<String, ForeignMember>,
    /// Of a streams group's topology: its source topics.
    source_topics: Option<BTreeSet<String>>,
    /// The keys of all its records that are not tombstones, in the order of their tombstones.
    keys: BTreeSet<(u8, Bytes)>,
}

/// A member of a group of another type.
#[derive(Clone, Debug, Default)]
struct ForeignMember {
    /// Whether its own record was seen; before that it is no member.
    is_known: bool,
    topics: BTreeSet<String>,
    epoch: i32,
    is_stable: bool,
}

impl ForeignGroup {
    fn new(group_type: GroupType) -> Self {
        Self {
            group_type,
            epoch: 0,
            assignment_epoch: 0,
            members: BTreeMap::new(),
            source_topics: None,
            keys: BTreeSet::new(),
        }
    }

    pub(crate) const fn group_type(&self) -> GroupType {
        self.group_type
    }

    fn known_members(&self) -> impl Iterator<Item = &ForeignMember> {
        self.members.values().filter(|member| member.is_known)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known_members().next().is_none()
    }

    /// The group's state, by Kafka's rules for its type.
    pub(crate) fn state(&self) -> GroupState {
        if self.is_empty() {
            return GroupState::Empty;
        }
        if self.group_type == GroupType::Share {
            return GroupState::Stable;
        }
        if self.group_type == GroupType::Streams && self.source_topics.is_none() {
            return GroupState::NotReady;
        }
        if self.epoch > self.assignment_epoch {
            return GroupState::Assigning;
        }
        let is_there = |it: &ForeignMember| it.is_stable && it.epoch == self.assignment_epoch;
        if self.known_members().all(is_there) {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
    }

    /// The topics whose offsets are in use.
    pub(crate) fn subscribed(&self) -> Subscribed {
        let topics = match (self.group_type, &self.source_topics) {
            (GroupType::Streams, Some(topics)) if !self.is_empty() => topics.clone(),
            (GroupType::Streams, _) => BTreeSet::new(),
            _ => {
                let topics = self.known_members().flat_map(|member| &member.topics);
                topics.cloned().collect()
            }
        };
        Subscribed::To(topics)
    }

    /// Whether a classic member may turn the group into a classic one: it has no members, and is
    /// no share group.
    pub(crate) fn can_become_classic(&self) -> bool {
        self.group_type != GroupType::Share && self.is_empty()
    }

    /// The tombstones that take the group away.
    pub(crate) fn tombstones(&self) -> Vec<Record> {
        let tombstone = |(rank, key): &(u8, Bytes)| {
            Record::Foreign(Box::new(ForeignRecord {
                group_type: self.group_type,
                key: key.clone(),
                rank: *rank,
                is_tombstone: true,
                part: Part::Other,
            }))
        };
        self.keys.iter().map(tombstone).collect()
    }

    /// Whether an offset commit is refused, and why.
    pub(crate) fn check_commit(&self, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
        if self.group_type == GroupType::Share {
            return Err(ErrorCode::GROUP_ID_NOT_FOUND);
        }
        if request.generation_id.raw() < 0 && self.is_empty() {
            return Ok(());
        }
        let member = self.member(request.member_id.as_str())?;
        if !request.knows_member_epochs {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        // Kafka also accepts an older epoch for partitions that the member has owned since
        // (KIP-1251). It then knows that member's assignment, as only its coordinator does.
        if request.generation_id == GenerationId::new(member.epoch) {
            Ok(())
        } else {
            Err(ErrorCode::STALE_MEMBER_EPOCH)
        }
    }

    /// Whether an offset fetch is refused, and why.
    pub(crate) fn check_fetch(&self, member: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        if self.group_type == GroupType::Share {
            return Err(ErrorCode::GROUP_ID_NOT_FOUND);
        }
        if member.is_none() && epoch < 0 {
            return Ok(());
        }
        if self.member(member.unwrap_or_default())?.epoch == epoch {
            Ok(())
        } else {
            Err(ErrorCode::STALE_MEMBER_EPOCH)
        }
    }

    /// Whether offsets may be deleted at all.
    pub(crate) fn check_offset_delete(&self) -> Result<(), ErrorCode> {
        match self.group_type {
            GroupType::Share => Err(ErrorCode::GROUP_ID_NOT_FOUND),
            GroupType::Classic | GroupType::Consumer | GroupType::Streams => Ok(()),
        }
    }

    fn member(&self, id: &str) -> Result<&ForeignMember, ErrorCode> {
        let member = self.members.get(id).filter(|member| member.is_known);
        member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)
    }

    fn replay(&mut self, record: &ForeignRecord) {
        let key = (record.rank, record.key.clone());
        if record.is_tombstone {
            self.keys.remove(&key);
        } else {
            self.keys.insert(key);
        }
        match &record.part {
            Part::Group { epoch } => self.epoch = epoch.unwrap_or_default(),
            Part::Assignment { epoch } => self.assignment_epoch = epoch.unwrap_or_default(),
            Part::Topology { topics } => {
                self.source_topics = topics.as_ref().map(|it| it.iter().cloned().collect());
            }
            Part::Member {
                id,
                topics: Some(topics),
            } => {
                let member = self.members.entry(id.clone()).or_default();
                member.is_known = true;
                member.topics = topics.iter().cloned().collect();
            }
            Part::Member { id, topics: None } => {
                self.members.remove(id);
            }
            Part::Current {
                id,
                epoch: Some((epoch, is_stable)),
            } => {
                let member = self.members.entry(id.clone()).or_default();
                (member.epoch, member.is_stable) = (*epoch, *is_stable);
            }
            Part::Current { id, epoch: None } => {
                if let Some(member) = self.members.get_mut(id) {
                    (member.epoch, member.is_stable) = (0, false);
                }
            }
            Part::Other => {}
        }
    }
}

/// Takes a record into the group of another type that an id stands for, if any.
pub(crate) fn replay(group: &mut Option<Box<ForeignGroup>>, record: &ForeignRecord) {
    if group
        .as_ref()
        .is_none_or(|it| it.group_type != record.group_type)
    {
        if record.is_tombstone {
            return;
        }
        // The id is new, or was used again for a group of another type.
        *group = Some(Box::new(ForeignGroup::new(record.group_type)));
    }
    if let Some(there) = group {
        there.replay(record);
        if there.keys.is_empty() {
            *group = None;
        }
    }
}
