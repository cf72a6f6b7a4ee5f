//! Committed offsets: by requests, through reloads, and as Kafka left them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod admin;
mod commits;
mod expiry;
mod foreign;
mod golden;
mod prefixes;
mod support;
mod transactions;
