//! What brokers hand on for their clients, and controllers that register: over the wire, against a
//! node's controller listener.

use std::sync::Arc;

use bytes::Bytes;
use highwater_node::{Authorizer, Caller, Operation, Resource};
use highwater_protocol::messages::controller_registration_request::{Feature, Listener};
use highwater_protocol::messages::{
    ControllerRegistrationRequest, CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest,
    DeleteTopicsResponse, EnvelopeRequest, EnvelopeResponse, MetadataRequest,
};
use highwater_protocol::messages::{
    create_topics_request::CreatableTopic, delete_topics_request::DeleteTopicState,
};
use highwater_protocol::wire::{Message as _, Writer};
use highwater_protocol::{ListenerKind, Request, RequestHeader, Response};
use highwater_types::{ErrorCode, Millis, NodeId, Uuid};

use crate::host::{Host, config, formatted};

/// Alice may do nothing with topics whose name begins with `secret`, Eve nothing that brokers do.
#[derive(Debug)]
struct Rules;

impl Authorizer for Rules {
    fn allows(&self, caller: &Caller, operation: Operation, resource: Resource<'_>) -> bool {
        match (caller.principal.as_str(), resource) {
            ("User:alice", Resource::Topic(name)) => !name.starts_with("secret"),
            ("User:alice", Resource::Cluster) => false,
            ("User:ANONYMOUS", Resource::Cluster) => operation == Operation::ClusterAction,
            (other, _) => panic!("{other} asks for {operation:?}"),
        }
    }
}

fn host() -> Host {
    let config = config("");
    let dirs = formatted(&config);
    Host::serving(&config, &dirs)
}

fn envelope(principal: &[u8], request: &Request, version: i16) -> EnvelopeRequest {
    let header = RequestHeader {
        api_key: request.api_key().raw(),
        version,
        correlation_id: 5,
        client_id: Some("client".to_owned()),
    };
    let mut w = Writer::new();
    header.encode(&mut w).expect("short");
    w.put(&request.encode(version).expect("legal"));
    EnvelopeRequest {
        request_data: w.into_bytes(),
        request_principal: Some(Bytes::copy_from_slice(principal)),
        client_host_address: Bytes::from_static(&[10, 0, 0, 7]),
    }
}

const ALICE: &[u8] = b"\0\0\x05User\x06alice\0\0";

fn call(host: &mut Host, envelope: EnvelopeRequest) -> EnvelopeResponse {
    match host.call(ListenerKind::Controller, envelope) {
        Response::Envelope(response) => response,
        other => panic!("{other:?}"),
    }
}

/// The body of an answer whose header has tags.
fn body(response: EnvelopeResponse) -> Bytes {
    assert_eq!(response.error_code, ErrorCode::NONE);
    let data = response.response_data.expect("an answer");
    assert_eq!(data[..5], [0, 0, 0, 5, 0], "the client's correlation id");
    data.slice(5..)
}

fn create(names: &[&str]) -> Request {
    let topic = |name: &&str| CreatableTopic {
        name: (*name).to_owned(),
        num_partitions: 3,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    CreateTopicsRequest {
        topics: names.iter().map(topic).collect(),
        timeout_ms: 1000,
        validate_only: false,
    }
    .into()
}

#[test]
fn the_controller_asks_whether_the_client_in_the_envelope_may() {
    let mut host = host().authorized_by(Arc::new(Rules));
    let names = ["secret-new", "open-new", "secret-new"];
    let answer = call(&mut host, envelope(ALICE, &create(&names), 7));
    let answer = CreateTopicsResponse::from_bytes(&body(answer), 7).expect("an answer");
    let rows: Vec<_> = answer
        .topics
        .iter()
        .map(|it| (it.name.as_str(), it.error_code.raw(), it.num_partitions))
        .collect();
    assert_eq!(rows, [("open-new", 0, 3), ("secret-new", 29, -1)]);
    let image = host.control.image();
    assert!(image.topic_by_name("open-new").is_some());
    assert!(image.topic_by_name("secret-new").is_none());
}

#[test]
fn deletions_want_delete_and_tell_no_hidden_name() {
    let mut host = host();
    host.call(
        ListenerKind::Controller,
        match create(&["open", "secret"]) {
            Request::CreateTopics(request) => request,
            other => panic!("{other:?}"),
        },
    );
    let topic = host.control.image().topic_by_name("secret");
    let secret = topic.expect("made").id.uuid();
    let mut host = host.authorized_by(Arc::new(Rules));
    let state = |name: Option<&str>, topic_id| DeleteTopicState {
        name: name.map(str::to_owned),
        topic_id,
    };
    let request = DeleteTopicsRequest {
        topics: vec![
            state(Some("secret"), Uuid::ZERO),
            state(Some("open"), Uuid::ZERO),
            state(None, secret),
        ],
        timeout_ms: 1000,
        ..DeleteTopicsRequest::default()
    };
    let answer = call(&mut host, envelope(ALICE, &request.into(), 6));
    let answer = DeleteTopicsResponse::from_bytes(&body(answer), 6).expect("an answer");
    let rows: Vec<_> = answer
        .responses
        .iter()
        .map(|it| (it.name.as_deref(), it.error_code.raw()))
        .collect();
    assert_eq!(rows, [(Some("open"), 0), (None, 29), (Some("secret"), 29)]);
    assert!(host.control.image().topic_by_name("secret").is_some());
}

#[test]
fn a_new_topics_configs_are_for_those_who_may_see_them() {
    #[derive(Debug)]
    struct Hides;
    impl Authorizer for Hides {
        fn allows(&self, _: &Caller, operation: Operation, _: Resource<'_>) -> bool {
            operation != Operation::DescribeConfigs
        }
    }
    let mut host = host().authorized_by(Arc::new(Hides));
    let answer = call(&mut host, envelope(ALICE, &create(&["t"]), 7));
    let answer = CreateTopicsResponse::from_bytes(&body(answer), 7).expect("an answer");
    let topic = &answer.topics[0];
    assert_eq!((topic.error_code.raw(), topic.num_partitions), (0, -1));
    assert_eq!(topic.topic_config_error_code.raw(), 29);
    assert_eq!(topic.configs, None);
}

#[test]
fn only_brokers_may_say_who_somebody_is() {
    #[derive(Debug)]
    struct NoBrokers;
    impl Authorizer for NoBrokers {
        fn allows(&self, _: &Caller, operation: Operation, _: Resource<'_>) -> bool {
            operation != Operation::ClusterAction
        }
    }
    let mut host = host().authorized_by(Arc::new(NoBrokers));
    let answer = call(&mut host, envelope(ALICE, &create(&["t"]), 7));
    assert_eq!(answer.error_code, ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
    assert_eq!(answer.response_data, None);
    assert!(host.control.image().topic_by_name("t").is_none());
}

#[test]
fn an_envelope_is_refused_as_kafka_refuses_it() {
    let mut host = host();
    let good = || envelope(ALICE, &create(&["t"]), 7);
    let mut code = |edit: &dyn Fn(&mut EnvelopeRequest)| {
        let mut envelope = good();
        edit(&mut envelope);
        call(&mut host, envelope).error_code
    };
    let principal = code(&|it| it.request_principal = None);
    assert_eq!(principal, ErrorCode::PRINCIPAL_DESERIALIZATION_FAILURE);
    let address = code(&|it| it.client_host_address = Bytes::from_static(b"127.0.0.1"));
    assert_eq!(address, ErrorCode::INVALID_REQUEST);
    let metadata = Request::from(MetadataRequest::default());
    let other = code(&|it| it.request_data = envelope(ALICE, &metadata, 9).request_data);
    assert_eq!(other, ErrorCode::INVALID_REQUEST);
    let cut = code(&|it| it.request_data.truncate(20));
    assert_eq!(cut, ErrorCode::UNSUPPORTED_VERSION);
}

#[test]
fn a_controller_registers_each_time_that_it_starts() {
    let config = config("");
    let dirs = formatted(&config);
    let own = NodeId::new(1);
    let mut host = Host::serving(&config, &dirs);
    let first = host.control.image().controllers[&own].incarnation;
    assert_ne!(first, Uuid::ZERO);
    // Another one, such as a voter to be, may too.
    let feature = |name: &str, max| Feature {
        name: name.to_owned(),
        min_supported_version: 0,
        max_supported_version: max,
    };
    let mut request = ControllerRegistrationRequest {
        controller_id: 7,
        incarnation_id: Uuid::from_u128(70),
        zk_migration_ready: false,
        listeners: vec![Listener {
            name: "CONTROLLER".to_owned(),
            host: "other".to_owned(),
            port: 9093,
            security_protocol: 0,
        }],
        features: vec![feature("metadata.version", 99)],
    };
    let answer = host.call(ListenerKind::Controller, request.clone());
    let Response::ControllerRegistration(answer) = answer else {
        panic!("{answer:?}")
    };
    // It cannot work with the other features that are finalised.
    assert_eq!(answer.error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert!(answer.error_message.is_some());
    for name in ["eligible.leader.replicas.version", "kraft.version"] {
        request.features.push(feature(name, 9));
    }
    for name in [
        "group.version",
        "share.version",
        "streams.version",
        "transaction.version",
    ] {
        request.features.push(feature(name, 9));
    }
    let answer = host.call(ListenerKind::Controller, request);
    assert!(matches!(answer, Response::ControllerRegistration(it) if !it.error_code.is_error()));
    host.advance(Millis::new(100));
    assert_eq!(host.control.image().controllers.len(), 2);
    host.stop();
    let host = Host::serving(&config, &dirs);
    let image = host.control.image();
    assert_eq!(image.controllers.len(), 2);
    assert_ne!(image.controllers[&own].incarnation, first);
}
