//! Generated from `crates/protocol/schemas/metadata/RemoveAccessControlEntryRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 19; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoveAccessControlEntryRecord {
    /// `uuid`, versions 0+.
    pub id: Uuid,
}

impl Wire for RemoveAccessControlEntryRecord {
    const SIZE_MIN: usize = 17;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self { id: r.read()? };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for RemoveAccessControlEntryRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("id", &self.id, v);
        it.into()
    }
}

impl Message for RemoveAccessControlEntryRecord {
    const NAME: &'static str = "RemoveAccessControlEntryRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
