//! Generated from `crates/protocol/schemas/api/75-DescribeTopicPartitions.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, NodeId, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 75; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeTopicPartitionsResponse {
    /// `int32`, versions 0+.
    pub throttle_time_ms: i32,
    /// `[]DescribeTopicPartitionsResponseTopic`, versions 0+.
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    /// `Cursor`, versions 0+, or null.
    pub next_cursor: Option<Cursor>,
}

impl Wire for DescribeTopicPartitionsResponse {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            topics: r.read()?,
            next_cursor: r.nullable_struct()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.topics.write(w)?;
        w.nullable_struct(self.next_cursor.as_ref())?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeTopicPartitionsResponseTopic {
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `string`, versions 0+, or null.
    pub name: Option<String>,
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `bool`, versions 0+.
    pub is_internal: bool,
    /// `[]DescribeTopicPartitionsResponsePartition`, versions 0+.
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    /// `int32`, versions 0+.
    pub topic_authorized_operations: i32,
}

impl Default for DescribeTopicPartitionsResponseTopic {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            name: Some(String::new()),
            topic_id: Uuid::ZERO,
            is_internal: false,
            partitions: Vec::new(),
            topic_authorized_operations: i32::MIN,
        }
    }
}

impl Wire for DescribeTopicPartitionsResponseTopic {
    const SIZE_MIN: usize = 26;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            error_code: r.read()?,
            name: r.read()?,
            topic_id: r.read()?,
            is_internal: r.read()?,
            partitions: r.read()?,
            topic_authorized_operations: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.error_code.write(w)?;
        self.name.write(w)?;
        self.topic_id.write(w)?;
        self.is_internal.write(w)?;
        self.partitions.write(w)?;
        self.topic_authorized_operations.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeTopicPartitionsResponsePartition {
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int32`, versions 0+.
    pub partition_index: i32,
    /// `int32`, versions 0+.
    pub leader_id: NodeId,
    /// `int32`, versions 0+.
    pub leader_epoch: i32,
    /// `[]int32`, versions 0+.
    pub replica_nodes: Vec<NodeId>,
    /// `[]int32`, versions 0+.
    pub isr_nodes: Vec<NodeId>,
    /// `[]int32`, versions 0+, or null.
    pub eligible_leader_replicas: Option<Vec<NodeId>>,
    /// `[]int32`, versions 0+, or null.
    pub last_known_elr: Option<Vec<NodeId>>,
    /// `[]int32`, versions 0+.
    pub offline_replicas: Vec<NodeId>,
}

impl Default for DescribeTopicPartitionsResponsePartition {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            partition_index: 0,
            leader_id: NodeId::new(0),
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            eligible_leader_replicas: None,
            last_known_elr: None,
            offline_replicas: Vec::new(),
        }
    }
}

impl Wire for DescribeTopicPartitionsResponsePartition {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            error_code: r.read()?,
            partition_index: r.read()?,
            leader_id: r.read()?,
            leader_epoch: r.read()?,
            replica_nodes: r.read()?,
            isr_nodes: r.read()?,
            eligible_leader_replicas: r.read()?,
            last_known_elr: r.read()?,
            offline_replicas: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.error_code.write(w)?;
        self.partition_index.write(w)?;
        self.leader_id.write(w)?;
        self.leader_epoch.write(w)?;
        self.replica_nodes.write(w)?;
        self.isr_nodes.write(w)?;
        self.eligible_leader_replicas.write(w)?;
        self.last_known_elr.write(w)?;
        self.offline_replicas.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsResponse`].
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

impl Message for DescribeTopicPartitionsResponse {
    const NAME: &'static str = "DescribeTopicPartitionsResponse";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
