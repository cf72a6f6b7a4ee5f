//! What the controller listener answers to those who follow the metadata log, right and wrong
//! requests, as a JVM controller does.

use bytes::Buf as _;
use highwater_protocol::messages::create_topics_request::CreatableTopic;
use highwater_protocol::messages::delete_topics_request::DeleteTopicState;
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeQuorumRequest, DescribeQuorumResponse,
    FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse,
    describe_quorum_request, fetch_request, fetch_snapshot_request,
};
use highwater_protocol::wire::Message as _;
use highwater_protocol::{FetchView, ListenerKind, Request, RequestHeader, Response};
use highwater_types::{ErrorCode, NodeId, TopicId, Uuid};

use crate::cluster::{Cluster, Role};
use crate::host::{Host, config, formatted};

const CLUSTER_ID: &str = "sFZgKj3kQfiXtPP7KgFf4w";

/// Makes a topic of one partition somewhere.
pub(crate) fn create(name: &str) -> Request {
    let topic = CreatableTopic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    }
    .into()
}

pub(crate) fn delete(name: &str) -> Request {
    let topic = DeleteTopicState {
        name: Some(name.to_owned()),
        ..DeleteTopicState::default()
    };
    DeleteTopicsRequest {
        topics: vec![topic],
        ..DeleteTopicsRequest::default()
    }
    .into()
}

/// A fetch as an observer sends it.
fn fetch(epoch: i32, offset: i64, last_epoch: i32) -> FetchRequest {
    FetchRequest {
        cluster_id: Some(CLUSTER_ID.to_owned()),
        replica_state: fetch_request::ReplicaState {
            replica_id: NodeId::new(9),
            replica_epoch: -1,
        },
        max_wait_ms: 0,
        max_bytes: 1 << 20,
        topics: vec![fetch_request::FetchTopic {
            topic_id: TopicId::CLUSTER_METADATA.uuid(),
            partitions: vec![fetch_request::FetchPartition {
                current_leader_epoch: epoch,
                fetch_offset: offset,
                last_fetched_epoch: last_epoch,
                log_start_offset: -1,
                high_watermark: -1,
                ..fetch_request::FetchPartition::default()
            }],
            ..fetch_request::FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

fn ask(host: &mut Host, request: &FetchRequest, version: i16) -> FetchResponse {
    let view = FetchView::from_message(request, version).expect("fits");
    let request = Request::from(view);
    let client = host.connect(ListenerKind::Controller);
    host.ask(client, &request, version);
    match host.answer(client, &request, version) {
        Some(Response::Fetch(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

fn the_one(answer: &FetchResponse) -> &PartitionData {
    assert_eq!(answer.error_code, ErrorCode::NONE);
    &answer.responses[0].partitions[0]
}

fn serving() -> Host {
    let config = config("");
    let dirs = formatted(&config);
    Host::serving(&config, &dirs)
}

fn end(host: &Host) -> i64 {
    let end = host.control.metadata_high_watermark();
    end.expect("known").raw()
}

#[test]
fn an_observer_gets_records_and_who_leads() {
    let mut host = serving();
    let answer = ask(&mut host, &fetch(1, 0, 0), 18);
    let partition = the_one(&answer);
    assert_eq!(partition.error_code, ErrorCode::NONE);
    assert_eq!(partition.high_watermark, end(&host));
    assert_eq!(
        (partition.last_stable_offset, partition.log_start_offset),
        (-1, 0)
    );
    assert_eq!(partition.aborted_transactions, Some(Vec::new()));
    assert_eq!(partition.current_leader.leader_id, NodeId::new(1));
    assert_eq!(partition.current_leader.leader_epoch, 1);
    assert!(partition.records.as_ref().is_some_and(|it| it.len() > 100));
    let endpoint = &answer.node_endpoints[0];
    assert_eq!(
        (endpoint.host.as_str(), endpoint.port),
        ("127.0.0.1", 20193)
    );
    // Older versions have no place for that.
    let old = ask(&mut host, &fetch(1, 0, 0), 16);
    assert_eq!(old.node_endpoints, []);
    // Where a segment would have to be cut in the middle of its first batch, it comes whole.
    let mut small = fetch(1, 0, 0);
    small.max_bytes = 1;
    let answer = ask(&mut host, &small, 18);
    assert!(
        the_one(&answer)
            .records
            .as_ref()
            .is_some_and(|it| it.len() > 61)
    );
}

#[test]
fn wrong_fetches_are_refused_in_kafkas_order() {
    let mut host = serving();
    let top = |host: &mut Host, request: &FetchRequest| ask(host, request, 18).error_code;
    let sane = || fetch(1, 0, 0);
    let mut other = sane();
    other.cluster_id = Some("NA2Ru8BiRSeksP7Zb7oYlg".to_owned());
    // The cluster is looked at first.
    other.topics[0].topic_id = Uuid::from_u128(77);
    let code = top(&mut host, &other);
    assert_eq!(code, ErrorCode::INCONSISTENT_CLUSTER_ID);
    let mut none = sane();
    none.cluster_id = None;
    assert_eq!(top(&mut host, &none), ErrorCode::NONE);
    let wrong: [fn(&mut FetchRequest); 8] = [
        |it| it.topics[0].topic_id = Uuid::from_u128(77),
        |it| it.topics[0].partitions[0].partition = 1,
        |it| it.topics.clear(),
        |it| {
            let topic = it.topics[0].clone();
            it.topics.push(topic);
        },
        |it| {
            let partition = it.topics[0].partitions[0].clone();
            it.topics[0].partitions.push(partition);
        },
        |it| it.max_wait_ms = -1,
        |it| it.topics[0].partitions[0].fetch_offset = -1,
        |it| it.topics[0].partitions[0].last_fetched_epoch = 2,
    ];
    for (number, spoil) in wrong.iter().enumerate() {
        let mut request = sane();
        spoil(&mut request);
        let code = top(&mut host, &request);
        assert_eq!(code, ErrorCode::INVALID_REQUEST, "case {number}");
    }
    // By name, as before topic ids: v7 to v12 say so, v4 to v6 cannot.
    let mut named = sane();
    named.topics[0].topic = "__cluster_metadata".to_owned();
    for (version, code) in [
        (12, ErrorCode::INVALID_REQUEST),
        (7, ErrorCode::INVALID_REQUEST),
    ] {
        let mut named = named.clone();
        if version < 12 {
            named.topics[0].partitions[0].last_fetched_epoch = -1;
            named.cluster_id = None;
        }
        named.replica_state = fetch_request::ReplicaState::default();
        named.replica_id = NodeId::new(9);
        assert_eq!(
            ask(&mut host, &named, version).error_code,
            code,
            "v{version}"
        );
    }
}

#[test]
fn epochs_of_fetches_are_judged_as_kafka_does() {
    let mut host = serving();
    let mut code = |epoch| {
        let answer = ask(&mut host, &fetch(epoch, 0, 0), 18);
        let partition = the_one(&answer);
        assert_eq!(partition.current_leader.leader_epoch, 1);
        if partition.error_code.is_error() {
            assert_eq!(partition.high_watermark, -1);
        }
        partition.error_code
    };
    assert_eq!(code(0), ErrorCode::FENCED_LEADER_EPOCH);
    assert_eq!(code(1), ErrorCode::NONE);
    assert_eq!(code(2), ErrorCode::UNKNOWN_LEADER_EPOCH);
    // A tail that nobody here knows.
    let end = end(&host);
    let answer = ask(&mut host, &fetch(1, end + 5, 1), 18);
    let partition = the_one(&answer);
    let parted = &partition.diverging_epoch;
    assert_eq!((parted.epoch, parted.end_offset), (1, end));
    assert_eq!(partition.records.as_ref().map(bytes::Bytes::len), Some(0));
}

#[test]
fn a_fetch_waits_for_records_for_the_high_watermark_or_its_time() {
    let mut host = serving();
    let now = end(&host);
    let waiting = |host: &mut Host, high_watermark| {
        let mut request = fetch(1, now, 1);
        request.max_wait_ms = 500;
        request.topics[0].partitions[0].high_watermark = high_watermark;
        let view = FetchView::from_message(&request, 18).expect("fits");
        let client = host.connect(ListenerKind::Controller);
        host.ask(client, &view.clone().into(), 18);
        (client, Request::from(view))
    };
    let told = |host: &mut Host, (client, request): &(u64, Request)| match host
        .answer(*client, request, 18)?
    {
        Response::Fetch(answer) => {
            let partition = the_one(&answer);
            let bytes = partition.records.as_ref().map_or(0, bytes::Bytes::len);
            Some((bytes > 0, partition.high_watermark))
        }
        other => panic!("{other:?}"),
    };
    // It knows less than is committed.
    let knows_less = waiting(&mut host, now - 1);
    assert_eq!(told(&mut host, &knows_less), Some((false, now)));
    // Time.
    let patient = waiting(&mut host, now);
    host.pass(highwater_types::Millis::new(499));
    assert_eq!(told(&mut host, &patient), None);
    host.pass(highwater_types::Millis::new(1));
    assert_eq!(told(&mut host, &patient), Some((false, now)));
    // A record, before it is committed; and a fetch behind it, once it is.
    host.hold = |work| matches!(work, highwater_node::Work::SyncLog(_));
    let first = waiting(&mut host, now);
    let client = host.connect(ListenerKind::Controller);
    host.ask(client, &create("a"), 7);
    assert_eq!(told(&mut host, &first), Some((true, now)));
    host.release();
    assert!(end(&host) > now);
    // Who hangs up is not answered.
    let gone = waiting(&mut host, i64::MAX);
    host.hang_up(gone.0);
    host.pass(highwater_types::Millis::new(600));
}

fn fetch_snapshot(epoch: i32, (offset, of): (i64, i32), position: i64) -> FetchSnapshotRequest {
    FetchSnapshotRequest {
        cluster_id: Some(CLUSTER_ID.to_owned()),
        replica_id: NodeId::new(9),
        max_bytes: 1 << 20,
        topics: vec![fetch_snapshot_request::TopicSnapshot {
            name: "__cluster_metadata".to_owned(),
            partitions: vec![fetch_snapshot_request::PartitionSnapshot {
                current_leader_epoch: epoch,
                snapshot_id: fetch_snapshot_request::SnapshotId {
                    end_offset: offset,
                    epoch: of,
                },
                position,
                ..fetch_snapshot_request::PartitionSnapshot::default()
            }],
        }],
    }
}

fn snapshot(host: &mut Host, request: FetchSnapshotRequest) -> FetchSnapshotResponse {
    match host.call(ListenerKind::Controller, request) {
        Response::FetchSnapshot(answer) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn snapshots_are_served_in_pieces_and_wrong_requests_refused() {
    let config = config("metadata.log.max.record.bytes.between.snapshots=1\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let client = host.connect(ListenerKind::Controller);
    host.ask(client, &create("a"), 7);
    host.pass(highwater_types::Millis::new(100));
    let files = dirs[0].files();
    let newest = files.keys().rev().find_map(|path| {
        let name = path.strip_prefix("__cluster_metadata-0").ok()?.to_str()?;
        let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
        let id: (i64, i32) = (offset.parse().ok()?, epoch.parse().ok()?);
        Some((id, files[path].clone()))
    });
    let (id, bytes) = newest.expect("a snapshot");
    let code = |host: &mut Host, request| {
        let answer = snapshot(host, request);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        answer.topics[0].partitions[0].error_code
    };
    let sane = |position| fetch_snapshot(1, id, position);
    let mut small = sane(3);
    small.max_bytes = 10;
    let answer = snapshot(&mut host, small);
    let piece = &answer.topics[0].partitions[0];
    assert_eq!((piece.size, piece.position), (bytes.len() as i64, 3));
    assert_eq!(piece.unaligned_records[..], bytes[3..13]);
    assert_eq!(piece.current_leader.leader_id, NodeId::new(1));
    assert_eq!(answer.node_endpoints[0].port, 20193);
    // An empty log gets this snapshot, although all records are there.
    let told = ask(&mut host, &fetch(1, 0, 0), 18);
    let told = &the_one(&told).snapshot_id;
    assert_eq!((told.end_offset, told.epoch), id);
    assert_eq!(
        code(&mut host, fetch_snapshot(0, id, 0)),
        ErrorCode::FENCED_LEADER_EPOCH
    );
    assert_eq!(
        code(&mut host, fetch_snapshot(2, id, 0)),
        ErrorCode::UNKNOWN_LEADER_EPOCH
    );
    for gone in [(id.0 + 1, id.1), (0, 0)] {
        let code = code(&mut host, fetch_snapshot(1, gone, 0));
        assert_eq!(code, ErrorCode::SNAPSHOT_NOT_FOUND);
    }
    for position in [-1, bytes.len() as i64] {
        let code = code(&mut host, sane(position));
        assert_eq!(code, ErrorCode::POSITION_OUT_OF_RANGE);
    }
    let mut other = sane(0);
    other.topics[0].name = "orders".to_owned();
    let unknown = code(&mut host, other);
    assert_eq!(unknown, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let mut other = sane(0);
    other.cluster_id = Some("NA2Ru8BiRSeksP7Zb7oYlg".to_owned());
    let answer = snapshot(&mut host, other);
    assert_eq!(answer.error_code, ErrorCode::INCONSISTENT_CLUSTER_ID);
    let mut none = sane(0);
    none.topics.clear();
    assert_eq!(
        snapshot(&mut host, none).error_code,
        ErrorCode::INVALID_REQUEST
    );
}

fn about(topic: &str) -> DescribeQuorumRequest {
    DescribeQuorumRequest {
        topics: vec![describe_quorum_request::TopicData {
            topic_name: topic.to_owned(),
            partitions: vec![describe_quorum_request::PartitionData { partition_index: 0 }],
        }],
    }
}

#[test]
fn the_quorum_and_its_observers_are_described() {
    let nodes = [(1, Role::Combined, ""), (2, Role::Broker, "")];
    let mut cluster = Cluster::serving(&nodes);
    cluster.settle(1);
    cluster.pass(600);
    let request = about("__cluster_metadata");
    let answer = cluster.call(1, ListenerKind::Controller, request);
    let Response::DescribeQuorum(answer) = answer else {
        panic!("another answer")
    };
    let end = cluster
        .host(1)
        .control
        .metadata_high_watermark()
        .expect("known")
        .raw();
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(
        (partition.leader_id, partition.leader_epoch),
        (NodeId::new(1), 1)
    );
    assert_eq!(partition.high_watermark, end);
    let [voter] = partition.current_voters.as_slice() else {
        panic!("{partition:?}")
    };
    assert_eq!(
        (voter.replica_id, voter.log_end_offset),
        (NodeId::new(1), end)
    );
    assert_eq!(voter.last_caught_up_timestamp, cluster.now.wall.raw());
    let [observer] = partition.observers.as_slice() else {
        panic!("{partition:?}")
    };
    assert_eq!(
        (observer.replica_id, observer.log_end_offset),
        (NodeId::new(2), end)
    );
    assert!(observer.replica_directory_id != Uuid::ZERO);
    let ago = cluster.now.wall.raw() - observer.last_caught_up_timestamp;
    assert!((0..1000).contains(&ago), "{ago}");
    let [node] = answer.nodes.as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!(node.listeners[0].name, "CONTROLLER");
    // Five minutes later it is forgotten.
    cluster.cut(1, 2);
    cluster.pass(300_000);
    let request = about("__cluster_metadata");
    let answer = cluster.call(1, ListenerKind::Controller, request);
    let Response::DescribeQuorum(answer) = answer else {
        panic!("another answer")
    };
    assert_eq!(answer.topics[0].partitions[0].observers, []);
}

#[test]
fn another_topic_has_no_quorum() {
    let mut host = serving();
    let answer = host.call(ListenerKind::Controller, about("orders"));
    let Response::DescribeQuorum(answer) = answer else {
        panic!("another answer")
    };
    let code = answer.topics[0].partitions[0].error_code;
    assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

/// What the fixture's JVM controller answered to its observers, next to what ours answers to the
/// same kind of request: field by field, where the values do not depend on the cluster.
#[test]
fn answers_have_the_shape_of_a_jvm_controllers() {
    let files = highwater_fixtures::wire();
    let read = |name: &str| {
        let path = format!("01-Fetch/{name}.response.hex");
        let mut bytes = bytes::Bytes::from(highwater_fixtures::unhex(
            &files[path.as_ref() as &std::path::Path],
        ));
        bytes.advance(5);
        FetchResponse::from_bytes(&bytes, 18).expect("Kafka's own")
    };
    let fixed = |answer: &FetchResponse| {
        let partition = &answer.responses[0].partitions[0];
        (
            answer.responses[0].topic_id,
            partition.error_code,
            partition.last_stable_offset,
            partition.aborted_transactions.clone(),
            partition.preferred_read_replica,
            partition.snapshot_id.epoch,
            partition.diverging_epoch.epoch >= 0,
            answer.node_endpoints.len(),
        )
    };
    let mut host = serving();
    let end = end(&host);
    // An older epoch was answered before a leader was known there: no address.
    let newer = ask(&mut host, &fetch(2, 0, 0), 18);
    assert_eq!(fixed(&newer), fixed(&read("v18-09")));
    let parted = ask(&mut host, &fetch(1, end + 1, 1), 18);
    assert_eq!(fixed(&parted), fixed(&read("v18-10")));
    let records = ask(&mut host, &fetch(1, 0, 0), 18);
    assert_eq!(fixed(&records), fixed(&read("v18-11")));
    // And the requests of ours are as a JVM observer's.
    let path = "01-Fetch/v18-12.request.hex";
    let mut bytes = bytes::Bytes::from(highwater_fixtures::unhex(
        &files[path.as_ref() as &std::path::Path],
    ));
    RequestHeader::decode(&mut bytes).expect("a header");
    let theirs = FetchRequest::from_bytes(&bytes, 18).expect("Kafka's own");
    assert_eq!(theirs.topics[0].partitions[0].high_watermark, -1);
    assert_eq!(theirs.topics[0].partitions[0].log_start_offset, -1);
}

/// Kafka's answer about a quorum with observers reads as ours is written.
#[test]
fn kafkas_description_of_a_quorum_is_understood() {
    let files = highwater_fixtures::wire();
    let path = "55-DescribeQuorum/v2-03.response.hex";
    let mut bytes = bytes::Bytes::from(highwater_fixtures::unhex(
        &files[path.as_ref() as &std::path::Path],
    ));
    bytes.advance(5);
    let answer = DescribeQuorumResponse::from_bytes(&bytes, 2).expect("Kafka's own");
    assert_eq!(answer.error_message.as_deref(), Some(""));
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(partition.error_message.as_deref(), Some(""));
    assert_eq!(partition.observers[0].replica_id, NodeId::new(4));
}
