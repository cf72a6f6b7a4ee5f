//! The small files of a log directory and of a log: bytes in, typed contents out, and back.
//!
//! Nothing here touches a disk: owners read with [`Disk::read`](highwater_disk::Disk::read) and
//! write with [`Disk::replace`](highwater_disk::Disk::replace), so that every crash leaves the old
//! bytes or the new ones. A file that cannot be read is a [`CheckpointError`]; what to do about it
//! differs from file to file and is said at each.

pub mod clean_shutdown;
pub mod committed;
pub mod damage;
pub mod leader_epochs;
pub mod meta_properties;
pub mod offsets;
pub mod partition_metadata;
mod properties;
mod text;

pub use self::clean_shutdown::CleanShutdown;
pub use self::meta_properties::MetaProperties;
pub use self::offsets::OffsetCheckpoint;
pub use self::text::CheckpointError;
