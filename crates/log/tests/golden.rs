//! Kafka's own log directories open as Kafka opens them, and what we write has Kafka's shape.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use std::path::{Path, PathBuf};

use highwater_disk::{Disk as _, MemDisk};
use highwater_log::checkpoint::leader_epochs;
use highwater_log::{Finding, PartitionLog, ProducerState, RecoveryReport, Severity};
use highwater_records::Batches;
use highwater_types::{EpochEntry, LeaderEpoch, Offset};
use support::{FixtureLog, all_logs, logs_of};

const CLEAN_SETS: [&str; 5] = [
    "one-node-clean",
    "one-node-formatted",
    "one-node-recovered",
    "static-quorum-clean",
    "three-nodes-clean",
];

fn is_clean(log: &FixtureLog) -> bool {
    CLEAN_SETS.contains(&log.set)
}

/// The newest segment's batches, walked by the view that has nothing to do with a log.
fn end_by_batches(log: &FixtureLog) -> Offset {
    let dir = Path::new(&log.name);
    let newest = log
        .files
        .iter()
        .rfind(|(path, _)| path.starts_with(dir) && path.extension().is_some_and(|it| it == "log"))
        .unwrap();
    let base: i64 = newest
        .0
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let last = Batches::new(newest.1)
        .map(|batch| batch.unwrap().header().next_offset())
        .last();
    last.unwrap_or_else(|| Offset::new(base))
}

fn open(log: &FixtureLog) -> (PartitionLog<MemDisk>, RecoveryReport) {
    log.open_on(log.disk(), is_clean(log))
        .unwrap_or_else(|why| panic!("{}/{}/{}: {why}", log.set, log.root.display(), log.name))
}

#[test]
fn every_fixture_log_opens_with_kafkas_offsets() {
    let mut seen = 0;
    for log in all_logs() {
        let what = format!("{}/{}/{}", log.set, log.root.display(), log.name);
        let (opened, report) = open(&log);
        assert_eq!(
            opened.log_end_offset(),
            end_by_batches(&log),
            "{what}: {report}"
        );
        if is_clean(&log)
            && let Some(point) = log.checkpoint("recovery-point-offset-checkpoint")
        {
            assert_eq!(opened.log_end_offset(), point, "{what}: {report}");
            assert_eq!(opened.flushed_offset(), point, "{what}: {report}");
        }
        let start = log.log_start_offset();
        let first = opened.segments().next().unwrap().base_offset;
        assert_eq!(
            opened.log_start_offset(),
            start.unwrap_or(first).max(first),
            "{what}"
        );
        assert!(
            report.severity() <= Some(Severity::Normal),
            "{what}: {report}"
        );
        assert!(opened.damage().is_empty(), "{what}");
        seen += 1;
    }
    assert!(seen > 150, "{seen}");
}

#[test]
fn every_fixture_log_opens_with_kafkas_epochs() {
    for log in all_logs() {
        let (opened, report) = open(&log);
        let Some(file) = log.file("leader-epoch-checkpoint") else {
            continue;
        };
        let mut expected = leader_epochs::decode(file).unwrap();
        expected.truncate_from_end(opened.log_end_offset());
        assert_eq!(
            opened.epochs().entries,
            expected.entries(),
            "{}/{}: {report}",
            log.set,
            log.name
        );
    }
}

#[test]
fn every_fixture_log_opens_with_kafkas_producers() {
    let mut compared = 0;
    for log in all_logs().iter().filter(|log| is_clean(log)) {
        let (opened, _) = open(log);
        let end = opened.log_end_offset();
        let Some(file) = log.file(&format!("{:020}.snapshot", end.raw())) else {
            continue;
        };
        let expected = ProducerState::decode_snapshot(file, end).unwrap();
        assert_eq!(
            sorted(opened.producers()),
            sorted(&expected),
            "{}/{}",
            log.set,
            log.name
        );
        compared += expected.len();
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn producers_rebuilt_from_the_batches_are_kafkas() {
    let mut compared = 0;
    for mut log in all_logs().into_iter().filter(is_clean) {
        let (opened, _) = open(&log);
        let end = opened.log_end_offset();
        let Some(file) = log.file(&format!("{:020}.snapshot", end.raw())) else {
            continue;
        };
        let expected = ProducerState::decode_snapshot(file, end).unwrap();
        log.files
            .retain(|path, _| path.extension().is_none_or(|it| it != "snapshot"));
        let (rebuilt, report) = open(&log);
        // A cleaner may have removed what the snapshot still knows.
        if log.name.starts_with("compact") || log.name.starts_with("__") {
            continue;
        }
        // Kafka forgot producers that had expired by the time of its restarts.
        let rebuilt = sorted(rebuilt.producers());
        let first = opened.segments().next().unwrap().base_offset.raw();
        for producer in sorted(&expected).into_iter().filter(|it| it.3 >= first) {
            assert!(
                rebuilt.contains(&producer),
                "{}/{}: {producer:?} in {rebuilt:?}",
                log.set,
                log.name
            );
        }
        if !rebuilt.is_empty() {
            let rebuilt = |it: &Finding| matches!(it, Finding::ProducersRebuilt { .. });
            assert!(
                report.findings.iter().any(rebuilt),
                "{}: {report}",
                log.name
            );
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn one_node_killed_becomes_what_kafka_made_of_it() {
    let recovered = logs_of("one-node-recovered");
    for killed in logs_of("one-node-killed") {
        let (opened, report) = open(&killed);
        let after = recovered.iter().find(|it| it.name == killed.name).unwrap();
        let (expected, _) = open(after);
        assert!(
            report.severity() <= Some(Severity::Normal),
            "{}: {report}",
            killed.name
        );
        assert!(
            opened.log_end_offset() <= expected.log_end_offset(),
            "{}",
            killed.name
        );
        assert_eq!(
            opened.log_start_offset(),
            expected.log_start_offset(),
            "{}",
            killed.name
        );
        let end = opened.log_end_offset();
        let below = |entries: &[EpochEntry]| -> Vec<EpochEntry> {
            entries
                .iter()
                .copied()
                .filter(|it| it.start_offset < end)
                .collect()
        };
        assert_eq!(
            below(opened.epochs().entries),
            below(expected.epochs().entries),
            "{}",
            killed.name
        );
        if expected.log_end_offset() == end {
            let opened = sorted(opened.producers());
            for producer in sorted(expected.producers()) {
                assert!(opened.contains(&producer), "{}: {producer:?}", killed.name);
            }
        }
    }
}

#[test]
fn a_closed_fixture_log_is_byte_for_byte_as_kafka_closed_it() {
    for log in logs_of("one-node-clean") {
        let disk = log.disk();
        let (opened, _) = log.open_on(disk.clone(), true).unwrap();
        let end = opened.log_end_offset();
        opened
            .close()
            .run(&highwater_disk::Blocking::enter())
            .unwrap();
        let dir = PathBuf::from(&log.name);
        for (path, bytes) in disk.files() {
            if !path.starts_with(&dir) || log.name.starts_with("__cluster") {
                continue;
            }
            let before = log.files.get(&path).map(Vec::as_slice).unwrap_or_default();
            if path.ends_with(leader_epochs::FILE) {
                // Kafka drops an epoch without records at the next open, too.
                let mut expected = leader_epochs::decode(before).unwrap();
                expected.truncate_from_end(end);
                assert_eq!(
                    bytes,
                    leader_epochs::encode(&expected),
                    "{}",
                    path.display()
                );
            } else if path.extension().is_some_and(|it| it == "snapshot") {
                // Kafka's order is that of a hash map.
                assert_eq!(bytes.len(), before.len(), "{}", path.display());
            } else {
                assert_eq!(bytes, before, "{}", path.display());
            }
        }
        assert!(disk.list(&dir).is_ok());
    }
}

/// What a snapshot holds, in an order of its own.
fn sorted(state: &ProducerState) -> Vec<(i64, i16, i32, i64, i32, Option<Offset>)> {
    state
        .producers()
        .map(|it| {
            let newest = it.newest_batch();
            (
                it.producer_id.raw(),
                it.epoch.raw(),
                newest.map_or(-1, |batch| batch.last_sequence),
                newest.map_or(-1, |batch| batch.last_offset.raw()),
                it.coordinator_epoch,
                it.transaction_first_offset,
            )
        })
        .collect()
}

#[test]
fn the_truncation_fixture_has_epochs_to_cut_by() {
    let logs = logs_of("truncation");
    let before = logs.iter().find(|it| it.name.ends_with("before")).unwrap();
    let after = logs.iter().find(|it| it.name.ends_with("after")).unwrap();
    let (before, _) = open(before);
    let (after, _) = open(after);
    let asked = before.last_epoch().unwrap_or(LeaderEpoch::NONE);
    let said = after.epochs().end_of(asked).unwrap();
    let cut = highwater_types::truncation_point(before.epochs(), said).unwrap();
    assert_eq!(
        before.log_end_offset().distance_from(cut),
        4,
        "node 1 alone had 4 records"
    );
}

#[test]
fn what_we_write_of_kafkas_batches_is_what_kafka_wrote() {
    let mut compared = 0;
    for log in logs_of("one-node-clean") {
        if !log.name.starts_with("plain-") && !log.name.starts_with("many") {
            continue;
        }
        let dir = Path::new(&log.name);
        let is_log = |path: &&PathBuf| {
            path.starts_with(dir) && path.extension().is_some_and(|it| it == "log")
        };
        let disk = MemDisk::new("ours");
        let opening = support::own::Opening::new(&disk).config(highwater_log::LogConfig {
            segment_bytes: 4096,
            index_interval_bytes: 256,
            ..support::own::small()
        });
        let (mut ours, _) = opening.open();
        for path in log.files.keys().filter(is_log) {
            ours.append_as_follower(
                support::own::clock(),
                &log.files[path],
                LeaderEpoch::new(i32::MAX),
            )
            .unwrap();
        }
        ours.close()
            .run(&highwater_disk::Blocking::enter())
            .unwrap();
        let newest = log.files.keys().rfind(is_log).unwrap().file_stem().unwrap();
        for (path, bytes) in &log.files {
            let kind = path
                .extension()
                .and_then(|it| it.to_str())
                .unwrap_or_default();
            if !path.starts_with(dir) || !matches!(kind, "log" | "index" | "timeindex") {
                continue;
            }
            // A restart raised the epoch, and Kafka counted the index interval anew from there.
            let batches = &log.files[&path.with_extension("log")];
            let epochs: std::collections::BTreeSet<_> = Batches::new(batches)
                .map(|batch| batch.unwrap().header().leader_epoch)
                .collect();
            let is_newest = path.file_stem() == Some(newest);
            if kind != "log" && (is_newest || epochs.len() > 1) {
                continue;
            }
            let name = path.file_name().unwrap();
            let written = &disk.files()[&Path::new("t-0").join(name)];
            assert_eq!(written, bytes, "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}
