//! A connection's bytes in and out.

pub(crate) mod frames;
pub(crate) mod outgoing;
pub(crate) mod pacing;
