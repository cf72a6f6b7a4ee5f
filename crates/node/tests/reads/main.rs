//! The read side of a data shard: fetches, look-ups by time and epoch, and descriptions.

mod world;

mod fetch;
mod sessions;
