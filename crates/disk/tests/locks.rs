//! FileDisk's lock against other processes: fcntl, as Java's `FileChannel.lock`.

use std::path::Path;
use std::process::{Command, Stdio};

use highwater_disk::{Disk, FileDisk};

/// Set for the child: the directory to lock.
const CHILD_DIR: &str = "HIGHWATER_TEST_LOCK_DIR";

/// The child: not a test of its own, it only runs when the parent test starts it.
#[test]
fn child_locks_and_waits() {
    let Ok(dir) = std::env::var(CHILD_DIR) else {
        return;
    };
    let disk = FileDisk::open(dir).expect("the parent made it");
    match disk.lock() {
        Ok(_lock) => {
            eprintln!("locked");
            // Until the parent closes the pipe, or kills us.
            let mut line = String::new();
            let _ended = std::io::stdin().read_line(&mut line);
        }
        Err(why) => eprintln!("refused: {why}"),
    }
}

fn child(dir: &Path) -> std::process::Child {
    let me = std::env::current_exe().expect("the test's own binary");
    Command::new(me)
        .args(["--exact", "child_locks_and_waits", "--nocapture"])
        .env(CHILD_DIR, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started")
}

fn first_line(child: &mut std::process::Child) -> String {
    use std::io::BufRead as _;
    let stderr = child.stderr.as_mut().expect("piped");
    let mut line = String::new();
    std::io::BufReader::new(stderr)
        .read_line(&mut line)
        .expect("readable");
    line
}

#[test]
fn another_process_is_excluded_and_its_death_frees_the_lock() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let disk = FileDisk::open(dir.path()).expect("it is there");

    let mut holder = child(dir.path());
    assert_eq!(first_line(&mut holder), "locked\n");
    let refused = disk.lock().expect_err("the child holds it");
    assert!(refused.is_locked(), "{refused}");
    holder.kill().expect("killed");
    holder.wait().expect("gone");
    assert!(dir.path().join(".lock").exists(), "it stays after kill -9");

    let lock = disk.lock().expect("the dead hold no lock");
    let mut late = child(dir.path());
    assert!(first_line(&mut late).starts_with("refused"), "we hold it");
    late.wait().expect("gone");
    drop(lock);
    assert!(!dir.path().join(".lock").exists(), "a clean end removes it");
}

#[test]
fn what_is_no_regular_file_is_refused_and_never_waited_for() {
    use highwater_disk::OpenMode;
    let dir = tempfile::tempdir().expect("a directory for the test");
    let disk = FileDisk::open(dir.path()).expect("it is there");
    let pipe = dir.path().join("0.log");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("1.log")).expect("linked");
    for name in ["0.log", "1.log"] {
        for mode in [OpenMode::Read, OpenMode::Create] {
            let why = disk.open(Path::new(name), mode).expect_err("no file");
            assert!(why.to_string().contains("no regular file"), "{name}: {why}");
        }
    }
}
