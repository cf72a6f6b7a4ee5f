//! The KRaft quorum, with one voter for now.
//!
//! Nothing here does IO: [`LeaderState`] is told how far the metadata log is flushed and says how
//! far it is committed; [`QuorumState`] is the content of the `quorum-state` file.

mod leader_state;
mod quorum_state;
mod voters;

pub use crate::leader_state::{BecomeLeaderError, LeaderChange, LeaderState};
pub use crate::quorum_state::{QuorumState, QuorumStateError, QuorumStateVersion};
pub use crate::voters::{ParseVotersError, ReplicaKey, Voter, VoterEndpoint, VoterSet};
