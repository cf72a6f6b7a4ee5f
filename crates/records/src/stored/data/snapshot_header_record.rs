//! Generated from `crates/protocol/schemas/data/SnapshotHeaderRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// Stored data; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotHeaderRecord {
    /// `int16`, versions 0+.
    pub version: i16,
    /// `int64`, versions 0+.
    pub last_contained_log_timestamp: i64,
}

impl Wire for SnapshotHeaderRecord {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            version: r.read()?,
            last_contained_log_timestamp: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.version.write(w)?;
        self.last_contained_log_timestamp.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for SnapshotHeaderRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("version", &self.version, v);
        it.put(
            "lastContainedLogTimestamp",
            &self.last_contained_log_timestamp,
            v,
        );
        it.into()
    }
}

impl Message for SnapshotHeaderRecord {
    const NAME: &'static str = "SnapshotHeaderRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
