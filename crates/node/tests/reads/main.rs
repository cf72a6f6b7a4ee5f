//! The read side of a data shard: fetches, look-ups by time and epoch, and descriptions.

mod world;

mod describe;
mod fetch;
mod golden;
mod kafka_data;
mod look_ups;
mod producer_ids;
mod sessions;
