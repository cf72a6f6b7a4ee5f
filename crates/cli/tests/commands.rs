//! Every command from outside: what it prints, in both forms, and how it ends.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Node, PATIENCE, highwater, run};
use tempfile::{TempDir, tempdir};

fn node() -> (TempDir, Node) {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&root.path().join("data"), &[]);
    (root, node)
}

/// Runs a client command at `node`; asserts success; gives its output.
fn ok(node: &Node, args: &[&str], stdin: &str) -> String {
    let args = [args, &["--bootstrap", &node.bootstrap]].concat();
    let (code, out, error) = run(&args, stdin);
    assert_eq!(code, 0, "{args:?}: {error}");
    assert_eq!(error, "", "{args:?}");
    out
}

fn ok_json(node: &Node, args: &[&str]) -> Value {
    let out = ok(node, &[args, &["--output", "json"]].concat(), "");
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}"))
}

/// Runs a client command at `node`; asserts that it fails with one line; gives that line.
fn fails(node: &Node, args: &[&str]) -> String {
    let args = [args, &["--bootstrap", &node.bootstrap]].concat();
    let (code, _, error) = run(&args, "");
    assert_eq!(code, 1, "{args:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn topics_are_made_listed_described_and_deleted() {
    let (_root, node) = node();
    assert_eq!(
        ok_json(&node, &["topic", "list"]),
        json!([]),
        "an empty result is fine"
    );
    let made = ok_json(
        &node,
        &[
            "topic",
            "create",
            "orders",
            "--partitions",
            "2",
            "--config",
            "retention.ms=-1",
        ],
    );
    assert_eq!(made[0]["topic"], "orders");
    assert_eq!(made[0]["partitions"], 2);
    assert_eq!(made[0]["replication_factor"], 1);
    assert_eq!(made[0]["topic_id"].as_str().map(str::len), Some(22));
    let listed = ok_json(&node, &["topic", "list"]);
    let expected = json!([{
        "topic": "orders", "partitions": 2, "replication_factor": 1, "internal": false,
    }]);
    assert_eq!(listed, expected);
    let described = ok_json(&node, &["topic", "describe", "orders"]);
    assert_eq!(described.as_array().map(Vec::len), Some(2));
    let row = &described[0];
    assert_eq!(row["topic_partition"], "orders-0");
    assert_eq!(row["role"], "leader");
    assert_eq!(
        (&row["start"], &row["hw"], &row["leo"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!(row["isr"], json!([1]));
    let text = ok(&node, &["topic", "describe"], "");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split_whitespace().collect();
    let columns = [
        "topic-partition",
        "broker",
        "role",
        "epoch",
        "start",
        "hw",
        "leo",
        "isr",
        "lag",
    ];
    assert_eq!(header, columns);
    assert!(lines.next().expect("a row").starts_with("orders-0"));
    assert!(fails(&node, &["topic", "create", "orders"]).contains("orders"));
    assert!(fails(&node, &["topic", "create", "a/b"]).contains("a/b"));
    assert!(fails(&node, &["topic", "describe", "nothing"]).contains("nothing"));
    ok(&node, &["topic", "delete", "orders"], "");
    assert!(fails(&node, &["topic", "delete", "orders"]).contains("orders"));
    let late = Instant::now() + PATIENCE;
    while ok_json(&node, &["topic", "list"]) != json!([]) {
        assert!(Instant::now() < late);
    }
}

#[test]
fn what_is_produced_is_consumed() {
    let (_root, node) = node();
    let out = ok(&node, &["produce", "greetings"], "hello, log\n\nthird\n");
    assert_eq!(out, "sent 3 records to greetings\n");
    let read = [
        "consume",
        "greetings",
        "--from-beginning",
        "--max-messages",
        "3",
    ];
    assert_eq!(ok(&node, &read, ""), "hello, log\n\nthird\n");
    ok(
        &node,
        &["produce", "greetings", "--key-separator", ":"],
        "k:v:w\nno key\n",
    );
    let read = [
        "consume",
        "greetings",
        "--offset",
        "3",
        "--exit-at-end",
        "--print-key",
        "--print-offset",
        "--key-separator",
        "|",
    ];
    assert_eq!(ok(&node, &read, ""), "3|k|v:w\n4|null|no key\n");
    let line = ok(
        &node,
        &[
            "consume",
            "greetings",
            "--offset",
            "3",
            "-n",
            "1",
            "--output",
            "json",
        ],
        "",
    );
    let record: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(record["topic"], "greetings");
    assert_eq!(
        (&record["partition"], &record["offset"]),
        (&json!(0), &json!(3))
    );
    assert_eq!(
        (&record["key"], &record["value"]),
        (&json!("k"), &json!("v:w"))
    );
    let sent = run(
        &[
            "--output",
            "json",
            "produce",
            "greetings",
            "--bootstrap",
            &node.bootstrap,
        ],
        "x\n",
    );
    let sent: Value = serde_json::from_str(&sent.1).expect("JSON before the verb too");
    assert_eq!(sent, json!({ "topic": "greetings", "records": 1 }));
}

#[test]
fn partitions_are_written_and_read_by_number_or_all_together() {
    let (_root, node) = node();
    ok(&node, &["topic", "create", "wide", "--partitions", "3"], "");
    for (partition, line) in [("0", "zero\n"), ("2", "two\n")] {
        ok(&node, &["produce", "wide", "--partition", partition], line);
    }
    let read = |more: &[&str]| {
        let args = [&["consume", "wide", "--from-beginning", "-e"], more].concat();
        let mut lines: Vec<String> = ok(&node, &args, "").lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(read(&["--partition", "2", "--print-partition"]), ["2\ttwo"]);
    assert_eq!(read(&["--partition", "1"]), [""; 0]);
    assert_eq!(read(&[]), ["two", "zero"]);
    assert!(fails(&node, &["consume", "wide", "--partition", "9", "-e"]).contains("wide-9"));
    assert!(fails(&node, &["consume", "nothing", "-e"]).contains("nothing"));
    assert!(fails(&node, &["consume", "wide", "--offset", "77", "-n", "1"]).contains("77"));
}

#[test]
fn every_codec_and_many_records_come_back_in_order() {
    let (_root, node) = node();
    let lines: Vec<String> = (0..20_000)
        .map(|number| format!("record number {number}"))
        .collect();
    let text = lines.join("\n") + "\n";
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let topic = format!("codec-{codec}");
        ok(&node, &["produce", &topic, "--compression", codec], &text);
        let read = ["consume", &topic, "--from-beginning", "--exit-at-end"];
        assert!(ok(&node, &read, "") == text, "{codec}");
    }
}

#[test]
fn consume_follows_until_it_is_stopped() {
    let (_root, node) = node();
    ok(&node, &["produce", "news"], "old\n");
    let mut command = highwater();
    command.args([
        "consume",
        "news",
        "--bootstrap",
        &node.bootstrap,
        "--offset",
        "earliest",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let mut next = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).expect("text");
        line
    };
    assert_eq!(next(), "old\n");
    ok(&node, &["produce", "news"], "fresh\n");
    assert_eq!(next(), "fresh\n", "a record is shown when it comes");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn cluster_status_shows_brokers_and_replicas() {
    let (_root, node) = node();
    ok(&node, &["produce", "orders"], "one\ntwo\n");
    let status = ok_json(&node, &["cluster", "status"]);
    assert_eq!(status["cluster_id"], node.cluster_id);
    assert_eq!(status["controller"], 1);
    let port: u16 = node
        .bootstrap
        .rsplit(':')
        .next()
        .expect("a port")
        .parse()
        .expect("a port");
    let brokers = json!([{
        "broker": 1, "host": "127.0.0.1", "port": port, "rack": null, "state": "active",
    }]);
    assert_eq!(status["brokers"], brokers);
    let replica = &status["replicas"][0];
    assert_eq!((&replica["hw"], &replica["leo"]), (&json!(2), &json!(2)));
    let text = ok(&node, &["cluster", "status"], "");
    assert!(text.contains("topic-partition  broker  role"), "{text}");
}

#[test]
fn who_cannot_be_reached_is_named_with_a_remedy() {
    // A port that was free a moment ago.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    drop(taken);
    let began = Instant::now();
    let mut command = highwater();
    command
        .args(["topic", "list"])
        .env("HIGHWATER_BOOTSTRAP", &address);
    let out = command.output().expect("the binary runs");
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert!(error.contains(&address), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for args in [
        &["frobnicate"][..],
        &["topic"],
        &["produce"],
        &["produce", "t", "--acks", "7"],
        &["produce", "t", "--compression", "rar"],
        &["produce", "t", "--property", "no.such.key=1"],
        &["consume", "t", "--offset", "soon"],
        &["topic", "list", "--output", "xml"],
    ] {
        let (code, _, error) = run(args, "");
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(!error.is_empty(), "{args:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (_root, node) = node();
    let text: String = (0..50_000).map(|number| format!("{number}\n")).collect();
    ok(&node, &["produce", "long"], &text);
    let mut command = highwater();
    command.args([
        "consume",
        "long",
        "--from-beginning",
        "-e",
        "--bootstrap",
        &node.bootstrap,
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    drop(child.stdout.take());
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    assert_eq!(out.status.code(), Some(0));
}

#[test]
fn format_is_kafka_storages() {
    let (code, id, _) = run(&["format", "random-uuid"], "");
    let id = id.trim();
    assert_eq!((code, id.len()), (0, 22), "{id}");
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let config = root.path().join("server.properties");
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\nlog.dirs={}\n\
         listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n\
         controller.listener.names=CONTROLLER\n",
        data.display()
    );
    std::fs::write(&config, text).expect("file");
    let config = config.display().to_string();
    let format = |more: &[&str]| run(&[&["format", "-c", &config, "-t", id], more].concat(), "");
    let (code, _, error) = format(&[]);
    assert_eq!(code, 1);
    assert!(error.contains("--standalone"), "{error}");
    let (code, out, error) = format(&["--standalone"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains(id), "{out}");
    assert!(data.join("meta.properties").exists());
    let (code, _, error) = format(&["--standalone"]);
    assert_eq!(code, 1);
    assert!(error.contains("--ignore-formatted"), "{error}");
    let (code, _, error) = format(&["--standalone", "--ignore-formatted"]);
    assert_eq!(code, 0, "{error}");
    let mut command = highwater();
    command.args(["start", "--config", &config]);
    let node = Node::spawn(command, &data).expect("starts");
    assert_eq!(node.cluster_id, id);
    assert!(
        node.ready_line
            .ends_with(&format!("data={}", data.display())),
        "{}",
        node.ready_line
    );
}

#[test]
fn log_dump_and_verify_read_what_a_node_wrote() {
    let (root, node) = node();
    ok(
        &node,
        &["produce", "orders", "--key-separator", ":"],
        "a:1\nb:2\n",
    );
    assert!(node.stop().success());
    let data = root.path().join("data");
    let log = data
        .join("orders-0/00000000000000000000.log")
        .display()
        .to_string();
    let (code, out, error) = run(&["log", "dump", &log, "--print-data-log"], "");
    assert_eq!(code, 0, "{error}");
    assert!(out.starts_with(&format!(
        "Dumping {log}\nLog starting offset: 0\nbaseOffset: 0 "
    )));
    assert!(out.contains("key: b payload: 2"), "{out}");
    let (code, out, error) = run(
        &["log", "dump", &log, "--print-data-log", "--output", "json"],
        "",
    );
    assert_eq!(code, 0, "{error}");
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.last().expect("a record")["payload"], "2");
    let metadata = data.join("__cluster_metadata-0/00000000000000000000.log");
    let (code, out, error) = run(
        &[
            "log",
            "dump",
            &metadata.display().to_string(),
            "--cluster-metadata-decoder",
        ],
        "",
    );
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("\"type\":\"REGISTER_BROKER_RECORD\""), "{out}");
    verify(&data, 0, json!([]));
    // One flipped byte in the middle of the records.
    let mut bytes = std::fs::read(&log).expect("file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).expect("file");
    let (code, out, error) = run(&["log", "verify", &data.display().to_string()], "");
    assert_eq!(code, 1, "{out}{error}");
    assert!(out.contains("orders-0"), "{out}");
}

fn verify(data: &Path, expected: i32, findings: Value) {
    let dir = data.display().to_string();
    let (code, out, error) = run(&["log", "verify", &dir, "--output", "json"], "");
    assert_eq!(code, expected, "{out}{error}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["findings"], findings, "{report:#}");
}
