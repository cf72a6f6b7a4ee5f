//! Generated from `crates/protocol/schemas/api/23-OffsetForLeaderEpoch.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ErrorCode;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 23; versions 2-4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetForLeaderEpochResponse {
    /// `int32`, versions 2+.
    pub throttle_time_ms: i32,
    /// `[]OffsetForLeaderTopicResult`, versions 0+.
    pub topics: Vec<OffsetForLeaderTopicResult>,
}

impl Wire for OffsetForLeaderEpochResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            topics: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.topics.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`OffsetForLeaderEpochResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetForLeaderTopicResult {
    /// `string`, versions 0+.
    pub topic: String,
    /// `[]EpochEndOffset`, versions 0+.
    pub partitions: Vec<EpochEndOffset>,
}

impl Wire for OffsetForLeaderTopicResult {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            topic: r.read()?,
            partitions: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.topic.write(w)?;
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`OffsetForLeaderEpochResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochEndOffset {
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int32`, versions 0+.
    pub partition: i32,
    /// `int32`, versions 1+.
    pub leader_epoch: i32,
    /// `int64`, versions 0+.
    pub end_offset: i64,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            partition: 0,
            leader_epoch: -1,
            end_offset: -1,
        }
    }
}

impl Wire for EpochEndOffset {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            error_code: r.read()?,
            partition: r.read()?,
            leader_epoch: r.read()?,
            end_offset: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.error_code.write(w)?;
        self.partition.write(w)?;
        self.leader_epoch.write(w)?;
        self.end_offset.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for OffsetForLeaderEpochResponse {
    const NAME: &'static str = "OffsetForLeaderEpochResponse";
    const VERSIONS: (i16, i16) = (2, 4);
    const FLEXIBLE_SINCE: i16 = 4;
}
