//! Generated from `crates/protocol/schemas/coordinator/group-OffsetCommit.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 1; versions 0-4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitValue {
    /// `int64`, versions 0+.
    pub offset: i64,
    /// `int32`, versions 3+.
    pub leader_epoch: i32,
    /// `string`, versions 0+.
    pub metadata: String,
    /// `int64`, versions 0+.
    pub commit_timestamp: i64,
    /// `int64`, versions 1.
    pub expire_timestamp: i64,
    /// `uuid`, versions 4+, tag 0.
    pub topic_id: Uuid,
}

impl Default for OffsetCommitValue {
    fn default() -> Self {
        Self {
            offset: 0,
            leader_epoch: -1,
            metadata: String::new(),
            commit_timestamp: 0,
            expire_timestamp: -1,
            topic_id: Uuid::ZERO,
        }
    }
}

impl Wire for OffsetCommitValue {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            offset: r.read()?,
            ..Self::default()
        };
        if v >= 3 {
            it.leader_epoch = r.read()?;
        }
        it.metadata = r.read()?;
        it.commit_timestamp = r.read()?;
        if v == 1 {
            it.expire_timestamp = r.read()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 => it.topic_id = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.offset.write(w)?;
        if v >= 3 {
            self.leader_epoch.write(w)?;
        }
        self.metadata.write(w)?;
        self.commit_timestamp.write(w)?;
        if v == 1 {
            self.expire_timestamp.write(w)?;
        }
        w.tags(|tags| {
            if self.topic_id != Uuid::ZERO {
                tags.put(0, &self.topic_id)?;
            }
            Ok(())
        })
    }
}

impl ToJson for OffsetCommitValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("offset", &self.offset, v);
        if v >= 3 {
            it.put("leaderEpoch", &self.leader_epoch, v);
        }
        it.put("metadata", &self.metadata, v);
        it.put("commitTimestamp", &self.commit_timestamp, v);
        if v == 1 {
            it.put("expireTimestamp", &self.expire_timestamp, v);
        }
        if v >= 4 && self.topic_id != Uuid::ZERO {
            it.put("topicId", &self.topic_id, v);
        }
        it.into()
    }
}

impl Message for OffsetCommitValue {
    const NAME: &'static str = "OffsetCommitValue";
    const VERSIONS: (i16, i16) = (0, 4);
    const FLEXIBLE_SINCE: i16 = 4;
}
