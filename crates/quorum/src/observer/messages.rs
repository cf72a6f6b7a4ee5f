use highwater_types::{EpochEnd, ErrorCode, LeaderEpoch, Millis, NodeId, Offset, OffsetAndEpoch};

/// Where a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// The leader of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Who.
    pub id: NodeId,
    /// Where; `None` while nobody said.
    pub address: Option<Address>,
}

/// Where a fetch goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchTarget {
    /// Who is there; `None` when only the address is known.
    pub id: Option<NodeId>,
    /// Where.
    pub address: Address,
}

/// What an observer is told about itself at its start.
#[derive(Clone, Debug)]
pub struct ObserverSettings {
    /// `controller.quorum.bootstrap.servers`, or the addresses of `controller.quorum.voters`.
    pub bootstrap: Vec<Address>,
    /// `controller.quorum.fetch.timeout.ms`.
    pub fetch_timeout: Millis,
    /// `controller.quorum.retry.backoff.ms`.
    pub retry_backoff: Millis,
}

/// Whom an answer names as leader, in each answer to a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderTold {
    /// The newest epoch that the one who answers knows.
    pub epoch: LeaderEpoch,
    /// Who leads in it, if it knows.
    pub id: Option<NodeId>,
    /// Where the leader is, if it says.
    pub address: Option<Address>,
}

/// An answer to a fetch of the metadata log, without its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchAnswer {
    /// Of the partition.
    pub error: ErrorCode,
    /// The leader that is named.
    pub leader: LeaderTold,
    /// Where the logs part, if they do.
    pub diverging: Option<EpochEnd>,
    /// The snapshot to take instead, if the records are gone.
    pub snapshot: Option<OffsetAndEpoch>,
}

/// What is to be done after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchStep {
    /// Append the records, if there are any; then fetch again at once.
    Append,
    /// Cut the log here; then fetch again at once.
    Truncate(Offset),
    /// Get this snapshot from the leader, and go on behind it.
    TakeSnapshot(OffsetAndEpoch),
    /// Another epoch or leader is known now; fetch again at once.
    Moved,
    /// Fetch again after this time.
    Rest(Millis),
    /// What the leader says contradicts what is committed here: the node must stop.
    Contradiction(String),
}
