//! Generated from `crates/protocol/schemas/data/SnapshotFooterRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// Stored data; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotFooterRecord {
    /// `int16`, versions 0+.
    pub version: i16,
}

impl Wire for SnapshotFooterRecord {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self { version: r.read()? };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.version.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for SnapshotFooterRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("version", &self.version, v);
        it.into()
    }
}

impl Message for SnapshotFooterRecord {
    const NAME: &'static str = "SnapshotFooterRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
