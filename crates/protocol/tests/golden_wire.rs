//! Every captured request and answer of an API that this build knows decodes, and encodes back to
//! the same bytes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use highwater_fixtures::{Files, unhex, wire};
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use highwater_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use highwater_protocol::wire::{Message as _, Reader, Writer};
use highwater_protocol::{
    ApiKey, FetchAnswerHead, FetchPartitionView, FetchPiece, FetchTopicView, FetchView,
    FetchedPartition, FetchedTopic, ForgottenTopicView, ListenerKind, ProduceTopicView,
    ProduceView, Request, RequestHeader, Response, TopicKey, api_versions_fallback,
    encode_fetch_answer, messages, response_header_version, supported_versions,
};
use highwater_types::{ErrorCode, Millis, TopicId, Uuid};

/// Frames that no decoder takes in whole, each with the bytes that it leaves over: (folder, file,
/// bytes). The first was made by hand, the other is librdkafka 2.16.0's; servers ignore such bytes.
const TRAILING: &[(&str, &str, usize)] = &[
    ("03-Metadata", "v1-01.request", 4),
    ("03-Metadata", "v13-04.request", 3),
];

/// One line of `index.tsv`.
struct Pair {
    folder: String,
    stem: String,
    version: i16,
    listener: String,
}

fn pairs(files: &Files) -> Vec<Pair> {
    let index = files
        .get(&PathBuf::from("index.tsv"))
        .expect("the index of the fixture");
    let index = std::str::from_utf8(index).expect("text");
    let pair = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [key, name, version, number, _, _, listener, ..] = columns.as_slice() else {
            panic!("too few columns: {line}");
        };
        let key: i16 = key.parse().expect("an api key");
        Pair {
            folder: format!("{key:02}-{name}"),
            stem: format!("v{version}-{number}"),
            version: version.parse().expect("a version"),
            listener: (*listener).to_owned(),
        }
    };
    index.lines().skip(1).map(pair).collect()
}

fn frame(files: &Files, folder: &str, file: &str) -> Option<Bytes> {
    files
        .get(&PathBuf::from(folder).join(file))
        .map(|hex| Bytes::from(unhex(hex)))
}

/// Splits a request frame into header and body, and checks that the header encodes back.
fn split_request(frame: &Bytes) -> (RequestHeader, Bytes) {
    let mut body = frame.clone();
    let header = RequestHeader::decode(&mut body).expect("a header");
    let mut w = Writer::new();
    header.encode(&mut w).expect("a header that was decoded");
    assert_eq!(w.into_bytes(), frame.slice(..frame.len() - body.len()));
    (header, body)
}

/// Splits an answer frame into correlation id and body.
fn split_response(frame: &Bytes, api_key: ApiKey, version: i16) -> (i32, Bytes) {
    let header_version = response_header_version(api_key, version);
    let mut r = Reader::new(frame);
    let header = messages::ResponseHeader::decode(&mut r, header_version).expect("a header");
    (header.correlation_id, frame.slice(frame.len() - r.left()..))
}

#[test]
fn every_captured_frame_encodes_back_to_its_bytes() {
    let files = wire();
    let mut seen: BTreeMap<ApiKey, (usize, usize)> = BTreeMap::new();
    let mut trailing = Vec::new();
    for Pair {
        folder,
        stem,
        version,
        ..
    } in pairs(&files)
    {
        let request = frame(&files, &folder, &format!("{stem}.request.hex")).expect("a request");
        let raw_key = i16::from_be_bytes(*request.first_chunk().expect("an api key"));
        let Some(api_key) = ApiKey::from_raw(raw_key) else {
            continue;
        };
        let (min, max) = api_key.versions();
        if !(min..=max).contains(&version) {
            assert_eq!(api_key, ApiKey::ApiVersions, "{folder}/{stem}");
            continue;
        }
        let (header, body) = split_request(&request);
        assert_eq!((header.api_key, header.version), (raw_key, version));
        let left = check_request(&format!("{folder}/{stem}"), api_key, version, &body);
        if left > 0 {
            trailing.push((folder.clone(), format!("{stem}.request"), left));
        }
        let counts = seen.entry(api_key).or_default();
        counts.0 += 1;
        if let Some(response) = frame(&files, &folder, &format!("{stem}.response.hex")) {
            let (correlation_id, body) = split_response(&response, api_key, version);
            assert_eq!(correlation_id, header.correlation_id);
            check_response(&format!("{folder}/{stem}"), api_key, version, &body);
            counts.1 += 1;
        }
    }
    let expected: Vec<_> = TRAILING
        .iter()
        .map(|(folder, file, left)| ((*folder).to_owned(), (*file).to_owned(), *left))
        .collect();
    assert_eq!(trailing, expected);
    for api_key in ApiKey::ALL {
        let (requests, responses) = seen.get(api_key).copied().unwrap_or_default();
        assert!(
            requests > 0 && responses > 0,
            "{api_key}: {requests} and {responses}"
        );
    }
}

/// Bytes that were left over.
fn check_request(name: &str, api_key: ApiKey, version: i16, body: &Bytes) -> usize {
    let decoded = Request::decode(api_key, version, body.clone())
        .unwrap_or_else(|why| panic!("{name} request: {why}"));
    let encoded = decoded.encode(version).expect("what was decoded");
    let left = body
        .len()
        .checked_sub(encoded.len())
        .expect("not more than there was");
    assert_eq!(encoded, body.slice(..encoded.len()), "{name} request");
    check_view(&decoded, body);
    left
}

fn check_response(name: &str, api_key: ApiKey, version: i16, body: &Bytes) {
    let decoded = Response::decode(api_key, version, body)
        .unwrap_or_else(|why| panic!("{name} response: {why}"));
    assert_eq!(
        decoded.encode(version).as_ref(),
        Ok(body),
        "{name} response"
    );
    if let Response::Fetch(answer) = decoded {
        check_fetch_answer(answer, version, body);
    }
}

/// A view lends what the generated decoder, which builds trees, finds in the same bytes.
fn check_view(request: &Request, body: &Bytes) {
    match request {
        Request::Produce(view) => {
            let message = messages::ProduceRequest::from_bytes(body, view.version());
            let message = message.expect("a captured request");
            assert_eq!(message.to_bytes(view.version()).as_ref(), Ok(view.body()));
            assert_eq!(&produce_of(view), &message);
            let partitions = message.topic_data.iter().map(|it| it.partition_data.len());
            assert_eq!(view.partition_count(), partitions.sum::<usize>());
        }
        Request::Fetch(view) => {
            let message = messages::FetchRequest::from_bytes(body, view.version());
            let message = message.expect("a captured request");
            assert_eq!(message.to_bytes(view.version()).as_ref(), Ok(view.body()));
            assert_eq!(&fetch_of(view), &message);
        }
        _ => {}
    }
}

fn name_and_id(topic: TopicKey<'_>) -> (String, Uuid) {
    (
        topic.name().unwrap_or_default().to_owned(),
        topic.id().unwrap_or_default().uuid(),
    )
}

fn produce_of(view: &ProduceView) -> messages::ProduceRequest {
    let topic = |it: ProduceTopicView<'_>| {
        let (name, topic_id) = name_and_id(it.topic);
        let partition_data = it.partitions.map(|it| PartitionProduceData {
            index: it.partition.raw(),
            records: it.records,
        });
        TopicProduceData {
            name,
            topic_id,
            partition_data: partition_data.collect(),
        }
    };
    messages::ProduceRequest {
        transactional_id: view.transactional_id().map(str::to_owned),
        acks: view.acks(),
        timeout_ms: i32::try_from(view.timeout().as_u64()).expect("a wire field"),
        topic_data: view.topics().map(topic).collect(),
    }
}

fn fetch_of(view: &FetchView) -> messages::FetchRequest {
    let partition = |it: FetchPartitionView| FetchPartition {
        partition: it.partition.raw(),
        current_leader_epoch: it.current_leader_epoch.raw(),
        fetch_offset: it.fetch_offset.raw(),
        last_fetched_epoch: it.last_fetched_epoch.raw(),
        log_start_offset: it.log_start_offset.raw(),
        partition_max_bytes: it.partition_max_bytes,
        replica_directory_id: it.replica_directory_id.uuid(),
        high_watermark: it.high_watermark.raw(),
    };
    let topic = |it: FetchTopicView<'_>| {
        let (topic, topic_id) = name_and_id(it.topic);
        FetchTopic {
            topic,
            topic_id,
            partitions: it.partitions.map(partition).collect(),
        }
    };
    let forgotten = |it: ForgottenTopicView<'_>| {
        let (topic, topic_id) = name_and_id(it.topic);
        ForgottenTopic {
            topic,
            topic_id,
            partitions: it.partitions.map(|it| it.raw()).collect(),
        }
    };
    let mut message = messages::FetchRequest {
        cluster_id: view.cluster_id().map(str::to_owned),
        max_wait_ms: i32::try_from(view.max_wait().as_u64()).expect("a wire field"),
        min_bytes: view.min_bytes(),
        max_bytes: view.max_bytes(),
        isolation_level: view.isolation_level(),
        session_id: view.session_id(),
        session_epoch: view.session_epoch(),
        topics: view.topics().map(topic).collect(),
        forgotten_topics_data: view.forgotten_topics().map(forgotten).collect(),
        rack_id: view.rack_id().to_owned(),
        ..messages::FetchRequest::default()
    };
    if view.version() >= 15 {
        message.replica_state.replica_id = view.replica_id();
        message.replica_state.replica_epoch = view.replica_epoch().raw();
    } else {
        message.replica_id = view.replica_id();
    }
    message
}

/// The encoder of answers with record regions writes what Kafka sent.
fn check_fetch_answer(answer: messages::FetchResponse, version: i16, body: &Bytes) {
    let head = FetchAnswerHead {
        throttle: Millis::from_wire(answer.throttle_time_ms),
        error_code: answer.error_code,
        session_id: answer.session_id,
        node_endpoints: &answer.node_endpoints,
    };
    let names: Vec<(String, TopicId)> = answer
        .responses
        .iter()
        .map(|it| (it.topic.clone(), TopicId::new(it.topic_id)))
        .collect();
    let topics = answer
        .responses
        .into_iter()
        .zip(&names)
        .map(|(topic, (name, id))| {
            let partitions = topic.partitions.into_iter().map(|mut data| {
                let records = data.records.take();
                assert!(records.is_some(), "Kafka never sends null records");
                FetchedPartition { data, records }
            });
            FetchedTopic {
                topic: if version >= 13 {
                    TopicKey::Id(*id)
                } else {
                    TopicKey::Name(name)
                },
                partitions: partitions.collect(),
            }
        });
    let pieces = encode_fetch_answer(version, head, topics.collect(), |it: &Bytes| {
        it.len() as u64
    })
    .expect("what was decoded");
    let written: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| match piece {
            FetchPiece::Bytes(bytes) | FetchPiece::Records(bytes) => bytes.to_vec(),
        })
        .collect();
    assert_eq!(&written, body);
}

#[test]
fn the_produce_cases_decode() {
    let files = wire();
    let requests = files.iter().filter(|(path, _)| {
        let path = path.to_string_lossy();
        path.starts_with("00-Produce-cases/") && path.ends_with(".request.hex")
    });
    let mut seen = 0;
    for (path, hex) in requests {
        let frame = Bytes::from(unhex(hex));
        let (header, body) = split_request(&frame);
        let request = Request::decode(ApiKey::Produce, header.version, body.clone())
            .unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        check_view(&request, &body);
        let answer = path.to_string_lossy().replace(".request.", ".response.");
        let answer = frame_at(&files, &answer);
        let (_, body) = split_response(&answer, ApiKey::Produce, header.version);
        let decoded = Response::decode(ApiKey::Produce, header.version, &body).expect("an answer");
        assert_eq!(decoded.encode(header.version), Ok(body));
        seen += 1;
    }
    assert_eq!(seen, 32);
}

fn frame_at(files: &Files, path: &str) -> Bytes {
    files
        .get(&PathBuf::from(path))
        .map(|hex| Bytes::from(unhex(hex)))
        .expect("an answer")
}

/// Whatever a listener of ours offers, Kafka's offers at the same versions.
#[test]
fn what_is_offered_is_what_kafka_offers() {
    let files = wire();
    let mut compared = BTreeMap::new();
    let mut unknown = 0;
    for pair in pairs(&files)
        .iter()
        .filter(|it| it.folder == "18-ApiVersions")
    {
        let listener = if pair.listener.starts_with("controller") {
            ListenerKind::Controller
        } else {
            ListenerKind::Broker
        };
        let answer = frame_at(
            &files,
            &format!("{}/{}.response.hex", pair.folder, pair.stem),
        );
        let version = if pair.version > 5 { 0 } else { pair.version };
        let (_, body) = split_response(&answer, ApiKey::ApiVersions, version);
        let answer = messages::ApiVersionsResponse::from_bytes(&body, version).expect("an answer");
        if answer.error_code == ErrorCode::UNSUPPORTED_VERSION {
            // Trap 1: the form of the answer to an unknown version.
            assert_eq!(api_versions_fallback(listener), body);
            unknown += 1;
        }
        if answer.error_code.is_error() {
            continue;
        }
        for ours in supported_versions(listener) {
            let kafka = answer
                .api_keys
                .iter()
                .find(|it| it.api_key == ours.api_key.raw());
            let kafka = kafka.map(|it| (it.min_version, it.max_version));
            assert_eq!(
                kafka,
                Some((ours.min, ours.max)),
                "{} {listener:?}",
                ours.api_key
            );
        }
        *compared.entry(listener).or_insert(0) += 1;
    }
    assert_eq!((compared.len(), unknown), (2, 4), "{compared:?}");
}
