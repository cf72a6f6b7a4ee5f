//! Generated from `crates/protocol/schemas/metadata/AccessControlEntryRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 18; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessControlEntryRecord {
    /// `uuid`, versions 0+.
    pub id: Uuid,
    /// `int8`, versions 0+.
    pub resource_type: i8,
    /// `string`, versions 0+.
    pub resource_name: String,
    /// `int8`, versions 0+.
    pub pattern_type: i8,
    /// `string`, versions 0+.
    pub principal: String,
    /// `string`, versions 0+.
    pub host: String,
    /// `int8`, versions 0+.
    pub operation: i8,
    /// `int8`, versions 0+.
    pub permission_type: i8,
}

impl Wire for AccessControlEntryRecord {
    const SIZE_MIN: usize = 24;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            id: r.read()?,
            resource_type: r.read()?,
            resource_name: r.read()?,
            pattern_type: r.read()?,
            principal: r.read()?,
            host: r.read()?,
            operation: r.read()?,
            permission_type: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.id.write(w)?;
        self.resource_type.write(w)?;
        self.resource_name.write(w)?;
        self.pattern_type.write(w)?;
        self.principal.write(w)?;
        self.host.write(w)?;
        self.operation.write(w)?;
        self.permission_type.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for AccessControlEntryRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("id", &self.id, v);
        it.put("resourceType", &self.resource_type, v);
        it.put("resourceName", &self.resource_name, v);
        it.put("patternType", &self.pattern_type, v);
        it.put("principal", &self.principal, v);
        it.put("host", &self.host, v);
        it.put("operation", &self.operation, v);
        it.put("permissionType", &self.permission_type, v);
        it.into()
    }
}

impl Message for AccessControlEntryRecord {
    const NAME: &'static str = "AccessControlEntryRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
