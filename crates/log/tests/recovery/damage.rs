//! Missing segments, and damage that stays known.

use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, MemDisk};
use highwater_log::{DamagedRange, Finding, LogConfig, ReadError, RecoveryReport, Severity};

use crate::support::own::*;

/// A log of several segments of 20 records or so, closed; and the bases of its segments.
fn closed_in_segments() -> (MemDisk, Vec<i64>) {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 60, 2);
    let bases = log.segments().map(|it| it.base_offset.raw()).collect();
    log.close().run(&Blocking::enter()).unwrap();
    (disk, bases)
}

fn without_segment(disk: &MemDisk, base: i64, is_emptied: bool) -> MemDisk {
    let mut files = disk.files();
    let log = PathBuf::from(format!("t-0/{base:020}.log"));
    if is_emptied {
        files.insert(log, Vec::new());
    } else {
        files.remove(&log);
    }
    MemDisk::with_files("hole", &files)
}

fn holes(report: &RecoveryReport) -> Vec<(i64, i64)> {
    let holes = report.findings.iter().filter_map(|it| match it {
        Finding::Hole { from, to } => Some((from.raw(), to.raw())),
        _ => None,
    });
    holes.collect()
}

/// Apache Kafka reads over a segment that is gone and says nothing.
#[test]
fn a_missing_or_empty_segment_is_told_at_every_opening() {
    let (whole, bases) = closed_in_segments();
    let (from, to) = (bases[1], bases[2]);
    let end = 120;
    for is_emptied in [false, true] {
        for (clean, recovery_point, high_watermark) in [
            (true, end, end),
            (false, end, end),
            (false, 0, end),
            (false, to, 0),
        ] {
            let disk = without_segment(&whole, from, is_emptied);
            let open = || {
                let opening = Opening::new(&disk).points(recovery_point, high_watermark);
                Opening { clean, ..opening }.open()
            };
            let what = format!("emptied {is_emptied}, clean {clean}, {recovery_point}");
            let (mut log, report) = open();
            assert_eq!(holes(&report), [(from, to)], "{what}: {report}");
            assert_eq!(report.severity(), Some(Severity::Loss), "{what}");
            assert_eq!(log.log_end_offset(), at(end), "{what}");
            // Readers go on behind it, as in Kafka.
            let (bytes, _) = read(&mut log, from + 3, end, 10_000).unwrap();
            assert_eq!(batches(&bytes)[0].0, to, "{what}");
            drop(log);
            assert_eq!(holes(&open().1), [(from, to)], "{what}: again");
        }
        // Nothing of it was flushed or acknowledged: the loss of power took its name.
        let disk = without_segment(&whole, from, is_emptied);
        let (log, report) = Opening::new(&disk).open();
        assert_eq!(report.severity(), Some(Severity::Normal), "{report}");
        assert_eq!(log.log_end_offset(), at(from));
    }
}

#[test]
fn where_offsets_may_be_missing_no_hole_is_told() {
    let (whole, bases) = closed_in_segments();
    let (from, to) = (bases[1], bases[2]);
    let silent = |opening: Opening, what: &str| {
        for clean in [true, false] {
            let opening = Opening {
                clean,
                ..opening.clone()
            };
            let (_, report) = opening.points(120, 120).open();
            assert_eq!(holes(&report), [], "{what}, clean {clean}: {report}");
        }
    };
    let holed = || without_segment(&whole, from, false);
    silent(Opening::new(&whole), "nothing is missing");
    let config = LogConfig {
        compacts: true,
        ..small()
    };
    silent(
        Opening::new(&holed()).config(config),
        "the topic is compacted",
    );
    let cleaned = Opening {
        was_cleaned: true,
        ..Opening::new(&holed())
    };
    silent(cleaned, "the topic was compacted once");
    silent(
        Opening::new(&holed()).start(to),
        "all of it lies below the log start",
    );
    // Retention deletes the oldest first, but the disk may undo that in another order.
    let disk = holed();
    let mut files = disk.files();
    let name = format!("t-0/{from:020}.log.deleted");
    files.insert(PathBuf::from(&name), vec![1; 100]);
    let disk = MemDisk::with_files("retained", &files);
    silent(Opening::new(&disk), "retention was interrupted");
    silent(
        Opening::new(&disk),
        "retention was interrupted, second opening",
    );
    assert_eq!(
        disk.files()[Path::new(&name)].len(),
        0,
        "only its trace is left"
    );
    // A cleaner leaves out offsets within segments too.
    let first = PathBuf::from("t-0/00000000000000000000.log");
    let mut files = holed().files();
    let one = Spec::of(2).build_at(0, 0).len();
    files.get_mut(&first).unwrap().drain(one..2 * one);
    silent(
        Opening::new(&MemDisk::with_files("gaps", &files)),
        "gaps in the segment before",
    );
}

/// Apache Kafka, and a broker that trusts a clean stop, would send the bad bytes.
#[test]
fn damage_that_was_found_is_known_after_a_clean_stop_and_after_a_kill() {
    let (whole, bases) = closed_in_segments();
    let path = PathBuf::from(format!("t-0/{:020}.log", bases[1]));
    let mut files = whole.files();
    let one = Spec::of(2).build_at(0, 0).len();
    // The second batch of the second segment, in the middle of its records.
    files.get_mut(&path).unwrap()[one + 80] ^= 0x10;
    let disk = MemDisk::with_files("bad", &files);
    let range = DamagedRange {
        from: at(bases[1] + 2),
        to: at(bases[1] + 4),
    };
    let (log, report) = Opening::new(&disk).points(0, 120).open();
    assert_eq!(log.damage(), [range], "{report}");
    let checkpoint = Path::new("t-0/damage-checkpoint");

    // Killed once it was flushed: the damage lies below the recovery point now.
    let mut log = log;
    assert!(log.wants_flush());
    sync(&mut log);
    drop(log);
    disk.power_off_losing_unsynced();
    let (log, report) = Opening::new(&disk).points(120, 120).open();
    assert_eq!(log.damage(), [range], "{report}");
    assert_eq!(report.severity(), Some(Severity::Damage));
    log.close().run(&Blocking::enter()).unwrap();

    let (mut log, report) = Opening::new(&disk).points(120, 120).clean().open();
    assert_eq!(log.damage(), [range], "{report}");
    assert_eq!(report.findings.len(), 1, "{report}");
    let refused = read(&mut log, range.from.raw(), 120, 1000).map(|it| it.0);
    assert!(
        matches!(refused, Err(ReadError::Damaged { .. })),
        "{refused:?}"
    );
    assert!(disk.files().contains_key(checkpoint));
    log.close().run(&Blocking::enter()).unwrap();

    // The segment is put back from another copy: the log is whole, and forgets.
    let mut files = disk.files();
    files.insert(path.clone(), whole.files()[&path].clone());
    let disk = MemDisk::with_files("mended", &files);
    let (log, report) = Opening::new(&disk).points(120, 120).clean().open();
    assert_eq!(report.to_string(), "");
    assert_eq!(log.damage(), []);
    log.close().run(&Blocking::enter()).unwrap();
    assert!(!disk.files().contains_key(checkpoint));
}

#[test]
fn sc_16_a_bad_damage_checkpoint_is_as_good_as_none() {
    let (whole, _) = closed_in_segments();
    for bytes in [
        "",
        "0\n1\n",
        "\0\0\0",
        "0\n2\n7 9\n900 950\n",
        "1\n0\n",
        "0\n1\n9 7\n",
    ] {
        let mut files = whole.files();
        files.insert(PathBuf::from("t-0/damage-checkpoint"), bytes.into());
        let disk = MemDisk::with_files("odd", &files);
        let (log, report) = Opening::new(&disk).points(120, 120).clean().open();
        assert_eq!(report.to_string(), "", "{bytes:?}");
        assert_eq!(log.damage(), []);
        log.close().run(&Blocking::enter()).unwrap();
        assert!(disk.files() == whole.files(), "{bytes:?}");
    }
}
