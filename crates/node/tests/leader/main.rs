//! A leader and fake followers, which send real requests: what counts, who is in the ISR, what the
//! high watermark waits for, and what a session costs.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod cluster;

mod acks;
mod consumers;
mod fetches;
mod identity;
mod isr;
mod late;
mod sessions;
