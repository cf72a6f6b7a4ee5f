//! Data directories that a running Apache Kafka wrote come up and serve.

use std::collections::BTreeSet;

use highwater_node::NodeConfig;
use highwater_protocol::messages::MetadataRequest;
use highwater_protocol::{ListenerKind, Response};

use crate::host::{Host, config, file, fixture};

fn names(host: &mut Host) -> BTreeSet<String> {
    let request = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let Response::Metadata(answer) = host.call(ListenerKind::Broker, request) else {
        panic!("another answer")
    };
    assert_eq!(answer.cluster_id.as_deref(), Some("sFZgKj3kQfiXtPP7KgFf4w"));
    for topic in &answer.topics {
        assert!(!topic.error_code.is_error(), "{topic:?}");
        for partition in &topic.partitions {
            assert!(!partition.error_code.is_error(), "{topic:?}");
            assert_eq!(partition.leader_id.raw(), 1);
        }
    }
    answer.topics.into_iter().filter_map(|it| it.name).collect()
}

fn kafka_config() -> NodeConfig {
    config("metadata.log.max.record.bytes.between.snapshots=100000\n")
}

#[test]
fn a_directory_stopped_cleanly_serves_its_topics() {
    let dirs = fixture("one-node-clean", "");
    let mut host = Host::serving(&kafka_config(), &dirs);
    let names = names(&mut host);
    assert_eq!(names.len(), 15, "{names:?}");
    assert!(names.contains("plain") && names.contains("__consumer_offsets"));
    let state = file(&dirs, "__cluster_metadata-0/quorum-state").expect("there");
    assert!(
        String::from_utf8(state)
            .expect("text")
            .contains("\"leaderEpoch\":4")
    );
    // Clean: no partition has to recover.
    let image = host.control.image();
    assert!(image.partitions().all(|(_, _, it)| !it.recovering));
    // Nothing of Kafka's was set aside.
    assert!(
        !host.events.iter().any(|it| it.contains("stray")),
        "{:?}",
        host.events
    );
    host.stop();
    // And once more, now a directory of ours.
    let mut host = Host::serving(&kafka_config(), &dirs);
    assert_eq!(self::names(&mut host).len(), 15);
}

#[test]
fn a_directory_killed_under_load_serves_its_topics() {
    let dirs = fixture("one-node-killed", "");
    let mut host = Host::serving(&kafka_config(), &dirs);
    assert!(names(&mut host).len() >= 15);
    let image = host.control.image();
    assert!(
        image.partitions().any(|(_, _, it)| it.recovering),
        "it was not stopped cleanly"
    );
}

#[test]
fn a_directory_formatted_by_kafka_begins_with_its_bootstrap_records() {
    let dirs = fixture("one-node-formatted", "");
    let host = Host::serving(&kafka_config(), &dirs);
    let image = host.control.image();
    assert_eq!(
        image.features.level("share.version"),
        2,
        "higher levels found on disk open"
    );
    assert!(image.security.scram.contains_key(&("boot".to_owned(), 1)));
}

#[test]
fn a_static_quorum_opens_too() {
    let dirs = fixture("static-quorum-clean", "");
    let config = config(
        "controller.quorum.voters=1@127.0.0.1:26093\n\
         listeners=CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:26093\n",
    );
    let identity = file(&dirs, "meta.properties").expect("there");
    assert!(
        String::from_utf8(identity)
            .expect("text")
            .contains("node.id=1")
    );
    let mut host = Host::serving(&config, &dirs);
    // kraft.version is 0 with a static quorum, and what is 0 is not told.
    for kind in [ListenerKind::Broker, ListenerKind::Controller] {
        let request = highwater_protocol::messages::ApiVersionsRequest {
            client_software_name: "test".to_owned(),
            client_software_version: "1".to_owned(),
            ..Default::default()
        };
        let Response::ApiVersions(answer) = host.call(kind, request) else {
            panic!("another answer")
        };
        let finalized = answer.finalized_features.iter();
        let names: Vec<&str> = finalized.map(|it| it.name.as_str()).collect();
        assert!(!names.contains(&"kraft.version"), "{kind:?}: {names:?}");
        let supported = answer.supported_features.iter();
        let kraft = supported.filter(|it| it.name == "kraft.version").count();
        assert_eq!(kraft, 1, "{kind:?}");
    }
    let state = file(&dirs, "__cluster_metadata-0/quorum-state").expect("there");
    assert_eq!(
        String::from_utf8(state).expect("text"),
        "{\"clusterId\":\"\",\"leaderId\":1,\"leaderEpoch\":2,\"votedId\":-1,\"appliedOffset\":0,\
         \"currentVoters\":[{\"voterId\":1}],\"data_version\":0}"
    );
    host.stop();
}

#[test]
fn a_quorum_of_three_is_refused_in_words() {
    let dirs = fixture("three-nodes-clean", "node-1");
    assert!(file(&dirs, "meta.properties").is_some());
    let why = Host::try_start(&config(""), &dirs)
        .err()
        .expect("refused")
        .0;
    assert!(why.contains("3 voters"), "{why}");
}
