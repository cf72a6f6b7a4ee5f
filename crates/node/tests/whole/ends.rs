//! Ends that are not the usual one, and what the next start makes of them.

use highwater_disk::{DiskErrorKind, DiskOp, Fault, FaultEffect, FaultPath, MemDisk};
use highwater_node::{LogDirNumber, MachineId, Part, Work};
use highwater_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use highwater_protocol::messages::delete_topics_request::DeleteTopicState;
use highwater_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use highwater_protocol::messages::{CreateTopicsRequest, DeleteTopicsRequest, ProduceRequest};
use highwater_protocol::{ListenerKind, ProduceView, Request, Response};
use highwater_records::{BatchBuilder, BatchOptions};
use highwater_types::{ErrorCode, Millis, WallMs};

use crate::host::{Host, config, file, formatted};

fn create_request(name: &str, partitions: i32) -> Request {
    let topic = CreatableTopic {
        name: name.to_owned(),
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    }
    .into()
}

fn create(host: &mut Host, name: &str, partitions: i32) -> ErrorCode {
    match host.call(ListenerKind::Broker, create_request(name, partitions)) {
        Response::CreateTopics(answer) => answer.topics[0].error_code,
        other => panic!("{other:?}"),
    }
}

fn delete_request(name: &str) -> Request {
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

fn delete(host: &mut Host, name: &str) {
    match host.call(ListenerKind::Broker, delete_request(name)) {
        Response::DeleteTopics(answer) => {
            assert_eq!(answer.responses[0].error_code, ErrorCode::NONE);
        }
        other => panic!("{other:?}"),
    }
}

fn send_produce(host: &mut Host, topic: &str) -> (u64, Request) {
    let mut builder = BatchBuilder::new();
    for _ in 0..3 {
        let appended = builder.append(WallMs::new(1_796_100_000_000), None, Some(b"v"), &[]);
        appended.expect("fits");
    }
    let records = builder.finish(&BatchOptions::default()).expect("a batch");
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: topic.to_owned(),
            partition_data: vec![PartitionProduceData {
                index: 0,
                records: Some(records.into()),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    let view = ProduceView::from_message(&request, 12).expect("a request");
    let request = Request::Produce(view);
    let client = host.connect(ListenerKind::Broker);
    host.ask(client, &request, 12);
    (client, request)
}

fn produce(host: &mut Host, topic: &str) {
    let (client, request) = send_produce(host, topic);
    match host.answer(client, &request, 12) {
        Some(Response::Produce(answer)) => {
            let row = &answer.responses[0].partition_responses[0];
            assert_eq!(row.error_code, ErrorCode::NONE);
        }
        other => panic!("{other:?}"),
    }
}

fn checkpoints(dirs: &[MemDisk]) -> String {
    let files = [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ];
    let texts = files.map(|name| file(dirs, name).unwrap_or_default());
    String::from_utf8(texts.concat()).expect("text")
}

#[test]
fn a_topic_that_is_made_again_is_not_opened_by_the_checkpoints_of_the_old_one() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "t", 1);
    produce(&mut host, "t");
    host.pass(Millis::new(70_000));
    assert!(
        checkpoints(&dirs).contains("t 0 3"),
        "{}",
        checkpoints(&dirs)
    );
    delete(&mut host, "t");
    create(&mut host, "t", 1);
    host.advance(Millis::new(1));
    assert!(
        !checkpoints(&dirs).contains("t 0 3"),
        "{}",
        checkpoints(&dirs)
    );
    drop(host);
    dirs[0].crash();
    let host = Host::serving(&config, &dirs);
    let told = host.events.iter().find(|it| it.contains("data-loss"));
    assert_eq!(told, None);
}

#[test]
fn nothing_is_decided_after_the_metadata_could_not_be_kept() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.hold = |work| matches!(work, Work::SyncLog(_));
    let client = host.connect(ListenerKind::Controller);
    let made = create_request("t", 1);
    host.ask(client, &made, 7);
    // What the creation waits for is given up, but the sync that would commit it is still out.
    let offline = Part::DirOffline {
        dir: LogDirNumber(0),
        why: "it burns".to_owned(),
    };
    let input = highwater_node::Input::Part {
        from: MachineId::Shard(0),
        part: offline,
    };
    host.step(MachineId::Control, input);
    assert_eq!(host.answer(client, &made, 7).map(|_| ()), None);
    let client = host.connect(ListenerKind::Controller);
    let deleted = delete_request("t");
    host.ask(client, &deleted, 6);
    host.release();
    match host.answer(client, &deleted, 6) {
        Some(Response::DeleteTopics(answer)) => {
            let code = answer.responses[0].error_code;
            assert_eq!(code, ErrorCode::NOT_CONTROLLER);
        }
        other => panic!("{other:?}"),
    }
    assert!(host.try_stop(20), "{:?}", host.events);
}

#[test]
fn a_topic_is_made_whole_or_not_at_all() {
    let config = config("internal.metadata.log.segment.bytes=2000\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    assert_eq!(create(&mut host, "large", 60), ErrorCode::POLICY_VIOLATION);
    assert_eq!(create(&mut host, "small", 6), ErrorCode::NONE);
    let image = host.control.image();
    assert!(image.topic_by_name("large").is_none());
    assert!(image.topic_by_name("small").is_some());
}

#[test]
fn a_clean_stop_stays_clean_over_a_life_that_never_registered() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "t", 1);
    host.stop();
    let mut short = Host::start(&config, &dirs);
    short.hold = |work| matches!(work, Work::SyncLog(_));
    short.tick();
    for machine in [MachineId::Control, MachineId::Shard(0)] {
        short.step(machine, highwater_node::Input::Stop);
    }
    short.release();
    assert!(short.stopped, "{:?}", short.events);
    let host = Host::serving(&config, &dirs);
    let image = host.control.image();
    assert!(
        image.partitions().all(|(_, _, it)| !it.recovering),
        "it was taken for a loss"
    );
}

/// Old and new topics of one name mostly live on different shards, which hear of both at once.
#[test]
fn topics_that_are_made_again_in_one_breath_are_served() {
    let config = config("num.shards=2\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let names: Vec<String> = (0..12).map(|number| format!("t{number}")).collect();
    for name in &names {
        assert_eq!(create(&mut host, name, 1), ErrorCode::NONE);
        produce(&mut host, name);
    }
    host.hold = |work| matches!(work, Work::SyncLog(_));
    for name in &names {
        for (request, version) in [(delete_request(name), 6), (create_request(name, 1), 7)] {
            let client = host.connect(ListenerKind::Controller);
            host.ask(client, &request, version);
        }
    }
    host.release();
    host.pass(Millis::new(100));
    for name in &names {
        produce(&mut host, name);
    }
}

/// A disk without space for the small files that go with a flush: it is tried again once a second,
/// and not in a circle.
#[test]
fn a_flush_without_space_is_tried_again_later() {
    let config = config("");
    let dirs = formatted(&config);
    let full = |dir: &str, times| Fault {
        path: FaultPath::EndsWith(format!("{dir}/leader-epoch-checkpoint.tmp")),
        op: DiskOp::Open,
        after: 0,
        times,
        effect: FaultEffect::Error(DiskErrorKind::Full),
    };
    dirs[0].inject(full("__cluster_metadata-0", 2));
    let mut host = Host::start(&config, &dirs);
    assert!(host.try_serve(1000), "{:?}", host.events);
    let started = host.now.mono;
    assert_eq!(
        started.since(highwater_types::Mono::from_micros(1_000_000)),
        Millis::new(2000)
    );
    let topic = CreatableTopic {
        name: "t".to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        configs: vec![CreatableTopicConfig {
            name: "flush.messages".to_owned(),
            value: Some("1".to_owned()),
        }],
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    };
    dirs[0].inject(full("t-0", 3));
    host.call(ListenerKind::Broker, request);
    let (client, request) = send_produce(&mut host, "t");
    host.advance(Millis::new(500));
    assert!(host.answer(client, &request, 12).is_none(), "not flushed");
    host.pass(Millis::new(3000));
    assert!(host.answer(client, &request, 12).is_some(), "flushed");
    let tried = host.events.iter().filter(|it| it.contains("tried again"));
    assert_eq!(tried.count(), 3, "{:?}", host.events);
}
