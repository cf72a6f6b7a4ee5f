//! Generated from `crates/protocol/schemas/coordinator/transaction-TransactionLog.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A key of a coordinator's log, type 0; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionLogKey {
    /// `string`, versions 0.
    pub transactional_id: String,
}

impl Wire for TransactionLogKey {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            transactional_id: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.transactional_id.write(w)?;
        Ok(())
    }
}

impl ToJson for TransactionLogKey {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("transactionalId", &self.transactional_id, v);
        it.into()
    }
}

impl Message for TransactionLogKey {
    const NAME: &'static str = "TransactionLogKey";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
