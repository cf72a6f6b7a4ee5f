//! Generated from `crates/protocol/schemas/coordinator/group-LegacyOffsetCommit.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 0; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyOffsetCommitValue {
    /// `int64`, versions 0.
    pub offset: i64,
    /// `string`, versions 0.
    pub metadata: String,
    /// `int64`, versions 0.
    pub commit_timestamp: i64,
}

impl Wire for LegacyOffsetCommitValue {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            offset: r.read()?,
            metadata: r.read()?,
            commit_timestamp: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.offset.write(w)?;
        self.metadata.write(w)?;
        self.commit_timestamp.write(w)?;
        Ok(())
    }
}

impl ToJson for LegacyOffsetCommitValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("offset", &self.offset, v);
        it.put("metadata", &self.metadata, v);
        it.put("commitTimestamp", &self.commit_timestamp, v);
        it.into()
    }
}

impl Message for LegacyOffsetCommitValue {
    const NAME: &'static str = "LegacyOffsetCommitValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
