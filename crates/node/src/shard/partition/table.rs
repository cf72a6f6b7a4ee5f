use std::collections::BTreeMap;

use highwater_disk::Disk;
use highwater_types::{PartitionIndex, TopicId, TopicIdPartition};

use super::{OnlinePartition, Partition};

/// Every partition that a shard owns, by topic id.
#[derive(Debug)]
pub struct PartitionTable<D: Disk> {
    partitions: BTreeMap<TopicIdPartition, Partition<D>>,
    changed: Vec<TopicIdPartition>,
}

impl<D: Disk> Default for PartitionTable<D> {
    fn default() -> Self {
        Self {
            partitions: BTreeMap::new(),
            changed: Vec::new(),
        }
    }
}

impl<D: Disk> PartitionTable<D> {
    /// A partition by its id.
    #[must_use]
    pub fn find(&self, id: TopicIdPartition) -> Option<&Partition<D>> {
        self.partitions.get(&id)
    }

    /// A partition by its id.
    pub fn find_mut(&mut self, id: TopicIdPartition) -> Option<&mut Partition<D>> {
        self.partitions.get_mut(&id)
    }

    /// A partition by its id, if its log is open.
    pub(crate) fn online_mut(&mut self, id: TopicIdPartition) -> Option<&mut OnlinePartition<D>> {
        self.partitions.get_mut(&id)?.online_mut().ok()
    }

    /// Every partition, by rising topic id and number.
    pub fn iter(&self) -> impl Iterator<Item = &Partition<D>> {
        self.partitions.values()
    }

    /// The ids of the partitions of one topic.
    pub(crate) fn ids_of_topic(&self, topic_id: TopicId) -> Vec<TopicIdPartition> {
        let at = |number| TopicIdPartition {
            topic_id,
            partition: PartitionIndex::new(number),
        };
        self.partitions
            .range(at(i32::MIN)..=at(i32::MAX))
            .map(|(id, _)| *id)
            .collect()
    }

    pub(crate) fn ids(&self) -> Vec<TopicIdPartition> {
        self.partitions.keys().copied().collect()
    }

    pub(crate) fn insert(&mut self, partition: Partition<D>) {
        let before = self.partitions.insert(partition.id, partition);
        assert!(before.is_none(), "{before:?} was replaced");
    }

    /// Takes a partition out; it counts as changed.
    pub(crate) fn remove(&mut self, id: TopicIdPartition) -> Option<Partition<D>> {
        self.mark_changed(id);
        self.partitions.remove(&id)
    }

    /// Notes that those who wait for the partition should look at it at the end of the step.
    pub fn mark_changed(&mut self, id: TopicIdPartition) {
        match self.partitions.get_mut(&id) {
            Some(partition) if partition.changed => {}
            Some(partition) => {
                partition.changed = true;
                self.changed.push(id);
            }
            None => self.changed.push(id),
        }
    }

    /// The changed partitions, each once.
    pub(crate) fn take_changed(&mut self) -> Vec<TopicIdPartition> {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            if let Some(partition) = self.partitions.get_mut(id) {
                partition.changed = false;
            }
        }
        changed
    }

    /// Takes back the memory of a list of [`PartitionTable::take_changed`].
    pub(crate) fn give_back(&mut self, mut changed: Vec<TopicIdPartition>) {
        // Those who looked may have changed something in turn.
        changed.clear();
        changed.append(&mut self.changed);
        self.changed = changed;
    }
}
