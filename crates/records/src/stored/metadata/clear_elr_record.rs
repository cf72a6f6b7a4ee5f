//! Generated from `crates/protocol/schemas/metadata/ClearElrRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 28; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearElrRecord {
    /// `string`, versions 0+.
    pub topic_name: String,
}

impl Wire for ClearElrRecord {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic_name: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic_name.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ClearElrRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topicName", &self.topic_name, v);
        it.into()
    }
}

impl Message for ClearElrRecord {
    const NAME: &'static str = "ClearElrRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
