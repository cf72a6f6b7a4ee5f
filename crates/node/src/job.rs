//! Blocking work that a machine hands out.

use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;
use highwater_disk::{Blocking, Disk, DiskError};
use highwater_log::{
    CloseLog, Closed, OpenError, OpenLog, PartitionLog, RecoveryReport, SyncLog, Synced,
};
use highwater_records::{BatchError, Compressor, Validated, ValidationRules, recompress, validate};

use crate::control::{InstallSnapshot, SnapshotLoaded, SnapshotWritten, WriteSnapshot};
use crate::journal::{Happening, JournalEntry};
use crate::shard::groups::{GroupsRead, ReadGroups};
use crate::shard::lifecycle::Removal;
use crate::shard::lookup::{TimeLookups, TimesFound};

/// The number of a log directory within its node, in the order of `log.dirs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogDirNumber(pub u16);

/// Blocking or long work, for the pool of one log directory. Holds only owned or immutable data.
#[derive(Debug)]
pub struct Job<D: Disk> {
    /// Whose pool runs it.
    pub dir: LogDirNumber,
    /// What to do.
    pub work: Work<D>,
}

/// The kinds of [`Job`].
#[derive(Debug)]
pub enum Work<D: Disk> {
    /// Opens, recovers or makes a log.
    OpenLog(Box<OpenLog<D>>),
    /// Makes a log durable.
    SyncLog(SyncLog<D>),
    /// Closes a log.
    CloseLog(Box<CloseLog<D>>),
    /// Removes files or directories that were already renamed out of the way.
    Remove(Removal<D>),
    /// Validates, and perhaps compresses anew, a batch that is too big for a step.
    PrepareBatch(PrepareBatch),
    /// Replaces small files.
    WriteFiles(WriteFiles<D>),
    /// Looks for records by their time.
    TimeLookups(TimeLookups<D>),
    /// Reads batches of a coordinator's log.
    ReadGroups(ReadGroups<D>),
    /// Writes a metadata snapshot.
    WriteSnapshot(Box<WriteSnapshot<D>>),
    /// Loads a metadata snapshot that was fetched.
    InstallSnapshot(Box<InstallSnapshot<D>>),
}

/// What a [`Job`] brought. Each kind of work has its kind of result.
#[derive(Debug)]
pub enum JobResult<D: Disk> {
    /// Of [`Work::OpenLog`].
    Opened(Box<LogOpened<D>>),
    /// Of [`Work::SyncLog`].
    Synced(Synced<D>),
    /// Of [`Work::CloseLog`].
    LogClosed(Result<Closed, DiskError>),
    /// Of [`Work::Remove`].
    Removed(Result<(), DiskError>),
    /// Of [`Work::PrepareBatch`].
    BatchPrepared(Box<BatchPrepared>),
    /// Of [`Work::WriteFiles`].
    FilesWritten(Result<(), DiskError>),
    /// Of [`Work::TimeLookups`].
    TimesFound(TimesFound),
    /// Of [`Work::ReadGroups`].
    GroupsRead(GroupsRead),
    /// Of [`Work::WriteSnapshot`].
    SnapshotWritten(SnapshotWritten),
    /// Of [`Work::InstallSnapshot`].
    SnapshotLoaded(Box<SnapshotLoaded>),
}

/// What opening a log brought.
pub type LogOpened<D> = Result<(PartitionLog<D>, RecoveryReport), OpenError>;

/// See [`Work::PrepareBatch`].
#[derive(Clone, Debug)]
pub struct PrepareBatch {
    /// The records of one partition of a Produce request.
    pub records: Bytes,
    /// What the topic and the request demand of them.
    pub rules: ValidationRules,
    /// How to write them anew should `compression.type` ask for it.
    pub compressor: Compressor,
}

/// The batch as it is to be appended, and what is known of it.
pub type BatchPrepared = Result<(Bytes, Validated), BatchError>;

/// Replaces whole small files, one after the other, each atomically.
#[derive(Debug)]
pub struct WriteFiles<D: Disk> {
    /// The disk.
    pub disk: D,
    /// Paths relative to it, and the new contents.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

impl<D: Disk> Job<D> {
    /// The log directory whose pool runs it.
    #[must_use]
    pub const fn dir(&self) -> LogDirNumber {
        self.dir
    }

    /// Does the work. `tell` hears how far it is, far more often than a person wants to: whoever
    /// runs the job has a clock and lets through what is due.
    pub fn run(self, b: &Blocking, tell: &dyn Fn(&dyn Fn() -> JournalEntry)) -> JobResult<D> {
        match self.work {
            Work::OpenLog(open) => {
                let partition = open.topic_partition.clone();
                let opened = open.run(b, &|progress| {
                    tell(&|| {
                        let partition = partition.clone();
                        JournalEntry::info(Happening::Recovering {
                            partition,
                            progress,
                        })
                    });
                });
                JobResult::Opened(Box::new(opened))
            }
            Work::SyncLog(sync) => JobResult::Synced(sync.run(b)),
            Work::CloseLog(close) => JobResult::LogClosed(close.run(b)),
            Work::Remove(removal) => JobResult::Removed(removal.run(b)),
            Work::PrepareBatch(prepare) => JobResult::BatchPrepared(Box::new(prepare.run())),
            Work::WriteFiles(write) => JobResult::FilesWritten(write.run(b)),
            Work::TimeLookups(lookups) => JobResult::TimesFound(lookups.run(b)),
            Work::ReadGroups(read) => JobResult::GroupsRead(read.run(b)),
            Work::WriteSnapshot(write) => JobResult::SnapshotWritten(write.run(b)),
            Work::InstallSnapshot(install) => JobResult::SnapshotLoaded(Box::new(install.run(b))),
        }
    }
}

impl PrepareBatch {
    /// Does the work. Nothing here touches a disk.
    ///
    /// # Errors
    /// What is wrong with the batch.
    pub fn run(self) -> BatchPrepared {
        let Self {
            records,
            rules,
            compressor,
        } = self;
        let validated = validate(&records, &rules)?;
        if !validated.needs_recompression {
            return Ok((records, validated));
        }
        let (rebuilt, validated) = recompress(&records, compressor, &rules)?;
        Ok((rebuilt.into(), validated))
    }
}

impl<D: Disk> WriteFiles<D> {
    fn run(self, b: &Blocking) -> Result<(), DiskError> {
        let Self { disk, files } = self;
        files
            .iter()
            .try_for_each(|(path, bytes)| disk.replace(path, bytes, b))
    }
}

impl fmt::Display for LogDirNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
