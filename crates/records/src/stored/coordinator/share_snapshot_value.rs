//! Generated from `crates/protocol/schemas/coordinator/share-ShareSnapshot.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 0; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareSnapshotValue {
    /// `int32`, versions 0+.
    pub snapshot_epoch: i32,
    /// `int32`, versions 0+.
    pub state_epoch: i32,
    /// `int32`, versions 0+.
    pub leader_epoch: i32,
    /// `int64`, versions 0+.
    pub start_offset: i64,
    /// `int32`, versions 0+, tag 0.
    pub delivery_complete_count: i32,
    /// `int64`, versions 0+.
    pub create_timestamp: i64,
    /// `int64`, versions 0+.
    pub write_timestamp: i64,
    /// `[]StateBatch`, versions 0+.
    pub state_batches: Vec<StateBatch>,
}

impl Default for ShareSnapshotValue {
    fn default() -> Self {
        Self {
            snapshot_epoch: 0,
            state_epoch: 0,
            leader_epoch: 0,
            start_offset: 0,
            delivery_complete_count: -1,
            create_timestamp: 0,
            write_timestamp: 0,
            state_batches: Vec::new(),
        }
    }
}

impl Wire for ShareSnapshotValue {
    const SIZE_MIN: usize = 38;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            snapshot_epoch: r.read()?,
            state_epoch: r.read()?,
            leader_epoch: r.read()?,
            start_offset: r.read()?,
            create_timestamp: r.read()?,
            write_timestamp: r.read()?,
            state_batches: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.delivery_complete_count = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.snapshot_epoch.write(w)?;
        self.state_epoch.write(w)?;
        self.leader_epoch.write(w)?;
        self.start_offset.write(w)?;
        self.create_timestamp.write(w)?;
        self.write_timestamp.write(w)?;
        self.state_batches.write(w)?;
        w.tags(|tags| {
            if self.delivery_complete_count != -1 {
                tags.put(0, &self.delivery_complete_count)?;
            }
            Ok(())
        })
    }
}

impl ToJson for ShareSnapshotValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("snapshotEpoch", &self.snapshot_epoch, v);
        it.put("stateEpoch", &self.state_epoch, v);
        it.put("leaderEpoch", &self.leader_epoch, v);
        it.put("startOffset", &self.start_offset, v);
        if self.delivery_complete_count != -1 {
            it.put("deliveryCompleteCount", &self.delivery_complete_count, v);
        }
        it.put("createTimestamp", &self.create_timestamp, v);
        it.put("writeTimestamp", &self.write_timestamp, v);
        it.put("stateBatches", &self.state_batches, v);
        it.into()
    }
}

/// Part of [`ShareSnapshotValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateBatch {
    /// `int64`, versions 0+.
    pub first_offset: i64,
    /// `int64`, versions 0+.
    pub last_offset: i64,
    /// `int8`, versions 0+.
    pub delivery_state: i8,
    /// `int16`, versions 0+.
    pub delivery_count: i16,
}

impl Wire for StateBatch {
    const SIZE_MIN: usize = 20;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            first_offset: r.read()?,
            last_offset: r.read()?,
            delivery_state: r.read()?,
            delivery_count: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.first_offset.write(w)?;
        self.last_offset.write(w)?;
        self.delivery_state.write(w)?;
        self.delivery_count.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for StateBatch {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("firstOffset", &self.first_offset, v);
        it.put("lastOffset", &self.last_offset, v);
        it.put("deliveryState", &self.delivery_state, v);
        it.put("deliveryCount", &self.delivery_count, v);
        it.into()
    }
}

impl Message for ShareSnapshotValue {
    const NAME: &'static str = "ShareSnapshotValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
