//! Generated from `crates/protocol/schemas/metadata/UnregisterBrokerRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 1; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnregisterBrokerRecord {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `int64`, versions 0+.
    pub broker_epoch: i64,
}

impl Default for UnregisterBrokerRecord {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            broker_epoch: 0,
        }
    }
}

impl Wire for UnregisterBrokerRecord {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            broker_id: r.read()?,
            broker_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.broker_id.write(w)?;
        self.broker_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for UnregisterBrokerRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("brokerId", &self.broker_id, v);
        it.put("brokerEpoch", &self.broker_epoch, v);
        it.into()
    }
}

impl Message for UnregisterBrokerRecord {
    const NAME: &'static str = "UnregisterBrokerRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
