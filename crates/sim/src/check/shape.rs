//! I-18, I-21 and the other half of I-10: the bytes of a log, followed as they grow.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use highwater_disk::{Disk as _, DiskFile as _, MemDisk, OpenMode};
use highwater_log::{DamagedRange, PartitionLog};
use highwater_records::{Batch, BatchError, BatchHeader, Batches, Record};
use highwater_types::{LeaderEpoch, Millis, Offset, ProducerEpoch, ProducerId, WallMs};

use super::groups::GROUPS_TOPIC;
use super::marks::{BatchMark, value_hash};

/// Output bound for a batch of the simulator.
pub(super) const BATCH_BYTES_MAX: u64 = 1 << 20;

/// What came to a log since it was last looked at.
#[derive(Debug, Default)]
pub(super) struct LogNews {
    /// The log was cut, or opened: what follows is all that it holds.
    pub(super) is_anew: bool,
    /// Batches, in order.
    pub(super) marks: Vec<BatchMark>,
}

/// How far the bytes of a log were followed.
#[derive(Debug, Default)]
pub(super) struct LogBytes {
    /// The segment, by base offset, and how many of its bytes were seen.
    at: Option<(Offset, u64)>,
    /// Exclusive end of the last batch seen.
    end_offset: Option<Offset>,
    /// The next sequence of each producer's epoch, and the time of its last record.
    sequences: BTreeMap<(ProducerId, ProducerEpoch), (i32, WallMs)>,
    /// The epoch of the last batch seen.
    epoch: Option<LeaderEpoch>,
    /// Every damage that the log ever told of: after a clean stop it need not look again.
    damage: Vec<DamagedRange>,
    /// Whether anything was seen since it was begun anew.
    is_followed: bool,
}

impl LogBytes {
    /// Forgets what was followed, but not where damage lies.
    pub(super) fn begin_anew(&mut self) {
        *self = Self {
            damage: std::mem::take(&mut self.damage),
            ..Self::default()
        };
    }

    /// Whether the log ever told of damage at this offset.
    pub(super) fn knows_damage(&self, at: Offset) -> bool {
        self.damage.iter().any(|range| range.contains(at))
    }

    /// Looks at the batches that came since the last call, and hands each record of theirs to
    /// `see`; `is_cut`: the log told that it was cut in between.
    pub(super) fn follow(
        &mut self,
        disk: &MemDisk,
        log: &PartitionLog<MemDisk>,
        is_cut: bool,
        see: &mut dyn FnMut(&Record<'_>),
    ) -> LogNews {
        let range = log.log_start_offset()..=log.log_end_offset();
        if is_cut || self.end_offset.is_some_and(|end| !range.contains(&end)) {
            self.begin_anew();
        }
        let mut news = LogNews {
            is_anew: !std::mem::replace(&mut self.is_followed, true),
            marks: Vec::new(),
        };
        for range in log.damage() {
            if !self.damage.contains(range) {
                self.damage.push(*range);
            }
        }
        self.damage.sort_by_key(|range| range.from);
        for segment in log.segments() {
            let seen = match self.at {
                Some((base, _)) if segment.base_offset < base => continue,
                Some((base, seen)) if segment.base_offset == base => seen,
                _ => 0,
            };
            if seen < segment.size_bytes {
                let bytes = read(disk, log, segment.base_offset, seen, segment.size_bytes);
                self.batches(log, segment.base_offset, &bytes, see, &mut news.marks);
            }
            self.at = Some((segment.base_offset, segment.size_bytes));
        }
        let end = self.end_offset.unwrap_or_else(|| log.log_end_offset());
        assert_eq!(
            end,
            log.log_end_offset(),
            "I-18 {}: the bytes do not reach to the log end offset",
            log.topic_partition()
        );
        news
    }

    fn batches(
        &mut self,
        log: &PartitionLog<MemDisk>,
        base: Offset,
        bytes: &[u8],
        see: &mut dyn FnMut(&Record<'_>),
        marks: &mut Vec<BatchMark>,
    ) {
        let name = log.topic_partition();
        let mut rest = bytes;
        while !rest.is_empty() {
            let expected = self.end_offset.unwrap_or(base);
            let batch = match Batch::parse(rest).and_then(checked) {
                Ok(batch) if !self.is_torn(batch.header(), expected) => batch,
                bad => {
                    let after = after_damage(&self.damage, expected, rest);
                    let (next, end) = after
                        .unwrap_or_else(|| panic!("I-18 {name}: segment {base}: {:?}", bad.err()));
                    (rest, self.end_offset) = (next, Some(end));
                    // The damaged batches had sequences too.
                    self.sequences.clear();
                    continue;
                }
            };
            let own_bytes = rest.get(..batch.size_bytes()).unwrap_or_default();
            rest = rest.get(batch.size_bytes()..).unwrap_or_default();
            let header = batch.header();
            assert!(
                header.base_offset >= base,
                "I-18 {name}: a batch below its segment"
            );
            if let Some(end) = self.end_offset {
                // Nothing is compacted here: there is no gap either.
                assert_eq!(
                    header.base_offset, end,
                    "I-18 {name}: a batch does not begin where the one before ends"
                );
            }
            self.end_offset = Some(header.next_offset());
            self.epoch_of(log, header);
            self.sequence_of(log, header);
            let mut mark = mark_of(header);
            if name.topic.as_str() == GROUPS_TOPIC {
                mark.bytes = Some(Bytes::copy_from_slice(own_bytes));
            }
            for record in batch.open(BATCH_BYTES_MAX).expect("opens").records() {
                let record = record.unwrap_or_else(|why| panic!("I-18 {name}: {why}"));
                mark.values
                    .push(value_hash(record.value.unwrap_or_default()));
                see(&record);
            }
            marks.push(mark);
        }
    }

    /// The base offset is not under the checksum: what a lost sector took of it may leave a batch
    /// that is whole but for its place. Only where the log tells of damage.
    fn is_torn(&self, header: &BatchHeader, expected: Offset) -> bool {
        header.base_offset != expected && self.damage.iter().any(|range| range.from == expected)
    }

    fn epoch_of(&mut self, log: &PartitionLog<MemDisk>, header: &BatchHeader) {
        let (name, epoch, at) = (
            log.topic_partition(),
            header.leader_epoch,
            header.base_offset,
        );
        if let Some(before) = self.epoch {
            assert!(
                before <= epoch,
                "I-10 {name}: epoch {epoch} at {at} after {before}"
            );
        }
        self.epoch = Some(epoch);
        let covering = log
            .epochs()
            .entries
            .iter()
            .rev()
            .find(|entry| entry.start_offset <= at);
        assert_eq!(
            covering.map(|entry| entry.epoch),
            Some(epoch),
            "I-10 {name}: the cache does not know the epoch of the batch at {at}"
        );
    }

    fn sequence_of(&mut self, log: &PartitionLog<MemDisk>, header: &BatchHeader) {
        if !header.producer_id.is_some() || header.base_sequence < 0 {
            return;
        }
        let key = (header.producer_id, header.producer_epoch);
        let known = self.sequences.get(&key).filter(|(_, last)| {
            // A producer that was idle for so long is forgotten, and may begin anywhere (PI-07).
            let idle = Millis::from_wire(header.max_timestamp.since(*last));
            idle < log.config().producer_id_expiration_ms
        });
        if let Some((expected, _)) = known {
            assert_eq!(
                header.base_sequence,
                *expected,
                "I-21 {}: producer {} epoch {} at offset {}",
                log.topic_partition(),
                header.producer_id,
                header.producer_epoch,
                header.base_offset
            );
        }
        let next = header.last_sequence().wrapping_add(1) & i32::MAX;
        self.sequences.insert(key, (next, header.max_timestamp));
    }
}

fn mark_of(header: &BatchHeader) -> BatchMark {
    BatchMark {
        base: header.base_offset,
        next: header.next_offset(),
        epoch: header.leader_epoch,
        crc: header.crc,
        is_idempotent: header.producer_id.is_some() && header.base_sequence >= 0,
        values: Vec::new(),
        bytes: None,
    }
}

fn checked(batch: Batch<'_>) -> Result<Batch<'_>, BatchError> {
    batch.check_crc()?;
    Ok(batch)
}

/// What follows damage that the log knows of: bytes that a loss of power took out of the middle
/// stay as they are below the high watermark, and only a batch that begins where the damaged
/// offsets end may follow. Gives the rest and that offset; `None` when no damage is known at or
/// after `from`.
fn after_damage<'a>(
    known: &[DamagedRange],
    from: Offset,
    bytes: &'a [u8],
) -> Option<(&'a [u8], Offset)> {
    let damage = known.iter().find(|range| range.to > from)?;
    let begins = damage.to.raw().to_be_bytes();
    let next = (1..bytes.len()).find_map(|at| {
        let rest = bytes.get(at..)?;
        let is_next = rest.starts_with(&begins) && Batch::parse(rest).and_then(checked).is_ok();
        is_next.then_some(rest)
    });
    Some((next.unwrap_or_default(), damage.to))
}

/// Every batch that an open log holds on its disk, with its values as text.
pub(crate) fn stored_batches(
    disks: &[MemDisk],
    log: &PartitionLog<MemDisk>,
) -> Vec<(BatchHeader, Vec<String>)> {
    let mut found = Vec::new();
    let is_there = |disk: &&MemDisk| disk.session().list(log.dir()).is_ok();
    for (disk, segment) in disks.iter().filter(is_there).flat_map(|disk| {
        let segments: Vec<_> = log.segments().collect();
        segments.into_iter().map(move |segment| (disk, segment))
    }) {
        let bytes = read(disk, log, segment.base_offset, 0, segment.size_bytes);
        for batch in Batches::new(&bytes).map_while(Result::ok) {
            let open = batch.open(BATCH_BYTES_MAX).expect("opens");
            let values = open.records().map_while(Result::ok);
            let values =
                values.map(|it| String::from_utf8_lossy(it.value.unwrap_or_default()).into());
            found.push((*batch.header(), values.collect()));
        }
    }
    found
}

fn read(disk: &MemDisk, log: &PartitionLog<MemDisk>, base: Offset, from: u64, to: u64) -> Vec<u8> {
    let path: PathBuf = log.dir().join(format!("{:020}.log", base.raw()));
    let file = disk
        .session()
        .open(&path, OpenMode::Read)
        .expect("a segment of an open log");
    let mut bytes = vec![0; usize::try_from(to - from).expect("small logs")];
    let read = file.read_at(from, &mut bytes).expect("memory");
    assert_eq!(
        read,
        bytes.len(),
        "I-18 {}: segment {base} is short",
        log.topic_partition()
    );
    bytes
}
