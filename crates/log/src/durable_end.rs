use std::path::Path;

use highwater_disk::{Disk, DiskError};
use highwater_types::Offset;

use crate::checkpoint::{committed, leader_epochs};
use crate::names::{FileKind, LogFile, Stage, snapshot_end};

/// An offset of the metadata log in `dir` below which everything had reached the disk: what is
/// missing or bad there is rot, and no torn tail. The metadata log is in none of the offset
/// checkpoints, so this is gathered from what lies beside it.
///
/// # Errors
/// When the disk refuses.
pub fn durable_end<D: Disk>(disk: &D, dir: &Path, was_clean: bool) -> Result<Offset, DiskError> {
    let mut end = Offset::ZERO;
    for entry in disk.list(dir)? {
        // What is in a metadata snapshot was committed, so it was flushed before.
        end = end.max(snapshot_end(&entry.name).unwrap_or(end));
        // A clean stop flushes, and names its last producer snapshot after the log's end.
        let file = LogFile::parse(&entry.name);
        if let Some(file) = file.filter(|_| was_clean)
            && (file.kind, file.stage) == (FileKind::Snapshot, Stage::Live)
        {
            end = end.max(file.base);
        }
    }
    // The epochs are written after a flush, which had everything of older ones.
    let epochs = disk.read(&dir.join(leader_epochs::FILE))?;
    if let Some(Ok(epochs)) = epochs.map(|bytes| leader_epochs::decode(&bytes))
        && let Some(newest) = epochs.latest()
    {
        end = end.max(newest.start_offset);
    }
    let committed = disk.read(&dir.join(committed::FILE))?;
    let committed = committed.and_then(|bytes| committed::decode(&bytes));
    Ok(end.max(committed.unwrap_or(end)))
}
