//! Generated from `crates/protocol/schemas/api/23-OffsetForLeaderEpoch.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::NodeId;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 23; versions 2-4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetForLeaderEpochRequest {
    /// `int32`, versions 3+.
    pub replica_id: NodeId,
    /// `[]OffsetForLeaderTopic`, versions 0+.
    pub topics: Vec<OffsetForLeaderTopic>,
}

impl Default for OffsetForLeaderEpochRequest {
    fn default() -> Self {
        Self {
            replica_id: NodeId::new(-2),
            topics: Vec::new(),
        }
    }
}

impl Wire for OffsetForLeaderEpochRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v >= 3 {
            it.replica_id = r.read()?;
        }
        it.topics = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 3 {
            self.replica_id.write(w)?;
        }
        self.topics.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`OffsetForLeaderEpochRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetForLeaderTopic {
    /// `string`, versions 0+.
    pub topic: String,
    /// `[]OffsetForLeaderPartition`, versions 0+.
    pub partitions: Vec<OffsetForLeaderPartition>,
}

impl Wire for OffsetForLeaderTopic {
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

/// Part of [`OffsetForLeaderEpochRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetForLeaderPartition {
    /// `int32`, versions 0+.
    pub partition: i32,
    /// `int32`, versions 2+.
    pub current_leader_epoch: i32,
    /// `int32`, versions 0+.
    pub leader_epoch: i32,
}

impl Default for OffsetForLeaderPartition {
    fn default() -> Self {
        Self {
            partition: 0,
            current_leader_epoch: -1,
            leader_epoch: 0,
        }
    }
}

impl Wire for OffsetForLeaderPartition {
    const SIZE_MIN: usize = 12;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            partition: r.read()?,
            current_leader_epoch: r.read()?,
            leader_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.partition.write(w)?;
        self.current_leader_epoch.write(w)?;
        self.leader_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for OffsetForLeaderEpochRequest {
    const NAME: &'static str = "OffsetForLeaderEpochRequest";
    const VERSIONS: (i16, i16) = (2, 4);
    const FLEXIBLE_SINCE: i16 = 4;
}
