mod file;
mod records;

pub use file::{SnapshotControl, SnapshotError, read_snapshot, write_snapshot};
pub use records::snapshot_records;
pub(crate) use records::{broker_record, controller_record, partition_record};
