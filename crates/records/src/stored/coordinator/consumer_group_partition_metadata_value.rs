//! Generated from `crates/protocol/schemas/coordinator/group-ConsumerGroupPartitionMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 4; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroupPartitionMetadataValue {
    /// `[]TopicMetadata`, versions 0+.
    pub topics: Vec<TopicMetadata>,
}

impl Wire for ConsumerGroupPartitionMetadataValue {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self { topics: r.read()? };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topics.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ConsumerGroupPartitionMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topics", &self.topics, v);
        it.into()
    }
}

/// Part of [`ConsumerGroupPartitionMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicMetadata {
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `string`, versions 0+.
    pub topic_name: String,
    /// `int32`, versions 0+.
    pub num_partitions: i32,
    /// `[]PartitionMetadata`, versions 0+.
    pub partition_metadata: Vec<PartitionMetadata>,
}

impl Wire for TopicMetadata {
    const SIZE_MIN: usize = 23;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_id: r.read()?,
            topic_name: r.read()?,
            num_partitions: r.read()?,
            partition_metadata: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_id.write(w)?;
        self.topic_name.write(w)?;
        self.num_partitions.write(w)?;
        self.partition_metadata.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for TopicMetadata {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicId", &self.topic_id, v);
        it.put("topicName", &self.topic_name, v);
        it.put("numPartitions", &self.num_partitions, v);
        it.put("partitionMetadata", &self.partition_metadata, v);
        it.into()
    }
}

/// Part of [`ConsumerGroupPartitionMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// `int32`, versions 0+.
    pub partition: i32,
    /// `[]string`, versions 0+.
    pub racks: Vec<String>,
}

impl Wire for PartitionMetadata {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            partition: r.read()?,
            racks: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.partition.write(w)?;
        self.racks.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for PartitionMetadata {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("partition", &self.partition, v);
        it.put("racks", &self.racks, v);
        it.into()
    }
}

impl Message for ConsumerGroupPartitionMetadataValue {
    const NAME: &'static str = "ConsumerGroupPartitionMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
