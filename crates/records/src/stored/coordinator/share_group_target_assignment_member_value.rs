//! Generated from `crates/protocol/schemas/coordinator/group-ShareGroupTargetAssignmentMember.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 13; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareGroupTargetAssignmentMemberValue {
    /// `[]TopicPartition`, versions 0+.
    pub topic_partitions: Vec<TopicPartition>,
}

impl Wire for ShareGroupTargetAssignmentMemberValue {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_partitions: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ShareGroupTargetAssignmentMemberValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicPartitions", &self.topic_partitions, v);
        it.into()
    }
}

/// Part of [`ShareGroupTargetAssignmentMemberValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPartition {
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `[]int32`, versions 0+.
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartition {
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

impl ToJson for TopicPartition {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicId", &self.topic_id, v);
        it.put("partitions", &self.partitions, v);
        it.into()
    }
}

impl Message for ShareGroupTargetAssignmentMemberValue {
    const NAME: &'static str = "ShareGroupTargetAssignmentMemberValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
