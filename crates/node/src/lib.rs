//! The machines of a node: connection, data shard and control.
//!
//! Nothing here does IO. A driver (`server` or `sim`) owns the machines, feeds them [`Input`]s one
//! at a time and performs the [`Effect`]s that they push. [`Connection`] is a core of its own: it
//! turns frames into requests and answers into frames, in order.

pub mod authorizer;
pub mod boot;
pub mod config;
pub mod connection;
pub mod control;
mod envelope;
pub mod format;
pub mod job;
pub mod journal;
pub mod loopback;
pub mod machine;
pub mod part;
pub mod peers;
pub mod shard;

pub use crate::authorizer::{AllowAll, Authorizer, Operation, Resource};
pub use crate::boot::{BootError, Node, boot};
pub use crate::config::{
    Advertised, Listener, NodeConfig, NodeConfigError, Roles, SecurityProtocol,
};
pub use crate::connection::{ConnOutput, Connection};
pub use crate::control::Control;
pub use crate::format::{FormatError, FormatOptions, FormatVoters, Formatted, format};
pub use crate::job::{Job, JobResult, LogDirNumber, Work};
pub use crate::journal::{Happening, JournalEntry, Level};
pub use crate::loopback::Loopback;
pub use crate::machine::{
    Answer, Caller, Channel, ConnId, Effect, Incoming, Input, Machine, MachineId, Peer, PeerError,
    Piece, Region, Ticket, Token, run_job,
};
pub use crate::part::{Changed, ImageUpdate, Part};
pub use crate::peers::{AnswerReader, FrameTooLong, LinkError, LinkOutput, PeerLink};
pub use crate::shard::{
    FoundLog, FoundTopic, Shard, ShardDir, ShardParams, ShardSettings, owner_shard,
};
/// Who votes in a quorum, for callers that format nodes.
pub use highwater_quorum::VoterSet;
