//! A node on a rough machine: few files, a pause in the middle, hundreds of connections, other
//! kinds of addresses.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use highwater_types::ErrorCode;
use support::{Node, PATIENCE, batch, highwater, run};
use tempfile::tempdir;

/// ApiVersions v0 with an empty client id.
const REQUEST: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 9, 0xff, 0xff];

/// Whether the node answers on this connection.
fn is_answered(stream: &mut TcpStream) -> bool {
    let mut length = [0; 4];
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    if stream.write_all(&REQUEST).is_err() || stream.read_exact(&mut length).is_err() {
        return false;
    }
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).is_ok()
}

/// `start` under a limit of open files.
fn with_files(files: usize, data: &std::path::Path) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
    command
        .args(["-c", &script])
        .arg(highwater().get_program())
        .args(["start", "--listen", "127.0.0.1:0", "--data"])
        .arg(data);
    command
}

#[test]
fn too_few_files_are_named_and_few_are_shared() {
    let root = tempdir().expect("temporary directory");
    for files in [8, 16, 63] {
        let data = root.path().join("none");
        let why = Node::spawn(with_files(files, &data), &data).err();
        let why = why.expect("it does not start");
        assert!(why.contains("ulimit -n"), "{files}: {why}");
        assert!(!data.exists(), "nothing was written");
    }
    let data = root.path().join("data");
    let node = Node::spawn(with_files(64, &data), &data).expect("it starts");
    // More connections than there are files: the logs keep theirs.
    let streams: Vec<_> = (0..80)
        .map(|_| TcpStream::connect(&node.bootstrap))
        .collect();
    drop(streams);
    let mut client = node.connect();
    let topic = client.topic("t");
    let (error, _) = client.produce(topic, 0, batch(&["x"]));
    assert_eq!(error, ErrorCode::NONE);
    assert!(node.stop().success());
}

#[test]
fn addresses_of_ipv6_and_names_are_served() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("this machine has no IPv6");
        return;
    }
    let root = tempdir().expect("temporary directory");
    for listen in ["[::1]:0", "::1:0", "localhost:0"] {
        let data = root.path().join("data");
        let mut command = highwater();
        command
            .args(["start", "--listen", listen, "--data"])
            .arg(&data);
        let node = Node::spawn(command, &data).expect("it starts");
        let mut client = node.connect();
        let topic = client.topic("t");
        let (error, _) = client.produce(topic, 0, batch(&["x"]));
        assert_eq!(error, ErrorCode::NONE, "{listen}");
        let args = ["cluster", "status", "--bootstrap", &node.bootstrap];
        let (code, _, err) = run(&args, "");
        assert_eq!(code, 0, "{listen}: {err}");
        assert!(node.stop().success());
    }
}

#[test]
fn a_paused_node_goes_on_where_it_was() {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&root.path().join("data"), &[]);
    let mut client = node.connect();
    let topic = client.topic("t");
    let signal = |name: &str| {
        let pid = node.id().to_string();
        let done = Command::new("kill").args([name, &pid]).status();
        assert!(done.expect("kill runs").success());
    };
    for round in 0..3 {
        signal("-STOP");
        // Longer than the session time-out's heartbeats, and requests that pile up meanwhile.
        let mut others: Vec<_> = (0..5).map(|_| client.twin()).collect();
        let request = support::produce_request(topic, 0, batch(&["x"]));
        let ids: Vec<i32> = others
            .iter_mut()
            .map(|it| it.send(0, 13, &request))
            .collect();
        std::thread::sleep(Duration::from_millis(700));
        signal("-CONT");
        for id in ids {
            let answer: highwater_protocol::messages::ProduceResponse = client.receive(0, 13, id);
            let row = &answer.responses[0].partition_responses[0];
            assert_eq!(row.error_code, ErrorCode::NONE, "round {round}");
        }
    }
    assert_eq!(client.read_all(topic, 0).len(), 15);
    assert!(node.stop().success());
}

#[test]
fn hundreds_of_connections_come_at_once_stay_and_do_not_hold_up_the_stop() {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&root.path().join("data"), &[]);
    let began = Instant::now();
    let mut streams: Vec<TcpStream> = (0..800)
        .map(|_| TcpStream::connect(&node.bootstrap).expect("connects"))
        .collect();
    for stream in &mut streams {
        assert!(is_answered(stream));
    }
    // Each that finds the backlog full would wait a second.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    for turn in 0..800 {
        let at = turn * 7 % streams.len();
        streams[at] = TcpStream::connect(&node.bootstrap).expect("connects");
        if turn % 3 == 0 {
            assert!(is_answered(&mut streams[at]));
        }
    }
    assert!(streams.iter_mut().all(is_answered));
    let began = Instant::now();
    assert!(node.stop().success());
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
}
