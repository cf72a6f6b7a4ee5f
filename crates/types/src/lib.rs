//! The words every crate shares: offsets, epochs, ids, time, error codes, and the pure function
//! that says where two epoch histories part.
//!
//! Nothing here does IO. A bare integer never crosses a function boundary when it is an offset, an
//! epoch, an id or a time; the newtypes are here.

mod divergence;
mod epoch;
mod error_code;
mod ids;
mod offset;
#[cfg(feature = "planted-bugs")]
mod planted;
mod time;
mod topic_partition;
mod uuid;

pub use crate::divergence::{EpochEnd, EpochEntry, EpochHistory, truncation_point};
pub use crate::epoch::{BrokerEpoch, LeaderEpoch, OffsetAndEpoch, PartitionEpoch};
pub use crate::error_code::ErrorCode;
pub use crate::ids::{NodeId, PartitionIndex, ProducerEpoch, ProducerId};
pub use crate::offset::Offset;
#[cfg(feature = "planted-bugs")]
pub use crate::planted::{PlantedBug, is_planted, plant};
pub use crate::time::{Millis, Mono, Now, WallMs};
pub use crate::topic_partition::{TopicIdPartition, TopicName, TopicNameError, TopicPartition};
pub use crate::uuid::{DirectoryId, ParseUuidError, TopicId, Uuid};
