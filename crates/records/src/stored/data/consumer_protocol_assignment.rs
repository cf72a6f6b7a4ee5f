//! Generated from `crates/protocol/schemas/data/ConsumerProtocolAssignment.txt` by `cargo xtask codegen`; not edited by hand.

use bytes::Bytes;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// Stored data; versions 0-3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerProtocolAssignment {
    /// `[]TopicPartition`, versions 0+.
    pub assigned_partitions: Vec<TopicPartition>,
    /// `bytes`, versions 0+, or null.
    pub user_data: Option<Bytes>,
}

impl Wire for ConsumerProtocolAssignment {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            assigned_partitions: r.read()?,
            user_data: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.assigned_partitions.write(w)?;
        self.user_data.write(w)?;
        Ok(())
    }
}

impl ToJson for ConsumerProtocolAssignment {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("assignedPartitions", &self.assigned_partitions, v);
        it.put("userData", &self.user_data, v);
        it.into()
    }
}

/// Part of [`ConsumerProtocolAssignment`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPartition {
    /// `string`, versions 0+.
    pub topic: String,
    /// `[]int32`, versions 0+.
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartition {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            topic: r.read()?,
            partitions: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic.write(w)?;
        self.partitions.write(w)?;
        Ok(())
    }
}

impl ToJson for TopicPartition {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topic", &self.topic, v);
        it.put("partitions", &self.partitions, v);
        it.into()
    }
}

impl Message for ConsumerProtocolAssignment {
    const NAME: &'static str = "ConsumerProtocolAssignment";
    const VERSIONS: (i16, i16) = (0, 3);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
