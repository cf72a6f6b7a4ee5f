use std::sync::Arc;

use highwater_node::{Changed, PeerError};
use highwater_protocol::Request;
use highwater_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, DescribeClusterRequest, DescribeClusterResponse,
    DescribeConfigsRequest, DescribeConfigsResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, EnvelopeResponse, MetadataRequest, MetadataResponse,
};
use highwater_protocol::messages::{
    create_topics_request::CreatableTopic,
    create_topics_response::CreatableTopicResult,
    delete_topics_request::DeleteTopicState,
    delete_topics_response::DeletableTopicResult,
    describe_configs_request::DescribeConfigsResource,
    describe_topic_partitions_request::{Cursor, TopicRequest},
    metadata_request::MetadataRequestTopic,
};
use highwater_protocol::wire::Message as _;
use highwater_types::{ErrorCode, NodeId, PartitionIndex, TopicId};

use crate::world::*;

fn all_topics() -> MetadataRequest {
    MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    }
}

fn named(names: &[&str]) -> MetadataRequest {
    let topic = |name: &&str| MetadataRequestTopic {
        name: Some((*name).to_owned()),
        ..MetadataRequestTopic::default()
    };
    MetadataRequest {
        topics: Some(names.iter().map(topic).collect()),
        ..Default::default()
    }
}

fn by_id(ids: &[TopicId]) -> MetadataRequest {
    let topic = |id: &TopicId| MetadataRequestTopic {
        topic_id: id.uuid(),
        name: None,
    };
    MetadataRequest {
        topics: Some(ids.iter().map(topic).collect()),
        ..Default::default()
    }
}

/// Error and name of each topic.
fn topics(answer: &MetadataResponse) -> Vec<(i16, &str)> {
    let topics = answer.topics.iter();
    topics
        .map(|it| (it.error_code.raw(), it.name.as_deref().unwrap_or("(null)")))
        .collect()
}

#[test]
fn trap_17_null_and_empty_lists_of_topics() {
    let mut world = World::new(1, "");
    world.topic("b", 1);
    world.topic("a", 2);
    for version in 1..=13 {
        let answer: MetadataResponse = world.ask(version, all_topics());
        assert_eq!(topics(&answer), [(0, "a"), (0, "b")], "v{version}");
        let answer: MetadataResponse = world.ask(version, named(&[]));
        assert_eq!(topics(&answer), [], "v{version}");
        assert_eq!(answer.brokers.len(), 1);
    }
    let answer: MetadataResponse = world.ask(0, named(&[]));
    assert_eq!(topics(&answer), [(0, "a"), (0, "b")]);
    assert!(
        world.sent.is_empty(),
        "nobody's topics are made for a list of all"
    );
}

#[test]
fn trap_17_only_named_topics_are_made() {
    let mut world = World::new(1, "");
    let mut request = named(&["new", "newer", "new"]);
    for (version, allow, sent) in [(3, false, 0), (4, false, 0), (4, true, 1)] {
        request.allow_auto_topic_creation = allow || version < 4;
        world.sent.clear();
        let answer: MetadataResponse = world.ask(version, request.clone());
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.raw();
        assert_eq!(topics(&answer), [(unknown, "new"), (unknown, "newer")]);
        if version >= 4 {
            assert_eq!(world.sent.len(), sent);
        }
        if !world.sent.is_empty() {
            let Request::CreateTopics(create) = world.forwarded(0) else {
                panic!("another request")
            };
            let names: Vec<&str> = create.topics.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, ["new", "newer"]);
            assert!(create.topics.iter().all(|it| it.num_partitions == -1));
            assert!(create.topics.iter().all(|it| it.replication_factor == -1));
            world.answer_send(0, Err(PeerError::TimedOut));
        }
    }
    // Asked again while they are being made: once is enough.
    let _: MetadataResponse = world.ask(4, named(&["x"]));
    let _: MetadataResponse = world.ask(4, named(&["x"]));
    assert_eq!(world.sent.len(), 1);
    let mut off = World::new(1, "auto.create.topics.enable=false");
    let _: MetadataResponse = off.ask(4, named(&["x"]));
    assert!(off.sent.is_empty());
}

#[test]
fn topics_that_are_made_on_the_side_are_bounded() {
    let mut world = World::new(1, "");
    let names: Vec<String> = (0..1_500).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let answer: MetadataResponse = world.ask(4, named(&names));
    assert_eq!(answer.topics.len(), 1_500);
    let Request::CreateTopics(create) = world.forwarded(0) else {
        panic!("another request")
    };
    assert_eq!(create.topics.len(), 1_000);
}

#[test]
fn trap_18_names_that_no_topic_may_have() {
    let mut world = World::new(1, "");
    let long = "x".repeat(250);
    let names = ["", ".", "..", "a/b", "nul\0", "schoen\u{e9}", long.as_str()];
    for version in 0..=13 {
        let answer: MetadataResponse = world.ask(version, named(&names));
        assert_eq!(answer.topics.len(), names.len());
        for topic in &answer.topics {
            assert_eq!(
                topic.error_code,
                ErrorCode::INVALID_TOPIC_EXCEPTION,
                "{:?}",
                topic.name
            );
        }
    }
    assert!(world.sent.is_empty(), "none is made");
}

#[test]
fn trap_43_topics_by_id() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 2);
    let other = topic_id("other");
    for version in 12..=13 {
        let answer: MetadataResponse = world.ask(version, by_id(&[id, other]));
        let unknown = ErrorCode::UNKNOWN_TOPIC_ID.raw();
        assert_eq!(topics(&answer), [(unknown, "(null)"), (0, "t")]);
        assert_eq!(answer.topics[1].topic_id, id.uuid());
        assert_eq!(answer.topics[1].partitions.len(), 2);
        // As the Java client asks: an id and an empty name.
        let mut request = by_id(&[id]);
        request.topics.as_mut().expect("topics")[0].name = Some(String::new());
        let answer: MetadataResponse = world.ask(version, request);
        assert_eq!(topics(&answer), [(0, "t")]);
    }
    // Below v12 an id is no question.
    let mut request = by_id(&[id]);
    request.topics.as_mut().expect("topics")[0].name = Some("t".to_owned());
    let answer: MetadataResponse = world.ask(10, request);
    assert_eq!(topics(&answer), [(ErrorCode::INVALID_REQUEST.raw(), "t")]);
}

#[test]
fn a_lone_broker_names_itself_while_it_stops() {
    let mut world = World::new(1, "");
    let mut brokers = (*world.image.brokers).clone();
    let mut own = broker(1, 9092);
    own.fenced = true;
    brokers.insert(NodeId::new(1), Arc::new(own));
    world.image.brokers = Arc::new(brokers);
    world.publish(Changed::Topics(Default::default()));
    let answer: MetadataResponse = world.ask(9, named(&[]));
    let brokers: Vec<i32> = answer.brokers.iter().map(|it| it.node_id.raw()).collect();
    assert_eq!(brokers, [1], "a client would forget where it is");
}

#[test]
fn trap_44_brokers_are_named_as_the_callers_listener_announces_them() {
    let mut world = World::new(1, "");
    let mut brokers = (*world.image.brokers).clone();
    let mut second = broker(2, 9093);
    second.endpoints[0].name = "OTHER".to_owned();
    second.rack = Some("r2".to_owned());
    brokers.insert(NodeId::new(2), Arc::new(second));
    let mut third = broker(3, 9094);
    third.fenced = true;
    brokers.insert(NodeId::new(3), Arc::new(third));
    world.image.brokers = Arc::new(brokers);
    let id = world.topic("t", 1);
    let mut image = partition_image(4);
    image.assigned_replicas = [1, 2, 3].map(NodeId::new).to_vec();
    image.in_sync_replicas = [1, 2].map(NodeId::new).to_vec();
    for (leader, version, error, told) in [
        (1, 9, ErrorCode::NONE, 1),
        (2, 9, ErrorCode::LISTENER_NOT_FOUND, -1),
        (2, 5, ErrorCode::LEADER_NOT_AVAILABLE, -1),
        (-1, 9, ErrorCode::LEADER_NOT_AVAILABLE, -1),
        (3, 9, ErrorCode::LISTENER_NOT_FOUND, -1),
    ] {
        image.leader = NodeId::new(leader);
        world.insert_partition("t", id, PartitionIndex::new(0), image.clone());
        world.publish(Changed::Topics(Default::default()));
        let answer: MetadataResponse = world.ask(version, named(&["t"]));
        let brokers: Vec<(i32, i32)> = answer
            .brokers
            .iter()
            .map(|it| (it.node_id.raw(), it.port))
            .collect();
        assert_eq!(brokers, [(1, 9092)]);
        assert_eq!(answer.controller_id.raw(), 1);
        let partition = &answer.topics[0].partitions[0];
        assert_eq!(
            (partition.error_code, partition.leader_id.raw()),
            (error, told),
            "{leader}"
        );
        assert_eq!(partition.offline_replicas, [2, 3].map(NodeId::new));
        assert_eq!(partition.replica_nodes.len(), 3);
    }
    // Version 0 lists only brokers that it names.
    image.leader = NodeId::new(1);
    world.insert_partition("t", id, PartitionIndex::new(0), image);
    world.publish(Changed::Topics(Default::default()));
    let answer: MetadataResponse = world.ask(0, named(&["t"]));
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::REPLICA_NOT_AVAILABLE);
    assert_eq!(partition.replica_nodes, [NodeId::new(1)]);
}

#[test]
fn authorized_operations_are_told_when_asked_for() {
    let mut world = World::new(1, "");
    world.topic("t", 1);
    let mut request = named(&["t", "__consumer_offsets"]);
    request.allow_auto_topic_creation = false;
    let answer: MetadataResponse = world.ask(9, request.clone());
    assert_eq!(answer.cluster_authorized_operations, i32::MIN);
    assert_eq!(answer.topics[0].topic_authorized_operations, i32::MIN);
    assert_eq!(
        answer
            .topics
            .iter()
            .map(|it| it.is_internal)
            .collect::<Vec<_>>(),
        [false, true]
    );
    request.include_cluster_authorized_operations = true;
    request.include_topic_authorized_operations = true;
    let answer: MetadataResponse = world.ask(9, request);
    assert_eq!(answer.cluster_authorized_operations, 8096);
    assert_eq!(answer.topics[0].topic_authorized_operations, 3576);
}

#[test]
fn the_kept_answer_to_all_topics_follows_the_image() {
    let mut world = World::new(1, "");
    world.topic("a", 1);
    let first: MetadataResponse = world.ask(9, all_topics());
    let again: MetadataResponse = world.ask(9, all_topics());
    assert_eq!(first, again);
    world.topic("b", 1);
    let answer: MetadataResponse = world.ask(9, all_topics());
    assert_eq!(topics(&answer), [(0, "a"), (0, "b")]);
}

#[test]
fn api_versions_and_features() {
    let mut world = World::new(1, "");
    let levels = [
        ("metadata.version", 33),
        ("eligible.leader.replicas.version", 1),
    ];
    let mut features = (*world.image.features).clone();
    features.levels = levels.map(|(name, level)| (name.to_owned(), level)).into();
    world.image.features = Arc::new(features);
    world.publish(Changed::Everything);
    let java = ApiVersionsRequest {
        client_software_name: "apache-kafka-java".to_owned(),
        client_software_version: "4.4.0".to_owned(),
        ..ApiVersionsRequest::default()
    };
    for version in 0..=5 {
        let answer: ApiVersionsResponse = world.ask(version, java.clone());
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let first = answer.api_keys.first().expect("keys");
        assert_eq!(
            (first.api_key, first.min_version, first.max_version),
            (0, 0, 13)
        );
        let supported: Vec<(&str, i16, i16)> = answer
            .supported_features
            .iter()
            .map(|it| (it.name.as_str(), it.min_version, it.max_version))
            .collect();
        match version {
            0..=2 => assert_eq!(supported, []),
            3 => assert_eq!(supported, [("metadata.version", 7, 33)]),
            _ => assert_eq!(supported.len(), 7),
        }
        if version >= 3 {
            let finalized: Vec<(&str, i16)> = answer
                .finalized_features
                .iter()
                .map(|it| (it.name.as_str(), it.max_version_level))
                .collect();
            assert_eq!(
                finalized,
                [
                    ("eligible.leader.replicas.version", 1),
                    ("metadata.version", 33),
                    ("kraft.version", 1)
                ]
            );
            assert_eq!(
                answer.finalized_features_epoch,
                world.image.end.offset.raw() - 1
            );
        }
    }
}

#[test]
fn c_08_a_bad_software_name_is_refused_and_repeats_are_fine() {
    let mut world = World::new(1, "");
    let request = |name: &str, version: &str| ApiVersionsRequest {
        client_software_name: name.to_owned(),
        client_software_version: version.to_owned(),
        ..ApiVersionsRequest::default()
    };
    for (name, version, good) in [
        ("franz-go", "1.21.0", true),
        ("franz-go", "1.21.0", true),
        ("bad name!", "1", false),
        ("a", "bad name!", false),
        ("", "", false),
        ("-a", "1", false),
        ("a", "1.", false),
        ("franz-go", "1.21.0", true),
    ] {
        let answer: ApiVersionsResponse = world.ask(3, request(name, version));
        let expected = if good {
            ErrorCode::NONE
        } else {
            ErrorCode::INVALID_REQUEST
        };
        assert_eq!(answer.error_code, expected, "{name:?} {version:?}");
        assert_eq!(answer.api_keys.is_empty(), !good);
    }
    let answer: ApiVersionsResponse = world.ask(2, request("", ""));
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

#[test]
fn a_client_that_expects_another_cluster_or_node_is_sent_back_to_bootstrap() {
    let mut world = World::new(1, "");
    let request = |cluster: Option<&str>, node: i32| ApiVersionsRequest {
        client_software_name: "x".to_owned(),
        client_software_version: "1".to_owned(),
        cluster_id: cluster.map(str::to_owned),
        node_id: NodeId::new(node),
    };
    for (cluster, node, expected) in [
        (None, -1, ErrorCode::NONE),
        (Some(CLUSTER), 1, ErrorCode::NONE),
        (Some(CLUSTER), 2, ErrorCode::REBOOTSTRAP_REQUIRED),
        (Some("other"), 1, ErrorCode::REBOOTSTRAP_REQUIRED),
        (None, 2, ErrorCode::INVALID_REQUEST),
    ] {
        let answer: ApiVersionsResponse = world.ask(5, request(cluster, node));
        assert_eq!(answer.error_code, expected, "{cluster:?} {node}");
    }
}

#[test]
fn describe_cluster_as_kafka_does() {
    let mut world = World::new(1, "");
    let mut brokers = (*world.image.brokers).clone();
    let mut fenced = broker(2, 9093);
    fenced.fenced = true;
    brokers.insert(NodeId::new(2), Arc::new(fenced));
    world.image.brokers = Arc::new(brokers);
    world.publish(Changed::Everything);
    let request = DescribeClusterRequest::default();
    for version in 0..=2 {
        let answer: DescribeClusterResponse = world.ask(version, request.clone());
        assert_eq!(answer.error_code, ErrorCode::NONE);
        assert_eq!(answer.cluster_id, CLUSTER);
        assert_eq!((answer.controller_id.raw(), answer.brokers.len()), (1, 1));
        assert_eq!(answer.cluster_authorized_operations, i32::MIN);
    }
    let with_fenced = DescribeClusterRequest {
        include_fenced_brokers: true,
        ..request.clone()
    };
    let answer: DescribeClusterResponse = world.ask(2, with_fenced);
    let fenced: Vec<bool> = answer.brokers.iter().map(|it| it.is_fenced).collect();
    assert_eq!(fenced, [false, true]);
    for (kind, error) in [
        (2, ErrorCode::MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode::UNSUPPORTED_ENDPOINT_TYPE),
    ] {
        let wrong = DescribeClusterRequest {
            endpoint_type: kind,
            ..request.clone()
        };
        let answer: DescribeClusterResponse = world.ask(1, wrong);
        assert_eq!(answer.error_code, error);
    }
}

fn describe(kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsRequest {
    DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: kind,
            resource_name: name.to_owned(),
            configuration_keys: keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
        }],
        include_synonyms: true,
        include_documentation: true,
    }
}

#[test]
fn trap_22_configs_of_topics_and_brokers() {
    let mut world = World::new(1, "num.partitions=7\nssl.key.password=secret");
    world.topic("t", 1);
    for version in 1..=4 {
        let answer: DescribeConfigsResponse = world.ask(version, describe(2, "t", None));
        let result = &answer.results[0];
        assert_eq!(result.error_code, ErrorCode::NONE);
        assert_eq!(result.configs.len(), 37, "v{version}");
        let answer: DescribeConfigsResponse =
            world.ask(version, describe(4, "1", Some(&["num.partitions"])));
        let config = &answer.results[0].configs[0];
        assert_eq!(
            (config.name.as_str(), config.value.as_deref()),
            ("num.partitions", Some("7"))
        );
        assert_eq!(config.config_source, 4);
        let synonyms: Vec<i8> = config.synonyms.iter().map(|it| it.source).collect();
        assert_eq!(synonyms, [4, 5]);
        if version >= 3 {
            assert!(config.documentation.is_some());
            assert_eq!(config.config_type, 3);
        }
    }
    let answer: DescribeConfigsResponse = world.ask(4, describe(4, "1", None));
    let secret = answer.results[0]
        .configs
        .iter()
        .find(|it| it.name == "ssl.key.password");
    let secret = secret.expect("listed");
    assert!(secret.is_sensitive && secret.value.is_none());
    assert!(secret.synonyms.iter().all(|it| it.value.is_none()));
    for (kind, name, error) in [
        (2, "absent", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a/b", ErrorCode::INVALID_TOPIC_EXCEPTION),
        (4, "2", ErrorCode::INVALID_REQUEST),
        (4, "x", ErrorCode::INVALID_REQUEST),
        (4, "01", ErrorCode::INVALID_REQUEST),
        (4, "+1", ErrorCode::INVALID_REQUEST),
        (99, "x", ErrorCode::INVALID_REQUEST),
    ] {
        let answer: DescribeConfigsResponse = world.ask(4, describe(kind, name, None));
        assert_eq!(answer.results[0].error_code, error, "{kind} {name}");
        assert!(answer.results[0].configs.is_empty());
    }
    let answer: DescribeConfigsResponse = world.ask(4, describe(4, "", None));
    assert_eq!(answer.results[0].error_code, ErrorCode::NONE);
    assert!(
        answer.results[0].configs.is_empty(),
        "nothing is set for all brokers"
    );
}

#[test]
fn a_resource_that_is_named_twice_is_described_once() {
    let mut world = World::new(1, "");
    world.topic("t", 1);
    let mut request = describe(2, "t", None);
    let again = request.resources.clone();
    request.resources.extend(again);
    let answer: DescribeConfigsResponse = world.ask(4, request);
    let errors: Vec<ErrorCode> = answer.results.iter().map(|it| it.error_code).collect();
    assert_eq!(errors, [ErrorCode::NONE, ErrorCode::INVALID_REQUEST]);
    assert!(answer.results[1].configs.is_empty());
}

fn describe_partitions(
    names: &[&str],
    limit: i32,
    cursor: Option<(&str, i32)>,
) -> DescribeTopicPartitionsRequest {
    DescribeTopicPartitionsRequest {
        topics: names
            .iter()
            .map(|name| TopicRequest {
                name: (*name).to_owned(),
            })
            .collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(name, partition_index)| Cursor {
            topic_name: name.to_owned(),
            partition_index,
        }),
    }
}

/// Each topic's error and partitions, then the cursor.
type Described = (Vec<(i16, String, Vec<i32>)>, Option<(String, i32)>);

fn described(answer: &DescribeTopicPartitionsResponse) -> Described {
    let topics = answer.topics.iter().map(|topic| {
        let partitions = topic
            .partitions
            .iter()
            .map(|it| it.partition_index)
            .collect();
        (
            topic.error_code.raw(),
            topic.name.clone().unwrap_or_default(),
            partitions,
        )
    });
    let cursor = answer.next_cursor.as_ref();
    (
        topics.collect(),
        cursor.map(|it| (it.topic_name.clone(), it.partition_index)),
    )
}

#[test]
fn partitions_come_in_pages() {
    let mut world = World::new(1, "");
    world.topic("plain", 3);
    world.topic("codecs", 1);
    let row =
        |error: i16, name: &str, partitions: &[i32]| (error, name.to_owned(), partitions.to_vec());
    let at = |name: &str, index: i32| Some((name.to_owned(), index));
    // The two pages that a running Kafka was asked for.
    let request = describe_partitions(&["absent", "codecs", "plain"], 2, None);
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request);
    let rows = vec![
        row(3, "absent", &[]),
        row(0, "codecs", &[0]),
        row(0, "plain", &[0]),
    ];
    assert_eq!(described(&answer), (rows, at("plain", 1)));
    assert!(
        answer
            .topics
            .iter()
            .all(|it| it.topic_authorized_operations == 3576)
    );
    let request = describe_partitions(&["plain"], 2, Some(("plain", 1)));
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request);
    assert_eq!(described(&answer), (vec![row(0, "plain", &[1, 2])], None));
    // All topics, by name; the cursor's topic may be gone.
    let request = describe_partitions(&[], 1, None);
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request);
    assert_eq!(
        described(&answer),
        (vec![row(0, "codecs", &[0])], at("plain", 0))
    );
    let request = describe_partitions(&[], 2000, Some(("d", 5)));
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request);
    assert_eq!(
        described(&answer),
        (vec![row(0, "plain", &[0, 1, 2])], None)
    );
    // A limit below one counts as one.
    let request = describe_partitions(&["plain"], 0, None);
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request);
    assert_eq!(
        described(&answer),
        (vec![row(0, "plain", &[0])], at("plain", 1))
    );
    let invalid = ErrorCode::INVALID_REQUEST.raw();
    for cursor in [("codecs", 0), ("plain", -1)] {
        let request = describe_partitions(&["plain"], 2, Some(cursor));
        let answer: DescribeTopicPartitionsResponse = world.ask(0, request);
        assert_eq!(described(&answer), (vec![row(invalid, "plain", &[])], None));
    }
}

fn create(name: &str) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        timeout_ms: 5_000,
        validate_only: false,
    }
}

#[test]
fn topics_are_made_by_the_controller_and_the_answer_waits_for_the_metadata() {
    let mut world = World::new(1, "");
    let id = topic_id("t");
    let created = |error_code| CreateTopicsResponse {
        topics: vec![CreatableTopicResult {
            name: "t".to_owned(),
            topic_id: id.uuid(),
            error_code,
            ..CreatableTopicResult::default()
        }],
        ..CreateTopicsResponse::default()
    };
    for version in [2, 4, 5, 7] {
        let ticket = world.request(version, create("t"));
        assert_eq!(world.forwarded(0), create("t").into());
        world.answer_forwarded(0, created(ErrorCode::NONE));
        assert!(
            !world.is_answered(ticket),
            "the topic is not in the metadata yet"
        );
        world.topic("t", 1);
        let body = world.body(ticket);
        let answer = CreateTopicsResponse::from_bytes(&body, version).expect("an answer");
        assert_eq!(answer.topics[0].error_code, ErrorCode::NONE);
        world.remove_topic("t");
    }
    // Held no longer than a second, and not at all when nothing was made.
    let ticket = world.request(7, create("t"));
    world.answer_forwarded(0, created(ErrorCode::NONE));
    world.advance(1_000);
    world.body(ticket);
    let ticket = world.request(7, create("t"));
    world.answer_forwarded(0, created(ErrorCode::TOPIC_ALREADY_EXISTS));
    assert!(world.is_answered(ticket));
    let validate = CreateTopicsRequest {
        validate_only: true,
        ..create("t")
    };
    let ticket = world.request(7, validate);
    world.answer_forwarded(0, created(ErrorCode::NONE));
    assert!(world.is_answered(ticket));
}

#[test]
fn a_controller_that_does_not_answer_in_time() {
    let mut world = World::new(1, "");
    let ticket = world.request(7, create("t"));
    world.answer_send(0, Err(PeerError::TimedOut));
    let body = world.body(ticket);
    let answer = CreateTopicsResponse::from_bytes(&body, 7).expect("an answer");
    assert_eq!(answer.topics[0].name, "t");
    assert_eq!(answer.topics[0].error_code, ErrorCode::REQUEST_TIMED_OUT);
}

#[test]
fn a_request_is_sent_again_until_somebody_is_the_controller() {
    let mut world = World::new(1, "");
    let request = DeleteTopicsRequest {
        topic_names: vec!["a".to_owned(), "b".to_owned()],
        timeout_ms: 1_000,
        ..DeleteTopicsRequest::default()
    };
    let ticket = world.request(3, request.clone());
    world.answer_send(0, Err(PeerError::Disconnected));
    assert!(world.sent.is_empty(), "not at once");
    world.advance(50);
    world.refuse_forwarded(0, ErrorCode::NOT_CONTROLLER);
    world.advance(50);
    assert_eq!(world.forwarded(0), request.clone().into());
    let row = |name: &str| DeletableTopicResult {
        name: Some(name.to_owned()),
        error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ..DeletableTopicResult::default()
    };
    let response = DeleteTopicsResponse {
        responses: vec![row("a"), row("b")],
        ..DeleteTopicsResponse::default()
    };
    world.answer_forwarded(0, response.clone());
    let body = world.body(ticket);
    assert_eq!(DeleteTopicsResponse::from_bytes(&body, 3), Ok(response));
    // For as long as the client waits, and half a second.
    let ticket = world.request(3, request);
    for _ in 0..29 {
        world.answer_send(0, Err(PeerError::Disconnected));
        world.advance(50);
    }
    world.answer_send(0, Err(PeerError::Disconnected));
    world.advance(50);
    assert!(world.sent.is_empty());
    let body = world.body(ticket);
    let answer = DeleteTopicsResponse::from_bytes(&body, 3).expect("an answer");
    let late = ErrorCode::REQUEST_TIMED_OUT;
    assert!(answer.responses.iter().all(|it| it.error_code == late));
    assert_eq!(answer.responses.len(), 2);
}

#[test]
fn what_goes_wrong_between_broker_and_controller_is_no_fault_of_the_client() {
    let mut world = World::new(1, "");
    for code in [
        ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode::PRINCIPAL_DESERIALIZATION_FAILURE,
        ErrorCode::INVALID_REQUEST,
    ] {
        let ticket = world.request(7, create("t"));
        world.refuse_forwarded(0, code);
        let body = world.body(ticket);
        let answer = CreateTopicsResponse::from_bytes(&body, 7).expect("an answer");
        assert_eq!(answer.topics[0].error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    }
    // The answer to another request.
    let ticket = world.request(7, create("t"));
    let data = [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0];
    let other = EnvelopeResponse {
        response_data: Some(data.to_vec().into()),
        error_code: ErrorCode::NONE,
    };
    world.answer_send(0, Ok(other.into()));
    let body = world.body(ticket);
    let answer = CreateTopicsResponse::from_bytes(&body, 7).expect("an answer");
    assert_eq!(answer.topics[0].error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    // A controller of another release: the client asks anew which versions there are.
    let ticket = world.request(7, create("t"));
    world.refuse_forwarded(0, ErrorCode::UNSUPPORTED_VERSION);
    let answer = world.answers.remove(&ticket).expect("an answer");
    assert!(answer.then_close && answer.pieces.is_none());
}

#[test]
fn a_deletion_is_answered_once_the_topic_is_gone() {
    for version in [1, 3, 6] {
        let mut world = World::new(1, "");
        let id = world.topic("t", 1);
        let named = DeleteTopicState {
            name: Some("t".to_owned()),
            ..DeleteTopicState::default()
        };
        let request = DeleteTopicsRequest {
            topic_names: if version < 6 {
                vec!["t".to_owned()]
            } else {
                vec![]
            },
            topics: if version < 6 { vec![] } else { vec![named] },
            timeout_ms: 1_000,
        };
        let ticket = world.request(version, request);
        let response = DeleteTopicsResponse {
            responses: vec![DeletableTopicResult {
                name: Some("t".to_owned()),
                topic_id: id.uuid(),
                ..DeletableTopicResult::default()
            }],
            ..DeleteTopicsResponse::default()
        };
        world.answer_forwarded(0, response);
        assert!(!world.is_answered(ticket));
        world.remove_topic("t");
        let body = world.body(ticket);
        let answer = DeleteTopicsResponse::from_bytes(&body, version).expect("an answer");
        assert_eq!(answer.responses[0].error_code, ErrorCode::NONE);
    }
}

#[test]
fn a_closed_connection_leaves_nothing_behind() {
    let mut world = World::new(1, "");
    world.request(7, create("t"));
    world.request(7, create("u"));
    world.answer_send(1, Err(PeerError::Disconnected));
    world.step(0, highwater_node::Input::Closed(highwater_node::ConnId(1)));
    world.answer_send(0, Err(PeerError::TimedOut));
    world.advance(60_000);
    assert!(world.answers.is_empty());
}
