//! Generated from `crates/protocol/schemas/metadata/RemoveDelegationTokenRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 26; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoveDelegationTokenRecord {
    /// `string`, versions 0+.
    pub token_id: String,
}

impl Wire for RemoveDelegationTokenRecord {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            token_id: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.token_id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for RemoveDelegationTokenRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("tokenId", &self.token_id, v);
        it.into()
    }
}

impl Message for RemoveDelegationTokenRecord {
    const NAME: &'static str = "RemoveDelegationTokenRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
