//! The power goes at every operation of every procedure; afterwards the log opens, what was
//! flushed is there, and its shape is right.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use highwater_disk::{Blocking, Disk, MemDisk};
use highwater_log::LogConfig;
use highwater_types::Millis;
use support::known::*;
use support::now;
use support::own::*;

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
