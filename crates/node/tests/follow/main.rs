//! Followers: what they fetch, append and cut; alone, with answers made by hand, and beside a real
//! leader, with all bytes over connections.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod alone;
mod cluster;
mod many;
mod pair;
mod random;
