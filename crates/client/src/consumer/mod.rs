//! Reads partitions, each from where the caller says.

mod config;
mod fetched;
mod handle;
mod intake;
mod position;

pub use self::config::{ConsumerConfig, OffsetReset};
pub use self::fetched::{FetchedBatch, PartitionRecords};
pub use self::handle::Consumer;
pub use self::position::StartAt;
