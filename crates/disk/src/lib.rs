//! The one way to files: the [`Disk`] trait, the crashable [`MemDisk`] of the simulator, and the
//! [`FileDisk`] of production, which is the one place that uses `std::fs`.
//!
//! A `Disk` is one log directory. Paths are relative to it.
