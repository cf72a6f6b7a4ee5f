//! Consumer groups from outside: members as processes, and the commands that look at them.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use highwater_protocol::client::group::{Subscription, encode_assignment};
use highwater_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use highwater_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use highwater_protocol::messages::{
    FindCoordinatorRequest, FindCoordinatorResponse, JoinGroupRequest, JoinGroupResponse,
    SyncGroupRequest, SyncGroupResponse,
};
use highwater_types::{ErrorCode, TopicName};
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

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

/// Puts records into each of `partitions` partitions.
fn fill(node: &Node, topic: &str, partitions: u32, numbers: std::ops::Range<u32>) {
    for partition in 0..partitions {
        let values = numbers
            .clone()
            .map(|number| format!("{partition}/{number}\n"));
        let values: String = values.collect();
        let partition = partition.to_string();
        ok(
            node,
            &["produce", topic, "--partition", &partition],
            &values,
        );
    }
}

/// A `consume --group` under way. Killed when dropped.
struct Member {
    child: Child,
    out: PathBuf,
    errors: PathBuf,
}

impl Member {
    fn start(root: &TempDir, node: &Node, name: &str, args: &[&str]) -> Self {
        let out = root.path().join(format!("{name}.out"));
        let errors = root.path().join(format!("{name}.err"));
        let file = |path: &PathBuf| std::fs::File::create(path).expect("a file");
        let child = highwater()
            .args([
                "consume",
                "--from-beginning",
                "--bootstrap",
                &node.bootstrap,
            ])
            .args(["--property", "session.timeout.ms=6000"])
            .args(["--property", "heartbeat.interval.ms=100"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&errors))
            .spawn()
            .expect("the binary runs");
        Self { child, out, errors }
    }

    fn printed(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.out).expect("its output");
        text.lines().map(str::to_owned).collect()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = std::process::Command::new("kill")
            .args([name, &pid])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for the end; asserts that it was a good one.
    fn ends_well(mut self) -> Vec<String> {
        wait_for("a member ends", || {
            self.child.try_wait().expect("a child").is_some()
        });
        let status = self.child.wait().expect("it ended");
        let mut said = String::new();
        let errors = std::fs::File::open(&self.errors);
        errors
            .expect("a file")
            .read_to_string(&mut said)
            .expect("text");
        assert!(status.success(), "{status}: {said}");
        assert_eq!(said, "");
        self.printed()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _dead = self.child.wait();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let late = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < late, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn describe(node: &Node, group: &str) -> Value {
    ok_json(node, &["group", "describe", group])[0].clone()
}

/// Waits until the group is stable with `count` members that own everything of `partitions`.
fn wait_for_members(node: &Node, group: &str, count: usize, partitions: usize) -> Value {
    let mut seen = Value::Null;
    wait_for("a stable group", || {
        let (code, out, _) = run(
            &[
                "group",
                "describe",
                group,
                "--output",
                "json",
                "--bootstrap",
                &node.bootstrap,
            ],
            "",
        );
        if code != 0 {
            return false;
        }
        let told: Value = serde_json::from_str(&out).expect("json");
        seen = told[0].clone();
        let owned = seen["partitions"].as_array().expect("rows");
        let owned = owned.iter().filter(|row| !row["member"].is_null()).count();
        seen["state"] == "Stable"
            && seen["members"].as_array().map(Vec::len) == Some(count)
            && owned == partitions
    });
    seen
}

#[test]
fn a_group_goes_on_where_it_stood() {
    let (_root, node) = node();
    ok(&node, &["topic", "create", "orders", "-p", "1"], "");
    ok(&node, &["produce", "orders"], &lines(0..30));
    let read = ["consume", "orders", "--group", "g", "--from-beginning"];
    // Exactly what was printed is committed, though a batch was longer.
    let seven = [&read[..], &["--max-messages", "7", "--print-offset"]].concat();
    let out = ok(&node, &seven, "");
    assert_eq!(
        out,
        (0..7).map(|it| format!("{it}\t{it}\n")).collect::<String>()
    );
    let row = describe(&node, "g")["partitions"][0].clone();
    assert_eq!((&row["committed"], &row["lag"]), (&json!(7), &json!(23)));
    let to_end = [&read[..], &["--exit-at-end"]].concat();
    assert_eq!(ok(&node, &to_end, ""), lines(7..30));
    assert_eq!(ok(&node, &to_end, ""), "", "all of it is read");
    // The node may be killed in between.
    let row = describe(&node, "g")["partitions"][0].clone();
    assert_eq!((&row["committed"], &row["hw"]), (&json!(30), &json!(30)));
}

#[test]
fn offsets_survive_a_killed_node() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let node = Node::start(&data, &["--set", "flush.messages=1"]);
    ok(&node, &["topic", "create", "orders", "-p", "1"], "");
    ok(&node, &["produce", "orders"], &lines(0..10));
    let read = [
        "consume",
        "orders",
        "--group",
        "g",
        "--from-beginning",
        "-n",
        "4",
    ];
    assert_eq!(ok(&node, &read, ""), lines(0..4));
    node.kill();
    let node = Node::start(&data, &[]);
    assert_eq!(ok(&node, &read, ""), lines(4..8));
    let listed = ok_json(&node, &["group", "list"]);
    assert_eq!(
        (&listed[0]["group"], &listed[0]["state"]),
        (&json!("g"), &json!("Empty"))
    );
}

#[test]
fn a_group_without_offsets_begins_at_the_end_and_several_topics_are_read() {
    let (root, node) = node();
    for topic in ["a", "b"] {
        ok(&node, &["topic", "create", topic, "-p", "2"], "");
        ok(&node, &["produce", topic], "old\n");
    }
    let latest = ["consume", "a", "b", "--group", "late", "--exit-at-end"];
    assert_eq!(ok(&node, &latest, ""), "");
    let member = Member::start(&root, &node, "m", &["a", "b", "--group", "late", "-n", "2"]);
    wait_for_members(&node, "late", 1, 4);
    ok(&node, &["produce", "b"], "new in b\n");
    ok(&node, &["produce", "a"], "new in a\n");
    let mut printed = member.ends_well();
    printed.sort();
    assert_eq!(printed, ["new in a", "new in b"]);
}

/// Members come and go; each record is printed once, for nobody was killed.
fn members_share(strategy: &str) {
    let (root, node) = node();
    ok(&node, &["topic", "create", "t", "-p", "6"], "");
    let strategy = format!("partition.assignment.strategy={strategy}");
    let args = ["t", "--group", "g", "--property", strategy.as_str()];
    let first = Member::start(&root, &node, "first", &args);
    wait_for_members(&node, "g", 1, 6);
    fill(&node, "t", 6, 0..5);
    wait_for("the first reads all", || first.printed().len() == 30);
    let second = Member::start(&root, &node, "second", &args);
    let seen = wait_for_members(&node, "g", 2, 6);
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for row in seen["partitions"].as_array().expect("rows") {
        *owners.entry(row["member"].to_string()).or_default() += 1;
    }
    assert_eq!(owners.into_values().collect::<Vec<_>>(), [3, 3]);
    fill(&node, "t", 6, 5..10);
    wait_for("both read", || {
        first.printed().len() + second.printed().len() == 60
    });
    assert_eq!(second.printed().len(), 15);
    first.signal("-INT");
    let mut printed = first.ends_well();
    wait_for_members(&node, "g", 1, 6);
    fill(&node, "t", 6, 10..15);
    wait_for("the second reads all", || second.printed().len() == 45);
    second.signal("-TERM");
    printed.extend(second.ends_well());
    printed.sort();
    let mut expected: Vec<String> = (0..6)
        .flat_map(|partition| (0..15).map(move |number| format!("{partition}/{number}")))
        .collect();
    expected.sort();
    assert_eq!(printed, expected);
    let told = describe(&node, "g");
    assert_eq!(told["state"], "Empty");
    assert!(
        told["partitions"]
            .as_array()
            .expect("rows")
            .iter()
            .all(|row| row["lag"] == 0)
    );
}

#[test]
fn members_share_eagerly() {
    members_share("range,cooperative-sticky");
}

#[test]
fn members_share_cooperatively() {
    members_share("cooperative-sticky");
}

#[test]
fn a_killed_member_is_replaced_and_nothing_is_lost() {
    let (root, node) = node();
    ok(&node, &["topic", "create", "t", "-p", "4"], "");
    let args = ["t", "--group", "g"];
    let first = Member::start(&root, &node, "first", &args);
    let second = Member::start(&root, &node, "second", &args);
    wait_for_members(&node, "g", 2, 4);
    second.signal("-KILL");
    fill(&node, "t", 4, 0..5);
    wait_for("the first reads all", || {
        let mut printed = first.printed();
        printed.sort();
        printed.dedup();
        printed.len() == 20
    });
    let told = wait_for_members(&node, "g", 1, 4);
    let why = told["last_rebalance"].as_str().expect("told").to_owned();
    assert!(why.contains("session timeout"), "{why}");
}

#[test]
fn a_static_member_comes_back_to_its_partitions() {
    let (root, node) = node();
    ok(&node, &["topic", "create", "t", "-p", "2"], "");
    let named = |name: &str| format!("group.instance.id={name}");
    let (one, two) = (named("one"), named("two"));
    let first = Member::start(&root, &node, "1", &["t", "-g", "g", "--property", &one]);
    let second = Member::start(&root, &node, "2", &["t", "-g", "g", "--property", &two]);
    let before = wait_for_members(&node, "g", 2, 2);
    second.signal("-INT");
    second.ends_well();
    let told = describe(&node, "g");
    assert_eq!(
        told["members"].as_array().map(Vec::len),
        Some(2),
        "it did not leave"
    );
    let again = Member::start(&root, &node, "3", &["t", "-g", "g", "--property", &two]);
    let mut after = Value::Null;
    wait_for("it is back under a new id", || {
        after = wait_for_members(&node, "g", 2, 2);
        after["members"] != before["members"]
    });
    let instances = |told: &Value| -> Vec<Value> {
        let members = told["members"].as_array().expect("rows").iter();
        members.map(|it| it["instance"].clone()).collect()
    };
    assert_eq!(instances(&after), [json!("one"), json!("two")]);
    assert_eq!(
        before["partitions"][0]["member"],
        after["partitions"][0]["member"]
    );
    // A second one of the same name fences the first.
    let usurper = Member::start(&root, &node, "4", &["t", "-g", "g", "--property", &two]);
    let mut fenced = again;
    wait_for("it is fenced", || {
        fenced.child.try_wait().expect("a child").is_some()
    });
    let said = std::fs::read_to_string(&fenced.errors).expect("a file");
    assert!(
        said.contains("FENCED_INSTANCE_ID") && said.contains("two"),
        "{said}"
    );
    drop((first, usurper));
}

/// A member that speaks raw frames: it joins, syncs, and then keeps silent.
fn silent_member(node: &Node, group: &str, topic: &str) -> (support::Client, String) {
    let mut client = node.connect();
    let find = FindCoordinatorRequest {
        coordinator_keys: vec![group.to_owned()],
        ..Default::default()
    };
    wait_for("a coordinator", || {
        let found: FindCoordinatorResponse = client.call(10, 4, &find);
        found.coordinators[0].error_code == ErrorCode::NONE
    });
    let subscription = Subscription {
        topics: [TopicName::new(topic).expect("a name")].into(),
        ..Subscription::default()
    };
    let mut join = JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 45_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".to_owned(),
            metadata: subscription.encode().expect("small"),
        }],
        ..Default::default()
    };
    wait_for("it has joined", || {
        let joined: JoinGroupResponse = client.call(11, 5, &join);
        join.member_id = joined.member_id;
        joined.error_code == ErrorCode::NONE
    });
    let sync = SyncGroupRequest {
        group_id: group.to_owned(),
        generation_id: 1,
        member_id: join.member_id.clone(),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: join.member_id.clone(),
            assignment: encode_assignment(&Default::default()).expect("small"),
        }],
        ..Default::default()
    };
    let synced: SyncGroupResponse = client.call(14, 3, &sync);
    assert_eq!(synced.error_code, ErrorCode::NONE);
    (client, join.member_id)
}

#[test]
fn describe_tells_why_a_rebalance_happens_and_whom_it_waits_for() {
    let (root, node) = node();
    ok(&node, &["topic", "create", "t", "-p", "1"], "");
    let (_client, silent) = silent_member(&node, "g", "t");
    let told = describe(&node, "g");
    assert_eq!(
        (&told["state"], &told["protocol"]),
        (&json!("Stable"), &json!("range"))
    );
    assert_eq!(told["waits_for"], json!([]));
    let joiner = Member::start(&root, &node, "joiner", &["t", "--group", "g"]);
    let mut told = Value::Null;
    wait_for("the rebalance waits", || {
        told = describe(&node, "g");
        told["waits_for"]
            .as_array()
            .is_some_and(|it| !it.is_empty())
    });
    assert_eq!(told["state"], "PreparingRebalance");
    let waits_for = &told["waits_for"][0];
    assert_eq!(waits_for["member"], json!(silent));
    assert_eq!(waits_for["client"], "end-to-end");
    assert_eq!(waits_for["host"], "127.0.0.1");
    assert!(
        waits_for["left_ms"]
            .as_i64()
            .is_some_and(|it| it > 0 && it <= 300_000),
        "{told}"
    );
    let why = told["last_rebalance"].as_str().expect("told");
    assert!(
        why.contains("generation 1") && why.contains("joined"),
        "{why}"
    );
    assert_eq!(
        told["happenings"].as_array().map(|it| it.len() >= 4),
        Some(true)
    );
    let text = ok(&node, &["group", "describe", "g"], "");
    for part in [
        "PreparingRebalance",
        "waits-for",
        "last-rebalance",
        "what-happened",
        &silent,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    drop(joiner);
}

#[test]
fn describe_tells_lag_owner_and_topics_that_nobody_wants_any_more() {
    let (root, node) = node();
    for topic in ["old", "new"] {
        ok(&node, &["topic", "create", topic, "-p", "1"], "");
        ok(&node, &["produce", topic], &lines(0..10));
    }
    ok(
        &node,
        &["consume", "old", "-g", "g", "--from-beginning", "-n", "4"],
        "",
    );
    let property = ["--property", "enable.auto.commit=false"];
    let args = [&["new", "-g", "g"][..], &property].concat();
    let member = Member::start(&root, &node, "m", &args);
    wait_for("it reads", || member.printed().len() == 10);
    let told = wait_for_members(&node, "g", 1, 1);
    let id = &told["members"][0]["member"];
    assert_eq!(told["members"][0]["topics"], json!(["new"]));
    assert_eq!(told["coordinator"]["address"], json!(node.bootstrap));
    let rows = told["partitions"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{told}");
    let (new, old) = (&rows[0], &rows[1]);
    assert_eq!(
        (&new["topic_partition"], &new["member"]),
        (&json!("new-0"), id)
    );
    assert_eq!(
        (&new["client"], &new["host"]),
        (&json!("highwater"), &json!("127.0.0.1"))
    );
    assert_eq!(
        (&new["committed"], &new["lag"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(old["topic_partition"], "old-0");
    let numbers = ["committed", "start", "hw", "lag", "data", "control"];
    let numbers: Vec<i64> = numbers.iter().filter_map(|it| old[it].as_i64()).collect();
    assert_eq!(numbers, [4, 0, 10, 6, 6, 0]);
    assert_eq!(
        (&old["member"], &old["note"]),
        (&Value::Null, &json!("no member wants the topic"))
    );
    // Beyond the bound nothing is claimed.
    let few = ok_json(&node, &["group", "describe", "g", "--count-bytes", "0"]);
    let old = &few[0]["partitions"][1];
    assert_eq!(
        (&old["lag"], &old["data"], &old["control"]),
        (&json!(6), &Value::Null, &Value::Null)
    );
    assert!(
        old["note"]
            .as_str()
            .is_some_and(|it| it.contains("not counted")),
        "{old}"
    );
    let error = fails(&node, &["group", "describe", "nothing"]);
    assert!(
        error.contains("nothing") && error.contains("group list"),
        "{error}"
    );
}

#[test]
fn groups_are_listed_with_their_states() {
    let (root, node) = node();
    assert_eq!(ok_json(&node, &["group", "list"]), json!([]));
    ok(&node, &["topic", "create", "t", "-p", "1"], "");
    ok(
        &node,
        &[
            "group",
            "reset",
            "empty",
            "--topic",
            "t",
            "--to-latest",
            "--execute",
        ],
        "",
    );
    let member = Member::start(&root, &node, "m", &["t", "-g", "live"]);
    wait_for_members(&node, "live", 1, 1);
    let expected = |group: &str, state: &str| {
        json!({
            "group": group, "state": state, "type": "classic",
            "protocol_type": if group == "live" { json!("consumer") } else { Value::Null },
            "coordinator": 1,
        })
    };
    let (empty, live) = (expected("empty", "Empty"), expected("live", "Stable"));
    assert_eq!(ok_json(&node, &["group", "list"]), json!([empty, live]));
    assert_eq!(
        ok_json(&node, &["group", "list", "--state", "Stable"]),
        json!([live])
    );
    assert_eq!(
        ok_json(&node, &["group", "list", "--state", "Dead"]),
        json!([])
    );
    drop(member);
}

/// A topic with two partitions of ten records, read to the end by group `g`.
fn node_with_a_group() -> (TempDir, Node) {
    let (root, node) = node();
    ok(&node, &["topic", "create", "t", "-p", "2"], "");
    fill(&node, "t", 2, 0..10);
    let read = ["consume", "t", "-g", "g", "--from-beginning", "-e"];
    ok(&node, &read, "");
    (root, node)
}

fn reset(node: &Node, args: &[&str]) -> Value {
    ok_json(node, &[&["group", "reset", "g"][..], args].concat())
}

/// From and to of each partition.
fn moved(told: &Value) -> Vec<(Value, Value)> {
    let rows = told["partitions"].as_array().expect("rows").iter();
    rows.map(|row| (row["from"].clone(), row["to"].clone()))
        .collect()
}

fn committed(node: &Node) -> Vec<Value> {
    let told = describe(node, "g");
    let rows = told["partitions"].as_array().expect("rows").iter();
    rows.map(|row| row["committed"].clone()).collect()
}

#[test]
fn a_reset_says_what_it_would_do_and_does_it_only_when_told() {
    let (_root, node) = node_with_a_group();
    let ten_to = |to: i64| (json!(10), json!(to));
    let told = reset(&node, &["--all-topics", "--to-earliest"]);
    assert_eq!(told["executed"], false);
    assert_eq!(moved(&told), [ten_to(0), ten_to(0)]);
    assert_eq!(committed(&node), [10, 10], "a dry run changes nothing");
    let dry = ["group", "reset", "g", "--topic", "t:1", "--to-offset", "3"];
    let text = ok(&node, &dry, "");
    assert!(text.contains("t-1") && text.contains("--execute"), "{text}");
    let told = reset(&node, &["--topic", "t:1", "--to-offset", "3", "--execute"]);
    assert_eq!(
        (&told["executed"], moved(&told)),
        (&json!(true), vec![ten_to(3)])
    );
    assert_eq!(committed(&node), [10, 3]);
    let read = ["consume", "t", "-g", "g", "-e"];
    assert_eq!(ok(&node, &read, "").lines().count(), 7);
}

#[test]
fn a_reset_goes_everywhere_inside_of_the_log() {
    let (root, node) = node_with_a_group();
    reset(&node, &["--topic", "t:1", "--to-offset", "3", "--execute"]);
    // What is outside of the log is moved into it, and told.
    let told = reset(&node, &["--topic", "t", "--shift-by", "-5", "--execute"]);
    assert_eq!(committed(&node), [5, 0]);
    let notes = &told["partitions"];
    assert_eq!(notes[0]["note"], Value::Null);
    assert!(
        notes[1]["note"]
            .as_str()
            .is_some_and(|it| it.contains("-2")),
        "{told}"
    );
    reset(
        &node,
        &["--topic", "t:0", "--to-offset", "4000", "--execute"],
    );
    assert_eq!(committed(&node), [10, 0]);
    reset(
        &node,
        &["--topic", "t:0", "--by-duration", "1h", "--execute"],
    );
    let long_ago = "2000-01-01T00:00:00Z";
    reset(
        &node,
        &["--topic", "t:1", "--to-datetime", long_ago, "--execute"],
    );
    assert_eq!(committed(&node), [0, 0]);
    reset(
        &node,
        &["--topic", "t:1", "--to-datetime", "2100-01-01", "--execute"],
    );
    assert_eq!(committed(&node), [0, 10], "no record is that young");
    let file = root.path().join("offsets.csv");
    std::fs::write(&file, "t,0,7\nt,1,8\n").expect("a file");
    let file = file.to_str().expect("text");
    reset(&node, &["--from-file", file, "--execute"]);
    assert_eq!(committed(&node), [7, 8]);
    let current = reset(&node, &["--all-topics", "--to-current"]);
    assert_eq!(
        moved(&current),
        [(json!(7), json!(7)), (json!(8), json!(8))]
    );
    reset(&node, &["--all-topics", "--to-latest", "--execute"]);
    assert_eq!(committed(&node), [10, 10]);
}

#[test]
fn what_cannot_be_reset_is_said_and_changes_nothing() {
    let (root, node) = node();
    ok(&node, &["topic", "create", "t", "-p", "1"], "");
    ok(&node, &["produce", "t"], &lines(0..3));
    let member = Member::start(&root, &node, "m", &["t", "-g", "g"]);
    let told = wait_for_members(&node, "g", 1, 1);
    let id = told["members"][0]["member"].as_str().expect("an id");
    let to_earliest = ["group", "reset", "g", "--topic", "t", "--to-earliest"];
    for args in [
        &to_earliest[..],
        &[&to_earliest[..], &["--execute"]].concat(),
    ] {
        let error = fails(&node, args);
        for part in [id, "live member", "highwater at 127.0.0.1", "stop"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let error = fails(&node, &["group", "delete", "g"]);
    assert!(error.contains(id), "{error}");
    let error = fails(&node, &["group", "delete", "g", "--topic", "t"]);
    assert!(error.contains("t"), "{error}");
    member.signal("-INT");
    member.ends_well();
    for (args, parts) in [
        (&["--topic", "gone", "--to-latest"][..], &["gone"][..]),
        (&["--topic", "t:5", "--to-latest"], &["t-5"]),
        (&["--from-file", "/does/not/exist"], &["/does/not/exist"]),
    ] {
        let error = fails(
            &node,
            &[&["group", "reset", "g", "--execute"][..], args].concat(),
        );
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = fails(
        &node,
        &["group", "reset", "nobody", "--all-topics", "--to-latest"],
    );
    assert!(error.contains("nobody"), "{error}");
    let shift = [
        "group",
        "reset",
        "nobody",
        "--topic",
        "t",
        "--shift-by",
        "1",
    ];
    assert!(fails(&node, &shift).contains("nothing is committed"));
    assert_eq!(describe(&node, "g")["partitions"][0]["committed"], 3);
    for wrong in [
        &["--topic", "t"][..],
        &["--to-latest"],
        &["--topic", "t", "--to-latest", "--to-earliest"],
        &["--topic", "t", "--to-offset", "-1"],
        &["--topic", "t", "--to-datetime", "yesterday"],
        &["--topic", "t", "--by-duration", "long"],
        &["--topic", "t:x", "--to-latest"],
    ] {
        let args = [
            &["group", "reset", "g", "--bootstrap", &node.bootstrap][..],
            wrong,
        ]
        .concat();
        let (code, _, error) = run(&args, "");
        assert_eq!(code, 2, "{wrong:?}: {error}");
    }
}

#[test]
fn groups_and_their_offsets_are_deleted() {
    let (_root, node) = node();
    for topic in ["a", "b"] {
        ok(&node, &["topic", "create", topic, "-p", "2"], "");
    }
    for group in ["g", "h"] {
        let args = [
            "group",
            "reset",
            group,
            "--topic",
            "a",
            "--topic",
            "b",
            "--to-latest",
        ];
        ok(&node, &[&args[..], &["--execute"]].concat(), "");
    }
    let done = ok_json(
        &node,
        &["group", "delete", "g", "--topic", "a:1", "--topic", "b"],
    );
    let names: Vec<_> = done
        .as_array()
        .expect("rows")
        .iter()
        .map(|it| &it["topic_partition"])
        .collect();
    assert_eq!(names, ["a-1", "b-0", "b-1"]);
    let told = describe(&node, "g");
    let left: Vec<_> = told["partitions"]
        .as_array()
        .expect("rows")
        .iter()
        .collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["topic_partition"], "a-0");
    let error = fails(&node, &["group", "delete", "g", "--topic", "b"]);
    assert!(error.contains("nothing"), "{error}");
    let error = fails(&node, &["group", "delete", "g", "nothing", "h"]);
    assert!(
        error.contains("nothing") && !error.contains("group h"),
        "{error}"
    );
    assert_eq!(
        ok_json(&node, &["group", "list"]),
        json!([]),
        "the others are deleted"
    );
}
