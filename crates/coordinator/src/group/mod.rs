mod member;
mod members;
mod past;
mod phase;
mod stored;

use highwater_types::{Offset, WallMs};

use crate::answer::GroupState;
use crate::foreign::{self, ForeignGroup};
use crate::ids::GroupId;
use crate::offsets::GroupOffsets;
use crate::record::Record;

pub(crate) use self::member::{Member, Waiting};
pub(crate) use self::members::Members;
pub(crate) use self::past::Past;
pub(crate) use self::phase::{InitialDelay, Phase};
pub(crate) use self::stored::StoredGroup;

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: GroupId,
    /// What the newest record says; changes only in `replay`.
    pub(crate) stored: Option<StoredGroup>,
    /// Exclusive end of the newest record of `stored`; `Offset::ZERO`: none.
    pub(crate) stored_end: Offset,
    /// The id stands for a group of another type, which this build does not lead. Changes only in
    /// `replay`.
    ///
    /// Invariant: then `stored` is `None`.
    pub(crate) foreign: Option<Box<ForeignGroup>>,
    /// Committed offsets; what the log carries of them changes only in `replay`.
    pub(crate) offsets: GroupOffsets,
    /// The members as they are now, which runs ahead of `stored` while they join and sync.
    pub(crate) members: Members,
    /// What happened last, for describe answers.
    pub(crate) past: Past,
}

impl Group {
    pub(crate) fn new(id: GroupId) -> Self {
        Self {
            id,
            stored: None,
            stored_end: Offset::ZERO,
            foreign: None,
            offsets: GroupOffsets::default(),
            members: Members::new(WallMs::NONE),
            past: Past::default(),
        }
    }

    /// The group's state now.
    pub(crate) fn state(&self) -> GroupState {
        let foreign = self.foreign.as_ref();
        foreign.map_or_else(|| self.members.phase.state(), |it| it.state())
    }

    /// Whether nothing is left of the group: neither a record nor a member, nor one that may come.
    pub(crate) fn is_vacant(&self) -> bool {
        self.has_no_record() && self.members.is_empty() && self.members.pending.is_empty()
    }

    /// Whether the log says nothing (more) of the group.
    pub(crate) fn has_no_record(&self) -> bool {
        self.stored.is_none() && self.foreign.is_none() && self.offsets.is_empty()
    }

    /// Exclusive end of the newest record of the group and of its offsets.
    pub(crate) fn newest(&self) -> Offset {
        self.stored_end.max(self.offsets.newest())
    }

    /// Takes in a record of this group, which ends at `end` (exclusive).
    pub(crate) fn replay(&mut self, record: &Record, end: Offset) {
        match record {
            Record::Group(stored) => {
                self.stored.clone_from(stored);
                self.stored_end = end;
                if stored.is_some() {
                    self.foreign = None;
                } else {
                    // Only an empty group is taken away. Ids that it gave out mean nothing now.
                    self.members = Members::new(WallMs::NONE);
                }
            }
            Record::Offset {
                topic,
                partition,
                commit,
            } => self.offsets.replay(topic, *partition, commit.as_ref(), end),
            Record::Foreign(record) => {
                foreign::replay(&mut self.foreign, record);
                self.stored_end = end;
                if !record.is_tombstone() {
                    self.stored = None;
                }
            }
        }
    }
}
