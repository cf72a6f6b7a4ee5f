//! MemDisk: what a crash, a loss of power and injected faults leave.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use highwater_disk::{
    Blocking, Disk, DiskErrorKind, DiskFile, DiskOp, Fault, FaultEffect, FaultPath, MemDisk,
    MemFile, OpenMode,
};
use proptest::prelude::*;

/// Numbers from a seed (xorshift64*); the disk's own stream is another one.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(2) | 1;
    move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

fn write(file: &MemFile, at: u64, bytes: &[u8]) {
    file.write_at(at, &[IoSlice::new(bytes)]).expect("written");
}

fn create(disk: &MemDisk, path: &str, bytes: &[u8]) -> std::sync::Arc<MemFile> {
    let file = disk
        .open(Path::new(path), OpenMode::Create)
        .expect("opened");
    write(&file, 0, bytes);
    file
}

fn read(disk: &MemDisk, path: &str) -> Option<Vec<u8>> {
    disk.read(Path::new(path)).expect("readable")
}

#[test]
fn a_crash_keeps_the_page_cache_and_ends_handles_and_locks() {
    let disk = MemDisk::new("d");
    let life = disk.session();
    let lock = life.lock().expect("free");
    let file = create(&life, "a", b"unsynced");
    disk.crash();
    assert_eq!(file.len().map_err(|why| why.kind), Err(DiskErrorKind::Gone));
    assert!(
        file.write_at(0, &[IoSlice::new(b"late")])
            .expect_err("dead")
            .is_gone()
    );
    assert!(
        life.open(Path::new("b"), OpenMode::Create)
            .expect_err("dead")
            .is_gone()
    );
    assert!(life.list(Path::new("")).expect_err("dead").is_gone());
    let next_life = disk.session();
    assert_eq!(read(&next_life, "a").as_deref(), Some(&b"unsynced"[..]));
    assert_eq!(
        read(&next_life, ".lock"),
        Some(Vec::new()),
        "as after kill -9"
    );
    let taken = next_life.lock().expect("the dead hold no lock");
    drop(lock);
    assert!(
        next_life
            .lock()
            .expect_err("the late drop took nothing away")
            .is_locked()
    );
    drop(taken);
}

#[test]
fn a_file_is_durable_only_with_its_name() {
    let b = Blocking::enter();
    let disk = MemDisk::new("d");
    create(&disk, "synced", b"1").sync(&b).expect("synced");
    disk.power_off_losing_unsynced();
    assert_eq!(read(&disk, "synced"), None, "its directory was not");

    let file = create(&disk, "both", b"1");
    file.sync(&b).expect("synced");
    disk.sync_dir(Path::new(""), &b).expect("synced");
    write(&file, 1, b"2");
    disk.power_off_losing_unsynced();
    assert_eq!(read(&disk, "both").as_deref(), Some(&b"1"[..]));
    assert!(file.len().expect_err("from before").is_gone());

    create(&disk, "name-only", b"1");
    disk.sync_dir(Path::new(""), &b).expect("synced");
    disk.power_off_losing_unsynced();
    assert_eq!(read(&disk, "name-only"), Some(Vec::new()));
}

#[test]
fn a_rename_or_removal_is_undone_unless_its_directory_is_synced() {
    let b = Blocking::enter();
    let disk = MemDisk::with_files(
        "d",
        &BTreeMap::from([(PathBuf::from("t/a"), b"1".to_vec())]),
    );
    assert!(!disk.is_dirty());
    disk.rename(Path::new("t/a"), Path::new("t/b"))
        .expect("renamed");
    disk.power_off_losing_unsynced();
    assert_eq!(
        (read(&disk, "t/a").is_some(), read(&disk, "t/b").is_some()),
        (true, false)
    );

    disk.rename(Path::new("t/a"), Path::new("t/b"))
        .expect("renamed");
    disk.sync_dir(Path::new("t"), &b).expect("synced");
    disk.power_off_losing_unsynced();
    assert_eq!(
        (read(&disk, "t/a").is_some(), read(&disk, "t/b").is_some()),
        (false, true)
    );

    disk.remove(Path::new("t"), &b).expect("removed");
    assert!(disk.files().is_empty());
    disk.power_off_losing_unsynced();
    assert_eq!(read(&disk, "t/b").as_deref(), Some(&b"1"[..]));

    disk.remove(Path::new("t"), &b).expect("removed");
    disk.sync_dir(Path::new(""), &b).expect("synced");
    disk.power_off_losing_unsynced();
    assert!(disk.files().is_empty());
}

#[test]
fn a_new_directory_needs_its_parent() {
    let b = Blocking::enter();
    let disk = MemDisk::new("d");
    disk.create_dir(Path::new("t")).expect("made");
    create(&disk, "t/a", b"1").sync(&b).expect("synced");
    disk.sync_dir(Path::new("t"), &b).expect("synced");
    let lost = disk.snapshot();
    lost.power_off_losing_unsynced();
    assert!(lost.list(Path::new("t")).is_err());
    disk.sync_dir(Path::new(""), &b).expect("synced");
    disk.power_off_losing_unsynced();
    assert_eq!(read(&disk, "t/a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_sync_of_one_directory_takes_along_what_it_builds_on() {
    let b = Blocking::enter();
    let disk = MemDisk::new("d");
    disk.create_dir(Path::new("x")).expect("made");
    disk.create_dir(Path::new("y")).expect("made");
    disk.sync_dir(Path::new(""), &b).expect("synced");
    create(&disk, "y/to", b"old").sync(&b).expect("synced");
    create(&disk, "x/from", b"new").sync(&b).expect("synced");
    disk.rename(Path::new("x/from"), Path::new("y/to"))
        .expect("renamed");
    disk.sync_dir(Path::new("x"), &b).expect("synced");
    disk.power_off_losing_unsynced();
    assert_eq!(read(&disk, "x/from"), None);
    assert_eq!(read(&disk, "y/to").as_deref(), Some(&b"new"[..]));
}

#[test]
fn unsynced_writes_vanish_tear_and_reorder() {
    let b = Blocking::enter();
    let old = vec![1_u8; 2048];
    let mut seen: BTreeSet<Vec<u8>> = BTreeSet::new();
    for seed in 0..400 {
        let disk = MemDisk::with_files("d", &BTreeMap::from([(PathBuf::from("f"), old.clone())]));
        let file = disk.open(Path::new("f"), OpenMode::Write).expect("there");
        write(&file, 100, &[2; 1500]);
        write(&file, 2048, &[3; 1024]);
        disk.power_off(&mut numbers(seed));
        let left = read(&disk, "f").expect("its name is durable");
        assert!(
            left[..100].iter().all(|it| *it == 1),
            "what is synced stays"
        );
        assert!(left[100..1600].iter().all(|it| matches!(it, 1 | 2)));
        assert!(left[1600..2048].iter().all(|it| *it == 1));
        assert!(left[2048..].iter().all(|it| matches!(it, 0 | 3)));
        let file = disk.open(Path::new("f"), OpenMode::Write).expect("there");
        file.sync(&b).expect("synced");
        seen.insert(left);
    }
    let first_gone_second_there =
        |it: &&Vec<u8>| it[100..1600].iter().all(|it| *it == 1) && it.get(2048) == Some(&3);
    let torn_in_a_sector = |it: &&Vec<u8>| {
        let kept = it[100..1600].iter().take_while(|it| **it == 2).count();
        kept > 0 && kept < 1500 && (100 + kept) % 512 != 0
    };
    let torn_between_sectors = |it: &&Vec<u8>| {
        let kept = it[100..1600].iter().take_while(|it| **it == 2).count();
        kept > 0 && kept < 1500 && (100 + kept) % 512 == 0
    };
    let zeros_at_the_end = |it: &&Vec<u8>| it.len() == 3072 && it[3071] == 0;
    for (what, found) in [
        (
            "reordered",
            seen.iter().any(|it| first_gone_second_there(&it)),
        ),
        (
            "torn in a sector",
            seen.iter().any(|it| torn_in_a_sector(&it)),
        ),
        (
            "torn between sectors",
            seen.iter().any(|it| torn_between_sectors(&it)),
        ),
        (
            "length without bytes",
            seen.iter().any(|it| zeros_at_the_end(&it)),
        ),
        ("all lost", seen.contains(&old)),
        (
            "all kept",
            seen.iter()
                .any(|it| it.len() == 3072 && it[100] == 2 && it[3071] == 3),
        ),
    ] {
        assert!(found, "{what} never happened");
    }
}

#[test]
fn unsynced_cuts_come_back() {
    let files = BTreeMap::from([(PathBuf::from("f"), b"0123456789".to_vec())]);
    let disk = MemDisk::with_files("d", &files);
    let file = disk.open(Path::new("f"), OpenMode::Write).expect("there");
    file.set_len(4).expect("cut");
    write(&file, 4, b"xy");
    file.set_len(20).expect("extended");
    write(&file, 1, b"##");
    disk.power_off_losing_unsynced();
    assert_eq!(disk.files(), files);
}

#[test]
fn names_survive_independently_but_each_in_its_order() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let disk = MemDisk::with_files("d", &BTreeMap::from([(PathBuf::from("f"), b"1".to_vec())]));
        create(&disk, "tmp", b"2")
            .sync(&Blocking::enter())
            .expect("synced");
        disk.rename(Path::new("tmp"), Path::new("f"))
            .expect("renamed");
        create(&disk, "other", b"")
            .sync(&Blocking::enter())
            .expect("synced");
        disk.power_off(&mut numbers(seed));
        let state = (
            read(&disk, "f"),
            read(&disk, "tmp").is_some(),
            read(&disk, "other").is_some(),
        );
        seen.insert(state);
    }
    let [old, new] = [Some(b"1".to_vec()), Some(b"2".to_vec())];
    let expected: BTreeSet<_> = [false, true]
        .into_iter()
        .flat_map(|other| {
            [
                (old.clone(), false, other),
                (old.clone(), true, other),
                (new.clone(), false, other),
            ]
        })
        .collect();
    assert_eq!(seen, expected, "never neither, never both");
}

#[test]
fn the_same_source_leaves_the_same_disk() {
    let run = |seed| {
        let disk = MemDisk::new("d");
        for nth in 0..20_u8 {
            let file = create(&disk, &format!("f{nth}"), &[nth; 700]);
            write(&file, 300, &[nth; 1000]);
        }
        disk.power_off(&mut numbers(seed));
        disk.files()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn sc_16_replace_leaves_old_or_new_at_every_operation() {
    let b = Blocking::enter();
    let path = Path::new("t/checkpoint");
    let start = BTreeMap::from([(path.to_path_buf(), b"old".to_vec())]);
    let whole = MemDisk::with_files("d", &start);
    whole.replace(path, b"new bytes", &b).expect("replaced");
    let ops = whole.ops_count();
    assert!(ops >= 6, "{ops}");
    for op in 0..=ops {
        for seed in (0..50).map(Some).chain([None]) {
            let disk = MemDisk::with_files("d", &start);
            disk.power_off_at_op(op, seed);
            let done = disk.session().replace(path, b"new bytes", &b);
            disk.power_on();
            let left = read(&disk, "t/checkpoint").expect("never missing");
            assert!(
                left == b"old" || left == b"new bytes",
                "op {op}, seed {seed:?}: {left:?}"
            );
            assert_eq!(done.is_ok(), op == ops, "op {op}");
            if done.is_ok() {
                disk.power_off_losing_unsynced();
                assert_eq!(
                    read(&disk, "t/checkpoint").as_deref(),
                    Some(&b"new bytes"[..])
                );
            }
        }
    }
}

#[test]
fn sc_06_a_failed_sync_is_not_healed_by_the_next() {
    let b = Blocking::enter();
    let disk = MemDisk::with_files("d", &BTreeMap::from([(PathBuf::from("f"), b"1".to_vec())]));
    let file = disk.open(Path::new("f"), OpenMode::Write).expect("there");
    write(&file, 1, b"2");
    disk.inject(Fault::io_error(
        DiskOp::Sync,
        FaultPath::EndsWith("f".into()),
    ));
    assert_eq!(file.sync(&b).expect_err("injected").kind, DiskErrorKind::Io);
    assert_eq!(read(&disk, "f").as_deref(), Some(&b"12"[..]), "still seen");
    write(&file, 2, b"3");
    file.sync(&b).expect("the kernel claims so");
    disk.power_off_losing_unsynced();
    assert_eq!(
        read(&disk, "f").as_deref(),
        Some(&b"1\x003"[..]),
        "and yet the 2 is gone"
    );
}

#[test]
fn sc_07_a_full_disk_writes_what_fits() {
    let disk = MemDisk::new("d");
    disk.set_capacity(Some(1000));
    let file = create(&disk, "f", &[1; 700]);
    assert_eq!(disk.free_space().expect("it can say"), 300);
    let refused = file
        .write_at(700, &[IoSlice::new(&[2; 1000])])
        .expect_err("full");
    assert!(refused.is_full(), "{refused}");
    assert_eq!(file.len().expect("length"), 1000);
    write(&file, 0, &[3; 1000]);
    assert!(file.set_len(1001).expect_err("full").is_full());
    disk.set_capacity(None);
    write(&file, 1000, &[2; 10]);
}

#[test]
fn faults_meet_what_they_are_armed_for() {
    let disk = MemDisk::new("d");
    let file = create(&disk, "t.log", b"12");
    let other = create(&disk, "t.index", b"12");
    disk.inject(Fault {
        path: FaultPath::EndsWith(".log".into()),
        op: DiskOp::Write,
        after: 1,
        times: 2,
        effect: FaultEffect::ShortWrite {
            bytes: 3,
            kind: DiskErrorKind::Io,
        },
    });
    write(&file, 0, b"abcdef");
    assert!(file.write_at(6, &[IoSlice::new(b"ghijkl")]).is_err());
    assert_eq!(read(&disk, "t.log").as_deref(), Some(&b"abcdefghi"[..]));
    write(&other, 0, b"fine");
    assert!(file.write_at(0, &[IoSlice::new(b"x")]).is_err());
    write(&file, 0, b"healed");

    disk.inject(Fault {
        times: u32::MAX,
        ..Fault::io_error(DiskOp::Read, FaultPath::Is("t.index".into()))
    });
    for _ in 0..3 {
        assert!(other.read_at(0, &mut [0; 4]).is_err());
        assert!(disk.read(Path::new("t.index")).is_err());
    }
    assert!(disk.read(Path::new("t.log")).is_ok());
    disk.clear_faults();
    assert!(other.read_at(0, &mut [0; 4]).is_ok());

    disk.fail_from_op(Some(disk.ops_count() + 1));
    write(&file, 0, b"last");
    assert!(file.write_at(0, &[IoSlice::new(b"x")]).is_err());
    assert!(disk.create_dir(Path::new("x")).is_err());
    disk.fail_from_op(None);
    write(&file, 0, b"again");
}

#[test]
fn cold_pages_would_block() {
    let disk = MemDisk::new("d");
    let file = create(&disk, "f", b"12");
    let mut bytes = [0; 2];
    disk.set_cold(1);
    assert_eq!(file.read_at_now(0, &mut bytes).expect("read"), None);
    assert_eq!(file.read_at(0, &mut bytes).expect("read"), 2);
    disk.set_cold(3);
    let looks: Vec<bool> = (0..6)
        .map(|_| file.read_at_now(0, &mut bytes).expect("read").is_none())
        .collect();
    assert_eq!(looks.iter().filter(|it| **it).count(), 2, "{looks:?}");
}

#[test]
fn a_snapshot_is_a_disk_of_its_own() {
    let disk = MemDisk::new("d");
    let file = create(&disk, "f", b"1");
    let copy = disk.snapshot();
    write(&file, 0, b"2");
    assert_eq!(read(&copy, "f").as_deref(), Some(&b"1"[..]));
    assert!(copy.is_dirty());
    copy.power_off_losing_unsynced();
    assert_eq!(read(&copy, "f"), None);
    assert_eq!(read(&disk, "f").as_deref(), Some(&b"2"[..]));
    disk.write_back();
    disk.power_off_losing_unsynced();
    assert_eq!(read(&disk, "f").as_deref(), Some(&b"2"[..]));
}

#[test]
fn files_that_nobody_can_reach_are_forgotten() {
    let b = Blocking::enter();
    let disk = MemDisk::new("d");
    for nth in 0..1000 {
        let name = format!("f{nth}");
        create(&disk, &name, &[0; 1000]);
        disk.remove(Path::new(&name), &b).expect("removed");
        disk.sync_dir(Path::new(""), &b).expect("synced");
    }
    disk.set_capacity(Some(1_000_000));
    assert!(disk.free_space().expect("it can say") > 800_000);
}

/// One step of a random life of a file.
#[derive(Clone, Debug)]
enum Step {
    Write(u16, Vec<u8>),
    SetLen(u16),
    Sync,
    FailSync,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop::collection::vec(any::<u8>(), 0..700);
    prop_oneof![
        4 => (0..1500_u16, bytes).prop_map(|(at, bytes)| Step::Write(at, bytes)),
        2 => (0..2000_u16).prop_map(Step::SetLen),
        2 => Just(Step::Sync),
        1 => Just(Step::FailSync),
    ]
}

proptest! {
    /// What is seen is what a plain vector would hold; what is durable is what a model says that
    /// applies each change again once it is synced.
    #[test]
    fn seen_and_durable_bytes_follow_a_model(steps in prop::collection::vec(step(), 0..40)) {
        let b = Blocking::enter();
        let path = PathBuf::from("f");
        let disk = MemDisk::with_files("d", &BTreeMap::from([(path.clone(), Vec::new())]));
        let file = disk.open(&path, OpenMode::Write).expect("there");
        let (mut seen, mut durable) = (Vec::new(), Vec::new());
        let mut waiting: Vec<Step> = Vec::new();
        for step in steps {
            apply(&mut seen, &step);
            match &step {
                Step::Write(at, bytes) => write(&file, u64::from(*at), bytes),
                Step::SetLen(len) => file.set_len(u64::from(*len)).expect("set"),
                Step::Sync => {
                    file.sync(&b).expect("synced");
                    waiting.drain(..).for_each(|step| apply(&mut durable, &step));
                }
                Step::FailSync => {
                    disk.inject(Fault::io_error(DiskOp::Sync, FaultPath::Any));
                    file.sync(&b).expect_err("injected");
                    waiting.clear();
                }
            }
            waiting.push(step);
            prop_assert_eq!(disk.read(&path).expect("read"), Some(seen.clone()));
        }
        disk.power_off_losing_unsynced();
        prop_assert_eq!(disk.read(&path).expect("read"), Some(durable));
    }
}

fn apply(bytes: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write(at, new) if !new.is_empty() => {
            let (from, to) = (usize::from(*at), usize::from(*at) + new.len());
            bytes.resize(bytes.len().max(to), 0);
            bytes[from..to].copy_from_slice(new);
        }
        Step::SetLen(len) => bytes.resize(usize::from(*len), 0),
        Step::Write(..) | Step::Sync | Step::FailSync => {}
    }
}
