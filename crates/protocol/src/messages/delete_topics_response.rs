//! Generated from `crates/protocol/schemas/api/20-DeleteTopics.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 20; versions 1-6.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopicsResponse {
    /// `int32`, versions 1+.
    pub throttle_time_ms: i32,
    /// `[]DeletableTopicResult`, versions 0+.
    pub responses: Vec<DeletableTopicResult>,
}

impl Wire for DeleteTopicsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            responses: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.responses.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DeleteTopicsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletableTopicResult {
    /// `string`, versions 0+, or null in versions 6.
    pub name: Option<String>,
    /// `uuid`, versions 6+.
    pub topic_id: Uuid,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `string`, versions 5+, or null.
    pub error_message: Option<String>,
}

impl Default for DeletableTopicResult {
    fn default() -> Self {
        Self {
            name: Some(String::new()),
            topic_id: Uuid::ZERO,
            error_code: ErrorCode::NONE,
            error_message: None,
        }
    }
}

impl Wire for DeletableTopicResult {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            name: if v >= 6 { r.read()? } else { Some(r.read()?) },
            ..Self::default()
        };
        if v >= 6 {
            it.topic_id = r.read()?;
        }
        it.error_code = r.read()?;
        if v >= 5 {
            it.error_message = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 6 {
            self.name.write(w)?;
        } else {
            w.write_some(self.name.as_ref())?;
        }
        if v >= 6 {
            self.topic_id.write(w)?;
        }
        self.error_code.write(w)?;
        if v >= 5 {
            self.error_message.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for DeleteTopicsResponse {
    const NAME: &'static str = "DeleteTopicsResponse";
    const VERSIONS: (i16, i16) = (1, 6);
    const FLEXIBLE_SINCE: i16 = 4;
}
