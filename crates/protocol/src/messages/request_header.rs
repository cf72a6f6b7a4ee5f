//! Generated from `crates/protocol/schemas/data/RequestHeader.txt` by `cargo xtask codegen`; not edited by hand.

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A header; versions 1-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// `int16`, versions 0+.
    pub request_api_key: i16,
    /// `int16`, versions 0+.
    pub request_api_version: i16,
    /// `int32`, versions 0+.
    pub correlation_id: i32,
    /// `string`, versions 1+, or null.
    pub client_id: Option<String>,
}

impl Default for RequestHeader {
    fn default() -> Self {
        Self {
            request_api_key: 0,
            request_api_version: 0,
            correlation_id: 0,
            client_id: Some(String::new()),
        }
    }
}

impl Wire for RequestHeader {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            request_api_key: r.read()?,
            request_api_version: r.read()?,
            correlation_id: r.read()?,
            client_id: r.read_inflexible()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.request_api_key.write(w)?;
        self.request_api_version.write(w)?;
        self.correlation_id.write(w)?;
        w.write_inflexible(&self.client_id)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for RequestHeader {
    const NAME: &'static str = "RequestHeader";
    const VERSIONS: (i16, i16) = (1, 2);
    const FLEXIBLE_SINCE: i16 = 2;
}
