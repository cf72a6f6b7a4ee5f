//! Generated from `crates/protocol/schemas/api/63-BrokerHeartbeat.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ErrorCode;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 63; versions 0-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerHeartbeatResponse {
    /// `int32`, versions 0+.
    pub throttle_time_ms: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `bool`, versions 0+.
    pub is_caught_up: bool,
    /// `bool`, versions 0+.
    pub is_fenced: bool,
    /// `bool`, versions 0+.
    pub should_shut_down: bool,
}

impl Default for BrokerHeartbeatResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            is_caught_up: false,
            is_fenced: true,
            should_shut_down: false,
        }
    }
}

impl Wire for BrokerHeartbeatResponse {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            error_code: r.read()?,
            is_caught_up: r.read()?,
            is_fenced: r.read()?,
            should_shut_down: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.error_code.write(w)?;
        self.is_caught_up.write(w)?;
        self.is_fenced.write(w)?;
        self.should_shut_down.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for BrokerHeartbeatResponse {
    const NAME: &'static str = "BrokerHeartbeatResponse";
    const VERSIONS: (i16, i16) = (0, 2);
    const FLEXIBLE_SINCE: i16 = 0;
}
