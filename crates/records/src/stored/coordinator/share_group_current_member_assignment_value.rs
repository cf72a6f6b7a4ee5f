//! Generated from `crates/protocol/schemas/coordinator/group-ShareGroupCurrentMemberAssignment.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 14; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareGroupCurrentMemberAssignmentValue {
    /// `int32`, versions 0+.
    pub member_epoch: i32,
    /// `int32`, versions 0+.
    pub previous_member_epoch: i32,
    /// `int8`, versions 0+.
    pub state: i8,
    /// `[]TopicPartitions`, versions 0+.
    pub assigned_partitions: Vec<TopicPartitions>,
}

impl Wire for ShareGroupCurrentMemberAssignmentValue {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            member_epoch: r.read()?,
            previous_member_epoch: r.read()?,
            state: r.read()?,
            assigned_partitions: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.member_epoch.write(w)?;
        self.previous_member_epoch.write(w)?;
        self.state.write(w)?;
        self.assigned_partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ShareGroupCurrentMemberAssignmentValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("memberEpoch", &self.member_epoch, v);
        it.put("previousMemberEpoch", &self.previous_member_epoch, v);
        it.put("state", &self.state, v);
        it.put("assignedPartitions", &self.assigned_partitions, v);
        it.into()
    }
}

/// Part of [`ShareGroupCurrentMemberAssignmentValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPartitions {
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `[]int32`, versions 0+.
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartitions {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_id: r.read()?,
            partitions: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_id.write(w)?;
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for TopicPartitions {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicId", &self.topic_id, v);
        it.put("partitions", &self.partitions, v);
        it.into()
    }
}

impl Message for ShareGroupCurrentMemberAssignmentValue {
    const NAME: &'static str = "ShareGroupCurrentMemberAssignmentValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
