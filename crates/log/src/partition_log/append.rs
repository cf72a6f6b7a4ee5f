use std::io::IoSlice;
use std::path::Path;

use highwater_disk::{Disk, DiskError, DiskFile as _, OpenMode};
use highwater_records::{
    BATCH_HEADER_BYTES, Batch, BatchError, BatchHeader, Batches, EndTransactionMarker,
    TimestampType, Validated, stamp,
};
use highwater_types::{LeaderEpoch, Now, Offset, WallMs};

use super::{Fence, PartitionLog};
use crate::error::AppendError;
use crate::names::{FileKind, segment_file};
use crate::producer_state::{Check, MarkerKind, ProducerBatch, ProducerOrigin, TransactionMarker};
use crate::segment::LogSegment;
use crate::segment::scan::parse_header;

/// A control batch of one marker is far smaller, also when decompressed.
pub(crate) const MARKER_BYTES_MAX: usize = 64 << 10;

/// Who wrote a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client: sequences are checked and duplicates found.
    Client,
    /// A coordinator on this node: transaction markers and its own records.
    Coordinator,
    /// The quorum's leader: metadata records.
    Raft,
}

impl From<Origin> for ProducerOrigin {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Client => Self::Client,
            Origin::Coordinator => Self::Coordinator,
            Origin::Raft => Self::Replica,
        }
    }
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first_offset: Offset,
    /// Offset of the last record.
    pub last_offset: Offset,
    /// The append time for LogAppendTime; for a duplicate the timestamp of the batch that is
    /// there, as Kafka answers; else [`WallMs::NONE`].
    pub log_append_time: WallMs,
    /// The batch was in the log already: nothing was written.
    pub duplicate: bool,
    /// Bytes that were written.
    pub size_bytes: u64,
}

impl<D: Disk> PartitionLog<D> {
    /// Appends `batch`, which `validated` is about, as the leader of `epoch`.
    ///
    /// Base offset, leader epoch and, for LogAppendTime, the time are stamped in passing; the rest
    /// of the bytes is written as it came, in one vectored write.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is then unchanged.
    pub fn append_as_leader(
        &mut self,
        now: Now,
        epoch: LeaderEpoch,
        batch: &[u8],
        validated: &Validated,
        origin: Origin,
    ) -> Result<Appended, AppendError> {
        self.mend_tail()?;
        self.check_size(batch.len() as u64)?;
        let first_offset = self.log_end_offset();
        let producer_batch = producer_batch(&validated.header, batch);
        if let Check::Duplicate {
            first_offset,
            last_offset,
            timestamp,
        } = self.producers.check(&producer_batch, origin.into())?
        {
            return Ok(Appended {
                first_offset,
                last_offset,
                log_append_time: timestamp,
                duplicate: true,
                size_bytes: 0,
            });
        }
        let log_append_time = match self.config.timestamp_type {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(now.wall),
        };
        if first_offset
            .raw()
            .checked_add(i64::from(validated.header.last_offset_delta) + 1)
            .is_none()
        {
            return Err(AppendError::OffsetsUsedUp);
        }
        let head = stamp(batch, validated, first_offset, epoch, log_append_time);
        let header = BatchHeader::parse(&head).expect("a stamped header is a header");
        if self.must_roll(now, 0, &header) {
            self.roll_at(now, first_offset)?;
        }
        let rest = batch.get(BATCH_HEADER_BYTES..).unwrap_or_default();
        self.write(
            &[IoSlice::new(&head), IoSlice::new(rest)],
            std::iter::once(&header),
        )?;
        self.took(&header, batch);
        self.assert_invariants();
        Ok(Appended {
            first_offset,
            last_offset: header.last_offset(),
            log_append_time: log_append_time.unwrap_or(WallMs::NONE),
            duplicate: false,
            size_bytes: batch.len() as u64,
        })
    }

    /// Appends batches as the leader of `epoch` sent them, byte for byte, in one write for each
    /// segment. A batch that is cut at the end of `bytes` is left out, and so is everything from
    /// the first batch of a newer epoch on: the follower does not know that epoch yet
    /// (KAFKA-18723).
    ///
    /// `None` when nothing is left to append.
    ///
    /// # Errors
    /// See [`AppendError`]. Batches in front of the one at fault may be appended, at the end of a
    /// segment that was closed.
    pub fn append_as_follower(
        &mut self,
        now: Now,
        bytes: &[u8],
        epoch: LeaderEpoch,
    ) -> Result<Option<Appended>, AppendError> {
        self.mend_tail()?;
        let mut run = Run::default();
        let mut appended: Option<Appended> = None;
        let mut expected = self.log_end_offset();
        for batch in Batches::new(bytes) {
            let batch = batch.and_then(checked)?;
            let header = batch.header();
            if header.leader_epoch > epoch {
                break;
            }
            if header.base_offset < expected {
                self.write_run(&mut run, bytes)?;
                let log_end_offset = self.log_end_offset();
                return Err(AppendError::BelowEnd {
                    base_offset: header.base_offset,
                    log_end_offset,
                });
            }
            if header.next_offset() == Offset::MAX {
                return Err(AppendError::OffsetsUsedUp);
            }
            if self.active().size == 0 {
                // What the first batch of a segment says about its age counts for the next.
                self.write_run(&mut run, bytes)?;
            }
            if self.must_roll(now, run.size, header) {
                self.write_run(&mut run, bytes)?;
                self.roll_at(now, header.base_offset)?;
            }
            expected = header.next_offset();
            let so_far = appended.get_or_insert_with(|| Appended {
                first_offset: header.base_offset,
                last_offset: header.last_offset(),
                log_append_time: WallMs::NONE,
                duplicate: false,
                size_bytes: 0,
            });
            so_far.last_offset = header.last_offset();
            so_far.size_bytes += batch.size_bytes() as u64;
            run.push(batch);
        }
        self.write_run(&mut run, bytes)?;
        self.assert_invariants();
        Ok(appended)
    }

    /// Where an empty log has to begin anew so that the first of a leader's batches fits: at the
    /// base of that batch, when it lies below the log's start and the batch reaches above it. For
    /// records can be deleted up to the middle of a batch, and a leader gives the whole
    /// (KAFKA-6975). `None`: it need not.
    #[must_use]
    pub fn start_for(&self, bytes: &[u8]) -> Option<Offset> {
        let end = self.log_end_offset();
        if self.log_start_offset < end {
            return None;
        }
        let batch = Batches::new(bytes).next()?.and_then(checked).ok()?;
        let header = batch.header();
        (header.base_offset < end && end < header.next_offset()).then_some(header.base_offset)
    }

    /// Closes the active segment and begins a new one at the log end offset. Does nothing when
    /// the active segment is empty. Appends roll by themselves; this is for owners that need it.
    ///
    /// # Errors
    /// When the disk refuses; the log then goes on in the old segment.
    pub fn roll(&mut self, now: Now) -> Result<(), DiskError> {
        if self.active().size == 0 {
            return Ok(());
        }
        self.roll_at(now, self.log_end_offset())
    }

    /// As [`PartitionLog::roll`], with the new segment's base offset.
    pub(super) fn roll_at(&mut self, now: Now, base_offset: Offset) -> Result<(), DiskError> {
        assert!(
            base_offset >= self.log_end_offset(),
            "roll at {base_offset} below the end"
        );
        self.active_mut().finish()?;
        let next = LogSegment::create(&self.disk, &self.dir, base_offset, now.wall)?;
        self.segments.push_back(next);
        self.recent.clear();
        self.flush.names_changed = true;
        self.flush.wanted = true;
        self.keep_snapshot(base_offset);
        self.assert_invariants();
        Ok(())
    }

    /// Notes the producers as they are at the base of a segment.
    pub(super) fn keep_snapshot(&mut self, base_offset: Offset) {
        let first = self.segments.front().map(|segment| segment.base_offset);
        if self.producers.is_empty() && first == Some(base_offset) {
            // A log that begins here had no producers before.
            return;
        }
        let bytes = self.producers.encode_snapshot();
        // If that fails, the next sync job writes it and says so.
        let _ = write_snapshot(&self.disk, &self.dir, base_offset, &bytes);
        self.flush
            .snapshots
            .retain(|(offset, _)| *offset < base_offset);
        self.flush.snapshots.push((base_offset, bytes));
    }

    fn check_size(&self, size_bytes: u64) -> Result<(), AppendError> {
        let segment_bytes = self.config.segment_bytes;
        if size_bytes > u64::from(segment_bytes) {
            return Err(AppendError::LargerThanSegment {
                size_bytes,
                segment_bytes,
            });
        }
        Ok(())
    }

    /// After a failed write: cuts the file to its last good batch. Nobody was ever given a
    /// region of what is cut.
    pub(super) fn mend_tail(&mut self) -> Result<(), DiskError> {
        match &self.fence {
            Fence::Open => return Ok(()),
            Fence::Failed(why) => return Err(why.clone()),
            Fence::TailUnknown => {}
        }
        let active = self.active_mut();
        let size = active.size;
        active.file()?.set_len(size)?;
        active.is_dirty = true;
        self.fence = Fence::Open;
        Ok(())
    }

    fn must_roll(&self, now: Now, before_bytes: u64, header: &BatchHeader) -> bool {
        self.active()
            .must_roll(&self.config, now.wall, before_bytes, header)
    }

    /// Writes what waits of `bytes`.
    fn write_run(&mut self, run: &mut Run<'_>, bytes: &[u8]) -> Result<(), DiskError> {
        let start = run.end - usize::try_from(run.size).expect("it is within bytes");
        let whole = bytes.get(start..run.end).expect("it is within bytes");
        let batches = std::mem::take(&mut run.batches);
        run.size = 0;
        if batches.is_empty() {
            return Ok(());
        }
        self.write(&[IoSlice::new(whole)], batches.iter().map(Batch::header))?;
        for batch in &batches {
            self.took(batch.header(), batch.bytes());
        }
        Ok(())
    }

    fn write<'a>(
        &mut self,
        bytes: &[IoSlice<'_>],
        headers: impl Iterator<Item = &'a BatchHeader> + Clone,
    ) -> Result<(), DiskError> {
        let interval = self.config.index_interval_bytes;
        let mut position = self.active().size;
        if let Err(why) = self.active_mut().append(bytes, headers.clone(), interval) {
            self.fence = Fence::TailUnknown;
            return Err(why);
        }
        for header in headers {
            self.recent.push(header, position);
            position += header.size_bytes() as u64;
        }
        Ok(())
    }

    /// Brings epochs and producers up to a batch that was just written.
    fn took(&mut self, header: &BatchHeader, batch: &[u8]) {
        if header.leader_epoch >= LeaderEpoch::ZERO
            && self.epochs.assign(header.leader_epoch, header.base_offset)
        {
            self.flush.epochs_changed = true;
        }
        let ended = self.producers.apply(&producer_batch(header, batch));
        if let Some(aborted) = ended.and_then(|ended| ended.aborted()) {
            self.active_mut().add_aborted(aborted);
        }
    }
}

/// Writes a producer snapshot into the page cache, so that it outlives the process: retention may
/// soon remove what it was made of. A sync job makes it durable.
pub(crate) fn write_snapshot<D: Disk>(
    disk: &D,
    dir: &Path,
    offset: Offset,
    bytes: &[u8],
) -> Result<(), DiskError> {
    let path = segment_file(dir, offset, FileKind::Snapshot);
    let file = disk.open(&path, OpenMode::Create)?;
    file.write_at(0, &[IoSlice::new(bytes)])?;
    file.set_len(bytes.len() as u64)
}

/// Whole batches that wait to be written at once: they lie one behind the other in the bytes that
/// are appended.
#[derive(Debug, Default)]
struct Run<'a> {
    batches: Vec<Batch<'a>>,
    /// Bytes of the batches.
    size: u64,
    /// Where in the bytes they end.
    end: usize,
}

impl<'a> Run<'a> {
    fn push(&mut self, batch: Batch<'a>) {
        self.size += batch.size_bytes() as u64;
        self.end += batch.size_bytes();
        self.batches.push(batch);
    }
}

/// Checks a replicated batch: CRC and the fields that the log relies on.
fn checked(batch: Batch<'_>) -> Result<Batch<'_>, BatchError> {
    batch.check_crc()?;
    let header = batch.header();
    if parse_header(batch.bytes()).is_none() {
        return Err(BatchError::RecordCount {
            record_count: header.record_count,
            last_offset_delta: header.last_offset_delta,
        });
    }
    Ok(batch)
}

/// What the producer state looks at in the batch of `header`, whose bytes are `batch`.
pub(crate) fn producer_batch(header: &BatchHeader, batch: &[u8]) -> ProducerBatch {
    ProducerBatch {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        base_offset: header.base_offset,
        last_offset_delta: header.last_offset_delta,
        max_timestamp: header.max_timestamp,
        is_transactional: header.attributes.is_transactional(),
        is_control: header.attributes.is_control(),
        marker: marker_of(header, batch),
    }
}

/// The transaction marker in `batch`, if it is a control batch with one.
fn marker_of(header: &BatchHeader, batch: &[u8]) -> Option<TransactionMarker> {
    if !header.attributes.is_control() {
        return None;
    }
    let open = Batch::parse(batch)
        .ok()?
        .open(MARKER_BYTES_MAX as u64)
        .ok()?;
    let record = open.records().next()?.ok()?;
    let marker = EndTransactionMarker::of(&record).ok().flatten()?;
    let kind = if marker.committed {
        MarkerKind::Commit
    } else {
        MarkerKind::Abort
    };
    Some(TransactionMarker {
        kind,
        coordinator_epoch: marker.coordinator_epoch.raw(),
    })
}
