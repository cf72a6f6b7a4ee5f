//! Generated from `crates/protocol/schemas/coordinator/group-GroupMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A key of a coordinator's log, type 2; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMetadataKey {
    /// `string`, versions 0.
    pub group: String,
}

impl Wire for GroupMetadataKey {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { group: r.read()? })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.group.write(w)?;
        Ok(())
    }
}

impl ToJson for GroupMetadataKey {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("group", &self.group, v);
        it.into()
    }
}

impl Message for GroupMetadataKey {
    const NAME: &'static str = "GroupMetadataKey";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
