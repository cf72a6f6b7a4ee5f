//! One partition's log on a Disk.

pub mod checkpoint;
mod leader_epoch_cache;
pub mod producer_state;
mod transaction_index;

pub use crate::leader_epoch_cache::LeaderEpochCache;
pub use crate::producer_state::ProducerState;
pub use crate::transaction_index::{
    AbortedInRange, AbortedTransaction, TransactionIndex, TransactionIndexError,
};
