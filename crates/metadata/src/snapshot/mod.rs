mod file;
mod records;

pub use file::{SnapshotControl, SnapshotError, read_snapshot, write_snapshot};
pub(crate) use records::partition_record;
pub use records::snapshot_records;
