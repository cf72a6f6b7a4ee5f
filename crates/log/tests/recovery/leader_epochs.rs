//! Leader epochs lie outside of a batch's checksum.

use std::path::PathBuf;

use highwater_disk::MemDisk;
use highwater_log::{Finding, Origin};
use highwater_records::Batches;
use highwater_types::EpochEntry;

use crate::support::own::*;

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
