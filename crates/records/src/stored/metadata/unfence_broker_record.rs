//! Generated from `crates/protocol/schemas/metadata/UnfenceBrokerRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 8; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfenceBrokerRecord {
    /// `int32`, versions 0+.
    pub id: NodeId,
    /// `int64`, versions 0+.
    pub epoch: i64,
}

impl Default for UnfenceBrokerRecord {
    fn default() -> Self {
        Self {
            id: NodeId::new(0),
            epoch: 0,
        }
    }
}

impl Wire for UnfenceBrokerRecord {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            id: r.read()?,
            epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.id.write(w)?;
        self.epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for UnfenceBrokerRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("id", &self.id, v);
        it.put("epoch", &self.epoch, v);
        it.into()
    }
}

impl Message for UnfenceBrokerRecord {
    const NAME: &'static str = "UnfenceBrokerRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
