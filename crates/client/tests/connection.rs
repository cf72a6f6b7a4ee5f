//! One connection, against a peer that does what a test wants.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use highwater_client::{Client, ClientConfig, ClientError, Connection, NewTopic, OffsetSpec};
use highwater_protocol::ApiKey;
use highwater_protocol::messages::create_topics_response::CreatableTopicResult;
use highwater_protocol::messages::{CreateTopicsResponse, MetadataRequest};
use highwater_types::{ErrorCode, Millis, NodeId, PartitionIndex};
use support::{FakeBroker, Reaction, TOPIC};
use tokio::io::AsyncWriteExt as _;

const SECONDS_5: Millis = Millis::new(5_000);

#[tokio::test]
async fn versions_are_negotiated_with_an_old_peer() {
    let broker = FakeBroker::usual(1).await;
    {
        let mut state = broker.state.lock().unwrap();
        state.log.versions.insert(ApiKey::ApiVersions, (0, 2));
        state.log.versions.insert(ApiKey::Metadata, (0, 5));
        state.log.versions.remove(&ApiKey::DescribeCluster);
    }
    let client = broker.client().await;
    assert_eq!(broker.asked(ApiKey::ApiVersions), [2]);
    assert_eq!(broker.asked(ApiKey::Metadata), [5]);
    let cluster = client.describe_cluster().await.unwrap();
    assert_eq!(cluster.cluster_id, "fake");
    assert_eq!(
        cluster.brokers.len(),
        1,
        "from metadata, as the peer has no DescribeCluster"
    );
}

#[tokio::test]
async fn b_48_an_answer_with_a_wrong_correlation_id_closes_the_connection() {
    let broker = FakeBroker::start(1, |header, _, _| match header.client_id.as_deref() {
        Some("victim") if header.api_key == 3 => Reaction::WrongCorrelation,
        _ => Reaction::Usual,
    })
    .await;
    let mut config = broker.config();
    config.client_id = "victim".to_owned();
    let connection = Connection::open(&config.bootstrap_servers[0], &config)
        .await
        .unwrap();
    let request = MetadataRequest::default;
    let (first, second) = tokio::join!(
        connection.call(request(), SECONDS_5),
        connection.call(request(), SECONDS_5)
    );
    for result in [first, second] {
        let error = result.unwrap_err();
        assert!(matches!(error, ClientError::Misbehaved { .. }), "{error}");
    }
    assert!(connection.is_closed());
    assert!(connection.call(request(), SECONDS_5).await.is_err());
}

#[tokio::test]
async fn b_50_a_peer_that_is_not_kafka_is_refused() {
    for greeting in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &[0x15, 3, 1, 0, 2, 2, 10, 0, 0, 0],
        &[0, 0, 0, 0],
        &[0, 0, 0, 2, 0, 0],
        &[0xff; 20],
    ] {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let config = ClientConfig::new("x:1");
        let peer = tokio::spawn(async move {
            theirs.write_all(greeting).await.unwrap();
            theirs
        });
        let error = Connection::over(ours, "x:1", &config).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Misbehaved { .. }),
            "{greeting:?}: {error}"
        );
        drop(peer.await);
    }
    let (ours, theirs) = tokio::io::duplex(1024);
    drop(theirs);
    assert!(
        Connection::over(ours, "x:1", &ClientConfig::new("x:1"))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn answers_that_cannot_be_read_close_the_connection() {
    let broker = FakeBroker::start(1, |header, _, _| match header.client_id.as_deref() {
        Some("victim") if header.api_key == 3 => Reaction::Body(bytes::Bytes::from_static(&[
            0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f,
        ])),
        _ => Reaction::Usual,
    })
    .await;
    let mut config = broker.config();
    config.client_id = "victim".to_owned();
    let connection = Connection::open(&config.bootstrap_servers[0], &config)
        .await
        .unwrap();
    let error = connection
        .call(MetadataRequest::default(), SECONDS_5)
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Misbehaved { .. }), "{error}");
    assert!(connection.is_closed());
}

#[tokio::test]
async fn a_stuck_request_times_out_and_takes_the_connection_with_it() {
    let broker = FakeBroker::start(1, |header, _, _| match header.client_id.as_deref() {
        Some("victim") if header.api_key == 3 => Reaction::Silence,
        _ => Reaction::Usual,
    })
    .await;
    let mut config = broker.config();
    config.client_id = "victim".to_owned();
    let connection = Connection::open(&config.bootstrap_servers[0], &config)
        .await
        .unwrap();
    let error = connection
        .call(MetadataRequest::default(), Millis::new(50))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert!(connection.is_closed());
}

#[tokio::test]
async fn requests_are_pipelined() {
    let broker = FakeBroker::start(1, |header, _, _| match header.api_key {
        3 => Reaction::Later(Millis::new(10)),
        _ => Reaction::Usual,
    })
    .await;
    let config = broker.config();
    let connection = Connection::open(&config.bootstrap_servers[0], &config)
        .await
        .unwrap();
    let calls = (0..20).map(|_| {
        let connection = connection.clone();
        tokio::spawn(async move { connection.call(MetadataRequest::default(), SECONDS_5).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(broker.state.lock().unwrap().connections, 1);
}

#[tokio::test]
async fn nobody_there_is_told_with_every_address() {
    let config = ClientConfig {
        bootstrap_servers: vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()],
        connection_setup_timeout: Millis::new(500),
        ..ClientConfig::new("")
    };
    let text = Client::connect(config).await.unwrap_err().to_string();
    assert!(
        text.contains("127.0.0.1:1") && text.contains("127.0.0.1:2"),
        "{text}"
    );
    let none = Client::connect(ClientConfig::new(""))
        .await
        .unwrap_err()
        .to_string();
    assert!(none.contains("bootstrap.servers"), "{none}");
}

#[tokio::test]
async fn an_unknown_code_of_the_future_is_told() {
    let broker = FakeBroker::start(1, |header, _, _| match header.api_key {
        19 => Reaction::Answer(
            CreateTopicsResponse {
                topics: vec![CreatableTopicResult {
                    name: "t".to_owned(),
                    error_code: ErrorCode::new(999),
                    error_message: Some("from the future".to_owned()),
                    ..Default::default()
                }],
                ..Default::default()
            }
            .into(),
        ),
        _ => Reaction::Usual,
    })
    .await;
    let client = broker.client().await;
    let topic = NewTopic {
        name: "t".to_owned(),
        ..NewTopic::default()
    };
    let results = client.create_topics(&[topic], false).await.unwrap();
    let text = results[0].clone().unwrap_err().to_string();
    for part in ["create topic t", "999", "from the future"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn offsets_are_looked_up_at_leaders() {
    let broker = FakeBroker::usual(2).await;
    broker.state.lock().unwrap().log.partitions[1].end_offset = 42;
    let client = broker.client().await;
    let at = |partition| (TOPIC.to_owned(), PartitionIndex::new(partition));
    let wanted = [(at(0), OffsetSpec::Latest), (at(1), OffsetSpec::Latest)];
    let offsets = client.list_offsets(&wanted, Default::default()).await;
    let offsets: Vec<_> = offsets
        .into_iter()
        .map(|it| it.unwrap().offset.unwrap().raw())
        .collect();
    assert_eq!(offsets, [0, 42]);
    let none = [(
        at(0),
        OffsetSpec::Timestamp(highwater_types::WallMs::new(5)),
    )];
    let none = client.list_offsets(&none, Default::default()).await;
    assert_eq!(none[0].clone().unwrap().offset, None);
}

#[tokio::test]
async fn topics_that_do_not_exist_are_told_as_such() {
    let broker = FakeBroker::usual(1).await;
    let client = broker.client().await;
    let error = client.topic("nope", Millis::new(100)).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    let all = client.describe_topics(None).await.unwrap();
    assert_eq!(all.len(), 1);
    let named = client
        .describe_topics(Some(&["nope".to_owned()]))
        .await
        .unwrap();
    assert_eq!(named[0].error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert!(client.connection(NodeId::new(9)).await.is_err());
}
