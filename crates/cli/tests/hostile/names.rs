//! B-15, B-44 and the traps about topics: names that no topic may have, numbers that no cluster
//! can serve, and what is made of them.

use std::time::{Duration, Instant};

use highwater_protocol::messages::{
    CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    DescribeConfigsRequest, DescribeConfigsResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, FetchResponse, MetadataRequest, MetadataResponse,
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, ProduceResponse,
    create_topics_request as create, delete_topics_request::DeleteTopicState,
    describe_configs_request::DescribeConfigsResource,
    describe_topic_partitions_request::TopicRequest, metadata_request::MetadataRequestTopic,
    offset_for_leader_epoch_request as epochs,
};
use highwater_types::{ErrorCode, NodeId, Uuid};

use crate::support::{Client, batch, fetch_request, produce_request};
use crate::{assert_serves, assert_usable, list_offset, names_in, node, produce};

/// Names that Kafka refuses, among them ways out of the data directory.
fn bad_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "",
        ".",
        "..",
        "a/b",
        "../escaped",
        "/tmp/escaped",
        "nul\0",
        "a b",
    ]
    .map(str::to_owned)
    .to_vec();
    names.extend(["e\u{e9}".to_owned(), "x".repeat(250), "x".repeat(30_000)]);
    names
}

fn creatable(name: &str) -> create::CreatableTopic {
    create::CreatableTopic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    }
}

fn create_all(client: &mut Client, topics: Vec<create::CreatableTopic>) -> CreateTopicsResponse {
    let request = CreateTopicsRequest {
        topics,
        timeout_ms: 10_000,
        validate_only: false,
    };
    client.call(19, 7, &request)
}

fn metadata(client: &mut Client, names: &[String]) -> MetadataResponse {
    let topic = |name: &String| MetadataRequestTopic {
        name: Some(name.clone()),
        ..Default::default()
    };
    let request = MetadataRequest {
        topics: Some(names.iter().map(topic).collect()),
        allow_auto_topic_creation: true,
        ..Default::default()
    };
    client.call(3, 12, &request)
}

#[test]
fn b_15_and_trap_18_names_that_no_topic_may_have_reach_no_path() {
    let (root, node) = node(&[]);
    let data = root.path().join("data");
    let before = (names_in(root.path()), names_in(&data));
    let mut client = node.connect();
    let names = bad_names();

    let answer = metadata(&mut client, &names);
    assert_eq!(answer.topics.len(), names.len());
    for topic in &answer.topics {
        assert_eq!(
            topic.error_code,
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            "{:?}",
            topic.name
        );
    }
    let answer = create_all(
        &mut client,
        names.iter().map(|name| creatable(name)).collect(),
    );
    for topic in &answer.topics {
        assert_eq!(
            topic.error_code,
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            "{:?}",
            topic.name
        );
    }
    for name in &names {
        let written = produce(&mut client, name, 0, batch(&["a"]));
        assert_eq!(
            written,
            (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, -1),
            "{name:?}"
        );
        let looked = list_offset(&mut client, name, 0, -1);
        assert_eq!(
            looked.0,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.raw(),
            "{name:?}"
        );
        assert_eq!(others_say(&mut client, name), [true; 4], "{name:?}");
    }
    assert_eq!(
        (names_in(root.path()), names_in(&data)),
        before,
        "nothing was made"
    );
}

/// Whether Fetch, DeleteTopics, OffsetForLeaderEpoch and DescribeConfigs refuse a name.
fn others_say(client: &mut Client, name: &str) -> [bool; 4] {
    let mut request = fetch_request(Uuid::ZERO, 0, 0, 0);
    name.clone_into(&mut request.topics[0].topic);
    let answer: FetchResponse = client.call(1, 12, &request);
    let fetched = answer.responses[0].partitions[0].error_code;
    let request = DeleteTopicsRequest {
        topics: vec![DeleteTopicState {
            name: Some(name.to_owned()),
            ..Default::default()
        }],
        timeout_ms: 1000,
        ..Default::default()
    };
    let answer: DeleteTopicsResponse = client.call(20, 6, &request);
    let deleted = answer.responses[0].error_code;
    let request = OffsetForLeaderEpochRequest {
        replica_id: NodeId::new(-2),
        topics: vec![epochs::OffsetForLeaderTopic {
            topic: name.to_owned(),
            partitions: vec![epochs::OffsetForLeaderPartition::default()],
        }],
    };
    let answer: OffsetForLeaderEpochResponse = client.call(23, 4, &request);
    let epoch = answer.topics[0].partitions[0].error_code;
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 2,
            resource_name: name.to_owned(),
            configuration_keys: None,
        }],
        ..Default::default()
    };
    let answer: DescribeConfigsResponse = client.call(32, 4, &request);
    let described = answer.results[0].error_code;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    [
        fetched == unknown,
        deleted == unknown,
        epoch == unknown,
        described == ErrorCode::INVALID_TOPIC_EXCEPTION,
    ]
}

#[test]
fn b_15_ids_that_no_topic_has() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.topic("t");
    for id in [Uuid::ZERO, Uuid::from_u128(1 << 90)] {
        let answer: ProduceResponse = client.call(0, 13, &produce_request(id, 0, batch(&["a"])));
        let row = &answer.responses[0].partition_responses[0];
        assert_eq!(row.error_code, ErrorCode::UNKNOWN_TOPIC_ID);
        let answer: FetchResponse = client.call(1, 17, &fetch_request(id, 0, 0, 0));
        let row = &answer.responses[0].partitions[0];
        assert_eq!(row.error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    }
    assert_usable(&mut client);
}

#[test]
fn b_15_partitions_of_topics_that_are_none_are_described_as_such() {
    let (_root, node) = node(&[]);
    let request = DescribeTopicPartitionsRequest {
        topics: bad_names()
            .into_iter()
            .map(|name| TopicRequest { name })
            .collect(),
        response_partition_limit: 2000,
        ..Default::default()
    };
    let answer: DescribeTopicPartitionsResponse = node.connect().call(75, 0, &request);
    assert!(!answer.topics.is_empty());
    for topic in &answer.topics {
        assert!(
            topic.error_code.is_error() && topic.partitions.is_empty(),
            "{topic:?}"
        );
    }
}

fn assigned(replicas: &[(i32, &[i32])]) -> create::CreatableTopic {
    let assignment = |(index, ids): &(i32, &[i32])| create::CreatableReplicaAssignment {
        partition_index: *index,
        broker_ids: ids.iter().copied().map(NodeId::new).collect(),
    };
    create::CreatableTopic {
        assignments: replicas.iter().map(assignment).collect(),
        ..sized(-1, -1)
    }
}

fn sized(num_partitions: i32, replication_factor: i16) -> create::CreatableTopic {
    create::CreatableTopic {
        num_partitions,
        replication_factor,
        ..creatable("t")
    }
}

#[test]
fn b_44_numbers_that_no_cluster_can_serve_cost_nothing() {
    let (root, node) = node(&[]);
    let mut client = node.connect();
    let before = crate::memory::peak(&node);
    let began = Instant::now();
    for (topic, error) in [
        // As Kafka 4.4 answers more than 10,000 partitions.
        (sized(1_000_000_000, 1), ErrorCode::POLICY_VIOLATION),
        (sized(i32::MAX, 1), ErrorCode::POLICY_VIOLATION),
        (sized(0, 1), ErrorCode::INVALID_PARTITIONS),
        (sized(-2, 1), ErrorCode::INVALID_PARTITIONS),
        (sized(1, 32_767), ErrorCode::INVALID_REPLICATION_FACTOR),
        (sized(1, 0), ErrorCode::INVALID_REPLICATION_FACTOR),
        (sized(1, -2), ErrorCode::INVALID_REPLICATION_FACTOR),
        (sized(1, 2), ErrorCode::INVALID_REPLICATION_FACTOR),
        (
            assigned(&[(0, &[1, 1, 1])]),
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            assigned(&[(0, &[1]), (0, &[1])]),
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            assigned(&[(7, &[1])]),
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
        ),
        (assigned(&[(0, &[])]), ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        (
            assigned(&[(0, &[-1])]),
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
        ),
    ] {
        let answer = create_all(&mut client, vec![topic.clone()]);
        assert_eq!(
            answer.topics[0].error_code, error,
            "{topic:?}: {:?}",
            answer.topics[0]
        );
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let grown = crate::memory::peak(&node) - before;
    assert!(grown < 4 << 20, "{grown} bytes");
    assert!(
        !names_in(&root.path().join("data"))
            .iter()
            .any(|it| it.starts_with("t-"))
    );
    assert_serves(&node);
}

#[test]
fn trap_19_defaults_of_the_broker_stand_in_for_minus_one() {
    let (_root, node) = node(&["num.partitions=3"]);
    let mut client = node.connect();
    let topic = create::CreatableTopic {
        num_partitions: -1,
        replication_factor: -1,
        ..creatable("t")
    };
    let answer = create_all(&mut client, vec![topic]);
    assert_eq!(answer.topics[0].error_code, ErrorCode::NONE);
    assert_eq!(
        (
            answer.topics[0].num_partitions,
            answer.topics[0].replication_factor
        ),
        (3, 1)
    );
}

#[test]
fn trap_20_a_new_topic_is_answered_with_all_its_configs() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let mut request = CreateTopicsRequest {
        topics: vec![creatable("bad name"), creatable("good")],
        timeout_ms: 10_000,
        validate_only: true,
    };
    for version in 2..=7 {
        let answer: CreateTopicsResponse = client.call(19, version, &request);
        let codes: Vec<i16> = answer.topics.iter().map(|it| it.error_code.raw()).collect();
        assert_eq!(codes, [17, 0], "v{version}");
        if version >= 5 {
            let configs = answer.topics[1].configs.as_ref().expect("all of them");
            assert_eq!(configs.len(), 37, "v{version}");
        }
    }
    let list = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let answer: MetadataResponse = client.call(3, 12, &list);
    assert!(answer.topics.is_empty(), "nothing was made by looking");
    request.validate_only = false;
    let answer: CreateTopicsResponse = client.call(19, 7, &request);
    assert_eq!(answer.topics[1].error_code, ErrorCode::NONE);
}

#[test]
fn trap_21_harmless_configs_are_taken_and_wrong_names_are_not() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    let config = |name: &str, value: &str| create::CreatableTopicConfig {
        name: name.to_owned(),
        value: Some(value.to_owned()),
    };
    let harmless = create::CreatableTopic {
        configs: vec![
            config("min.insync.replicas", "1"),
            config("flush.messages", "1000"),
            config("flush.ms", "1000"),
            config("unclean.leader.election.enable", "false"),
            config("preallocate", "true"),
            config("segment.jitter.ms", "10"),
        ],
        ..creatable("harmless")
    };
    let wrong = create::CreatableTopic {
        configs: vec![config("retention.msec", "1")],
        ..creatable("wrong")
    };
    let answer = create_all(&mut client, vec![harmless, wrong]);
    let codes: Vec<ErrorCode> = answer.topics.iter().map(|it| it.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::INVALID_CONFIG]);
    client.topic("harmless");
    assert_eq!(
        produce(&mut client, "harmless", 0, batch(&["a"])),
        (ErrorCode::NONE, 0)
    );
}

#[test]
fn trap_44_clients_are_sent_where_the_node_is() {
    let (_root, node) = node(&[]);
    let answer = metadata(&mut node.connect(), &[]);
    let broker = &answer.brokers[0];
    assert_eq!(format!("{}:{}", broker.host, broker.port), node.bootstrap);
    // Port 0 is told as the port that it became.
    let (_root, node) = crate::node(&["advertised.listeners=PLAINTEXT://localhost:0"]);
    let answer = metadata(&mut node.connect(), &[]);
    let broker = &answer.brokers[0];
    assert_eq!(broker.host, "localhost");
    assert_ne!(broker.port, 0);
    assert_eq!(format!("localhost:{}", broker.port), node.bootstrap);
}
