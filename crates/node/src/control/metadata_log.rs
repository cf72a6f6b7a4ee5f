use std::collections::VecDeque;

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_log::{Origin, PartitionLog, SyncLog, Synced};
use highwater_metadata::{BuildBatchError, QuorumRecord, build_batch, build_quorum_batch};
use highwater_quorum::LeaderState;
use highwater_records::stored::MetadataRecord;
use highwater_records::{Batch, Validated};
use highwater_types::{LeaderEpoch, Mono, Now, Offset, OffsetAndEpoch};

use crate::machine::Ticket;

/// Kafka's `internal.metadata.max.batch.size.in.bytes`.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// The metadata log and its one voter: what is appended, flushed, committed, and who waits for it.
///
/// Invariant: `pending` holds, in order, every batch between the high watermark and the log end
/// offset that this leader appended.
#[derive(Debug)]
pub(crate) struct MetadataLog<D: Disk> {
    log: PartitionLog<D>,
    leader: LeaderState,
    pending: VecDeque<PendingBatch>,
    /// Bytes appended since the last snapshot.
    pub(crate) bytes_since_snapshot: u64,
}

/// A batch that is appended and not yet committed.
#[derive(Debug)]
pub(crate) struct PendingBatch {
    /// The offset after its last record, and its epoch.
    pub(crate) end: OffsetAndEpoch,
    /// Its records; none for a control batch.
    pub(crate) records: Vec<MetadataRecord>,
    /// Encoded answers that may be given once it is committed.
    pub(crate) answers: Vec<(Ticket, Bytes)>,
    /// When it was appended.
    pub(crate) appended: Mono,
}

/// Why a batch was not appended. Nothing changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetadataAppendError {
    #[error(transparent)]
    Build(#[from] BuildBatchError),
    #[error("{0}")]
    Log(String),
}

impl<D: Disk> MetadataLog<D> {
    pub(crate) const fn new(log: PartitionLog<D>, leader: LeaderState) -> Self {
        Self {
            log,
            leader,
            pending: VecDeque::new(),
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

    pub(crate) const fn epoch(&self) -> LeaderEpoch {
        self.leader.epoch()
    }

    pub(crate) const fn leader(&self) -> &LeaderState {
        &self.leader
    }

    pub(crate) fn end(&self) -> Offset {
        self.log.log_end_offset()
    }

    /// Most bytes of a batch: Kafka's bound, and what a segment takes.
    pub(crate) fn batch_bytes_max(&self) -> usize {
        let segment = usize::try_from(self.log.config().segment_bytes).unwrap_or(usize::MAX);
        segment.min(BATCH_BYTES_MAX)
    }

    /// Whether everything appended is committed, so that an answer need not wait.
    pub(crate) fn is_committed(&self) -> bool {
        self.leader
            .high_watermark()
            .is_some_and(|it| it >= self.end())
    }

    /// Appends metadata records as one batch. `metadata_version` rules how they are written.
    pub(crate) fn append(
        &mut self,
        now: Now,
        records: Vec<MetadataRecord>,
        metadata_version: i16,
    ) -> Result<OffsetAndEpoch, MetadataAppendError> {
        let epoch = self.epoch();
        let bytes = build_batch(&records, self.end(), epoch, now.wall, metadata_version)?;
        self.append_bytes(now, &bytes, records)
    }

    /// Appends control records as one batch.
    pub(crate) fn append_control(
        &mut self,
        now: Now,
        records: &[QuorumRecord],
    ) -> Result<OffsetAndEpoch, MetadataAppendError> {
        let bytes = build_quorum_batch(records, self.end(), self.epoch(), now.wall)?;
        self.append_bytes(now, &bytes, Vec::new())
    }

    fn append_bytes(
        &mut self,
        now: Now,
        bytes: &[u8],
        records: Vec<MetadataRecord>,
    ) -> Result<OffsetAndEpoch, MetadataAppendError> {
        let epoch = self.epoch();
        let batch = Batch::parse(bytes).expect("a batch that was just built");
        let validated = Validated::trusted(&batch);
        let appended = self
            .log
            .append_as_leader(now, epoch, bytes, &validated, Origin::Raft)
            .map_err(|why| MetadataAppendError::Log(why.to_string()))?;
        self.bytes_since_snapshot += appended.size_bytes;
        let end = OffsetAndEpoch {
            epoch,
            offset: appended.last_offset.next(),
        };
        self.pending.push_back(PendingBatch {
            end,
            records,
            answers: Vec::new(),
            appended: now.mono,
        });
        Ok(end)
    }

    /// Lets an answer wait until everything appended so far is committed. `None` when it need not.
    pub(crate) fn defer(&mut self, ticket: Ticket, body: Bytes) -> Option<(Ticket, Bytes)> {
        match self.pending.back_mut() {
            Some(last) => {
                last.answers.push((ticket, body));
                None
            }
            None => Some((ticket, body)),
        }
    }

    /// Whether batches wait to be committed.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.pending.is_empty()
    }

    /// When the oldest batch was appended that waits to be committed.
    pub(crate) fn waits_since(&self) -> Option<Mono> {
        self.pending.front().map(|batch| batch.appended)
    }

    /// Drops the answers of a connection that is gone.
    pub(crate) fn forget(&mut self, gone: impl Fn(Ticket) -> bool) {
        for batch in &mut self.pending {
            batch.answers.retain(|(ticket, _)| !gone(*ticket));
        }
    }

    /// A job that flushes what is not flushed. `None` while one is out, or when there is nothing.
    pub(crate) fn sync_job(&mut self, now: Now) -> Result<Option<SyncLog<D>>, String> {
        self.log.sync_job(now).map_err(|why| why.to_string())
    }

    /// A sync ended: the batches that are committed by it, oldest first.
    pub(crate) fn synced(&mut self, synced: Synced<D>) -> Result<Vec<PendingBatch>, String> {
        let flushed = self.log.synced(synced).map_err(|why| why.to_string())?;
        let Some(high_watermark) = self.leader.handle_flushed(flushed) else {
            return Ok(Vec::new());
        };
        // Should that fail, the next one says more.
        let _ = self.log.note_committed(high_watermark);
        let committed = self
            .pending
            .partition_point(|it| it.end.offset <= high_watermark);
        Ok(self.pending.drain(..committed).collect())
    }

    /// Everybody who waits, when nothing will be committed any more.
    pub(crate) fn abandon(&mut self) -> Vec<Ticket> {
        let pending = std::mem::take(&mut self.pending);
        pending
            .into_iter()
            .flat_map(|it| it.answers)
            .map(|(ticket, _)| ticket)
            .collect()
    }
}
