//! Generated from `crates/protocol/schemas/api/19-CreateTopics.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 19; versions 2-7.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTopicsRequest {
    /// `[]CreatableTopic`, versions 0+.
    pub topics: Vec<CreatableTopic>,
    /// `int32`, versions 0+.
    pub timeout_ms: i32,
    /// `bool`, versions 1+.
    pub validate_only: bool,
}

impl Default for CreateTopicsRequest {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            timeout_ms: 60000,
            validate_only: false,
        }
    }
}

impl Wire for CreateTopicsRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topics: r.read()?,
            timeout_ms: r.read()?,
            validate_only: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topics.write(w)?;
        self.timeout_ms.write(w)?;
        self.validate_only.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`CreateTopicsRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatableTopic {
    /// `string`, versions 0+.
    pub name: String,
    /// `int32`, versions 0+.
    pub num_partitions: i32,
    /// `int16`, versions 0+.
    pub replication_factor: i16,
    /// `[]CreatableReplicaAssignment`, versions 0+.
    pub assignments: Vec<CreatableReplicaAssignment>,
    /// `[]CreatableTopicConfig`, versions 0+.
    pub configs: Vec<CreatableTopicConfig>,
}

impl Wire for CreatableTopic {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            num_partitions: r.read()?,
            replication_factor: r.read()?,
            assignments: r.read()?,
            configs: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.num_partitions.write(w)?;
        self.replication_factor.write(w)?;
        self.assignments.write(w)?;
        self.configs.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`CreateTopicsRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatableReplicaAssignment {
    /// `int32`, versions 0+.
    pub partition_index: i32,
    /// `[]int32`, versions 0+.
    pub broker_ids: Vec<NodeId>,
}

impl Wire for CreatableReplicaAssignment {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            partition_index: r.read()?,
            broker_ids: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.partition_index.write(w)?;
        self.broker_ids.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`CreateTopicsRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatableTopicConfig {
    /// `string`, versions 0+.
    pub name: String,
    /// `string`, versions 0+, or null.
    pub value: Option<String>,
}

impl Default for CreatableTopicConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            value: Some(String::new()),
        }
    }
}

impl Wire for CreatableTopicConfig {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            value: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.value.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for CreateTopicsRequest {
    const NAME: &'static str = "CreateTopicsRequest";
    const VERSIONS: (i16, i16) = (2, 7);
    const FLEXIBLE_SINCE: i16 = 5;
}
