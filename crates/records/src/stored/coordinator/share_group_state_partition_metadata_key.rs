//! Generated from `crates/protocol/schemas/coordinator/group-ShareGroupStatePartitionMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A key of a coordinator's log, type 15; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareGroupStatePartitionMetadataKey {
    /// `string`, versions 0.
    pub group_id: String,
}

impl Wire for ShareGroupStatePartitionMetadataKey {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            group_id: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.group_id.write(w)?;
        Ok(())
    }
}

impl ToJson for ShareGroupStatePartitionMetadataKey {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("groupId", &self.group_id, v);
        it.into()
    }
}

impl Message for ShareGroupStatePartitionMetadataKey {
    const NAME: &'static str = "ShareGroupStatePartitionMetadataKey";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
