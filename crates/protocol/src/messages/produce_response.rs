//! Generated from `crates/protocol/schemas/api/00-Produce.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, NodeId, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 0; versions 3-13.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceResponse {
    /// `[]TopicProduceResponse`, versions 0+.
    pub responses: Vec<TopicProduceResponse>,
    /// `int32`, versions 1+.
    pub throttle_time_ms: i32,
    /// `[]NodeEndpoint`, versions 10+, tag 0.
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Wire for ProduceResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            responses: r.read()?,
            throttle_time_ms: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 if v >= 10 => it.node_endpoints = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.responses.write(w)?;
        self.throttle_time_ms.write(w)?;
        w.tags(|tags| {
            if v >= 10 && !self.node_endpoints.is_empty() {
                tags.put(0, &self.node_endpoints)?;
            }
            Ok(())
        })
    }
}

/// Part of [`ProduceResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicProduceResponse {
    /// `string`, versions 0-12.
    pub name: String,
    /// `uuid`, versions 13+.
    pub topic_id: Uuid,
    /// `[]PartitionProduceResponse`, versions 0+.
    pub partition_responses: Vec<PartitionProduceResponse>,
}

impl Wire for TopicProduceResponse {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v <= 12 {
            it.name = r.read()?;
        }
        if v >= 13 {
            it.topic_id = r.read()?;
        }
        it.partition_responses = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v <= 12 {
            self.name.write(w)?;
        }
        if v >= 13 {
            self.topic_id.write(w)?;
        }
        self.partition_responses.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionProduceResponse {
    /// `int32`, versions 0+.
    pub index: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int64`, versions 0+.
    pub base_offset: i64,
    /// `int64`, versions 2+.
    pub log_append_time_ms: i64,
    /// `int64`, versions 5+.
    pub log_start_offset: i64,
    /// `[]BatchIndexAndErrorMessage`, versions 8+.
    pub record_errors: Vec<BatchIndexAndErrorMessage>,
    /// `string`, versions 8+, or null.
    pub error_message: Option<String>,
    /// `LeaderIdAndEpoch`, versions 10+, tag 0.
    pub current_leader: LeaderIdAndEpoch,
}

impl Default for PartitionProduceResponse {
    fn default() -> Self {
        Self {
            index: 0,
            error_code: ErrorCode::NONE,
            base_offset: 0,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: LeaderIdAndEpoch::default(),
        }
    }
}

impl Wire for PartitionProduceResponse {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            index: r.read()?,
            error_code: r.read()?,
            base_offset: r.read()?,
            log_append_time_ms: r.read()?,
            ..Self::default()
        };
        if v >= 5 {
            it.log_start_offset = r.read()?;
        }
        if v >= 8 {
            it.record_errors = r.read()?;
            it.error_message = r.read()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 if v >= 10 => it.current_leader = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.index.write(w)?;
        self.error_code.write(w)?;
        self.base_offset.write(w)?;
        self.log_append_time_ms.write(w)?;
        if v >= 5 {
            self.log_start_offset.write(w)?;
        }
        if v >= 8 {
            self.record_errors.write(w)?;
            self.error_message.write(w)?;
        }
        w.tags(|tags| {
            if v >= 10 && self.current_leader != LeaderIdAndEpoch::default() {
                tags.put(0, &self.current_leader)?;
            }
            Ok(())
        })
    }
}

/// Part of [`ProduceResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchIndexAndErrorMessage {
    /// `int32`, versions 8+.
    pub batch_index: i32,
    /// `string`, versions 8+, or null.
    pub batch_index_error_message: Option<String>,
}

impl Wire for BatchIndexAndErrorMessage {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            batch_index: r.read()?,
            batch_index_error_message: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.batch_index.write(w)?;
        self.batch_index_error_message.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderIdAndEpoch {
    /// `int32`, versions 10+.
    pub leader_id: NodeId,
    /// `int32`, versions 10+.
    pub leader_epoch: i32,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self {
            leader_id: NodeId::NONE,
            leader_epoch: -1,
        }
    }
}

impl Wire for LeaderIdAndEpoch {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            leader_id: r.read()?,
            leader_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.leader_id.write(w)?;
        self.leader_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// `int32`, versions 10+.
    pub node_id: NodeId,
    /// `string`, versions 10+.
    pub host: String,
    /// `int32`, versions 10+.
    pub port: i32,
    /// `string`, versions 10+, or null.
    pub rack: Option<String>,
}

impl Default for NodeEndpoint {
    fn default() -> Self {
        Self {
            node_id: NodeId::new(0),
            host: String::new(),
            port: 0,
            rack: None,
        }
    }
}

impl Wire for NodeEndpoint {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            node_id: r.read()?,
            host: r.read()?,
            port: r.read()?,
            rack: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.node_id.write(w)?;
        self.host.write(w)?;
        self.port.write(w)?;
        self.rack.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for ProduceResponse {
    const NAME: &'static str = "ProduceResponse";
    const VERSIONS: (i16, i16) = (3, 13);
    const FLEXIBLE_SINCE: i16 = 9;
}
