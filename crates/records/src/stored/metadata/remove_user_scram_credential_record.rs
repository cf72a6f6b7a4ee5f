//! Generated from `crates/protocol/schemas/metadata/RemoveUserScramCredentialRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 22; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoveUserScramCredentialRecord {
    /// `string`, versions 0+.
    pub name: String,
    /// `int8`, versions 0+.
    pub mechanism: i8,
}

impl Wire for RemoveUserScramCredentialRecord {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            mechanism: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.mechanism.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for RemoveUserScramCredentialRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("mechanism", &self.mechanism, v);
        it.into()
    }
}

impl Message for RemoveUserScramCredentialRecord {
    const NAME: &'static str = "RemoveUserScramCredentialRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
