//! Generated from `crates/protocol/schemas/api/60-DescribeCluster.txt` by `cargo xtask codegen`; not edited by hand.

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 60; versions 0-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeClusterRequest {
    /// `bool`, versions 0+.
    pub include_cluster_authorized_operations: bool,
    /// `int8`, versions 1+.
    pub endpoint_type: i8,
    /// `bool`, versions 2+.
    pub include_fenced_brokers: bool,
}

impl Default for DescribeClusterRequest {
    fn default() -> Self {
        Self {
            include_cluster_authorized_operations: false,
            endpoint_type: 1,
            include_fenced_brokers: false,
        }
    }
}

impl Wire for DescribeClusterRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            include_cluster_authorized_operations: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.endpoint_type = r.read()?;
        }
        if v >= 2 {
            it.include_fenced_brokers = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.include_cluster_authorized_operations.write(w)?;
        if v >= 1 {
            self.endpoint_type.write(w)?;
        } else {
            w.absent(self.endpoint_type == 1, "EndpointType")?;
        }
        if v >= 2 {
            self.include_fenced_brokers.write(w)?;
        } else {
            w.absent(!self.include_fenced_brokers, "IncludeFencedBrokers")?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for DescribeClusterRequest {
    const NAME: &'static str = "DescribeClusterRequest";
    const VERSIONS: (i16, i16) = (0, 2);
    const FLEXIBLE_SINCE: i16 = 0;
}
