//! Generated from `crates/protocol/schemas/metadata/ProducerIdsRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 15; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerIdsRecord {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `int64`, versions 0+.
    pub broker_epoch: i64,
    /// `int64`, versions 0+.
    pub next_producer_id: i64,
}

impl Default for ProducerIdsRecord {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            broker_epoch: -1,
            next_producer_id: 0,
        }
    }
}

impl Wire for ProducerIdsRecord {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            broker_id: r.read()?,
            broker_epoch: r.read()?,
            next_producer_id: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.broker_id.write(w)?;
        self.broker_epoch.write(w)?;
        self.next_producer_id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ProducerIdsRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("brokerId", &self.broker_id, v);
        it.put("brokerEpoch", &self.broker_epoch, v);
        it.put("nextProducerId", &self.next_producer_id, v);
        it.into()
    }
}

impl Message for ProducerIdsRecord {
    const NAME: &'static str = "ProducerIdsRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
