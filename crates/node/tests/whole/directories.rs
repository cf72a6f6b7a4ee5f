//! Several log directories: the metadata learn in which of them each replica is (KIP-858).

use std::collections::BTreeSet;

use highwater_disk::{Blocking, MemDisk};
use highwater_node::{Level, NodeConfig, Work, format};
use highwater_protocol::messages::create_topics_request::CreatableTopic;
use highwater_protocol::messages::{
    AssignReplicasToDirsRequest, CreateTopicsRequest, DescribeConfigsRequest,
    assign_replicas_to_dirs_request::{DirectoryData, PartitionData, TopicData},
    describe_configs_request::DescribeConfigsResource,
};
use highwater_protocol::{ListenerKind, Request, Response};
use highwater_types::{DirectoryId, Millis, NodeId, Now, Uuid};

use crate::host::{Host, config, formatted, options};

const OWN: NodeId = NodeId::new(1);

fn create(host: &mut Host, name: &str, partitions: i32) {
    let topic = CreatableTopic {
        name: name.to_owned(),
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    };
    let Response::CreateTopics(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    assert!(!answer.topics[0].error_code.is_error(), "{answer:?}");
}

/// Where the metadata say that the partitions of a topic are, by number.
fn directories(host: &Host, topic: &str) -> Vec<DirectoryId> {
    let topic = host.control.image().topic_by_name(topic).expect("made");
    let partitions = topic.partitions.values();
    partitions.map(|it| it.directory(OWN)).collect()
}

/// Where the shards have them.
fn places(host: &Host, config: &NodeConfig, topic: &str) -> Vec<String> {
    let all = host
        .shards
        .iter()
        .flat_map(|shard| shard.partitions().iter());
    let mut found: Vec<_> = all
        .filter(|it| it.name().topic.as_str() == topic)
        .map(|it| {
            (
                it.name().partition,
                config.log_dirs[usize::from(it.dir().0)].clone(),
            )
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, dir)| dir).collect()
}

fn at_level(config: &NodeConfig, level: i16) -> Vec<MemDisk> {
    let dirs: Vec<_> = config.log_dirs.iter().map(MemDisk::new).collect();
    let mut options = options();
    options.features = vec![("metadata.version".to_owned(), level)];
    format(
        config,
        &dirs,
        &options,
        Now::default(),
        [9; 32],
        &Blocking::enter(),
    )
    .expect("formatted");
    dirs
}

#[test]
fn the_metadata_learn_where_each_replica_is() {
    for shards in 1..=2 {
        let config = config(&format!("log.dirs=a,b\nnum.shards={shards}\n"));
        let dirs = formatted(&config);
        let mut host = Host::serving(&config, &dirs);
        create(&mut host, "orders", 6);
        host.pass(Millis::new(1_000));
        let told = directories(&host, "orders");
        let own = host
            .control
            .image()
            .broker(OWN)
            .expect("registered")
            .clone();
        assert!(
            told.iter().all(|it| own.directories.contains(it)),
            "{told:?}"
        );
        let places = places(&host, &config, "orders");
        assert_eq!(
            places.iter().collect::<BTreeSet<_>>().len(),
            2,
            "both are used"
        );
        for (told, place) in told.iter().zip(&places) {
            let number = config
                .log_dirs
                .iter()
                .position(|it| it == place)
                .expect("one of them");
            assert_eq!(*told, own.directories[number], "{place}");
        }
        // The next life finds them where they are, and has nothing to tell.
        let end = host.control.metadata_high_watermark();
        host.pass(Millis::new(5_000));
        assert_eq!(
            host.control.metadata_high_watermark(),
            end,
            "it was told once"
        );
        host.stop();
        let mut host = Host::serving(&config, &dirs);
        host.pass(Millis::new(1_000));
        assert_eq!(directories(&host, "orders"), told);
        host.stop();
    }
}

/// The request is told again until the controller takes it.
#[test]
fn directories_are_told_again_after_a_failure() {
    let config = config("log.dirs=a,b\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.lose_assignments = 3;
    create(&mut host, "orders", 2);
    host.pass(Millis::new(500));
    assert_eq!(directories(&host, "orders"), [DirectoryId::UNASSIGNED; 2]);
    host.pass(Millis::new(3_000));
    assert_eq!(host.lose_assignments, 0);
    let told = directories(&host, "orders");
    assert!(!told.contains(&DirectoryId::UNASSIGNED), "{told:?}");
}

#[test]
fn metadata_of_an_old_level_are_not_told() {
    let config = config("log.dirs=a,b\n");
    let dirs = at_level(&config, 15);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "orders", 2);
    host.pass(Millis::new(15_000));
    assert!(host.control.is_serving());
    let complaint = |it: &String| it.contains("directories of replicas");
    assert!(!host.events.iter().any(complaint), "{:?}", host.events);
}

#[test]
fn strangers_are_refused_by_the_controller() {
    let config = config("log.dirs=a,b\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "orders", 1);
    let image = host.control.image().clone();
    let own = image.broker(OWN).expect("registered");
    let topic = image.topic_by_name("orders").expect("made").id;
    let ask = |host: &mut Host, broker_epoch: i64, topic_id: Uuid, partition_index: i32| {
        let request = AssignReplicasToDirsRequest {
            broker_id: OWN,
            broker_epoch,
            directories: vec![DirectoryData {
                id: own.directories[0].uuid(),
                topics: vec![TopicData {
                    topic_id,
                    partitions: vec![PartitionData { partition_index }],
                }],
            }],
        };
        let Response::AssignReplicasToDirs(answer) = host.call(ListenerKind::Controller, request)
        else {
            panic!("another answer")
        };
        let replica = answer.directories.first();
        let replica = replica.map(|it| it.topics[0].partitions[0].error_code.raw());
        (answer.error_code.raw(), replica)
    };
    let epoch = own.epoch.raw();
    assert_eq!(ask(&mut host, epoch, topic.uuid(), 0), (0, Some(0)));
    assert_eq!(ask(&mut host, epoch, topic.uuid(), 7), (0, Some(3)));
    assert_eq!(ask(&mut host, epoch, topic.uuid(), -7), (0, Some(3)));
    assert_eq!(ask(&mut host, epoch, Uuid::ZERO, 0), (0, Some(100)));
    assert_eq!(ask(&mut host, epoch + 1, topic.uuid(), 0), (77, None));
    assert_eq!(ask(&mut host, -1, topic.uuid(), 0), (77, None));
}

/// Kafka cannot encode a text that repeats 32 KiB of the request, and answers -1 for all of it.
#[test]
fn an_answer_whose_text_fits_no_field_is_an_unexpected_error() {
    use highwater_protocol::messages::create_topics_request::CreatableTopicConfig;
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let topic = |name: &str, config: Option<String>| CreatableTopic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        configs: config
            .map(|name| CreatableTopicConfig {
                name,
                value: Some("1".to_owned()),
            })
            .into_iter()
            .collect(),
        ..CreatableTopic::default()
    };
    let long = "x".repeat(0x7fff);
    for (kind, version) in [
        (ListenerKind::Broker, 2),
        (ListenerKind::Broker, 4),
        (ListenerKind::Broker, 7),
        (ListenerKind::Controller, 3),
        (ListenerKind::Controller, 7),
    ] {
        let client = host.connect(kind);
        let request: Request = CreateTopicsRequest {
            topics: vec![topic("bad", Some(long.clone())), topic("good", None)],
            validate_only: true,
            ..CreateTopicsRequest::default()
        }
        .into();
        host.ask(client, &request, version);
        let answer = (0..100).find_map(|_| {
            host.advance(Millis::new(10));
            host.answer(client, &request, version)
        });
        let Some(Response::CreateTopics(answer)) = answer else {
            panic!("{answer:?}")
        };
        let rows = answer.topics.iter();
        let rows: Vec<_> = rows
            .map(|it| (it.error_code.raw(), it.error_message.is_some()))
            .collect();
        assert_eq!(rows, [(-1, false), (-1, false)], "{kind:?} v{version}");
    }
    assert!(!could_not_encode(&host));
    assert!(host.control.is_serving());
}

/// The same of DescribeConfigs.
#[test]
fn a_config_resource_whose_name_fits_no_text_is_an_unexpected_error() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let long = "x".repeat(0x7fff);
    let resource = |name: &str| DescribeConfigsResource {
        resource_type: 4,
        resource_name: name.to_owned(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource(&long), resource("1")],
        ..DescribeConfigsRequest::default()
    };
    let Response::DescribeConfigs(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    let codes: Vec<i16> = answer
        .results
        .iter()
        .map(|it| it.error_code.raw())
        .collect();
    assert_eq!(codes, [-1, -1]);
    assert!(!could_not_encode(&host));
}

fn could_not_encode(host: &Host) -> bool {
    let events = host.events.iter();
    events
        .into_iter()
        .any(|it| it.contains("could not be encoded"))
}

/// A flush that hangs holds back what depends on it, and the tell of directories goes through.
#[test]
fn directories_are_told_after_a_flush_that_hung() {
    let config = config("log.dirs=a,b\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "orders", 2);
    host.hold = |work| matches!(work, Work::SyncLog(_));
    host.pass(Millis::new(20_000));
    host.release();
    host.pass(Millis::new(11_000));
    let told = directories(&host, "orders");
    assert!(!told.contains(&DirectoryId::UNASSIGNED), "{told:?}");
    let loud = |it: &String| it.contains(&format!("{:?}", Level::Error));
    assert!(!host.events.iter().any(loud), "{:?}", host.events);
}
