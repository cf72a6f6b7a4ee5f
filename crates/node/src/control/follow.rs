//! What the observer's role asks of the rest of the machine.

use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_types::Now;

use super::jobs::JobKind;
use super::lifecycle::Phase;
use super::observer::{Applied, Followed, SnapshotLoaded};
use super::role::QuorumRole;
use super::{Control, Effects};
use crate::control::files::QUORUM_STATE;
use crate::job::{Work, WriteFiles};
use crate::journal::{JournalEntry, Level};
use crate::machine::{Effect, PeerError, Token};
use crate::shard::lifecycle::Removal;

impl<D: Disk> Control<D> {
    /// At the end of each step of an observer: applies what is committed, leaves word of a new
    /// epoch or leader, and asks for more.
    pub(super) fn follow(&mut self, now: Now, out: &mut Effects<D>) {
        if self.broker.phase >= Phase::Closing || self.role.observer().is_none() {
            return;
        }
        self.apply(now, out);
        self.tell_controller(now, out);
        self.tell_kraft_version(out);
        self.store_quorum_state(out);
        let tokens_used = &mut self.tokens_used;
        let send = self.role.observer_mut().and_then(|observer| {
            observer.poll(now, || {
                *tokens_used += 1;
                Token(*tokens_used)
            })
        });
        out.extend(send);
    }

    /// Takes an answer that may be one to the observer; whether it was.
    pub(super) fn handle_metadata_answer(
        &mut self,
        now: Now,
        token: Token,
        result: &Result<Response, PeerError>,
        out: &mut Effects<D>,
    ) -> bool {
        let warnings = &mut self.warnings;
        let followed = self
            .role
            .observer_mut()
            .and_then(|observer| observer.handle_answer(now, token, result, warnings));
        match followed {
            None => return false,
            Some(Followed::Nothing) => {}
            Some(Followed::Cut(to, files)) => {
                let text = format!("the metadata log was cut at {to}: its leader has another tail");
                out.push(Effect::Event(JournalEntry::text(Level::Info, text)));
                self.remove_at(files.not_before(), Removal::Files(files));
            }
            Some(Followed::Downloaded(install)) => {
                let work = Work::InstallSnapshot(Box::new(install));
                self.job(self.metadata_dir(), work, JobKind::Install, out);
            }
            Some(Followed::Failed(why)) => self.fail(why, out),
        }
        true
    }

    /// A snapshot of the leader's is here: the metadata go on from it.
    pub(super) fn snapshot_loaded(
        &mut self,
        now: Now,
        loaded: SnapshotLoaded,
        out: &mut Effects<D>,
    ) {
        let QuorumRole::Observer(observer) = &mut self.role else {
            return;
        };
        let taken = match observer.take_over(now, loaded, &mut self.warnings) {
            Ok(Some(taken)) => taken,
            Ok(None) => return,
            Err(why) => return self.fail(why, out),
        };
        let end = taken.metadata.image().end.offset;
        let text = format!("the metadata go on from the controller's snapshot up to {end}");
        out.push(Effect::Event(JournalEntry::text(Level::Info, text)));
        self.committed = taken.metadata;
        self.reloaded = true;
        self.remove_at(taken.files.not_before(), Removal::Files(taken.files));
        if !taken.older.is_empty() {
            let removal = Removal::Paths(self.metadata_disk().clone(), taken.older);
            self.remove(removal, out);
        }
        self.publish(now, out);
    }

    fn apply(&mut self, now: Now, out: &mut Effects<D>) {
        let Some(observer) = self.role.observer_mut() else {
            return;
        };
        match observer.apply(now, &mut self.committed) {
            Ok(Applied::Nothing) => {}
            Ok(Applied::Batches { records }) => {
                if records {
                    self.snapshots.note_change();
                }
                self.publish(now, out);
            }
            Ok(Applied::Damaged(at, why, files)) => {
                self.warnings.push(format!(
                    "this copy of the metadata log is damaged at {at} ({why}); fetching it again"
                ));
                self.remove_at(files.not_before(), Removal::Files(files));
            }
            Err(why) => self.fail(why, out),
        }
    }

    fn store_quorum_state(&mut self, out: &mut Effects<D>) {
        let config = &self.config;
        let observer = self.role.observer_mut();
        let Some(bytes) = observer.and_then(|it| it.quorum_state_to_store(config)) else {
            return;
        };
        let work = Work::WriteFiles(WriteFiles {
            disk: self.metadata_disk().clone(),
            files: vec![(QUORUM_STATE.into(), bytes)],
        });
        self.job(self.metadata_dir(), work, JobKind::QuorumState, out);
    }
}
