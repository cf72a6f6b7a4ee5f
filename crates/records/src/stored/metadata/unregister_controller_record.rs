//! Generated from `crates/protocol/schemas/metadata/UnregisterControllerRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 29; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnregisterControllerRecord {
    /// `int32`, versions 0+.
    pub controller_id: NodeId,
}

impl Default for UnregisterControllerRecord {
    fn default() -> Self {
        Self {
            controller_id: NodeId::new(0),
        }
    }
}

impl Wire for UnregisterControllerRecord {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            controller_id: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.controller_id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for UnregisterControllerRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("controllerId", &self.controller_id, v);
        it.into()
    }
}

impl Message for UnregisterControllerRecord {
    const NAME: &'static str = "UnregisterControllerRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
