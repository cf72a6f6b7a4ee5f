//! Generated from `crates/protocol/schemas/api/60-DescribeCluster.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, NodeId};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 60; versions 0-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeClusterResponse {
    /// `int32`, versions 0+.
    pub throttle_time_ms: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `string`, versions 0+, or null.
    pub error_message: Option<String>,
    /// `int8`, versions 1+.
    pub endpoint_type: i8,
    /// `string`, versions 0+.
    pub cluster_id: String,
    /// `int32`, versions 0+.
    pub controller_id: NodeId,
    /// `[]DescribeClusterBroker`, versions 0+.
    pub brokers: Vec<DescribeClusterBroker>,
    /// `int32`, versions 0+.
    pub cluster_authorized_operations: i32,
}

impl Default for DescribeClusterResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            error_message: None,
            endpoint_type: 1,
            cluster_id: String::new(),
            controller_id: NodeId::NONE,
            brokers: Vec::new(),
            cluster_authorized_operations: i32::MIN,
        }
    }
}

impl Wire for DescribeClusterResponse {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            throttle_time_ms: r.read()?,
            error_code: r.read()?,
            error_message: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.endpoint_type = r.read()?;
        }
        it.cluster_id = r.read()?;
        it.controller_id = r.read()?;
        it.brokers = r.read()?;
        it.cluster_authorized_operations = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.throttle_time_ms.write(w)?;
        self.error_code.write(w)?;
        self.error_message.write(w)?;
        if v >= 1 {
            self.endpoint_type.write(w)?;
        } else {
            w.absent(self.endpoint_type == 1, "EndpointType")?;
        }
        self.cluster_id.write(w)?;
        self.controller_id.write(w)?;
        self.brokers.write(w)?;
        self.cluster_authorized_operations.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeClusterResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeClusterBroker {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `string`, versions 0+.
    pub host: String,
    /// `int32`, versions 0+.
    pub port: i32,
    /// `string`, versions 0+, or null.
    pub rack: Option<String>,
    /// `bool`, versions 2+.
    pub is_fenced: bool,
}

impl Default for DescribeClusterBroker {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            host: String::new(),
            port: 0,
            rack: None,
            is_fenced: false,
        }
    }
}

impl Wire for DescribeClusterBroker {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            broker_id: r.read()?,
            host: r.read()?,
            port: r.read()?,
            rack: r.read()?,
            ..Self::default()
        };
        if v >= 2 {
            it.is_fenced = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.broker_id.write(w)?;
        self.host.write(w)?;
        self.port.write(w)?;
        self.rack.write(w)?;
        if v >= 2 {
            self.is_fenced.write(w)?;
        } else {
            w.absent(!self.is_fenced, "IsFenced")?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for DescribeClusterResponse {
    const NAME: &'static str = "DescribeClusterResponse";
    const VERSIONS: (i16, i16) = (0, 2);
    const FLEXIBLE_SINCE: i16 = 0;
}
