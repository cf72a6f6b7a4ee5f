//! Generated from `crates/protocol/schemas/api/75-DescribeTopicPartitions.txt` by `cargo xtask codegen`; not edited by hand.

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 75; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeTopicPartitionsRequest {
    /// `[]TopicRequest`, versions 0+.
    pub topics: Vec<TopicRequest>,
    /// `int32`, versions 0+.
    pub response_partition_limit: i32,
    /// `Cursor`, versions 0+, or null.
    pub cursor: Option<Cursor>,
}

impl Default for DescribeTopicPartitionsRequest {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            response_partition_limit: 2000,
            cursor: None,
        }
    }
}

impl Wire for DescribeTopicPartitionsRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topics: r.read()?,
            response_partition_limit: r.read()?,
            cursor: r.nullable_struct()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topics.write(w)?;
        self.response_partition_limit.write(w)?;
        w.nullable_struct(self.cursor.as_ref())?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicRequest {
    /// `string`, versions 0+.
    pub name: String,
}

impl Wire for TopicRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self { name: r.read()? };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// `string`, versions 0+.
    pub topic_name: String,
    /// `int32`, versions 0+.
    pub partition_index: i32,
}

impl Wire for Cursor {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_name: r.read()?,
            partition_index: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_name.write(w)?;
        self.partition_index.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for DescribeTopicPartitionsRequest {
    const NAME: &'static str = "DescribeTopicPartitionsRequest";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
