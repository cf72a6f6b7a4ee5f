//! The control machine: metadata log, quorum, controller and broker lifecycle.

mod controllers;
pub(crate) mod convert;
mod envelope;
pub(crate) mod files;
pub(crate) mod lifecycle;
mod metadata_log;
mod params;
mod requests;
pub(crate) mod snapshots;
mod stop;
mod topics;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::controller::{Controller, bootstrap_records};
use highwater_metadata::{MetadataDelta, MetadataImage, QuorumRecord};
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::{LeaderChangeMessage, VotersRecord, leader_change_message};
use highwater_records::stored::metadata::{AbortTransactionRecord, NoOpRecord};
use highwater_types::{Millis, Mono, Now, Offset};
use rand_chacha::ChaCha8Rng;

pub(crate) use self::params::{ControlDir, ControlParams};
pub use self::snapshots::{SnapshotWritten, WriteSnapshot};

use self::controllers::OwnRegistration;
use self::lifecycle::{BrokerLifecycle, Phase};
use self::metadata_log::MetadataLog;
use self::snapshots::{SnapshotFile, Snapshots};
use crate::authorizer::Authorizer;
use crate::config::NodeConfig;
use crate::job::{Job, JobResult, LogDirNumber, Work};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Effect, Input, Machine, MachineId, Token};
use crate::part::{Changed, ImageUpdate, Part};
use crate::shard::lifecycle::Removal;

/// The effects of one step.
type Effects<D> = Vec<Effect<D>>;

/// A step this much later than it was due means that the process stood still.
const STALL: Millis = Millis::new(100);

/// The control machine of a node: leader of the metadata quorum, active controller, and the
/// broker's own way up and down.
///
/// `latest` is the metadata with every record that was appended, on which decisions build;
/// `committed` has what is below the high watermark; `image` is what the shards were given.
///
/// Invariant: `image` ends at or before `committed`, which ends at or before `latest`.
#[derive(Debug)]
pub struct Control<D: Disk> {
    config: NodeConfig,
    cluster_id: Arc<str>,
    dirs: Vec<ControlDir<D>>,
    /// `None` once it is closed.
    log: Option<MetadataLog<D>>,
    kraft_version: i16,
    voters: Option<VotersRecord>,
    /// What the first start of a new cluster writes.
    bootstrap: Option<Vec<MetadataRecord>>,
    latest: MetadataDelta,
    committed: MetadataDelta,
    image: Arc<MetadataImage>,
    /// Whether the shards were given an image.
    published: bool,
    controller: Controller,
    /// Asked before anything is done for a caller.
    authorizer: Arc<dyn Authorizer>,
    broker: BrokerLifecycle,
    own_registration: OwnRegistration,
    snapshots: Snapshots,
    random: ChaCha8Rng,
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
    last_append: Mono,
    noop_interval: Option<Millis>,
    /// The time of the last step, and when the machine wanted to be ticked as of it.
    stepped: Mono,
    wanted: Option<Mono>,
    /// A batch waits for its flush for so long that no session is judged until it is committed.
    stalled: bool,
    /// For the journal, at the end of the step.
    warnings: Vec<String>,
}

/// What a job of this machine is for.
#[derive(Clone, Copy, Debug)]
enum JobKind {
    Sync,
    Snapshot(SnapshotFile),
    Remove,
    Close,
    Marker,
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
                if let Some(log) = self.log.as_mut() {
                    log.forget(|ticket| ticket.conn == conn);
                }
            }
            Input::Part { from, part } => self.handle_part(now, from, part, out),
            Input::PeerAnswer { token, result } => {
                if !self.registered_as_controller(now, token, &result) {
                    self.handle_peer_answer(now, token, result, out);
                }
            }
            Input::JobDone { token, result } => self.handle_job_done(now, token, result, out),
            Input::Tick => self.handle_tick(now, out),
            Input::Stop => self.lifecycle_stop(now, out),
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
        let log = self.log.as_ref();
        let sync_retry = log.and_then(|log| log.log().sync_retry_at());
        if self.broker.phase >= Phase::Closing {
            return sync_retry;
        }
        let expiry = self
            .controller
            .sessions
            .next_expiry(self.latest.image(), self.controller.session_timeout)
            .filter(|_| !self.stalled);
        let noop = self
            .noop_interval
            .map(|interval| self.last_append.plus(interval));
        let removal = self.removals.iter().map(|(at, _)| *at).min();
        let deadlines = [
            self.broker.next_deadline(),
            self.own_registration.next_deadline(),
            expiry,
            noop,
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
    pub fn with_authorizer(self, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, ..self }
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
        self.log
            .as_ref()
            .and_then(|log| log.leader().high_watermark())
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

    /// The first step: the epoch begins, and a new cluster gets its first records.
    fn start(&mut self, now: Now, out: &mut Effects<D>) {
        self.started = true;
        self.snapshots.begin(now.mono);
        self.last_append = now.mono;
        self.controller
            .sessions
            .begin(self.latest.image(), now.mono);
        for shard in 0..self.config.shards() {
            out.push(Effect::Part {
                to: MachineId::Shard(shard),
                part: Part::Controller(Some(self.to_controller())),
            });
        }
        if let Err(why) = self.begin_epoch(now) {
            self.fail(why, out);
        }
    }

    fn begin_epoch(&mut self, now: Now) -> Result<(), String> {
        let log = self.log.as_mut().expect("the log is open at the start");
        let is_new = self.bootstrap.is_some();
        let change = log.leader().leader_change();
        let voter = |id: &highwater_types::NodeId| leader_change_message::Voter {
            voter_id: *id,
            ..leader_change_message::Voter::default()
        };
        let mut records = vec![QuorumRecord::LeaderChange(LeaderChangeMessage {
            version: 0,
            leader_id: change.leader_id,
            voters: change.voters.iter().map(voter).collect(),
            granting_voters: change.granting_voters.iter().map(voter).collect(),
        })];
        if is_new && self.kraft_version > 0 {
            records.push(QuorumRecord::KraftVersion(self.kraft_version));
            records.extend(self.voters.clone().map(QuorumRecord::Voters));
        }
        let end = log
            .append_control(now, &records)
            .map_err(|why| why.to_string())?;
        self.latest.set_end(end);
        let appended =
            |it: Result<(), highwater_types::ErrorCode>| it.map_err(|why| why.to_string());
        if self.latest.in_transaction() {
            // The leader before died in the middle of a metadata transaction.
            let reason = Some("the controller changed".to_owned());
            appended(self.append(now, vec![AbortTransactionRecord { reason }.into()]))?;
        }
        if let Some(formatted) = self.bootstrap.take() {
            let records = bootstrap_records(formatted, &self.config.broker);
            appended(self.append(now, records))?;
        }
        self.own_registration.incarnation = self.random_uuid();
        Ok(())
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

    fn handle_job_done(
        &mut self,
        now: Now,
        token: Token,
        result: JobResult<D>,
        out: &mut Effects<D>,
    ) {
        let Some(kind) = self.jobs.remove(&token) else {
            return;
        };
        match (kind, result) {
            (JobKind::Sync, JobResult::Synced(synced)) => {
                let committed = match self.log.as_mut() {
                    Some(log) => log.synced(synced),
                    None => Ok(Vec::new()),
                };
                match committed {
                    Ok(batches) => {
                        self.forgive_stall(now, &batches);
                        self.committed(now, batches, out);
                    }
                    Err(why) => {
                        self.fail(format!("the metadata log cannot be flushed: {why}"), out)
                    }
                }
                self.close_metadata_log(out);
            }
            (JobKind::Snapshot(file), JobResult::SnapshotWritten(result)) => {
                self.snapshot_written(now, file, result, out);
                self.close_metadata_log(out);
            }
            (JobKind::Close, JobResult::LogClosed(result)) => {
                if let Err(why) = result {
                    self.warnings
                        .push(format!("the metadata log did not close cleanly: {why}"));
                    self.unclean.insert(self.metadata_dir());
                }
                self.write_markers(out);
            }
            (JobKind::Marker, JobResult::FilesWritten(result)) => {
                if let Err(why) = result {
                    self.warnings
                        .push(format!("a clean-shutdown marker is missing: {why}"));
                }
                self.stop_when_done(out);
            }
            (JobKind::Remove, JobResult::Removed(result)) => {
                if let Err(why) = result {
                    self.warnings
                        .push(format!("an old metadata file is still there: {why}"));
                }
            }
            (kind, other) => unreachable!("a job for {kind:?} brought {other:?}"),
        }
    }

    /// Batches are committed: they become visible, and those who waited are answered.
    fn committed(
        &mut self,
        now: Now,
        batches: Vec<metadata_log::PendingBatch>,
        out: &mut Effects<D>,
    ) {
        let any = !batches.is_empty();
        let mut answers = Vec::new();
        for batch in batches {
            for record in &batch.records {
                self.committed
                    .replay(record)
                    .expect("a record that fitted the latest image");
                if !matches!(record, MetadataRecord::NoOp(_)) {
                    self.snapshots.note_change();
                }
            }
            self.committed.set_end(batch.end);
            answers.extend(batch.answers);
        }
        if any {
            self.register_as_controller(now, out);
            self.lifecycle_leader_ready(now, out);
            self.publish(now, out);
        }
        for (ticket, body) in answers {
            self.answer(ticket, body, out);
        }
    }

    /// Gives the shards what is committed, at batch and transaction boundaries only. The first
    /// image waits for this life's registration: an older one could let a shard lead in an epoch
    /// of the life before (KAFKA-18106).
    fn publish(&mut self, now: Now, out: &mut Effects<D>) {
        if !self.published && !self.has_applied_registration() {
            return;
        }
        let Some((image, changes)) = self.committed.take() else {
            return;
        };
        self.image = Arc::new(image);
        let first = !std::mem::replace(&mut self.published, true);
        if first || !changes.is_empty() {
            let changed = if first || changes.broker_configs || changes.features {
                Changed::Everything
            } else {
                Changed::Topics(Arc::new(changes.topics))
            };
            for shard in 0..self.config.shards() {
                let update = ImageUpdate {
                    image: Arc::clone(&self.image),
                    changed: changed.clone(),
                };
                out.push(Effect::Part {
                    to: MachineId::Shard(shard),
                    part: Part::Image(update),
                });
            }
        }
        self.lifecycle_published(now, out);
    }

    fn handle_tick(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase >= Phase::Closing {
            return;
        }
        self.register_as_controller(now, out);
        self.lifecycle_tick(now, out);
        self.fence_silent(now);
        let idle = self
            .noop_interval
            .is_some_and(|it| self.last_append.plus(it) <= now.mono);
        if idle
            && self
                .append(now, vec![NoOpRecord::default().into()])
                .is_err()
        {
            self.last_append = now.mono;
        }
        let (due, later) = std::mem::take(&mut self.removals)
            .into_iter()
            .partition::<Vec<_>, _>(|(at, _)| *at <= now.mono);
        self.removals = later;
        for (_, removal) in due {
            self.remove(removal, out);
        }
    }

    /// After a standstill of this process, silence proves nothing: everybody gets the time back
    /// that nobody could have been heard in. Whatever came meanwhile is worked off before the
    /// next tick, which judges.
    fn forgive_standstill(&mut self, now: Now) {
        let late = self.wanted.map_or(Millis::ZERO, |wanted| {
            now.mono.since(wanted.max(self.stepped))
        });
        if late > STALL {
            self.controller.sessions.extend(late, now.mono);
        }
    }

    /// The same after a flush that took long: brokers may have waited for an answer that this
    /// controller held back.
    fn forgive_stall(&mut self, now: Now, batches: &[metadata_log::PendingBatch]) {
        let appended = batches.iter().map(|batch| batch.appended).min();
        let waited = appended.map_or(Millis::ZERO, |at| now.mono.since(at));
        if waited > STALL {
            self.controller.sessions.extend(waited, now.mono);
        }
        self.stalled = false;
    }

    /// Fences brokers that were silent for too long, one by one: each decision builds on the one
    /// before (KAFKA-13173).
    fn fence_silent(&mut self, now: Now) {
        let timeout = self.controller.session_timeout;
        let waits = self.log.as_ref().and_then(MetadataLog::waits_since);
        if waits.is_some_and(|since| now.mono.since(since) > STALL) {
            self.stalled = true;
            return;
        }
        while let Some(id) =
            self.controller
                .sessions
                .expired(self.latest.image(), now.mono, timeout)
        {
            let records = self.controller.fence_expired(self.latest.image(), id);
            self.warnings.push(format!(
                "broker {id} was silent for {} ms: fenced",
                timeout.as_u64()
            ));
            if self.append(now, records).is_err() {
                // The disk refuses; the session stays over and is looked at again.
                self.controller.sessions.extend(Millis::new(1000), now.mono);
                return;
            }
        }
    }

    /// Group commit: at most one flush is out; what comes meanwhile goes with the next.
    fn sync_if_needed(&mut self, now: Now, out: &mut Effects<D>) {
        let syncing = self.jobs.values().any(|kind| matches!(kind, JobKind::Sync));
        let Some(log) = self
            .log
            .as_mut()
            .filter(|log| !syncing && !log.is_committed())
        else {
            return;
        };
        match log.sync_job(now) {
            Ok(Some(sync)) => {
                let dir = self.metadata_dir();
                self.job(dir, Work::SyncLog(sync), JobKind::Sync, out);
            }
            Ok(None) => {}
            Err(why) => self.fail(format!("the metadata log cannot be flushed: {why}"), out),
        }
    }

    fn take_dir_offline(&mut self, number: LogDirNumber, why: &str, out: &mut Effects<D>) {
        self.unclean.insert(number);
        if let Some(dir) = self.dirs.get_mut(usize::from(number.0)) {
            dir.offline = true;
        }
        if number == self.metadata_dir() {
            self.fail(
                format!("the directory of the metadata log is offline: {why}"),
                out,
            );
        } else if self.online_dirs().next().is_none() {
            self.fail("every log directory is offline".to_owned(), out);
        }
    }

    fn job(&mut self, dir: LogDirNumber, work: Work<D>, kind: JobKind, out: &mut Effects<D>) {
        let token = self.new_token();
        self.jobs.insert(token, kind);
        out.push(Effect::Job {
            token,
            job: Job { dir, work },
        });
    }

    fn remove(&mut self, removal: Removal<D>, out: &mut Effects<D>) {
        let dir = self.metadata_dir();
        self.job(dir, Work::Remove(removal), JobKind::Remove, out);
    }

    const fn new_token(&mut self) -> Token {
        self.tokens_used += 1;
        Token(self.tokens_used)
    }

    fn online_dirs(&self) -> impl Iterator<Item = &ControlDir<D>> {
        self.dirs.iter().filter(|dir| !dir.offline)
    }

    fn offline_dirs(&self) -> impl Iterator<Item = &ControlDir<D>> {
        self.dirs.iter().filter(|dir| dir.offline)
    }

    fn metadata_dir(&self) -> LogDirNumber {
        LogDirNumber(u16::try_from(self.config.metadata_dir).expect("a handful of directories"))
    }

    fn metadata_disk(&self) -> &D {
        let dir = self.dirs.get(self.config.metadata_dir);
        &dir.expect("the metadata directory is one of them").disk
    }

    fn log_end(&self) -> Offset {
        self.log.as_ref().map_or(Offset::ZERO, MetadataLog::end)
    }

    /// The last metadata offset that this broker acts on: what the shards were given, or, before
    /// they were given anything, what is committed.
    fn applied_offset(&self) -> Offset {
        let end = if self.published {
            self.image.end
        } else {
            self.committed.image().end
        };
        end.offset.plus(-1)
    }

    fn assert_invariants(&self) {
        let (latest, committed) = (
            self.latest.image().end.offset,
            self.committed.image().end.offset,
        );
        assert!(
            committed <= latest,
            "committed up to {committed}, appended up to {latest}"
        );
        if self.published {
            let published = self.image.end.offset;
            assert!(
                published <= committed,
                "published {published}, committed {committed}"
            );
        }
        if let Some(log) = &self.log {
            let end = log.end();
            assert!(
                latest == end,
                "replayed up to {latest}, the log ends at {end}"
            );
        }
    }
}
