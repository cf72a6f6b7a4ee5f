//! Generated from `crates/protocol/schemas/metadata/PartitionRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 3; versions 0-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRecord {
    /// `int32`, versions 0+.
    pub partition_id: i32,
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `[]int32`, versions 0+.
    pub replicas: Vec<NodeId>,
    /// `[]int32`, versions 0+.
    pub isr: Vec<NodeId>,
    /// `[]int32`, versions 0+.
    pub removing_replicas: Vec<NodeId>,
    /// `[]int32`, versions 0+.
    pub adding_replicas: Vec<NodeId>,
    /// `int32`, versions 0+.
    pub leader: NodeId,
    /// `int8`, versions 0+, tag 0.
    pub leader_recovery_state: i8,
    /// `int32`, versions 0+.
    pub leader_epoch: i32,
    /// `int32`, versions 0+.
    pub partition_epoch: i32,
    /// `[]uuid`, versions 1+.
    pub directories: Vec<Uuid>,
    /// `[]int32`, versions 2+, tag 1, or null.
    pub eligible_leader_replicas: Option<Vec<NodeId>>,
    /// `[]int32`, versions 2+, tag 2, or null.
    pub last_known_elr: Option<Vec<NodeId>>,
}

impl Default for PartitionRecord {
    fn default() -> Self {
        Self {
            partition_id: -1,
            topic_id: Uuid::ZERO,
            replicas: Vec::new(),
            isr: Vec::new(),
            removing_replicas: Vec::new(),
            adding_replicas: Vec::new(),
            leader: NodeId::NONE,
            leader_recovery_state: 0,
            leader_epoch: -1,
            partition_epoch: -1,
            directories: Vec::new(),
            eligible_leader_replicas: None,
            last_known_elr: None,
        }
    }
}

impl Wire for PartitionRecord {
    const SIZE_MIN: usize = 37;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            partition_id: r.read()?,
            topic_id: r.read()?,
            replicas: r.read()?,
            isr: r.read()?,
            removing_replicas: r.read()?,
            adding_replicas: r.read()?,
            leader: r.read()?,
            leader_epoch: r.read()?,
            partition_epoch: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.directories = r.read()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 => it.leader_recovery_state = r.read()?,
                1 if v >= 2 => it.eligible_leader_replicas = r.read()?,
                2 if v >= 2 => it.last_known_elr = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.partition_id.write(w)?;
        self.topic_id.write(w)?;
        self.replicas.write(w)?;
        self.isr.write(w)?;
        self.removing_replicas.write(w)?;
        self.adding_replicas.write(w)?;
        self.leader.write(w)?;
        self.leader_epoch.write(w)?;
        self.partition_epoch.write(w)?;
        if v >= 1 {
            self.directories.write(w)?;
        } else {
            w.absent(self.directories.is_empty(), "Directories")?;
        }
        if v < 2 {
            w.absent(
                self.eligible_leader_replicas.is_none(),
                "EligibleLeaderReplicas",
            )?;
            w.absent(self.last_known_elr.is_none(), "LastKnownElr")?;
        }
        w.tags(|tags| {
            if self.leader_recovery_state != 0 {
                tags.put(0, &self.leader_recovery_state)?;
            }
            if v >= 2 && self.eligible_leader_replicas.is_some() {
                tags.put(1, &self.eligible_leader_replicas)?;
            }
            if v >= 2 && self.last_known_elr.is_some() {
                tags.put(2, &self.last_known_elr)?;
            }
            Ok(())
        })
    }
}

impl ToJson for PartitionRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("partitionId", &self.partition_id, v);
        it.put("topicId", &self.topic_id, v);
        it.put("replicas", &self.replicas, v);
        it.put("isr", &self.isr, v);
        it.put("removingReplicas", &self.removing_replicas, v);
        it.put("addingReplicas", &self.adding_replicas, v);
        it.put("leader", &self.leader, v);
        if self.leader_recovery_state != 0 {
            it.put("leaderRecoveryState", &self.leader_recovery_state, v);
        }
        it.put("leaderEpoch", &self.leader_epoch, v);
        it.put("partitionEpoch", &self.partition_epoch, v);
        if v >= 1 {
            it.put("directories", &self.directories, v);
        }
        if v >= 2 && self.eligible_leader_replicas.is_some() {
            it.put("eligibleLeaderReplicas", &self.eligible_leader_replicas, v);
        }
        if v >= 2 && self.last_known_elr.is_some() {
            it.put("lastKnownElr", &self.last_known_elr, v);
        }
        it.into()
    }
}

impl Message for PartitionRecord {
    const NAME: &'static str = "PartitionRecord";
    const VERSIONS: (i16, i16) = (0, 2);
    const FLEXIBLE_SINCE: i16 = 0;
}
