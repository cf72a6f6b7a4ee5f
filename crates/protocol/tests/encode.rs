//! What a version cannot carry: an error when it matters, dropped when it is only a hint.

use highwater_protocol::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};
use highwater_protocol::messages::{
    CreateTopicsRequest, FetchRequest, FetchResponse, MetadataRequest, MetadataResponse,
    metadata_response::MetadataResponseTopic,
};
use highwater_protocol::wire::{EncodeError, Message as _};
use highwater_protocol::{
    ApiKey, FetchAnswerHead, FetchPiece, FetchView, FetchedPartition, FetchedTopic, Request,
    TopicKey, encode_fetch_answer,
};
use highwater_types::{NodeId, TopicId, Uuid};

#[test]
fn a_field_that_must_not_be_dropped_is_an_error() {
    let request = MetadataRequest {
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    let absent = EncodeError::Absent {
        field: "AllowAutoTopicCreation",
        version: 3,
    };
    assert_eq!(request.to_bytes(3), Err(absent));
    assert!(request.to_bytes(4).is_ok());
    let all_topics = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    assert_eq!(
        all_topics.to_bytes(0),
        Err(EncodeError::Null { version: 0 })
    );
    assert!(all_topics.to_bytes(1).is_ok());
}

#[test]
fn what_may_be_dropped_is() {
    let topic = MetadataResponseTopic {
        topic_id: Uuid::from_u128(7),
        ..MetadataResponseTopic::default()
    };
    let answer = MetadataResponse {
        topics: vec![topic],
        ..MetadataResponse::default()
    };
    let dropped = MetadataResponse::from_bytes(&answer.to_bytes(9).expect("encodes"), 9);
    let kept = MetadataResponse::from_bytes(&answer.to_bytes(10).expect("encodes"), 10);
    let id = |answer: MetadataResponse| answer.topics.first().map(|it| it.topic_id);
    assert_eq!(dropped.map(id), Ok(Some(Uuid::ZERO)));
    assert_eq!(kept.map(id), Ok(Some(Uuid::from_u128(7))));
}

#[test]
fn versions_and_lengths_are_checked() {
    let unknown = EncodeError::Version {
        message: "CreateTopicsRequest",
        version: 8,
    };
    assert_eq!(CreateTopicsRequest::default().to_bytes(8), Err(unknown));
    let rack_id = "r".repeat(40_000);
    let request = FetchRequest {
        rack_id,
        ..FetchRequest::default()
    };
    assert_eq!(request.to_bytes(11), Err(EncodeError::TooLong(40_000)));
    // Flexible versions could say it, and Kafka neither writes nor reads it (KIP-482).
    assert_eq!(request.to_bytes(12), Err(EncodeError::TooLong(40_000)));
}

#[test]
fn a_view_is_sent_at_another_version() {
    let request = FetchRequest {
        max_wait_ms: 500,
        ..FetchRequest::default()
    };
    let view = FetchView::from_message(&request, 18).expect("encodes");
    let older = Request::from(view.clone())
        .encode(7)
        .expect("nothing is lost");
    let decoded = Request::decode(ApiKey::Fetch, 7, older).expect("a request");
    assert!(matches!(decoded, Request::Fetch(it) if it.max_wait() == view.max_wait()));
}

/// The two encoders of a fetch answer agree, hints and divergence included, and records stay
/// where they are.
#[test]
fn trap_14_divergence_and_leader_are_told() {
    let data = PartitionData {
        partition_index: 3,
        diverging_epoch: EpochEndOffset {
            epoch: 4,
            end_offset: 40,
        },
        current_leader: LeaderIdAndEpoch {
            leader_id: NodeId::new(2),
            leader_epoch: 5,
        },
        ..PartitionData::default()
    };
    let id = TopicId::new(Uuid::from_u128(9));
    for version in 4..=18 {
        let topic = if version < 13 {
            TopicKey::Name("orders")
        } else {
            TopicKey::Id(id)
        };
        let partition = FetchedPartition {
            data: data.clone(),
            records: Some(&b"batch"[..]),
        };
        let topics = vec![FetchedTopic {
            topic,
            partitions: vec![partition],
        }];
        let head = FetchAnswerHead {
            session_id: 6,
            ..FetchAnswerHead::default()
        };
        let pieces = encode_fetch_answer(version, head, topics, |it| it.len() as u64);
        let answer = FetchResponse {
            session_id: if version < 7 { 0 } else { 6 },
            responses: vec![FetchableTopicResponse {
                topic: topic.name().unwrap_or_default().to_owned(),
                topic_id: topic.id().unwrap_or_default().uuid(),
                partitions: vec![PartitionData {
                    records: Some(b"batch".as_slice().into()),
                    ..data.clone()
                }],
            }],
            ..FetchResponse::default()
        };
        if version < 12 {
            let absent = EncodeError::Absent {
                field: "DivergingEpoch",
                version,
            };
            assert_eq!(pieces, Err(absent));
            assert_eq!(answer.to_bytes(version), Err(absent));
            continue;
        }
        let pieces = pieces.expect("encodes");
        assert!(matches!(pieces.get(1), Some(FetchPiece::Records(b"batch"))));
        let bytes: Vec<u8> = pieces
            .into_iter()
            .flat_map(|piece| match piece {
                FetchPiece::Bytes(bytes) => bytes.to_vec(),
                FetchPiece::Records(bytes) => bytes.to_vec(),
            })
            .collect();
        assert_eq!(
            answer.to_bytes(version).expect("encodes"),
            bytes,
            "v{version}"
        );
    }
}

#[test]
fn a_topic_is_named_as_its_version_wants() {
    let encode = |version, topic| {
        let topics = vec![FetchedTopic::<Vec<u8>> {
            topic,
            partitions: vec![],
        }];
        encode_fetch_answer(version, FetchAnswerHead::default(), topics, |it| {
            it.len() as u64
        })
    };
    assert!(encode(12, TopicKey::Name("orders")).is_ok());
    assert!(encode(13, TopicKey::Name("orders")).is_err());
    assert!(encode(12, TopicKey::Id(TopicId::ZERO)).is_err());
    assert!(encode(13, TopicKey::Id(TopicId::ZERO)).is_ok());
}
