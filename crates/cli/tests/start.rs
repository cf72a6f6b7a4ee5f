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
    let own_key = ["--brokers", "3", "--set", "node.id=7"];
    let (code, _, error) = run(&[&["start", "--data", &dir][..], &own_key].concat(), "");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("each node has its own"), "{error}");
    let bad_value = ["--brokers", "3", "--set", "num.partitions=many"];
    let (code, _, error) = run(&[&["start", "--data", &dir][..], &bad_value].concat(), "");
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("num.partitions"), "{error}");
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

#[test]
fn a_usual_server_properties_of_kafka_works_as_it_is() {
    let root = tempdir().expect("temporary directory");
    let config = root.path().join("server.properties");
    let (first, second) = (root.path().join("a"), root.path().join("b"));
    let text = format!(
        "# Kafka's own comments\nprocess.roles=broker,controller\nnode.id=7\n\
         listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n\
         inter.broker.listener.name=PLAINTEXT\ncontroller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n\
         num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\n\
         socket.receive.buffer.bytes=102400\nsocket.request.max.bytes=104857600\n\
         log.dirs={},{}\nnum.partitions=3\nnum.recovery.threads.per.data.dir=1\n\
         offsets.topic.replication.factor=1\nlog.retention.hours=168\n\
         log.segment.bytes=1073741824\nlog.retention.check.interval.ms=300000\n",
        first.display(),
        second.display()
    );
    std::fs::write(&config, text).expect("file");
    let start = || {
        let mut command = highwater();
        command.arg("start").arg("--config").arg(&config);
        Node::spawn(command, &first).expect("starts")
    };
    let node = start();
    let data = format!("data={},{}", first.display(), second.display());
    assert!(node.ready_line.ends_with(&data), "{}", node.ready_line);
    let mut client = node.connect();
    let topic = client.topic("spread");
    for partition in 0..3 {
        let (error, _) = client.produce(topic, partition, batch(&["x"]));
        assert_eq!(error, ErrorCode::NONE);
    }
    let logs = |dir: &Path| {
        let names = std::fs::read_dir(dir)
            .expect("directory")
            .filter_map(Result::ok);
        names
            .filter(|it| it.file_name().to_string_lossy().starts_with("spread-"))
            .count()
    };
    assert_eq!(logs(&first) + logs(&second), 3);
    assert!(
        logs(&first) > 0 && logs(&second) > 0,
        "both directories are used"
    );
    node.kill();
    let node = start();
    let mut client = node.connect();
    let topic = client.topic("spread");
    for partition in 0..3 {
        assert_eq!(client.read_all(topic, partition), ["x"]);
    }
    assert!(node.stop().success());
    let (code, out, error) = run(
        &[
            "log",
            "verify",
            &first.display().to_string(),
            &second.display().to_string(),
        ],
        "",
    );
    assert_eq!(code, 0, "{out}{error}");
}

/// Unpacks a data directory that Apache Kafka wrote.
fn kafka_data(root: &tempfile::TempDir, set: &str) -> std::path::PathBuf {
    let to = data(root);
    for (path, bytes) in highwater_fixtures::kafka_data(set) {
        let Ok(inner) = path.strip_prefix("data") else {
            continue;
        };
        let file = to.join(inner);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("directory");
        std::fs::write(file, bytes).expect("file");
    }
    to
}

#[test]
fn a_data_directory_of_apache_kafka_is_taken_over() {
    for set in ["one-node-clean", "one-node-killed", "one-node-recovered"] {
        let root = tempdir().expect("temporary directory");
        let node = Node::start(&kafka_data(&root, set), &[]);
        let consume = |topic: &str| {
            let args = [
                "consume",
                topic,
                "--from-beginning",
                "--exit-at-end",
                "--bootstrap",
            ];
            let (code, out, error) = run(&[&args[..], &[&node.bootstrap]].concat(), "");
            assert_eq!(code, 0, "{set}: {error}");
            out
        };
        let codecs = consume("codecs");
        assert_eq!(
            codecs.lines().count(),
            50,
            "{set}: one batch of ten in each codec"
        );
        assert!(
            codecs.contains("the quick brown fox jumps over the lazy dog zstd 9"),
            "{set}"
        );
        assert!(consume("many.batches").lines().count() > 0, "{set}");
        let args = ["produce", "plain", "--bootstrap", &node.bootstrap];
        assert_eq!(run(&args, "a\nb\n").0, 0, "{set}");
        assert!(node.stop().success(), "{set}");
    }
}
