//! The power goes at every operation of every procedure; afterwards the log opens, what was
//! flushed is there, and its shape is right.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use highwater_disk::{Blocking, Disk, MemDisk};
use highwater_log::{LogConfig, Origin, PartitionLog, ReadError, RecoveryReport};
use highwater_records::{Batch, Batches, Validated};
use highwater_types::{LeaderEpoch, Millis, Offset};
use support::now;
use support::own::*;

type Log = PartitionLog<MemDisk>;
type Step = Result<(), String>;

/// What an owner knows that survives in its checkpoints, and what it ever wrote.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Exclusive: flushed, and the owner heard of it.
    flushed: i64,
    log_start: i64,
    /// Retention was told to delete below: holes there are no loss.
    retained: i64,
    /// The newest bytes of each batch by base offset.
    written: BTreeMap<i64, Vec<u8>>,
    /// All bytes that ever were at an offset.
    ever: BTreeMap<i64, BTreeSet<Vec<u8>>>,
}

impl Known {
    fn note(&mut self, base: i64, bytes: &[u8]) {
        self.written.insert(base, bytes.to_vec());
        self.ever.entry(base).or_default().insert(bytes.to_vec());
    }

    fn append(&mut self, log: &mut Log, leader_epoch: i32, spec: &Spec) -> Step {
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

    fn sync(&mut self, log: &mut Log) -> Step {
        let job = log.sync_job(clock()).map_err(|why| why.to_string())?;
        let Some(job) = job else { return Ok(()) };
        let flushed = log
            .synced(job.run(&Blocking::enter()))
            .map_err(|why| why.to_string())?;
        self.flushed = self.flushed.max(flushed.raw());
        Ok(())
    }

    fn truncate(&mut self, log: &mut Log, to: i64) -> Step {
        // The owner lowers what it checkpointed before it cuts.
        self.flushed = self.flushed.min(to);
        self.written.retain(|base, _| *base < to);
        let files = log
            .truncate_to(clock(), at(to))
            .map_err(|why| why.to_string())?;
        files.run(&Blocking::enter()).map_err(|why| why.to_string())
    }
}

fn opening(disk: &MemDisk, known: &Known) -> Opening {
    let mut opening = Opening::new(&disk.session()).points(known.flushed, known.flushed);
    opening.log_start_offset = at(known.log_start);
    opening.config = LogConfig {
        segment_bytes: 600,
        ..small()
    };
    opening
}

fn open(disk: &MemDisk, known: &Known) -> Result<(Log, RecoveryReport), String> {
    opening(disk, known)
        .try_open()
        .map_err(|why| why.to_string())
}

/// Runs `scenario` on a copy of `before` once to count its operations, then once for each of them
/// with the power gone there, and checks what is left.
fn at_every_operation(
    before: &MemDisk,
    known: &Known,
    scenario: impl Fn(&MemDisk, &mut Known) -> Step,
) {
    let disk = before.snapshot();
    let first = disk.ops_count();
    scenario(&disk, &mut known.clone()).unwrap();
    let last = disk.ops_count();
    assert!(last > first, "the scenario does nothing");
    for op in first..=last {
        for seed in [None, Some(1), Some(2), Some(3)] {
            let disk = before.snapshot();
            disk.power_off_at_op(op, seed);
            let mut known = known.clone();
            let ended = scenario(&disk, &mut known);
            assert!(ended.is_err() || op == last, "op {op} did not fail");
            if ended.is_ok() {
                let mut state = seed.unwrap_or(0);
                disk.power_off(&mut || {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    state >> 11
                });
            }
            disk.power_on();
            let what = format!("op {op} of {first}..{last}, seed {seed:?}, {ended:?}");
            check(&disk, &known, &what);
        }
    }
}

/// The log opens, holds what was flushed, is well shaped, takes appends and opens again.
fn check(disk: &MemDisk, known: &Known, what: &str) {
    let (mut log, report) = open(disk, known).unwrap_or_else(|why| panic!("{what}: {why}"));
    let what = format!("{what}: {report}");
    assert!(!report.is_loss(), "{what}");
    assert!(log.damage().is_empty(), "{what}");
    check_log(&mut log, known, &what);
    let mut known = known.clone();
    known.append(&mut log, 50, &Spec::of(2)).unwrap();
    known.sync(&mut log).unwrap();
    assert_eq!(known.flushed, log.log_end_offset().raw(), "{what}");
    let (mut log, report) = open(disk, &known).unwrap();
    assert_eq!(
        report.to_string(),
        "",
        "{what}: the second open finds nothing"
    );
    check_log(&mut log, &known, &what);
    log.close().run(&Blocking::enter()).unwrap();
    let (mut log, report) = opening(disk, &known).clean().open();
    assert_eq!(
        report.to_string(),
        "",
        "{what}: nor the third, after a close"
    );
    check_log(&mut log, &known, &what);
}

fn check_log(log: &mut Log, known: &Known, what: &str) {
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

/// A disk with a log of a few segments, all flushed and written back.
fn prepared() -> (MemDisk, Known) {
    let disk = MemDisk::new("log");
    let mut known = Known::default();
    let (mut log, _) = open(&disk, &known).unwrap();
    for n in 0..12 {
        known
            .append(&mut log, n / 4, &Spec::of(3).producer(7, 0, n * 3))
            .unwrap();
    }
    known.sync(&mut log).unwrap();
    disk.write_back();
    (disk, known)
}

#[test]
fn sc_16_a_new_log_append_flush_and_roll() {
    let (disk, known) = (MemDisk::new("log"), Known::default());
    at_every_operation(&disk, &known, |disk, known| {
        let (mut log, _) = open(disk, known)?;
        for n in 0..9 {
            known.append(&mut log, n / 3, &Spec::of(3))?;
            if n % 2 == 0 {
                known.sync(&mut log)?;
            }
        }
        Ok(())
    });
}

#[test]
fn appends_without_a_flush() {
    let (disk, known) = prepared();
    at_every_operation(&disk, &known, |disk, known| {
        let (mut log, _) = open(disk, known)?;
        for n in 0..8 {
            known.append(&mut log, 4, &Spec::of(3).producer(7, 0, 36 + n * 3))?;
        }
        Ok(())
    });
}

#[test]
fn truncation() {
    let (disk, known) = prepared();
    for cut in [33, 30, 13, 12, 0] {
        at_every_operation(&disk, &known, |disk, known| {
            let (mut log, _) = open(disk, known)?;
            known.append(&mut log, 4, &Spec::of(3))?;
            let cut = cut.min(log.log_end_offset().raw());
            // Whole batches only, as epochs make it.
            known.truncate(&mut log, cut / 3 * 3)?;
            for _ in 0..5 {
                known.append(
                    &mut log,
                    5,
                    &Spec {
                        value_bytes: 31,
                        ..Spec::of(3)
                    },
                )?;
            }
            known.sync(&mut log)?;
            known.append(&mut log, 6, &Spec::of(3))
        });
    }
}

#[test]
fn retention() {
    let (disk, known) = prepared();
    at_every_operation(&disk, &known, |disk, known| {
        let config = LogConfig {
            segment_bytes: 600,
            retention_ms: Some(Millis::new(1)),
            file_delete_delay_ms: Millis::ZERO,
            ..small()
        };
        let opening = opening(disk, known).config(config);
        let (mut log, _) = opening.try_open().map_err(|why| why.to_string())?;
        let later = now(START + 1_000_000);
        let second = log.segments().nth(1).unwrap().base_offset;
        for high_watermark in [second, log.log_end_offset()] {
            known.retained = high_watermark.raw();
            let retained = log
                .retain(later, high_watermark)
                .map_err(|why| why.to_string())?;
            let retained = retained.unwrap();
            // The owner checkpoints the log start, then lets the files go.
            known.log_start = retained.log_start_offset.raw();
            retained
                .files
                .run(&Blocking::enter())
                .map_err(|why| why.to_string())?;
        }
        known.append(&mut log, 7, &Spec::of(3))?;
        known.sync(&mut log)
    });
}

#[test]
fn close() {
    let (disk, known) = prepared();
    at_every_operation(&disk, &known, |disk, known| {
        let (mut log, _) = open(disk, known)?;
        known.append(&mut log, 4, &Spec::of(3))?;
        let end = log.log_end_offset().raw();
        log.close()
            .run(&Blocking::enter())
            .map_err(|why| why.to_string())?;
        known.flushed = end;
        Ok(())
    });
}

#[test]
fn recovery_itself() {
    // A log that lost its power with a truncation and a roll unflushed, in several ways.
    let (before, known) = prepared();
    for seed in 1..6_u64 {
        let disk = before.snapshot();
        let mut known = known.clone();
        let (mut log, _) = open(&disk, &known).unwrap();
        for n in 0..6 {
            known.append(&mut log, 4 + n / 3, &Spec::of(3)).unwrap();
        }
        known.truncate(&mut log, 42).unwrap();
        for _ in 0..6 {
            known
                .append(
                    &mut log,
                    8,
                    &Spec {
                        value_bytes: 44,
                        ..Spec::of(3)
                    },
                )
                .unwrap();
        }
        drop(log);
        let mut state = seed;
        disk.power_off(&mut || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 17
        });
        at_every_operation(&disk, &known, |disk, known| {
            let (mut log, _) = open(disk, known)?;
            known.sync(&mut log)
        });
    }
}

#[test]
fn a_killed_process_loses_nothing() {
    let (disk, mut known) = prepared();
    let (mut log, _) = open(&disk, &known).unwrap();
    for n in 0..10 {
        known
            .append(&mut log, 4, &Spec::of(3).producer(7, 0, 36 + n * 3))
            .unwrap();
    }
    let end = log.log_end_offset();
    let producers = log.producers().clone();
    disk.crash();
    let (mut log, report) = open(&disk, &known).unwrap();
    assert_eq!(log.log_end_offset(), end, "{report}");
    assert_eq!(report.to_string(), "");
    assert_eq!(
        log.producers().encode_snapshot(),
        producers.encode_snapshot()
    );
    known.flushed = end.raw();
    check_log(&mut log, &known, "killed");
    assert!(disk.session().list("t-0".as_ref()).is_ok());
}
