use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use crate::args::Bootstrap;

#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List the groups and their states.
    List {
        /// Only groups in this state (Stable, Empty, PreparingRebalance, ...). May be repeated.
        #[arg(long, value_name = "STATE")]
        state: Vec<String>,
        #[command(flatten)]
        at: Bootstrap,
    },
    /// Show where groups stand, how far they are behind, their members, and why they last
    /// rebalanced.
    Describe(DescribeArgs),
    /// Move the committed offsets of a group that has no members; says what it would do until
    /// `--execute` is given.
    Reset(Box<ResetArgs>),
    /// Delete groups, or what a group has committed in some topics.
    Delete {
        /// The groups.
        #[arg(required = true, value_name = "GROUP")]
        groups: Vec<String>,
        /// Delete only the offsets of this topic, or of some of its partitions. May be repeated.
        #[arg(long, short, value_name = "TOPIC[:N,N...]")]
        topic: Vec<String>,
        #[command(flatten)]
        at: Bootstrap,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// The groups [default: all].
    #[arg(value_name = "GROUP")]
    pub(crate) groups: Vec<String>,
    /// How many bytes of each partition to look through for control records, which count as lag
    /// but are never given to a consumer; what lies further on is not told apart.
    #[arg(long, value_name = "BYTES", default_value_t = 16 * 1024 * 1024)]
    pub(crate) count_bytes: u64,
    #[command(flatten)]
    pub(crate) at: Bootstrap,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("to").required(true)))]
#[command(group(ArgGroup::new("which").required(true).multiple(true)))]
pub(crate) struct ResetArgs {
    /// The group.
    pub(crate) group: String,
    #[command(flatten)]
    pub(crate) at: Bootstrap,
    /// This topic, or some of its partitions. May be repeated.
    #[arg(long, short, value_name = "TOPIC[:N,N...]", group = "which")]
    pub(crate) topic: Vec<String>,
    /// All topics in which the group has committed.
    #[arg(long, group = "which", conflicts_with = "topic")]
    pub(crate) all_topics: bool,
    /// To the oldest records.
    #[arg(long, group = "to")]
    pub(crate) to_earliest: bool,
    /// To the end: only what comes from now on.
    #[arg(long, group = "to")]
    pub(crate) to_latest: bool,
    /// To where the group stands: commits the same once more, or the end where nothing is.
    #[arg(long, group = "to")]
    pub(crate) to_current: bool,
    /// To this offset.
    #[arg(
        long,
        value_name = "OFFSET",
        group = "to",
        allow_negative_numbers = true
    )]
    pub(crate) to_offset: Option<i64>,
    /// By so many offsets, back if negative.
    #[arg(long, value_name = "N", group = "to", allow_negative_numbers = true)]
    pub(crate) shift_by: Option<i64>,
    /// To the first record of this time (2026-11-30T12:00:00, with or without .sss and Z or
    /// +hh:mm; without a zone it is UTC).
    #[arg(long, value_name = "TIME", group = "to")]
    pub(crate) to_datetime: Option<String>,
    /// To the first record that is no older than this (90s, 15m, 2h, 7d, or ISO 8601's PT2H).
    #[arg(long, value_name = "SPAN", group = "to")]
    pub(crate) by_duration: Option<String>,
    /// To what a file says: lines of TOPIC,PARTITION,OFFSET, as Kafka's tool exports.
    #[arg(
        long,
        value_name = "FILE",
        groups = ["to", "which"],
        conflicts_with_all = ["topic", "all_topics"]
    )]
    pub(crate) from_file: Option<PathBuf>,
    /// Do it, instead of saying what would be done.
    #[arg(long)]
    pub(crate) execute: bool,
}
