//! The one way to files: the [`Disk`] trait, the crashable [`MemDisk`] of the simulator, and the
//! [`FileDisk`] of production, which is the one place that uses `std::fs`.
//!
//! A `Disk` is one log directory. Paths are relative to it and never climb out of it.
//!
//! What both disks promise and what they do not:
//! - What was written is seen at once by every handle, and survives the death of the process.
//! - It survives the loss of power only after [`DiskFile::sync`], and a new, renamed or removed
//!   name only after [`Disk::sync_dir`] on its directory as well.
//! - Before that, any part of what was written may be gone, in any order, cut anywhere.

mod api;
mod error;
mod file;
mod mem;
mod path;
mod replace;

pub use crate::api::{Blocking, DirEntry, Disk, DiskFile, EntryKind, OpenMode};
pub use crate::error::{DiskError, DiskErrorKind, DiskOp};
pub use crate::file::{FileDisk, FileFile, FileLock};
pub use crate::mem::{Fault, FaultEffect, FaultPath, MemDisk, MemFile, MemLock};

/// A file read whole by [`Disk::read`] may have at most this many bytes (256 MiB).
pub const SMALL_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
