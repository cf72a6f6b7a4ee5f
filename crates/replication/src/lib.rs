//! One replica of one partition: role, epochs and high watermark.

mod replica;

pub use crate::replica::Replica;
