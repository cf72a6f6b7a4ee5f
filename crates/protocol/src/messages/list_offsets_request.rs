//! Generated from `crates/protocol/schemas/api/02-ListOffsets.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 2; versions 1-11.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOffsetsRequest {
    /// `int32`, versions 0+.
    pub replica_id: NodeId,
    /// `int8`, versions 2+.
    pub isolation_level: i8,
    /// `[]ListOffsetsTopic`, versions 0+.
    pub topics: Vec<ListOffsetsTopic>,
    /// `int32`, versions 10+.
    pub timeout_ms: i32,
}

impl Default for ListOffsetsRequest {
    fn default() -> Self {
        Self {
            replica_id: NodeId::new(0),
            isolation_level: 0,
            topics: Vec::new(),
            timeout_ms: 0,
        }
    }
}

impl Wire for ListOffsetsRequest {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            replica_id: r.read()?,
            ..Self::default()
        };
        if v >= 2 {
            it.isolation_level = r.read()?;
        }
        it.topics = r.read()?;
        if v >= 10 {
            it.timeout_ms = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.replica_id.write(w)?;
        if v >= 2 {
            self.isolation_level.write(w)?;
        } else {
            w.absent(self.isolation_level == 0, "IsolationLevel")?;
        }
        self.topics.write(w)?;
        if v >= 10 {
            self.timeout_ms.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ListOffsetsRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsTopic {
    /// `string`, versions 0+.
    pub name: String,
    /// `[]ListOffsetsPartition`, versions 0+.
    pub partitions: Vec<ListOffsetsPartition>,
}

impl Wire for ListOffsetsTopic {
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

/// Part of [`ListOffsetsRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOffsetsPartition {
    /// `int32`, versions 0+.
    pub partition_index: i32,
    /// `int32`, versions 4+.
    pub current_leader_epoch: i32,
    /// `int64`, versions 0+.
    pub timestamp: i64,
}

impl Default for ListOffsetsPartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            current_leader_epoch: -1,
            timestamp: 0,
        }
    }
}

impl Wire for ListOffsetsPartition {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            partition_index: r.read()?,
            ..Self::default()
        };
        if v >= 4 {
            it.current_leader_epoch = r.read()?;
        }
        it.timestamp = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.partition_index.write(w)?;
        if v >= 4 {
            self.current_leader_epoch.write(w)?;
        }
        self.timestamp.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for ListOffsetsRequest {
    const NAME: &'static str = "ListOffsetsRequest";
    const VERSIONS: (i16, i16) = (1, 11);
    const FLEXIBLE_SINCE: i16 = 6;
}
