//! Generated from `crates/protocol/schemas/metadata/RemoveTopicRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 9; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoveTopicRecord {
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
}

impl Wire for RemoveTopicRecord {
    const SIZE_MIN: usize = 17;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_id: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for RemoveTopicRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicId", &self.topic_id, v);
        it.into()
    }
}

impl Message for RemoveTopicRecord {
    const NAME: &'static str = "RemoveTopicRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
