//! What the simulator cannot see: the mailboxes and threads of a node with several shards, under
//! many connections at once, with kills in between.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use highwater_protocol::messages::{ProduceRequest, ProduceResponse, produce_request as wire};
use highwater_types::{ErrorCode, Uuid};
use support::{Client, Node, batch, fetch_request, values};
use tempfile::tempdir;

const PARTITIONS: i32 = 7;

/// One request with one record for each partition.
fn to_all(topic: Uuid, value: &str) -> ProduceRequest {
    let partition_data = (0..PARTITIONS).map(|index| wire::PartitionProduceData {
        index,
        records: Some(batch(&[value])),
    });
    ProduceRequest {
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![wire::TopicProduceData {
            topic_id: topic,
            partition_data: partition_data.collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The leader may be known to one shard a moment before another has opened the log.
fn early(error: ErrorCode) -> bool {
    error == ErrorCode::NOT_LEADER_OR_FOLLOWER || error == ErrorCode::UNKNOWN_TOPIC_ID
}

/// Sends pipelined requests until the node dies; notes what was acknowledged, by partition.
fn hammer(
    node: &Node,
    topic: Uuid,
    name: &str,
    stop: &AtomicBool,
    acknowledged: &Mutex<BTreeMap<(i32, i64), String>>,
) {
    let mut client = node.connect();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut sent = Vec::new();
        for _ in 0..5 {
            let value = format!("{name}-{number}");
            number += 1;
            let Some(id) = client.try_send(0, 13, &to_all(topic, &value)) else {
                return;
            };
            sent.push((id, value));
        }
        for (id, value) in sent {
            let Some(answer) = client.try_receive::<ProduceResponse>(0, 13, id) else {
                return;
            };
            for partition in &answer.responses[0].partition_responses {
                if early(partition.error_code) {
                    continue;
                }
                assert_eq!(partition.error_code, ErrorCode::NONE);
                let place = (partition.index, partition.base_offset);
                let mut acknowledged = acknowledged.lock().expect("lock");
                let before = acknowledged.insert(place, value.clone());
                assert_eq!(before, None, "one offset, one record");
            }
        }
    }
}

/// Follows one partition by long polls; asserts that nothing is read twice or out of order.
fn follow(node: &Node, topic: Uuid, partition: i32, stop: &AtomicBool) {
    let mut client = node.connect();
    let mut offset = 0;
    while !stop.load(Ordering::Relaxed) {
        let request = fetch_request(topic, partition, offset, 50);
        let Some(id) = client.try_send(1, 17, &request) else {
            return;
        };
        let Some(answer) =
            client.try_receive::<highwater_protocol::messages::FetchResponse>(1, 17, id)
        else {
            return;
        };
        let data = &answer.responses[0].partitions[0];
        if early(data.error_code) {
            continue;
        }
        assert_eq!(data.error_code, ErrorCode::NONE);
        let read = values(data.records.as_deref().unwrap_or_default(), offset);
        offset += i64::try_from(read.len()).expect("small");
        assert!(
            offset <= data.high_watermark,
            "nothing above the high watermark is served"
        );
    }
}

#[test]
fn several_shards_lose_nothing_under_load_and_kill_9() {
    let root = tempdir().expect("temporary directory");
    let data = root.path().join("data");
    let acknowledged = Mutex::new(BTreeMap::new());
    for round in 0..3 {
        let node = Node::start(&data, &["--set", "num.shards=3"]);
        let mut admin = node.connect();
        if round == 0 {
            admin.create_topic("stress", PARTITIONS, &[]);
        }
        let topic = admin.topic("stress");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..6 {
                let (node, stop, acknowledged) = (&node, &stop, &acknowledged);
                let name = format!("{round}.{writer}");
                scope.spawn(move || hammer(node, topic, &name, stop, acknowledged));
            }
            for partition in 0..PARTITIONS {
                let (node, stop) = (&node, &stop);
                scope.spawn(move || follow(node, topic, partition, stop));
            }
            std::thread::sleep(Duration::from_millis(700));
            // In the middle of it all.
            node.kill_now();
            stop.store(true, Ordering::Relaxed);
        });
    }
    let node = Node::start(&data, &["--set", "num.shards=2"]);
    let mut client = node.connect();
    let topic = client.topic("stress");
    let logs: Vec<Vec<String>> = (0..PARTITIONS)
        .map(|it| client.read_all(topic, it))
        .collect();
    let acknowledged = acknowledged.into_inner().expect("lock");
    assert!(
        acknowledged.len() > 100,
        "{} acknowledged",
        acknowledged.len()
    );
    for ((partition, offset), value) in &acknowledged {
        let log = &logs[usize::try_from(*partition).expect("small")];
        let found = usize::try_from(*offset).ok().and_then(|at| log.get(at));
        assert_eq!(found, Some(value), "partition {partition} offset {offset}");
    }
}

#[test]
fn topics_come_and_go_while_others_are_served() {
    let root = tempdir().expect("temporary directory");
    let node = Node::start(&root.path().join("data"), &["--set", "num.shards=2"]);
    let stop = AtomicBool::new(false);
    let topic = node.connect().topic("steady");
    std::thread::scope(|scope| {
        let (node, stop) = (&node, &stop);
        scope.spawn(move || {
            let mut client = node.connect();
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                let (error, base) = client.produce(topic, 0, batch(&["tick"]));
                assert_eq!((error, base), (ErrorCode::NONE, sent));
                sent += 1;
            }
            assert!(sent > 10, "{sent}");
        });
        let late = Instant::now() + Duration::from_secs(20);
        let mut client = node.connect();
        for number in 0..30 {
            let name = format!("passing-{number}");
            client.create_topic(&name, 4, &[]);
            let id = client.topic(&name);
            for partition in 0..4 {
                let (error, base) = produce_when_led(&mut client, id, partition);
                assert_eq!((error, base), (ErrorCode::NONE, 0), "{name}");
            }
            client.delete_topic(&name);
            assert!(Instant::now() < late, "too slow at {number}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let mut node = node;
    node.terminate();
    assert!(node.wait().success());
}

fn produce_when_led(client: &mut Client, topic: Uuid, partition: i32) -> (ErrorCode, i64) {
    let late = Instant::now() + support::PATIENCE;
    loop {
        let done = client.produce(topic, partition, batch(&["x"]));
        if !early(done.0) || Instant::now() > late {
            return done;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
