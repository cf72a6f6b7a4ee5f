//! Generated from `crates/protocol/schemas/coordinator/group-ConsumerGroupMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 3; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroupMetadataValue {
    /// `int32`, versions 0+.
    pub epoch: i32,
    /// `int64`, versions 0+, tag 0.
    pub metadata_hash: i64,
}

impl Wire for ConsumerGroupMetadataValue {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            epoch: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.metadata_hash = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.epoch.write(w)?;
        w.tags(|tags| {
            if self.metadata_hash != 0 {
                tags.put(0, &self.metadata_hash)?;
            }
            Ok(())
        })
    }
}

impl ToJson for ConsumerGroupMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("epoch", &self.epoch, v);
        if self.metadata_hash != 0 {
            it.put("metadataHash", &self.metadata_hash, v);
        }
        it.into()
    }
}

impl Message for ConsumerGroupMetadataValue {
    const NAME: &'static str = "ConsumerGroupMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
