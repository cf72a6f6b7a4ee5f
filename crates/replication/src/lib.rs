//! One replica of one partition: its role, its epochs and its high watermark.
//!
//! [`Replica`] is a core: it does no IO, reads no clock and holds no log. Its owner tells it what
//! happened to the log (`handle_appended`, `handle_flushed`, ..) and to the metadata, and performs
//! the [`Output`]s. Absent on purpose: purgatories (who waits for a high watermark is the owner's
//! business) and the wire.

mod flush_policy;
mod isr;
mod leader;
mod output;
mod progress;
mod replica;
mod role;

pub use crate::flush_policy::FlushPolicy;
pub use crate::isr::{
    CommittedIsr, EligibleBrokers, Isr, IsrAnswer, IsrCause, IsrProposal, Lagging,
};
pub use crate::leader::Leader;
pub use crate::output::Output;
pub use crate::progress::{FollowerProgress, LastFetch};
pub use crate::replica::{
    Assignment, FetchPosition, FollowStep, FollowerFetch, LeaderAnswer, LeaderRange, LogEnds,
    Replica, ReplicaConfig,
};
pub use crate::role::{Follower, NextFetch, Role};
