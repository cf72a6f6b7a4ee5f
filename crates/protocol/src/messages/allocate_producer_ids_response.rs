//! Generated from `crates/protocol/schemas/api/67-AllocateProducerIds.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, ProducerId};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 67; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocateProducerIdsResponse {
    /// `int32`, versions 0+.
    pub throttle_time_ms: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int64`, versions 0+.
    pub producer_id_start: ProducerId,
    /// `int32`, versions 0+.
    pub producer_id_len: i32,
}

impl Default for AllocateProducerIdsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            producer_id_start: ProducerId::new(0),
            producer_id_len: 0,
        }
    }
}

impl Wire for AllocateProducerIdsResponse {
    const SIZE_MIN: usize = 19;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            error_code: r.read()?,
            producer_id_start: r.read()?,
            producer_id_len: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.error_code.write(w)?;
        self.producer_id_start.write(w)?;
        self.producer_id_len.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for AllocateProducerIdsResponse {
    const NAME: &'static str = "AllocateProducerIdsResponse";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
