//! Generated from `crates/protocol/schemas/metadata/ConfigRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 4; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRecord {
    /// `int8`, versions 0+.
    pub resource_type: i8,
    /// `string`, versions 0+.
    pub resource_name: String,
    /// `string`, versions 0+.
    pub name: String,
    /// `string`, versions 0+, or null.
    pub value: Option<String>,
}

impl Default for ConfigRecord {
    fn default() -> Self {
        Self {
            resource_type: 0,
            resource_name: String::new(),
            name: String::new(),
            value: Some(String::new()),
        }
    }
}

impl Wire for ConfigRecord {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            resource_type: r.read()?,
            resource_name: r.read()?,
            name: r.read()?,
            value: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.resource_type.write(w)?;
        self.resource_name.write(w)?;
        self.name.write(w)?;
        self.value.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ConfigRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("resourceType", &self.resource_type, v);
        it.put("resourceName", &self.resource_name, v);
        it.put("name", &self.name, v);
        it.put("value", &self.value, v);
        it.into()
    }
}

impl Message for ConfigRecord {
    const NAME: &'static str = "ConfigRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
