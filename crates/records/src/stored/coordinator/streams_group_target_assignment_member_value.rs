//! Generated from `crates/protocol/schemas/coordinator/group-StreamsGroupTargetAssignmentMember.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 21; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsGroupTargetAssignmentMemberValue {
    /// `[]TaskIds`, versions 0+.
    pub active_tasks: Vec<TaskIds>,
    /// `[]TaskIds`, versions 0+.
    pub standby_tasks: Vec<TaskIds>,
    /// `[]TaskIds`, versions 0+.
    pub warmup_tasks: Vec<TaskIds>,
}

impl Wire for StreamsGroupTargetAssignmentMemberValue {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            active_tasks: r.read()?,
            standby_tasks: r.read()?,
            warmup_tasks: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.active_tasks.write(w)?;
        self.standby_tasks.write(w)?;
        self.warmup_tasks.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for StreamsGroupTargetAssignmentMemberValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("activeTasks", &self.active_tasks, v);
        it.put("standbyTasks", &self.standby_tasks, v);
        it.put("warmupTasks", &self.warmup_tasks, v);
        it.into()
    }
}

/// Part of [`StreamsGroupTargetAssignmentMemberValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskIds {
    /// `string`, versions 0+.
    pub subtopology_id: String,
    /// `[]int32`, versions 0+.
    pub partitions: Vec<i32>,
}

impl Wire for TaskIds {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            subtopology_id: r.read()?,
            partitions: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.subtopology_id.write(w)?;
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for TaskIds {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("subtopologyId", &self.subtopology_id, v);
        it.put("partitions", &self.partitions, v);
        it.into()
    }
}

impl Message for StreamsGroupTargetAssignmentMemberValue {
    const NAME: &'static str = "StreamsGroupTargetAssignmentMemberValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
