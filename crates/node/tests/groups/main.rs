//! Consumer groups on data shards: every API and version, loading and losing, waiting and counting
//! shards, restarts, bad input.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod member;

mod apis;
mod bad_input;
mod life;
mod many;
mod waits;
