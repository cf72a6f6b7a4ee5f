//! Generated from `crates/protocol/schemas/coordinator/group-ShareGroupStatePartitionMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 15; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareGroupStatePartitionMetadataValue {
    /// `[]TopicPartitionsInfo`, versions 0+.
    pub initializing_topics: Vec<TopicPartitionsInfo>,
    /// `[]TopicPartitionsInfo`, versions 0+.
    pub initialized_topics: Vec<TopicPartitionsInfo>,
    /// `[]TopicInfo`, versions 0+.
    pub deleting_topics: Vec<TopicInfo>,
}

impl Wire for ShareGroupStatePartitionMetadataValue {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            initializing_topics: r.read()?,
            initialized_topics: r.read()?,
            deleting_topics: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.initializing_topics.write(w)?;
        self.initialized_topics.write(w)?;
        self.deleting_topics.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ShareGroupStatePartitionMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("initializingTopics", &self.initializing_topics, v);
        it.put("initializedTopics", &self.initialized_topics, v);
        it.put("deletingTopics", &self.deleting_topics, v);
        it.into()
    }
}

/// Part of [`ShareGroupStatePartitionMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPartitionsInfo {
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `string`, versions 0+.
    pub topic_name: String,
    /// `[]int32`, versions 0+.
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartitionsInfo {
    const SIZE_MIN: usize = 19;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_id: r.read()?,
            topic_name: r.read()?,
            partitions: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_id.write(w)?;
        self.topic_name.write(w)?;
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for TopicPartitionsInfo {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicId", &self.topic_id, v);
        it.put("topicName", &self.topic_name, v);
        it.put("partitions", &self.partitions, v);
        it.into()
    }
}

/// Part of [`ShareGroupStatePartitionMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicInfo {
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `string`, versions 0+.
    pub topic_name: String,
}

impl Wire for TopicInfo {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_id: r.read()?,
            topic_name: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_id.write(w)?;
        self.topic_name.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for TopicInfo {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicId", &self.topic_id, v);
        it.put("topicName", &self.topic_name, v);
        it.into()
    }
}

impl Message for ShareGroupStatePartitionMetadataValue {
    const NAME: &'static str = "ShareGroupStatePartitionMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
