//! Whole nodes: boot, format, control and shards together.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod clients_view;
mod cluster;
mod crash;
mod damage;
mod directories;
mod ends;
mod envelopes;
mod first_start;
mod groups;
mod host;
mod kafka_damage;
mod kafka_dirs;
mod metadata;
mod observer;
mod quorum_requests;
mod roles;
mod start_stop;
mod wire;
