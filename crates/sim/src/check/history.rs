//! I-09 and I-17: what clients were told stays true.

use std::collections::{BTreeMap, BTreeSet};

use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_types::{Offset, TopicIdPartition};

use crate::world::clients::requests::SentBatch;

/// Everything that clients were told of a partition.
#[derive(Debug, Default)]
struct Told {
    /// Each record that was acknowledged or read.
    records: BTreeMap<Offset, Vec<u8>>,
    /// `TrueHW`: the highest offset that was ever committed, exclusive.
    high_watermark: Offset,
    log_start_offset: Offset,
}

/// What clients sent and were told.
#[derive(Debug, Default)]
pub(super) struct History {
    partitions: BTreeMap<TopicIdPartition, Told>,
    sent: u64,
}

impl History {
    /// A batch leaves its client.
    pub(super) const fn sent(&mut self, batch: &SentBatch) {
        self.sent += batch.values.len() as u64;
    }

    /// A batch was acknowledged.
    pub(super) fn acknowledged(&mut self, id: TopicIdPartition, batch: &SentBatch, base: Offset) {
        let told = self.partitions.entry(id).or_default();
        let mut offset = base;
        for value in &batch.values {
            told.tell(id, offset, value, "acknowledged");
            offset = offset.next();
        }
        if batch.acks == -1 {
            assert!(
                offset <= told.high_watermark,
                "I-12 {id}: acks=all up to {offset}, but the high watermark was never above {}",
                told.high_watermark
            );
        }
    }

    /// Records came back from a fetch.
    pub(super) fn was_read(
        &mut self,
        id: TopicIdPartition,
        data: &PartitionData,
        records: &[(Offset, Vec<u8>)],
    ) {
        let told = self.partitions.entry(id).or_default();
        let end = Offset::new(data.high_watermark);
        for (offset, value) in records {
            assert!(
                *offset < end,
                "I-09 {id}: {offset} was read at high watermark {end}"
            );
            assert!(
                *offset < told.high_watermark,
                "I-09 {id}: {offset} was read, but never committed"
            );
            told.tell(id, *offset, value, "read");
        }
    }

    /// A replica's high watermark as it is now.
    pub(super) fn high_watermark(&mut self, id: TopicIdPartition, high_watermark: Offset) {
        let told = self.partitions.entry(id).or_default();
        told.high_watermark = told.high_watermark.max(high_watermark);
    }

    /// A replica's log start offset as it is now: below it nothing has to be there.
    pub(super) fn log_start(&mut self, id: TopicIdPartition, log_start_offset: Offset) {
        let told = self.partitions.entry(id).or_default();
        if told.log_start_offset < log_start_offset {
            told.log_start_offset = log_start_offset;
            told.records = told.records.split_off(&log_start_offset);
        }
    }

    /// A record is in the log: clients may not have been told another value for its offset.
    pub(super) fn is_stored(&self, id: TopicIdPartition, offset: Offset, value: &[u8]) {
        let told = self
            .partitions
            .get(&id)
            .and_then(|told| told.records.get(&offset));
        if let Some(told) = told {
            assert_eq!(
                String::from_utf8_lossy(told),
                String::from_utf8_lossy(value),
                "I-17 {id}: the log holds another value at {offset} than clients were told"
            );
        }
    }

    /// Everything that the log holds, after a start: what clients were told has to be in it.
    pub(super) fn holds(&self, id: TopicIdPartition, stored: &BTreeSet<Offset>) {
        let told = self.partitions.get(&id).map(|told| &told.records);
        let missing = told.and_then(|told| told.keys().find(|offset| !stored.contains(offset)));
        assert_eq!(
            missing, None,
            "I-17 {id}: clients were told of it, and it is gone"
        );
    }

    /// The only copy lost `[from, to)` out of its middle, and says so: gives how many told records
    /// are gone.
    pub(super) fn damaged(&mut self, id: TopicIdPartition, from: Offset, to: Offset) -> u64 {
        let told = self.partitions.entry(id).or_default();
        let before = told.records.len();
        told.records
            .retain(|offset, _| *offset < from || *offset >= to);
        (before - told.records.len()) as u64
    }

    /// The only copy ends at `end` after a start: gives how many told records are gone.
    pub(super) fn cut(&mut self, id: TopicIdPartition, end: Offset) -> u64 {
        let told = self.partitions.entry(id).or_default();
        told.high_watermark = told.high_watermark.min(end);
        told.records.split_off(&end).len() as u64
    }
}

impl Told {
    fn tell(&mut self, id: TopicIdPartition, offset: Offset, value: &[u8], how: &str) {
        if offset < self.log_start_offset {
            return;
        }
        let before = self.records.entry(offset).or_insert_with(|| value.to_vec());
        assert_eq!(
            String::from_utf8_lossy(before),
            String::from_utf8_lossy(value),
            "I-17 {id}: two values were {how} at {offset}"
        );
    }
}
