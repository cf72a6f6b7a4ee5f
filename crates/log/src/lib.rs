//! One partition's log on a Disk: Kafka's directory, byte for byte.
//!
//! [`OpenLog`] opens or makes a [`PartitionLog`] and says in a [`RecoveryReport`] what it found.
//! The log appends, reads, cuts and retains; whatever may block is a job that its owner runs
//! elsewhere. The crate knows nothing of replication: high watermarks and epochs come in as
//! arguments.

pub mod checkpoint;
mod config;
mod damage;
mod durable_end;
mod epoch_runs;
mod error;
mod lazy_file;
mod leader_epoch_cache;
mod names;
mod partition_log;
pub mod producer_state;
mod recovery;
mod replay;
mod segment;
mod transaction_index;
pub mod verify;

pub use crate::config::LogConfig;
pub use crate::damage::DamagedRange;
pub use crate::durable_end::durable_end;
pub use crate::error::{AppendError, ReadError};
pub use crate::leader_epoch_cache::LeaderEpochCache;
pub use crate::names::renamed_dir;
pub use crate::partition_log::{
    Appended, CloseLog, Closed, DeleteLog, FileRegion, LocalRead, Origin, PartitionLog, ReadResult,
    RemovedFiles, Retained, SegmentInfo, SyncLog, Synced, TimeFound, TimeLookup, TimeLookupError,
};
pub use crate::producer_state::ProducerState;
pub use crate::recovery::{
    Finding, OpenError, OpenLog, Progress, RecoveryReport, RecoveryStep, Severity,
};
pub use crate::segment::{OffsetEntry, TimeEntry};
pub use crate::transaction_index::{
    AbortedInRange, AbortedTransaction, TransactionIndex, TransactionIndexError,
};
