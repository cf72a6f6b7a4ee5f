use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use highwater_types::NodeId;

use crate::group_args::GroupCommand;

/// A Kafka-compatible replicated log in one binary.
#[derive(Debug, Parser)]
#[command(name = "highwater", version)]
pub(crate) struct Cli {
    /// How results are printed.
    #[arg(long, global = true, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Table,
    /// For programs: one JSON value, or one per line where results keep coming.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node: broker and controller in one process.
    Start(StartArgs),
    /// Prepare log directories for their first start, as kafka-storage does.
    Format(FormatArgs),
    /// Make, list, describe and delete topics.
    #[command(subcommand)]
    Topic(TopicCommand),
    /// Send lines of standard input to a topic, one record each.
    Produce(ProduceArgs),
    /// Print the records of a topic; waits for more until it is stopped.
    Consume(ConsumeArgs),
    /// List, describe, move and delete consumer groups.
    #[command(subcommand)]
    Group(GroupCommand),
    /// Look at the cluster.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Look into log directories and their files.
    #[command(subcommand)]
    Log(LogCommand),
    /// Run nodes under the deterministic simulator.
    Sim(SimArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// A file of settings in Kafka's format (server.properties).
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the data is kept; formatted at the first start [default: ./highwater-data, or the
    /// log.dirs of the configuration].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Where clients connect; port 0 picks a free one [default: 127.0.0.1:9092, or the listeners
    /// of the configuration].
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Brokers to run in this process.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) brokers: u32,
    /// One setting, in Kafka's spelling; wins over the file. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FormatArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FormatCommand>,
    /// The settings that name the log directories.
    #[arg(long, short, value_name = "FILE", required = true)]
    pub(crate) config: Option<PathBuf>,
    /// The cluster's id: 22 characters of base64url, as `format random-uuid` prints.
    #[arg(long, short = 't', value_name = "ID", required = true)]
    pub(crate) cluster_id: Option<String>,
    /// Make this node the only controller of a new quorum.
    #[arg(long, short = 's')]
    pub(crate) standalone: bool,
    /// The voters of a new quorum: ID@HOST:PORT:DIRECTORY-ID, separated by commas.
    #[arg(
        long,
        short = 'I',
        value_name = "VOTERS",
        conflicts_with = "standalone"
    )]
    pub(crate) initial_controllers: Option<String>,
    /// This node joins a quorum that exists already.
    #[arg(long, short = 'N', conflicts_with_all = ["standalone", "initial_controllers"])]
    pub(crate) no_initial_controllers: bool,
    /// Leave directories that are formatted already as they are.
    #[arg(long, short = 'g')]
    pub(crate) ignore_formatted: bool,
    /// The release whose features to start with, such as 4.4 or 4.4-IV2.
    #[arg(long, short = 'r', value_name = "VERSION")]
    pub(crate) release_version: Option<String>,
    /// The level of one feature. May be repeated.
    #[arg(long, short = 'f', value_name = "NAME=LEVEL")]
    pub(crate) feature: Vec<String>,
    /// A SCRAM user to start with. May be repeated.
    #[arg(long, short = 'S', value_name = "SCRAM")]
    pub(crate) add_scram: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FormatCommand {
    /// Print a new cluster id.
    RandomUuid,
}

/// Where a client command finds the cluster. It may stand before the verb too, see `placing`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Bootstrap {
    /// Any brokers of the cluster, separated by commas.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "HIGHWATER_BOOTSTRAP",
        default_value = "127.0.0.1:9092",
        value_parser = addresses
    )]
    pub(crate) bootstrap: String,
}

/// Addresses as `--bootstrap` takes them. Only their form is looked at.
fn addresses(text: &str) -> Result<String, String> {
    let is_address = |address: &str| {
        let parts = address.rsplit_once(':');
        parts.is_some_and(|(host, port)| {
            !host.is_empty()
                && !host.contains(['/', ' '])
                && port.parse().is_ok_and(|it: u16| it > 0)
        })
    };
    let mut all = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let expected = "HOST:PORT is expected, such as 127.0.0.1:9092 or [::1]:9092";
    match all.clone().find(|address| !is_address(address)) {
        Some(bad) => Err(format!("{bad}: {expected}")),
        None if all.next().is_none() => Err(expected.to_owned()),
        None => Ok(text.to_owned()),
    }
}

/// The brokers of each partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment(pub(crate) Vec<Vec<NodeId>>);

/// An assignment as Kafka's tools take it.
fn assignment(text: &str) -> Result<Assignment, String> {
    let expected = "broker ids are expected: BROKER:BROKER for each partition, such as 1:2,2:1";
    let broker = |id: &str| match id.trim().parse::<i32>() {
        Ok(id) if id >= 0 => Ok(NodeId::new(id)),
        _ => Err(format!("{id:?}: {expected}")),
    };
    let partition = |text: &str| text.split(':').map(broker).collect();
    let partitions: Result<Vec<Vec<NodeId>>, String> = text.split(',').map(partition).collect();
    partitions.map(Assignment)
}

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Make a topic.
    Create {
        /// Its name.
        topic: String,
        /// Its number of partitions [default: the broker's num.partitions].
        #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
        partitions: Option<i32>,
        /// Replicas of each partition [default: the broker's default.replication.factor].
        #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
        replication_factor: Option<i16>,
        /// The brokers of each partition, the preferred leader first, such as 1:2:3,2:3:1
        /// [default: the controller chooses].
        #[arg(
            long,
            value_name = "BROKERS",
            value_parser = assignment,
            conflicts_with_all = ["partitions", "replication_factor"]
        )]
        replica_assignment: Option<Assignment>,
        /// One config of the topic. May be repeated.
        #[arg(long, short, value_name = "KEY=VALUE")]
        config: Vec<String>,
        #[command(flatten)]
        at: Bootstrap,
    },
    /// List the topics.
    List {
        /// List internal topics too.
        #[arg(long)]
        internal: bool,
        #[command(flatten)]
        at: Bootstrap,
    },
    /// Show the replicas of topics and where they stand.
    Describe {
        /// The topics [default: all].
        topics: Vec<String>,
        #[command(flatten)]
        at: Bootstrap,
    },
    /// Delete topics with all their records.
    Delete {
        /// The topics.
        #[arg(required = true)]
        topics: Vec<String>,
        #[command(flatten)]
        at: Bootstrap,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ProduceArgs {
    /// The topic.
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) at: Bootstrap,
    /// Send everything to this partition [default: by key, or evenly].
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    pub(crate) partition: Option<i32>,
    /// What stands between key and value in a line [default: lines have no keys].
    #[arg(long, value_name = "TEXT")]
    pub(crate) key_separator: Option<String>,
    /// Who must have a record before it counts as sent: 0, 1 or all.
    #[arg(
        long,
        value_name = "ACKS",
        default_value = "all",
        allow_negative_numbers = true
    )]
    pub(crate) acks: String,
    /// none, gzip, snappy, lz4 or zstd.
    #[arg(long, value_name = "CODEC", default_value = "none")]
    pub(crate) compression: String,
    /// One setting of the producer, in Kafka's spelling (linger.ms=5). May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) property: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// The topics.
    #[arg(required = true, value_name = "TOPIC")]
    pub(crate) topics: Vec<String>,
    #[command(flatten)]
    pub(crate) at: Bootstrap,
    /// Be a member of this consumer group: read the partitions that it deals out, each from where
    /// the group stands, and commit what was read.
    #[arg(long, short, value_name = "GROUP", conflicts_with_all = ["partition", "offset"])]
    pub(crate) group: Option<String>,
    /// Begin with the oldest record [default: with records to come]; in a group only where it has
    /// not committed yet.
    #[arg(long, conflicts_with = "offset")]
    pub(crate) from_beginning: bool,
    /// Only these partitions, of each topic. May be repeated [default: all].
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    pub(crate) partition: Vec<i32>,
    /// Begin at this offset, at `earliest` or at `latest`.
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    pub(crate) offset: Option<String>,
    /// Stop after this many records.
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_messages: Option<u64>,
    /// Stop at the end instead of waiting for more.
    #[arg(long, short = 'e')]
    pub(crate) exit_at_end: bool,
    /// Print keys before values.
    #[arg(long)]
    pub(crate) print_key: bool,
    /// Print partitions.
    #[arg(long)]
    pub(crate) print_partition: bool,
    /// Print offsets.
    #[arg(long)]
    pub(crate) print_offset: bool,
    /// Print timestamps.
    #[arg(long)]
    pub(crate) print_timestamp: bool,
    /// Print headers.
    #[arg(long)]
    pub(crate) print_headers: bool,
    /// What stands between what is printed of a record.
    #[arg(long, value_name = "TEXT", default_value = "\t")]
    pub(crate) key_separator: String,
    /// Leave out the records of open and aborted transactions.
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) read_committed: bool,
    /// One setting of the consumer, in Kafka's spelling (fetch.max.wait.ms=100). May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) property: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the cluster's brokers and all replicas.
    Status {
        #[command(flatten)]
        at: Bootstrap,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Print what is in log, index, snapshot and checkpoint files.
    Dump(DumpArgs),
    /// Check data directories without changing them.
    Verify {
        /// Log directories, of Highwater or of Apache Kafka.
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print each record, with its key and value.
    #[arg(long)]
    pub(crate) print_data_log: bool,
    /// Print each record, without its key and value.
    #[arg(long)]
    pub(crate) deep_iteration: bool,
    /// Print the records of a metadata log in words.
    #[arg(long, group = "decoder")]
    pub(crate) cluster_metadata_decoder: bool,
    /// Print the records of __consumer_offsets in words.
    #[arg(long, group = "decoder")]
    pub(crate) offsets_decoder: bool,
    /// Print the records of __transaction_state in words.
    #[arg(long, group = "decoder")]
    pub(crate) transaction_log_decoder: bool,
    /// Print the records of __share_group_state in words.
    #[arg(long, group = "decoder")]
    pub(crate) share_group_state_decoder: bool,
    /// Leave out the metadata of each record.
    #[arg(long)]
    pub(crate) skip_record_metadata: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Play a scenario file and print its trace.
    Run {
        /// The scenario.
        file: PathBuf,
    },
    /// Run one random simulation.
    Seed {
        /// Its seed.
        #[arg(allow_negative_numbers = true)]
        seed: u64,
        /// Of a cluster of three to five brokers, not of one node.
        #[arg(long)]
        cluster: bool,
    },
}
