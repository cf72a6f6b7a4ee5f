//! Generated from `crates/protocol/schemas/coordinator/group-StreamsGroupTargetAssignmentMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 20; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsGroupTargetAssignmentMetadataValue {
    /// `int32`, versions 0+.
    pub assignment_epoch: i32,
    /// `int64`, versions 0+, tag 0.
    pub assignment_timestamp: i64,
}

impl Wire for StreamsGroupTargetAssignmentMetadataValue {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            assignment_epoch: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.assignment_timestamp = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.assignment_epoch.write(w)?;
        w.tags(|tags| {
            if self.assignment_timestamp != 0 {
                tags.put(0, &self.assignment_timestamp)?;
            }
            Ok(())
        })
    }
}

impl ToJson for StreamsGroupTargetAssignmentMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("assignmentEpoch", &self.assignment_epoch, v);
        if self.assignment_timestamp != 0 {
            it.put("assignmentTimestamp", &self.assignment_timestamp, v);
        }
        it.into()
    }
}

impl Message for StreamsGroupTargetAssignmentMetadataValue {
    const NAME: &'static str = "StreamsGroupTargetAssignmentMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
