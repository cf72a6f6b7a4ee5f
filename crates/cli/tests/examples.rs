//! The examples do what their texts say: every command in them is run, in order.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::{TempDir, tempdir};

/// Longer than the whole text takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A copy of an example, whose processes end with it.
struct Example {
    dir: TempDir,
}

impl Example {
    /// Copies an example's files; its ports become free ones.
    fn copy(name: &str, ports: &[u16]) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let dir = tempdir().expect("temporary directory");
        let free: Vec<TcpListener> = ports
            .iter()
            .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
            .collect();
        let files = fs::read_dir(from.join(name)).expect("the example");
        for file in files {
            let file = file.expect("a file").path();
            if file.is_dir() {
                continue;
            }
            let mut text = fs::read_to_string(&file).expect("a text");
            for (port, free) in ports.iter().zip(&free) {
                let free = free.local_addr().expect("an address").port();
                text = text.replace(&format!(":{port}"), &format!(":{free}"));
            }
            let to = dir.path().join(file.file_name().expect("a name"));
            fs::write(&to, text).expect("a copy");
            let rights = fs::metadata(&file).expect("a file").permissions();
            fs::set_permissions(&to, rights).expect("a copy");
        }
        Self { dir }
    }

    /// Every command of its README, in order.
    fn commands(&self) -> String {
        let text = fs::read_to_string(self.dir.path().join("README.md")).expect("a README");
        let blocks = text.split("```sh\n").skip(1);
        let blocks = blocks.map(|it| it.split("```").next().expect("the block"));
        blocks.collect()
    }

    fn pids(&self) -> Vec<String> {
        let Ok(data) = fs::read_dir(self.dir.path().join("data")) else {
            return Vec::new();
        };
        let files = data.filter_map(|it| it.ok().map(|it| it.path()));
        let pids = files.filter(|it: &PathBuf| it.extension().is_some_and(|it| it == "pid"));
        pids.filter_map(|it| fs::read_to_string(it).ok()).collect()
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        for pid in self.pids() {
            let kill = Command::new("kill").args(["-KILL", pid.trim()]).output();
            let _gone_already = kill;
        }
    }
}

/// How it ended; `None` when it takes too long.
fn wait_for(child: &mut Child) -> Option<ExitStatus> {
    let late = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().expect("a child") {
            Some(status) => break Some(status),
            None if Instant::now() > late => break None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[test]
fn the_text_of_three_brokers_is_true() {
    let example = Example::copy("three", &[19_090, 19_091, 19_092, 19_093]);
    let binary = Path::new(env!("CARGO_BIN_EXE_highwater"));
    let path = std::env::var("PATH").expect("a PATH");
    let log = fs::File::create(example.dir.path().join("log")).expect("a file");
    let mut child = Command::new("bash")
        .args(["-eux", "-o", "pipefail", "-c", &example.commands()])
        .current_dir(example.dir.path())
        .env(
            "PATH",
            format!("{}:{path}", binary.parent().expect("a directory").display()),
        )
        .env_remove("HIGHWATER")
        .env_remove("HIGHWATER_BOOTSTRAP")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log)
        .spawn()
        .expect("bash runs");
    let status = wait_for(&mut child);
    let said = fs::read_to_string(example.dir.path().join("log")).expect("a file");
    if status.is_none() {
        // The shell and all that it waits for.
        let group = format!("-{}", child.id());
        let kill = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(kill.is_ok_and(|it| it.success()));
        child.wait().expect("it ended");
    }
    assert!(status.is_some_and(|it| it.success()), "{status:?}: {said}");
    // What the text says of what is printed.
    assert!(
        said.contains("highwater ready controller=127.0.0.1:"),
        "{said}"
    );
    let described: Vec<&str> = said
        .lines()
        .filter(|it| it.starts_with("orders-0 "))
        .collect();
    assert_eq!(described.len(), 15, "{said}");
    let cells = |row: &str| -> Vec<String> { row.split_whitespace().map(str::to_owned).collect() };
    let leaders: Vec<_> = described
        .iter()
        .map(|row| cells(row))
        .filter(|row| row[2] == "leader")
        .map(|row| (row[1].clone(), row[3].clone(), row[7].clone()))
        .collect();
    let expected = [("1", "1,2,3"), ("2", "2,3"), ("2", "1,2,3"), ("2", "1,2")];
    for ((broker, _, isr), (by, isr_then)) in leaders.iter().zip(expected) {
        let mut ids: Vec<&str> = isr.split(',').collect();
        ids.sort_unstable();
        assert_eq!(
            (broker.as_str(), ids.join(",").as_str()),
            (by, isr_then),
            "{said}"
        );
    }
    let (broker, epoch, _) = leaders.last().expect("a leader");
    assert_ne!(
        (broker.as_str(), epoch.as_str()),
        ("2", "1"),
        "the frozen one leads no more"
    );
    assert!(said.contains("(out)"), "{said}");
}
