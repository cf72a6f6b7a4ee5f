//! Generated from `crates/protocol/schemas/metadata/FeatureLevelRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 12; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureLevelRecord {
    /// `string`, versions 0+.
    pub name: String,
    /// `int16`, versions 0+.
    pub feature_level: i16,
}

impl Wire for FeatureLevelRecord {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            feature_level: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.feature_level.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for FeatureLevelRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("featureLevel", &self.feature_level, v);
        it.into()
    }
}

impl Message for FeatureLevelRecord {
    const NAME: &'static str = "FeatureLevelRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
