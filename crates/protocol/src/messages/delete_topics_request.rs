//! Generated from `crates/protocol/schemas/api/20-DeleteTopics.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 20; versions 1-6.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopicsRequest {
    /// `[]DeleteTopicState`, versions 6+.
    pub topics: Vec<DeleteTopicState>,
    /// `[]string`, versions 0-5.
    pub topic_names: Vec<String>,
    /// `int32`, versions 0+.
    pub timeout_ms: i32,
}

impl Wire for DeleteTopicsRequest {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v >= 6 {
            it.topics = r.read()?;
        }
        if v <= 5 {
            it.topic_names = r.read()?;
        }
        it.timeout_ms = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 6 {
            self.topics.write(w)?;
        } else {
            w.absent(self.topics.is_empty(), "Topics")?;
        }
        if v <= 5 {
            self.topic_names.write(w)?;
        }
        self.timeout_ms.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DeleteTopicsRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopicState {
    /// `string`, versions 6+, or null.
    pub name: Option<String>,
    /// `uuid`, versions 6+.
    pub topic_id: Uuid,
}

impl Wire for DeleteTopicState {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            topic_id: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.topic_id.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for DeleteTopicsRequest {
    const NAME: &'static str = "DeleteTopicsRequest";
    const VERSIONS: (i16, i16) = (1, 6);
    const FLEXIBLE_SINCE: i16 = 4;
}
