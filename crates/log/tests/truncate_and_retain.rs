//! Cutting, retention, deletion, look-ups by time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use highwater_disk::{Blocking, Disk as _, MemDisk};
use highwater_log::{LogConfig, Origin, PartitionLog, TimeFound};
use highwater_records::Compression;
use highwater_types::{LeaderEpoch, Millis, Offset, Uuid, WallMs};
use support::now;
use support::own::*;

fn disk() -> MemDisk {
    MemDisk::new("log")
}

fn names(disk: &MemDisk) -> Vec<String> {
    disk.list("t-0".as_ref())
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect()
}

fn epochs(log: &PartitionLog<MemDisk>) -> Vec<(i32, i64)> {
    let entries = log.epochs().entries;
    entries
        .iter()
        .map(|it| (it.epoch.raw(), it.start_offset.raw()))
        .collect()
}

#[test]
fn a_cut_takes_epochs_and_producers_back() {
    let disk = disk();
    let mut log = new_log(&disk);
    append_bytes(
        &mut log,
        1,
        &Spec::of(5).producer(7, 0, 0).build(),
        Origin::Client,
    );
    append_bytes(
        &mut log,
        1,
        &Spec::of(5).producer(7, 0, 5).build(),
        Origin::Client,
    );
    append_bytes(
        &mut log,
        2,
        &Spec::of(5).producer(7, 0, 10).build(),
        Origin::Client,
    );
    append_bytes(
        &mut log,
        2,
        &Spec::of(5).producer(8, 0, 0).build(),
        Origin::Client,
    );
    sync(&mut log);
    assert_eq!(log.flushed_offset(), at(20));
    log.truncate_to(clock(), at(10)).unwrap();
    assert_eq!(log.log_end_offset(), at(10));
    assert_eq!(log.flushed_offset(), at(10));
    assert_eq!(epochs(&log), [(1, 0)]);
    assert_eq!(read_all(&mut log), [(0, 4), (5, 9)]);
    // PI-04: what was cut is no duplicate.
    let again = append(&mut log, &Spec::of(5).producer(7, 0, 10));
    assert!(!again.duplicate);
    assert_eq!(again.first_offset, at(10));
    assert!(
        log.producers()
            .producer(highwater_types::ProducerId::new(8))
            .is_none()
    );
}

#[test]
fn kafka_18723_a_late_region_never_yields_other_bytes_after_a_cut() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 6, 2);
    let cuts = [8, 5, 4, 0];
    for cut in cuts {
        let end = log.log_end_offset().raw();
        let mut regions = Vec::new();
        for from in 0..end {
            let (bytes, local) = read(&mut log, from, end, 500).unwrap();
            regions.push((bytes, local));
        }
        log.truncate_to(clock(), at(cut)).unwrap();
        // Other records at the same offsets, and more of them.
        for _ in 0..8 {
            let spec = Spec {
                value_bytes: 33,
                ..Spec::of(3)
            };
            append_bytes(&mut log, 9, &spec.build(), Origin::Client);
        }
        for (bytes, local) in regions {
            let late = bytes_of(&local);
            assert!(
                bytes.starts_with(&late),
                "cut at {cut}: a region gave other bytes"
            );
        }
    }
}

#[test]
fn a_cut_inside_a_batch_takes_the_whole_batch() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 3, 5);
    log.truncate_to(clock(), at(7)).unwrap();
    assert_eq!(log.log_end_offset(), at(5));
    assert_eq!(read_all(&mut log), [(0, 4)]);
    log.truncate_to(clock(), at(2)).unwrap();
    assert_eq!(log.log_end_offset(), at(0));
    fill(&mut log, 1, 1);
    assert_eq!(read_all(&mut log), [(0, 0)]);
}

#[test]
fn a_cut_far_back_drops_segments_and_survives_a_restart() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 60, 2);
    let segments = log.segments().len();
    let files = log.truncate_to(clock(), at(31)).unwrap();
    assert!(!files.is_empty());
    assert_eq!(log.log_end_offset(), at(30));
    assert!(
        names(&disk)
            .iter()
            .any(|name| name.ends_with(".log.truncated.deleted"))
    );
    files.run(&Blocking::enter()).unwrap();
    assert!(!names(&disk).iter().any(|name| name.ends_with(".deleted")));
    fill(&mut log, 4, 2);
    assert!(log.segments().len() < segments);
    let (mut log, report) = Opening::new(&disk).open();
    assert_eq!(report.to_string(), "");
    assert_eq!(log.log_end_offset(), at(38));
    assert_eq!(read_all(&mut log).len(), 19);
}

#[test]
fn a_cut_at_the_end_drops_an_epoch_without_records() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 1, 5);
    log.assign_leader_epoch(epoch(3));
    assert_eq!(epochs(&log), [(0, 0), (3, 5)]);
    assert!(log.truncate_to(clock(), at(5)).unwrap().is_empty());
    assert_eq!(epochs(&log), [(0, 0)]);
    assert_eq!(log.log_end_offset(), at(5));
}

#[test]
fn truncate_fully_begins_anew_at_the_leaders_start() {
    let disk = disk();
    let mut log = new_log(&disk);
    append(&mut log, &Spec::of(5).producer(7, 0, 0));
    fill(&mut log, 60, 2);
    sync(&mut log);
    let files = log.truncate_fully_and_start_at(clock(), at(500)).unwrap();
    files.run(&Blocking::enter()).unwrap();
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset()),
        (at(500), at(500))
    );
    assert_eq!(log.flushed_offset(), at(500));
    assert!(log.producers().is_empty());
    assert!(epochs(&log).is_empty());
    log.append_as_follower(clock(), &Spec::of(2).build_at(500, 4), LeaderEpoch::new(4))
        .unwrap();
    sync(&mut log);
    let (log, report) = Opening::new(&disk).points(502, 500).open();
    assert_eq!(report.to_string(), "");
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset()),
        (at(500), at(502))
    );
    assert!(
        !names(&disk)
            .iter()
            .any(|name| name.ends_with("0000.snapshot")),
        "{:?}",
        names(&disk)
    );
}

#[test]
fn a_cut_while_a_sync_is_out_does_not_count_as_flushed() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 5, 2);
    let job = log.sync_job(clock()).unwrap().unwrap();
    log.truncate_to(clock(), at(4)).unwrap();
    fill(&mut log, 5, 2);
    let flushed = log.synced(job.run(&Blocking::enter())).unwrap();
    assert_eq!(
        flushed,
        at(4),
        "what was written after the cut was not synced"
    );
}

fn retention(ms: Option<u64>, bytes: Option<u64>) -> LogConfig {
    LogConfig {
        retention_ms: ms.map(Millis::new),
        retention_bytes: bytes,
        ..small()
    }
}

#[test]
fn sc_15_only_segments_wholly_below_the_high_watermark_go() {
    let disk = disk();
    let (mut log, _) = Opening::new(&disk).config(retention(Some(1), None)).open();
    fill(&mut log, 60, 2);
    let later = now(START + 1_000_000);
    let bases: Vec<Offset> = log.segments().map(|it| it.base_offset).collect();
    let retained = log.retain(later, bases[2].next()).unwrap().unwrap();
    assert_eq!(
        (retained.segments, retained.log_start_offset),
        (2, bases[2])
    );
    assert_eq!(log.log_start_offset(), bases[2]);
    assert!(log.retain(later, at(0)).unwrap().is_none());
    assert_eq!(
        retained.files.not_before(),
        later.mono.plus(Millis::new(60_000))
    );
    retained.files.run(&Blocking::enter()).unwrap();
    assert!(
        !names(&disk)
            .iter()
            .any(|name| name.starts_with("00000000000000000000."))
    );
}

#[test]
fn c_57_the_active_segment_goes_when_all_of_it_is_too_old() {
    let disk = disk();
    let (mut log, _) = Opening::new(&disk)
        .config(retention(Some(5000), None))
        .open();
    fill(&mut log, 3, 2);
    assert!(log.retain(now(START + 5000), at(6)).unwrap().is_none());
    let retained = log.retain(now(START + 5002), at(6)).unwrap().unwrap();
    assert_eq!(retained.log_start_offset, at(6));
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset()),
        (at(6), at(6))
    );
    assert!(
        log.retain(now(START + 99_999), at(6)).unwrap().is_none(),
        "an empty one stays"
    );
    fill(&mut log, 1, 2);
    assert_eq!(read_all(&mut log), [(6, 7)]);
    // Size alone keeps the active segment.
    let other = MemDisk::new("other");
    let (mut log, _) = Opening::new(&other).config(retention(None, Some(1))).open();
    fill(&mut log, 3, 2);
    assert!(log.retain(now(START + 99_999), at(6)).unwrap().is_none());
}

#[test]
fn retention_by_size_keeps_at_least_the_bytes() {
    let disk = disk();
    let (mut log, _) = Opening::new(&disk)
        .config(retention(None, Some(4500)))
        .open();
    fill(&mut log, 60, 2);
    let end = log.log_end_offset();
    let before = log.size_bytes();
    log.retain(clock(), end).unwrap().unwrap();
    assert!(log.size_bytes() >= 4500 && log.size_bytes() < before);
    let first = log.segments().next().unwrap().size_bytes;
    assert!(log.size_bytes() - first < 4500, "no more than needed stays");
}

#[test]
fn segments_below_the_log_start_go_whatever_the_policy() {
    let disk = disk();
    let config = LogConfig {
        deletes: false,
        ..small()
    };
    let (mut log, _) = Opening::new(&disk).config(config).open();
    fill(&mut log, 60, 2);
    let third = log.segments().nth(2).unwrap().base_offset;
    log.advance_log_start(third.next()).unwrap();
    let retained = log.retain(clock(), log.log_end_offset()).unwrap().unwrap();
    assert_eq!(retained.segments, 2);
    assert_eq!(
        log.log_start_offset(),
        third.next(),
        "it stays inside the segment"
    );
}

#[test]
fn future_and_missing_timestamps_are_kept() {
    let disk = disk();
    let (mut log, _) = Opening::new(&disk)
        .config(retention(Some(1000), None))
        .open();
    append(&mut log, &Spec::at_times(&[START + 999_999_999]));
    assert!(log.retain(now(START + 5000), at(1)).unwrap().is_none());
    let other = MemDisk::new("other");
    let (mut log, _) = Opening::new(&other)
        .config(retention(Some(1000), None))
        .open();
    append(&mut log, &Spec::at_times(&[-1]));
    assert!(
        log.retain(now(START + 900), at(1)).unwrap().is_none(),
        "counted from its making"
    );
    assert!(log.retain(now(START + 1001), at(1)).unwrap().is_some());
}

#[test]
fn a_deleted_log_is_renamed_at_once_and_removed_later() {
    let disk = disk();
    let mut log = new_log(&disk);
    fill(&mut log, 3, 2);
    let (_, local) = read(&mut log, 0, 6, 1000).unwrap();
    let job = log.delete(clock(), Uuid::from_u128(0xfeed)).unwrap();
    assert!(disk.list("t-0".as_ref()).is_err());
    assert_eq!(
        job.dir().to_str().unwrap(),
        "t-0.0000000000000000000000000000feed-delete"
    );
    assert_eq!(
        batches(&bytes_of(&local)).len(),
        3,
        "a late region still reads"
    );
    assert_eq!(job.not_before(), clock().mono.plus(Millis::new(60_000)));
    job.run(&Blocking::enter()).unwrap();
    assert!(disk.files().is_empty());
}

#[test]
fn a_late_region_reads_its_bytes_after_retention() {
    let disk = disk();
    let (mut log, _) = Opening::new(&disk).config(retention(Some(1), None)).open();
    fill(&mut log, 60, 2);
    let (bytes, local) = read(&mut log, 0, 120, 1000).unwrap();
    let retained = log.retain(now(START + 99_999), at(120)).unwrap().unwrap();
    retained.files.run(&Blocking::enter()).unwrap();
    assert_eq!(bytes_of(&local), bytes);
}

fn find(log: &PartitionLog<MemDisk>, timestamp: i64) -> Option<(i64, i64)> {
    let job = log.time_lookup(WallMs::new(timestamp)).unwrap()?;
    let found: Option<TimeFound> = job.run(&Blocking::enter()).unwrap();
    found.map(|it| (it.offset.raw(), it.timestamp.raw()))
}

#[test]
fn c_27_a_look_up_by_time_finds_the_first_record_late_enough() {
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let disk = disk();
        let mut log = new_log(&disk);
        let spec = Spec {
            compression,
            ..Spec::at_times(&[100, 300, 200, 400])
        };
        append(&mut log, &spec);
        assert_eq!(find(&log, 200), Some((1, 300)));
        assert_eq!(find(&log, 201), Some((1, 300)));
        assert_eq!(find(&log, 400), Some((3, 400)));
        assert_eq!(find(&log, 401), None);
        assert_eq!(find(&log, 0), Some((0, 100)));
        let job = log.max_timestamp_lookup().unwrap().unwrap();
        let found = job.run(&Blocking::enter()).unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (at(3), WallMs::new(400)));
        assert_eq!(found.leader_epoch, epoch(0));
    }
}

#[test]
fn trap_07_a_look_up_by_time_skips_no_batch() {
    let disk = disk();
    let mut log = new_log(&disk);
    let mut times = Vec::new();
    for n in 0..120 {
        // Rises on the whole, but not from batch to batch.
        let time = START + n * 10 - (n % 7) * 35;
        times.extend([time, time + 3]);
        append(&mut log, &Spec::at_times(&[time, time + 3]));
    }
    assert!(log.segments().len() > 3);
    let check = |log: &PartitionLog<MemDisk>| {
        for target in (START - 300..START + 1300).step_by(7) {
            let expected = times.iter().position(|time| *time >= target);
            let expected = expected.map(|at| (i64::try_from(at).unwrap(), times[at]));
            assert_eq!(find(log, target), expected, "at {target}");
        }
    };
    check(&log);
    log.close().run(&Blocking::enter()).unwrap();
    let (mut log, _) = Opening::new(&disk).points(240, 240).clean().open();
    check(&log);
    log.advance_log_start(at(101)).unwrap();
    assert_eq!(
        find(&log, 0),
        Some((101, times[101])),
        "nothing below the log start"
    );
    log.truncate_to(clock(), at(230)).unwrap();
    let job = log.max_timestamp_lookup().unwrap().unwrap();
    let greatest = times[101..230].iter().max().unwrap();
    assert_eq!(
        job.run(&Blocking::enter())
            .unwrap()
            .unwrap()
            .timestamp
            .raw(),
        *greatest
    );
}

#[test]
fn c_28_a_look_up_by_time_reads_few_bytes_of_many_segments() {
    let disk = disk();
    let mut log = new_log(&disk);
    for n in 0..1000 {
        append(&mut log, &Spec::at_times(&[START + n]));
    }
    let segments = log.segments().len();
    assert!(segments >= 40, "{segments}");
    assert_eq!(find(&log, 0), Some((0, START)));
    assert_eq!(find(&log, START + 500), Some((500, START + 500)));
    assert!(
        log.time_lookup(WallMs::new(START + 1000))
            .unwrap()
            .is_none(),
        "no job at all"
    );
}

#[test]
fn trap_16_aborted_transactions_and_the_last_stable_offset_are_exact() {
    let disk = disk();
    let mut log = new_log(&disk);
    append(&mut log, &Spec::of(2).producer(1, 0, 0).transactional());
    append(&mut log, &Spec::of(2).producer(2, 0, 0).transactional());
    append(&mut log, &Spec::of(2));
    assert_eq!(log.last_stable_offset(at(6)), at(0));
    append_bytes(&mut log, 0, &marker(2, 0, false), Origin::Coordinator);
    assert_eq!(log.last_stable_offset(at(7)), at(0));
    append_bytes(&mut log, 0, &marker(1, 0, true), Origin::Coordinator);
    assert_eq!(log.last_stable_offset(at(8)), at(8));
    assert_eq!(
        log.last_stable_offset(at(7)),
        at(0),
        "the commit is not below it yet"
    );
    assert_eq!(log.last_stable_offset(at(6)), at(0));
    let check = |log: &PartitionLog<MemDisk>| {
        let aborted = log.aborted_transactions(at(0), at(8));
        assert_eq!(aborted.len(), 1);
        assert_eq!(
            (aborted[0].producer_id.raw(), aborted[0].first_offset),
            (2, at(2))
        );
        assert!(log.aborted_transactions(at(7), at(8)).is_empty());
        assert!(log.aborted_transactions(at(0), at(2)).is_empty());
    };
    check(&log);
    let (log, _) = Opening::new(&disk).open();
    check(&log);
    log.close().run(&Blocking::enter()).unwrap();
    assert!(
        names(&disk)
            .iter()
            .any(|name| name == "00000000000000000000.txnindex")
    );
    let (mut log, _) = Opening::new(&disk).points(8, 8).clean().open();
    check(&log);
    log.truncate_to(clock(), at(6)).unwrap();
    assert!(log.aborted_transactions(at(0), at(8)).is_empty());
    assert_eq!(log.last_stable_offset(at(6)), at(0), "both are open again");
}

#[test]
fn where_a_truncation_will_end_is_known_before() {
    for cut in 0..=60 {
        let disk = disk();
        let mut log = new_log(&disk);
        fill(&mut log, 12, 5);
        let planned = log.end_after_truncation(at(cut)).unwrap();
        log.truncate_to(clock(), at(cut)).unwrap();
        assert_eq!(log.log_end_offset(), planned, "cut at {cut}");
        assert_eq!(planned.raw(), cut / 5 * 5);
        assert_eq!(log.end_after_truncation(at(1_000)).unwrap(), planned);
    }
}
