//! Generated from `crates/protocol/schemas/coordinator/group-LegacyOffsetCommit.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A key of a coordinator's log, type 0; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyOffsetCommitKey {
    /// `string`, versions 0.
    pub group: String,
    /// `string`, versions 0.
    pub topic: String,
    /// `int32`, versions 0.
    pub partition: i32,
}

impl Wire for LegacyOffsetCommitKey {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            group: r.read()?,
            topic: r.read()?,
            partition: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.group.write(w)?;
        self.topic.write(w)?;
        self.partition.write(w)?;
        Ok(())
    }
}

impl ToJson for LegacyOffsetCommitKey {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("group", &self.group, v);
        it.put("topic", &self.topic, v);
        it.put("partition", &self.partition, v);
        it.into()
    }
}

impl Message for LegacyOffsetCommitKey {
    const NAME: &'static str = "LegacyOffsetCommitKey";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
