//! A loss of power takes whole sectors. What a batch's checksum does not cover may go with the end
//! of one: what is read afterwards is still each batch at its own offset, or nothing.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use highwater_disk::MemDisk;
use highwater_log::{LogConfig, PartitionLog, ReadError};
use highwater_records::Batches;
use support::own::{Opening, Spec, append, at, read, small};

const LOG: &str = "t-0/00000000000000000000.log";
const SECTOR: usize = 512;

/// The newest segment is read whole after an unclean stop: then everything is looked at.
fn one_segment() -> LogConfig {
    LogConfig {
        segment_bytes: 1 << 30,
        ..small()
    }
}

/// Batches by their base offset: what the checksum covers.
type Known = BTreeMap<i64, Vec<u8>>;

/// Ten batches of two records of this size, no two alike, and the disk that holds them.
fn written(value_bytes: usize) -> (Known, MemDisk) {
    let disk = MemDisk::new("log");
    let mut log = Opening::new(&disk).config(one_segment()).open().0;
    for number in 0..10 {
        let spec = Spec {
            value_bytes,
            ..Spec::at_times(&[number, number])
        };
        append(&mut log, &spec);
    }
    let all = readable(&mut log);
    assert_eq!(all.len(), 10);
    (all, disk)
}

/// What a consumer gets that steps over damage.
fn readable(log: &mut PartitionLog<MemDisk>) -> Known {
    let mut all = Known::new();
    let (mut from, end) = (0, log.log_end_offset().raw());
    while from < end {
        match read(log, from, end, 1) {
            Ok((bytes, _)) => {
                let batch = Batches::new(&bytes).next().unwrap().unwrap();
                batch.check_crc().unwrap();
                let header = batch.header();
                assert!(header.last_offset() >= at(from), "older than asked for");
                from = header.next_offset().raw();
                let covered = batch.bytes()[21..].to_vec();
                all.insert(header.base_offset.raw(), covered);
            }
            Err(ReadError::Damaged { to, .. }) => from = to.raw(),
            Err(why) => panic!("at {from}: {why}"),
        }
    }
    all
}

/// The log with some sectors as if they had never been written.
fn without_sectors(disk: &MemDisk, from: usize, count: usize) -> Option<MemDisk> {
    let mut files = disk.files();
    let bytes = files.get_mut(Path::new(LOG)).unwrap();
    let from = from * SECTOR;
    let to = (from + count * SECTOR).min(bytes.len());
    bytes.get_mut(from..to).filter(|it| !it.is_empty())?.fill(0);
    Some(MemDisk::with_files("torn", &files))
}

#[test]
fn a_base_offset_that_went_with_a_sector_moves_no_batch() {
    let mut damaged = 0;
    for value_bytes in 1..260 {
        let (all, disk) = written(value_bytes);
        for (from, count) in (0..16).flat_map(|from| [(from, 1), (from, 2), (from, 5)]) {
            let Some(torn) = without_sectors(&disk, from, count) else {
                continue;
            };
            for recovery_point in [0, 20] {
                let disk = MemDisk::with_files("copy", &torn.files());
                let opening = Opening::new(&disk).config(one_segment());
                let (mut log, report) = opening.points(recovery_point, 20).open();
                let what = format!("{value_bytes} bytes, {count} sectors from {from}: {report}");
                let end = log.log_end_offset();
                assert!(end <= at(20) && end >= at(recovery_point), "{what}");
                damaged += usize::from(!log.damage().is_empty());
                for range in log.damage() {
                    assert!(range.from < range.to && range.to <= end, "{what}");
                }
                let mut expected = all.clone();
                expected.retain(|base, _| {
                    at(*base) < end && !log.damage().iter().any(|it| it.contains(at(*base)))
                });
                assert!(readable(&mut log) == expected, "{what}");
            }
        }
    }
    assert!(damaged > 1000, "{damaged} logs had damage");
}
