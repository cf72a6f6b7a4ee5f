//! Generated from `crates/protocol/schemas/coordinator/group-ConsumerGroupCurrentMemberAssignment.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 8; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroupCurrentMemberAssignmentValue {
    /// `int32`, versions 0+.
    pub member_epoch: i32,
    /// `int32`, versions 0+.
    pub previous_member_epoch: i32,
    /// `int8`, versions 0+.
    pub state: i8,
    /// `[]TopicPartitions`, versions 0+.
    pub assigned_partitions: Vec<TopicPartitions>,
    /// `[]TopicPartitions`, versions 0+.
    pub partitions_pending_revocation: Vec<TopicPartitions>,
}

impl Wire for ConsumerGroupCurrentMemberAssignmentValue {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            member_epoch: r.read()?,
            previous_member_epoch: r.read()?,
            state: r.read()?,
            assigned_partitions: r.read()?,
            partitions_pending_revocation: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.member_epoch.write(w)?;
        self.previous_member_epoch.write(w)?;
        self.state.write(w)?;
        self.assigned_partitions.write(w)?;
        self.partitions_pending_revocation.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ConsumerGroupCurrentMemberAssignmentValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("memberEpoch", &self.member_epoch, v);
        it.put("previousMemberEpoch", &self.previous_member_epoch, v);
        it.put("state", &self.state, v);
        it.put("assignedPartitions", &self.assigned_partitions, v);
        it.put(
            "partitionsPendingRevocation",
            &self.partitions_pending_revocation,
            v,
        );
        it.into()
    }
}

/// Part of [`ConsumerGroupCurrentMemberAssignmentValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPartitions {
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `[]int32`, versions 0+.
    pub partitions: Vec<i32>,
    /// `[]int32`, versions 0+, tag 0, or null.
    pub assignment_epochs: Option<Vec<i32>>,
}

impl Wire for TopicPartitions {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            topic_id: r.read()?,
            partitions: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.assignment_epochs = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_id.write(w)?;
        self.partitions.write(w)?;
        w.tags(|tags| {
            if self.assignment_epochs.is_some() {
                tags.put(0, &self.assignment_epochs)?;
            }
            Ok(())
        })
    }
}

impl ToJson for TopicPartitions {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicId", &self.topic_id, v);
        it.put("partitions", &self.partitions, v);
        if self.assignment_epochs.is_some() {
            it.put("assignmentEpochs", &self.assignment_epochs, v);
        }
        it.into()
    }
}

impl Message for ConsumerGroupCurrentMemberAssignmentValue {
    const NAME: &'static str = "ConsumerGroupCurrentMemberAssignmentValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
