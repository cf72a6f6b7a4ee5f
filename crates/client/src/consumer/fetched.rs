use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use highwater_protocol::messages::fetch_response::AbortedTransaction;
use highwater_records::{
    Batch, BatchError, BatchHeader, Batches, Compression, ControlType, Decompressor, Record,
    Records,
};
use highwater_types::{LeaderEpoch, Offset, PartitionIndex, ProducerId};

use super::config::ConsumerConfig;
use crate::offsets::IsolationLevel;

/// Records of one partition, checked and decompressed. Holds the answer's bytes; records are read
/// in place.
#[derive(Clone, Debug)]
pub struct PartitionRecords {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// The leader's high watermark at the time of the answer.
    pub high_watermark: Offset,
    /// The leader's last stable offset at that time.
    pub last_stable_offset: Offset,
    /// The leader's log start offset at that time, when it told.
    pub log_start_offset: Option<Offset>,
    /// Batches of data, in order; never empty.
    pub batches: Vec<FetchedBatch>,
    /// The first offset that was asked for: a batch may begin before it.
    pub from: Offset,
}

/// One batch of data.
#[derive(Clone, Debug)]
pub struct FetchedBatch {
    header: BatchHeader,
    /// Not compressed.
    ///
    /// Invariant: holds exactly the records that the header counts; each was read once.
    records: Bytes,
}

impl PartitionRecords {
    /// The records from the offset that was asked for, in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let from = self.from;
        self.batches
            .iter()
            .flat_map(FetchedBatch::records)
            .skip_while(move |record| record.offset < from)
    }
}

impl FetchedBatch {
    /// The batch's header, as the broker sent it.
    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All records of the batch, also those before the offset that was asked for.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        Records::over(self.header, &self.records)
            .map(|record| record.expect("each record was read when the batch came"))
    }
}

/// What became of a partition's bytes.
pub(super) struct Intake {
    /// Batches of data that the isolation level lets through.
    pub(super) batches: Vec<FetchedBatch>,
    /// The next offset to ask for.
    pub(super) next: Offset,
    /// Epoch of the last batch.
    pub(super) last_epoch: LeaderEpoch,
    /// What stopped it; what came before is good.
    pub(super) stopped: Option<(Offset, BatchError)>,
}

/// Reads batches out of an answer.
pub(super) struct BatchReader<'a> {
    pub(super) config: &'a ConsumerConfig,
    pub(super) decompressor: &'a mut Decompressor,
}

impl BatchReader<'_> {
    /// Takes in the batches from `position` on, up to the first that is not sound.
    pub(super) fn read(
        &mut self,
        records: &Bytes,
        position: Offset,
        epoch: LeaderEpoch,
        aborted: Option<Vec<AbortedTransaction>>,
    ) -> Intake {
        let mut intake = Intake {
            batches: Vec::new(),
            next: position,
            last_epoch: epoch,
            stopped: None,
        };
        let committed_only = self.config.isolation_level == IsolationLevel::ReadCommitted;
        let mut aborted = Aborted::new(aborted.filter(|_| committed_only).unwrap_or_default());
        let mut batches = Batches::new(records);
        for batch in batches.by_ref() {
            let batch = match batch {
                Ok(batch) => batch,
                Err(why) => {
                    intake.stopped = Some((intake.next, why));
                    return intake;
                }
            };
            let header = *batch.header();
            if header.last_offset() < position {
                continue;
            }
            match self.take(&batch, records, &mut aborted) {
                Ok(taken) => intake.batches.extend(taken),
                Err(why) => {
                    intake.stopped = Some((header.base_offset, why));
                    return intake;
                }
            }
            intake.next = header.next_offset();
            intake.last_epoch = header.leader_epoch;
        }
        let left = batches.rest().len();
        if left > 0 && intake.next == position {
            // An answer may end in a cut batch, but not begin with it.
            let why = BatchError::Cut {
                have_bytes: left,
                need_bytes: left + 1,
            };
            intake.stopped = Some((position, why));
        }
        intake
    }

    /// The batch's records, unless it is one of control or of an aborted transaction.
    fn take(
        &mut self,
        batch: &Batch<'_>,
        answer: &Bytes,
        aborted: &mut Aborted,
    ) -> Result<Option<FetchedBatch>, BatchError> {
        if self.config.check_crcs {
            batch.check_crc()?;
        }
        let header = *batch.header();
        aborted.reach(header.last_offset());
        if header.attributes.is_control() {
            if batch.control_type()? == Some(ControlType::Abort) {
                aborted.open.remove(&header.producer_id);
            }
            return Ok(None);
        }
        let is_transactional = header.attributes.is_transactional();
        if is_transactional && aborted.open.contains(&header.producer_id) {
            return Ok(None);
        }
        if header.record_count == 0 {
            return Ok(None);
        }
        let limit_bytes = self.config.decompressed_bytes_max;
        let records = match header.attributes.compression()? {
            Compression::None => answer.slice_ref(batch.body()),
            codec => self
                .decompressor
                .decompress(codec, batch.body(), limit_bytes)?
                .into(),
        };
        for record in Records::over(header, &records) {
            record?;
        }
        Ok(Some(FetchedBatch { header, records }))
    }
}

/// The aborted transactions of an answer, as the batches are walked through.
struct Aborted {
    /// Not reached yet, by first offset.
    ahead: VecDeque<AbortedTransaction>,
    /// Reached, and their abort marker not yet.
    open: BTreeSet<ProducerId>,
}

impl Aborted {
    fn new(mut transactions: Vec<AbortedTransaction>) -> Self {
        transactions.sort_by_key(|transaction| transaction.first_offset);
        Self {
            ahead: transactions.into(),
            open: BTreeSet::new(),
        }
    }

    fn reach(&mut self, last_offset: Offset) {
        let is_reached = |it: &mut AbortedTransaction| it.first_offset <= last_offset.raw();
        while let Some(transaction) = self.ahead.pop_front_if(is_reached) {
            self.open.insert(transaction.producer_id);
        }
    }
}
