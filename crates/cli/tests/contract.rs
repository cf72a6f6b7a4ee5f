//! The contract of the command line, word for word: where options stand, what goes to which
//! stream, and how commands end.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{Node, highwater, run};
use tempfile::{TempDir, tempdir};

fn node() -> (TempDir, Node) {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&root.path().join("data"), &[]);
    (root, node)
}

#[test]
fn every_command_of_the_contract_is_there_and_helps() {
    let (code, out, error) = run(&["--help"], "");
    assert_eq!((code, error.as_str()), (0, ""));
    for command in [
        "start", "format", "topic", "produce", "consume", "cluster", "log", "sim",
    ] {
        assert!(out.contains(&format!("\n  {command} ")), "{command}: {out}");
    }
    for words in [
        &["start"][..],
        &["format"],
        &["topic", "create"],
        &["topic", "list"],
        &["topic", "describe"],
        &["topic", "delete"],
        &["produce"],
        &["consume"],
        &["cluster", "status"],
        &["log", "dump"],
        &["log", "verify"],
        &["sim", "run"],
        &["sim", "seed"],
    ] {
        let (code, out, _) = run(&[words, &["--help"]].concat(), "");
        assert_eq!(code, 0, "{words:?}");
        assert!(out.contains("Usage: highwater"), "{words:?}: {out}");
    }
    let (_, out, _) = run(&["start", "--help"], "");
    for option in ["--config", "--data", "--listen", "--brokers", "--set"] {
        assert!(out.contains(option), "{option}: {out}");
    }
}

#[test]
fn bootstrap_and_output_stand_before_or_after_the_verb() {
    let (_root, node) = node();
    let at = node.bootstrap.as_str();
    let equals = format!("--bootstrap={at}");
    for args in [
        &["topic", "list", "--bootstrap", at, "--output", "json"][..],
        &["--bootstrap", at, "--output", "json", "topic", "list"],
        &["topic", "--output=json", "--bootstrap", at, "list"],
        &[&equals, "topic", "list", "--output", "json"],
        &["--output", "json", "topic", "list", &equals],
    ] {
        let (code, out, error) = run(args, "");
        assert_eq!(
            (code, out.as_str(), error.as_str()),
            (0, "[]\n", ""),
            "{args:?}"
        );
    }
    // The option wins over the environment; a command without a cluster does not take it.
    let out = highwater()
        .env("HIGHWATER_BOOTSTRAP", "127.0.0.1:1")
        .args(["--bootstrap", at, "topic", "list", "--output", "json"])
        .output()
        .expect("the binary runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "[]\n");
    let (code, _, error) = run(&["--bootstrap", at, "start"], "");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("--bootstrap"), "{error}");
}

#[test]
fn standard_output_has_the_ready_line_and_nothing_else() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let mut child = highwater()
        .arg("start")
        .arg("--data")
        .arg(&data)
        .args(["--listen", "127.0.0.1:0", "--set", "no.such.key=1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdout = child.stdout.take().expect("piped");
    let mut line = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" && stdout.read(&mut byte).expect("readable") == 1 {
        line.push(byte[0]);
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("kill runs")
            .success()
    );
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("text");
    let mut errors = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut errors)
        .expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{errors}");
    assert_eq!(rest, "", "one line");
    assert!(
        errors.contains("no.such.key"),
        "logs go to standard error: {errors}"
    );
    let line = String::from_utf8(line).expect("text");
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    assert_eq!(words[..2], ["highwater", "ready"], "{line}");
    let value = |at: usize, name: &str| {
        words[at]
            .strip_prefix(name)
            .unwrap_or_else(|| panic!("{line}"))
    };
    assert!(value(2, "bootstrap=").starts_with("127.0.0.1:"));
    assert_eq!(value(3, "cluster-id=").len(), 22);
    assert_eq!(value(4, "data="), data.display().to_string());
    assert_eq!(words.len(), 5, "{line}");
}

#[test]
fn errors_are_one_line_with_what_why_and_what_to_do() {
    let (_root, node) = node();
    for (args, parts) in [
        (&["topic", "describe", "nothing"][..], &["nothing"][..]),
        (&["consume", "nothing", "-e"], &["nothing"]),
        (&["topic", "create", "a/b"], &["a/b"]),
        (
            &["log", "dump", "/nowhere/00000000000000000000.log"],
            &["/nowhere/00000000000000000000.log"],
        ),
        (&["log", "verify", "/nowhere/at/all"], &["/nowhere/at/all"]),
        (
            &["sim", "run", "/nowhere/at/all.txt"],
            &["/nowhere/at/all.txt"],
        ),
    ] {
        let client = !matches!(args[0], "log" | "sim");
        let at = ["--bootstrap", node.bootstrap.as_str()];
        let args = if client {
            [args, &at].concat()
        } else {
            args.to_vec()
        };
        let (code, out, error) = run(&args, "");
        assert_eq!(code, 1, "{args:?}: {error}");
        // A dump has begun with the names of its files, as Kafka's does.
        assert!(out.is_empty() || args[1] == "dump", "{args:?}: {out}");
        assert_eq!(error.trim_end().lines().count(), 1, "{args:?}: {error}");
        for part in parts {
            assert!(error.contains(part), "{args:?}: {error}");
        }
    }
}

#[test]
fn the_simulator_plays_stories_and_seeds() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/scenarios");
    let story = scenarios.join("producers/pi-06-a-new-epoch-begins-at-sequence-0.txt");
    let story = story.display().to_string();
    let (_, out, _) = run(&["sim", "run", &story], "");
    assert!(out.contains("OUT_OF_ORDER_SEQUENCE_NUMBER"), "{out}");
    let (_, out, _) = run(&["sim", "run", &story, "--output", "json"], "");
    let played: Value = serde_json::from_str(&out).expect("json");
    assert!(played["matches"].is_boolean(), "{out}");
    let seed = || {
        let (code, out, error) = run(&["--output", "json", "sim", "seed", "7"], "");
        assert_eq!((code, error.as_str()), (0, ""));
        serde_json::from_str::<Value>(&out).expect("json")
    };
    let (first, second) = (seed(), seed());
    assert_eq!(first, second, "a seed is one run");
    assert_eq!(first["seed"], 7);
    assert!(
        first["batches"].as_u64().is_some_and(|it| it > 0),
        "{first}"
    );
}
