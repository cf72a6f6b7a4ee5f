//! The KRaft quorum, with one voter for now.
//!
//! Nothing here does IO: [`LeaderState`] is told how far the metadata log is flushed and says how
//! far it is committed; [`LogState`] judges the fetches of those who follow it, and [`Observers`]
//! is what the leader knows of them; [`ObserverState`] is one that follows; [`QuorumState`] is the
//! content of the `quorum-state` file.

mod leader_state;
mod log_state;
mod observer;
mod observers;
mod quorum_state;
mod voters;

pub use crate::leader_state::{BecomeLeaderError, LeaderChange, LeaderState};
pub use crate::log_state::{FetchValidity, LogState};
pub use crate::observer::{
    Address, FetchAnswer, FetchStep, FetchTarget, Leader, LeaderTold, ObserverSettings,
    ObserverState,
};
pub use crate::observers::{ObserverProgress, Observers};
pub use crate::quorum_state::{QuorumState, QuorumStateError, QuorumStateVersion};
pub use crate::voters::{ParseVotersError, ReplicaKey, Voter, VoterEndpoint, VoterSet};
