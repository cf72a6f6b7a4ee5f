//! Answers of a running Apache Kafka 4.4 against ours.

use std::path::Path;

use bytes::{Buf as _, Bytes};
use highwater_metadata::config::{BrokerConfig, ConfigLayers, describe_topic, parse_properties};
use highwater_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use highwater_protocol::wire::Message as _;
use highwater_protocol::{ListenerKind, RequestHeader, Response};

use crate::host::{Host, config, formatted};

fn frame(path: &str) -> Bytes {
    let files = highwater_fixtures::wire();
    highwater_fixtures::unhex(&files[Path::new(path)]).into()
}

fn kafkas_answer(name: &str, version: i16) -> CreateTopicsResponse {
    let mut bytes = frame(&format!("19-CreateTopics/{name}.response.hex"));
    bytes.advance(4 + usize::from(version >= 5));
    CreateTopicsResponse::from_bytes(&bytes, version).expect("Kafka's own")
}

fn kafkas_request(name: &str, version: i16) -> CreateTopicsRequest {
    let mut bytes = frame(&format!("19-CreateTopics/{name}.request.hex"));
    RequestHeader::decode(&mut bytes).expect("a header");
    CreateTopicsRequest::from_bytes(&bytes, version).expect("Kafka's own")
}

#[test]
fn trap_20_the_configs_of_a_new_topic_are_kafkas() {
    let text = "min.insync.replicas=2\nlog.index.size.max.bytes=4096\n";
    let properties = parse_properties(text).expect("well formed");
    let (static_config, _) = BrokerConfig::new(&properties).expect("values");
    let dynamic = [
        ("min.insync.replicas", "2"),
        ("message.max.bytes", "2000000"),
    ];
    let dynamic_default = dynamic
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let layers = ConfigLayers {
        dynamic_broker: None,
        dynamic_default: Some(&dynamic_default),
        static_config: &static_config,
    };
    let ours: Vec<_> = describe_topic(layers, None)
        .into_iter()
        .map(|it| {
            (
                it.key.name.to_owned(),
                it.value,
                it.source.to_wire(),
                it.key.is_sensitive(),
            )
        })
        .collect();
    let answer = kafkas_answer("v7-05", 7);
    let kafkas: Vec<_> = answer.topics[0]
        .configs
        .iter()
        .flatten()
        .map(|it| {
            (
                it.name.clone(),
                it.value.clone(),
                it.config_source,
                it.is_sensitive,
            )
        })
        .collect();
    assert_eq!(ours, kafkas);
}

#[test]
fn refusals_are_worded_as_kafkas() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    for (name, version) in [("v7-01", 7), ("v7-04", 7), ("v4-02", 4)] {
        let request = kafkas_request(name, version);
        let Response::CreateTopics(ours) = host.call(ListenerKind::Controller, request) else {
            panic!("another answer")
        };
        let kafkas = kafkas_answer(name, version);
        let short = |it: &CreateTopicsResponse| {
            let topics = it.topics.iter();
            topics
                .map(|it| (it.name.clone(), it.error_code, it.error_message.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(short(&ours), short(&kafkas), "{name}");
    }
}
