//! Groups on whole nodes: their topic is made on first use, restarts and Kafka's own directories.

use std::collections::{BTreeMap, BTreeSet};

use highwater_node::NodeConfig;
use highwater_protocol::messages::{
    DescribeConfigsRequest, DescribeGroupsRequest, FetchRequest, FindCoordinatorRequest,
    FindCoordinatorResponse, ListGroupsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetFetchRequest, ProduceRequest,
    describe_configs_request::DescribeConfigsResource,
    fetch_request::{FetchPartition, FetchTopic},
    offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
    offset_fetch_request::OffsetFetchRequestGroup,
    produce_request::{PartitionProduceData, TopicProduceData},
};
use highwater_protocol::{FetchView, ListenerKind, ProduceView, Request, Response};
use highwater_records::{BatchBuilder, BatchOptions, Batches};
use highwater_types::{ErrorCode, Millis, TopicId, WallMs};

use crate::host::{Host, config, fixture, formatted};

const OFFSETS: &str = "__consumer_offsets";

fn find_at(host: &mut Host, version: i16, key_type: i8) -> FindCoordinatorResponse {
    let request = FindCoordinatorRequest {
        key: if version < 4 { "g" } else { "" }.to_owned(),
        key_type,
        coordinator_keys: if version < 4 {
            Vec::new()
        } else {
            vec!["g".to_owned(), "h".to_owned()]
        },
    };
    let request = Request::from(request);
    let client = host.connect(ListenerKind::Broker);
    host.ask(client, &request, version);
    match host.answer(client, &request, version) {
        Some(Response::FindCoordinator(answer)) => answer,
        other => panic!("an answer at once, not {other:?}"),
    }
}

/// Error, node and port of each key.
fn found(answer: &FindCoordinatorResponse) -> Vec<(ErrorCode, i32, i32)> {
    if answer.coordinators.is_empty() {
        return vec![(answer.error_code, answer.node_id.raw(), answer.port)];
    }
    let rows = answer.coordinators.iter();
    rows.map(|it| (it.error_code, it.node_id.raw(), it.port))
        .collect()
}

fn with_offsets_topic(config: &NodeConfig, dirs: &[highwater_disk::MemDisk]) -> Host {
    let mut host = Host::serving(config, dirs);
    find_at(&mut host, 6, 0);
    host.pass(Millis::new(2_000));
    assert_eq!(found(&find_at(&mut host, 6, 0))[0].0, ErrorCode::NONE);
    host
}

#[test]
fn the_offsets_topic_is_made_on_first_use() {
    let config = config("offsets.topic.segment.bytes=2000000\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let none = (ErrorCode::COORDINATOR_NOT_AVAILABLE, -1, -1);
    assert_eq!(found(&find_at(&mut host, 0, 0)), [none]);
    host.pass(Millis::new(2_000));
    let here = (ErrorCode::NONE, 1, 9092);
    for version in 0..=6_i16 {
        let answer = find_at(&mut host, version, 0);
        let expected = vec![here; if version < 4 { 1 } else { 2 }];
        assert_eq!(found(&answer), expected, "v{version}");
        let text = answer.error_message.as_deref();
        if (1..4).contains(&version) {
            assert_eq!(text, Some("NONE"), "v{version}");
        }
    }
    let request = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    let Response::Metadata(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    let topic = answer
        .topics
        .iter()
        .find(|it| it.name.as_deref() == Some(OFFSETS));
    let topic = topic.expect("it is there");
    assert_eq!((topic.partitions.len(), topic.is_internal), (50, true));
    assert_eq!(
        topic.partitions[0].replica_nodes.len(),
        1,
        "unset, and there is one broker"
    );
    let configs = configs_of(&mut host, OFFSETS);
    let own = [
        ("cleanup.policy", "compact"),
        ("compression.type", "producer"),
    ];
    for (key, value) in own.into_iter().chain([("segment.bytes", "2000000")]) {
        assert_eq!(configs.get(key).map(String::as_str), Some(value), "{key}");
    }
    let made = host.events.iter().filter(|it| it.contains("was not made"));
    assert_eq!(made.count(), 0, "asked once");
}

fn configs_of(host: &mut Host, topic: &str) -> BTreeMap<String, String> {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 2,
            resource_name: topic.to_owned(),
            configuration_keys: None,
        }],
        ..DescribeConfigsRequest::default()
    };
    let Response::DescribeConfigs(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    let configs = answer.results[0].configs.iter();
    configs
        .filter_map(|it| Some((it.name.clone(), it.value.clone()?)))
        .collect()
}

#[test]
fn an_offsets_topic_that_cannot_be_made_is_told_and_tried_again() {
    let config = config("offsets.topic.replication.factor=3\noffsets.topic.num.partitions=4\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    for times in 1..=2 {
        find_at(&mut host, 6, 0);
        host.pass(Millis::new(1_000));
        let told = host
            .events
            .iter()
            .filter(|it| it.contains("__consumer_offsets was not made"));
        assert_eq!(told.count(), times, "{:?}", host.events);
    }
    let none = (ErrorCode::COORDINATOR_NOT_AVAILABLE, -1, -1);
    assert_eq!(found(&find_at(&mut host, 6, 0)), [none, none]);
}

/// What is not built yet says so at once.
#[test]
fn coordinators_of_transactions_and_share_groups_are_clear_errors() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    for version in 1..=6_i16 {
        let answer = find_at(&mut host, version, 1);
        // Errors that clients show at once, with the text: librdkafka asks at version 2.
        let error = if version < 4 {
            ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        } else {
            ErrorCode::UNSUPPORTED_VERSION
        };
        assert_eq!(found(&answer)[0], (error, -1, -1), "v{version}");
        let first = answer.coordinators.into_iter().next();
        let text = first.map_or(answer.error_message, |it| it.error_message);
        assert!(text.expect("a text").contains("transactions"), "v{version}");
        let share = found(&find_at(&mut host, version, 2))[0].0;
        let expected = if version < 6 {
            ErrorCode::INVALID_REQUEST
        } else {
            ErrorCode::UNSUPPORTED_VERSION
        };
        assert_eq!(share, expected, "v{version}");
        let odd = found(&find_at(&mut host, version, 9))[0].0;
        assert_eq!(odd, ErrorCode::INVALID_REQUEST);
    }
}

fn commit(host: &mut Host, topic_id: TopicId, offset: i64) -> ErrorCode {
    let request = OffsetCommitRequest {
        group_id: "g".to_owned(),
        topics: vec![OffsetCommitRequestTopic {
            topic_id: topic_id.uuid(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: 0,
                committed_offset: offset,
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let Response::OffsetCommit(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    answer.topics[0].partitions[0].error_code
}

/// All offsets of a group, by topic and partition.
fn offsets(host: &mut Host, group: &str) -> BTreeMap<(String, i32), i64> {
    let ids: BTreeMap<_, _> = {
        let image = host.control.image();
        let topics = image.topics.values();
        topics
            .map(|it| (it.id.uuid(), it.name.to_string()))
            .collect()
    };
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: None,
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    };
    let Response::OffsetFetch(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    let group = &answer.groups[0];
    assert_eq!(group.error_code, ErrorCode::NONE);
    let rows = group.topics.iter().flat_map(|topic| {
        let name = &ids[&topic.topic_id];
        let rows = topic.partitions.iter();
        rows.map(|it| ((name.clone(), it.partition_index), it.committed_offset))
    });
    rows.collect()
}

#[test]
fn offsets_survive_a_restart_of_the_whole_node() {
    for shards in 1..=3 {
        let config = config(&format!("num.shards={shards}\n"));
        let dirs = formatted(&config);
        let mut host = with_offsets_topic(&config, &dirs);
        // Any topic that is there will do.
        let id = host
            .control
            .image()
            .topic_by_name(OFFSETS)
            .expect("made")
            .id;
        assert_eq!(commit(&mut host, id, 42), ErrorCode::NONE);
        host.stop();
        let mut host = Host::serving(&config, &dirs);
        let expected = BTreeMap::from([((OFFSETS.to_owned(), 0), 42)]);
        assert_eq!(offsets(&mut host, "g"), expected, "{shards} shards");
        assert_eq!(commit(&mut host, id, 43), ErrorCode::NONE);
        host.stop();
    }
}

/// Clients do not write to the topic, but they may read it.
#[test]
fn clients_read_the_offsets_topic_and_do_not_write_it() {
    let config = config("offsets.topic.num.partitions=1\n");
    let dirs = formatted(&config);
    let mut host = with_offsets_topic(&config, &dirs);
    let id = host
        .control
        .image()
        .topic_by_name(OFFSETS)
        .expect("made")
        .id;
    assert_eq!(commit(&mut host, id, 42), ErrorCode::NONE);
    let mut builder = BatchBuilder::new();
    builder
        .append(WallMs::new(1), Some(b"k"), Some(b"v"), &[])
        .expect("fits");
    let records = builder.finish(&BatchOptions::default()).expect("a batch");
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 1_000,
        topic_data: vec![TopicProduceData {
            topic_id: id.uuid(),
            partition_data: vec![PartitionProduceData {
                index: 0,
                records: Some(records.into()),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    let view = ProduceView::from_message(&request, 13).expect("a request");
    let Response::Produce(answer) = host.call(ListenerKind::Broker, view) else {
        panic!("another answer")
    };
    let refused = answer.responses[0].partition_responses[0].error_code;
    assert_eq!(refused, ErrorCode::INVALID_TOPIC_EXCEPTION);
    let request = FetchRequest {
        max_bytes: 1 << 20,
        topics: vec![FetchTopic {
            topic_id: id.uuid(),
            partitions: vec![FetchPartition {
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let view = FetchView::from_message(&request, 18).expect("a request");
    let Response::Fetch(answer) = host.call(ListenerKind::Broker, view) else {
        panic!("another answer")
    };
    let records = answer.responses[0].partitions[0]
        .records
        .clone()
        .expect("records");
    let batches: Vec<_> = Batches::new(&records)
        .map(|it| it.expect("whole"))
        .collect();
    assert_eq!(batches.len(), 1);
    let header = batches[0].header();
    assert_eq!((header.producer_id.raw(), header.base_sequence), (-1, 0));
}

fn kafka_config() -> NodeConfig {
    config("metadata.log.max.record.bytes.between.snapshots=100000\n")
}

fn groups(host: &mut Host) -> BTreeSet<(String, String, String)> {
    let request = ListGroupsRequest::default();
    let Response::ListGroups(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    assert_eq!(answer.error_code, ErrorCode::NONE);
    let groups = answer.groups.into_iter();
    groups
        .map(|it| (it.group_id, it.group_state, it.group_type))
        .collect()
}

/// The groups of a directory that Kafka wrote, as its own dumps of the logs have them.
#[test]
fn groups_and_offsets_of_kafkas_directories_are_served() {
    for set in ["one-node-clean", "one-node-killed", "one-node-recovered"] {
        let dirs = fixture(set, "");
        let mut host = Host::serving(&kafka_config(), &dirs);
        let listed = groups(&mut host);
        let classic = |name: &str| (name.to_owned(), "Empty".to_owned(), "classic".to_owned());
        for name in ["g-classic", "g-txn", "g-coop"] {
            assert!(listed.contains(&classic(name)), "{set} {name}: {listed:?}");
        }
        assert!(
            !listed.iter().any(|it| it.0 == "g-gone"),
            "{set}: it was deleted"
        );
        let row = |topic: &str, partition, offset| ((topic.to_owned(), partition), offset);
        let expected = [
            ("g-txn", vec![row("codecs", 0, 50)]),
            (
                "g-classic",
                vec![row("plain", 0, 7), row("plain", 1, 12), row("plain", 2, 0)],
            ),
            ("g-coop", vec![row("codecs", 0, 50), row("headers", 0, 20)]),
            ("g-gone", Vec::new()),
        ];
        for (group, rows) in expected {
            let found = offsets(&mut host, group);
            assert_eq!(found, rows.into_iter().collect(), "{set} {group}");
        }
        let request = DescribeGroupsRequest {
            groups: vec!["g-classic".to_owned()],
            ..DescribeGroupsRequest::default()
        };
        let Response::DescribeGroups(answer) = host.call(ListenerKind::Broker, request) else {
            panic!("another answer")
        };
        assert_eq!(answer.groups[0].group_state, "Empty", "{set}");
        assert_eq!(answer.groups[0].protocol_type, "consumer", "{set}");
        host.stop();
        // And once more, now a directory of ours.
        let mut host = Host::serving(&kafka_config(), &dirs);
        assert_eq!(groups(&mut host), listed, "{set}");
    }
}
