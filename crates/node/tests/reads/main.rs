//! The read side of a data shard: fetches, look-ups by time and epoch, and descriptions.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod kafka_dir;
mod world;

mod describe;
mod fetch;
mod golden;
mod kafka_data;
mod look_ups;
mod permissions;
mod producer_ids;
mod random;
mod sessions;
