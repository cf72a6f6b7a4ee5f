use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::fields::Printer;
use super::problems::Problems;
use super::*;

/// What Kafka's own dump printed, file by file, against ours.
fn check_set(set: &str) {
    let files = highwater_fixtures::kafka_data(set);
    let root = tempfile::tempdir().expect("temporary directory");
    for (path, bytes) in &files {
        let Ok(inner) = path.strip_prefix("data") else {
            continue;
        };
        let to = root.path().join(inner);
        std::fs::create_dir_all(to.parent().expect("parent")).expect("directory");
        std::fs::write(to, bytes).expect("file");
    }
    let mut wrong = BTreeMap::new();
    let mut seen = 0;
    for (path, text) in &files {
        let Ok(dump) = path.strip_prefix("dump") else {
            continue;
        };
        let Some(name) = dump
            .to_str()
            .and_then(|name| name.strip_suffix(".dump.txt"))
        else {
            continue;
        };
        seen += 1;
        let mut ours = dumped(root.path(), name, false);
        if let Some(kafka_name) = name.strip_suffix(".deleted") {
            // It was dumped before it was renamed, in the directory of its node.
            let kafka_name = kafka_name
                .split_once('/')
                .map_or(kafka_name, |(_, rest)| rest);
            ours = ours.replace(name, kafka_name);
        }
        let theirs = String::from_utf8_lossy(text);
        if theirs.contains("[the tool ended") {
            assert!(ours.ends_with("is empty.\n"), "{name}: {ours}");
        } else if ours.as_bytes() != text.as_slice() {
            wrong.insert(name.to_owned(), first_difference(&theirs, &ours));
        }
        for line in dumped(root.path(), name, true).lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("each line is JSON");
        }
    }
    assert!(seen > 0, "{set} has dumps");
    assert!(
        wrong.is_empty(),
        "{} of {seen} differ: {wrong:#?}",
        wrong.len()
    );
}

fn dumped(root: &Path, name: &str, json: bool) -> String {
    let mut path = root.to_path_buf();
    path.push(PathBuf::from(name));
    let decoder = match name {
        _ if name.contains("__cluster_metadata") => Decoder::Metadata,
        _ if name.contains("__consumer_offsets") => Decoder::Offsets,
        _ if name.contains("__transaction_state") => Decoder::Transactions,
        _ if name.contains("__share_group_state") => Decoder::ShareState,
        _ => Decoder::Text,
    };
    let options = DumpOptions {
        deep: true,
        contents: true,
        record_metadata: true,
        decoder,
        json,
    };
    let mut out = Vec::new();
    let mut problems = Problems::default();
    let mut printer = Printer::new(&mut out, json);
    let done = dump_one(&path, name, options, &mut printer, &mut problems);
    done.and_then(|()| problems.print(&mut printer))
        .expect(name);
    String::from_utf8(out).expect("text")
}

fn first_difference(theirs: &str, ours: &str) -> (String, String) {
    let mut pairs = theirs.lines().zip(ours.lines());
    match pairs.find(|(theirs, ours)| theirs != ours) {
        Some((theirs, ours)) => (theirs.to_owned(), ours.to_owned()),
        None => (
            format!("{} bytes", theirs.len()),
            format!("{} bytes", ours.len()),
        ),
    }
}

#[test]
fn dumps_of_one_node_are_kafkas() {
    check_set("one-node-clean");
    check_set("one-node-formatted");
    check_set("one-node-killed");
    check_set("one-node-recovered");
    check_set("static-quorum-clean");
}

#[test]
fn dumps_of_three_nodes_are_kafkas() {
    check_set("three-nodes-clean");
    check_set("three-nodes-formatted");
    check_set("three-nodes-running");
    check_set("truncation");
}

#[test]
fn a_file_of_no_known_kind_is_refused() {
    let options = DumpOptions {
        deep: false,
        contents: false,
        record_metadata: true,
        decoder: Decoder::Text,
        json: false,
    };
    let error = dump(&["server.properties"], options, &mut Vec::new()).expect_err("refused");
    assert!(error.to_string().contains("give .log"), "{error}");
}
