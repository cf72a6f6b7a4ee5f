//! Blocking work of the control machine: what was handed out, and what came back.

use highwater_disk::Disk;
use highwater_types::{Mono, Now};

use super::snapshots::SnapshotFile;
use super::{Control, Effects};
use crate::job::{Job, JobResult, LogDirNumber, Work};
use crate::machine::{Effect, Token};
use crate::shard::lifecycle::Removal;

/// What a job of this machine is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum JobKind {
    /// Flushes the metadata log.
    Sync,
    /// Writes a snapshot of our own.
    Snapshot(SnapshotFile),
    /// Loads a snapshot that was fetched.
    Install,
    /// Writes `quorum-state`.
    QuorumState,
    /// Removes files whose time is over.
    Remove,
    /// Closes the metadata log.
    Close,
    /// Writes a clean-shutdown marker.
    Marker,
}

impl JobKind {
    /// Whether it holds the metadata log or its directory open.
    const fn holds_metadata(self) -> bool {
        matches!(
            self,
            Self::Sync | Self::Snapshot(_) | Self::Install | Self::QuorumState
        )
    }
}

impl<D: Disk> Control<D> {
    pub(super) fn handle_job_done(
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
            (JobKind::Sync, JobResult::Synced(synced)) => self.synced(now, synced, out),
            (JobKind::Snapshot(file), JobResult::SnapshotWritten(result)) => {
                self.snapshot_written(now, file, result, out);
            }
            (JobKind::Install, JobResult::SnapshotLoaded(loaded)) => {
                self.snapshot_loaded(now, *loaded, out);
            }
            (JobKind::QuorumState, JobResult::FilesWritten(result)) => {
                self.warn_of("quorum-state could not be written", result);
                if let Some(observer) = self.role.observer_mut() {
                    observer.quorum_state_stored();
                }
            }
            (JobKind::Close, JobResult::LogClosed(result)) => {
                if result.is_err() {
                    self.unclean.insert(self.metadata_dir());
                }
                self.warn_of("the metadata log did not close cleanly", result);
                self.write_markers(out);
            }
            (JobKind::Marker, JobResult::FilesWritten(result)) => {
                self.warn_of("a clean-shutdown marker is missing", result);
                self.stop_when_done(out);
            }
            (JobKind::Remove, JobResult::Removed(result)) => {
                self.warn_of("an old metadata file is still there", result);
            }
            (kind, other) => unreachable!("a job for {kind:?} brought {other:?}"),
        }
        if kind.holds_metadata() {
            self.close_metadata_log(out);
        }
    }

    fn warn_of<T, E: std::fmt::Display>(&mut self, what: &str, result: Result<T, E>) {
        if let Err(why) = result {
            self.warnings.push(format!("{what}: {why}"));
        }
    }

    pub(super) fn job(
        &mut self,
        dir: LogDirNumber,
        work: Work<D>,
        kind: JobKind,
        out: &mut Effects<D>,
    ) {
        let token = self.new_token();
        self.jobs.insert(token, kind);
        out.push(Effect::Job {
            token,
            job: Job { dir, work },
        });
    }

    /// Whether a job of a kind is out.
    pub(super) fn has_job(&self, is_kind: impl Fn(&JobKind) -> bool) -> bool {
        self.jobs.values().any(is_kind)
    }

    /// Whether a job holds the metadata log or its directory open.
    pub(super) fn has_metadata_job(&self) -> bool {
        self.jobs.values().any(|kind| kind.holds_metadata())
    }

    pub(super) fn remove(&mut self, removal: Removal<D>, out: &mut Effects<D>) {
        let dir = self.metadata_dir();
        self.job(dir, Work::Remove(removal), JobKind::Remove, out);
    }

    /// Removes files once `due`.
    pub(super) fn remove_at(&mut self, due: Mono, removal: Removal<D>) {
        self.removals.push((due, removal));
    }

    /// Removes files whose time has come.
    pub(super) fn remove_due(&mut self, now: Mono, out: &mut Effects<D>) {
        let (due, later) = std::mem::take(&mut self.removals)
            .into_iter()
            .partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.removals = later;
        for (_, removal) in due {
            self.remove(removal, out);
        }
    }

    pub(super) const fn new_token(&mut self) -> Token {
        self.tokens_used += 1;
        Token(self.tokens_used)
    }
}
