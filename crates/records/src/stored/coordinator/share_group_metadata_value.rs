//! Generated from `crates/protocol/schemas/coordinator/group-ShareGroupMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 11; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareGroupMetadataValue {
    /// `int32`, versions 0+.
    pub epoch: i32,
    /// `int64`, versions 0+.
    pub metadata_hash: i64,
}

impl Wire for ShareGroupMetadataValue {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            epoch: r.read()?,
            metadata_hash: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.epoch.write(w)?;
        self.metadata_hash.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ShareGroupMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("epoch", &self.epoch, v);
        it.put("metadataHash", &self.metadata_hash, v);
        it.into()
    }
}

impl Message for ShareGroupMetadataValue {
    const NAME: &'static str = "ShareGroupMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
