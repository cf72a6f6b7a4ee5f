//! What an unclean stop leaves, by the three zones of a log; and work that it cut short.

use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, Disk as _, MemDisk};
use highwater_log::{Finding, LogConfig, OpenError, Origin, ReadError, RecoveryStep, Severity};
use highwater_types::TopicId;

use crate::refused;
use crate::support::own::*;

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
    for clean in [true, false] {
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
