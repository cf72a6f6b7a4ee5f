//! Generated from `crates/protocol/schemas/api/03-Metadata.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, NodeId, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 3; versions 0-13.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataResponse {
    /// `int32`, versions 3+.
    pub throttle_time_ms: i32,
    /// `[]MetadataResponseBroker`, versions 0+.
    pub brokers: Vec<MetadataResponseBroker>,
    /// `string`, versions 2+, or null.
    pub cluster_id: Option<String>,
    /// `int32`, versions 1+.
    pub controller_id: NodeId,
    /// `[]MetadataResponseTopic`, versions 0+.
    pub topics: Vec<MetadataResponseTopic>,
    /// `int32`, versions 8-10.
    pub cluster_authorized_operations: i32,
    /// `int16`, versions 13+.
    pub error_code: ErrorCode,
}

impl Default for MetadataResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            brokers: Vec::new(),
            cluster_id: None,
            controller_id: NodeId::NONE,
            topics: Vec::new(),
            cluster_authorized_operations: i32::MIN,
            error_code: ErrorCode::NONE,
        }
    }
}

impl Wire for MetadataResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v >= 3 {
            it.throttle_time_ms = r.read()?;
        }
        it.brokers = r.read()?;
        if v >= 2 {
            it.cluster_id = r.read()?;
        }
        if v >= 1 {
            it.controller_id = r.read()?;
        }
        it.topics = r.read()?;
        if (8..=10).contains(&v) {
            it.cluster_authorized_operations = r.read()?;
        }
        if v >= 13 {
            it.error_code = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 3 {
            self.throttle_time_ms.write(w)?;
        }
        self.brokers.write(w)?;
        if v >= 2 {
            self.cluster_id.write(w)?;
        }
        if v >= 1 {
            self.controller_id.write(w)?;
        }
        self.topics.write(w)?;
        if (8..=10).contains(&v) {
            self.cluster_authorized_operations.write(w)?;
        } else {
            w.absent(
                self.cluster_authorized_operations == i32::MIN,
                "ClusterAuthorizedOperations",
            )?;
        }
        if v >= 13 {
            self.error_code.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`MetadataResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataResponseBroker {
    /// `int32`, versions 0+.
    pub node_id: NodeId,
    /// `string`, versions 0+.
    pub host: String,
    /// `int32`, versions 0+.
    pub port: i32,
    /// `string`, versions 1+, or null.
    pub rack: Option<String>,
}

impl Default for MetadataResponseBroker {
    fn default() -> Self {
        Self {
            node_id: NodeId::new(0),
            host: String::new(),
            port: 0,
            rack: None,
        }
    }
}

impl Wire for MetadataResponseBroker {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            node_id: r.read()?,
            host: r.read()?,
            port: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.rack = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.node_id.write(w)?;
        self.host.write(w)?;
        self.port.write(w)?;
        if v >= 1 {
            self.rack.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`MetadataResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataResponseTopic {
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `string`, versions 0+, or null in versions 12-13.
    pub name: Option<String>,
    /// `uuid`, versions 10+.
    pub topic_id: Uuid,
    /// `bool`, versions 1+.
    pub is_internal: bool,
    /// `[]MetadataResponsePartition`, versions 0+.
    pub partitions: Vec<MetadataResponsePartition>,
    /// `int32`, versions 8+.
    pub topic_authorized_operations: i32,
}

impl Default for MetadataResponseTopic {
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

impl Wire for MetadataResponseTopic {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            error_code: r.read()?,
            name: if v >= 12 { r.read()? } else { Some(r.read()?) },
            ..Self::default()
        };
        if v >= 10 {
            it.topic_id = r.read()?;
        }
        if v >= 1 {
            it.is_internal = r.read()?;
        }
        it.partitions = r.read()?;
        if v >= 8 {
            it.topic_authorized_operations = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.error_code.write(w)?;
        if v >= 12 {
            self.name.write(w)?;
        } else {
            w.write_some(self.name.as_ref())?;
        }
        if v >= 10 {
            self.topic_id.write(w)?;
        }
        if v >= 1 {
            self.is_internal.write(w)?;
        }
        self.partitions.write(w)?;
        if v >= 8 {
            self.topic_authorized_operations.write(w)?;
        } else {
            w.absent(
                self.topic_authorized_operations == i32::MIN,
                "TopicAuthorizedOperations",
            )?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`MetadataResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataResponsePartition {
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int32`, versions 0+.
    pub partition_index: i32,
    /// `int32`, versions 0+.
    pub leader_id: NodeId,
    /// `int32`, versions 7+.
    pub leader_epoch: i32,
    /// `[]int32`, versions 0+.
    pub replica_nodes: Vec<NodeId>,
    /// `[]int32`, versions 0+.
    pub isr_nodes: Vec<NodeId>,
    /// `[]int32`, versions 5+.
    pub offline_replicas: Vec<NodeId>,
}

impl Default for MetadataResponsePartition {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            partition_index: 0,
            leader_id: NodeId::new(0),
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            offline_replicas: Vec::new(),
        }
    }
}

impl Wire for MetadataResponsePartition {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            error_code: r.read()?,
            partition_index: r.read()?,
            leader_id: r.read()?,
            ..Self::default()
        };
        if v >= 7 {
            it.leader_epoch = r.read()?;
        }
        it.replica_nodes = r.read()?;
        it.isr_nodes = r.read()?;
        if v >= 5 {
            it.offline_replicas = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.error_code.write(w)?;
        self.partition_index.write(w)?;
        self.leader_id.write(w)?;
        if v >= 7 {
            self.leader_epoch.write(w)?;
        }
        self.replica_nodes.write(w)?;
        self.isr_nodes.write(w)?;
        if v >= 5 {
            self.offline_replicas.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for MetadataResponse {
    const NAME: &'static str = "MetadataResponse";
    const VERSIONS: (i16, i16) = (0, 13);
    const FLEXIBLE_SINCE: i16 = 9;
}
