//! What a node at its sockets makes of peers that lie: the bad inputs of the fault list (B-), the
//! public cases (C-) and the compatibility traps, each against a real process.
#![allow(clippy::indexing_slicing, reason = "a test fails by panics")]

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod cases;
mod frames;
mod memory;
mod mutations;
mod names;
mod starving;
mod throttled;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use highwater_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, ListOffsetsRequest, ListOffsetsResponse,
    ProduceRequest, ProduceResponse, list_offsets_request as list, produce_request as wire,
};
use highwater_protocol::wire::{Message, Writer};
use highwater_types::{ErrorCode, NodeId};
use support::{Client, Node};
use tempfile::{TempDir, tempdir};

/// A node of its own for one test.
fn node(settings: &[&str]) -> (TempDir, Node) {
    let root = tempdir().expect("temporary directory");
    let more: Vec<&str> = settings.iter().flat_map(|it| ["--set", it]).collect();
    let node = Node::start(&root.path().join("data"), &more);
    (root, node)
}

fn api_versions() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "hostile".to_owned(),
        client_software_version: "1".to_owned(),
        ..Default::default()
    }
}

/// Asserts that the connection still answers.
fn assert_usable(client: &mut Client) {
    let answer: ApiVersionsResponse = client.call(18, 4, &api_versions());
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

/// Asserts that the node still answers others.
fn assert_serves(node: &Node) {
    assert_usable(&mut node.connect());
}

/// A frame from its parts: header version 1, or 2 with an empty list of tags.
fn frame(api: i16, version: i16, flexible: bool, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(api.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend([0, 0, 0, 7, 0, 3, b'b', b'a', b'd']);
    frame.extend(flexible.then_some(0));
    frame.extend(body);
    frame
}

/// Sends a frame on a connection of its own and asserts that this connection is closed.
fn assert_closes(node: &Node, what: &str, frame: &[u8]) {
    let mut client = node.connect();
    client.send_frame(frame);
    assert_eq!(
        client.read_frame(),
        None,
        "{what}: closed without an answer"
    );
}

/// A message with a header, as a frame.
fn framed<Q: Message>(api: i16, version: i16, request: &Q) -> Vec<u8> {
    let mut w = Writer::new();
    let header = highwater_protocol::RequestHeader {
        api_key: api,
        version,
        correlation_id: 7,
        client_id: Some("bad".to_owned()),
    };
    header.encode(&mut w).expect("header");
    request.encode(&mut w, version).expect("request");
    w.into_bytes().to_vec()
}

/// Records for partitions of a topic by name.
fn produce_named(topic: &str, acks: i16, partitions: &[(i32, Option<Bytes>)]) -> ProduceRequest {
    let data = partitions
        .iter()
        .map(|(index, records)| wire::PartitionProduceData {
            index: *index,
            records: records.clone(),
        });
    ProduceRequest {
        acks,
        timeout_ms: 10_000,
        topic_data: vec![wire::TopicProduceData {
            name: topic.to_owned(),
            partition_data: data.collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Appends to a partition of a topic by name; gives error and base offset.
fn produce(client: &mut Client, topic: &str, partition: i32, records: Bytes) -> (ErrorCode, i64) {
    let request = produce_named(topic, -1, &[(partition, Some(records))]);
    let answer: ProduceResponse = client.call(0, 12, &request);
    let row = &answer.responses[0].partition_responses[0];
    (row.error_code, row.base_offset)
}

/// Error, timestamp and offset of one look-up.
fn list_offset(client: &mut Client, topic: &str, partition: i32, time: i64) -> (i16, i64, i64) {
    let request = ListOffsetsRequest {
        replica_id: NodeId::new(-1),
        topics: vec![list::ListOffsetsTopic {
            name: topic.to_owned(),
            partitions: vec![list::ListOffsetsPartition {
                partition_index: partition,
                timestamp: time,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let answer: ListOffsetsResponse = client.call(2, 7, &request);
    let row = &answer.topics[0].partitions[0];
    (row.error_code.raw(), row.timestamp, row.offset)
}

/// The next offset of a partition.
fn log_end_offset(client: &mut Client, topic: &str, partition: i32) -> i64 {
    let late = Instant::now() + support::PATIENCE;
    loop {
        let (error, _, offset) = list_offset(client, topic, partition, -1);
        // The leader is known a moment before its log is open.
        if error != ErrorCode::NOT_LEADER_OR_FOLLOWER.raw() {
            assert_eq!(error, 0);
            return offset;
        }
        assert!(Instant::now() < late, "{topic}-{partition} has no leader");
    }
}

/// The names in a directory.
fn names_in(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    };
    entries.map(name).collect()
}
