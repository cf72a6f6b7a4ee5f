//! Generated from `crates/protocol/schemas/coordinator/group-ConsumerGroupTargetAssignmentMember.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A key of a coordinator's log, type 7; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroupTargetAssignmentMemberKey {
    /// `string`, versions 0.
    pub group_id: String,
    /// `string`, versions 0.
    pub member_id: String,
}

impl Wire for ConsumerGroupTargetAssignmentMemberKey {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            group_id: r.read()?,
            member_id: r.read()?,
        })
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.group_id.write(w)?;
        self.member_id.write(w)?;
        Ok(())
    }
}

impl ToJson for ConsumerGroupTargetAssignmentMemberKey {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("groupId", &self.group_id, v);
        it.put("memberId", &self.member_id, v);
        it.into()
    }
}

impl Message for ConsumerGroupTargetAssignmentMemberKey {
    const NAME: &'static str = "ConsumerGroupTargetAssignmentMemberKey";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = i16::MAX;
}
