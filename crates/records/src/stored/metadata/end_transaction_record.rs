//! Generated from `crates/protocol/schemas/metadata/EndTransactionRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 24; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndTransactionRecord {}

impl Wire for EndTransactionRecord {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.skip_tags()?;
        Ok(Self {})
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.no_tags();
        Ok(())
    }
}

impl ToJson for EndTransactionRecord {
    fn to_json(&self, _v: i16) -> Value {
        let it = Object::default();
        it.into()
    }
}

impl Message for EndTransactionRecord {
    const NAME: &'static str = "EndTransactionRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
