//! A data shard: the partitions that it owns, and the requests and sessions of its connections.
//!
//! `Shard` is one struct with a sub-struct per concern; each concern's methods are an
//! `impl Shard` block in its own module. A partition that changes is marked with
//! [`partition::PartitionTable::mark_changed`]; at the end of each step every concern that waits
//! for partitions looks at the marked ones once (`Shard::settle`).

mod assignments;
pub mod checkpoints;
pub(crate) mod describe;
mod epochs;
pub mod fetch;
mod follow;
mod forward;
pub mod groups;
mod isr;
pub mod lifecycle;
mod list_offsets;
pub mod lookup;
mod params;
pub mod partition;
pub mod produce;
mod producer_ids;
pub mod requests;
pub(crate) mod serving;

use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_metadata::config::BrokerConfig;
use highwater_protocol::{ListenerKind, Request};
use highwater_replication::Output;
use highwater_types::{Mono, NodeId, Now};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

pub use self::params::{FoundLog, FoundTopic, ShardDir, ShardParams, ShardSettings, owner_shard};
use crate::authorizer::{AllowAll, Authorizer, Operation, Resource};
use crate::job::JobResult;
use crate::journal::{Happening, JournalEntry, Level};
use crate::machine::{Caller, Effect, Incoming, Input, Machine, MachineId, Peer, Token};
use crate::part::Part;
use assignments::DirAssignments;
use checkpoints::CheckpointState;
use fetch::FetchState;
use follow::FollowState;
use groups::GroupState;
use isr::IsrState;
use lifecycle::LifecycleState;
use lifecycle::dirs::LogDir;
use partition::PartitionTable;
use produce::ProduceState;
use requests::ServeState;
use serving::ServingSettings;

/// The effects of one step.
pub(crate) type Effects<D> = Vec<Effect<D>>;

/// One data shard of a node.
#[derive(Debug)]
pub struct Shard<D: Disk> {
    /// Its number, below `shards`.
    pub(crate) number: u16,
    /// How many shards the node has.
    pub(crate) shards: u16,
    pub(crate) node_id: NodeId,
    pub(crate) broker_config: Arc<BrokerConfig>,
    pub(crate) settings: ShardSettings,
    pub(crate) dirs: Vec<LogDir<D>>,
    /// The metadata that this shard acts on. Empty until the first `Part::Image`.
    pub(crate) image: Arc<MetadataImage>,
    /// The active controller, as control knows it.
    pub(crate) controller: Option<Peer>,
    pub(crate) partitions: PartitionTable<D>,
    pub(crate) lifecycle: LifecycleState<D>,
    pub(crate) checkpoints: CheckpointState,
    pub(crate) produce: ProduceState,
    pub(crate) fetch: FetchState<D>,
    pub(crate) follow: FollowState,
    pub(crate) serve: ServeState,
    pub(crate) groups: GroupState,
    pub(crate) assignments: DirAssignments,
    pub(crate) isr: IsrState,
    /// Asked before anything is done for a client.
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// Source of session ids and of the uuids in the names of deleted directories.
    pub(crate) random: ChaCha8Rng,
    /// Outputs of replicas on their way to be performed; kept for its memory.
    outputs: Vec<Output>,
    /// The same of a fetch.
    fetch_outputs: fetch::FetchOutputs,
    tokens_used: u64,
}

impl<D: Disk> Machine<D> for Shard<D> {
    fn step(&mut self, now: Now, input: Input<D>, out: &mut Effects<D>) {
        match input {
            Input::Request(incoming) => self.handle_request(now, incoming, out),
            Input::Closed(conn) => {
                self.produce_connection_closed(conn, out);
                self.fetch_connection_closed(conn, out);
                self.serve_connection_closed(conn);
                self.groups_connection_closed(conn, out);
            }
            Input::Part { from, part } => self.handle_part(now, from, part, out),
            Input::PeerAnswer { token, result } => {
                if self.follow.expects(token) {
                    self.handle_leader_answer(now, token, result, out);
                } else if !self.handle_isr_answer(now, token, &result, out) {
                    self.handle_peer_answer(now, token, result, out);
                }
            }
            Input::JobDone { token, result } => self.handle_job_done(now, token, result, out),
            Input::Tick => self.handle_tick(now, out),
            // Control hands leadership over first and then sends `Part::Close`.
            Input::Stop => {}
        }
        self.settle(now, out);
        self.send_fetches(now, out);
        self.ask_for_isrs(now, out);
        self.tell_directories(now, out);
        self.forwarding_settle(now, out);
    }

    fn next_deadline(&self) -> Option<Mono> {
        let deadlines = [
            self.lifecycle_next_deadline(),
            self.checkpoints.next_deadline(),
            self.produce.next_deadline(),
            self.fetch.next_deadline(),
            self.follow.next_deadline(),
            self.serve.next_deadline(),
            self.groups.next_deadline(),
            self.assignments.next_deadline(),
            self.isr.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }
}

impl<D: Disk> Shard<D> {
    /// A shard that waits for its first image.
    ///
    /// # Panics
    /// When `params` names no such shard: the caller's mistake.
    #[must_use]
    pub fn new(params: ShardParams<D>) -> Self {
        let ShardParams {
            number,
            shards,
            node_id,
            cluster_id,
            kraft_version,
            broker_config,
            trace,
            old_rule,
            dirs,
            seed,
        } = params;
        assert!(number < shards, "shard {number} of {shards}");
        let settings = ShardSettings::new(&broker_config, trace, old_rule);
        let serving = ServingSettings::new(cluster_id, kraft_version, &broker_config);
        let mut random = ChaCha8Rng::from_seed(seed);
        let mut session_seed = [0; 32];
        random.fill_bytes(&mut session_seed);
        let (dirs, inventory) = lifecycle::dirs::split(dirs);
        Self {
            number,
            shards,
            node_id,
            groups: GroupState::new(&broker_config),
            follow: FollowState::new(&broker_config),
            isr: IsrState::default(),
            lifecycle: LifecycleState::new(inventory.found, inventory.leftovers),
            checkpoints: CheckpointState::new(number, shards, dirs.len(), &settings),
            broker_config,
            settings,
            dirs,
            image: Arc::new(MetadataImage::default()),
            controller: None,
            partitions: PartitionTable::default(),
            produce: ProduceState::default(),
            fetch: FetchState::new(&serving, shards, ChaCha8Rng::from_seed(session_seed)),
            serve: ServeState::new(serving),
            assignments: DirAssignments::default(),
            authorizer: Arc::new(AllowAll),
            random,
            outputs: Vec::new(),
            fetch_outputs: Vec::new(),
            tokens_used: 0,
        }
    }

    /// The same with another authorizer than [`AllowAll`].
    #[must_use]
    pub fn with_authorizer(self, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, ..self }
    }

    /// This machine's id.
    #[must_use]
    pub const fn id(&self) -> MachineId {
        MachineId::Shard(self.number)
    }

    /// The partitions of this shard, for those who look from outside: checkers, journals, metrics.
    #[must_use]
    pub const fn partitions(&self) -> &PartitionTable<D> {
        &self.partitions
    }

    fn handle_request(&mut self, now: Now, incoming: Incoming, out: &mut Effects<D>) {
        if matches!(incoming.request, Request::Produce(_)) {
            self.handle_produce(now, incoming, out);
        } else {
            self.handle_other_request(now, incoming, out);
        }
    }

    fn handle_part(&mut self, now: Now, from: MachineId, part: Part<D>, out: &mut Effects<D>) {
        match part {
            Part::Image(update) => self.handle_image(now, update, out),
            Part::KraftVersion(level) => self.serve.settings.kraft_version = level,
            Part::Controller(controller) => self.controller = controller,
            Part::Close => self.handle_close(now, out),
            Part::DirOffline { dir, why } => self.take_dir_offline(now, dir, &why, out),
            Part::Produce(part) => self.handle_produce_part(now, *part, out),
            Part::Checkpoint(part) => self.handle_checkpoint_part(now, *part, out),
            Part::Fetch(part) => self.handle_fetch_part(now, from, *part, out),
            Part::Lookup(part) => self.handle_lookup_part(now, from, *part, out),
            Part::Groups(part) => self.handle_group_part(now, from, *part, out),
            Part::LogsLoaded | Part::Closed { .. } => {
                unreachable!("{from:?} sent {:?} a part that is for control", self.id())
            }
        }
    }

    fn handle_job_done(
        &mut self,
        now: Now,
        token: Token,
        result: JobResult<D>,
        out: &mut Effects<D>,
    ) {
        match result {
            JobResult::Opened(result) => self.handle_opened(now, token, *result, out),
            JobResult::Synced(result) => self.handle_synced(now, token, result, out),
            JobResult::LogClosed(result) => self.handle_log_closed(now, token, result, out),
            JobResult::Removed(result) => self.handle_removed(result, out),
            JobResult::BatchPrepared(result) => {
                self.handle_batch_prepared(now, token, *result, out);
            }
            JobResult::FilesWritten(result) => self.handle_files_written(now, token, result, out),
            JobResult::GroupsRead(read) => self.handle_groups_read(now, token, read, out),
            JobResult::TimesFound(found) => self.handle_times_found(token, found, out),
            JobResult::SnapshotWritten(_) | JobResult::SnapshotLoaded(_) => {
                unreachable!("{:?} has no metadata snapshots", self.id())
            }
        }
    }

    fn handle_tick(&mut self, now: Now, out: &mut Effects<D>) {
        self.lifecycle_tick(now, out);
        self.checkpoints_tick(now, out);
        self.produce_tick(now, out);
        self.fetch_tick(now, out);
        self.follow_tick(now);
        self.groups_tick(now, out);
        self.isr_tick(now, out);
    }

    /// Lets everything that waits for partitions look at those that changed in this step.
    fn settle(&mut self, now: Now, out: &mut Effects<D>) {
        loop {
            let changed = self.partitions.take_changed();
            if changed.is_empty() {
                return;
            }
            self.produce_partitions_changed(&changed, out);
            self.fetch_partitions_changed(now, &changed, out);
            self.groups_partitions_changed(now, &changed, out);
            self.follow_partitions_changed(now, &changed, out);
            self.partitions.give_back(changed);
        }
    }

    /// Whether `caller` may do `operation` on `resource`.
    pub(crate) fn allows(
        &self,
        caller: &Caller,
        operation: Operation,
        resource: Resource<'_>,
    ) -> bool {
        self.authorizer.allows(caller, operation, resource)
    }

    /// The active controller; a peer that nobody reaches while it is not known.
    pub(crate) fn to_controller(&self) -> Peer {
        let nobody = || Peer::unknown(NodeId::NONE, ListenerKind::Controller);
        self.controller.clone().unwrap_or_else(nobody)
    }

    /// A token that this shard has not used yet.
    pub(crate) const fn new_token(&mut self) -> Token {
        self.tokens_used += 1;
        Token(self.tokens_used)
    }

    /// Pushes a journal entry; [`Level::Trace`] only when the shard traces.
    pub(crate) fn journal(&self, level: Level, happening: Happening, out: &mut Effects<D>) {
        if level > Level::Trace || self.settings.trace {
            out.push(Effect::Event(JournalEntry { level, happening }));
        }
    }
}
