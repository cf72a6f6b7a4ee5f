//! Generated from `crates/protocol/schemas/metadata/ZkMigrationStateRecord.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 21; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZkMigrationStateRecord {
    /// `int8`, versions 0+.
    pub zk_migration_state: i8,
}

impl Wire for ZkMigrationStateRecord {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            zk_migration_state: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.zk_migration_state.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ZkMigrationStateRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("zkMigrationState", &self.zk_migration_state, v);
        it.into()
    }
}

impl Message for ZkMigrationStateRecord {
    const NAME: &'static str = "ZkMigrationStateRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
