//! Generated from `crates/protocol/schemas/metadata/ClientQuotaRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 14; versions 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientQuotaRecord {
    /// `[]EntityData`, versions 0+.
    pub entity: Vec<EntityData>,
    /// `string`, versions 0+.
    pub key: String,
    /// `float64`, versions 0+.
    pub value: f64,
    /// `bool`, versions 0+.
    pub remove: bool,
}

impl Wire for ClientQuotaRecord {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            entity: r.read()?,
            key: r.read()?,
            value: r.read()?,
            remove: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.entity.write(w)?;
        self.key.write(w)?;
        self.value.write(w)?;
        self.remove.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ClientQuotaRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("entity", &self.entity, v);
        it.put("key", &self.key, v);
        it.put("value", &self.value, v);
        it.put("remove", &self.remove, v);
        it.into()
    }
}

/// Part of [`ClientQuotaRecord`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityData {
    /// `string`, versions 0+.
    pub entity_type: String,
    /// `string`, versions 0+, or null.
    pub entity_name: Option<String>,
}

impl Default for EntityData {
    fn default() -> Self {
        Self {
            entity_type: String::new(),
            entity_name: Some(String::new()),
        }
    }
}

impl Wire for EntityData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            entity_type: r.read()?,
            entity_name: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.entity_type.write(w)?;
        self.entity_name.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for EntityData {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("entityType", &self.entity_type, v);
        it.put("entityName", &self.entity_name, v);
        it.into()
    }
}

impl Message for ClientQuotaRecord {
    const NAME: &'static str = "ClientQuotaRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
