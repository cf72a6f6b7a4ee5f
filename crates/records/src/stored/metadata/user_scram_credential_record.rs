//! Generated from `crates/protocol/schemas/metadata/UserScramCredentialRecord.txt` by `cargo xtask codegen`; not edited by hand.

use bytes::Bytes;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 11; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserScramCredentialRecord {
    /// `string`, versions 0+.
    pub name: String,
    /// `int8`, versions 0+.
    pub mechanism: i8,
    /// `bytes`, versions 0+.
    pub salt: Bytes,
    /// `bytes`, versions 0+.
    pub stored_key: Bytes,
    /// `bytes`, versions 0+.
    pub server_key: Bytes,
    /// `int32`, versions 0+.
    pub iterations: i32,
}

impl Wire for UserScramCredentialRecord {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            mechanism: r.read()?,
            salt: r.read()?,
            stored_key: r.read()?,
            server_key: r.read()?,
            iterations: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.mechanism.write(w)?;
        self.salt.write(w)?;
        self.stored_key.write(w)?;
        self.server_key.write(w)?;
        self.iterations.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for UserScramCredentialRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("mechanism", &self.mechanism, v);
        it.put("salt", &self.salt, v);
        it.put("storedKey", &self.stored_key, v);
        it.put("serverKey", &self.server_key, v);
        it.put("iterations", &self.iterations, v);
        it.into()
    }
}

impl Message for UserScramCredentialRecord {
    const NAME: &'static str = "UserScramCredentialRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
