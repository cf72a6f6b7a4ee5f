//! What a log remembers of its idempotent and transactional producers, rebuilt from batches alone.

mod batch;
mod check;
mod entry;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;

pub use self::batch::{MarkerKind, ProducerBatch, TransactionMarker};
pub use self::check::{Check, ProducerError, ProducerOrigin};
pub use self::entry::{ProducerEntry, RememberedBatch};
pub use self::snapshot::SnapshotError;
pub use self::state::{CompletedTransaction, ProducerState};
