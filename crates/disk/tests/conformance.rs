//! What every disk does, checked on each of them.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use highwater_disk::{
    Blocking, Disk, DiskErrorKind, DiskFile, EntryKind, FileDisk, MemDisk, OpenMode,
};

/// Makes one test per disk of each function that takes a disk.
macro_rules! on_both_disks {
    ($($name:ident)*) => {
        mod mem_disk {
            $(
                #[test]
                fn $name() {
                    super::$name(&super::MemDisk::new("mem"));
                }
            )*
        }
        mod file_disk {
            $(
                #[test]
                fn $name() {
                    let dir = tempfile::tempdir().expect("a directory for the test");
                    super::$name(&super::FileDisk::open(dir.path()).expect("it is there"));
                }
            )*
        }
    };
}

on_both_disks! {
    what_is_written_is_read_back
    writes_of_many_slices_are_whole
    a_write_beyond_the_end_leaves_zeros
    modes_of_opening
    a_file_outlives_its_name
    lists_are_sorted_and_say_what_is_there
    directories_are_made_once_and_removed_whole
    renames_replace_files_and_move_directories
    no_path_leads_out
    small_files_are_replaced_and_read_whole
    a_lock_excludes_a_second_one_and_leaves_no_file
    kinds_of_nodes_are_not_mixed_up
}

fn write(file: &impl DiskFile, at: u64, bytes: &[u8]) {
    file.write_at(at, &[IoSlice::new(bytes)]).expect("written");
}

fn read(file: &impl DiskFile, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    let read = file.read_at(at, &mut bytes).expect("read");
    bytes.truncate(read);
    bytes
}

fn put(disk: &impl Disk, path: &str, bytes: &[u8]) {
    let file = disk
        .open(Path::new(path), OpenMode::Create)
        .expect("opened");
    write(&*file, 0, bytes);
}

fn kind_of<T: std::fmt::Debug>(result: Result<T, highwater_disk::DiskError>) -> DiskErrorKind {
    result.expect_err("it is refused").kind
}

fn what_is_written_is_read_back(disk: &impl Disk) {
    let b = Blocking::enter();
    let file = disk
        .open(Path::new("a"), OpenMode::CreateNew)
        .expect("opened");
    assert!(file.is_empty().expect("length"));
    write(&*file, 0, b"hello world");
    write(&*file, 6, b"there");
    assert_eq!(read(&*file, 0, 100), b"hello there");
    assert_eq!(read(&*file, 6, 2), b"th");
    assert_eq!(read(&*file, 11, 4), b"");
    assert_eq!(read(&*file, 1 << 40, 4), b"");
    let mut bytes = [0; 20];
    let now = file.read_at_now(6, &mut bytes).expect("read");
    assert_eq!(now, Some(5), "just written, so in the page cache");
    file.set_len(5).expect("cut");
    file.set_len(8).expect("extended");
    assert_eq!(read(&*file, 0, 100), b"hello\0\0\0");
    file.sync(&b).expect("synced");
    file.start_writeback(0..8, &b);
    assert_eq!(file.len().expect("length"), 8);
    assert_eq!(file.path(), Path::new("a"));
}

fn writes_of_many_slices_are_whole(disk: &impl Disk) {
    let file = disk
        .open(Path::new("many"), OpenMode::Create)
        .expect("opened");
    let pieces: Vec<Vec<u8>> = (0..3000_u32)
        .map(|nth| vec![nth.to_be_bytes()[3]; (nth % 7) as usize])
        .collect();
    let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    file.write_at(3, &slices).expect("written");
    file.write_at(0, &[]).expect("nothing to write");
    file.write_at(0, &[IoSlice::new(b""), IoSlice::new(b"")])
        .expect("nothing to write");
    let whole = [b"\0\0\0".to_vec(), pieces.concat()].concat();
    assert_eq!(read(&*file, 0, 100_000), whole);
}

fn a_write_beyond_the_end_leaves_zeros(disk: &impl Disk) {
    let file = disk
        .open(Path::new("gap"), OpenMode::Create)
        .expect("opened");
    write(&*file, 5, b"x");
    assert_eq!(read(&*file, 0, 10), b"\0\0\0\0\0x");
}

fn modes_of_opening(disk: &impl Disk) {
    let path = Path::new("f");
    assert_eq!(
        kind_of(disk.open(path, OpenMode::Read)),
        DiskErrorKind::NotFound
    );
    assert_eq!(
        kind_of(disk.open(path, OpenMode::Write)),
        DiskErrorKind::NotFound
    );
    write(
        &*disk.open(path, OpenMode::CreateNew).expect("new"),
        0,
        b"kept",
    );
    assert_eq!(
        kind_of(disk.open(path, OpenMode::CreateNew)),
        DiskErrorKind::AlreadyExists
    );
    for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Create] {
        assert_eq!(
            read(&*disk.open(path, mode).expect("there"), 0, 9),
            b"kept",
            "{mode:?}"
        );
    }
    let read_only = disk.open(path, OpenMode::Read).expect("there");
    assert!(read_only.write_at(0, &[IoSlice::new(b"no")]).is_err());
    assert_eq!(read(&*read_only, 0, 9), b"kept");
    let in_no_dir = disk.open(Path::new("no/dir"), OpenMode::Create);
    assert_eq!(kind_of(in_no_dir), DiskErrorKind::NotFound);
}

fn a_file_outlives_its_name(disk: &impl Disk) {
    let b = Blocking::enter();
    let file = disk
        .open(Path::new("old"), OpenMode::Create)
        .expect("opened");
    write(&*file, 0, b"one");
    disk.rename(Path::new("old"), Path::new("new"))
        .expect("renamed");
    write(&*file, 3, b" two");
    let again = disk.open(Path::new("new"), OpenMode::Read).expect("opened");
    assert_eq!(read(&*again, 0, 9), b"one two");
    disk.remove(Path::new("new"), &b).expect("removed");
    disk.sync_dir(Path::new(""), &b).expect("synced");
    assert_eq!(
        kind_of(disk.open(Path::new("new"), OpenMode::Read)),
        DiskErrorKind::NotFound
    );
    write(&*file, 7, b"!");
    assert_eq!(read(&*again, 0, 9), b"one two!");
}

fn lists_are_sorted_and_say_what_is_there(disk: &impl Disk) {
    for name in ["b", "a", "B", "c-10", "c-9"] {
        put(disk, name, name.as_bytes());
    }
    disk.create_dir(Path::new("ab")).expect("made");
    let list = disk.list(Path::new("")).expect("listed");
    let names: Vec<&str> = list.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["B", "a", "ab", "b", "c-10", "c-9"]);
    assert_eq!((list[2].kind, list[2].len), (EntryKind::Dir, 0));
    assert_eq!((list[4].kind, list[4].len), (EntryKind::File, 4));
    assert_eq!(disk.list(Path::new(".")).expect("listed"), list);
    assert_eq!(
        kind_of(disk.list(Path::new("none"))),
        DiskErrorKind::NotFound
    );
}

fn directories_are_made_once_and_removed_whole(disk: &impl Disk) {
    let b = Blocking::enter();
    disk.create_dir(Path::new("d")).expect("made");
    disk.create_dir(Path::new("d")).expect("there already");
    disk.create_dir(Path::new("d/e")).expect("made");
    assert_eq!(
        kind_of(disk.create_dir(Path::new("x/y"))),
        DiskErrorKind::NotFound
    );
    put(disk, "d/e/f", b"1");
    disk.sync_dir(Path::new("d/e"), &b).expect("synced");
    assert_eq!(
        kind_of(disk.sync_dir(Path::new("x"), &b)),
        DiskErrorKind::NotFound
    );
    disk.remove(Path::new("d"), &b).expect("removed");
    disk.remove(Path::new("d"), &b).expect("gone already");
    disk.remove(Path::new("d/e/f"), &b).expect("gone already");
    assert_eq!(disk.list(Path::new("")).expect("listed"), []);
}

fn renames_replace_files_and_move_directories(disk: &impl Disk) {
    put(disk, "from", b"new");
    put(disk, "to", b"old");
    disk.rename(Path::new("from"), Path::new("to"))
        .expect("renamed");
    assert_eq!(
        disk.read(Path::new("to")).expect("read"),
        Some(b"new".to_vec())
    );
    assert_eq!(disk.read(Path::new("from")).expect("read"), None);
    disk.rename(Path::new("to"), Path::new("to"))
        .expect("nothing to do");
    let missing = disk.rename(Path::new("from"), Path::new("x"));
    assert_eq!(kind_of(missing), DiskErrorKind::NotFound);

    disk.create_dir(Path::new("t-0")).expect("made");
    put(disk, "t-0/log", b"1");
    disk.rename(Path::new("t-0"), Path::new("t-0.x-delete"))
        .expect("renamed");
    assert_eq!(
        disk.read(Path::new("t-0.x-delete/log")).expect("read"),
        Some(b"1".to_vec())
    );
    disk.create_dir(Path::new("full")).expect("made");
    put(disk, "full/file", b"1");
    let over_full = disk.rename(Path::new("t-0.x-delete"), Path::new("full"));
    assert_eq!(kind_of(over_full), DiskErrorKind::WrongKind);
    let moved = disk.rename(Path::new("to"), Path::new("full/moved"));
    moved.expect("to another directory");
    assert_eq!(
        disk.read(Path::new("full/moved")).expect("read"),
        Some(b"new".to_vec())
    );
}

fn no_path_leads_out(disk: &impl Disk) {
    let b = Blocking::enter();
    for path in ["..", "../x", "a/../../x", "/etc/passwd"] {
        let path = Path::new(path);
        assert_eq!(
            kind_of(disk.open(path, OpenMode::Read)),
            DiskErrorKind::BadPath
        );
        assert_eq!(kind_of(disk.read(path)), DiskErrorKind::BadPath);
        assert_eq!(kind_of(disk.list(path)), DiskErrorKind::BadPath);
        assert_eq!(kind_of(disk.create_dir(path)), DiskErrorKind::BadPath);
        assert_eq!(kind_of(disk.remove(path, &b)), DiskErrorKind::BadPath);
        assert_eq!(
            kind_of(disk.rename(path, Path::new("y"))),
            DiskErrorKind::BadPath
        );
        assert_eq!(
            kind_of(disk.rename(Path::new("y"), path)),
            DiskErrorKind::BadPath
        );
        assert_eq!(kind_of(disk.replace(path, b"", &b)), DiskErrorKind::BadPath);
        assert_eq!(kind_of(disk.sync_dir(path, &b)), DiskErrorKind::BadPath);
    }
    assert_eq!(
        kind_of(disk.remove(Path::new(""), &b)),
        DiskErrorKind::BadPath
    );
}

fn small_files_are_replaced_and_read_whole(disk: &impl Disk) {
    let b = Blocking::enter();
    disk.create_dir(Path::new("d")).expect("made");
    let path = Path::new("d/checkpoint");
    assert_eq!(disk.read(path).expect("read"), None);
    for bytes in [&b"a long first version"[..], b"second", b""] {
        disk.replace(path, bytes, &b).expect("replaced");
        assert_eq!(disk.read(path).expect("read").as_deref(), Some(bytes));
    }
    // What an interrupted replace left does not show.
    put(disk, "d/checkpoint.tmp", b"left over by a crash");
    disk.replace(path, b"x", &b).expect("replaced");
    assert_eq!(disk.read(path).expect("read").as_deref(), Some(&b"x"[..]));
    assert_eq!(disk.list(Path::new("d")).expect("listed").len(), 1);
}

fn a_lock_excludes_a_second_one_and_leaves_no_file(disk: &impl Disk) {
    let lock = disk.lock().expect("free");
    assert_eq!(
        disk.read(Path::new(".lock")).expect("read"),
        Some(Vec::new())
    );
    let refused = disk.clone().lock().expect_err("taken");
    assert!(refused.is_locked(), "{refused}");
    drop(lock);
    assert_eq!(disk.read(Path::new(".lock")).expect("read"), None);
    let again = disk.lock().expect("free again");
    drop(again);
    assert!(disk.free_space().expect("it can say") > 0);
}

fn kinds_of_nodes_are_not_mixed_up(disk: &impl Disk) {
    disk.create_dir(Path::new("d")).expect("made");
    put(disk, "f", b"1");
    assert_eq!(
        kind_of(disk.open(Path::new("d"), OpenMode::Read)),
        DiskErrorKind::WrongKind
    );
    assert_eq!(
        kind_of(disk.open(Path::new("d"), OpenMode::Create)),
        DiskErrorKind::WrongKind
    );
    assert_eq!(kind_of(disk.list(Path::new("f"))), DiskErrorKind::WrongKind);
    assert_eq!(kind_of(disk.read(Path::new("d"))), DiskErrorKind::WrongKind);
    assert!(disk.create_dir(Path::new("f")).is_err());
    assert!(disk.open(Path::new("f/g"), OpenMode::Create).is_err());
    let root: PathBuf = disk.root().to_path_buf();
    assert!(!root.as_os_str().is_empty());
}
