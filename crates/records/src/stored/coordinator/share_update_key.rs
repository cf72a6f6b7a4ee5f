//! Generated from `crates/protocol/schemas/coordinator/share-ShareUpdate.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A key of a coordinator's log, type 1; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareUpdateKey {
    /// `string`, versions 0.
    pub group_id: String,
    /// `uuid`, versions 0.
    pub topic_id: Uuid,
    /// `int32`, versions 0.
    pub partition: i32,
}

impl Wire for ShareUpdateKey {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            group_id: r.read()?,
            topic_id: r.read()?,
            partition: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.group_id.write(w)?;
        self.topic_id.write(w)?;
        self.partition.write(w)?;
        Ok(())
    }
}

impl ToJson for ShareUpdateKey {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("groupId", &self.group_id, v);
        it.put("topicId", &self.topic_id, v);
        it.put("partition", &self.partition, v);
        it.into()
    }
}

impl Message for ShareUpdateKey {
    const NAME: &'static str = "ShareUpdateKey";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
