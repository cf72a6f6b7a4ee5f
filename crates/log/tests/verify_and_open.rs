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

/// How the server before stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// As it should.
    Clean,
    /// Everything had been flushed.
    Killed,
    /// Nothing had been flushed, but all was acknowledged.
    Unflushed,
    /// Nothing had been flushed or acknowledged.
    Unacknowledged,
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

fn all_damages_of(name: &str, stop: Stop) -> usize {
    let log = logs_of("one-node-clean")
        .into_iter()
        .find(|it| it.name == name);
    let mut log = alone(log.expect("in the fixture"));
    if stop != Stop::Clean {
        log.files
            .remove(Path::new(".kafka_cleanshutdown"))
            .expect("it was clean");
    }
    let forget = |log: &mut FixtureLog, file| {
        log.files
            .insert(PathBuf::from(file), OffsetCheckpoint::default().encode());
    };
    if matches!(stop, Stop::Unflushed | Stop::Unacknowledged) {
        forget(&mut log, offsets::RECOVERY_POINT_FILE);
    }
    if stop == Stop::Unacknowledged {
        forget(&mut log, offsets::HIGH_WATERMARK_FILE);
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
                stop,
                &format!("{} {damage:?} {stop:?}", path.display()),
            );
            tried += 1;
        }
    }
    tried
}

fn one_damage(log: &FixtureLog, stop: Stop, what: &str) {
    let before = check(&log.disk());
    let (left, found) =
        open_and_close(log, stop == Stop::Clean).unwrap_or_else(|why| panic!("{what}: {why}"));
    // What matters is said by both, of what opening reads; what is put right anyway may be told by
    // one of them.
    let serious = |it: Option<Severity>| it.filter(|it| *it >= Severity::Damage);
    // Missing segments may be a cleaner's work, as far as opening knows.
    // Missing segments may be a cleaner's work, as far as opening knows.
    let is_read = |it: &&VerifyFinding| {
        let is_found = it.severity == Severity::Loss || is_scanned(log, stop, &it.file);
        is_found && it.action != BrokerAction::Nothing
    };
    let said = about(&before, &log.name);
    let said_all = said.iter().map(|it| it.severity).max();
    let said_read = said
        .iter()
        .filter(|it| is_read(it))
        .map(|it| it.severity)
        .max();
    let (found, least, most) = (serious(found), serious(said_read), serious(said_all));
    assert!(
        least <= found && found <= most,
        "{what}: {found:?}, {said:#?}"
    );
    let after = check(&left);
    for finding in about(&after, &log.name) {
        let same = |it: &&VerifyFinding| it.file == finding.file && it.action == finding.action;
        let was_there = before.findings.iter().any(|it| same(&it));
        let is_expected = match finding.severity {
            Severity::Normal => true,
            // What a scan has no cause to look at is put right when a look-up meets it.
            Severity::Repaired => was_there && !is_scanned(log, stop, &finding.file),
            // Kept bytes, and a leader epoch that contradicts those around it. What lies below
            // the log start is not noted, for nobody may read it.
            Severity::Damage => {
                let kept = [
                    BrokerAction::ServeCorrupt,
                    BrokerAction::SendAsIs,
                    BrokerAction::Nothing,
                ];
                let there = |it: &VerifyFinding| {
                    let place = (&it.file, it.position) == (&finding.file, finding.position);
                    place && kept.contains(&it.action)
                };
                kept.contains(&finding.action) && before.findings.iter().any(there)
            }
            // A hole between segments, which once closed reads as a cleaner's work.
            Severity::Loss => {
                let was_told = before.findings.iter().any(|it| it.file == finding.file);
                was_told && finding.action == BrokerAction::Nothing
            }
        };
        assert!(
            is_expected,
            "{what}: after opening {finding:#?}\n{:#?}",
            before.findings
        );
    }
}

/// Whether opening reads the whole segment that `file` belongs to.
fn is_scanned(log: &FixtureLog, stop: Stop, file: &str) -> bool {
    let in_log = log.files.keys().filter(|path| path.starts_with(&log.name));
    let logs = in_log.filter(|path| path.extension().is_some_and(|it| it == "log"));
    let mut segments: Vec<_> = logs.filter_map(|path| path.file_stem()).collect();
    segments.sort();
    let read = match stop {
        Stop::Clean => &[],
        Stop::Killed => segments
            .get(segments.len().saturating_sub(1)..)
            .unwrap_or_default(),
        Stop::Unflushed | Stop::Unacknowledged => segments.as_slice(),
    };
    Path::new(file)
        .file_stem()
        .is_some_and(|stem| read.contains(&stem))
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
        for stop in [
            Stop::Clean,
            Stop::Killed,
            Stop::Unflushed,
            Stop::Unacknowledged,
        ] {
            tried += all_damages_of(name, stop);
        }
    }
    assert!(tried > 5000, "{tried}");
}
