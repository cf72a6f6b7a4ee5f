use std::path::Path;

use highwater_disk::{Blocking, Disk};
use highwater_metadata::read_snapshot;
use highwater_quorum::{LeaderState, QuorumState, QuorumStateVersion};
use highwater_records::stored::MetadataRecord;
use highwater_types::{Offset, OffsetAndEpoch};

use super::State;
use crate::boot::{BootError, not_written, shown};
use crate::control::files::{
    BOOTSTRAP_FILE, BOOTSTRAP_SNAPSHOT, METADATA_DIR, QUORUM_STATE, parse_snapshot_name,
    snapshot_path,
};
use crate::control::snapshots::SnapshotFile;
use crate::journal::{JournalEntry, Level};

/// Reads what lies in the directory of the metadata log.
pub(super) struct Reader<'a, D: Disk> {
    pub(super) dir: &'a D,
    events: &'a mut Vec<JournalEntry>,
    pub(super) b: &'a Blocking,
    /// Whether the leader of another node has all of it: what is bad here is fetched again.
    pub(super) is_copy: bool,
}

impl<'a, D: Disk> Reader<'a, D> {
    pub(super) const fn new(
        dir: &'a D,
        events: &'a mut Vec<JournalEntry>,
        b: &'a Blocking,
        is_copy: bool,
    ) -> Self {
        Self {
            dir,
            events,
            b,
            is_copy,
        }
    }

    pub(super) const fn disk(&self) -> &D {
        self.dir
    }

    pub(super) fn info(&mut self, text: String) {
        self.events.push(JournalEntry::text(Level::Info, text));
    }

    pub(super) fn warn(&mut self, text: String) {
        self.events.push(JournalEntry::text(Level::Warn, text));
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, BootError> {
        let read = self.dir.read(path);
        read.map_err(|why| BootError(format!("{}: {why}", shown(self.dir, &text(path)))))
    }

    /// The snapshots that are there, by rising end; leftovers of unfinished ones are removed.
    pub(super) fn snapshot_ids(&mut self) -> Result<Vec<OffsetAndEpoch>, BootError> {
        let failed = |why| not_written(self.dir, METADATA_DIR, 0, &why);
        self.dir
            .create_dir(Path::new(METADATA_DIR))
            .map_err(failed)?;
        let entries = self.dir.list(Path::new(METADATA_DIR)).map_err(failed)?;
        let mut ids = Vec::new();
        for entry in entries {
            let unfinished = [".checkpoint.part", ".checkpoint.tmp", ".checkpoint.deleted"];
            if let Some(id) = parse_snapshot_name(&entry.name) {
                ids.push(id);
            } else if unfinished.iter().any(|suffix| entry.name.ends_with(suffix)) {
                let path = Path::new(METADATA_DIR).join(&entry.name);
                self.dir.remove(&path, self.b).map_err(failed)?;
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Loads the newest snapshot that is whole.
    pub(super) fn load_snapshot(
        &mut self,
        state: &mut State,
        ids: &[OffsetAndEpoch],
    ) -> Result<Vec<SnapshotFile>, BootError> {
        let mut files = Vec::new();
        let mut loaded = None;
        for id in ids.iter().rev().filter(|id| id.offset > Offset::ZERO) {
            let path = snapshot_path(*id);
            let bytes = self.read(&path)?.unwrap_or_default();
            if let Some(loaded) = loaded {
                files.push(SnapshotFile {
                    id: *id,
                    bytes: bytes.len() as u64,
                    timestamp: loaded,
                });
                continue;
            }
            let mut fresh = State::default();
            let read = read_snapshot(&bytes, |record| Ok(fresh.delta.replay(&record)?));
            match read {
                Ok(control) => {
                    fresh.delta.set_end(*id);
                    fresh.take_control(&control);
                    *state = fresh;
                    let timestamp = control.last_contained_timestamp;
                    let bytes = bytes.len() as u64;
                    files.push(SnapshotFile {
                        id: *id,
                        bytes,
                        timestamp,
                    });
                    loaded = Some(timestamp);
                }
                // An older one and a longer replay give the same state.
                Err(why) => self.warn(format!("{}: {why}", shown(self.dir, &text(&path)))),
            }
        }
        files.reverse();
        Ok(files)
    }

    /// What `format` left for the first start, ours or Kafka's, of any release.
    pub(super) fn bootstrap(&self, state: &mut State) -> Result<Vec<MetadataRecord>, BootError> {
        for path in [BOOTSTRAP_SNAPSHOT, BOOTSTRAP_FILE] {
            let Some(bytes) = self.read(Path::new(path))? else {
                continue;
            };
            let mut records = Vec::new();
            let control = read_snapshot(&bytes, |record| {
                records.push(record);
                Ok(())
            });
            let control =
                control.map_err(|why| BootError(format!("{}: {why}", shown(self.dir, path))))?;
            state.take_control(&control);
            return Ok(records);
        }
        Err(BootError(format!(
            "{} is missing and the metadata log has no metadata yet; format the directory with: \
             highwater format --config FILE",
            shown(self.dir, BOOTSTRAP_SNAPSHOT)
        )))
    }

    pub(super) fn quorum_state(&mut self) -> Result<Option<QuorumState>, BootError> {
        let Some(bytes) = self.read(Path::new(QUORUM_STATE))? else {
            return Ok(None);
        };
        match QuorumState::decode(&bytes) {
            Ok(state) => Ok(Some(state)),
            Err(why) if self.is_copy => {
                self.warn(format!("{}: {why}", shown(self.dir, QUORUM_STATE)));
                Ok(None)
            }
            Err(why) => Err(BootError(format!(
                "{}: {why}; restore it: without it this voter could take part in one epoch twice",
                shown(self.dir, QUORUM_STATE)
            ))),
        }
    }

    pub(super) fn write_quorum_state(
        &self,
        leader: &LeaderState,
        level: i16,
    ) -> Result<(), BootError> {
        let version = if level > 0 {
            QuorumStateVersion::V1
        } else {
            QuorumStateVersion::V0
        };
        let bytes = leader.quorum_state().encode(version);
        self.dir
            .replace(Path::new(QUORUM_STATE), &bytes, self.b)
            .map_err(|why| not_written(self.dir, QUORUM_STATE, bytes.len(), &why))
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
