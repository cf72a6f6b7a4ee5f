//! The control machine: metadata log, quorum, controller and broker lifecycle.
//!
//! [`Control`] has what every node has: the committed metadata, which it gives to the shards, the
//! broker's way up and down, snapshots, and the jobs for all of it. Its part in the metadata
//! quorum is a role: `leader` decides and appends as the active controller, `observer` follows
//! the leader of another node. Above the role nothing knows which it is; a broker reaches its
//! controller by wire requests also where both are one node.

mod controllers;
mod dirs;
pub(crate) mod files;
mod follow;
mod jobs;
pub(crate) mod leader;
pub(crate) mod lifecycle;
mod metadata_log;
mod observer;
mod params;
mod partitions;
mod publish;
mod role;
pub(crate) mod snapshots;
mod stop;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::{MetadataDelta, MetadataImage};
use highwater_types::{Millis, Mono, Now, Offset};

pub(crate) use self::leader::convert;
pub(crate) use self::metadata_log::MetadataLog;
pub use self::observer::{InstallSnapshot, LoadedSnapshot, SnapshotLoaded};
pub(crate) use self::params::{ControlDir, ControlParams};
pub use self::snapshots::{SnapshotWritten, WriteSnapshot};

use self::controllers::OwnRegistration;
use self::jobs::JobKind;
use self::lifecycle::{BrokerLifecycle, Phase};
use self::role::QuorumRole;
use self::snapshots::Snapshots;
use crate::authorizer::Authorizer;
use crate::config::NodeConfig;
use crate::job::{LogDirNumber, Work};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Answer, Effect, Incoming, Input, Machine, MachineId, Peer, Token};
use crate::part::Part;
use crate::shard::lifecycle::Removal;

/// The effects of one step.
type Effects<D> = Vec<Effect<D>>;

/// A step this much later than it was due means that the process stood still.
const STALL: Millis = Millis::new(100);

/// The control machine of a node: its part in the metadata quorum, and the broker's own way up and
/// down.
///
/// `committed` has the metadata below the high watermark; `image` is what the shards were given.
///
/// Invariant: `image` ends at or before `committed`, which ends at or before the metadata log.
#[derive(Debug)]
pub struct Control<D: Disk> {
    config: NodeConfig,
    cluster_id: Arc<str>,
    dirs: Vec<ControlDir<D>>,
    role: QuorumRole<D>,
    committed: MetadataDelta,
    image: Arc<MetadataImage>,
    /// Whether the shards were given an image.
    published: bool,
    /// `committed` comes from a snapshot that the shards have not seen yet.
    reloaded: bool,
    /// The active controller, as the shards know it.
    told_controller: Option<Peer>,
    /// The level of kraft.version, as the shards know it.
    told_kraft_version: i16,
    broker: BrokerLifecycle,
    own_registration: OwnRegistration,
    snapshots: Snapshots,
    tokens_used: u64,
    jobs: BTreeMap<Token, JobKind>,
    /// Files that go when their time has come.
    removals: Vec<(Mono, Removal<D>)>,
    closing_shards: BTreeSet<u16>,
    /// Directories that get no clean-shutdown marker.
    unclean: BTreeSet<LogDirNumber>,
    locks: Vec<D::Lock>,
    started: bool,
    failure: Option<String>,
    /// The time of the last step, and when the machine wanted to be ticked as of it.
    stepped: Mono,
    wanted: Option<Mono>,
    /// For the journal, at the end of the step.
    warnings: Vec<String>,
}

impl<D: Disk> Machine<D> for Control<D> {
    fn step(&mut self, now: Now, input: Input<D>, out: &mut Effects<D>) {
        if self.broker.phase == Phase::Stopped {
            return;
        }
        if self.started {
            self.forgive_standstill(now);
        } else {
            self.start(now, out);
        }
        match input {
            Input::Request(incoming) => self.handle_request(now, incoming, out),
            Input::Closed(conn) => {
                if let Some(leader) = self.role.leader_mut() {
                    leader.forget(conn);
                }
            }
            Input::Part { from, part } => self.handle_part(now, from, part, out),
            Input::PeerAnswer { token, result } => {
                let taken = self.registered_as_controller(now, token, &result)
                    || self.handle_metadata_answer(now, token, &result, out);
                if !taken {
                    self.handle_lifecycle_answer(now, token, result, out);
                }
            }
            Input::JobDone { token, result } => self.handle_job_done(now, token, result, out),
            Input::Tick => self.handle_tick(now, out),
            Input::Stop => self.lifecycle_stop(now, out),
        }
        self.follow(now, out);
        if let Some(leader) = self.role.leader_mut() {
            leader.wake_fetches(now, out);
            self.warnings.append(&mut leader.warnings);
        }
        self.sync_if_needed(now, out);
        self.snapshot_if_due(now, out);
        for text in std::mem::take(&mut self.warnings) {
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
        }
        self.stepped = now.mono;
        self.wanted = self.next_deadline();
        self.assert_invariants();
    }

    fn next_deadline(&self) -> Option<Mono> {
        if !self.started {
            return Some(Mono::START);
        }
        let log = self.role.log();
        let sync_retry = log.and_then(|log| log.log().sync_retry_at());
        if self.broker.phase >= Phase::Closing {
            return sync_retry;
        }
        let committed = self.committed.image().end.offset;
        let removal = self.removals.iter().map(|(at, _)| *at).min();
        let deadlines = [
            self.broker.next_deadline(),
            self.own_registration.next_deadline(),
            self.role.next_deadline(committed),
            self.snapshots.next_deadline(),
            removal,
            sync_retry,
        ];
        deadlines.into_iter().flatten().min()
    }
}

impl<D: Disk> Control<D> {
    /// The same with another authorizer than [`crate::AllowAll`].
    #[must_use]
    pub fn with_authorizer(mut self, authorizer: Arc<dyn Authorizer>) -> Self {
        if let Some(leader) = self.role.leader_mut() {
            leader.authorizer = authorizer;
        }
        self
    }

    /// The committed metadata that the shards were given, for those who look from outside:
    /// checkers, journals, metrics.
    #[must_use]
    pub const fn image(&self) -> &Arc<MetadataImage> {
        &self.image
    }

    /// Exclusive: all metadata below it is committed; `None` until that is known.
    #[must_use]
    pub fn metadata_high_watermark(&self) -> Option<Offset> {
        self.role.high_watermark()
    }

    /// Where the broker is on its way up or down, for people.
    #[must_use]
    pub fn phase(&self) -> String {
        format!("{:?}", self.broker.phase)
    }

    /// Whether the broker serves its clients.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.broker.phase == Phase::Running
    }

    /// The first step.
    fn start(&mut self, now: Now, out: &mut Effects<D>) {
        self.started = true;
        self.snapshots.begin(now.mono);
        self.lifecycle_begin(now);
        self.tell_controller(now, out);
        let begun = self.role.leader_mut().map(|leader| leader.start(now));
        if let Some(Err(why)) = begun {
            self.fail(why, out);
        }
    }

    fn handle_request(&mut self, now: Now, incoming: Incoming, out: &mut Effects<D>) {
        match self.role.leader_mut() {
            Some(leader) => leader.handle_request(now, &self.committed, incoming, out),
            // Others have no listener that could ask.
            None => out.push(Effect::Answer {
                ticket: incoming.ticket,
                answer: Answer::close(),
            }),
        }
    }

    fn handle_part(&mut self, now: Now, from: MachineId, part: Part<D>, out: &mut Effects<D>) {
        let MachineId::Shard(shard) = from else {
            unreachable!("control sends itself no parts");
        };
        match part {
            Part::LogsLoaded => {
                self.broker.loading.remove(&shard);
                self.lifecycle_logs_loaded(now, out);
            }
            Part::Closed { unclean } => {
                self.unclean.extend(unclean);
                self.closing_shards.remove(&shard);
                self.close_metadata_log(out);
            }
            Part::DirOffline { dir, why } => self.take_dir_offline(dir, &why, out),
            other => unreachable!("shard {shard} sent control {other:?}"),
        }
    }

    fn handle_tick(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase >= Phase::Closing {
            return;
        }
        self.register_as_controller(now, out);
        self.lifecycle_tick(now, out);
        if let Some(leader) = self.role.leader_mut() {
            leader.tick(now);
        }
        self.remove_due(now.mono, out);
    }

    /// After a standstill of this process, silence proves nothing. Whatever came meanwhile is
    /// worked off before the next tick, which judges.
    fn forgive_standstill(&mut self, now: Now) {
        let late = self.wanted.map_or(Millis::ZERO, |wanted| {
            now.mono.since(wanted.max(self.stepped))
        });
        if late > STALL
            && let Some(leader) = self.role.leader_mut()
        {
            leader.forgive(late, now.mono);
        }
    }

    /// Group commit: at most one flush is out; what comes meanwhile goes with the next. Nobody
    /// waits for an observer's flushes, so it has none: what a loss of power takes, it fetches
    /// again.
    fn sync_if_needed(&mut self, now: Now, out: &mut Effects<D>) {
        let syncing = self.has_job(|kind| matches!(kind, JobKind::Sync));
        let leader = self.role.leader_mut();
        let Some(leader) = leader.filter(|it| !syncing && !it.is_committed()) else {
            return;
        };
        match leader.log.sync_job(now) {
            Ok(Some(sync)) => {
                let dir = self.metadata_dir();
                self.job(dir, Work::SyncLog(sync), JobKind::Sync, out);
            }
            Ok(None) => {}
            Err(why) => self.fail(format!("the metadata log cannot be flushed: {why}"), out),
        }
    }

    fn assert_invariants(&self) {
        let committed = self.committed.image().end.offset;
        if self.published {
            let published = self.image.end.offset;
            assert!(
                published <= committed,
                "published {published}, committed {committed}"
            );
        }
        let Some(log) = self.role.log() else { return };
        let end = log.end();
        assert!(
            committed <= end,
            "applied up to {committed}, the log ends at {end}"
        );
        if let Some(leader) = self.role.leader() {
            let latest = leader.latest_end();
            assert!(
                latest == end,
                "replayed up to {latest}, the log ends at {end}"
            );
        }
    }
}
