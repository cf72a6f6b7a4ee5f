//! Damaged directories: what Kafka mends we mend, and where Kafka does worse we do better.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, Disk as _, MemDisk};
use highwater_log::{
    DamagedRange, Finding, LogConfig, OpenError, Origin, PartitionLog, ReadError, RecoveryReport,
    RecoveryStep, Severity,
};
use highwater_records::Batches;
use highwater_types::{EpochEntry, ErrorCode, TopicId};
use support::own::*;
use support::{FixtureLog, logs_of};

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

fn refused(log: &mut PartitionLog<MemDisk>, from: i64) -> ReadError {
    let end = log.log_end_offset();
    let why = log.read(at(from), end, 10_000, true).unwrap_err();
    assert_eq!(why.error_code(), ErrorCode::CORRUPT_MESSAGE, "{why}");
    why
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

#[test]
fn sc_02_a_torn_last_batch_is_cut_quietly() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 5, 2);
    let path = Path::new("t-0/00000000000000000000.log");
    let whole = disk.files()[path].clone();
    let one = whole.len() / 5;
    for torn in 1..one {
        let mut files = disk.files();
        files.get_mut(path).unwrap().truncate(whole.len() - torn);
        let disk = MemDisk::with_files("torn", &files);
        let (log, report) = Opening::new(&disk).points(4, 8).open();
        assert_eq!(log.log_end_offset(), at(8));
        assert_eq!(report.severity(), Some(Severity::Normal), "{report}");
        assert!(!report.is_loss());
    }
}

#[test]
fn unflushed_records_below_the_high_watermark_are_cut_with_an_alarm() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 5, 2);
    let mut files = disk.files();
    let bytes = files
        .get_mut(Path::new("t-0/00000000000000000000.log"))
        .unwrap();
    let one = bytes.len() / 5;
    bytes.truncate(one * 3 + 20);
    let disk = MemDisk::with_files("lost", &files);
    let (mut log, report) = Opening::new(&disk).points(4, 10).open();
    assert_eq!(log.log_end_offset(), at(6));
    assert!(report.is_loss(), "{report}");
    let loss = Finding::UnflushedLoss {
        end: at(6),
        high_watermark: at(10),
        bytes: 20,
    };
    assert_eq!(report.findings, [loss]);
    assert_eq!(log.flushed_offset(), at(4));
    assert_eq!(append(&mut log, &Spec::of(1)).first_offset, at(6));
}

#[test]
fn rot_above_the_recovery_point_is_kept_when_records_follow() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 10, 2);
    let path = Path::new("t-0/00000000000000000000.log");
    let one = disk.files()[path].len() / 10;
    // A flipped byte of a record, and a header that no longer leads on.
    for (byte, expected) in [
        (one * 3 + 70, (6, 8)),
        (one * 3 + 9, (6, 8)),
        (one * 3 + 16, (6, 8)),
    ] {
        let mut files = disk.files();
        files.get_mut(path).unwrap()[byte] ^= 0x40;
        let disk = MemDisk::with_files("rot", &files);
        let (mut log, report) = Opening::new(&disk).points(0, 20).open();
        assert_eq!(log.log_end_offset(), at(20), "byte {byte}: {report}");
        let damage = log.damage().to_vec();
        assert_eq!(damage.len(), 1, "{report}");
        assert_eq!(
            (damage[0].from, damage[0].to),
            (at(expected.0), at(expected.1))
        );
        refused(&mut log, 7);
        assert_eq!(batches(&read(&mut log, 8, 20, 9999).unwrap().0).len(), 6);
        assert_eq!(batches(&read(&mut log, 0, 20, 9999).unwrap().0).len(), 3);
        // Above the high watermark the same is cut, with what follows.
        let (log, report) = Opening::new(&MemDisk::with_files("cut", &files))
            .points(0, 6)
            .open();
        assert_eq!(log.log_end_offset(), at(6), "{report}");
        assert_eq!(report.severity(), Some(Severity::Normal));
    }
}

#[test]
fn damage_in_an_old_segment_is_noticed_when_a_read_walks_over_it() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 60, 2);
    sync(&mut log);
    log.close().run(&Blocking::enter()).unwrap();
    let mut files = disk.files();
    let first = files
        .get_mut(Path::new("t-0/00000000000000000000.log"))
        .unwrap();
    let one = Spec::of(2).build().len();
    first[one * 4 + 8..one * 4 + 20].fill(0xff);
    for clean in BOTH {
        let disk = MemDisk::with_files("rot", &files);
        let opening = Opening::new(&disk).points(120, 120);
        let (mut log, report) = if clean { opening.clean() } else { opening }.open();
        assert_eq!(report.to_string(), "", "nobody looked");
        let why = refused(&mut log, 8);
        let ReadError::Damaged { from, to, .. } = why else {
            panic!("{why}")
        };
        assert_eq!(from, at(8));
        assert!(to > at(8) && to < at(30), "{to}");
        assert!(!log.damage().is_empty());
        let (bytes, _) = read(&mut log, to.raw(), 120, 9999).unwrap();
        assert_eq!(batches(&bytes)[0].0, to.raw(), "reading goes on behind it");
        assert_eq!(batches(&read(&mut log, 0, 120, 9999).unwrap().0).len(), 4);
        assert_eq!(log.log_end_offset(), at(120));
    }
}

#[test]
fn sc_08_a_recovery_point_beyond_the_end_is_clamped_and_said() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 35, 2);
    sync(&mut log);
    drop(log);
    let (log, report) = Opening::new(&disk).points(80, 75).open();
    assert_eq!(
        (log.log_end_offset(), log.flushed_offset()),
        (at(70), at(70))
    );
    assert!(
        log.epochs()
            .entries
            .iter()
            .all(|it| it.start_offset <= at(70))
    );
    assert!(report.is_loss());
    assert_eq!(
        report.findings,
        [
            Finding::FlushedLoss {
                end: at(70),
                recovery_point: at(80)
            },
            Finding::UnflushedLoss {
                end: at(70),
                high_watermark: at(75),
                bytes: 0
            },
        ]
    );
    assert!(report.scanned_segments >= 1);
}

#[test]
fn sc_10_bad_small_files_do_not_stop_a_log() {
    // Lost high watermark and recovery point: the full scan finds everything.
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 40, 2);
    sync(&mut log);
    let (mut log, report) = Opening::new(&disk).points(0, 0).open();
    assert_eq!(read_all(&mut log).len(), 40, "{report}");
    assert_eq!(report.scanned_segments, log.segments().len());
    // An identity file that is bad is refused with words.
    for bad in [&b""[..], b"version: 0\ntopic_id: ???", b"\0\0\0\0"] {
        let mut files = disk.files();
        files.insert(PathBuf::from("t-0/partition.metadata"), bad.to_vec());
        let why = Opening::new(&MemDisk::with_files("bad", &files))
            .try_open()
            .unwrap_err();
        assert!(matches!(why, OpenError::Identity { .. }), "{why}");
        assert!(why.to_string().contains("t-0/partition.metadata"), "{why}");
    }
    let mut files = disk.files();
    let other = b"version: 0\ntopic_id: 46mxwHLRRkGz3Nr5sXqJHw".to_vec();
    files.insert(PathBuf::from("t-0/partition.metadata"), other);
    let why = Opening::new(&MemDisk::with_files("bad", &files))
        .try_open()
        .unwrap_err();
    let OpenError::OtherTopic { expected, .. } = why else {
        panic!("{why}")
    };
    assert_eq!(expected, TopicId::CLUSTER_METADATA);
}

#[test]
fn sc_14_batches_out_of_order_end_the_log_and_stop_nothing() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 5, 2);
    let path = Path::new("t-0/00000000000000000000.log");
    let mut files = disk.files();
    files
        .get_mut(path)
        .unwrap()
        .extend(Spec::of(2).build_at(3, 0));
    let (log, report) = Opening::new(&MemDisk::with_files("odd", &files))
        .points(0, 8)
        .open();
    assert_eq!(log.log_end_offset(), at(10), "{report}");
    assert_eq!(report.severity(), Some(Severity::Normal));
}

#[test]
fn a_truncation_that_half_survived_ends_where_the_next_segment_begins() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 5, 2);
    sync(&mut log);
    let old = disk.files()[Path::new("t-0/00000000000000000000.log")].clone();
    log.truncate_to(clock(), at(4)).unwrap();
    append_bytes(&mut log, 3, &Spec::of(3).build(), Origin::Client);
    let mut files = disk.files();
    files.insert(PathBuf::from("t-0/00000000000000000000.log"), old);
    let disk = MemDisk::with_files("half", &files);
    let (mut log, report) = Opening::new(&disk).points(4, 4).open();
    assert!(
        matches!(report.findings[..], [Finding::Superseded { .. }]),
        "{report}"
    );
    assert_eq!(read_all(&mut log), [(0, 1), (2, 3), (4, 6)]);
    assert_eq!(log.last_epoch(), Some(epoch(3)));
}

#[test]
fn unfinished_work_is_finished_or_undone_as_in_kafka() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 60, 2);
    log.close().run(&Blocking::enter()).unwrap();
    let base = disk.files();
    let name = |file: &str| PathBuf::from(format!("t-0/{file}"));
    let first = base[&name("00000000000000000000.log")].clone();
    let one = Spec::of(2).build().len();

    let mut files = base.clone();
    files.insert(name("00000000000000000007.index"), vec![1; 16]);
    files.insert(name("00000000000000000000.log.deleted"), vec![1; 16]);
    files.insert(name("00000000000000000000.log.cleaned"), vec![1; 16]);
    files.insert(name("leader-epoch-checkpoint.tmp"), vec![1; 16]);
    let disk = MemDisk::with_files("leftovers", &files);
    let (mut log, _) = Opening::new(&disk).points(120, 120).clean().open();
    assert_eq!(read_all(&mut log).len(), 60);
    for entry in disk.list("t-0".as_ref()).unwrap() {
        assert!(
            !entry.name.contains("0007.") && !entry.name.ends_with("ed"),
            "{}",
            entry.name
        );
        assert!(!entry.name.ends_with(".tmp"));
    }

    // A cleaned first segment, of which only every second batch is left.
    let thinned: Vec<u8> = first
        .chunks(one)
        .step_by(2)
        .flat_map(<[u8]>::to_vec)
        .collect();
    let mut files = base.clone();
    files.insert(name("00000000000000000000.log.swap"), thinned);
    let disk = MemDisk::with_files("swap", &files);
    let (mut log, report) = Opening::new(&disk).points(120, 120).clean().open();
    let swapped = |it: &Finding| matches!(it, Finding::SwapCompleted { .. });
    assert!(report.findings.iter().any(swapped), "{report}");
    assert_eq!(log.log_end_offset(), at(120));
    let all = read_all(&mut log);
    assert_eq!(all[0], (0, 1));
    assert_eq!(all[1], (4, 5));

    // With the cleaner still at work, the swap does not count.
    let mut files = base.clone();
    files.insert(name("00000000000000000000.log.swap"), first[..one].to_vec());
    files.insert(name("00000000000000000000.index.cleaned"), vec![]);
    let disk = MemDisk::with_files("unfinished", &files);
    let (mut log, _) = Opening::new(&disk).points(120, 120).clean().open();
    assert_eq!(read_all(&mut log).len(), 60);
}

#[test]
fn a_log_start_beyond_the_end_begins_anew() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 5, 2);
    let (mut log, report) = Opening::new(&disk).start(50).open();
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset()),
        (at(50), at(50)),
        "{report}"
    );
    assert!(
        matches!(report.findings[..], [Finding::StartBeyondEnd { .. }]),
        "{report}"
    );
    assert_eq!(append(&mut log, &Spec::of(1)).first_offset, at(50));
}

#[test]
fn a_log_is_reopened_where_its_start_was_moved_to() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    fill(&mut log, 5, 2);
    log.advance_log_start(at(5)).unwrap();
    log.close().run(&Blocking::enter()).unwrap();
    let (log, report) = Opening::new(&disk).points(10, 10).start(5).clean().open();
    assert_eq!(log.log_start_offset(), at(5), "{report}");
    assert_eq!(log.epochs().entries[0].start_offset, at(5));
}

#[test]
fn progress_is_told() {
    let disk = MemDisk::new("log");
    let mut log = new_log(&disk);
    log.set_config(LogConfig {
        segment_bytes: 1 << 30,
        ..small()
    });
    let spec = Spec {
        value_bytes: 1 << 20,
        ..Spec::of(1)
    };
    for _ in 0..20 {
        append(&mut log, &spec);
    }
    drop(log);
    let told = std::cell::RefCell::new(Vec::new());
    let opening = Opening::new(&disk);
    let job = highwater_log::OpenLog {
        disk: opening.disk,
        dir: PathBuf::from("t-0"),
        topic_partition: highwater_types::TopicPartition::parse("t-0").unwrap(),
        topic_id: TopicId::CLUSTER_METADATA,
        config: opening.config,
        recovery_point: opening.recovery_point,
        high_watermark: opening.high_watermark,
        log_start_offset: opening.log_start_offset,
        was_cleaned: false,
        leader_epoch: None,
        clean_shutdown: false,
        now: clock(),
    };
    job.run(&Blocking::enter(), &|progress| {
        assert!(progress.scanned_bytes <= progress.total_bytes);
        let mib = progress.scanned_bytes >> 20;
        told.borrow_mut()
            .push((progress.step, mib, progress.total_bytes >> 20));
    })
    .unwrap();
    let (batches, producers) = (RecoveryStep::Batches, RecoveryStep::Producers);
    let every_8_mib = [(batches, 8, 20), (batches, 16, 20), (producers, 20, 20)];
    assert_eq!(told.into_inner(), every_8_mib);
}

/// Flips each bit of the leader epoch of the batch that holds `offset`, the one field besides the
/// base offset that no checksum covers.
fn with_damaged_epochs(disk: &MemDisk, offset: i64, mut each: impl FnMut(&MemDisk, u32)) {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|it| it == "log");
    let base_of =
        |path: &PathBuf| -> i64 { path.file_stem().unwrap().to_str().unwrap().parse().unwrap() };
    let files = disk.files();
    let logs = files
        .iter()
        .filter(|(path, _)| is_log(path) && base_of(path) <= offset);
    let (path, bytes) = logs.max_by_key(|(path, _)| base_of(path)).unwrap();
    let mut position = 0;
    for batch in Batches::new(bytes) {
        let batch = batch.unwrap();
        if batch.header().last_offset() >= at(offset) {
            break;
        }
        position += batch.size_bytes();
    }
    for bit in 0..32 {
        let mut files = files.clone();
        let bytes: &mut Vec<u8> = files.get_mut(path).unwrap();
        bytes[position + 12 + bit / 8] ^= 1 << (bit % 8);
        each(
            &MemDisk::with_files("t", &files),
            u32::try_from(bit).unwrap(),
        );
    }
}

/// The leader epoch of a batch is outside of its checksum. A damaged one must not cost a record,
/// not even where nothing was flushed and no high watermark was checkpointed.
#[test]
fn sc_09_a_damaged_leader_epoch_cuts_nothing() {
    let disk = MemDisk::new("t");
    let mut log = new_log(&disk);
    fill(&mut log, 30, 2);
    log.assign_leader_epoch(epoch(3));
    for _ in 0..30 {
        append_bytes(&mut log, 3, &Spec::of(2).build(), Origin::Client);
    }
    sync(&mut log);
    drop(log);
    let before = read_all(&mut Opening::new(&disk).open().0);
    // First, in the middle, around the change of epochs, around a roll, last.
    let middle = Opening::new(&disk)
        .open()
        .0
        .segments()
        .nth(1)
        .unwrap()
        .base_offset
        .raw();
    for offset in [0, 2, 30, 58, 60, 62, middle - 1, middle, 118] {
        for clean in [false, true] {
            with_damaged_epochs(&disk, offset, |disk, bit| {
                let what = format!("bit {bit} of the epoch at {offset}, clean {clean}");
                let opening = Opening::new(disk).newest_epoch(3);
                let (mut log, report) = Opening { clean, ..opening }.open();
                assert_eq!(read_all(&mut log), before, "{what}: {report}");
                let history = [(0, 0), (3, 60)].map(|(number, start)| EpochEntry {
                    epoch: epoch(number),
                    start_offset: at(start),
                });
                assert_eq!(log.epochs().entries, history, "{what}: {report}");
                let is_told = report.findings.iter().any(|it| {
                    matches!(it, Finding::EpochRestamped { offset: it, .. } if it.raw() <= offset)
                });
                assert!(clean || is_told, "{what}: {report}");
                if !clean {
                    assert_eq!(report.findings.len(), 1, "{what}: {report}");
                    drop(log);
                    let (_, report) = Opening::new(disk).newest_epoch(3).open();
                    assert_eq!(report.to_string(), "", "{what}: repaired for good");
                }
            });
        }
    }
}

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
