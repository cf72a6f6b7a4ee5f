//! Generated from `crates/protocol/schemas/data/ResponseHeader.txt` by `cargo xtask codegen`; not edited by hand.

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A header; versions 0-1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    /// `int32`, versions 0+.
    pub correlation_id: i32,
}

impl Wire for ResponseHeader {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            correlation_id: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.correlation_id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for ResponseHeader {
    const NAME: &'static str = "ResponseHeader";
    const VERSIONS: (i16, i16) = (0, 1);
    const FLEXIBLE_SINCE: i16 = 1;
}
