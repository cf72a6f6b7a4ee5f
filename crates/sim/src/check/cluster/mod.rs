//! The replicas of each partition, looked at together: what is committed by their logs and by what
//! the controller committed, and never by what brokers claim.
//!
//! - `TrueHW` rises when a leader says so and the logs of the whole ISR were seen to hold it. What
//!   is below it is the *committed log*, that everybody is compared with.
//! - I-01 `LogMatching`: below its high watermark each log is the committed one.
//! - I-02 `EpochPrefix`: where two logs have an epoch in common they are the same up to there.
//! - I-03 `StrongIsr`, I-05 `LeaderCompleteness`, I-06 `CandidateCompleteness`: whoever leads, is
//!   in the ISR or may lead without loss holds the committed log. Suspended when an unclean
//!   election was allowed, as many disks lost records as the minimum ISR has, or all who held them
//!   stopped uncleanly and the last leader, whose disk lost them, leads again (KIP-966): then the
//!   loss is told.
//! - I-07 `QuorumSuperset`, I-11 `EpochUnique`, I-12 `AcksAll`, I-13 `IsrAdmission`, I-16
//!   `SafeTruncation`, I-17 and the duplicates of I-25: see [`partition`].
//! - I-26 `Liveness`: [`settled`].

mod committed;
mod partition;
mod replica_copy;
mod settled;
#[cfg(test)]
mod tests;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::MemDisk;
use highwater_types::{NodeId, Offset, TopicIdPartition, TopicPartition};

pub(super) use self::partition::{CopyChange, PartitionHistory};
use super::controller::{Change, Known, KnownPartition};
use super::marks::BatchMark;
use super::metadata_logs::MetadataLogs;
use super::verdict::Verdicts;

/// What the other checkers have to know.
#[derive(Debug)]
pub(super) enum Outcome {
    /// These batches are committed now.
    Committed(TopicIdPartition, Vec<BatchMark>),
    /// The committed log ends here again.
    Lost {
        /// Whose.
        id: TopicIdPartition,
        /// Its end.
        end: Offset,
        /// So many records above are lost, and may be.
        count: u64,
        /// What the new leader has above is not whole.
        is_holed: bool,
    },
}

/// Every partition with more than one replica, and the controller.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    known: Known,
    metadata: MetadataLogs,
    partitions: BTreeMap<TopicIdPartition, PartitionHistory>,
    /// Also those that are gone.
    replicated: BTreeSet<TopicIdPartition>,
    /// The nodes that run, and the life of each.
    lives: BTreeMap<NodeId, u32>,
    outcomes: Vec<Outcome>,
}

impl Cluster {
    /// Whether the partition has more than one replica, or had before it was deleted.
    pub(super) fn is_replicated(&self, id: TopicIdPartition) -> bool {
        self.replicated.contains(&id)
    }

    /// What the others have to know since the last call.
    pub(super) fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// A node runs, in this life.
    pub(super) fn runs(&mut self, node: NodeId, life: u32) {
        if self.lives.get(&node) != Some(&life) {
            self.lives.insert(node, life);
        }
    }

    /// The control machine of a node was stepped.
    pub(super) fn control_stepped(
        &mut self,
        node: NodeId,
        disks: &[MemDisk],
        high_watermark: Offset,
        verdicts: &mut Verdicts,
    ) {
        let records = self.metadata.follow(node, disks, high_watermark, verdicts);
        let mut changed = BTreeMap::<TopicIdPartition, Option<KnownPartition>>::new();
        let mut registered = Vec::new();
        for record in &records {
            for change in self.known.apply(record, verdicts) {
                match change {
                    Change::Partition(id, before) => {
                        self.partition_changed(id, before.as_ref(), verdicts);
                        let now = self.known.partitions.get(&id).map(|it| it.leader_epoch);
                        // The last election counts, and what it was made from.
                        if before.as_ref().map(|it| it.leader_epoch) == now {
                            changed.entry(id).or_insert(before);
                        } else {
                            changed.insert(id, before);
                        }
                    }
                    Change::Registered(node) => registered.push(node),
                    Change::TopicRemoved(topic_id) => {
                        self.partitions.retain(|id, _| id.topic_id != topic_id);
                        changed.retain(|id, _| id.topic_id != topic_id);
                    }
                }
            }
        }
        for node in registered.iter().copied() {
            // What an earlier life lost is counted from now on: the controller knows of it.
            if self.lives.contains_key(&node) {
                let all = self.partitions.values_mut();
                all.for_each(|partition| partition.registered(node));
            }
        }
        for (id, before) in changed {
            // Who registers anew after an unclean stop is out of ISR and ELR by that.
            let before = before.map(|mut it| {
                it.isr.retain(|node| !registered.contains(node));
                it.elr.retain(|node| !registered.contains(node));
                it
            });
            self.settle(id, before.as_ref(), verdicts);
        }
    }

    /// A replica says something else than before, or its log does.
    pub(super) fn copy_changed(
        &mut self,
        id: TopicIdPartition,
        name: &TopicPartition,
        change: CopyChange<'_>,
        verdicts: &mut Verdicts,
    ) {
        let Some(known) = self.known.partitions.get(&id) else {
            return;
        };
        let partition = self.partitions.entry(id);
        let partition = partition.or_insert_with(|| PartitionHistory::new(id, name.clone()));
        let out = &mut self.outcomes;
        if partition.copy_changed(known, change, verdicts, out) {
            partition.settle(&self.known, None, verdicts, out);
        }
    }

    /// The process of a node is gone.
    pub(super) fn process_ended(&mut self, node: NodeId) {
        self.lives.remove(&node);
        let all = self.partitions.values_mut();
        all.for_each(|partition| partition.process_ended(node));
    }

    /// A process that is gone left less on its disks than it had written, maybe.
    pub(super) fn disks_lost(&mut self, node: NodeId) {
        let all = self.partitions.values_mut();
        all.for_each(|partition| partition.disk_lost(node));
    }

    /// A story lets a replica lead that may have lost records.
    pub(super) fn unclean_is_allowed(&mut self, name: &TopicPartition) {
        let all = self.partitions.values_mut();
        for partition in all.filter(|it| it.name() == name) {
            partition.unclean_is_allowed();
        }
    }

    /// The partition's history, if it has more than one replica and was seen.
    pub(super) fn partition(&mut self, id: TopicIdPartition) -> Option<&mut PartitionHistory> {
        self.partitions.get_mut(&id)
    }

    fn partition_changed(
        &mut self,
        id: TopicIdPartition,
        before: Option<&KnownPartition>,
        verdicts: &mut Verdicts,
    ) {
        let known = self.known.partitions.get(&id);
        if known.is_some_and(|it| it.replicas.len() > 1) {
            self.replicated.insert(id);
        }
        let (Some(known), Some(before)) = (known, before) else {
            return;
        };
        if let Some(partition) = self.partitions.get_mut(&id) {
            partition.isr_changed(known, before, &self.known.brokers, verdicts);
        }
    }

    fn settle(
        &mut self,
        id: TopicIdPartition,
        before: Option<&KnownPartition>,
        verdicts: &mut Verdicts,
    ) {
        if let Some(partition) = self.partitions.get_mut(&id) {
            partition.settle(&self.known, before, verdicts, &mut self.outcomes);
        }
    }
}
