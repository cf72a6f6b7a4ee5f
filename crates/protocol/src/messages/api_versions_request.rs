//! Generated from `crates/protocol/schemas/api/18-ApiVersions.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 18; versions 0-5.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsRequest {
    /// `string`, versions 3+.
    pub client_software_name: String,
    /// `string`, versions 3+.
    pub client_software_version: String,
    /// `string`, versions 5+, or null.
    pub cluster_id: Option<String>,
    /// `int32`, versions 5+.
    pub node_id: NodeId,
}

impl Wire for ApiVersionsRequest {
    const SIZE_MIN: usize = 0;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v >= 3 {
            it.client_software_name = r.read()?;
            it.client_software_version = r.read()?;
        }
        if v >= 5 {
            it.cluster_id = r.read()?;
            it.node_id = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 3 {
            self.client_software_name.write(w)?;
            self.client_software_version.write(w)?;
        }
        if v >= 5 {
            self.cluster_id.write(w)?;
            self.node_id.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for ApiVersionsRequest {
    const NAME: &'static str = "ApiVersionsRequest";
    const VERSIONS: (i16, i16) = (0, 5);
    const FLEXIBLE_SINCE: i16 = 3;
}
