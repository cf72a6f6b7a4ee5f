//! Generated from `crates/protocol/schemas/api/67-AllocateProducerIds.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 67; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocateProducerIdsRequest {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `int64`, versions 0+.
    pub broker_epoch: i64,
}

impl Default for AllocateProducerIdsRequest {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            broker_epoch: -1,
        }
    }
}

impl Wire for AllocateProducerIdsRequest {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            broker_id: r.read()?,
            broker_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.broker_id.write(w)?;
        self.broker_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for AllocateProducerIdsRequest {
    const NAME: &'static str = "AllocateProducerIdsRequest";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
