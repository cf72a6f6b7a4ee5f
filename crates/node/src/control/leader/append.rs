//! Decide, record, replay: how a decision gets into the log, and who waits for its commit.

use bytes::Bytes;
use highwater_disk::Disk;
use highwater_log::Origin;
use highwater_metadata::controller::Decision;
use highwater_metadata::{
    BuildBatchError, QuorumRecord, build_batch, build_quorum_batch, split_for_batches,
};
use highwater_records::stored::MetadataRecord;
use highwater_records::{Batch, Validated};
use highwater_types::{ErrorCode, Mono, Now, OffsetAndEpoch};

use super::Leader;
use crate::control::Effects;
use crate::machine::{Answer, Effect, Ticket};

/// Kafka's `internal.metadata.max.batch.size.in.bytes`.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// A batch that is appended and not yet committed.
#[derive(Debug)]
pub(in crate::control) struct PendingBatch {
    /// The offset after its last record, and its epoch.
    pub(in crate::control) end: OffsetAndEpoch,
    /// Its records; none for a control batch.
    pub(in crate::control) records: Vec<MetadataRecord>,
    /// Encoded answers that may be given once it is committed.
    pub(in crate::control) answers: Vec<(Ticket, Bytes)>,
    /// When it was appended.
    pub(in crate::control) appended: Mono,
}

/// Why a batch was not appended. Nothing changed.
#[derive(Debug, thiserror::Error)]
enum AppendError {
    #[error(transparent)]
    Build(#[from] BuildBatchError),
    #[error("{0}")]
    Log(String),
}

impl<D: Disk> Leader<D> {
    /// Appends the records of a decision and replays them into `latest`: from now on every
    /// decision builds on them. A decision that is too large for a batch takes several, in order:
    /// each record must be right without those after it.
    pub(super) fn commit<A>(&mut self, now: Now, decision: Decision<A>) -> Result<A, ErrorCode> {
        self.append(now, decision.records).map(|()| decision.answer)
    }

    /// As [`Leader::commit`], in one batch or not at all: half a topic must not be found after a
    /// loss of power.
    pub(super) fn commit_whole<A>(
        &mut self,
        now: Now,
        decision: Decision<A>,
    ) -> Result<A, ErrorCode> {
        let runs = self.runs(decision.records)?;
        if runs.len() > 1 {
            return Err(ErrorCode::POLICY_VIOLATION);
        }
        self.append_runs(now, runs).map(|()| decision.answer)
    }

    /// As [`Leader::commit`], for the machine's own records.
    pub(super) fn append(
        &mut self,
        now: Now,
        records: Vec<MetadataRecord>,
    ) -> Result<(), ErrorCode> {
        let runs = self.runs(records)?;
        self.append_runs(now, runs)
    }

    /// Appends control records as one batch.
    pub(super) fn append_control(
        &mut self,
        now: Now,
        records: &[QuorumRecord],
    ) -> Result<(), String> {
        let epoch = self.state.epoch();
        let bytes = build_quorum_batch(records, self.log.end(), epoch, now.wall)
            .map_err(|why| why.to_string())?;
        let end = self
            .append_bytes(now, &bytes, Vec::new())
            .map_err(|why| why.to_string())?;
        self.latest.set_end(end);
        Ok(())
    }

    /// Cuts records into runs of one batch each. Nothing is taken after a failure: what was
    /// appended last may never be committed, so nothing may build on it.
    fn runs(
        &mut self,
        records: Vec<MetadataRecord>,
    ) -> Result<Vec<Vec<MetadataRecord>>, ErrorCode> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        if self.failed {
            return Err(ErrorCode::NOT_CONTROLLER);
        }
        let metadata_version = self.latest.image().metadata_version();
        let runs = split_for_batches(records, metadata_version, self.batch_bytes_max());
        runs.map_err(|why| self.refused(&why.to_string()))
    }

    fn append_runs(&mut self, now: Now, runs: Vec<Vec<MetadataRecord>>) -> Result<(), ErrorCode> {
        let metadata_version = self.latest.image().metadata_version();
        for records in runs {
            self.append_run(now, records, metadata_version)?;
        }
        Ok(())
    }

    /// Appends metadata records as one batch. `metadata_version` rules how they are written.
    fn append_run(
        &mut self,
        now: Now,
        records: Vec<MetadataRecord>,
        metadata_version: i16,
    ) -> Result<(), ErrorCode> {
        let (end, epoch) = (self.log.end(), self.state.epoch());
        let appended = build_batch(&records, end, epoch, now.wall, metadata_version)
            .map_err(AppendError::from)
            .and_then(|bytes| self.append_bytes(now, &bytes, records.clone()));
        let end = appended.map_err(|why| self.refused(&why.to_string()))?;
        for record in &records {
            self.latest
                .replay(record)
                .expect("the controller's records fit its image");
        }
        self.latest.set_end(end);
        self.last_append = now.mono;
        Ok(())
    }

    fn append_bytes(
        &mut self,
        now: Now,
        bytes: &[u8],
        records: Vec<MetadataRecord>,
    ) -> Result<OffsetAndEpoch, AppendError> {
        let epoch = self.state.epoch();
        let batch = Batch::parse(bytes).expect("a batch that was just built");
        let validated = Validated::trusted(&batch);
        let log = self.log.log_mut();
        let appended = log
            .append_as_leader(now, epoch, bytes, &validated, Origin::Raft)
            .map_err(|why| AppendError::Log(why.to_string()))?;
        self.log.bytes_since_snapshot += appended.size_bytes;
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

    /// Most bytes of a batch: Kafka's bound, and what a segment takes.
    fn batch_bytes_max(&self) -> usize {
        let segment = self.log.log().config().segment_bytes;
        let segment = usize::try_from(segment).unwrap_or(usize::MAX);
        segment.min(BATCH_BYTES_MAX)
    }

    fn refused(&mut self, why: &str) -> ErrorCode {
        self.warnings
            .push(format!("the metadata log refused records: {why}"));
        ErrorCode::KAFKA_STORAGE_ERROR
    }

    /// Every answer, of reads too, waits until all that it may depend on is committed.
    pub(super) fn answer_when_committed(
        &mut self,
        ticket: Ticket,
        body: Bytes,
        out: &mut Effects<D>,
    ) {
        let waits = !self.is_committed();
        match self.pending.back_mut().filter(|_| waits) {
            Some(last) => last.answers.push((ticket, body)),
            None => out.push(answer(ticket, body)),
        }
    }
}

/// The answer to a request.
pub(in crate::control) fn answer<D: Disk>(ticket: Ticket, body: Bytes) -> Effect<D> {
    let answer = Answer::bytes(body);
    Effect::Answer { ticket, answer }
}
