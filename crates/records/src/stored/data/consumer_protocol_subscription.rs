//! Generated from `crates/protocol/schemas/data/ConsumerProtocolSubscription.txt` by `cargo xtask codegen`; not edited by hand.

use bytes::Bytes;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// Stored data; versions 0-3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerProtocolSubscription {
    /// `[]string`, versions 0+.
    pub topics: Vec<String>,
    /// `bytes`, versions 0+, or null.
    pub user_data: Option<Bytes>,
    /// `[]TopicPartition`, versions 1+.
    pub owned_partitions: Vec<TopicPartition>,
    /// `int32`, versions 2+.
    pub generation_id: i32,
    /// `string`, versions 3+, or null.
    pub rack_id: Option<String>,
}

impl Default for ConsumerProtocolSubscription {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            user_data: None,
            owned_partitions: Vec::new(),
            generation_id: -1,
            rack_id: None,
        }
    }
}

impl Wire for ConsumerProtocolSubscription {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            topics: r.read()?,
            user_data: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.owned_partitions = r.read()?;
        }
        if v >= 2 {
            it.generation_id = r.read()?;
        }
        if v >= 3 {
            it.rack_id = r.read()?;
        }
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.topics.write(w)?;
        self.user_data.write(w)?;
        if v >= 1 {
            self.owned_partitions.write(w)?;
        }
        if v >= 2 {
            self.generation_id.write(w)?;
        }
        if v >= 3 {
            self.rack_id.write(w)?;
        }
        Ok(())
    }
}

impl ToJson for ConsumerProtocolSubscription {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topics", &self.topics, v);
        it.put("userData", &self.user_data, v);
        if v >= 1 {
            it.put("ownedPartitions", &self.owned_partitions, v);
        }
        if v >= 2 {
            it.put("generationId", &self.generation_id, v);
        }
        if v >= 3 {
            it.put("rackId", &self.rack_id, v);
        }
        it.into()
    }
}

/// Part of [`ConsumerProtocolSubscription`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPartition {
    /// `string`, versions 1+.
    pub topic: String,
    /// `[]int32`, versions 1+.
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

impl Message for ConsumerProtocolSubscription {
    const NAME: &'static str = "ConsumerProtocolSubscription";
    const VERSIONS: (i16, i16) = (0, 3);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
