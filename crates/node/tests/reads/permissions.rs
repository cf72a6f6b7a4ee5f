//! Every handler asks the authorizer of its shard, and refuses as Apache Kafka does.

use std::sync::Arc;

use highwater_node::{Authorizer, Caller, Operation, Resource};
use highwater_protocol::Request;
use highwater_protocol::messages::{
    DescribeClusterRequest, DescribeClusterResponse, DescribeConfigsRequest,
    DescribeConfigsResponse, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse,
    MetadataRequest, MetadataResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    ProduceResponse,
};
use highwater_protocol::messages::{
    describe_configs_request::DescribeConfigsResource,
    describe_topic_partitions_request::TopicRequest,
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
    metadata_request::MetadataRequestTopic,
    offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic},
};
use highwater_protocol::wire::Message as _;
use highwater_types::{ErrorCode, NodeId};

use crate::world::*;

const REFUSED: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;

/// Denies these operations on topics whose name begins with `secret`, and those on the cluster.
#[derive(Debug)]
struct Denies {
    on_topics: &'static [Operation],
    on_cluster: &'static [Operation],
}

impl Authorizer for Denies {
    fn allows(&self, caller: &Caller, operation: Operation, resource: Resource<'_>) -> bool {
        assert_eq!(caller.principal, "User:ANONYMOUS");
        match resource {
            Resource::Topic(name) => {
                !name.starts_with("secret") || !self.on_topics.contains(&operation)
            }
            Resource::Cluster => !self.on_cluster.contains(&operation),
            Resource::TransactionalId(_) | Resource::Group(_) => false,
        }
    }
}

/// A node with the topics `open` and `secret`, of one partition each.
fn world(on_topics: &'static [Operation], on_cluster: &'static [Operation]) -> World {
    let mut world = World::new(1, "");
    let authorizer: Arc<dyn Authorizer> = Arc::new(Denies {
        on_topics,
        on_cluster,
    });
    let shards = std::mem::take(&mut world.shards).into_iter();
    world.shards = shards
        .map(|shard| shard.with_authorizer(Arc::clone(&authorizer)))
        .collect();
    world.topic("open", 1);
    world.topic("secret", 1);
    world
}

fn named(names: &[&str]) -> MetadataRequest {
    let topic = |name: &&str| MetadataRequestTopic {
        name: Some((*name).to_owned()),
        ..MetadataRequestTopic::default()
    };
    MetadataRequest {
        topics: Some(names.iter().map(topic).collect()),
        include_topic_authorized_operations: true,
        ..Default::default()
    }
}

fn shown(answer: &MetadataResponse) -> Vec<(i16, Option<&str>)> {
    let topics = answer.topics.iter();
    topics
        .map(|it| (it.error_code.raw(), it.name.as_deref()))
        .collect()
}

#[test]
fn metadata_hides_what_may_not_be_described() {
    let mut world = world(&[Operation::Describe], &[]);
    let everything = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let answer: MetadataResponse = world.ask(12, everything);
    assert_eq!(shown(&answer), [(0, Some("open"))]);
    let answer: MetadataResponse = world.ask(12, named(&["secret", "secret-not-there", "open"]));
    assert_eq!(
        shown(&answer),
        [
            (0, Some("open")),
            (29, Some("secret")),
            (29, Some("secret-not-there"))
        ]
    );
    let secret = &answer.topics[1];
    assert!(secret.topic_id.is_zero() && secret.partitions.is_empty());
    assert_eq!(secret.topic_authorized_operations, i32::MIN);
    assert_eq!(answer.topics[0].topic_authorized_operations, 3576);
    assert!(world.sent.is_empty(), "nothing is made");
    let by_id = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            topic_id: topic_id("secret").uuid(),
            name: None,
        }]),
        ..Default::default()
    };
    let answer: MetadataResponse = world.ask(12, by_id);
    assert_eq!(shown(&answer), [(29, None)]);
}

#[test]
fn topics_are_made_for_those_only_who_may_make_them() {
    let mut one = world(&[Operation::Create], &[Operation::Create]);
    let answer: MetadataResponse = one.ask(9, named(&["secret-new", "open-new"]));
    assert_eq!(
        shown(&answer),
        [(3, Some("open-new")), (29, Some("secret-new"))]
    );
    let Request::CreateTopics(made) = one.forwarded(0) else {
        panic!("another request")
    };
    assert_eq!((one.sent.len(), made.topics.len()), (1, 1));
    // Who may make topics of any name needs no more.
    let mut other = world(&[Operation::Create], &[]);
    let answer: MetadataResponse = other.ask(9, named(&["secret-new"]));
    assert_eq!(shown(&answer), [(3, Some("secret-new"))]);
}

#[test]
fn authorized_operations_are_the_authorizers() {
    let mut world = world(
        &[Operation::Write, Operation::Delete],
        &[Operation::Alter, Operation::AlterConfigs],
    );
    let request = MetadataRequest {
        include_cluster_authorized_operations: true,
        ..named(&["secret"])
    };
    let answer: MetadataResponse = world.ask(9, request);
    let write_and_delete = (1 << 4) | (1 << 6);
    assert_eq!(
        answer.topics[0].topic_authorized_operations,
        3576 - write_and_delete
    );
    let alter = (1 << 7) | (1 << 11);
    assert_eq!(answer.cluster_authorized_operations, 8096 - alter);
    let cluster = DescribeClusterRequest {
        include_cluster_authorized_operations: true,
        ..Default::default()
    };
    let answer: DescribeClusterResponse = world.ask(1, cluster);
    assert_eq!(answer.cluster_authorized_operations, 8096 - alter);
    let request = DescribeTopicPartitionsRequest {
        topics: Vec::new(),
        response_partition_limit: 100,
        cursor: None,
    };
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request);
    let told: Vec<_> = answer
        .topics
        .iter()
        .map(|it| it.topic_authorized_operations)
        .collect();
    assert_eq!(told, [3576, 3576 - write_and_delete]);
}

#[test]
fn who_may_not_describe_the_cluster_may_do_nothing_on_it() {
    let mut world = world(&[], &[Operation::Describe]);
    let cluster = DescribeClusterRequest {
        include_cluster_authorized_operations: true,
        ..Default::default()
    };
    let answer: DescribeClusterResponse = world.ask(1, cluster);
    assert_eq!(answer.cluster_authorized_operations, 0);
    assert_eq!(answer.brokers.len(), 1);
}

#[test]
fn topic_partitions_are_left_out_or_refused() {
    let mut world = world(&[Operation::Describe], &[]);
    let request = |names: &[&str]| DescribeTopicPartitionsRequest {
        topics: names
            .iter()
            .map(|name| TopicRequest {
                name: (*name).to_owned(),
            })
            .collect(),
        response_partition_limit: 100,
        cursor: None,
    };
    let rows = |answer: &DescribeTopicPartitionsResponse| -> Vec<(i16, Option<String>)> {
        let topics = answer.topics.iter();
        topics
            .map(|it| (it.error_code.raw(), it.name.clone()))
            .collect()
    };
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request(&[]));
    assert_eq!(rows(&answer), [(0, Some("open".to_owned()))]);
    let answer: DescribeTopicPartitionsResponse = world.ask(0, request(&["secret"]));
    assert_eq!(rows(&answer), [(29, Some("secret".to_owned()))]);
    assert!(answer.topics[0].partitions.is_empty());
}

#[test]
fn produce_wants_write_before_it_tells_whether_a_topic_is_there() {
    let mut world = world(&[Operation::Write], &[]);
    world.produce("open", 0, 1, 10);
    for (topic, error) in [
        ("secret", 29),
        ("secret-not-there", 29),
        ("open-not-there", 3),
    ] {
        let ticket = world.send_batch(topic, 0, &[1_767_225_600_000], 10);
        let body = world.body(ticket);
        let answer = ProduceResponse::from_bytes(&body, 9).expect("an answer");
        let row = &answer.responses[0].partition_responses[0];
        assert_eq!(row.error_code.raw(), error, "{topic}");
    }
}

#[test]
fn fetch_wants_read_and_replicas_want_to_be_brokers() {
    let mut world = world(&[Operation::Read], &[Operation::ClusterAction]);
    world.produce("open", 0, 1, 10);
    world.produce("secret", 0, 1, 10);
    let topics = |names: &[&str]| {
        let topics = names.iter();
        topics
            .map(|name| fetch_topic(name, topic_id(name), &[(0, 0)]))
            .collect::<Vec<_>>()
    };
    for version in [11, 12, 13, 17] {
        let request = fetch_request(topics(&["secret", "open"]));
        let answer = world.fetch_now(version, &request);
        let rows: Vec<_> = partitions(&answer)
            .iter()
            .map(|it| (it.error_code.raw(), record_bytes(it) > 0))
            .collect();
        assert_eq!(rows, [(29, false), (0, true)], "v{version}");
    }
    // What is not there is told of those names only that may be read.
    let answer = world.fetch_now(12, &fetch_request(topics(&["secret-no", "open-no"])));
    let rows: Vec<_> = partitions(&answer)
        .iter()
        .map(|it| it.error_code.raw())
        .collect();
    assert_eq!(rows, [29, 3]);
    let mut request = fetch_request(topics(&["open"]));
    request.replica_id = NodeId::new(2);
    let answer = world.fetch_now(12, &request);
    assert_eq!(partitions(&answer)[0].error_code, REFUSED);
}

#[test]
fn a_session_is_asked_about_each_time() {
    let mut world = world(&[Operation::Read], &[]);
    let mut request = fetch_request(vec![fetch_topic("secret", topic_id("secret"), &[(0, 0)])]);
    request.session_epoch = 0;
    let answer = world.fetch_now(13, &request);
    assert_eq!(partitions(&answer)[0].error_code, REFUSED);
    let request = highwater_protocol::messages::FetchRequest {
        session_id: answer.session_id,
        session_epoch: 1,
        topics: Vec::new(),
        max_wait_ms: 0,
        ..request
    };
    let answer = world.fetch_now(13, &request);
    assert_eq!(partitions(&answer)[0].error_code, REFUSED);
}

#[test]
fn look_ups_want_describe() {
    let mut world = world(&[Operation::Describe], &[Operation::ClusterAction]);
    let topic = |name: &str| ListOffsetsTopic {
        name: name.to_owned(),
        partitions: vec![ListOffsetsPartition {
            partition_index: 0,
            timestamp: -1,
            ..Default::default()
        }],
    };
    let request = ListOffsetsRequest {
        replica_id: NodeId::NONE,
        topics: vec![topic("secret"), topic("open"), topic("secret-no")],
        ..Default::default()
    };
    let answer: ListOffsetsResponse = world.ask(7, request);
    let rows: Vec<_> = answer
        .topics
        .iter()
        .map(|it| it.partitions[0].error_code.raw())
        .collect();
    assert_eq!(rows, [29, 0, 29]);
    let epochs = |world: &mut World| {
        let topic = |name: &str| OffsetForLeaderTopic {
            topic: name.to_owned(),
            partitions: vec![OffsetForLeaderPartition {
                partition: 0,
                ..Default::default()
            }],
        };
        let request = OffsetForLeaderEpochRequest {
            topics: vec![topic("secret"), topic("open")],
            ..Default::default()
        };
        let answer: OffsetForLeaderEpochResponse = world.ask(4, request);
        let topics = answer.topics.iter();
        topics
            .map(|it| it.partitions[0].error_code.raw())
            .collect::<Vec<_>>()
    };
    assert_eq!(epochs(&mut world), [29, 0]);
    let mut of_brokers = self::world(&[Operation::Describe], &[]);
    assert_eq!(epochs(&mut of_brokers), [0, 0]);
}

#[test]
fn configs_want_describe_configs() {
    let mut world = world(&[Operation::DescribeConfigs], &[Operation::DescribeConfigs]);
    let resource = |resource_type: i8, name: &str| DescribeConfigsResource {
        resource_type,
        resource_name: name.to_owned(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: vec![
            resource(2, "secret"),
            resource(2, "open"),
            resource(4, "1"),
            resource(32, "g"),
        ],
        ..Default::default()
    };
    let answer: DescribeConfigsResponse = world.ask(4, request);
    let codes: Vec<_> = answer
        .results
        .iter()
        .map(|it| (it.error_code.raw(), it.configs.is_empty()))
        .collect();
    assert_eq!(codes, [(29, true), (0, false), (31, true), (30, true)]);
}

#[test]
fn a_producer_id_wants_to_write_somewhere() {
    let request = |transactional_id: Option<&str>| InitProducerIdRequest {
        transactional_id: transactional_id.map(str::to_owned),
        transaction_timeout_ms: 1000,
        ..Default::default()
    };
    let mut one = world(&[], &[Operation::IdempotentWrite]);
    let answer: InitProducerIdResponse = one.ask(5, request(Some("t")));
    assert_eq!(
        answer.error_code,
        ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    );
    // It may write to a topic, so it gets an id: a block of them is asked for.
    one.request(5, request(None));
    assert_eq!(one.sent.len(), 1);
    let mut none = World::new(1, "");
    let authorizer = Denies {
        on_topics: &[],
        on_cluster: &[Operation::IdempotentWrite],
    };
    let shard = none.shards.remove(0).with_authorizer(Arc::new(authorizer));
    none.shards.push(shard);
    let answer: InitProducerIdResponse = none.ask(5, request(None));
    assert_eq!(answer.error_code, ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
}
