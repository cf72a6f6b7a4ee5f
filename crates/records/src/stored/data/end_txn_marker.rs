//! Generated from `crates/protocol/schemas/data/EndTxnMarker.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// Stored data; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndTxnMarker {
    /// `int32`, versions 0+.
    pub coordinator_epoch: i32,
}

impl Wire for EndTxnMarker {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            coordinator_epoch: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.coordinator_epoch.write(w)?;
        Ok(())
    }
}

impl ToJson for EndTxnMarker {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("coordinatorEpoch", &self.coordinator_epoch, v);
        it.into()
    }
}

impl Message for EndTxnMarker {
    const NAME: &'static str = "EndTxnMarker";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
