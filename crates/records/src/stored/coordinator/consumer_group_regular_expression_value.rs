//! Generated from `crates/protocol/schemas/coordinator/group-ConsumerGroupRegularExpression.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 16; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroupRegularExpressionValue {
    /// `[]string`, versions 0+.
    pub topics: Vec<String>,
    /// `int64`, versions 0+.
    pub version: i64,
    /// `int64`, versions 0+.
    pub timestamp: i64,
}

impl Wire for ConsumerGroupRegularExpressionValue {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topics: r.read()?,
            version: r.read()?,
            timestamp: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topics.write(w)?;
        self.version.write(w)?;
        self.timestamp.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ConsumerGroupRegularExpressionValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("topics", &self.topics, v);
        it.put("version", &self.version, v);
        it.put("timestamp", &self.timestamp, v);
        it.into()
    }
}

impl Message for ConsumerGroupRegularExpressionValue {
    const NAME: &'static str = "ConsumerGroupRegularExpressionValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
