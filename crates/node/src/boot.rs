//! Brings a node up: identity, locks, the metadata log, and the machines.

use highwater_disk::{Blocking, Disk};
use highwater_types::{NodeId, Now};

use crate::config::NodeConfig;
use crate::control::Control;
use crate::journal::JournalEntry;
use crate::shard::Shard;

/// A node that is ready to be driven. Each machine wants a first `Tick` at once.
#[derive(Debug)]
pub struct Node<D: Disk> {
    /// The control machine. It holds the locks of the log directories.
    pub control: Control<D>,
    /// The data shards, by number.
    pub shards: Vec<Shard<D>>,
    /// The cluster.
    pub cluster_id: String,
    /// The node.
    pub node_id: NodeId,
    /// What is worth telling about the start.
    pub events: Vec<JournalEntry>,
}

/// Why a node does not start. Each text says what, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BootError(pub String);

/// Starts a node on formatted log directories, ours or Apache Kafka's. `dirs` are the disks of
/// `config.log_dirs`, in order; `seed` is random and new for each start.
///
/// # Errors
/// [`BootError`]; nothing but locks was taken.
pub fn boot<D: Disk>(
    config: NodeConfig,
    dirs: Vec<D>,
    now: Now,
    seed: [u8; 32],
    b: &Blocking,
) -> Result<Node<D>, BootError> {
    let _ = (config, dirs, now, seed, b);
    unimplemented!("boot")
}
