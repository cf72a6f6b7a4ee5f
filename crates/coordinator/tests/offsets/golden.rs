//! Logs of a running Apache Kafka 4.4: what is loaded from the bytes is what its own dump lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use highwater_coordinator::{
    DescribeRequest, GroupAnswer, GroupRequest, GroupState, ListRequest, ListedGroup,
};
use highwater_fixtures::Files;
use highwater_records::{Batches, ControlType};
use highwater_types::{ErrorCode, ProducerId};
use serde_json::Value;

use crate::support::{Entry, MemLog, World, fetch_all, settings};

const SETS: [&str; 4] = [
    "one-node-clean",
    "one-node-killed",
    "one-node-recovered",
    "three-nodes-clean",
];

/// Offset, leader epoch and text.
type Committed = (i64, i32, String);

/// What a dump says, read without any code of the coordinator.
#[derive(Debug, Default)]
struct Dumped {
    offsets: BTreeMap<String, BTreeMap<(String, i32), Committed>>,
    classic: BTreeMap<String, Value>,
    /// Type and members of the groups of other types.
    foreign: BTreeMap<String, (&'static str, BTreeSet<String>)>,
}

#[test]
fn groups_members_and_offsets_are_those_of_kafkas_dump() {
    let (mut logs, mut offsets, mut members, mut foreign) = (0, 0, 0, 0);
    for set in SETS {
        let files = highwater_fixtures::kafka_data(set);
        for (path, bytes) in logs_of(&files) {
            let Some(dump) = dump_of(&files, path) else {
                continue;
            };
            let dumped = read_dump(&dump);
            let mut world = World::with(settings(), read_log(bytes));
            let what = format!("{set} {}", path.display());
            compare_offsets(&mut world, &dumped, &what);
            members += compare_classic(&mut world, &dumped, &what);
            compare_list(&mut world, &dumped, &what);
            logs += 1;
            offsets += dumped.offsets.values().map(BTreeMap::len).sum::<usize>();
            foreign += dumped.foreign.len();
        }
    }
    // So many are in the fixtures.
    assert!(logs >= 8, "{logs} logs");
    assert!(offsets >= 40, "{offsets} offsets");
    assert!(foreign >= 6, "{foreign} groups of other types");
    println!("{logs} logs, {offsets} offsets, {members} members, {foreign} other groups");
}

/// Every prefix loads too, as it would after a crash at any record.
#[test]
fn every_prefix_of_kafkas_logs_loads() {
    let files = highwater_fixtures::kafka_data("one-node-clean");
    for (_, bytes) in logs_of(&files) {
        let log = read_log(bytes);
        for count in 0..=log.entries.len() {
            let mut prefix = log.clone();
            prefix.entries.truncate(count);
            let mut world = World::with(settings(), prefix);
            for group in world.list() {
                world.fetch_all(&group);
            }
        }
    }
}

/// What the coordinator writes again from what it loaded is what Kafka wrote.
#[test]
fn a_deleted_group_of_kafkas_leaves_nothing_behind() {
    let files = highwater_fixtures::kafka_data("one-node-clean");
    for (path, bytes) in logs_of(&files) {
        let mut world = World::with(settings(), read_log(bytes));
        let listed = world.list_with(ListRequest::default());
        for group in listed.iter().filter(|it| it.state == GroupState::Empty) {
            let answer = world.delete_group(group.group_id.as_str());
            let is_share = group.group_type == "share";
            let expected = if is_share {
                ErrorCode::UNSUPPORTED_VERSION
            } else {
                ErrorCode::NONE
            };
            assert_eq!(answer.error, expected, "{}", group.group_id);
        }
        world.reload();
        let left = world.list_with(ListRequest::default());
        let is_left = |it: &ListedGroup| it.group_type == "share" || it.state != GroupState::Empty;
        assert!(left.iter().all(is_left), "{}: {left:?}", path.display());
        // Each live key of a deleted group got its tombstone.
        for (key, is_live) in live_keys(&world.log) {
            assert!(!is_live || is_of_some(&key, &left), "{key:?} is left");
        }
    }
}

fn live_keys(log: &MemLog) -> BTreeMap<Vec<u8>, bool> {
    let mut live = BTreeMap::new();
    for entry in &log.entries {
        if let Entry::Record { key, value, .. } = entry {
            live.insert(key.to_vec(), value.is_some());
        }
    }
    live
}

fn is_of_some(key: &[u8], groups: &[ListedGroup]) -> bool {
    let names = |group: &ListedGroup| {
        let id = group.group_id.as_str().as_bytes();
        key.windows(id.len()).any(|it| it == id)
    };
    groups.iter().any(names)
}

fn logs_of(files: &Files) -> impl Iterator<Item = (&PathBuf, &Vec<u8>)> {
    files.iter().filter(|(path, _)| {
        let path = path.to_string_lossy();
        path.starts_with("data/") && path.contains("__consumer_offsets") && path.ends_with(".log")
    })
}

fn dump_of(files: &Files, log: &Path) -> Option<String> {
    let name = log.to_string_lossy().replacen("data/", "dump/", 1) + ".dump.txt";
    let bytes = files.get(Path::new(&name))?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn read_log(bytes: &[u8]) -> MemLog {
    let mut log = MemLog::default();
    for batch in Batches::new(bytes) {
        let batch = batch.expect("a batch of Kafka's");
        let header = *batch.header();
        let producer_id = if header.attributes.is_transactional() {
            header.producer_id
        } else {
            ProducerId::NONE
        };
        let control = batch.control_type().expect("a known batch");
        let open = batch.open(1 << 20).expect("a small batch");
        for record in open.records() {
            let record = record.expect("a record of Kafka's");
            assert_eq!(record.offset, log.end(), "nothing was cleaned");
            log.entries.push(match control {
                None => Entry::Record {
                    key: bytes::Bytes::copy_from_slice(record.key.expect("a key")),
                    value: record.value.map(bytes::Bytes::copy_from_slice),
                    producer_id,
                },
                Some(control) => Entry::End {
                    producer_id,
                    committed: control == ControlType::Commit,
                },
            });
        }
    }
    log
}

fn read_dump(dump: &str) -> Dumped {
    let mut dumped = Dumped::default();
    // Offsets of open transactions, by producer.
    let mut pending: BTreeMap<i64, Vec<(Value, Value)>> = BTreeMap::new();
    let mut producer_id = -1;
    for line in dump.lines() {
        if let Some((_, rest)) = line.split_once(" producerId: ") {
            producer_id = rest.split(' ').next().unwrap().parse().unwrap();
        }
        if let Some((_, marker)) = line.split_once(" endTxnMarker: ") {
            for (key, value) in pending.remove(&producer_id).unwrap_or_default() {
                if marker.starts_with("COMMIT") {
                    dumped.take(&key, Some(&value));
                }
            }
        }
        let Some((key, payload)) = line
            .split_once(" key: ")
            .and_then(|(_, rest)| rest.split_once(" payload: "))
        else {
            continue;
        };
        let key: Value = serde_json::from_str(key).expect("JSON");
        let payload = (payload != "<DELETE>")
            .then(|| serde_json::from_str::<Value>(payload).expect("JSON")["data"].clone());
        match payload {
            Some(payload) if producer_id >= 0 => {
                pending.entry(producer_id).or_default().push((key, payload));
            }
            payload => dumped.take(&key, payload.as_ref()),
        }
    }
    dumped
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number<T: TryFrom<i64>>(value: &Value) -> T
where
    T::Error: std::fmt::Debug,
{
    T::try_from(value.as_i64().expect("a number")).expect("a small number")
}

impl Dumped {
    fn take(&mut self, key: &Value, value: Option<&Value>) {
        let data = &key["data"];
        let group = text(if data["group"].is_null() {
            &data["groupId"]
        } else {
            &data["group"]
        });
        let member = text(&data["memberId"]);
        match (key["type"].as_str().unwrap(), value) {
            ("1", Some(value)) => {
                let committed = (
                    number(&value["offset"]),
                    number(&value["leaderEpoch"]),
                    text(&value["metadata"]),
                );
                let of = (text(&data["topic"]), number(&data["partition"]));
                self.offsets.entry(group).or_default().insert(of, committed);
            }
            ("1", None) => {
                let of = (text(&data["topic"]), number(&data["partition"]));
                if let Some(offsets) = self.offsets.get_mut(&group) {
                    offsets.remove(&of);
                }
            }
            ("2", Some(value)) => {
                self.classic.insert(group, value.clone());
            }
            ("2", None) => {
                self.classic.remove(&group);
            }
            ("3" | "11" | "17", None) => {
                self.foreign.remove(&group);
            }
            (kind, value) => {
                let kind = match kind {
                    "3" | "5" => "consumer",
                    "10" | "11" => "share",
                    "17" | "19" => "streams",
                    _ => return,
                };
                let there = self.foreign.entry(group);
                let (_, members) = there.or_insert((kind, BTreeSet::new()));
                match value {
                    Some(_) if !member.is_empty() => members.insert(member),
                    _ => members.remove(&member),
                };
            }
        }
    }

    fn group_ids(&self) -> BTreeSet<String> {
        let of_offsets = self.offsets.iter().filter(|(_, it)| !it.is_empty());
        let ids = of_offsets.map(|(id, _)| id);
        let ids = ids.chain(self.classic.keys()).chain(self.foreign.keys());
        ids.cloned().collect()
    }
}

fn compare_offsets(world: &mut World, dumped: &Dumped, what: &str) {
    for (group, expected) in &dumped.offsets {
        let (_, answer) = world.fetch_with(fetch_all(group));
        let mut loaded = BTreeMap::new();
        for topic in answer.topics {
            for row in topic.partitions {
                let committed = (
                    row.offset.raw(),
                    row.leader_epoch.raw(),
                    row.metadata.to_string(),
                );
                loaded.insert((topic.name.to_string(), row.partition.raw()), committed);
            }
        }
        assert_eq!(loaded, *expected, "{what}: {group}");
    }
}

fn compare_classic(world: &mut World, dumped: &Dumped, what: &str) -> usize {
    let mut count = 0;
    for (group, expected) in &dumped.classic {
        let request = DescribeRequest {
            group_id: group.as_str().into(),
            unknown_is_error: true,
        };
        let (_, answer) = world.ask(GroupRequest::Describe(request));
        let GroupAnswer::Describe(answer) = answer else {
            panic!("not a description: {answer:?}");
        };
        assert_eq!(answer.error, ErrorCode::NONE, "{what}: {group}");
        assert_eq!(
            answer.protocol_type.as_ref(),
            text(&expected["protocolType"])
        );
        assert_eq!(answer.protocol.as_ref(), text(&expected["protocol"]));
        let members = expected["members"].as_array().expect("an array");
        let state = if members.is_empty() {
            GroupState::Empty
        } else {
            GroupState::Stable
        };
        assert_eq!(answer.state, state, "{what}: {group}");
        let mut expected: Vec<_> = members
            .iter()
            .map(|it| {
                let instance = it["groupInstanceId"].as_str().map(str::to_owned);
                (
                    text(&it["memberId"]),
                    instance,
                    text(&it["clientId"]),
                    text(&it["clientHost"]),
                )
            })
            .collect();
        expected.sort();
        let loaded: Vec<_> = answer
            .members
            .iter()
            .map(|it| {
                assert!(!it.metadata.is_empty() && !it.assignment.is_empty());
                (
                    it.member_id.to_string(),
                    it.instance_id.as_ref().map(ToString::to_string),
                    it.client_id.to_string(),
                    it.client_host.to_string(),
                )
            })
            .collect();
        assert_eq!(loaded, expected, "{what}: {group}");
        count += loaded.len();
    }
    count
}

fn compare_list(world: &mut World, dumped: &Dumped, what: &str) {
    let listed = world.list_with(ListRequest::default());
    let ids: BTreeSet<_> = listed.iter().map(|it| it.group_id.to_string()).collect();
    assert_eq!(ids, dumped.group_ids(), "{what}");
    for group in listed {
        let id = group.group_id.as_str();
        let Some((kind, members)) = dumped.foreign.get(id) else {
            assert_eq!(group.group_type, "classic", "{what}: {id}");
            continue;
        };
        assert_eq!(group.group_type, *kind, "{what}: {id}");
        let is_empty = group.state == GroupState::Empty;
        assert_eq!(is_empty, members.is_empty(), "{what}: {id} {members:?}");
    }
}
