//! `verify` says what opening a log would do; here the log is opened, and what is left is checked
//! again: each damage to each file of Kafka's own logs, one at a time.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, Disk as _, MemDisk};
use highwater_log::checkpoint::{OffsetCheckpoint, offsets};
use highwater_log::verify::{BrokerAction, VerifyFinding, VerifyReport, verify};
use highwater_log::{OpenError, Severity};
use support::{FixtureLog, logs_of};

/// One damage to one file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(usize),
    CutTo(usize),
    Zeros,
    Garbage,
    Empty,
    Missing,
    MoreZeros,
    MoreGarbage,
}

impl Damage {
    /// `None` when it would change nothing.
    fn apply(self, log: &FixtureLog, path: &Path) -> Option<FixtureLog> {
        let mut log = log.clone();
        let before = log.files[path].clone();
        let mut bytes = before.clone();
        match self {
            Self::Flip(at) => bytes[at] ^= 1 << (at % 8),
            Self::CutTo(len) => bytes.truncate(len),
            Self::Zeros => bytes.fill(0),
            Self::Garbage => bytes.fill(0x7f),
            Self::Empty => bytes.clear(),
            Self::MoreZeros => bytes.extend([0; 48]),
            Self::MoreGarbage => bytes.extend([0xde, 0xad, 0xbe, 0xef].repeat(8)),
            Self::Missing => {
                log.files.remove(path);
                return Some(log);
            }
        }
        let is_changed = bytes != before;
        log.files.insert(path.to_path_buf(), bytes);
        is_changed.then_some(log)
    }
}

fn damages(len: usize) -> Vec<Damage> {
    let mut damages = vec![
        Damage::Zeros,
        Damage::Garbage,
        Damage::Empty,
        Damage::Missing,
        Damage::MoreZeros,
        Damage::MoreGarbage,
    ];
    // Spread over the file, and never at a multiple of the size of something in it.
    let step = (len / 13).max(1) | 1;
    damages.extend((0..len).step_by(step).map(Damage::Flip));
    damages.extend((0..len).step_by(step).map(Damage::CutTo));
    damages
}

fn check(disk: &MemDisk) -> VerifyReport {
    verify(std::slice::from_ref(disk), &Blocking::enter(), &|_| ()).expect("it can be listed")
}

/// Findings about the log, not about its log directory.
fn about<'a>(report: &'a VerifyReport, log: &str) -> Vec<&'a VerifyFinding> {
    report.findings.iter().filter(|it| it.log == log).collect()
}

/// As a broker leaves the directory at a clean stop: closed log, checkpoints of what it has.
fn open_and_close(log: &FixtureLog, clean: bool) -> Result<(MemDisk, Option<Severity>), OpenError> {
    let b = Blocking::enter();
    let disk = log.disk();
    let (opened, report) = log.open_on(disk.clone(), clean)?;
    let tp = log.topic_partition();
    let high_watermark = log
        .checkpoint(offsets::HIGH_WATERMARK_FILE)
        .unwrap_or_default();
    let closed = opened.close().run(&b)?;
    for (file, offset) in [
        (offsets::RECOVERY_POINT_FILE, closed.log_end_offset),
        (
            offsets::HIGH_WATERMARK_FILE,
            high_watermark.min(closed.log_end_offset),
        ),
        (offsets::LOG_START_FILE, closed.log_start_offset),
    ] {
        let offsets = [(tp.clone(), offset)].into_iter().collect();
        let bytes = OffsetCheckpoint { offsets }.encode();
        disk.replace(Path::new(file), &bytes, &b)?;
    }
    disk.replace(Path::new(".kafka_cleanshutdown"), b"", &b)?;
    Ok((disk, report.severity()))
}

/// The log alone, without the entries of others in the checkpoints.
fn alone(log: FixtureLog) -> FixtureLog {
    let mut log = log;
    let tp = log.topic_partition();
    for file in [
        offsets::RECOVERY_POINT_FILE,
        offsets::HIGH_WATERMARK_FILE,
        offsets::LOG_START_FILE,
        offsets::CLEANER_FILE,
    ] {
        let bytes = log.files.get_mut(Path::new(file)).expect("in the fixture");
        let mut checkpoint = OffsetCheckpoint::decode(bytes).expect("Kafka wrote it");
        checkpoint.offsets.retain(|it, _| *it == tp);
        *bytes = checkpoint.encode();
    }
    log
}

fn all_damages_of(name: &str, clean: bool) -> usize {
    let log = logs_of("one-node-clean")
        .into_iter()
        .find(|it| it.name == name);
    let mut log = alone(log.expect("in the fixture"));
    if !clean {
        log.files
            .remove(Path::new(".kafka_cleanshutdown"))
            .expect("it was clean");
    }
    let files: Vec<PathBuf> = log.files.keys().cloned().collect();
    let mut tried = 0;
    for path in files.iter().filter(|path| path.starts_with(name)) {
        if path.ends_with("partition.metadata") {
            continue;
        }
        for damage in damages(log.files[path].len()) {
            let Some(damaged) = damage.apply(&log, path) else {
                continue;
            };
            one_damage(
                &damaged,
                clean,
                &format!("{} {damage:?} clean={clean}", path.display()),
            );
            tried += 1;
        }
    }
    tried
}

fn one_damage(log: &FixtureLog, clean: bool, what: &str) {
    let before = check(&log.disk());
    let said = about(&before, &log.name)
        .into_iter()
        .map(|it| it.severity)
        .max();
    let (left, found) = open_and_close(log, clean).unwrap_or_else(|why| panic!("{what}: {why}"));
    // What matters is said by both; what is put right anyway may be told by one of them.
    let serious = |it: Option<Severity>| it.filter(|it| *it >= Severity::Damage);
    assert_eq!(
        serious(said),
        serious(found),
        "{what}: {:#?}",
        about(&before, &log.name)
    );
    let after = check(&left);
    for finding in about(&after, &log.name) {
        let same = |it: &&VerifyFinding| it.file == finding.file && it.action == finding.action;
        let was_there = before.findings.iter().any(|it| same(&it));
        let is_expected = match finding.severity {
            Severity::Normal => true,
            // What a scan has no cause to look at is put right when a look-up meets it.
            Severity::Repaired => was_there && !is_scanned(log, clean, &finding.file),
            Severity::Damage => was_there && finding.action == BrokerAction::ServeCorrupt,
            Severity::Loss => false,
        };
        assert!(
            is_expected,
            "{what}: after opening {finding:#?}\n{:#?}",
            before.findings
        );
    }
}

/// Whether opening reads the whole segment that `file` belongs to.
fn is_scanned(log: &FixtureLog, clean: bool, file: &str) -> bool {
    let in_log = log.files.keys().filter(|path| path.starts_with(&log.name));
    let logs = in_log.filter(|path| path.extension().is_some_and(|it| it == "log"));
    let last = logs
        .filter_map(|path| path.file_stem())
        .max()
        .expect("a segment");
    !clean && Path::new(file).file_stem() == Some(last)
}

#[test]
fn every_damage_is_foretold_and_gone_after_opening() {
    let mut tried = 0;
    for name in [
        "codecs-0",
        "many.batches-0",
        "txn-0",
        "plain-2",
        "trimmed-0",
    ] {
        for clean in [true, false] {
            tried += all_damages_of(name, clean);
        }
    }
    assert!(tried > 1000, "{tried}");
}
