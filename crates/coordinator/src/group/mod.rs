mod past;
mod stored;

use highwater_types::Offset;

use crate::ids::GroupId;
use crate::offsets::GroupOffsets;
use crate::record::Record;

pub(crate) use self::past::Past;
pub(crate) use self::stored::{StoredGroup, StoredMember};

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: GroupId,
    /// What the newest record says; changes only in `replay`.
    pub(crate) stored: Option<StoredGroup>,
    /// Exclusive end of the newest record of `stored`; `Offset::ZERO`: none.
    pub(crate) stored_end: Offset,
    /// Committed offsets; what the log carries of them changes only in `replay`.
    pub(crate) offsets: GroupOffsets,
    /// What happened last, for describe answers.
    pub(crate) past: Past,
}

impl Group {
    pub(crate) fn new(id: GroupId) -> Self {
        Self {
            id,
            stored: None,
            stored_end: Offset::ZERO,
            offsets: GroupOffsets::default(),
            past: Past::default(),
        }
    }

    /// Takes in a record of this group, which ends at `end` (exclusive).
    pub(crate) fn replay(&mut self, record: &Record, end: Offset) {
        match record {
            Record::Group(stored) => {
                self.stored.clone_from(stored);
                self.stored_end = end;
            }
        }
    }
}
