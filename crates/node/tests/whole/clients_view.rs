//! What clients of a cluster see, whichever broker they ask.

use highwater_protocol::messages::broker_registration_request::Feature;
use highwater_protocol::messages::{
    BrokerRegistrationRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeClusterResponse, DescribeQuorumRequest, DescribeTopicPartitionsRequest,
    FindCoordinatorRequest, FindCoordinatorResponse, InitProducerIdRequest, MetadataRequest,
    MetadataResponse, OffsetCommitRequest, OffsetFetchRequest,
};
use highwater_protocol::messages::{
    create_topics_request::CreatableTopic,
    delete_topics_request::DeleteTopicState,
    describe_quorum_request::{PartitionData, TopicData},
    describe_topic_partitions_request::TopicRequest,
    metadata_request::MetadataRequestTopic,
    offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
    offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics},
};
use highwater_protocol::{ApiKey, ListenerKind, Request, Response};
use highwater_types::{ErrorCode, NodeId, ProducerId, Uuid};

use crate::cluster::{Cluster, Role};

const QUICK: &str = "broker.session.timeout.ms=2000\nbroker.heartbeat.interval.ms=500\n\
    default.replication.factor=3\noffsets.topic.num.partitions=6\n\
    group.initial.rebalance.delay.ms=0\n";

/// Node 1 is a combined one, 2 and 3 are brokers.
fn three() -> Cluster {
    Cluster::serving(&[
        (1, Role::Combined, QUICK),
        (2, Role::Broker, QUICK),
        (3, Role::Broker, QUICK),
    ])
}

fn topic(name: &str, partitions: i32) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: partitions,
            replication_factor: -1,
            ..CreatableTopic::default()
        }],
        timeout_ms: 5_000,
        ..CreateTopicsRequest::default()
    }
}

fn create(cluster: &mut Cluster, at: i32, name: &str, partitions: i32) {
    let answer = cluster.call(at, ListenerKind::Broker, topic(name, partitions));
    let Response::CreateTopics(answer) = answer else {
        panic!("{answer:?}")
    };
    let made = &answer.topics[0];
    assert_eq!(made.error_code, ErrorCode::NONE, "{made:?}");
    assert_eq!(
        (made.num_partitions, made.replication_factor),
        (partitions, 3)
    );
}

fn metadata(cluster: &mut Cluster, at: i32, names: &[&str]) -> MetadataResponse {
    let topic = |name: &&str| MetadataRequestTopic {
        name: Some((*name).to_owned()),
        ..MetadataRequestTopic::default()
    };
    let request = MetadataRequest {
        topics: Some(names.iter().map(topic).collect()),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    match cluster.call(at, ListenerKind::Broker, request) {
        Response::Metadata(response) => response,
        other => panic!("{other:?}"),
    }
}

fn ids(nodes: &[NodeId]) -> Vec<i32> {
    let mut ids: Vec<i32> = nodes.iter().map(|id| id.raw()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn any_broker_hands_on_what_the_controller_decides() {
    let mut cluster = three();
    create(&mut cluster, 2, "orders", 6);
    assert!(cluster.carried.contains(&(2, 1, ApiKey::Envelope)));
    // The broker that was asked knows it at once.
    let answer = metadata(&mut cluster, 2, &["orders"]);
    assert_eq!(answer.topics[0].error_code, ErrorCode::NONE);
    cluster.settle(1);
    for at in 1..=3 {
        let answer = metadata(&mut cluster, at, &["orders"]);
        let brokers = answer.brokers.iter();
        let brokers = brokers.map(|it| (it.node_id.raw(), it.port));
        assert_eq!(
            brokers.collect::<Vec<_>>(),
            [(1, 9001), (2, 9002), (3, 9003)]
        );
        let mut leaders = Vec::new();
        for partition in &answer.topics[0].partitions {
            assert_eq!(partition.error_code, ErrorCode::NONE);
            assert_eq!(ids(&partition.replica_nodes), [1, 2, 3]);
            assert_eq!(partition.offline_replicas, []);
            leaders.push(partition.leader_id);
        }
        assert_eq!(ids(&leaders), [1, 1, 2, 2, 3, 3], "leaders are spread");
    }
    let request = DeleteTopicsRequest {
        topics: vec![DeleteTopicState {
            name: Some("orders".to_owned()),
            topic_id: Uuid::ZERO,
        }],
        timeout_ms: 5_000,
        ..DeleteTopicsRequest::default()
    };
    let answer = cluster.call(3, ListenerKind::Broker, request);
    assert!(matches!(answer, Response::DeleteTopics(it) if !it.responses[0].error_code.is_error()));
    assert!(
        cluster
            .host(3)
            .control
            .image()
            .topic_by_name("orders")
            .is_none()
    );
}

#[test]
fn a_topic_that_somebody_asks_about_is_made_with_the_clusters_defaults() {
    let mut cluster = three();
    let answer = metadata(&mut cluster, 3, &["asked-about"]);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(answer.topics[0].error_code, unknown);
    cluster.run_until("it is made", |cluster| {
        cluster
            .host(3)
            .control
            .image()
            .topic_by_name("asked-about")
            .is_some()
    });
    let answer = metadata(&mut cluster, 3, &["asked-about"]);
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(ids(&partition.replica_nodes), [1, 2, 3]);
}

#[test]
fn c_22_a_dead_leader_is_replaced_and_its_replicas_are_offline() {
    let mut cluster = three();
    create(&mut cluster, 1, "orders", 3);
    cluster.settle(1);
    let before = metadata(&mut cluster, 1, &["orders"]).topics[0].clone();
    cluster.kill(3, false);
    cluster.run_until("the dead one is fenced", |cluster| {
        let image = cluster.host(2).control.image();
        image.broker(NodeId::new(3)).is_some_and(|it| it.fenced)
    });
    cluster.settle(1);
    for at in [1, 2] {
        let answer = metadata(&mut cluster, at, &["orders"]);
        assert_eq!(answer.brokers.len(), 2, "who is fenced is not told of");
        for partition in &answer.topics[0].partitions {
            assert_eq!(ids(&partition.offline_replicas), [3]);
            assert_eq!(ids(&partition.isr_nodes), [1, 2]);
            let mut old = before.partitions.iter();
            let old = old.find(|it| it.partition_index == partition.partition_index);
            let old = old.expect("the same partitions");
            let moved = old.leader_id == NodeId::new(3);
            assert_eq!(partition.leader_epoch, old.leader_epoch + i32::from(moved));
        }
        let request = |include_fenced_brokers| DescribeClusterRequest {
            include_fenced_brokers,
            endpoint_type: 1,
            ..DescribeClusterRequest::default()
        };
        for (fenced, count) in [(false, 2), (true, 3)] {
            let answer = cluster.call(at, ListenerKind::Broker, request(fenced));
            let Response::DescribeCluster(answer) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(answer.brokers.len(), count);
            let told = answer.brokers.iter().filter(|it| it.is_fenced);
            assert_eq!(told.count(), count - 2);
        }
    }
}

#[test]
fn a_partition_without_a_leader_says_so_and_who_may_lead_without_loss() {
    let mut cluster = three();
    cluster.create(1, "two", &[2, 3]);
    cluster.settle(1);
    cluster.kill(2, false);
    cluster.kill(3, false);
    cluster.run_until("both are fenced", |cluster| {
        let image = cluster.host(1).control.image();
        let fenced = |id| image.broker(NodeId::new(id)).is_some_and(|it| it.fenced);
        fenced(2) && fenced(3)
    });
    let answer = metadata(&mut cluster, 1, &["two"]);
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::LEADER_NOT_AVAILABLE);
    assert_eq!(partition.leader_id, NodeId::NONE);
    let request = DescribeTopicPartitionsRequest {
        topics: vec![TopicRequest {
            name: "two".to_owned(),
        }],
        response_partition_limit: 10,
        ..DescribeTopicPartitionsRequest::default()
    };
    let answer = cluster.call(1, ListenerKind::Broker, request);
    let Response::DescribeTopicPartitions(answer) = answer else {
        panic!("{answer:?}")
    };
    let partition = &answer.topics[0].partitions[0];
    let image = cluster.host(1).control.image();
    let topic = image.topic_by_name("two").expect("made");
    let known = topic.partitions.values().next().expect("one");
    assert_eq!(known.eligible_leader_replicas.len(), 1);
    let elr = Some(known.eligible_leader_replicas.clone());
    assert_eq!(partition.eligible_leader_replicas, elr);
    assert_eq!(partition.last_known_elr, Some(known.last_known_elr.clone()));
}

#[test]
fn the_quorum_and_the_controllers_are_described() {
    let mut cluster = three();
    let request = DescribeQuorumRequest {
        topics: vec![TopicData {
            topic_name: "__cluster_metadata".to_owned(),
            partitions: vec![PartitionData { partition_index: 0 }],
        }],
    };
    for at in 1..=3 {
        let answer = cluster.call(at, ListenerKind::Broker, request.clone());
        let Response::DescribeQuorum(answer) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let partition = &answer.topics[0].partitions[0];
        assert_eq!(partition.leader_id, NodeId::new(1));
        assert_eq!(partition.observers.len(), 2, "the brokers that follow");
    }
    let request = |endpoint_type| DescribeClusterRequest {
        endpoint_type,
        ..DescribeClusterRequest::default()
    };
    let described = |cluster: &mut Cluster, kind, endpoint_type| -> DescribeClusterResponse {
        match cluster.call(1, kind, request(endpoint_type)) {
            Response::DescribeCluster(answer) => answer,
            other => panic!("{other:?}"),
        }
    };
    let controllers = described(&mut cluster, ListenerKind::Controller, 2);
    assert_eq!(controllers.controller_id, NodeId::new(1));
    let told = controllers.brokers.iter();
    let told: Vec<_> = told.map(|it| (it.broker_id.raw(), it.port)).collect();
    assert_eq!(told, [(1, 9093)]);
    let mismatched = ErrorCode::MISMATCHED_ENDPOINT_TYPE;
    for (kind, wanted) in [(ListenerKind::Controller, 1), (ListenerKind::Broker, 2)] {
        assert_eq!(described(&mut cluster, kind, wanted).error_code, mismatched);
    }
}

#[test]
fn i_23_producers_of_all_brokers_get_ids_of_their_own() {
    let mut cluster = three();
    let mut ids = Vec::new();
    for round in 0..30 {
        let at = 1 + round % 3;
        let request = InitProducerIdRequest {
            transactional_id: None,
            producer_id: ProducerId::NONE,
            producer_epoch: -1,
            ..InitProducerIdRequest::default()
        };
        let answer = cluster.call(at, ListenerKind::Broker, request);
        let Response::InitProducerId(answer) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(answer.error_code, ErrorCode::NONE);
        ids.push(answer.producer_id);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 30);
}

fn coordinator(cluster: &mut Cluster, at: i32, group: &str) -> Result<i32, ErrorCode> {
    let request = FindCoordinatorRequest {
        coordinator_keys: vec![group.to_owned()],
        ..FindCoordinatorRequest::default()
    };
    let answer = cluster.call(at, ListenerKind::Broker, request);
    let Response::FindCoordinator(FindCoordinatorResponse { coordinators, .. }) = answer else {
        panic!("{answer:?}")
    };
    let found = &coordinators[0];
    if found.error_code.is_error() {
        Err(found.error_code)
    } else {
        assert_eq!(found.port, 9000 + found.node_id.raw());
        Ok(found.node_id.raw())
    }
}

/// The coordinator that every live broker names.
fn agreed(cluster: &mut Cluster, among: &[i32], group: &str) -> i32 {
    for _ in 0..400 {
        let mut found: Vec<_> = Vec::new();
        for at in among {
            found.push(coordinator(cluster, *at, group));
        }
        found.dedup();
        if let [Ok(id)] = found.as_slice()
            && among.contains(id)
        {
            return *id;
        }
        cluster.pass(50);
    }
    panic!("nobody coordinates {group}");
}

fn commit(cluster: &mut Cluster, at: i32, group: &str, offset: i64) -> ErrorCode {
    let request = OffsetCommitRequest {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: "orders".to_owned(),
            topic_id: topic_id(cluster, at),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: 0,
                committed_offset: offset,
                ..OffsetCommitRequestPartition::default()
            }],
        }],
        ..OffsetCommitRequest::default()
    };
    match cluster.call(at, ListenerKind::Broker, request) {
        Response::OffsetCommit(answer) => answer.topics[0].partitions[0].error_code,
        other => panic!("{other:?}"),
    }
}

fn topic_id(cluster: &Cluster, at: i32) -> Uuid {
    let image = cluster.host(at).control.image();
    image.topic_by_name("orders").expect("made").id.uuid()
}

fn committed(cluster: &mut Cluster, at: i32, group: &str) -> Result<i64, ErrorCode> {
    let topic_id = topic_id(cluster, at);
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: "orders".to_owned(),
                topic_id,
                partition_indexes: vec![0],
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    };
    let answer = cluster.call(at, ListenerKind::Broker, request);
    let Response::OffsetFetch(answer) = answer else {
        panic!("{answer:?}")
    };
    let group = &answer.groups[0];
    if group.error_code.is_error() {
        return Err(group.error_code);
    }
    Ok(group.topics[0].partitions[0].committed_offset)
}

#[test]
fn c_47_groups_move_with_the_leadership_of_their_partition() {
    let mut cluster = three();
    create(&mut cluster, 1, "orders", 1);
    let groups: Vec<String> = (0..12).map(|number| format!("group-{number}")).collect();
    let all = [1, 2, 3];
    let mut homes = Vec::new();
    for group in &groups {
        let home = agreed(&mut cluster, &all, group);
        let mut code = commit(&mut cluster, home, group, 7);
        for _ in 0..100 {
            if !code.is_error() {
                break;
            }
            cluster.pass(50);
            code = commit(&mut cluster, home, group, 7);
        }
        assert_eq!(code, ErrorCode::NONE, "{group} at {home}");
        homes.push(home);
    }
    let image = cluster.host(1).control.image();
    let offsets = image.topic_by_name("__consumer_offsets").expect("made");
    let factors = offsets
        .partitions
        .values()
        .map(|it| it.assigned_replicas.len());
    assert!(factors.eq([3; 6]), "as many as there are brokers");
    for at in all {
        assert!(homes.contains(&at), "{homes:?}");
    }
    // Who does not lead the partition says so.
    let other = 1 + homes[0] % 3;
    assert_eq!(
        committed(&mut cluster, other, &groups[0]),
        Err(ErrorCode::NOT_COORDINATOR)
    );
    cluster.stop(3);
    for group in &groups {
        let home = agreed(&mut cluster, &[1, 2], group);
        let mut found = committed(&mut cluster, home, group);
        for _ in 0..100 {
            if found.is_ok() {
                break;
            }
            cluster.pass(50);
            found = committed(&mut cluster, home, group);
        }
        assert_eq!(found, Ok(7), "{group} at {home}");
    }
}

#[test]
fn a_broker_whose_registration_was_replaced_registers_again() {
    let mut cluster = three();
    create(&mut cluster, 1, "orders", 3);
    cluster.settle(1);
    let image = cluster.host(1).control.image();
    let broker = image.broker(NodeId::new(2)).expect("registered").clone();
    // What an earlier life of broker 2 sent comes late, and in its directories.
    let feature = |name: &str| Feature {
        name: name.to_owned(),
        min_supported_version: 0,
        max_supported_version: 99,
    };
    let names = [
        "metadata.version",
        "eligible.leader.replicas.version",
        "group.version",
    ];
    let request = BrokerRegistrationRequest {
        broker_id: broker.id,
        cluster_id: "sFZgKj3kQfiXtPP7KgFf4w".to_owned(),
        incarnation_id: Uuid::from_u128(7),
        features: names.into_iter().map(feature).collect(),
        log_dirs: broker.directories.iter().map(|it| it.uuid()).collect(),
        ..BrokerRegistrationRequest::default()
    };
    let answer = cluster.call(1, ListenerKind::Controller, request);
    let Response::BrokerRegistration(answer) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(answer.error_code, ErrorCode::NONE);
    cluster.run_until("it is itself again", |cluster| {
        let image = cluster.host(1).control.image();
        let now = image.broker(broker.id).expect("registered");
        now.incarnation == broker.incarnation && now.epoch > broker.epoch && !now.fenced
    });
    cluster.run_until("it is in sync again", |cluster| {
        let image = cluster.host(1).control.image();
        let mut partitions = image.partitions();
        partitions.all(|(_, _, it)| it.in_sync_replicas.len() == it.assigned_replicas.len())
    });
}

#[test]
fn a_request_waits_for_a_controller_that_is_down() {
    let mut cluster = Cluster::serving(&[
        (100, Role::Controller, QUICK),
        (1, Role::Broker, QUICK),
        (2, Role::Broker, QUICK),
    ]);
    let mut request = topic("late", 1);
    request.topics[0].replication_factor = 2;
    let request = Request::from(request);
    let ask = |cluster: &mut Cluster| {
        cluster.on(2, |host| {
            let client = host.connect(ListenerKind::Broker);
            host.ask(client, &request, 7);
            client
        })
    };
    let code = |cluster: &mut Cluster, client| {
        let answer = cluster.host_mut(2).answer(client, &request, 7);
        answer.map(|answer| match answer {
            Response::CreateTopics(answer) => answer.topics[0].error_code,
            other => panic!("{other:?}"),
        })
    };
    cluster.kill(100, false);
    let client = ask(&mut cluster);
    cluster.pass(1_000);
    assert_eq!(code(&mut cluster, client), None);
    cluster.start(100);
    cluster.pass(3_000);
    assert_eq!(code(&mut cluster, client), Some(ErrorCode::NONE));
    // For as long as the client said, and a little more.
    cluster.kill(100, false);
    let client = ask(&mut cluster);
    cluster.pass(5_000);
    assert_eq!(code(&mut cluster, client), None);
    cluster.pass(600);
    assert_eq!(
        code(&mut cluster, client),
        Some(ErrorCode::REQUEST_TIMED_OUT)
    );
}
