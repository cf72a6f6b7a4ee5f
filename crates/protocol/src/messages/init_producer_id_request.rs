//! Generated from `crates/protocol/schemas/api/22-InitProducerId.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ProducerId;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 22; versions 0-5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitProducerIdRequest {
    /// `string`, versions 0+, or null.
    pub transactional_id: Option<String>,
    /// `int32`, versions 0+.
    pub transaction_timeout_ms: i32,
    /// `int64`, versions 3+.
    pub producer_id: ProducerId,
    /// `int16`, versions 3+.
    pub producer_epoch: i16,
}

impl Default for InitProducerIdRequest {
    fn default() -> Self {
        Self {
            transactional_id: Some(String::new()),
            transaction_timeout_ms: 0,
            producer_id: ProducerId::NONE,
            producer_epoch: -1,
        }
    }
}

impl Wire for InitProducerIdRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            transactional_id: r.read()?,
            transaction_timeout_ms: r.read()?,
            ..Self::default()
        };
        if v >= 3 {
            it.producer_id = r.read()?;
            it.producer_epoch = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.transactional_id.write(w)?;
        self.transaction_timeout_ms.write(w)?;
        if v >= 3 {
            self.producer_id.write(w)?;
            self.producer_epoch.write(w)?;
        } else {
            w.absent(self.producer_id == ProducerId::NONE, "ProducerId")?;
            w.absent(self.producer_epoch == -1, "ProducerEpoch")?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for InitProducerIdRequest {
    const NAME: &'static str = "InitProducerIdRequest";
    const VERSIONS: (i16, i16) = (0, 5);
    const FLEXIBLE_SINCE: i16 = 2;
}
