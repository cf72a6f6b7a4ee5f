//! A data shard: the partitions that it owns, and the requests and sessions of its connections.
//!
//! `Shard` is one struct with a sub-struct per concern; each concern's methods are an
//! `impl Shard` block in its own module. A partition that changes is marked with
//! [`partition::PartitionTable::mark_changed`]; at the end of each step every concern that waits
//! for partitions looks at the marked ones once (`Shard::settle`).

pub mod checkpoints;
pub mod fetch;
pub mod partition;
pub mod produce;
pub mod requests;

use std::path::PathBuf;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_types::{
    DirectoryId, Millis, Mono, NodeId, Now, Offset, TopicId, TopicIdPartition, TopicPartition,
};

use crate::job::LogDirNumber;
use crate::journal::{Happening, JournalEntry, Level};
use crate::machine::{Effect, Incoming, Input, Machine, MachineId, Token};
use crate::part::Part;
use fetch::FetchState;
use partition::PartitionTable;
use produce::ProduceState;

/// The effects of one step.
pub(crate) type Effects<D> = Vec<Effect<D>>;

/// One data shard of a node.
#[derive(Debug)]
pub struct Shard<D: Disk> {
    /// Its number, and how many there are.
    pub(crate) number: u16,
    pub(crate) shards: u16,
    pub(crate) node_id: NodeId,
    pub(crate) settings: Arc<ShardSettings>,
    pub(crate) dirs: Vec<DirState<D>>,
    /// The metadata that this shard acts on. Empty until the first `Part::Image`.
    pub(crate) image: Arc<MetadataImage>,
    pub(crate) partitions: PartitionTable<D>,
    pub(crate) produce: ProduceState,
    pub(crate) fetch: FetchState<D>,
    /// Source of session ids and of the uuids in the names of deleted directories.
    pub(crate) random: rand_chacha::ChaCha8Rng,
    next_token: u64,
}

/// What a shard is built from.
#[derive(Debug)]
pub struct ShardParams<D: Disk> {
    /// The shard's number, below `shards`.
    pub number: u16,
    /// How many shards the node has: at least 1.
    pub shards: u16,
    /// The node.
    pub node_id: NodeId,
    /// What the shard has to know of the node's configuration.
    pub settings: Arc<ShardSettings>,
    /// Every log directory, in the order of [`LogDirNumber`].
    pub dirs: Vec<ShardDir<D>>,
    /// Seeds the shard's own random source; different for each shard and start.
    pub seed: [u8; 32],
}

/// One log directory as a shard sees it at the start.
#[derive(Debug)]
pub struct ShardDir<D: Disk> {
    /// The files.
    pub disk: D,
    /// Its id of meta.properties.
    pub id: DirectoryId,
    /// Whether the clean-shutdown marker was there.
    pub clean_shutdown: bool,
    /// The logs in it that belong to this shard, by [`owner_shard`]; one without a topic id
    /// belongs to the owner of the all-zero id.
    pub found: Vec<FoundLog>,
}

/// A log that was found in a directory at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLog {
    /// The name of its directory, `<topic>-<partition>`.
    pub topic_partition: TopicPartition,
    /// The topic id of its partition.metadata; `None` when that is missing or unreadable.
    pub topic_id: Option<TopicId>,
    /// Its line in recovery-point-offset-checkpoint, if any.
    pub recovery_point: Option<Offset>,
    /// Its line in replication-offset-checkpoint, if any.
    pub high_watermark: Option<Offset>,
    /// Its line in log-start-offset-checkpoint, if any.
    pub log_start_offset: Option<Offset>,
}

/// What a shard has to know of the node's configuration.
#[derive(Clone, Debug)]
pub struct ShardSettings {
    /// Whether [`Level::Trace`] events are pushed.
    pub trace: bool,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval: Millis,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_checkpoint_interval: Millis,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub recovery_point_checkpoint_interval: Millis,
    /// `log.flush.start.offset.checkpoint.interval.ms`.
    pub log_start_checkpoint_interval: Millis,
    /// `num.recovery.threads.per.data.dir`: logs opened at once in one directory.
    pub recovery_jobs_per_dir_max: usize,
}

/// A log directory while the shard runs.
#[derive(Debug)]
pub(crate) struct DirState<D: Disk> {
    pub(crate) number: LogDirNumber,
    pub(crate) disk: D,
    pub(crate) id: DirectoryId,
    pub(crate) clean_shutdown: bool,
    pub(crate) offline: bool,
}

/// The shard that owns a partition: a fixed hash of topic id and partition, modulo `shards`.
///
/// The hash is FNV-1a over the id's 16 bytes and the partition's 4 (big-endian). It is no part of
/// any stored format: a node may start with another number of shards.
#[must_use]
pub fn owner_shard(partition: TopicIdPartition, shards: u16) -> u16 {
    let id = partition.topic_id.uuid().to_bytes();
    let number = partition.partition.raw().to_be_bytes();
    let hash = id.iter().chain(&number).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The low bits of FNV-1a are weak; fold the high half in.
    let owner = (hash ^ (hash >> 32)) % u64::from(shards.max(1));
    u16::try_from(owner).expect("a remainder of a u16")
}

impl<D: Disk> Machine<D> for Shard<D> {
    fn step(&mut self, now: Now, input: Input<D>, out: &mut Effects<D>) {
        match input {
            Input::Request(incoming) => self.handle_request(now, incoming, out),
            Input::Closed(conn) => {
                self.produce_connection_closed(conn);
                self.fetch_connection_closed(conn, out);
            }
            Input::Part { from, part } => self.handle_part(now, from, part, out),
            Input::PeerAnswer { token, result } => {
                self.handle_peer_answer(now, token, result, out);
            }
            Input::JobDone { token, result } => self.handle_job_done(now, token, result, out),
            Input::Tick => self.handle_tick(now, out),
            // Control hands leadership over first and then sends `Part::Close`.
            Input::Stop => {}
        }
        self.settle(now, out);
    }

    fn next_deadline(&self) -> Option<Mono> {
        unimplemented!()
    }
}

impl<D: Disk> Shard<D> {
    /// A shard that waits for its first image.
    #[must_use]
    pub fn new(params: ShardParams<D>) -> Self {
        let _ = params;
        unimplemented!()
    }

    /// This machine's id.
    #[must_use]
    pub const fn id(&self) -> MachineId {
        MachineId::Shard(self.number)
    }

    fn handle_request(&mut self, now: Now, incoming: Incoming, out: &mut Effects<D>) {
        let _ = (now, incoming, out);
        unimplemented!()
    }

    fn handle_part(&mut self, now: Now, from: MachineId, part: Part<D>, out: &mut Effects<D>) {
        let _ = (now, from, part, out);
        unimplemented!()
    }

    fn handle_job_done(
        &mut self,
        now: Now,
        token: Token,
        result: crate::JobResult<D>,
        out: &mut Effects<D>,
    ) {
        let _ = (now, token, result, out);
        unimplemented!()
    }

    fn handle_tick(&mut self, now: Now, out: &mut Effects<D>) {
        let _ = (now, out);
        unimplemented!()
    }

    /// Lets everything that waits for partitions look at those that changed in this step.
    fn settle(&mut self, now: Now, out: &mut Effects<D>) {
        let changed = self.partitions.take_changed();
        if !changed.is_empty() {
            self.produce_partitions_changed(now, &changed, out);
            self.fetch_partitions_changed(now, &changed, out);
        }
    }

    /// A token that this shard has not used yet.
    pub(crate) fn new_token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    /// Pushes a journal entry; [`Level::Trace`] only when the shard traces.
    pub(crate) fn journal(&self, level: Level, happening: Happening, out: &mut Effects<D>) {
        if level > Level::Trace || self.settings.trace {
            out.push(Effect::Event(JournalEntry { level, happening }));
        }
    }

    /// The path of a directory for messages.
    pub(crate) fn dir_path(&self, dir: LogDirNumber) -> PathBuf {
        let state = self.dirs.get(usize::from(dir.0));
        state.map_or_else(PathBuf::new, |it| it.disk.root().to_path_buf())
    }
}
