//! Appending, reading, rolling, deduplication.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use highwater_disk::{
    DiskError, DiskErrorKind, DiskFile as _, DiskOp, Fault, FaultEffect, FaultPath, MemDisk,
};
use highwater_log::{AppendError, LogConfig, Origin, ReadError};
use highwater_records::{Batch, BatchHeader, Compression, TimestampType, Validated};
use highwater_types::{ErrorCode, LeaderEpoch, Millis, Offset, WallMs};
use support::own::*;

/// A fetch in an epoch that no batch is newer than.
const NEWEST: LeaderEpoch = LeaderEpoch::new(i32::MAX);

fn disk() -> MemDisk {
    MemDisk::new("log")
}

#[test]
fn a_leader_stamps_offset_and_epoch_and_keeps_the_rest() {
    let disk = disk();
    let mut log = new_log(&disk);
    let bytes = Spec::of(3).build();
    let first = append_bytes(&mut log, 7, &bytes, Origin::Client);
    let second = append_bytes(&mut log, 7, &bytes, Origin::Client);
    assert_eq!((first.first_offset, first.last_offset), (at(0), at(2)));
    assert_eq!((second.first_offset, second.last_offset), (at(3), at(5)));
    assert_eq!(first.log_append_time, WallMs::NONE);
    let (read, _) = read(&mut log, 0, 6, 10_000).unwrap();
    let header = BatchHeader::parse(&read[bytes.len()..]).unwrap();
    assert_eq!((header.base_offset, header.leader_epoch), (at(3), epoch(7)));
    assert_eq!(
        read[bytes.len() + 16..],
        bytes[16..],
        "all but 16 bytes are the client's"
    );
    assert_eq!(log.last_epoch(), Some(epoch(7)));
    assert_eq!(log.size_bytes(), 2 * bytes.len() as u64);
}

#[test]
fn log_append_time_is_stamped_with_a_right_crc() {
    let disk = disk();
    let config = LogConfig {
        timestamp_type: TimestampType::LogAppendTime,
        ..small()
    };
    let (mut log, _) = Opening::new(&disk).config(config).open();
    let appended = append(&mut log, &Spec::at_times(&[5, 9]));
    assert_eq!(appended.log_append_time, WallMs::new(START));
    let (bytes, _) = read(&mut log, 0, 2, 10_000).unwrap();
    let batch = Batch::parse(&bytes).unwrap();
    batch.check_crc().unwrap();
    assert_eq!(batch.header().max_timestamp, WallMs::new(START));
    assert_eq!(
        batch.header().attributes.timestamp_type(),
        TimestampType::LogAppendTime
    );
    assert_eq!(
        log.segments().next().unwrap().max_timestamp,
        Some(WallMs::new(START))
    );
}

#[test]
fn trap_11_a_read_in_the_middle_of_a_batch_gives_the_whole_batch() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 40, 3);
    for from in 0..120 {
        let (bytes, local) = read(&mut log, from, 120, 1).unwrap();
        let base = from / 3 * 3;
        assert_eq!(local.first_offset, Some(at(base)));
        assert_eq!(batches(&bytes), [(base, base + 2)], "from {from}");
    }
    // Without the memory of recent batches, and with closed segments by their indexes.
    sync(&mut log);
    let recovered = Opening::new(&disk).open();
    let mut log = recovered.0;
    for from in 0..120 {
        let (bytes, _) = read(&mut log, from, 120, 1).unwrap();
        assert_eq!(
            batches(&bytes),
            [(from / 3 * 3, from / 3 * 3 + 2)],
            "from {from}"
        );
    }
}

#[test]
fn a_read_is_bounded_by_up_to_and_by_bytes() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 10, 2);
    let one = Spec::of(2).build().len() as u64;
    let (bytes, _) = read(&mut log, 0, 20, one * 3 + 5).unwrap();
    assert_eq!(bytes.len() as u64, one * 3 + 5, "the last batch may be cut");
    assert_eq!(batches(&bytes), [(0, 1), (2, 3), (4, 5)]);
    let (bytes, _) = read(&mut log, 4, 8, 100_000).unwrap();
    assert_eq!(batches(&bytes), [(4, 5), (6, 7)]);
    // A bound inside a batch leaves the batch out.
    let (bytes, _) = read(&mut log, 4, 7, 100_000).unwrap();
    assert_eq!(batches(&bytes), [(4, 5)]);
    let (bytes, local) = read(&mut log, 6, 7, 100_000).unwrap();
    assert!(bytes.is_empty() && local.first_offset.is_none());
    let (bytes, _) = read(&mut log, 20, 20, 100_000).unwrap();
    assert!(
        bytes.is_empty(),
        "at the end there is nothing, and no error"
    );
    let nothing = log.read(at(0), at(20), 0, false).unwrap();
    let highwater_log::ReadResult::Local(local) = nothing else {
        panic!("local")
    };
    assert!(local.region.is_none(), "no room, no bytes");
}

#[test]
fn out_of_range_says_start_and_end() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 10, 2);
    log.advance_log_start(at(5)).unwrap();
    for offset in [at(4), at(21), Offset::NONE] {
        let why = log.read(offset, at(20), 100, true).unwrap_err();
        assert_eq!(
            why,
            ReadError::OutOfRange {
                offset,
                log_start_offset: at(5),
                log_end_offset: at(20)
            }
        );
        assert_eq!(why.error_code(), ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    let (bytes, _) = read(&mut log, 5, 20, 1).unwrap();
    assert_eq!(
        batches(&bytes),
        [(4, 5)],
        "the batch that holds the start is whole"
    );
    assert!(matches!(
        log.advance_log_start(at(21)),
        Err(ReadError::OutOfRange { .. })
    ));
    assert_eq!(log.advance_log_start(at(3)), Ok(false), "it never falls");
}

#[test]
fn segments_roll_by_size_and_reads_go_on_in_the_next() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 60, 2);
    assert!(log.segments().len() > 3);
    for segment in log.segments() {
        assert!(segment.size_bytes <= 2000, "{segment:?}");
    }
    let all = read_all(&mut log);
    assert_eq!(all.len(), 60);
    assert!(
        all.iter()
            .zip(0..)
            .all(|(batch, n)| *batch == (n * 2, n * 2 + 1))
    );
}

#[test]
fn segments_roll_by_the_time_of_their_records() {
    let disk = disk();
    let config = LogConfig {
        segment_ms: Millis::new(1000),
        ..small()
    };
    let (mut log, _) = Opening::new(&disk).config(config).open();
    append(&mut log, &Spec::at_times(&[START]));
    append(&mut log, &Spec::at_times(&[START + 1000]));
    assert_eq!(log.segments().len(), 1);
    append(&mut log, &Spec::at_times(&[START + 1001]));
    assert_eq!(
        log.segments().len(),
        2,
        "one old and one new timestamp force a roll"
    );
    append(&mut log, &Spec::at_times(&[START - 900_000]));
    assert_eq!(log.segments().len(), 2, "an older one does not");
}

#[test]
fn segments_roll_when_an_index_is_full() {
    let disk = disk();
    let config = LogConfig {
        index_bytes_max: 48,
        index_interval_bytes: 1,
        ..small()
    };
    let (mut log, _) = Opening::new(&disk).config(config.clone()).open();
    fill(&mut log, 9, 1);
    let bases: Vec<i64> = log.segments().map(|it| it.base_offset.raw()).collect();
    assert_eq!(
        bases,
        [0, 7],
        "the first batch has no entry, six fill the offset index"
    );
    let other = MemDisk::new("other");
    let (mut log, _) = Opening::new(&other).config(config).open();
    for n in 0..9 {
        append(&mut log, &Spec::at_times(&[START + n]));
    }
    let bases: Vec<i64> = log.segments().map(|it| it.base_offset.raw()).collect();
    assert_eq!(
        bases,
        [0, 4, 8],
        "the time index keeps room for its last entry"
    );
}

#[test]
fn sc_12_a_relative_offset_never_overflows() {
    let disk = disk();
    // Only compaction leaves such gaps.
    let config = LogConfig {
        compacts: true,
        ..small()
    };
    let (mut log, _) = Opening::new(&disk).config(config.clone()).open();
    let far = i64::from(i32::MAX) + 6;
    let mut bytes = Spec::of(1).build_at(0, 0);
    bytes.extend(Spec::of(1).build_at(far, 0));
    bytes.extend(Spec::of(1).build_at(far + 1, 0));
    let appended = log
        .append_as_follower(clock(), &bytes, NEWEST)
        .unwrap()
        .unwrap();
    assert_eq!(
        (appended.first_offset, appended.last_offset),
        (at(0), at(far + 1))
    );
    let bases: Vec<i64> = log.segments().map(|it| it.base_offset.raw()).collect();
    assert_eq!(bases, [0, far]);
    assert_eq!(read_all(&mut log), [(0, 0), (far, far), (far + 1, far + 1)]);
    let (mut log, report) = Opening::new(&disk).config(config).open();
    assert_eq!(log.log_end_offset(), at(far + 2), "{report}");
    assert_eq!(read_all(&mut log).len(), 3);
}

#[test]
fn trap_10_timestamps_that_go_back_do_not_break_the_time_index() {
    let disk = disk();
    let mut log = new_log(&disk);
    for n in 0..40 {
        let time = if n % 3 == 0 {
            START + n * 10
        } else {
            START - n * 1000
        };
        append(&mut log, &Spec::at_times(&[time, time - 5]));
    }
    sync(&mut log);
    log.close().run(&highwater_disk::Blocking::enter()).unwrap();
    let (log, report) = Opening::new(&disk).points(80, 80).clean().open();
    assert_eq!(report.to_string(), "");
    let greatest = log.segments().filter_map(|it| it.max_timestamp).max();
    assert_eq!(greatest, Some(WallMs::new(START + 39 * 10)));
}

#[test]
fn pi_01_a_retry_gets_the_offsets_of_the_first_try() {
    let disk = disk();
    let mut log = new_log(&disk);
    let spec = Spec::of(5).producer(7, 0, 0);
    let first = append(&mut log, &spec);
    let again = append(&mut log, &spec);
    assert!(!first.duplicate && again.duplicate);
    assert_eq!((again.first_offset, again.last_offset), (at(0), at(4)));
    assert_eq!(log.log_end_offset(), at(5));
    // Also after a kill: from the batches.
    let (mut log, _) = Opening::new(&disk).open();
    let again = append(&mut log, &spec);
    assert!(again.duplicate);
    assert_eq!((again.first_offset, again.last_offset), (at(0), at(4)));
}

#[test]
fn sequence_errors_leave_the_log_as_it_was() {
    let disk = disk();
    let mut log = new_log(&disk);
    append(&mut log, &Spec::of(5).producer(7, 0, 0));
    for (spec, code) in [
        (
            Spec::of(1).producer(7, 0, 9),
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        ),
        (
            Spec::of(1).producer(7, 1, 5),
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        ),
        (
            Spec::of(1).producer(7, -1, 5),
            ErrorCode::INVALID_PRODUCER_EPOCH,
        ),
    ] {
        let bytes = spec.build();
        let validated = Validated::trusted(&Batch::parse(&bytes).unwrap());
        let why = log
            .append_as_leader(clock(), epoch(0), &bytes, &validated, Origin::Client)
            .unwrap_err();
        assert_eq!(why.error_code(), code);
        assert_eq!(log.log_end_offset(), at(5));
    }
    assert_eq!(
        append(&mut log, &Spec::of(1).producer(7, 0, 5)).first_offset,
        at(5)
    );
}

#[test]
fn a_batch_larger_than_a_segment_is_refused() {
    let disk = disk();
    let mut log = new_log(&disk);
    let spec = Spec {
        value_bytes: 3000,
        ..Spec::of(1)
    };
    let bytes = spec.build();
    let validated = Validated::trusted(&Batch::parse(&bytes).unwrap());
    let why = log
        .append_as_leader(clock(), epoch(0), &bytes, &validated, Origin::Client)
        .unwrap_err();
    assert_eq!(why.error_code(), ErrorCode::RECORD_LIST_TOO_LARGE);
}

#[test]
fn a_follower_keeps_every_byte() {
    let (leader_disk, follower_disk) = (disk(), disk());
    let mut leader = new_log(&leader_disk);
    let mut follower = new_log(&follower_disk);
    for n in 0..60 {
        let compression = if n % 2 == 0 {
            Compression::None
        } else {
            Compression::Lz4
        };
        let spec = Spec {
            compression,
            ..Spec::of(3)
        };
        append_bytes(&mut leader, n / 20, &spec.build(), Origin::Client);
    }
    while follower.log_end_offset() < leader.log_end_offset() {
        let from = follower.log_end_offset().raw();
        let (bytes, _) = read(&mut leader, from, 180, 700).unwrap();
        follower
            .append_as_follower(clock(), &bytes, NEWEST)
            .unwrap()
            .unwrap();
    }
    let logs = |disk: &MemDisk| -> Vec<_> {
        let is_log =
            |it: &(std::path::PathBuf, Vec<u8>)| it.0.extension().is_some_and(|e| e == "log");
        disk.files().into_iter().filter(is_log).collect()
    };
    assert_eq!(
        logs(&leader_disk),
        logs(&follower_disk),
        "segments too are the same"
    );
    assert_eq!(leader.epochs().entries, follower.epochs().entries);
}

#[test]
fn sc_17_a_batch_below_the_end_is_refused_before_it_is_written() {
    let disk = disk();
    let mut log = new_log(&disk);
    log.append_as_follower(clock(), &Spec::of(5).build_at(0, 1), NEWEST)
        .unwrap();
    let before = disk.files();
    let why = log
        .append_as_follower(clock(), &Spec::of(3).build_at(3, 1), NEWEST)
        .unwrap_err();
    assert_eq!(
        why,
        AppendError::BelowEnd {
            base_offset: at(3),
            log_end_offset: at(5)
        }
    );
    assert_eq!(disk.files(), before);
    assert_eq!(log.log_end_offset(), at(5));
}

#[test]
fn a_follower_refuses_a_batch_with_a_wrong_crc_and_leaves_out_a_cut_one() {
    let disk = disk();
    let mut log = new_log(&disk);
    let mut bytes = Spec::of(5).build_at(0, 1);
    let good = bytes.len();
    bytes.extend(Spec::of(5).build_at(5, 1));
    let appended = log
        .append_as_follower(clock(), &bytes[..good + 70], NEWEST)
        .unwrap()
        .unwrap();
    assert_eq!(appended.last_offset, at(4));
    let mut bad = Spec::of(5).build_at(5, 1);
    *bad.last_mut().unwrap() ^= 1;
    let why = log.append_as_follower(clock(), &bad, NEWEST).unwrap_err();
    assert_eq!(why.error_code(), ErrorCode::CORRUPT_MESSAGE);
    assert_eq!(
        log.append_as_follower(clock(), &bytes[..20], NEWEST)
            .unwrap(),
        None
    );
    assert_eq!(log.log_end_offset(), at(5));
}

#[test]
fn sc_07_after_a_failed_write_the_tail_is_cut_before_the_next_append() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 2, 2);
    let good = log.size_bytes();
    let all: usize = disk.files().values().map(Vec::len).sum();
    disk.set_capacity(Some(all + 50));
    let bytes = Spec::of(2).build();
    let validated = Validated::trusted(&Batch::parse(&bytes).unwrap());
    let mut try_append =
        || log.append_as_leader(clock(), epoch(0), &bytes, &validated, Origin::Client);
    let why = try_append().unwrap_err();
    assert_eq!(why.error_code(), ErrorCode::KAFKA_STORAGE_ERROR);
    assert!(matches!(&why, AppendError::Disk(why) if why.is_full()));
    assert!(try_append().is_err(), "still full");
    disk.set_capacity(None);
    let appended = try_append().unwrap();
    assert_eq!(appended.first_offset, at(4));
    assert_eq!(read_all(&mut log), [(0, 1), (2, 3), (4, 5)]);
    assert_eq!(log.size_bytes(), good + bytes.len() as u64);
    let (mut log, report) = Opening::new(&disk).open();
    assert_eq!(report.to_string(), "", "no garbage was left");
    assert_eq!(read_all(&mut log), [(0, 1), (2, 3), (4, 5)]);
}

#[test]
fn sc_06_after_a_failed_sync_nothing_is_believed() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 2, 2);
    disk.inject(Fault {
        op: DiskOp::Sync,
        path: FaultPath::Any,
        after: 0,
        times: 1,
        effect: FaultEffect::Error(DiskErrorKind::Io),
    });
    let job = log.sync_job(clock()).unwrap().unwrap();
    assert!(log.sync_job(clock()).unwrap().is_none(), "one at a time");
    let why: DiskError = log
        .synced(job.run(&highwater_disk::Blocking::enter()))
        .unwrap_err();
    assert_eq!(log.failure(), Some(&why));
    assert_eq!(log.flushed_offset(), at(0));
    disk.clear_faults();
    assert!(
        log.sync_job(clock()).unwrap().is_none(),
        "a second sync proves nothing"
    );
    let bytes = Spec::of(1).build();
    let validated = Validated::trusted(&Batch::parse(&bytes).unwrap());
    let refused = log.append_as_leader(clock(), epoch(0), &bytes, &validated, Origin::Client);
    assert_eq!(refused, Err(AppendError::Disk(why)));
}

#[test]
fn a_flush_that_has_no_space_for_its_checkpoints_is_tried_again() {
    for kind in [DiskErrorKind::Full, DiskErrorKind::Exhausted] {
        let disk = disk();
        let mut log = new_log(&disk);
        fill(&mut log, 2, 2);
        disk.inject(Fault {
            op: DiskOp::Open,
            path: FaultPath::EndsWith(".tmp".to_owned()),
            after: 0,
            times: 1,
            effect: FaultEffect::Error(kind),
        });
        let b = highwater_disk::Blocking::enter();
        let synced = log.sync_job(clock()).unwrap().unwrap().run(&b);
        assert_eq!(synced.postponed().map(|why| why.kind), Some(kind));
        assert_eq!(log.synced(synced), Ok(at(0)), "the epochs are not safe yet");
        assert_eq!(log.failure(), None);
        assert!(!log.wants_flush(), "not in a circle");
        assert!(log.sync_retry_at().is_some());
        fill(&mut log, 1, 2);
        assert!(log.sync_job(clock()).unwrap().is_none(), "nor at once");
        let mut later = clock();
        later.mono = later.mono.plus(Millis::new(1_000));
        assert_eq!(log.sync_retry_at(), Some(later.mono));
        let synced = log.sync_job(later).unwrap().unwrap().run(&b);
        assert_eq!(synced.postponed(), None);
        assert_eq!(log.synced(synced), Ok(at(6)));
        assert_eq!(log.sync_retry_at(), None);
        let (_, report) = Opening::new(&disk).open();
        assert_eq!(report.to_string(), "");
    }
}

#[test]
fn flushes_are_grouped_and_move_the_recovery_point() {
    let disk = disk();
    let mut log = new_log(&disk);
    assert!(!log.wants_flush());
    append(&mut log, &Spec::of(3));
    assert!(
        !log.wants_flush(),
        "when records are flushed is the owner's business"
    );
    let job = log.sync_job(clock()).unwrap().unwrap();
    append(&mut log, &Spec::of(4));
    assert!(log.sync_job(clock()).unwrap().is_none(), "one is out");
    assert_eq!(
        log.synced(job.run(&highwater_disk::Blocking::enter())),
        Ok(at(3))
    );
    assert_eq!(log.flushed_offset(), at(3));
    sync(&mut log);
    assert_eq!(log.flushed_offset(), at(7));
    assert!(
        log.sync_job(clock()).unwrap().is_none(),
        "nothing is left to do"
    );
    log.roll(clock()).unwrap();
    assert!(log.wants_flush(), "a closed segment is flushed");
    let job = log.sync_job(clock()).unwrap().unwrap();
    assert!(!log.wants_flush(), "once");
    log.synced(job.run(&highwater_disk::Blocking::enter()))
        .unwrap();
    assert!(!log.wants_flush());
}

/// A log of thousands of tiny segments that nobody has flushed must not take thousands of
/// descriptors, neither when it is recovered nor when it is flushed or closed.
#[test]
fn many_unflushed_segments_are_opened_one_after_the_other() {
    let files_max = 12;
    let disk = disk();
    let config = LogConfig {
        segment_bytes: 300,
        ..small()
    };
    let mut log = Opening::new(&disk).config(config.clone()).open().0;
    for _ in 0..300 {
        let spec = Spec::of(2).producer(7, 0, i32::try_from(log.log_end_offset().raw()).unwrap());
        append(&mut log, &spec);
    }
    assert!(log.segments().len() > 100);
    drop(log);
    disk.crash();
    let opening = || Opening::new(&disk).config(config.clone());
    disk.take_open_files_max();
    let (mut log, report) = opening().points(0, 600).open();
    assert_eq!(report.to_string(), "");
    let open = disk.take_open_files_max();
    assert!(open <= files_max, "{open} files were open in recovery");
    let job = log.sync_job(clock()).unwrap().unwrap();
    let open = disk.take_open_files_max();
    assert!(open <= files_max, "{open} files wait for the job");
    log.synced(job.run(&highwater_disk::Blocking::enter()))
        .unwrap();
    let open = disk.take_open_files_max();
    assert!(open <= files_max, "{open} files were open in the flush");
    assert_eq!(log.flushed_offset(), at(600));
    drop(log);
    // All of it is durable.
    disk.power_off_losing_unsynced();
    let (log, report) = opening().points(600, 600).open();
    assert_eq!(report.to_string(), "");
    assert_eq!(log.log_end_offset(), at(600));
    drop(log);
    let (log, _) = opening().points(0, 600).open();
    disk.take_open_files_max();
    log.close().run(&highwater_disk::Blocking::enter()).unwrap();
    let open = disk.take_open_files_max();
    assert!(open <= files_max, "{open} files were open in the close");
}

/// No descriptor for a file that is to be flushed is no reason to give up the log directory.
#[test]
fn a_flush_that_has_no_descriptors_is_tried_again() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 40, 2);
    drop(log);
    disk.crash();
    let (mut log, _) = Opening::new(&disk).open();
    let job = log.sync_job(clock()).unwrap().unwrap();
    disk.inject(Fault {
        op: DiskOp::Open,
        path: FaultPath::EndsWith(".log".to_owned()),
        after: 1,
        times: 1,
        effect: FaultEffect::Error(DiskErrorKind::Exhausted),
    });
    let b = highwater_disk::Blocking::enter();
    let synced = job.run(&b);
    assert!(synced.postponed().is_some());
    assert_eq!(log.synced(synced), Ok(at(0)));
    assert_eq!(log.failure(), None);
    let mut later = clock();
    later.mono = later.mono.plus(Millis::new(1_000));
    let synced = log.sync_job(later).unwrap().unwrap().run(&b);
    assert_eq!(log.synced(synced), Ok(at(80)));
    drop(log);
    disk.power_off_losing_unsynced();
    let (log, report) = Opening::new(&disk).points(80, 80).open();
    assert_eq!(report.to_string(), "");
    assert_eq!(log.log_end_offset(), at(80));
}

#[test]
fn readers_at_the_end_touch_no_index_file() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 30, 2);
    let end = log.log_end_offset().raw();
    for kind in ["index", "timeindex"] {
        for (path, _) in disk.files() {
            if path.extension().is_some_and(|it| it == kind) {
                disk.inject(Fault {
                    op: DiskOp::Read,
                    path: FaultPath::Is(path),
                    after: 0,
                    times: u32::MAX,
                    effect: FaultEffect::Error(DiskErrorKind::Io),
                });
            }
        }
    }
    let (bytes, local) = read(&mut log, end - 2, end, 1000).unwrap();
    assert_eq!(batches(&bytes), [(end - 2, end - 1)]);
    assert!(local.region.unwrap().file.len().unwrap() > 0);
}

#[test]
fn kafka_18723_nothing_of_a_newer_epoch_than_the_fetchs_is_appended() {
    let disk = disk();
    let mut log = new_log(&disk);
    let mut bytes = Spec::of(5).build_at(0, 1);
    bytes.extend(Spec::of(2).build_at(5, 3));
    bytes.extend(Spec::of(2).build_at(7, 2));
    let appended = log.append_as_follower(clock(), &bytes, epoch(2)).unwrap();
    assert_eq!(appended.unwrap().last_offset, at(4));
    assert_eq!(log.last_epoch(), Some(epoch(1)));
    let newer = Spec::of(2).build_at(5, 3);
    let nothing = log.append_as_follower(clock(), &newer, epoch(2)).unwrap();
    assert_eq!(nothing, None);
    assert_eq!(log.log_end_offset(), at(5));
}

#[test]
fn offsets_at_the_end_of_all_offsets_are_refused() {
    let disk = disk();
    let mut log = new_log(&disk);
    let bytes = Spec::of(3).build_at(i64::MAX - 2, 1);
    let why = log.append_as_follower(clock(), &bytes, NEWEST).unwrap_err();
    assert_eq!(why, AppendError::OffsetsUsedUp);
    assert_eq!(log.log_end_offset(), at(0));
}

#[test]
fn rt_13_an_empty_log_begins_at_the_batch_that_straddles_its_start() {
    let disk = disk();
    let mut log = new_log(&disk);
    let batch = Spec::of(10).build_at(10, 1);
    assert_eq!(log.start_for(&batch), None, "it lies above");
    log.truncate_fully_and_start_at(clock(), at(15)).unwrap();
    assert_eq!(log.start_for(&batch), Some(at(10)));
    assert_eq!(
        log.start_for(&Spec::of(5).build_at(10, 1)),
        None,
        "it ends there"
    );
    assert_eq!(log.start_for(&Spec::of(5).build_at(15, 1)), None);
    let mut bad = batch.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(log.start_for(&bad), None, "a damaged one");
    log.truncate_fully_and_start_at(clock(), at(10)).unwrap();
    log.append_as_follower(clock(), &batch, NEWEST).unwrap();
    log.advance_log_start(at(15)).unwrap();
    assert_eq!(
        log.start_for(&Spec::of(20).build_at(15, 1)),
        None,
        "it holds records"
    );
    let ends = (log.log_start_offset(), log.log_end_offset());
    assert_eq!(ends, (at(15), at(20)));
}
