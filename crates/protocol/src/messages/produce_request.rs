//! Generated from `crates/protocol/schemas/api/00-Produce.txt` by `cargo xtask codegen`; not edited by hand.

use bytes::Bytes;
use highwater_types::Uuid;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 0; versions 3-13.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceRequest {
    /// `string`, versions 3+, or null.
    pub transactional_id: Option<String>,
    /// `int16`, versions 0+.
    pub acks: i16,
    /// `int32`, versions 0+.
    pub timeout_ms: i32,
    /// `[]TopicProduceData`, versions 0+.
    pub topic_data: Vec<TopicProduceData>,
}

impl Wire for ProduceRequest {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            transactional_id: r.read()?,
            acks: r.read()?,
            timeout_ms: r.read()?,
            topic_data: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.transactional_id.write(w)?;
        self.acks.write(w)?;
        self.timeout_ms.write(w)?;
        self.topic_data.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ProduceRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicProduceData {
    /// `string`, versions 0-12.
    pub name: String,
    /// `uuid`, versions 13+.
    pub topic_id: Uuid,
    /// `[]PartitionProduceData`, versions 0+.
    pub partition_data: Vec<PartitionProduceData>,
}

impl Wire for TopicProduceData {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v <= 12 {
            it.name = r.read()?;
        }
        if v >= 13 {
            it.topic_id = r.read()?;
        }
        it.partition_data = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v <= 12 {
            self.name.write(w)?;
        }
        if v >= 13 {
            self.topic_id.write(w)?;
        }
        self.partition_data.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ProduceRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionProduceData {
    /// `int32`, versions 0+.
    pub index: i32,
    /// `records`, versions 0+, or null.
    pub records: Option<Bytes>,
}

impl Wire for PartitionProduceData {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            index: r.read()?,
            records: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.index.write(w)?;
        self.records.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for ProduceRequest {
    const NAME: &'static str = "ProduceRequest";
    const VERSIONS: (i16, i16) = (3, 13);
    const FLEXIBLE_SINCE: i16 = 9;
}
