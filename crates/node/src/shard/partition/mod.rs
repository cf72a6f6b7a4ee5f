//! The partitions that a shard owns.

use std::collections::BTreeMap;

use highwater_disk::Disk;
use highwater_log::PartitionLog;
use highwater_replication::Replica;
use highwater_types::{ErrorCode, Offset, TopicIdPartition, TopicPartition};

use crate::job::LogDirNumber;

/// Every partition that a shard owns, by topic id.
#[derive(Debug)]
pub struct PartitionTable<D: Disk> {
    partitions: BTreeMap<TopicIdPartition, Partition<D>>,
    changed: Vec<TopicIdPartition>,
}

/// One partition on this broker.
#[derive(Debug)]
pub struct Partition<D: Disk> {
    /// By topic id.
    pub(crate) id: TopicIdPartition,
    /// By name.
    pub(crate) name: TopicPartition,
    /// The directory that its log is in.
    pub(crate) dir: LogDirNumber,
    /// What it is doing.
    pub(crate) state: PartitionState<D>,
    /// Whether it is in the table's list of changed partitions.
    changed: bool,
}

/// What a [`Partition`] is doing.
#[derive(Debug)]
pub enum PartitionState<D: Disk> {
    /// A job opens or recovers the log.
    Opening,
    /// The log is open.
    Online(Box<OnlinePartition<D>>),
    /// It does not serve: KAFKA_STORAGE_ERROR, until the next start.
    Failed,
}

/// A partition whose log is open.
#[derive(Debug)]
pub struct OnlinePartition<D: Disk> {
    /// The log.
    pub(crate) log: PartitionLog<D>,
    /// Role, epochs and high watermark.
    pub(crate) replica: Replica,
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

    /// Notes that others should look at the partition at the end of the step.
    pub fn mark_changed(&mut self, id: TopicIdPartition) {
        match self.partitions.get_mut(&id) {
            Some(partition) if partition.changed => return,
            Some(partition) => partition.changed = true,
            None => {}
        }
        self.changed.push(id);
    }

    pub(crate) fn take_changed(&mut self) -> Vec<TopicIdPartition> {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            if let Some(partition) = self.partitions.get_mut(id) {
                partition.changed = false;
            }
        }
        changed
    }
}

impl<D: Disk> Partition<D> {
    /// The open log, or the code that a client gets instead: KAFKA_STORAGE_ERROR when it failed,
    /// NOT_LEADER_OR_FOLLOWER while it is being opened.
    ///
    /// # Errors
    /// As said.
    pub const fn online(&self) -> Result<&OnlinePartition<D>, ErrorCode> {
        match &self.state {
            PartitionState::Opening => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
            PartitionState::Online(online) => Ok(online),
            PartitionState::Failed => Err(ErrorCode::KAFKA_STORAGE_ERROR),
        }
    }
}

impl<D: Disk> OnlinePartition<D> {
    /// Exclusive end of what consumers at `read_uncommitted` may read.
    #[must_use]
    pub fn high_watermark(&self) -> Offset {
        self.replica.high_watermark()
    }

    /// Exclusive end of what consumers at `read_committed` may read.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        self.log.last_stable_offset(self.high_watermark())
    }
}
