//! Generated from `crates/protocol/schemas/api/02-ListOffsets.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ErrorCode;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 2; versions 1-11.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsResponse {
    /// `int32`, versions 2+.
    pub throttle_time_ms: i32,
    /// `[]ListOffsetsTopicResponse`, versions 0+.
    pub topics: Vec<ListOffsetsTopicResponse>,
}

impl Wire for ListOffsetsResponse {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v >= 2 {
            it.throttle_time_ms = r.read()?;
        }
        it.topics = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 2 {
            self.throttle_time_ms.write(w)?;
        }
        self.topics.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ListOffsetsResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsTopicResponse {
    /// `string`, versions 0+.
    pub name: String,
    /// `[]ListOffsetsPartitionResponse`, versions 0+.
    pub partitions: Vec<ListOffsetsPartitionResponse>,
}

impl Wire for ListOffsetsTopicResponse {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            partitions: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ListOffsetsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOffsetsPartitionResponse {
    /// `int32`, versions 0+.
    pub partition_index: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int64`, versions 1+.
    pub timestamp: i64,
    /// `int64`, versions 1+.
    pub offset: i64,
    /// `int32`, versions 4+.
    pub leader_epoch: i32,
}

impl Default for ListOffsetsPartitionResponse {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: ErrorCode::NONE,
            timestamp: -1,
            offset: -1,
            leader_epoch: -1,
        }
    }
}

impl Wire for ListOffsetsPartitionResponse {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            partition_index: r.read()?,
            error_code: r.read()?,
            timestamp: r.read()?,
            offset: r.read()?,
            ..Self::default()
        };
        if v >= 4 {
            it.leader_epoch = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.partition_index.write(w)?;
        self.error_code.write(w)?;
        self.timestamp.write(w)?;
        self.offset.write(w)?;
        if v >= 4 {
            self.leader_epoch.write(w)?;
        } else {
            w.absent(self.leader_epoch == -1, "LeaderEpoch")?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for ListOffsetsResponse {
    const NAME: &'static str = "ListOffsetsResponse";
    const VERSIONS: (i16, i16) = (1, 11);
    const FLEXIBLE_SINCE: i16 = 6;
}
