//! A file of Apache Kafka's directory is damaged or missing.

use std::path::{Path, PathBuf};

use highwater_disk::MemDisk;
use highwater_log::{Finding, PartitionLog, RecoveryReport, Severity};

use crate::refused;
use crate::support::own::*;
use crate::support::{FixtureLog, logs_of};

/// Opening after a clean stop and after an unclean one.
const BOTH: [bool; 2] = [true, false];

fn fixture(name: &str) -> FixtureLog {
    logs_of("one-node-clean")
        .into_iter()
        .find(|log| log.name == name)
        .unwrap()
}

fn edited(name: &str, file: &str, edit: impl Fn(&mut Vec<u8>)) -> FixtureLog {
    let mut log = fixture(name);
    let path = Path::new(&log.name).join(file);
    edit(
        log.files
            .get_mut(&path)
            .unwrap_or_else(|| panic!("{}", path.display())),
    );
    log
}

fn without(name: &str, extension: &str) -> FixtureLog {
    let mut log = fixture(name);
    let dir = PathBuf::from(&log.name);
    let before = log.files.len();
    log.files
        .retain(|path, _| !path.starts_with(&dir) || !path.to_str().unwrap().ends_with(extension));
    assert!(log.files.len() < before, "{name} has no {extension}");
    log
}

fn open(log: &FixtureLog, clean: bool) -> (PartitionLog<MemDisk>, RecoveryReport, MemDisk) {
    let disk = log.disk();
    let (opened, report) = log.open_on(disk.clone(), clean).unwrap();
    (opened, report, disk)
}

#[test]
fn garbage_behind_the_last_batch_is_cut_and_the_log_starts() {
    for clean in BOTH {
        let name = "codecs-0";
        let log = edited(name, "00000000000000000000.log", |bytes| {
            bytes.extend([0xde, 0xad, 0xbe, 0xef].repeat(8));
        });
        let (opened, report, disk) = open(&log, clean);
        assert_eq!(opened.log_end_offset(), at(50));
        assert_eq!(report.severity(), Some(Severity::Normal));
        assert!(
            matches!(report.findings[..], [Finding::TornTail { bytes: 32, .. }]),
            "{report}"
        );
        let path = Path::new(name).join("00000000000000000000.log");
        assert_eq!(
            disk.files()[&path],
            fixture(name).files[&path],
            "the garbage is gone"
        );
    }
}

#[test]
fn a_bad_crc_in_the_last_batch_is_noticed_and_kept() {
    for clean in BOTH {
        let log = edited("codecs-0", "00000000000000000000.log", |bytes| {
            *bytes.last_mut().unwrap() ^= 0x10;
        });
        let (mut opened, report, disk) = open(&log, clean);
        assert_eq!(opened.log_end_offset(), at(50), "no offset is given twice");
        assert_eq!(report.severity(), Some(Severity::Damage), "{report}");
        assert_eq!(opened.damage().len(), 1);
        assert_eq!(
            (opened.damage()[0].from, opened.damage()[0].to),
            (at(40), at(50))
        );
        for from in [40, 45, 49] {
            refused(&mut opened, from);
        }
        let (bytes, _) = read(&mut opened, 30, 50, 100_000).unwrap();
        assert_eq!(
            batches(&bytes),
            [(30, 39)],
            "what is good is served, up to the damage"
        );
        // It stays writable, and what comes after is read.
        let appended = append(&mut opened, &Spec::of(2));
        assert_eq!(appended.first_offset, at(50));
        let (bytes, _) = read(&mut opened, 50, 52, 1000).unwrap();
        assert_eq!(batches(&bytes), [(50, 51)]);
        sync(&mut opened);
        let (mut again, _) = log.open_on(disk, false).unwrap();
        assert_eq!(again.log_end_offset(), at(52));
        refused(&mut again, 44);
        let (bytes, _) = read(&mut again, 50, 52, 1000).unwrap();
        assert_eq!(batches(&bytes), [(50, 51)]);
    }
}

#[test]
fn missing_bytes_of_a_flushed_batch_are_damage_and_no_torn_tail() {
    for clean in BOTH {
        let log = edited("logappend-0", "00000000000000000000.log", |bytes| {
            bytes.truncate(bytes.len() - 10);
        });
        let (mut opened, report, _) = open(&log, clean);
        assert_eq!(opened.log_end_offset(), at(12), "{report}");
        assert_eq!(
            (opened.damage()[0].from, opened.damage()[0].to),
            (at(8), at(12))
        );
        refused(&mut opened, 8);
        assert_eq!(append(&mut opened, &Spec::of(1)).first_offset, at(12));
    }
}

#[test]
fn a_missing_index_of_an_old_segment_is_rebuilt_byte_for_byte() {
    for clean in BOTH {
        let name = "00000000000000000075.index";
        let mut log = fixture("plain-2");
        let path = Path::new("plain-2").join(name);
        let before = log.files.remove(&path).unwrap();
        let (_, report, disk) = open(&log, clean);
        assert!(
            matches!(
                &report.findings[..],
                [Finding::IndexRebuilt { file: "index", .. }]
            ),
            "{report}"
        );
        assert_eq!(disk.files()[&path], before);
    }
}

#[test]
fn sc_11_a_wrong_time_index_is_noticed_and_rebuilt() {
    let name = "00000000000000000075.timeindex";
    let path = Path::new("plain-2").join(name);
    let before = fixture("plain-2").files[&path].clone();
    let wrong: [fn(&mut Vec<u8>); 6] = [
        |bytes| bytes.fill(0x7f),
        |bytes| bytes.fill(0),
        |bytes| bytes.extend([0; 1200]),
        |bytes| bytes.truncate(bytes.len() - 5),
        |bytes| bytes.truncate(bytes.len() - 12),
        Vec::clear,
    ];
    for clean in BOTH {
        for (nth, edit) in wrong.iter().enumerate() {
            let (opened, report, disk) = open(&edited("plain-2", name, edit), clean);
            assert_eq!(report.findings.len(), 1, "edit {nth}: {report}");
            assert!(
                matches!(
                    &report.findings[..],
                    [Finding::IndexRebuilt {
                        file: "timeindex",
                        ..
                    }]
                ),
                "edit {nth}: {report}"
            );
            assert_eq!(disk.files()[&path], before, "edit {nth}");
            let newest = opened
                .segments()
                .filter_map(|it| it.max_timestamp)
                .max()
                .unwrap();
            assert!(newest.raw() > 1_700_000_000_000 && newest.raw() < 1_800_000_000_000);
        }
    }
}

#[test]
fn a_wrong_offset_index_is_noticed_and_rebuilt() {
    let name = "00000000000000000075.index";
    let path = Path::new("plain-2").join(name);
    let before = fixture("plain-2").files[&path].clone();
    let wrong: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.fill(0x7f),
        |bytes| bytes.truncate(bytes.len() - 3),
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes.extend([0; 80]),
    ];
    for clean in BOTH {
        for (nth, edit) in wrong.iter().enumerate() {
            let (mut opened, report, disk) = open(&edited("plain-2", name, edit), clean);
            assert_eq!(disk.files()[&path], before, "edit {nth}: {report}");
            assert_eq!(read_all(&mut opened).len(), 204);
        }
    }
    // What only a look-up can notice costs that look-up a little more.
    let lies = edited("plain-2", name, |bytes| bytes[7] ^= 0x55);
    let (mut opened, report, disk) = open(&lies, true);
    assert_eq!(report.to_string(), "");
    for from in 75..110 {
        let (bytes, _) = read(&mut opened, from, 204, 1).unwrap();
        assert_eq!(batches(&bytes)[0], (from, from));
    }
    assert_eq!(disk.files()[&path], before, "and it is mended");
}

#[test]
fn sc_09_leader_epochs_are_rebuilt_whatever_became_of_their_file() {
    let wrong: [fn(&mut Vec<u8>); 7] = [
        Vec::clear,
        |bytes| *bytes = b"0\n3\n0 0\n".to_vec(),
        |bytes| *bytes = b"0\n1\n0 0\n".to_vec(),
        |bytes| *bytes = b"0\n2\n0 0\n4 132\n".to_vec(),
        |bytes| *bytes = b"0\n3\n0 0\n2 110\n4 132\n".to_vec(),
        |bytes| *bytes = b"0\n4\n0 0\n2 120\n4 132\n9 100000\n".to_vec(),
        |bytes| *bytes = vec![0; 20],
    ];
    let expected = fixture("plain-1")
        .open_on(fixture("plain-1").disk(), true)
        .unwrap()
        .0;
    let expected = expected.epochs().entries.to_vec();
    assert_eq!(expected.len(), 3);
    for clean in BOTH {
        for (nth, edit) in wrong.iter().enumerate() {
            let log = edited("plain-1", "leader-epoch-checkpoint", edit);
            let (opened, report, _) = open(&log, clean);
            assert_eq!(opened.epochs().entries, expected, "edit {nth}: {report}");
            assert_eq!(
                opened.log_end_offset(),
                at(144),
                "never a cut because of it"
            );
            // What the scan covers need not be right in the file.
            let silent = nth == 5 || (2..5).contains(&nth) && !clean;
            assert_eq!(report.findings.is_empty(), silent, "edit {nth}: {report}");
        }
        let (opened, report, _) = open(&without("plain-1", "leader-epoch-checkpoint"), clean);
        assert_eq!(opened.epochs().entries, expected, "{report}");
    }
}

#[test]
fn a_missing_or_wrong_transaction_index_is_rebuilt() {
    for (name, base) in [
        ("txn-0", 7),
        ("txn2-0", 1),
        ("txn2-1", 1),
        ("__consumer_offsets-0", 0),
    ] {
        let file = format!("{base:020}.txnindex");
        let path = Path::new(name).join(&file);
        let before = fixture(name).files[&path].clone();
        for clean in BOTH {
            let (_, report, disk) = open(&without(name, ".txnindex"), clean);
            assert_eq!(
                disk.files().get(&path),
                Some(&before),
                "{name} {clean}: {report}"
            );
            let log = edited(name, &file, |bytes| bytes[20] = 0xff);
            let (_, report, disk) = open(&log, clean);
            assert_eq!(
                disk.files().get(&path),
                Some(&before),
                "{name} {clean}: {report}"
            );
            // Nor does a snapshot tell that there were transactions.
            let mut log = without(name, ".txnindex");
            log.files
                .retain(|path, _| path.extension().is_none_or(|it| it != "snapshot"));
            let (_, report, disk) = open(&log, clean);
            assert_eq!(
                disk.files().get(&path),
                Some(&before),
                "{name} {clean} without snapshots: {report}"
            );
        }
    }
}

#[test]
fn pi_09_a_bad_producer_snapshot_is_dropped_and_the_state_rebuilt() {
    let wrong: [fn(&mut Vec<u8>); 4] = [
        Vec::clear,
        |bytes| bytes.fill(0),
        |bytes| bytes.truncate(12),
        |bytes| bytes[20] ^= 1,
    ];
    for clean in BOTH {
        let whole = fixture("plain-1")
            .open_on(fixture("plain-1").disk(), clean)
            .unwrap()
            .0;
        for edit in wrong {
            let log = edited("plain-1", "00000000000000000144.snapshot", edit);
            let (opened, report, _) = open(&log, clean);
            // The batches know more than Kafka's snapshot, from which producers had expired.
            for producer in whole.producers().producers() {
                let rebuilt = opened.producers().producer(producer.producer_id).unwrap();
                assert_eq!(rebuilt.newest_batch(), producer.newest_batch(), "{report}");
            }
            if clean {
                let dropped = |it: &Finding| matches!(it, Finding::SnapshotDropped { .. });
                assert!(report.findings.iter().any(dropped), "{report}");
            }
        }
    }
}
