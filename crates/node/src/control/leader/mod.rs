//! The leader of the metadata quorum, which is the active controller.

mod answers;
mod append;
mod controllers;
pub(crate) mod convert;
mod describe_cluster;
mod describe_quorum;
mod elect;
mod envelope;
mod fetch;
mod fetch_snapshot;
mod requests;
mod sessions;
mod topics;

use std::collections::VecDeque;
use std::sync::Arc;

use highwater_disk::Disk;
use highwater_log::Synced;
use highwater_metadata::controller::{Controller, bootstrap_records};
use highwater_metadata::{MetadataDelta, QuorumRecord};
use highwater_quorum::LeaderState;
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::{LeaderChangeMessage, leader_change_message};
use highwater_records::stored::metadata::{AbortTransactionRecord, NoOpRecord};
use highwater_types::{ErrorCode, Millis, Mono, NodeId, Now, Offset};
use rand_chacha::ChaCha8Rng;

pub(super) use self::append::{PendingBatch, answer};

use self::fetch::Followers;
use super::metadata_log::MetadataLog;
use crate::authorizer::Authorizer;
use crate::config::NodeConfig;
use crate::machine::{ConnId, Ticket};

/// The leader of the metadata quorum: it decides, appends and commits.
///
/// Invariant: `latest` is the metadata with every record of `log`; decisions build on it.
/// Invariant: `pending` holds, in order, every batch between the high watermark and the log end
/// offset that this leader appended.
#[derive(Debug)]
pub(super) struct Leader<D: Disk> {
    config: NodeConfig,
    cluster_id: Arc<str>,
    pub(super) log: MetadataLog<D>,
    state: LeaderState,
    pending: VecDeque<PendingBatch>,
    latest: MetadataDelta,
    controller: Controller,
    /// Asked before anything is done for a caller.
    pub(super) authorizer: Arc<dyn Authorizer>,
    /// Those that follow the log.
    followers: Followers,
    /// What the first start of a new cluster writes.
    bootstrap: Option<Vec<MetadataRecord>>,
    random: ChaCha8Rng,
    last_append: Mono,
    noop_interval: Option<Millis>,
    /// `leader.imbalance.check.interval.seconds`, unless leaders stay where they are.
    balance_interval: Option<Millis>,
    /// When preferred leaders were looked at last.
    balanced: Mono,
    /// A batch waits for its flush for so long that no session is judged until it is committed.
    stalled: bool,
    /// Nothing is taken any more: what was appended last may never be committed.
    failed: bool,
    /// The node is on its way down: whoever follows it is told so.
    resigned: bool,
    /// For the journal, at the end of the step.
    pub(super) warnings: Vec<String>,
}

/// What a leader begins with.
#[derive(Debug)]
pub(super) struct LeaderParams<D: Disk> {
    pub(super) config: NodeConfig,
    pub(super) cluster_id: Arc<str>,
    pub(super) log: MetadataLog<D>,
    pub(super) state: LeaderState,
    pub(super) latest: MetadataDelta,
    pub(super) bootstrap: Option<Vec<MetadataRecord>>,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) random: ChaCha8Rng,
}

impl<D: Disk> Leader<D> {
    pub(super) fn new(params: LeaderParams<D>) -> Self {
        let config = params.config;
        let mut controller = Controller::new(
            Arc::clone(&params.cluster_id),
            config.node_id,
            Arc::clone(&config.broker),
        );
        controller.old_rule = config.old_rule;
        Self {
            cluster_id: params.cluster_id,
            log: params.log,
            state: params.state,
            pending: VecDeque::new(),
            latest: params.latest,
            controller,
            authorizer: params.authorizer,
            followers: Followers::default(),
            bootstrap: params.bootstrap,
            random: params.random,
            last_append: Mono::START,
            noop_interval: noop_interval(&config),
            balance_interval: balance_interval(&config),
            balanced: Mono::START,
            stalled: false,
            failed: false,
            resigned: false,
            warnings: Vec::new(),
            config,
        }
    }

    /// Begins the epoch: a new cluster gets its first records.
    pub(super) fn start(&mut self, now: Now) -> Result<(), String> {
        (self.last_append, self.balanced) = (now.mono, now.mono);
        let image = self.latest.image();
        self.controller.sessions.begin(image, now.mono);
        let mut records = vec![QuorumRecord::LeaderChange(self.leader_change())];
        if self.bootstrap.is_some() && self.log.kraft_version > 0 {
            records.push(QuorumRecord::KraftVersion(self.log.kraft_version));
            records.extend(self.log.voters.clone().map(QuorumRecord::Voters));
        }
        let appended = |it: Result<(), ErrorCode>| it.map_err(|why| why.to_string());
        self.append_control(now, &records)?;
        if self.latest.in_transaction() {
            // The leader before died in the middle of a metadata transaction.
            let reason = Some("the controller changed".to_owned());
            appended(self.append(now, vec![AbortTransactionRecord { reason }.into()]))?;
        }
        if let Some(formatted) = self.bootstrap.take() {
            let records = bootstrap_records(formatted, &self.config.broker);
            appended(self.append(now, records))?;
        }
        Ok(())
    }

    fn leader_change(&self) -> LeaderChangeMessage {
        let change = self.state.leader_change();
        let voter = |id: &NodeId| leader_change_message::Voter {
            voter_id: *id,
            ..leader_change_message::Voter::default()
        };
        LeaderChangeMessage {
            version: 0,
            leader_id: change.leader_id,
            voters: change.voters.iter().map(voter).collect(),
            granting_voters: change.granting_voters.iter().map(voter).collect(),
        }
    }

    pub(super) const fn high_watermark(&self) -> Option<Offset> {
        self.state.high_watermark()
    }

    /// The end of what was appended and replayed.
    pub(super) const fn latest_end(&self) -> Offset {
        self.latest.image().end.offset
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        let timeout = self.controller.session_timeout;
        let expiry = self
            .controller
            .sessions
            .next_expiry(self.latest.image(), timeout)
            .filter(|_| !self.stalled);
        let noop = self.noop_interval.map(|it| self.last_append.plus(it));
        let fetches = self.followers.next_deadline();
        let balance = self.balance_interval.map(|it| self.balanced.plus(it));
        [expiry, noop, fetches, balance].into_iter().flatten().min()
    }

    pub(super) fn tick(&mut self, now: Now) {
        self.fence_silent(now);
        self.balance_leaders(now);
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
    }

    /// Gives leadership back to preferred leaders, now and then.
    fn balance_leaders(&mut self, now: Now) {
        let interval = self.balance_interval;
        if interval.is_some_and(|it| self.balanced.plus(it) <= now.mono) {
            self.balanced = now.mono;
            let records = self.controller.balance_leaders(self.latest.image());
            // Should that fail, it is tried again next time.
            let _ = self.append(now, records);
        }
    }

    /// A flush ended: the batches that are committed by it, oldest first.
    pub(super) fn synced(
        &mut self,
        now: Now,
        synced: Synced<D>,
    ) -> Result<Vec<PendingBatch>, String> {
        let flushed = self.log.log_mut().synced(synced);
        let flushed = flushed.map_err(|why| why.to_string())?;
        let Some(high_watermark) = self.state.handle_flushed(flushed) else {
            return Ok(Vec::new());
        };
        // Should that fail, the next one says more.
        let _ = self.log.log().note_committed(high_watermark);
        let committed = self
            .pending
            .partition_point(|it| it.end.offset <= high_watermark);
        let batches: Vec<_> = self.pending.drain(..committed).collect();
        self.forgive_stall(now, &batches);
        Ok(batches)
    }

    /// Whether batches wait to be committed.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether everything appended is committed, so that an answer need not wait.
    pub(super) fn is_committed(&self) -> bool {
        self.high_watermark().is_some_and(|it| it >= self.log.end())
    }

    /// Everybody who waits, when nothing will be committed any more. Nothing is taken from now on.
    pub(super) fn abandon(&mut self) -> Vec<Ticket> {
        self.failed = true;
        let pending = std::mem::take(&mut self.pending);
        let answers = pending.into_iter().flat_map(|it| it.answers);
        let mut tickets: Vec<_> = answers.map(|(ticket, _)| ticket).collect();
        tickets.extend(self.followers.abandon());
        tickets
    }

    /// The node is on its way down: fetches are refused from now on, those that wait at the end of
    /// the step.
    pub(super) const fn resign(&mut self) {
        self.resigned = true;
    }

    /// Drops the answers of a connection that is gone.
    pub(super) fn forget(&mut self, conn: ConnId) {
        for batch in &mut self.pending {
            batch.answers.retain(|(ticket, _)| ticket.conn != conn);
        }
        self.followers.forget(conn);
    }
}

/// How often an idle log gets a NoOp record. They let others see that the high watermark moves, and
/// observers hear of that by its fetches; so they are written far less often than
/// `metadata.max.idle.interval.ms` says: each costs a flush.
fn noop_interval(config: &NodeConfig) -> Option<Millis> {
    let asked = config.broker.count("metadata.max.idle.interval.ms");
    let least = config.broker.count("metadata.noop.min.interval.ms");
    (asked > 0).then(|| Millis::new(asked.max(least)))
}

/// How often preferred leaders are looked at; `None` when leadership stays where it is.
fn balance_interval(config: &NodeConfig) -> Option<Millis> {
    let seconds = config
        .broker
        .count("leader.imbalance.check.interval.seconds");
    let enabled = config.broker.boolean("auto.leader.rebalance.enable");
    enabled.then(|| Millis::new(seconds.saturating_mul(1_000)))
}
