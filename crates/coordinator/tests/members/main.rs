//! Members of groups, through the public interface, with a log in memory that can refuse.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

mod joining;
mod leaving;
mod limits;
mod random;
mod rebalancing;
mod reloading;
mod sessions;
mod statics;
mod support;
mod syncing;
