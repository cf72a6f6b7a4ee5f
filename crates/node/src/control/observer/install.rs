use std::path::Path;

use highwater_disk::{Blocking, Disk, DiskError, DiskFile as _, OpenMode};
use highwater_metadata::{MetadataDelta, SnapshotControl, read_snapshot};
use highwater_types::OffsetAndEpoch;

use crate::control::files::{METADATA_DIR, snapshot_path, unfinished_snapshot_path};
use crate::control::snapshots::SnapshotFile;

/// A job: makes a snapshot that was fetched durable, and loads it.
#[derive(Debug)]
pub struct InstallSnapshot<D: Disk> {
    pub(super) disk: D,
    pub(super) id: OffsetAndEpoch,
}

/// What an [`InstallSnapshot`] brought, or why the snapshot cannot be used.
pub type SnapshotLoaded = Result<LoadedSnapshot, String>;

/// The content of a snapshot.
#[derive(Debug)]
pub struct LoadedSnapshot {
    pub(in crate::control) file: SnapshotFile,
    pub(in crate::control) control: SnapshotControl,
    pub(in crate::control) metadata: MetadataDelta,
}

impl<D: Disk> InstallSnapshot<D> {
    /// Does the work. A snapshot that is not whole is removed.
    ///
    /// # Errors
    /// What is wrong with it, or what the disk says.
    pub fn run(self, b: &Blocking) -> SnapshotLoaded {
        let path = unfinished_snapshot_path(self.id);
        let loaded = self.load(&path, b);
        if loaded.is_err() {
            // It is begun anew; what is left over goes at the next start at the latest.
            let _ = self.disk.remove(&path, b);
        }
        loaded
    }

    fn load(&self, path: &Path, b: &Blocking) -> SnapshotLoaded {
        let disk_says = |why: DiskError| why.to_string();
        let bytes = self.disk.read(path).map_err(disk_says)?;
        let bytes = bytes.ok_or("the file is gone")?;
        let mut metadata = MetadataDelta::default();
        let control = read_snapshot(&bytes, |record| Ok(metadata.replay(&record)?))
            .map_err(|why| why.to_string())?;
        metadata.set_end(self.id);
        let file = self.disk.open(path, OpenMode::Write).map_err(disk_says)?;
        file.sync(b).map_err(disk_says)?;
        self.disk
            .rename(path, &snapshot_path(self.id))
            .map_err(disk_says)?;
        self.disk
            .sync_dir(Path::new(METADATA_DIR), b)
            .map_err(disk_says)?;
        Ok(LoadedSnapshot {
            file: SnapshotFile {
                id: self.id,
                bytes: bytes.len() as u64,
                timestamp: control.last_contained_timestamp,
            },
            control,
            metadata,
        })
    }
}
