//! What an owner knows of its log, and what must be true of a log whatever happened to it.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::{Blocking, MemDisk};
use highwater_log::{LogConfig, Origin, PartitionLog, ReadError, RecoveryReport};
use highwater_records::{Batch, Batches, Validated};
use highwater_types::{LeaderEpoch, Offset};

use super::own::*;

pub type Log = PartitionLog<MemDisk>;
pub type Step = Result<(), String>;

/// What an owner knows that survives in its checkpoints, and what it ever wrote.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Exclusive: flushed, and the owner heard of it.
    pub flushed: i64,
    pub log_start: i64,
    /// Retention was told to delete below: holes there are no loss.
    pub retained: i64,
    /// The newest bytes of each batch by base offset.
    pub written: BTreeMap<i64, Vec<u8>>,
    /// All bytes that ever were at an offset.
    pub ever: BTreeMap<i64, BTreeSet<Vec<u8>>>,
}

impl Known {
    pub fn note(&mut self, base: i64, bytes: &[u8]) {
        self.written.insert(base, bytes.to_vec());
        self.ever.entry(base).or_default().insert(bytes.to_vec());
    }

    pub fn append(&mut self, log: &mut Log, leader_epoch: i32, spec: &Spec) -> Step {
        let base = log.log_end_offset().raw();
        let bytes = spec.build_at(base, leader_epoch);
        // Noted first: a write that fails may have left something, or everything.
        self.ever.entry(base).or_default().insert(bytes.clone());
        let client = spec.build();
        let validated = Validated::trusted(&Batch::parse(&client).unwrap());
        let epoch = LeaderEpoch::new(leader_epoch);
        log.append_as_leader(clock(), epoch, &client, &validated, Origin::Client)
            .map_err(|why| why.to_string())?;
        self.note(base, &bytes);
        Ok(())
    }

    pub fn sync(&mut self, log: &mut Log) -> Step {
        let job = log.sync_job(clock()).map_err(|why| why.to_string())?;
        let Some(job) = job else { return Ok(()) };
        let flushed = log
            .synced(job.run(&Blocking::enter()))
            .map_err(|why| why.to_string())?;
        self.flushed = self.flushed.max(flushed.raw());
        Ok(())
    }

    pub fn truncate(&mut self, log: &mut Log, to: i64) -> Step {
        // The owner lowers what it checkpointed before it cuts.
        self.flushed = self.flushed.min(to);
        self.written.retain(|base, _| *base < to);
        let files = log
            .truncate_to(clock(), at(to))
            .map_err(|why| why.to_string())?;
        files.run(&Blocking::enter()).map_err(|why| why.to_string())
    }
}

pub fn opening(disk: &MemDisk, known: &Known) -> Opening {
    let mut opening = Opening::new(&disk.session()).points(known.flushed, known.flushed);
    opening.log_start_offset = at(known.log_start);
    opening.config = LogConfig {
        segment_bytes: 600,
        ..small()
    };
    opening
}

pub fn open(disk: &MemDisk, known: &Known) -> Result<(Log, RecoveryReport), String> {
    opening(disk, known)
        .try_open()
        .map_err(|why| why.to_string())
}

pub fn check_log(log: &mut Log, known: &Known, what: &str) {
    let (start, end) = (log.log_start_offset().raw(), log.log_end_offset().raw());
    assert!(
        end >= known.flushed,
        "{what}: ends at {end}, flushed {}",
        known.flushed
    );
    assert!(
        start >= known.log_start && start <= end,
        "{what}: starts at {start}"
    );
    // I-18: batch after batch without a gap, each one that was written there.
    let mut found = BTreeMap::new();
    let mut from = start;
    while from < end {
        let (bytes, _) = read(log, from, end, 500).unwrap_or_else(|why| panic!("{what}: {why}"));
        let mut next = from;
        for batch in Batches::new(&bytes) {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            let base = batch.header().base_offset.raw();
            let is_next = base == next || found.is_empty() && base <= next;
            assert!(is_next || base <= known.retained, "{what}: gap at {next}");
            assert!(
                known.ever[&base].contains(batch.bytes()),
                "{what}: strange bytes at {base}"
            );
            found.insert(base, batch.bytes().to_vec());
            next = batch.header().next_offset().raw();
        }
        if next == from && from < known.retained {
            // What was deleted up to the end may leave a hole there.
            break;
        }
        assert!(next > from, "{what}: nothing at {from}, end {end}");
        from = next;
    }
    for (base, bytes) in known.written.range(..known.flushed) {
        if *base < start.max(known.retained) {
            assert!(start <= known.flushed, "{what}: starts at {start}");
            continue;
        }
        assert_eq!(
            found.get(base),
            Some(bytes),
            "{what}: flushed batch at {base}"
        );
    }
    check_epochs(log, &found, what);
    check_look_ups(log, known, what);
}

/// I-10: each epoch of the log begins at its first batch.
fn check_epochs(log: &Log, found: &BTreeMap<i64, Vec<u8>>, what: &str) {
    let (start, end) = (log.log_start_offset().raw(), log.log_end_offset().raw());
    let mut first_of: BTreeMap<i32, i64> = BTreeMap::new();
    for bytes in found.values() {
        let header = *Batch::parse(bytes).unwrap().header();
        let base = header.base_offset.raw().max(start);
        first_of.entry(header.leader_epoch.raw()).or_insert(base);
    }
    for (leader_epoch, base) in first_of {
        let entry = log
            .epochs()
            .entries
            .iter()
            .find(|it| it.epoch.raw() == leader_epoch);
        assert_eq!(
            entry.map(|it| it.start_offset.raw()),
            Some(base),
            "{what}: epoch {leader_epoch}"
        );
    }
    for entry in log.epochs().entries {
        assert!(entry.start_offset.raw() <= end, "{what}: {entry:?}");
    }
}

/// Every index entry leads somewhere: look-ups of every offset agree.
fn check_look_ups(log: &mut Log, known: &Known, what: &str) {
    let (start, end) = (log.log_start_offset().raw(), log.log_end_offset().raw());
    for offset in (start..end).step_by(3) {
        let (bytes, local) = read(log, offset, end, 1).unwrap();
        if bytes.is_empty() && offset < known.retained {
            continue;
        }
        let batch = Batch::parse(&bytes).unwrap();
        assert!(
            at(offset) < batch.header().next_offset(),
            "{what}: {offset}"
        );
        let is_in = batch.header().base_offset <= at(offset);
        assert!(is_in || offset < known.retained, "{what}: {offset}");
        assert_eq!(local.first_offset, Some(batch.header().base_offset));
    }
    assert!(matches!(
        log.read(at(end + 1), Offset::MAX, 1, true),
        Err(ReadError::OutOfRange { .. })
    ));
}
