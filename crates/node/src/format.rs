//! Makes log directories a node's own, as kafka-storage does.

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_quorum::VoterSet;
use highwater_types::{DirectoryId, NodeId, Now};

use crate::config::NodeConfig;

/// How to format.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The cluster's id; `None` picks a random one.
    pub cluster_id: Option<String>,
    /// Who votes.
    pub voters: FormatVoters,
    /// Directories that are formatted already are left alone instead of refused.
    pub ignore_formatted: bool,
    /// Levels to finalise other than this build's own choice, by feature name.
    pub features: Vec<(String, i16)>,
}

/// Who votes in the quorum of a formatted controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatVoters {
    /// This node alone; the voters are kept in the metadata log (`--standalone`).
    Standalone,
    /// These; the voters are kept in the metadata log (`--initial-controllers`).
    Initial(VoterSet),
    /// Nobody knows yet (`--no-initial-controllers`).
    None,
    /// Whoever `controller.quorum.voters` names.
    Static,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// The cluster's id, found or picked.
    pub cluster_id: String,
    /// Each log directory in order: its id, and whether it was formatted now.
    pub dirs: Vec<(DirectoryId, bool)>,
}

/// Why nothing was formatted. Nothing that existed was overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The disk refused.
    #[error("{dir}: {error}")]
    Disk {
        /// The log directory.
        dir: String,
        /// What it said.
        error: DiskError,
    },
    /// Formatted before.
    #[error("log directory {dir} is already formatted; use --ignore-formatted to keep it as it is")]
    AlreadyFormatted {
        /// The log directory.
        dir: String,
    },
    /// Formatted for another cluster.
    #[error(
        "log directory {dir} belongs to cluster {found}, not {expected}; use that id, or another \
         directory"
    )]
    OtherCluster {
        /// The log directory.
        dir: String,
        /// Its cluster.
        found: String,
        /// The cluster asked for.
        expected: String,
    },
    /// Formatted for another node.
    #[error("log directory {dir} belongs to node {found}, but node.id is {expected}")]
    OtherNode {
        /// The log directory.
        dir: String,
        /// Its node.
        found: NodeId,
        /// The config's node.
        expected: NodeId,
    },
    /// meta.properties is there and unreadable.
    #[error("{dir}/meta.properties: {why}")]
    Identity {
        /// The log directory.
        dir: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not an id.
    #[error(
        "'{0}' is no cluster id: 22 characters of base64url, as random-uuid prints, are expected"
    )]
    ClusterId(String),
    /// A feature or level that there is not.
    #[error("feature {name} has no level {level} that this build can format")]
    Feature {
        /// The feature.
        name: String,
        /// The level.
        level: i16,
    },
    /// Options that do not go together.
    #[error("{0}")]
    Options(&'static str),
}

/// Formats the log directories of a node: `meta.properties` in each, and for a controller the
/// bootstrap records in `__cluster_metadata-0/00000000000000000000-0000000000.checkpoint`.
///
/// `seed` is random: ids are made of it.
///
/// # Errors
/// [`FormatError`]; nothing that existed was changed.
pub fn format<D: Disk>(
    config: &NodeConfig,
    dirs: &[D],
    options: &FormatOptions,
    now: Now,
    seed: [u8; 32],
    b: &Blocking,
) -> Result<Formatted, FormatError> {
    let _ = (config, dirs, options, now, seed, b);
    unimplemented!("format")
}
