//! Logs from the first image to the last flush: found, made, opened, flushed, retained, deleted,
//! closed.

mod apply;
mod close;
mod delete;
pub(crate) mod dirs;
mod flush;
mod image;
mod open;
mod retention;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use highwater_disk::Disk;
use highwater_types::{Mono, Now, TopicIdPartition, TopicPartition};

pub(crate) use self::apply::ToApply;
use self::delete::DelayedRemoval;
pub use self::delete::Removal;
use self::flush::SyncRequest;
use self::open::OpenRequest;
use super::checkpoints::Lines;
use super::{Effects, FoundLog, Shard};
use crate::job::LogDirNumber;
use crate::machine::Token;

/// What a shard knows of its logs besides the partitions themselves.
#[derive(Debug)]
pub struct LifecycleState<D: Disk> {
    phase: Phase,
    /// Logs found at the start that no image has decided about yet.
    found: Vec<(LogDirNumber, FoundLog)>,
    /// Directories of deleted logs that the last run did not get to remove.
    leftovers: Vec<(LogDirNumber, Vec<PathBuf>)>,
    /// What of the image the partitions do not follow yet.
    pub(crate) to_apply: ToApply,
    /// Logs that wait for a place among the open jobs of their directory.
    to_open: VecDeque<OpenRequest>,
    /// New logs whose name another topic's directory still has, and when each is tried again.
    name_taken: Vec<(Mono, OpenRequest)>,
    /// Open jobs that are out.
    opening: BTreeMap<Token, OpenRequest>,
    /// Sync jobs that are out.
    syncing: BTreeMap<Token, SyncRequest>,
    /// When `flush.ms` makes a sync due, at most once per partition. An entry may be too early: it
    /// is only looked at.
    flush_deadlines: BTreeSet<(Mono, TopicIdPartition)>,
    /// Close jobs that are out.
    closing: BTreeMap<Token, (LogDirNumber, TopicPartition)>,
    /// Directories with a log that was not closed cleanly.
    unclean: BTreeSet<LogDirNumber>,
    /// What the checkpoints say of closed logs.
    last_lines: BTreeMap<LogDirNumber, BTreeMap<TopicPartition, Lines>>,
    last_lines_sent: bool,
    /// Removed files and directories that stay on disk for a while.
    delayed: BTreeMap<(Mono, u64), DelayedRemoval<D>>,
    delayed_count: u64,
    /// Logs opened since the first image, and how many there are to open, for progress lines.
    opened: u32,
    to_open_total: u32,
    next_retention_check: Option<Mono>,
    next_producer_check: Option<Mono>,
}

/// How far a shard's life is.
///
/// Transitions: `Waiting -> Loading -> Running -> Closing -> Closed`, and to `Closing` from any
/// but `Closed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No image yet.
    Waiting,
    /// The logs of the first image are being opened.
    Loading,
    /// `LogsLoaded` was sent.
    Running,
    /// Logs are being closed and checkpoints written.
    Closing,
    /// `Closed` was sent.
    Closed,
}

impl<D: Disk> LifecycleState<D> {
    pub(crate) fn new(
        found: Vec<(LogDirNumber, FoundLog)>,
        leftovers: Vec<(LogDirNumber, Vec<PathBuf>)>,
    ) -> Self {
        Self {
            phase: Phase::Waiting,
            found,
            leftovers,
            to_apply: ToApply::default(),
            to_open: VecDeque::new(),
            name_taken: Vec::new(),
            opening: BTreeMap::new(),
            syncing: BTreeMap::new(),
            flush_deadlines: BTreeSet::new(),
            closing: BTreeMap::new(),
            unclean: BTreeSet::new(),
            last_lines: BTreeMap::new(),
            last_lines_sent: false,
            delayed: BTreeMap::new(),
            delayed_count: 0,
            opened: 0,
            to_open_total: 0,
            next_retention_check: None,
            next_producer_check: None,
        }
    }

    /// Whether logs are being or were closed: nothing may be opened or appended any more.
    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::Closed)
    }
}

impl<D: Disk> Shard<D> {
    pub(crate) fn lifecycle_next_deadline(&self) -> Option<Mono> {
        let lifecycle = &self.lifecycle;
        [
            self.next_removal(),
            lifecycle.next_retention_check,
            lifecycle.next_producer_check,
            self.flush_deadline(),
            self.next_open_retry(),
            lifecycle.to_apply.is_waiting().then_some(Mono::START),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(crate) fn lifecycle_tick(&mut self, now: Now, out: &mut Effects<D>) {
        if self.lifecycle.to_apply.is_waiting() {
            self.apply_some(now, out);
            self.start_open_jobs(now, out);
            self.note_if_loaded(out);
        }
        self.remove_what_is_due(now, out);
        self.flush_what_is_due(now, out);
        self.retry_opens(now, out);
        if self
            .lifecycle
            .next_retention_check
            .is_some_and(|due| due <= now.mono)
        {
            let next = now.mono.plus(self.settings.retention_check_interval);
            self.lifecycle.next_retention_check = Some(next);
            self.check_retention(now, out);
        }
        if self
            .lifecycle
            .next_producer_check
            .is_some_and(|due| due <= now.mono)
        {
            let next = now.mono.plus(self.settings.producer_id_check_interval);
            self.lifecycle.next_producer_check = Some(next);
            self.expire_producers(now);
        }
    }
}
