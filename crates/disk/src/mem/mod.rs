//! A disk in memory that crashes like a real one.

mod content;
mod disk;
mod fault;
mod file;
mod random;
mod state;
mod tree;

pub use self::disk::{MemDisk, MemLock};
pub use self::fault::{Fault, FaultEffect, FaultPath};
pub use self::file::MemFile;
