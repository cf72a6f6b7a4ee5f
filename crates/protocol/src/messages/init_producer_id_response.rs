//! Generated from `crates/protocol/schemas/api/22-InitProducerId.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, ProducerId};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 22; versions 0-5.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitProducerIdResponse {
    /// `int32`, versions 0+.
    pub throttle_time_ms: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int64`, versions 0+.
    pub producer_id: ProducerId,
    /// `int16`, versions 0+.
    pub producer_epoch: i16,
}

impl Wire for InitProducerIdResponse {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            error_code: r.read()?,
            producer_id: r.read()?,
            producer_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.error_code.write(w)?;
        self.producer_id.write(w)?;
        self.producer_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for InitProducerIdResponse {
    const NAME: &'static str = "InitProducerIdResponse";
    const VERSIONS: (i16, i16) = (0, 5);
    const FLEXIBLE_SINCE: i16 = 2;
}
