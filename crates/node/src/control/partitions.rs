//! What the controller does with partitions, for the journal; and elections that the simulator asks
//! for.

use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_metadata::controller::{Forced, ForcedElection, Refusal};
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::PartitionChangeRecord;
use highwater_types::{ErrorCode, Now, PartitionIndex, TopicId, TopicIdPartition, TopicPartition};

use super::{Control, Effects};
use crate::journal::{Happening, JournalEntry};
use crate::machine::{Effect, Input, Machine as _};

/// In PartitionChange: the new leader was elected uncleanly.
const RECOVERING: i8 = 1;

impl<D: Disk> Control<D> {
    /// Makes a replica the leader through the controller's own append path: a step of this machine,
    /// for the simulator. It goes into the journal as forced.
    ///
    /// # Errors
    /// As [`Controller::elect`](highwater_metadata::controller::Controller::elect); NOT_CONTROLLER
    /// when this node does not decide.
    pub fn elect(
        &mut self,
        now: Now,
        asked: &ForcedElection,
        out: &mut Effects<D>,
    ) -> Result<Forced, Refusal> {
        let refused = Refusal {
            code: ErrorCode::NOT_CONTROLLER,
            message: None,
        };
        let leader = self.role.leader_mut().ok_or(refused)?;
        let (forced, partition) = leader.elect(now, asked)?;
        let happening = Happening::ElectionForced {
            partition,
            leader: asked.leader,
            epoch: forced.leader_epoch,
            unclean: forced.unclean,
        };
        out.push(Effect::Event(JournalEntry::info(happening)));
        self.step(now, Input::Tick, out);
        Ok(forced)
    }

    /// Tells what became of replicated partitions with the records that are committed now. What
    /// happens to a sole replica its leader tells.
    pub(super) fn journal_partitions(&self, records: &[MetadataRecord], out: &mut Effects<D>) {
        let image = self.committed.image();
        for record in records {
            let MetadataRecord::PartitionChange(change) = record else {
                continue;
            };
            let Some(happening) = partition_changed(image, change) else {
                continue;
            };
            if change.leader_recovery_state == RECOVERING {
                let unclean = Happening::ElectedUncleanly {
                    partition: happening.0,
                    leader: change.leader,
                };
                out.push(Effect::Event(JournalEntry::warn(unclean)));
            }
            if self.config.trace {
                out.push(Effect::Event(JournalEntry::trace(happening.1)));
            }
        }
    }
}

/// The partition after a change; `None` for a sole replica, and for a topic that is gone since.
fn partition_changed(
    image: &MetadataImage,
    change: &PartitionChangeRecord,
) -> Option<(TopicPartition, Happening)> {
    let at = TopicIdPartition {
        topic_id: TopicId::new(change.topic_id),
        partition: PartitionIndex::new(change.partition_id),
    };
    let topic = image.topic(at.topic_id)?;
    let now = topic.partitions.get(&at.partition)?;
    if now.assigned_replicas.len() < 2 {
        return None;
    }
    let partition = TopicPartition {
        topic: topic.name.clone(),
        partition: at.partition,
    };
    let happening = Happening::PartitionCommitted {
        partition: partition.clone(),
        leader: now.leader,
        epoch: now.leader_epoch,
        partition_epoch: now.partition_epoch,
        in_sync_replicas: now.in_sync_replicas.clone(),
        eligible_leader_replicas: now.eligible_leader_replicas.clone(),
    };
    Some((partition, happening))
}
