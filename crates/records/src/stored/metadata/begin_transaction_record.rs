//! Generated from `crates/protocol/schemas/metadata/BeginTransactionRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 23; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeginTransactionRecord {
    /// `string`, versions 0+, tag 0, or null.
    pub name: Option<String>,
}

impl Wire for BeginTransactionRecord {
    const SIZE_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self::default();
        r.tags(|tag, r| {
            match tag {
                0 => it.name = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        w.tags(|tags| {
            if self.name.is_some() {
                tags.put(0, &self.name)?;
            }
            Ok(())
        })
    }
}

impl ToJson for BeginTransactionRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        if self.name.is_some() {
            it.put("name", &self.name, v);
        }
        it.into()
    }
}

impl Message for BeginTransactionRecord {
    const NAME: &'static str = "BeginTransactionRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
