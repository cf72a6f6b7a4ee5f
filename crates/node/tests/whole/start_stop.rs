//! The way up and down.

use std::path::Path;

use highwater_disk::Disk as _;
use highwater_log::checkpoint::CleanShutdown;
use highwater_metadata::MetadataImage;
use highwater_node::Work;
use highwater_protocol::messages::create_topics_request::CreatableTopic;
use highwater_protocol::messages::{CreateTopicsRequest, MetadataRequest};
use highwater_protocol::{ListenerKind, Response};
use highwater_types::{Millis, NodeId, PartitionIndex};

use crate::host::{Host, config, file, formatted};

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

fn leader(image: &MetadataImage, topic: &str) -> (i32, i32) {
    let topic = image.topic_by_name(topic).expect("made");
    let partition = topic.partitions.get(&PartitionIndex::new(0)).expect("made");
    (partition.leader.raw(), partition.leader_epoch.raw())
}

#[test]
fn a_new_node_serves_and_makes_topics() {
    for shards in 1..=3 {
        let config = config(&format!("num.shards={shards}\n"));
        let dirs = formatted(&config);
        let mut host = Host::serving(&config, &dirs);
        create(&mut host, "orders", 4);
        assert_eq!(leader(host.control.image(), "orders"), (1, 0));
        let Response::Metadata(answer) = host.call(
            ListenerKind::Broker,
            MetadataRequest {
                topics: None,
                ..Default::default()
            },
        ) else {
            panic!("another answer")
        };
        assert_eq!(answer.topics.len(), 1);
        assert_eq!(answer.topics[0].partitions.len(), 4);
        assert!(
            answer.topics[0]
                .partitions
                .iter()
                .all(|it| !it.error_code.is_error())
        );
        host.stop();
    }
}

#[test]
fn few_flushes_stand_between_start_and_service() {
    let config = config("");
    let dirs = formatted(&config);
    let host = Host::serving(&config, &dirs);
    assert!(host.syncs <= 4, "{} flushes", host.syncs);
    assert_eq!(
        host.now
            .mono
            .since(highwater_types::Mono::from_micros(1_000_000)),
        Millis::ZERO
    );
}

#[test]
fn a_clean_stop_leaves_markers_and_the_next_start_scans_nothing() {
    let config = config("log.dirs=a,b\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "orders", 2);
    let epoch = host
        .control
        .image()
        .broker(NodeId::new(1))
        .expect("registered")
        .epoch;
    host.stop();
    for dir in &dirs {
        let marker = dir
            .read(Path::new(".kafka_cleanshutdown"))
            .expect("readable");
        let marker = CleanShutdown::decode(&marker.expect("there")).expect("a marker");
        assert_eq!(marker.broker_epoch, epoch);
        drop(dir.lock().expect("the locks are free again"));
    }
    let host = Host::serving(&config, &dirs);
    assert_eq!(
        file(&dirs, ".kafka_cleanshutdown"),
        None,
        "removed at the start"
    );
    // The stop made the partition leaderless; the start gave it back: two epochs, as in Kafka.
    assert_eq!(leader(host.control.image(), "orders"), (1, 2));
    let image = host.control.image();
    let topic = image.topic_by_name("orders").expect("made");
    assert!(
        topic.partitions.values().all(|it| !it.recovering),
        "it was clean"
    );
}

#[test]
fn after_a_kill_the_node_serves_again_at_once() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "orders", 1);
    drop(host);
    for dir in &dirs {
        dir.crash();
    }
    // The old session is live still: its broker was heard of a moment ago.
    let host = Host::serving(&config, &dirs);
    let (leader, epoch) = leader(host.control.image(), "orders");
    assert_eq!((leader, epoch), (1, 2));
    let topic = host.control.image().topic_by_name("orders").expect("made");
    assert!(
        topic.partitions.values().all(|it| it.recovering),
        "data may be missing"
    );
    assert_eq!(
        host.now
            .mono
            .since(highwater_types::Mono::from_micros(1_000_000)),
        Millis::ZERO
    );
}

#[test]
fn i_11_each_start_has_a_quorum_epoch_of_its_own() {
    let config = config("");
    let dirs = formatted(&config);
    for epoch in 1..=3 {
        let host = Host::serving(&config, &dirs);
        let state = file(&dirs, "__cluster_metadata-0/quorum-state").expect("there");
        let text = String::from_utf8(state).expect("text");
        assert_eq!(
            text,
            format!(
                "{{\"leaderId\":1,\"leaderEpoch\":{epoch},\"votedId\":-1,\"votedDirectoryId\":\
                 \"AAAAAAAAAAAAAAAAAAAAAA\",\"data_version\":1}}"
            )
        );
        drop(host);
        dirs[0].crash();
    }
}

#[test]
fn a_failed_flush_of_the_metadata_log_stops_the_node() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.hold = |work| matches!(work, Work::SyncLog(_));
    let client = host.connect(ListenerKind::Controller);
    let topic = CreatableTopic {
        name: "orders".to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    }
    .into();
    host.ask(client, &request, 7);
    assert!(
        host.answer(client, &request, 7).is_none(),
        "not committed yet"
    );
    assert!(
        host.control.image().topic_by_name("orders").is_none(),
        "nor visible"
    );
    dirs[0].crash();
    host.release();
    assert!(
        host.events.iter().any(|it| it.starts_with("stopping: ")),
        "{:?}",
        host.events
    );
    assert!(
        host.answer(client, &request, 7).is_none(),
        "never acknowledged"
    );
}

#[test]
fn answers_wait_until_the_records_are_committed() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.hold = |work| matches!(work, Work::SyncLog(_));
    let client = host.connect(ListenerKind::Controller);
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: "orders".to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    }
    .into();
    host.ask(client, &request, 7);
    assert_eq!(host.answer(client, &request, 7), None);
    // A second request sees the first one's topic, and waits behind it.
    let other = host.connect(ListenerKind::Controller);
    host.ask(other, &request, 7);
    assert_eq!(host.answer(other, &request, 7), None);
    host.release();
    let codes: Vec<i16> = [client, other]
        .into_iter()
        .map(|client| match host.answer(client, &request, 7) {
            Some(Response::CreateTopics(answer)) => answer.topics[0].error_code.raw(),
            it => panic!("{it:?}"),
        })
        .collect();
    assert_eq!(codes, [0, 36]);
}

#[test]
fn an_idle_node_writes_and_flushes_next_to_nothing() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let before = (host.syncs, dirs[0].ops_count());
    host.pass(Millis::new(300_000));
    assert!(
        host.syncs - before.0 <= 6,
        "{} flushes in five minutes",
        host.syncs - before.0
    );
    assert!(host.control.is_serving());
}

#[test]
fn np_06_a_stall_of_the_process_fences_nobody() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.advance(Millis::new(60_000));
    assert!(host.control.is_serving(), "{:?}", host.events);
    assert!(
        !host.events.iter().any(|it| it.contains("fenced")),
        "{:?}",
        host.events
    );
}

/// A topic is being made and its flush hangs, for longer than any session lasts.
#[test]
fn np_06_a_flush_that_hangs_fences_nobody() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.hold = |work| matches!(work, Work::SyncLog(_));
    let client = host.connect(ListenerKind::Broker);
    let request: highwater_protocol::Request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: "orders".to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        timeout_ms: 120_000,
        ..CreateTopicsRequest::default()
    }
    .into();
    host.ask(client, &request, 7);
    let heartbeats = host.heartbeats;
    host.pass(Millis::new(60_000));
    assert_eq!(host.answer(client, &request, 7), None);
    assert!(
        host.heartbeats >= heartbeats + 25,
        "heartbeats waited behind the flush"
    );
    host.release();
    host.pass(Millis::new(20_000));
    assert!(host.answer(client, &request, 7).is_some());
    assert!(host.control.is_serving(), "{:?}", host.events);
    let fenced = |it: &String| it.contains("fenced");
    assert!(!host.events.iter().any(fenced), "{:?}", host.events);
}

/// The broker is fenced at its own wish, and the heartbeats with which it comes back wait for a
/// flush that hangs.
#[test]
fn np_06_an_own_answer_held_back_is_no_silence() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.hold = |work| matches!(work, Work::SyncLog(_));
    let image = host.control.image().clone();
    let own = image.broker(NodeId::new(1)).expect("registered");
    let want_fence = highwater_protocol::messages::BrokerHeartbeatRequest {
        broker_id: NodeId::new(1),
        broker_epoch: own.epoch.raw(),
        current_metadata_offset: image.end.offset.raw() - 1,
        want_fence: true,
        ..Default::default()
    };
    let client = host.connect(ListenerKind::Controller);
    let request = highwater_protocol::Request::from(want_fence);
    host.ask(client, &request, 1);
    host.pass(Millis::new(30_000));
    assert_eq!(host.answer(client, &request, 1), None, "it wrote a record");
    host.release();
    host.pass(Millis::new(10_000));
    assert!(host.control.is_serving(), "{:?}", host.events);
    let silent = |it: &String| it.contains("was silent");
    assert!(!host.events.iter().any(silent), "{:?}", host.events);
}

/// Everything that came during a standstill is worked off before anybody is judged.
#[test]
fn np_06_inputs_that_queued_in_a_standstill_come_before_the_judgement() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    host.pass(Millis::new(3_000));
    // A minute passes without a step; the first input afterwards is some request, not a tick.
    host.now.mono = host.now.mono.plus(Millis::new(60_000));
    let client = host.connect(ListenerKind::Controller);
    let request = highwater_protocol::Request::from(
        highwater_protocol::messages::ApiVersionsRequest::default(),
    );
    host.ask(client, &request, 0);
    assert!(host.answer(client, &request, 0).is_some());
    host.tick();
    host.pass(Millis::new(20_000));
    let fenced = |it: &String| it.contains("fenced");
    assert!(!host.events.iter().any(fenced), "{:?}", host.events);
}

#[test]
fn a_lost_directory_leaves_the_registration_and_gets_no_marker() {
    use highwater_node::{Input, LogDirNumber, MachineId, Part};
    let config = config("log.dirs=a,b\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let before = host
        .control
        .image()
        .broker(NodeId::new(1))
        .expect("registered")
        .clone();
    assert_eq!(before.directories.len(), 2);
    let part = Part::DirOffline {
        dir: LogDirNumber(1),
        why: "a test".to_owned(),
    };
    host.step(
        MachineId::Control,
        Input::Part {
            from: MachineId::Shard(0),
            part,
        },
    );
    host.pass(Millis::new(3000));
    let after = host
        .control
        .image()
        .broker(NodeId::new(1))
        .expect("registered")
        .clone();
    assert_eq!(after.directories, before.directories[..1]);
    assert!(host.control.is_serving());
    host.stop();
    assert!(
        dirs[0]
            .read(Path::new(".kafka_cleanshutdown"))
            .expect("readable")
            .is_some()
    );
    assert!(
        dirs[1]
            .read(Path::new(".kafka_cleanshutdown"))
            .expect("readable")
            .is_none()
    );
}

#[test]
fn the_directory_of_the_metadata_log_is_the_nodes_life() {
    use highwater_node::{Input, LogDirNumber, MachineId, Part};
    let config = config("log.dirs=a,b\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    let part = Part::DirOffline {
        dir: LogDirNumber(0),
        why: "a test".to_owned(),
    };
    host.step(
        MachineId::Control,
        Input::Part {
            from: MachineId::Shard(0),
            part,
        },
    );
    host.pass(Millis::new(1000));
    assert!(host.stopped, "{:?}", host.events);
    assert!(
        host.events.iter().any(|it| it.contains("a test")),
        "{:?}",
        host.events
    );
}
