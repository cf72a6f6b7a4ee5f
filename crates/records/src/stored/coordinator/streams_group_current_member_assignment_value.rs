//! Generated from `crates/protocol/schemas/coordinator/group-StreamsGroupCurrentMemberAssignment.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 22; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsGroupCurrentMemberAssignmentValue {
    /// `int32`, versions 0+.
    pub member_epoch: i32,
    /// `int32`, versions 0+.
    pub previous_member_epoch: i32,
    /// `int8`, versions 0+.
    pub state: i8,
    /// `[]TaskIds`, versions 0+.
    pub active_tasks: Vec<TaskIds>,
    /// `[]TaskIds`, versions 0+.
    pub standby_tasks: Vec<TaskIds>,
    /// `[]TaskIds`, versions 0+.
    pub warmup_tasks: Vec<TaskIds>,
    /// `[]TaskIds`, versions 0+.
    pub active_tasks_pending_revocation: Vec<TaskIds>,
    /// `[]TaskIds`, versions 0+.
    pub standby_tasks_pending_revocation: Vec<TaskIds>,
    /// `[]TaskIds`, versions 0+.
    pub warmup_tasks_pending_revocation: Vec<TaskIds>,
}

impl Wire for StreamsGroupCurrentMemberAssignmentValue {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            member_epoch: r.read()?,
            previous_member_epoch: r.read()?,
            state: r.read()?,
            active_tasks: r.read()?,
            standby_tasks: r.read()?,
            warmup_tasks: r.read()?,
            active_tasks_pending_revocation: r.read()?,
            standby_tasks_pending_revocation: r.read()?,
            warmup_tasks_pending_revocation: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.member_epoch.write(w)?;
        self.previous_member_epoch.write(w)?;
        self.state.write(w)?;
        self.active_tasks.write(w)?;
        self.standby_tasks.write(w)?;
        self.warmup_tasks.write(w)?;
        self.active_tasks_pending_revocation.write(w)?;
        self.standby_tasks_pending_revocation.write(w)?;
        self.warmup_tasks_pending_revocation.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for StreamsGroupCurrentMemberAssignmentValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("memberEpoch", &self.member_epoch, v);
        it.put("previousMemberEpoch", &self.previous_member_epoch, v);
        it.put("state", &self.state, v);
        it.put("activeTasks", &self.active_tasks, v);
        it.put("standbyTasks", &self.standby_tasks, v);
        it.put("warmupTasks", &self.warmup_tasks, v);
        it.put(
            "activeTasksPendingRevocation",
            &self.active_tasks_pending_revocation,
            v,
        );
        it.put(
            "standbyTasksPendingRevocation",
            &self.standby_tasks_pending_revocation,
            v,
        );
        it.put(
            "warmupTasksPendingRevocation",
            &self.warmup_tasks_pending_revocation,
            v,
        );
        it.into()
    }
}

/// Part of [`StreamsGroupCurrentMemberAssignmentValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskIds {
    /// `string`, versions 0+.
    pub subtopology_id: String,
    /// `[]int32`, versions 0+.
    pub partitions: Vec<i32>,
    /// `[]int32`, versions 0+, tag 0, or null.
    pub assignment_epochs: Option<Vec<i32>>,
}

impl Wire for TaskIds {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            subtopology_id: r.read()?,
            partitions: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.assignment_epochs = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.subtopology_id.write(w)?;
        self.partitions.write(w)?;
        w.tags(|tags| {
            if self.assignment_epochs.is_some() {
                tags.put(0, &self.assignment_epochs)?;
            }
            Ok(())
        })
    }
}

impl ToJson for TaskIds {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("subtopologyId", &self.subtopology_id, v);
        it.put("partitions", &self.partitions, v);
        if self.assignment_epochs.is_some() {
            it.put("assignmentEpochs", &self.assignment_epochs, v);
        }
        it.into()
    }
}

impl Message for StreamsGroupCurrentMemberAssignmentValue {
    const NAME: &'static str = "StreamsGroupCurrentMemberAssignmentValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
