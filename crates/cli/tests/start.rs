//! `highwater start` from outside: the ready line, stopping, kill -9, and what it refuses.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::path::Path;
use std::time::Instant;

use highwater_types::ErrorCode;
use support::{Node, batch, highwater, run};
use tempfile::tempdir;

/// The data directory within a temporary one, so that logs of the test stay out of it.
fn data(root: &tempfile::TempDir) -> std::path::PathBuf {
    root.path().join("data")
}

#[test]
fn the_ready_line_names_bootstrap_cluster_id_and_data() {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&data(&root), &[]);
    let (host, port) = node.bootstrap.rsplit_once(':').expect("HOST:PORT");
    assert_eq!(host, "127.0.0.1");
    assert_ne!(port.parse::<u16>().expect("a port"), 0);
    assert_eq!(node.cluster_id.len(), 22);
    let end = format!("data={}", data(&root).display());
    assert!(node.ready_line.ends_with(&end), "{}", node.ready_line);
    node.connect().topic("hello");
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let root = tempdir().expect("temporary directory");
    let mut expected = Vec::new();
    let mut cluster_id = String::new();
    for round in 0..4 {
        let node = Node::start(&data(&root), &[]);
        let mut client = node.connect();
        let topic = client.topic("orders");
        for number in 0..50 {
            let value = format!("{round}-{number}");
            let (error, base) = client.produce(topic, 0, batch(&[&value]));
            assert_eq!(error, ErrorCode::NONE);
            assert_eq!(base, i64::try_from(expected.len()).expect("small"));
            expected.push(value);
        }
        assert_eq!(client.read_all(topic, 0), expected);
        if round > 0 {
            assert_eq!(node.cluster_id, cluster_id);
        }
        cluster_id.clone_from(&node.cluster_id);
        node.kill();
    }
    let node = Node::start(&data(&root), &[]);
    let mut client = node.connect();
    let topic = client.topic("orders");
    assert_eq!(client.read_all(topic, 0), expected);
}

#[test]
fn a_graceful_stop_leaves_the_marker_and_everything_in_place() {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&data(&root), &[]);
    let mut client = node.connect();
    let topic = client.topic("orders");
    assert_eq!(
        client.produce(topic, 0, batch(&["a", "b"])).0,
        ErrorCode::NONE
    );
    let marker = data(&root).join(".kafka_cleanshutdown");
    assert!(!marker.exists());
    let status = node.stop();
    assert!(status.success(), "{status}");
    assert!(marker.exists());
    assert!(!data(&root).join(".lock").exists());
    let node = Node::start(&data(&root), &[]);
    assert!(!marker.exists(), "the marker goes at the start");
    let mut client = node.connect();
    let topic = client.topic("orders");
    assert_eq!(client.read_all(topic, 0), ["a", "b"]);
}

#[test]
fn one_directory_serves_one_node() {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&data(&root), &[]);
    let error = Node::try_start(&data(&root), &[]).err().expect("refused");
    assert!(
        error.contains(&data(&root).display().to_string()),
        "{error}"
    );
    assert!(error.contains("another process"), "{error}");
    node.connect().topic("still-served");
}

#[test]
fn foreign_files_are_never_formatted_over() {
    let root = tempdir().expect("temporary directory");
    std::fs::create_dir(data(&root)).expect("directory");
    std::fs::write(data(&root).join("thesis.txt"), "years of work").expect("file");
    let error = Node::try_start(&data(&root), &[]).err().expect("refused");
    assert!(error.contains("meta.properties"), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    let left: Vec<_> = std::fs::read_dir(data(&root)).expect("directory").collect();
    assert_eq!(left.len(), 1, "nothing was written");
}

#[test]
fn a_port_in_use_is_named_with_a_remedy() {
    let root = tempdir().expect("temporary directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut command = highwater();
    command
        .arg("start")
        .arg("--data")
        .arg(data(&root))
        .args(["--listen", &address]);
    let error = Node::spawn(command, &data(&root)).err().expect("refused");
    assert!(
        error.contains(&address) && error.contains("--listen"),
        "{error}"
    );
    assert!(
        !data(&root).join("meta.properties").exists(),
        "nothing is formatted for nothing"
    );
}

#[test]
fn settings_are_checked_before_anything_is_touched() {
    let root = tempdir().expect("temporary directory");
    let dir = data(&root).display().to_string();
    let start = |set: &str| run(&["start", "--data", &dir, "--set", set], "");
    let (code, _, error) = start("num.partitions=many");
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("num.partitions"), "{error}");
    let (code, _, error) = start("no-equals-sign");
    assert_eq!(code, 2, "{error}");
    let (code, _, error) = run(&["start", "--data", &dir, "--brokers", "3"], "");
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("--brokers"), "{error}");
    assert!(!Path::new(&dir).exists());
}

#[test]
fn unknown_keys_are_named_with_the_nearest_and_idle_ones_said_once() {
    let root = tempdir().expect("temporary directory");
    let more = ["--set", "num.partitoins=3", "--set", "num.io.threads=9"];
    let node = Node::start(&data(&root), &more);
    let said = node.said();
    assert!(
        said.contains("num.partitoins") && said.contains("num.partitions"),
        "{said}"
    );
    assert_eq!(said.matches("num.io.threads").count(), 1, "{said}");
}

#[test]
fn a_second_signal_ends_at_once() {
    let root = tempdir().expect("temporary directory");
    let mut node = Node::start(&data(&root), &[]);
    node.terminate();
    node.terminate();
    node.wait();
}

#[test]
fn the_first_record_is_acknowledged_soon_after_the_start() {
    let root = tempdir().expect("temporary directory");
    let began = Instant::now();
    let node = Node::start(&data(&root), &[]);
    let mut client = node.connect();
    let topic = client.topic("soon");
    assert_eq!(
        client.produce(topic, 0, batch(&["first"])).0,
        ErrorCode::NONE
    );
    // The figure to reach is 0.1 s in a release build on a quiet machine; this only catches a wait.
    let took = began.elapsed();
    assert!(took.as_secs() < 5, "{took:?}");
}
