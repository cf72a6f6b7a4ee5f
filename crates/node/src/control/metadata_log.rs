use std::sync::Arc;

use highwater_disk::{Disk, DiskFile as _};
use highwater_log::{PartitionLog, ReadResult, SyncLog};
use highwater_metadata::{QuorumRecord, SnapshotControl};
use highwater_quorum::LogState;
use highwater_records::stored::data::VotersRecord;
use highwater_types::{Now, Offset};

use super::snapshots::SnapshotFile;

/// The metadata log of this node, the snapshots beside it, and what they say about the quorum.
#[derive(Debug)]
pub(crate) struct MetadataLog<D: Disk> {
    log: PartitionLog<D>,
    disk: D,
    /// By rising end. What `format` leaves is not among them.
    pub(crate) snapshots: Vec<SnapshotFile>,
    /// The level of kraft.version, as far as records were applied.
    pub(crate) kraft_version: i16,
    /// Who votes, when the metadata log says.
    pub(crate) voters: Option<VotersRecord>,
    /// Bytes of records since the last snapshot.
    pub(crate) bytes_since_snapshot: u64,
}

impl<D: Disk> MetadataLog<D> {
    pub(crate) const fn new(log: PartitionLog<D>, disk: D, snapshots: Vec<SnapshotFile>) -> Self {
        Self {
            log,
            disk,
            snapshots,
            kraft_version: 0,
            voters: None,
            bytes_since_snapshot: 0,
        }
    }

    pub(crate) const fn log(&self) -> &PartitionLog<D> {
        &self.log
    }

    pub(crate) const fn log_mut(&mut self) -> &mut PartitionLog<D> {
        &mut self.log
    }

    pub(crate) fn into_log(self) -> PartitionLog<D> {
        self.log
    }

    pub(crate) const fn disk(&self) -> &D {
        &self.disk
    }

    pub(crate) fn end(&self) -> Offset {
        self.log.log_end_offset()
    }

    /// As the quorum's rules see it.
    pub(crate) fn state(&self) -> LogState<'_> {
        let (first, last) = (self.snapshots.first(), self.snapshots.last());
        LogState {
            epochs: self.log.epochs(),
            log_start_offset: self.log.log_start_offset(),
            snapshots: first.zip(last).map(|(first, last)| (first.id, last.id)),
        }
    }

    /// The batches from the one that holds `from` on, up to `up_to`: `bytes_max`, but one batch at
    /// least. The last one may be cut. Empty when there is nothing.
    pub(crate) fn read(
        &mut self,
        from: Offset,
        up_to: Offset,
        bytes_max: u64,
    ) -> Result<Vec<u8>, String> {
        let read = self.log.read(from, up_to, bytes_max, true);
        let ReadResult::Local(read) = read.map_err(|why| why.to_string())? else {
            return Err("it is in tiered storage".to_owned());
        };
        let Some(region) = read.region else {
            return Ok(Vec::new());
        };
        let len = usize::try_from(region.len).map_err(|_| "too large".to_owned())?;
        let mut bytes = vec![0; len];
        let file = Arc::clone(&region.file);
        let read = file.read_at(region.position, &mut bytes);
        bytes.truncate(read.map_err(|why| why.to_string())?);
        Ok(bytes)
    }

    /// A job that flushes what is not flushed. `None` while one is out, or when there is nothing.
    pub(crate) fn sync_job(&mut self, now: Now) -> Result<Option<SyncLog<D>>, String> {
        self.log.sync_job(now).map_err(|why| why.to_string())
    }

    /// What a control record of the log says.
    pub(crate) fn take_quorum_record(&mut self, record: QuorumRecord) {
        match record {
            QuorumRecord::LeaderChange(_) => {}
            QuorumRecord::KraftVersion(level) => self.kraft_version = level,
            QuorumRecord::Voters(voters) => self.voters = Some(voters),
        }
    }

    /// What a snapshot says beside its records.
    pub(crate) fn take_control(&mut self, control: &SnapshotControl) {
        self.kraft_version = control.kraft_version.unwrap_or(self.kraft_version);
        if control.voters.is_some() {
            self.voters.clone_from(&control.voters);
        }
    }
}
