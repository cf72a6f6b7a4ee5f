//! Gathers records into batches and sends them, in order and as often as it takes.

mod accumulator;
mod batch;
mod config;
mod delivery;
mod handle;
mod outcomes;
mod partitioner;
mod pool;
mod sender;
mod split;

pub use self::config::{Acks, ProducerConfig};
pub use self::delivery::{Delivery, RecordMetadata};
pub use self::handle::{Producer, ProducerRecord};
