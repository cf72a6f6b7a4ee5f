//! What a hurried operator does to `highwater start`: each time a clear refusal, nothing lost.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use highwater_types::ErrorCode;
use support::{Node, batch, highwater, run};
use tempfile::{TempDir, tempdir};

fn start(args: &[&str]) -> (i32, String) {
    let (code, out, error) = run(&[&["start"], args].concat(), "");
    assert_eq!(out, "", "nothing is ready");
    (code, error)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A node with two log directories and one record in each of four partitions.
fn two_dirs(root: &TempDir) -> (PathBuf, PathBuf, String) {
    let (first, second) = (root.path().join("first"), root.path().join("second"));
    let set = format!("log.dirs={},{}", first.display(), second.display());
    let mut command = highwater();
    command.args(["start", "--listen", "127.0.0.1:0", "--set", &set]);
    let node = Node::spawn(command, &first).expect("a node");
    let mut client = node.connect();
    client.create_topic("orders", 4, &[]);
    let topic = client.topic("orders");
    for partition in 0..4 {
        let (error, _) = client.produce(topic, partition, batch(&["a"]));
        assert_eq!(error, ErrorCode::NONE);
    }
    assert!(node.stop().success());
    (first, second, set)
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one_graceful_stop() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let mut node = Node::start(&data, &[]);
    // `timeout` signals the process and then its group; so does a terminal's Ctrl-C under a shell.
    node.terminate();
    node.terminate();
    let status = node.wait();
    assert!(status.success(), "{status}: {}", node.said());
    assert!(data.join(".kafka_cleanshutdown").exists());
}

#[test]
fn a_log_directory_that_went_missing_is_not_made_anew() {
    let root = tempdir().expect("temporary directory");
    let (first, second, set) = two_dirs(&root);
    let args = ["--listen", "127.0.0.1:0", "--set", &set];
    for (gone, remedy) in [
        (&second, "format --ignore-formatted"),
        (&first, "the metadata"),
    ] {
        let aside = root.path().join("aside");
        fs::rename(gone, &aside).expect("renamed");
        fs::create_dir(gone).expect("a mount point without its disk");
        let (code, error) = start(&args);
        assert_eq!(code, 1, "{error}");
        assert!(error.contains(&text(gone)), "{error}");
        assert!(error.contains(remedy), "{error}");
        let left = fs::read_dir(gone).expect("directory").count();
        assert_eq!(left, 0, "nothing was written");
        fs::remove_dir(gone).expect("empty");
        fs::rename(&aside, gone).expect("renamed back");
    }
    let mut command = highwater();
    command.arg("start").args(args);
    let node = Node::spawn(command, &first).expect("a node");
    let mut client = node.connect();
    let topic = client.topic("orders");
    for partition in 0..4 {
        assert_eq!(client.read_all(topic, partition), ["a"]);
    }
}

#[test]
fn a_file_where_a_log_directory_should_be_is_named() {
    let root = tempdir().expect("temporary directory");
    let file = root.path().join("file");
    fs::write(&file, "mine").expect("file");
    for data in [file.clone(), file.join("below")] {
        let (code, error) = start(&["--listen", "127.0.0.1:0", "--data", &text(&data)]);
        assert_eq!(code, 1);
        assert!(error.contains(&text(&data)), "{error}");
        assert!(error.contains("choose another"), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).expect("file"), "mine");
}

#[test]
fn an_address_that_is_none_is_wrong_usage() {
    let root = tempdir().expect("temporary directory");
    let data = text(&root.path().join("data"));
    for listen in ["127.0.0.1", "[::1:0", "PLAINTEXT://127.0.0.1:0", "h:70000"] {
        let (code, error) = start(&["--data", &data, "--listen", listen]);
        assert_eq!(code, 2, "{listen}: {error}");
        assert!(error.contains("HOST:PORT is expected"), "{error}");
    }
    let (code, error) = start(&["--data", &data, "--listen", "0.0.0.0:0"]);
    assert_eq!(code, 1);
    assert!(
        error.contains("advertised.listeners=NAME://HOST:PORT"),
        "{error}"
    );
    assert!(!Path::new(&data).exists(), "nothing was written");
}

#[test]
fn a_node_whose_standard_error_takes_nothing_serves_on() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let node = Node::start(&data, &[]);
    node.connect().topic("orders");
    drop(node);
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a full device");
    let mut command = highwater();
    command.args(["start", "--listen", "127.0.0.1:0", "--data", &text(&data)]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(full);
    let mut child = command.spawn().expect("the binary runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert!(line.starts_with("highwater ready"), "{line}");
    let stop = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(stop.expect("kill runs").success());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_no_end() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let mut command = Command::new("sh");
    let start = format!(
        "ulimit -f 400; exec {} start --listen 127.0.0.1:0 --data {}",
        env!("CARGO_BIN_EXE_highwater"),
        data.display()
    );
    command.args(["-c", &start]);
    let node = Node::spawn(command, &data).expect("a node");
    let mut client = node.connect();
    let (large, small) = (client.topic("large"), client.topic("small"));
    let value = "x".repeat(100_000);
    let codes: Vec<ErrorCode> = (0..10)
        .map(|_| client.produce(large, 0, batch(&[&value])).0)
        .collect();
    assert_eq!(codes.first(), Some(&ErrorCode::NONE));
    assert_eq!(
        codes.last(),
        Some(&ErrorCode::KAFKA_STORAGE_ERROR),
        "{codes:?}"
    );
    assert_eq!(client.produce(small, 0, batch(&["a"])).0, ErrorCode::NONE);
    let kept = codes
        .iter()
        .filter(|code| **code == ErrorCode::NONE)
        .count();
    assert_eq!(client.read_all(large, 0).len(), kept);
}
