//! Opening a log: what an unclean stop or a bad disk left is found and mended.

mod report;

use std::path::PathBuf;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_types::{Now, Offset, TopicId, TopicPartition};

pub use self::report::{Finding, RecoveryReport, Severity};
use crate::config::LogConfig;
use crate::partition_log::PartitionLog;

/// Opens the log of one partition, or makes it.
#[derive(Clone, Debug)]
pub struct OpenLog<D: Disk> {
    /// The log directory that holds the log.
    pub disk: D,
    /// The log's directory in it, usually `<topic>-<partition>`.
    pub dir: PathBuf,
    /// Whose log it is.
    pub topic_partition: TopicPartition,
    /// The topic's id, which `partition.metadata` must have; written when there is none.
    pub topic_id: TopicId,
    /// The configuration to begin with.
    pub config: LogConfig,
    /// From recovery-point-offset-checkpoint; zero when that lacks the log.
    pub recovery_point: Offset,
    /// From replication-offset-checkpoint; zero when that lacks the log.
    pub high_watermark: Offset,
    /// From log-start-offset-checkpoint; zero when that lacks the log.
    pub log_start_offset: Offset,
    /// Whether the directory's clean shutdown marker was there: then only the last batches are
    /// looked at.
    pub clean_shutdown: bool,
    /// The time.
    pub now: Now,
}

/// How far an [`OpenLog`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read so far.
    pub scanned_bytes: u64,
    /// Bytes that are to be read in all.
    pub total_bytes: u64,
}

/// Why a log was not opened. This partition only; others are not concerned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The directory belongs to another topic of the same name.
    #[error("{} belongs to topic id {found}, not {expected}", dir.display())]
    OtherTopic {
        /// The directory.
        dir: PathBuf,
        /// What partition.metadata says.
        found: TopicId,
        /// What it should say.
        expected: TopicId,
    },
    /// partition.metadata cannot be read, so nobody knows whose log it is.
    #[error("{}: {why}; move the directory away, or restore the file", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl<D: Disk> OpenLog<D> {
    /// Does the work. `progress` hears now and then how far it is.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn run(
        self,
        b: &Blocking,
        progress: &dyn Fn(Progress),
    ) -> Result<(PartitionLog<D>, RecoveryReport), OpenError> {
        let _ = (b, progress);
        unimplemented!("recovery")
    }
}
