//! Generated from `crates/protocol/schemas/api/62-BrokerRegistration.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ErrorCode;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 62; versions 0-4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRegistrationResponse {
    /// `int32`, versions 0+.
    pub throttle_time_ms: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int64`, versions 0+.
    pub broker_epoch: i64,
}

impl Default for BrokerRegistrationResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            broker_epoch: -1,
        }
    }
}

impl Wire for BrokerRegistrationResponse {
    const SIZE_MIN: usize = 15;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            error_code: r.read()?,
            broker_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.error_code.write(w)?;
        self.broker_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for BrokerRegistrationResponse {
    const NAME: &'static str = "BrokerRegistrationResponse";
    const VERSIONS: (i16, i16) = (0, 4);
    const FLEXIBLE_SINCE: i16 = 0;
}
