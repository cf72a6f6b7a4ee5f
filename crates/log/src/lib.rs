//! One partition's log on a Disk.
