//! Generated from `crates/protocol/schemas/metadata/PartitionChangeRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 5; versions 0-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionChangeRecord {
    /// `int32`, versions 0+.
    pub partition_id: i32,
    /// `uuid`, versions 0+.
    pub topic_id: Uuid,
    /// `[]int32`, versions 0+, tag 0, or null.
    pub isr: Option<Vec<NodeId>>,
    /// `int32`, versions 0+, tag 1.
    pub leader: NodeId,
    /// `[]int32`, versions 0+, tag 2, or null.
    pub replicas: Option<Vec<NodeId>>,
    /// `[]int32`, versions 0+, tag 3, or null.
    pub removing_replicas: Option<Vec<NodeId>>,
    /// `[]int32`, versions 0+, tag 4, or null.
    pub adding_replicas: Option<Vec<NodeId>>,
    /// `int8`, versions 0+, tag 5.
    pub leader_recovery_state: i8,
    /// `[]uuid`, versions 1+, tag 8, or null.
    pub directories: Option<Vec<Uuid>>,
    /// `[]int32`, versions 2+, tag 6, or null.
    pub eligible_leader_replicas: Option<Vec<NodeId>>,
    /// `[]int32`, versions 2+, tag 7, or null.
    pub last_known_elr: Option<Vec<NodeId>>,
}

impl Default for PartitionChangeRecord {
    fn default() -> Self {
        Self {
            partition_id: -1,
            topic_id: Uuid::ZERO,
            isr: None,
            leader: NodeId::new(-2),
            replicas: None,
            removing_replicas: None,
            adding_replicas: None,
            leader_recovery_state: -1,
            directories: None,
            eligible_leader_replicas: None,
            last_known_elr: None,
        }
    }
}

impl Wire for PartitionChangeRecord {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            partition_id: r.read()?,
            topic_id: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.isr = r.read()?,
                1 => it.leader = r.read()?,
                2 => it.replicas = r.read()?,
                3 => it.removing_replicas = r.read()?,
                4 => it.adding_replicas = r.read()?,
                5 => it.leader_recovery_state = r.read()?,
                8 if v >= 1 => it.directories = r.read()?,
                6 if v >= 2 => it.eligible_leader_replicas = r.read()?,
                7 if v >= 2 => it.last_known_elr = r.read()?,
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
        if v < 1 {
            w.absent(self.directories.is_none(), "Directories")?;
        }
        if v < 2 {
            w.absent(
                self.eligible_leader_replicas.is_none(),
                "EligibleLeaderReplicas",
            )?;
            w.absent(self.last_known_elr.is_none(), "LastKnownElr")?;
        }
        w.tags(|tags| {
            if self.isr.is_some() {
                tags.put(0, &self.isr)?;
            }
            if self.leader != NodeId::new(-2) {
                tags.put(1, &self.leader)?;
            }
            if self.replicas.is_some() {
                tags.put(2, &self.replicas)?;
            }
            if self.removing_replicas.is_some() {
                tags.put(3, &self.removing_replicas)?;
            }
            if self.adding_replicas.is_some() {
                tags.put(4, &self.adding_replicas)?;
            }
            if self.leader_recovery_state != -1 {
                tags.put(5, &self.leader_recovery_state)?;
            }
            if v >= 2 && self.eligible_leader_replicas.is_some() {
                tags.put(6, &self.eligible_leader_replicas)?;
            }
            if v >= 2 && self.last_known_elr.is_some() {
                tags.put(7, &self.last_known_elr)?;
            }
            if v >= 1 && self.directories.is_some() {
                tags.put(8, &self.directories)?;
            }
            Ok(())
        })
    }
}

impl ToJson for PartitionChangeRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("partitionId", &self.partition_id, v);
        it.put("topicId", &self.topic_id, v);
        if self.isr.is_some() {
            it.put("isr", &self.isr, v);
        }
        if self.leader != NodeId::new(-2) {
            it.put("leader", &self.leader, v);
        }
        if self.replicas.is_some() {
            it.put("replicas", &self.replicas, v);
        }
        if self.removing_replicas.is_some() {
            it.put("removingReplicas", &self.removing_replicas, v);
        }
        if self.adding_replicas.is_some() {
            it.put("addingReplicas", &self.adding_replicas, v);
        }
        if self.leader_recovery_state != -1 {
            it.put("leaderRecoveryState", &self.leader_recovery_state, v);
        }
        if v >= 1 && self.directories.is_some() {
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

impl Message for PartitionChangeRecord {
    const NAME: &'static str = "PartitionChangeRecord";
    const VERSIONS: (i16, i16) = (0, 2);
    const FLEXIBLE_SINCE: i16 = 0;
}
