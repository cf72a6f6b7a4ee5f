//! The partitions that a shard owns.

mod outputs;
mod settings;
mod table;

use std::sync::Arc;

use highwater_disk::Disk;
use highwater_log::PartitionLog;
use highwater_metadata::config::TopicSettings;
use highwater_metadata::image::PartitionImage;
use highwater_replication::{Assignment, Replica};
use highwater_types::{ErrorCode, Mono, NodeId, Offset, TopicIdPartition, TopicPartition};

pub(crate) use self::settings::{log_config, replica_config, timestamp_type};
pub use self::table::PartitionTable;
use super::checkpoints::Lines;
use super::produce::HeldAppend;
use crate::job::LogDirNumber;

/// One partition on this broker.
#[derive(Debug)]
pub struct Partition<D: Disk> {
    /// By topic id.
    pub(crate) id: TopicIdPartition,
    /// By name.
    pub(crate) name: TopicPartition,
    /// The directory that its log is in.
    pub(crate) dir: LogDirNumber,
    /// The topic's configs in force.
    pub(crate) settings: Arc<TopicSettings>,
    /// What it is doing.
    pub(crate) state: PartitionState<D>,
    /// What the checkpoints say of it while its log is not open.
    pub(crate) kept: Lines,
    /// Its log was compacted at some time, as far as a checkpoint tells.
    pub(crate) was_cleaned: bool,
    /// Whether it is in the table's list of changed partitions.
    changed: bool,
}

/// What a [`Partition`] is doing.
#[derive(Debug)]
pub enum PartitionState<D: Disk> {
    /// A job opens or recovers the log.
    Opening {
        /// Whether the log is being made, which takes moments: appends may wait for it.
        is_new: bool,
        /// Appends that came in the meantime; only while `is_new`.
        queued: Vec<HeldAppend>,
    },
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
    /// A sync of the log is out.
    pub(crate) sync_in_flight: bool,
    /// When the shard looks at `flush.ms` next.
    pub(crate) flush_look: Option<Mono>,
}

impl<D: Disk> Partition<D> {
    /// A partition whose log is about to be opened.
    pub(crate) const fn opening(
        id: TopicIdPartition,
        name: TopicPartition,
        dir: LogDirNumber,
        settings: Arc<TopicSettings>,
        is_new: bool,
    ) -> Self {
        let state = PartitionState::Opening {
            is_new,
            queued: Vec::new(),
        };
        let kept = Lines {
            recovery_point: None,
            high_watermark: None,
            log_start_offset: None,
        };
        Self {
            id,
            name,
            dir,
            settings,
            state,
            kept,
            was_cleaned: false,
            changed: false,
        }
    }

    /// What the checkpoints say of it.
    pub(crate) fn lines(&self) -> Lines {
        match &self.state {
            PartitionState::Online(online) => Lines::of(online),
            PartitionState::Opening { .. } | PartitionState::Failed => self.kept,
        }
    }

    /// By topic id.
    #[must_use]
    pub const fn id(&self) -> TopicIdPartition {
        self.id
    }

    /// By name.
    #[must_use]
    pub const fn name(&self) -> &TopicPartition {
        &self.name
    }

    /// The log directory that it is in.
    #[must_use]
    pub const fn dir(&self) -> LogDirNumber {
        self.dir
    }

    /// Whether a job opens or recovers the log.
    pub(crate) const fn is_opening(&self) -> bool {
        matches!(self.state, PartitionState::Opening { .. })
    }

    /// The open log, or the code that a client gets instead: KAFKA_STORAGE_ERROR when it failed,
    /// NOT_LEADER_OR_FOLLOWER while it is being opened.
    ///
    /// # Errors
    /// As said.
    pub const fn online(&self) -> Result<&OnlinePartition<D>, ErrorCode> {
        match &self.state {
            PartitionState::Opening { .. } => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
            PartitionState::Online(online) => Ok(online),
            PartitionState::Failed => Err(ErrorCode::KAFKA_STORAGE_ERROR),
        }
    }

    /// As [`Partition::online`].
    ///
    /// # Errors
    /// As there.
    pub const fn online_mut(&mut self) -> Result<&mut OnlinePartition<D>, ErrorCode> {
        match &mut self.state {
            PartitionState::Opening { .. } => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
            PartitionState::Online(online) => Ok(online),
            PartitionState::Failed => Err(ErrorCode::KAFKA_STORAGE_ERROR),
        }
    }
}

impl<D: Disk> OnlinePartition<D> {
    /// The log.
    #[must_use]
    pub const fn log(&self) -> &PartitionLog<D> {
        &self.log
    }

    /// Role, epochs and high watermark.
    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Exclusive end of what consumers at `read_uncommitted` may read.
    #[must_use]
    pub const fn high_watermark(&self) -> Offset {
        self.replica.high_watermark()
    }

    /// Exclusive end of what consumers at `read_committed` may read.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        self.log.last_stable_offset(self.high_watermark())
    }
}

/// What the metadata says about a partition, in the words of a replica.
pub(crate) fn assignment(image: &PartitionImage) -> Assignment {
    Assignment {
        leader: image.leader.is_some().then_some(image.leader),
        leader_epoch: image.leader_epoch,
        partition_epoch: image.partition_epoch,
        assigned_replicas: image.assigned_replicas.clone(),
        in_sync_replicas: image.in_sync_replicas.clone(),
    }
}

/// Whether `node` holds a replica.
pub(crate) fn is_assigned(image: &PartitionImage, node: NodeId) -> bool {
    image.assigned_replicas.contains(&node)
}
