//! What a newcomer types wrongly, or does not expect: each time it is said what was meant.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use support::{Node, PATIENCE, highwater, run};
use tempfile::{TempDir, tempdir};

fn node() -> (TempDir, Node) {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&root.path().join("data"), &[]);
    (root, node)
}

fn at(node: &Node, args: &[&str], stdin: &str) -> (i32, String, String) {
    run(&[args, &["--bootstrap", &node.bootstrap]].concat(), stdin)
}

#[test]
fn what_cannot_be_meant_is_exit_code_2() {
    for args in [
        &[][..],
        &["topic", "list", "--bootstrap", "nowhere"],
        &["topic", "list", "--bootstrap", ""],
        &["topic", "list", "--bootstrap", ","],
        &["topic", "list", "--bootstrap", "h:0"],
        &["topic", "list", "--bootstrap", "h:65536"],
        &["topic", "list", "--bootstrap", "h:1,h"],
        &["topic", "list", "--bootstrap", "kafka://h:1"],
        &["topic", "list", "extra"],
        &["topic", "create", "a", "--partitions", "x"],
        &["topic", "create", "a", "--replication-factor", "40000"],
        &["topic", "create", "a", "--config", "retention.ms"],
        &["topic", "create", "a", "--replica-assignment", "1:x"],
        &["topic", "create", "a", "--replica-assignment", "1:-2"],
        &[
            "topic",
            "create",
            "a",
            "--replica-assignment",
            "1:2",
            "-p",
            "1",
        ],
        &["topic", "delete"],
        &["produce", "t", "--partition", "x"],
        &["consume", "t", "--from-beginning", "--offset", "1"],
        &["consume", "t", "--offset", "-1"],
        &["consume", "t", "-n", "-1"],
        &["log", "dump"],
        &["log", "verify"],
        &["sim", "run"],
        &["sim", "seed", "x"],
        &["sim", "seed", "-1"],
        &["start", "--brokers", "x"],
        &["start", "--brokers", "0"],
        &["start", "--brokers", "17"],
        &["start", "--brokers", "3", "--config", "x.properties"],
        &["start", "--brokers", "3", "--set", "node.id=7"],
        &["start", "--brokers", "3", "--listen", "127.0.0.1:65534"],
        &["format"],
    ] {
        let (code, out, error) = run(args, "");
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {error}");
        assert!(
            !error.contains("unexpected argument '-1'"),
            "{args:?}: {error}"
        );
    }
    let out = highwater()
        .args(["topic", "list"])
        .env("HIGHWATER_BOOTSTRAP", "here")
        .output();
    let out = out.expect("the binary runs");
    assert_eq!(out.status.code(), Some(2));
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(error.contains("HOST:PORT is expected"), "{error}");
}

#[test]
fn help_is_a_command_too() {
    for args in [
        &["help"][..],
        &["help", "topic"],
        &["topic", "help", "create"],
    ] {
        let (code, out, error) = run(args, "");
        assert_eq!((code, error.as_str()), (0, ""), "{args:?}");
        assert!(out.contains("Usage: highwater"), "{args:?}: {out}");
    }
}

#[test]
fn numbers_below_zero_mean_what_they_mean_to_kafka() {
    let (_root, node) = node();
    let (code, out, error) = at(&node, &["produce", "orders", "--acks", "-1"], "one\n");
    assert_eq!(
        (code, out.as_str()),
        (0, "sent 1 record to orders\n"),
        "{error}"
    );
    let create = ["topic", "create", "wide", "--partitions", "-1", "-r", "-1"];
    let (code, out, error) = at(&node, &create, "");
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("wide   1 "), "{out}");
}

#[test]
fn nothing_done_prints_no_columns() {
    let (_root, node) = node();
    let (code, out, error) = at(&node, &["topic", "delete", "a", "b"], "");
    assert_eq!((code, out.as_str()), (1, ""), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    let (code, out, _) = at(&node, &["topic", "delete", "a", "--output", "json"], "");
    assert_eq!((code, out.as_str()), (1, "[]\n"));
}

#[test]
fn an_offset_behind_the_end_is_told() {
    let (_root, node) = node();
    at(&node, &["produce", "orders"], "one\ntwo\n");
    let (code, out, error) = at(&node, &["consume", "orders", "--offset", "77", "-e"], "");
    assert_eq!((code, out.as_str()), (1, ""), "{error}");
    assert!(error.contains("77"), "{error}");
    let (code, out, error) = at(&node, &["consume", "orders", "--offset", "2", "-e"], "");
    assert_eq!((code, out.as_str(), error.as_str()), (0, "", ""));
}

#[test]
fn bytes_that_are_no_text_survive_json() {
    let (_root, node) = node();
    let mut command = highwater();
    command.args([
        "produce",
        "binary",
        "--key-separator",
        ":",
        "--bootstrap",
        &node.bootstrap,
    ]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"k:\xff\0\xfe\n\xc3:text\n").expect("fed");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    let read = [
        "consume",
        "binary",
        "--from-beginning",
        "-e",
        "--output",
        "json",
    ];
    let (_, out, _) = at(&node, &read, "");
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["value_base64"], "/wD+");
    assert_eq!(lines[0].get("key_base64"), None);
    assert_eq!(lines[1]["key_base64"], "ww==");
    assert_eq!(lines[1]["value"], "text");
    assert_eq!(lines[1].get("value_base64"), None);
}

#[test]
fn ctrl_c_ends_the_input_and_sends_what_was_read() {
    let (_root, node) = node();
    let mut command = highwater();
    command
        .args([
            "produce",
            "slow",
            "--property",
            "linger.ms=600000",
            "--bootstrap",
            &node.bootstrap,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"one\ntwo\n").expect("fed");
    // The topic is made for the first record: then the line has been read.
    let late = Instant::now() + PATIENCE;
    while at(&node, &["topic", "describe", "slow"], "").0 != 0 {
        assert!(Instant::now() < late);
    }
    interrupt(child.id());
    let out = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(
        (out.status.code(), out.stdout.len()),
        (Some(1), 0),
        "{error}"
    );
    assert!(error.contains("stopped by Ctrl-C"), "{error}");
    let (_, read, _) = at(&node, &["consume", "slow", "--from-beginning", "-e"], "");
    assert!(read.starts_with("one\n"), "{read}");
    assert!(
        error.contains(&format!("{} record", read.lines().count())),
        "{error} {read}"
    );
    drop(stdin);
}

#[test]
fn ctrl_c_ends_a_producer_whose_node_is_gone() {
    let (_root, node) = node();
    at(&node, &["produce", "orders"], "one\n");
    let mut command = highwater();
    command
        .args(["produce", "orders", "--bootstrap", &node.bootstrap])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"two\n").expect("fed");
    let late = Instant::now() + PATIENCE;
    while at(&node, &["consume", "orders", "--from-beginning", "-e"], "").1 != "one\ntwo\n" {
        assert!(Instant::now() < late);
    }
    node.kill();
    stdin.write_all(b"three\n").expect("fed");
    let late = Instant::now() + PATIENCE;
    while child.try_wait().expect("a child").is_none() {
        assert!(
            Instant::now() < late,
            "the second Ctrl-C ends it at the latest"
        );
        interrupt(child.id());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let out = child.wait_with_output().expect("it ended");
    assert_eq!(out.status.code(), Some(1));
    drop(stdin);
}

fn interrupt(pid: u32) {
    let done = Command::new("kill")
        .args(["-INT", &pid.to_string()])
        .status();
    assert!(done.expect("kill runs").success());
}

#[test]
fn output_that_goes_nowhere_is_told() {
    let (_root, node) = node();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a full device");
    let mut command = highwater();
    command
        .args(["topic", "list", "--bootstrap", &node.bootstrap])
        .stdout(full);
    let out = command.output().expect("the binary runs");
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1));
    assert!(
        error.starts_with("highwater: cannot write the output: "),
        "{error}"
    );
}

/// Stories that cannot be played, and what is said of them.
const BAD_STORIES: &[(&str, &str)] = &[
    ("", "begins with a comment"),
    ("node\n----\n", "begins with a comment"),
    (
        "# A story.\nfrobnicate\n----\n",
        "line 2: there is no verb 'frobnicate'",
    ),
    (
        "# A story.\ntopic orders\n----\n",
        "line 2: topic: there is no node yet",
    ),
    (
        "# A story.\nnode\nnode\n----\n",
        "line 3: node: there is a node already",
    ),
    (
        "# A story.\nnode\nrestart\n----\n",
        "line 3: restart: the node runs",
    ),
    (
        "# A story.\nnode\ncrash\ncrash\n----\n",
        "line 4: crash: the node does not run",
    ),
    ("# A story.\nnode shards=99\n----\n", "line 2: node: "),
    ("# A story.\nnode dirs=0\n----\n", "line 2: node: "),
    (
        "# A story.\nnode\nproduce orders\n----\n",
        "'orders' is no partition",
    ),
    (
        "# A story.\nnode\nproduce o-0 recrods=2\n----\n",
        "no setting 'recrods', only acks,",
    ),
    (
        "# A story.\nnode\nproduce o-0 acks=1 acks=1\n----\n",
        "'acks' is given twice",
    ),
    (
        "# A story.\nnode\nproduce o-0 records=x\n----\n",
        "'records=x' cannot be read",
    ),
    (
        "# A story.\nnode\nproduce o-0 records=99999999999\n----\n",
        "at most 10000",
    ),
    (
        "# A story.\nnode\ncrash now\n----\n",
        "line 3: crash: there is no node 'now'",
    ),
    (
        "# A story.\nnode\nadvance 30\n----\n",
        "'30' is no span of time",
    ),
    (
        "# A story.\nnode\nadvance 99999999999999999999h\n----\n",
        "has no number",
    ),
    (
        "# A story.\nnode\nadvance 9999999999999999h\n----\n",
        "at most 1000h",
    ),
    (
        "# A story.\nnode\nshow nothing\n----\n",
        "line 3: show: what is 'nothing'?",
    ),
    ("# A story.\nnode\n", "tells another story"),
    // The product's refusal is a panic of the run: one line, and no dump of the stack.
    (
        "# A story.\nnode\nstop\nremove meta.properties\nrestart\n----\n",
        "does not start",
    ),
];

#[test]
fn a_scenario_that_cannot_be_played_is_told_by_its_line() {
    let root = tempdir().expect("temporary directory");
    let file = root.path().join("story.txt");
    let path = file.display().to_string();
    for (text, why) in BAD_STORIES {
        fs::write(&file, text).expect("a file");
        let out = highwater()
            .args(["sim", "run", &path])
            .env_remove("RUST_BACKTRACE")
            .output();
        let out = out.expect("the binary runs");
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{text}: {error}");
        assert!(error.contains(why), "{text}: {error}");
    }
}
