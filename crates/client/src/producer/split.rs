//! Batches that are too large for their broker, halved (KIP-126).

use highwater_records::{Batch, BatchBuilder, OpenBatch, ProducerStamp, RecordHeader};

use super::accumulator::sequence_after;
use super::batch::ProducerBatch;
use super::delivery::{Outcome, Part};

impl ProducerBatch {
    /// Halves a batch that was sent. Whoever waits for its records waits for the halves from now
    /// on; the records keep their sequences. Gives the batch back when it cannot be halved.
    pub(super) fn split(mut self) -> Result<[Self; 2], Box<Self>> {
        let halves = self.encoded().and_then(halved);
        let Some([one, other]) = halves else {
            return Err(Box::new(self));
        };
        let first = one.record_count();
        let stamp = self.stamp;
        let later = stamp.map(|stamp| stamp_after(stamp, first));
        let (Some(one), Some(other)) = (self.part(one, stamp), self.part(other, later)) else {
            return Err(Box::new(self));
        };
        let part = |first, batch: &Self| Part {
            first,
            outcome: batch.subscribe(),
        };
        let parts = [part(0, &one), part(first, &other)];
        self.complete(Outcome::Split(parts.into()));
        Ok([one, other])
    }
}

/// The stamp of the batch that begins `count` records later.
fn stamp_after(stamp: ProducerStamp, count: i32) -> ProducerStamp {
    if !stamp.id.is_some() {
        return stamp;
    }
    ProducerStamp {
        base_sequence: sequence_after(stamp.base_sequence, count),
        ..stamp
    }
}

/// The records of `bytes`, an encoded batch of our own, in two batches of about the same size.
/// `None` for a single record.
fn halved(bytes: &[u8]) -> Option<[BatchBuilder; 2]> {
    let batch = Batch::parse(bytes).ok()?;
    if batch.header().record_count < 2 {
        return None;
    }
    let open = batch.open(u64::MAX).ok()?;
    let mut halves = [BatchBuilder::new(), BatchBuilder::new()];
    let half_bytes = open.records_bytes() / 2;
    copy(&open, half_bytes, &mut halves)?;
    Some(halves)
}

fn copy(
    open: &OpenBatch<'_>,
    half_bytes: usize,
    [one, other]: &mut [BatchBuilder; 2],
) -> Option<()> {
    let mut left = open.header().record_count;
    let mut headers: Vec<RecordHeader<'_>> = Vec::new();
    for record in open.records() {
        let record = record.ok()?;
        headers.clear();
        headers.extend(record.headers());
        // Each half gets one record at least.
        let is_first = one.is_empty() || left > 1 && one.size_bytes() < half_bytes;
        let half = if is_first && other.is_empty() {
            &mut *one
        } else {
            &mut *other
        };
        let (key, value) = (record.key, record.value);
        half.append(record.timestamp, key, value, &headers).ok()?;
        left -= 1;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_records::{BatchOptions, Compression, Compressor};
    use highwater_types::{ProducerEpoch, ProducerId, WallMs};

    fn batch(sizes: &[usize], codec: Compression) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        for (at, size) in sizes.iter().enumerate() {
            let key = at.to_be_bytes();
            let headers: &[RecordHeader<'_>] = &[(b"h", None), (b"h", Some(b"v"))];
            let time = WallMs::new(1_000 - i64::try_from(at).unwrap());
            let value = vec![7; *size];
            builder
                .append(time, Some(&key), Some(&value), headers)
                .unwrap();
        }
        let options = BatchOptions {
            compressor: Compressor::new(codec),
            ..Default::default()
        };
        builder.finish(&options).unwrap()
    }

    type Rows = Vec<(WallMs, Vec<u8>, usize, usize)>;

    fn rows(bytes: &[u8]) -> Rows {
        let open = Batch::parse(bytes).unwrap().open(u64::MAX).unwrap();
        let row = |record: highwater_records::Record<'_>| {
            let (key, value) = (record.key.unwrap().to_vec(), record.value.unwrap().len());
            (record.timestamp, key, value, record.headers().count())
        };
        open.records().map(|it| row(it.unwrap())).collect()
    }

    #[test]
    fn halves_have_all_records_in_order_and_one_at_least() {
        let cases: [&[usize]; 5] = [
            &[10, 10],
            &[5_000, 1, 1],
            &[1, 1, 5_000],
            &[100; 64],
            &[1, 3_000, 1, 1],
        ];
        for codec in Compression::ALL {
            for sizes in cases {
                let whole = batch(sizes, codec);
                let halves = halved(&whole).unwrap();
                assert!(halves.iter().all(|half| !half.is_empty()), "{sizes:?}");
                let [one, other] = halves.map(|mut half| {
                    assert!(half.size_bytes() < batch(sizes, Compression::None).len());
                    half.finish(&BatchOptions::default()).unwrap()
                });
                assert_eq!([rows(&one), rows(&other)].concat(), rows(&whole));
            }
            assert!(halved(&batch(&[9], codec)).is_none(), "a single record");
        }
    }

    #[test]
    fn sequences_go_on_over_the_wrap() {
        let stamp = ProducerStamp {
            id: ProducerId::new(7),
            epoch: ProducerEpoch::new(1),
            base_sequence: i32::MAX - 1,
        };
        assert_eq!(stamp_after(stamp, 3).base_sequence, 1);
        assert_eq!(stamp_after(ProducerStamp::NONE, 3), ProducerStamp::NONE);
    }
}
