//! The consumer, against a broker with a log whose answers a test may replace.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use highwater_client::{
    ClientError, Consumer, ConsumerConfig, IsolationLevel, OffsetReset, PartitionName, StartAt,
};
use highwater_protocol::messages::FetchResponse;
use highwater_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use highwater_protocol::{ApiKey, Request};
use highwater_records::{
    BatchBuilder, BatchOptions, Compression, Compressor, EndTransactionMarker, ProducerStamp,
};
use highwater_types::{
    ErrorCode, LeaderEpoch, Millis, Offset, PartitionIndex, ProducerEpoch, ProducerId, WallMs,
};
use support::{FakeBroker, FakeLog, Reaction, TOPIC, topic_id};

const WAIT: Millis = Millis::new(3_000);

fn at(partition: i32) -> PartitionName {
    (TOPIC.to_owned(), PartitionIndex::new(partition))
}

/// Appends a batch with the values, at the log's end.
fn put(log: &mut FakeLog, partition: usize, values: &[&str], options: BatchOptions) {
    let mut builder = BatchBuilder::new();
    for value in values {
        builder
            .append(WallMs::new(1), None, Some(value.as_bytes()), &[])
            .unwrap();
    }
    let base_offset = Offset::new(log.partitions[partition].end_offset);
    let leader_epoch = LeaderEpoch::new(log.leader_epoch);
    let options = BatchOptions {
        base_offset,
        leader_epoch,
        ..options
    };
    log.put(partition, &builder.finish(&options).unwrap());
}

fn plain(log: &mut FakeLog, partition: usize, values: &[&str]) {
    put(log, partition, values, BatchOptions::default());
}

async fn broker_with(values: &[&str]) -> FakeBroker {
    let broker = FakeBroker::usual(1).await;
    plain(&mut broker.state.lock().unwrap().log, 0, values);
    broker
}

fn earliest() -> ConsumerConfig {
    ConsumerConfig {
        auto_offset_reset: OffsetReset::Earliest,
        ..ConsumerConfig::default()
    }
}

async fn consumer(broker: &FakeBroker, config: ConsumerConfig, start: StartAt) -> Consumer {
    let client = broker.client().await;
    let mut consumer = Consumer::new(&client, config);
    consumer.assign_topic(TOPIC, start).await.unwrap();
    consumer
}

/// Polls until `count` values came.
async fn read(consumer: &mut Consumer, count: usize) -> Vec<String> {
    let mut values = Vec::new();
    while values.len() < count {
        let polled = consumer.poll(WAIT).await.unwrap();
        assert!(!polled.is_empty(), "only {values:?} came");
        for records in &polled {
            for record in records.records() {
                let value = record.value.unwrap_or_default().to_vec();
                values.push(String::from_utf8(value).unwrap());
            }
        }
    }
    values
}

#[tokio::test]
async fn reads_from_the_start_the_end_and_the_middle_of_a_batch() {
    let broker = broker_with(&["a", "b", "c", "d"]).await;
    let mut first = consumer(&broker, earliest(), StartAt::Earliest).await;
    assert_eq!(read(&mut first, 4).await, ["a", "b", "c", "d"]);
    assert_eq!(first.position(&at(0)), Some(Offset::new(4)));
    assert_eq!(first.end_offset(&at(0)), Some(Offset::new(4)));
    assert!(first.poll(Millis::new(30)).await.unwrap().is_empty());

    let mut middle = consumer(&broker, earliest(), StartAt::Offset(Offset::new(2))).await;
    assert_eq!(read(&mut middle, 2).await, ["c", "d"]);

    let mut last = consumer(&broker, earliest(), StartAt::Latest).await;
    assert!(last.poll(Millis::new(50)).await.unwrap().is_empty());
    plain(&mut broker.state.lock().unwrap().log, 0, &["e"]);
    assert_eq!(read(&mut last, 1).await, ["e"]);
    first.seek(&at(0), StartAt::Offset(Offset::new(3)));
    assert_eq!(read(&mut first, 2).await, ["d", "e"]);
    // Nothing is as late as that: reading goes on at the end.
    last.seek(&at(0), StartAt::Timestamp(WallMs::new(9)));
    assert!(last.poll(Millis::new(50)).await.unwrap().is_empty());
    assert_eq!(last.position(&at(0)), Some(Offset::new(5)));
}

#[tokio::test]
async fn every_codec_is_read() {
    let broker = FakeBroker::usual(1).await;
    let mut expected = Vec::new();
    for codec in Compression::ALL {
        let values = ["x".repeat(5000), format!("{codec}")];
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        let options = BatchOptions {
            compressor: Compressor::new(codec),
            ..Default::default()
        };
        put(&mut broker.state.lock().unwrap().log, 0, &values, options);
        expected.extend(values.into_iter().map(str::to_owned));
    }
    let mut consumer = consumer(&broker, earliest(), StartAt::Earliest).await;
    assert_eq!(read(&mut consumer, 10).await, expected);
}

#[tokio::test]
async fn a_session_asks_for_changes_only_and_survives_its_loss() {
    let broker = FakeBroker::usual(3).await;
    for partition in 0..3 {
        plain(&mut broker.state.lock().unwrap().log, partition, &["a"]);
    }
    let mut consumer = consumer(&broker, earliest(), StartAt::Earliest).await;
    assert_eq!(read(&mut consumer, 3).await.len(), 3);
    for _ in 0..5 {
        consumer.poll(Millis::new(20)).await.unwrap();
    }
    assert_eq!(
        broker.state.lock().unwrap().log.sessions,
        1,
        "one session for all of it"
    );
    // The broker drops the session, as when it needs the room.
    broker.state.lock().unwrap().log.sessions += 7;
    plain(&mut broker.state.lock().unwrap().log, 1, &["b"]);
    assert_eq!(read(&mut consumer, 1).await, ["b"]);
}

#[tokio::test]
async fn a_position_outside_the_log_is_reset_or_told() {
    let broker = broker_with(&["a", "b"]).await;
    let start = StartAt::Offset(Offset::new(77));
    let mut reset = consumer(&broker, earliest(), start).await;
    assert_eq!(read(&mut reset, 2).await, ["a", "b"]);

    let config = ConsumerConfig {
        auto_offset_reset: OffsetReset::None,
        ..Default::default()
    };
    let mut strict = consumer(&broker, config, start).await;
    let error = strict.poll(WAIT).await.unwrap_err();
    let offset = Offset::new(77);
    let partition = "orders-0".to_owned();
    assert_eq!(error, ClientError::OffsetOutOfRange { partition, offset });
}

#[tokio::test]
async fn read_committed_skips_what_was_aborted() {
    let broker = FakeBroker::usual(1).await;
    {
        let log = &mut broker.state.lock().unwrap().log;
        let of = |id: i64| BatchOptions {
            producer: ProducerStamp {
                id: ProducerId::new(id),
                epoch: ProducerEpoch::new(0),
                base_sequence: 0,
            },
            transactional: true,
            ..BatchOptions::default()
        };
        let end = |log: &mut FakeLog, id: i64, committed: bool| {
            let marker = EndTransactionMarker {
                committed,
                coordinator_epoch: LeaderEpoch::new(0),
            };
            let (id, epoch) = (ProducerId::new(id), ProducerEpoch::new(0));
            let bytes = BatchBuilder::end_transaction(WallMs::new(1), id, epoch, marker);
            let mut header = highwater_records::BatchHeader::parse(&bytes).unwrap();
            header.base_offset = Offset::new(log.partitions[0].end_offset);
            log.put(0, &[header.encode().as_slice(), &bytes[61..]].concat());
        };
        put(log, 0, &["1 aborted"], of(1));
        put(log, 0, &["2 committed"], of(2));
        plain(log, 0, &["outside"]);
        end(log, 1, false);
        put(log, 0, &["1 committed"], of(1));
        end(log, 2, true);
        end(log, 1, true);
        log.partitions[0].aborted = vec![AbortedTransaction {
            producer_id: ProducerId::new(1),
            first_offset: 0,
        }];
    }
    let config = ConsumerConfig {
        isolation_level: IsolationLevel::ReadCommitted,
        ..earliest()
    };
    let mut committed = consumer(&broker, config, StartAt::Earliest).await;
    assert_eq!(
        read(&mut committed, 3).await,
        ["2 committed", "outside", "1 committed"]
    );
    assert_eq!(
        committed.position(&at(0)),
        Some(Offset::new(7)),
        "past the markers"
    );
    let mut all = consumer(&broker, earliest(), StartAt::Earliest).await;
    assert_eq!(read(&mut all, 4).await.len(), 4);
}

#[tokio::test]
async fn damage_is_told_after_what_is_good() {
    let broker = broker_with(&["good"]).await;
    {
        let log = &mut broker.state.lock().unwrap().log;
        plain(log, 0, &["bad"]);
        let last = log.partitions[0].bytes.len() - 3;
        log.partitions[0].bytes[last] ^= 1;
    }
    let mut consumer = consumer(&broker, earliest(), StartAt::Earliest).await;
    assert_eq!(read(&mut consumer, 1).await, ["good"]);
    let error = consumer.poll(WAIT).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ClientError::Corrupt { .. }), "{text}");
    assert!(
        text.contains("orders-0") && text.contains("offset 1"),
        "{text}"
    );
    assert_eq!(
        consumer.position(&at(0)),
        Some(Offset::new(1)),
        "the position stays"
    );
}

#[tokio::test]
async fn b_25_a_bomb_is_told_and_not_unpacked() {
    let broker = FakeBroker::usual(1).await;
    let big = "0".repeat(8_000_000);
    let compressor = Compressor::new(Compression::Zstd);
    let options = BatchOptions {
        compressor,
        ..Default::default()
    };
    put(&mut broker.state.lock().unwrap().log, 0, &[&big], options);
    let config = ConsumerConfig {
        decompressed_bytes_max: 1_000_000,
        ..earliest()
    };
    let mut consumer = consumer(&broker, config, StartAt::Earliest).await;
    let text = consumer.poll(WAIT).await.unwrap_err().to_string();
    assert!(text.contains("1000000 bytes"), "{text}");
}

/// A fetch answered with this for partition 0.
fn answer(data: PartitionData) -> Reaction {
    let topic = FetchableTopicResponse {
        topic: String::new(),
        topic_id: topic_id().uuid(),
        partitions: vec![data],
    };
    Reaction::Answer(
        FetchResponse {
            responses: vec![topic],
            ..Default::default()
        }
        .into(),
    )
}

#[tokio::test]
async fn leaders_that_move_and_connections_that_end_are_not_told() {
    let mut fetches = 0;
    let broker = FakeBroker::start(1, move |_, request, log| {
        let Request::Fetch(_) = request else {
            return Reaction::Usual;
        };
        fetches += 1;
        let error_code = match fetches {
            1 => ErrorCode::NOT_LEADER_OR_FOLLOWER,
            2 => {
                log.leader_epoch = 3;
                ErrorCode::FENCED_LEADER_EPOCH
            }
            3 => return Reaction::Close,
            4 => ErrorCode::UNKNOWN_TOPIC_ID,
            5 => return Reaction::WrongCorrelation,
            6 => ErrorCode::OFFSET_NOT_AVAILABLE,
            _ => return Reaction::Usual,
        };
        answer(PartitionData {
            error_code,
            ..Default::default()
        })
    })
    .await;
    plain(&mut broker.state.lock().unwrap().log, 0, &["there"]);
    let mut consumer = consumer(&broker, earliest(), StartAt::Earliest).await;
    assert_eq!(read(&mut consumer, 1).await, ["there"]);
    assert!(
        broker.asked(ApiKey::Metadata).len() > 2,
        "leaders were asked for again"
    );
}

#[tokio::test]
async fn a_truncation_below_the_position_is_noticed() {
    let scripted = |_: &_, request: &Request, log: &mut FakeLog| {
        let Request::Fetch(fetch) = request else {
            return Reaction::Usual;
        };
        let partition = fetch
            .topics()
            .next()
            .and_then(|mut topic| topic.partitions.next());
        let is_behind =
            log.leader_epoch == 9 && partition.is_some_and(|it| it.fetch_offset == Offset::new(3));
        if !is_behind {
            return Reaction::Usual;
        }
        let diverging_epoch = EpochEndOffset {
            epoch: 0,
            end_offset: 1,
        };
        answer(PartitionData {
            diverging_epoch,
            ..Default::default()
        })
    };
    for reset in [OffsetReset::Latest, OffsetReset::None] {
        let broker = FakeBroker::start(1, scripted).await;
        plain(&mut broker.state.lock().unwrap().log, 0, &["a", "b", "c"]);
        let config = ConsumerConfig {
            auto_offset_reset: reset,
            ..Default::default()
        };
        let mut consumer = consumer(&broker, config, StartAt::Earliest).await;
        assert_eq!(read(&mut consumer, 3).await, ["a", "b", "c"]);
        {
            let log = &mut broker.state.lock().unwrap().log;
            log.leader_epoch = 9;
            log.partitions[0].bytes.clear();
            log.partitions[0].end_offset = 0;
            plain(log, 0, &["a"]);
            plain(log, 0, &["new b", "new c", "new d"]);
        }
        // Makes the session name the partition again, with its epoch.
        consumer.seek(&at(0), StartAt::Offset(Offset::new(3)));
        if reset == OffsetReset::None {
            let error = loop {
                match consumer.poll(WAIT).await {
                    Err(why) => break why,
                    Ok(records) => assert!(records.is_empty()),
                }
            };
            let text = error.to_string();
            assert!(text.contains("truncated to 1"), "{text}");
        } else {
            assert_eq!(read(&mut consumer, 3).await, ["new b", "new c", "new d"]);
        }
    }
}

#[tokio::test]
async fn codes_of_the_future_are_told() {
    let broker = FakeBroker::start(1, |_, request, _| match request {
        Request::Fetch(_) => answer(PartitionData {
            error_code: ErrorCode::new(1234),
            ..Default::default()
        }),
        _ => Reaction::Usual,
    })
    .await;
    let mut consumer = consumer(&broker, earliest(), StartAt::Offset(Offset::new(0))).await;
    let text = consumer.poll(WAIT).await.unwrap_err().to_string();
    assert!(
        text.contains("fetch orders-0") && text.contains("1234"),
        "{text}"
    );
}

#[tokio::test]
async fn old_brokers_are_asked_by_name_and_without_sessions() {
    for fetch_max in [4, 6, 12] {
        let broker = broker_with(&["old"]).await;
        {
            let versions = &mut broker.state.lock().unwrap().log.versions;
            versions.insert(ApiKey::Fetch, (4, fetch_max));
            versions.insert(ApiKey::Metadata, (0, 9));
            versions.insert(ApiKey::ListOffsets, (1, 2));
        }
        let mut consumer = consumer(&broker, earliest(), StartAt::Earliest).await;
        assert_eq!(read(&mut consumer, 1).await, ["old"]);
        assert!(
            broker
                .asked(ApiKey::Fetch)
                .iter()
                .all(|version| *version == fetch_max)
        );
    }
}

#[tokio::test]
async fn unknown_topics_and_partitions_are_refused_at_assignment() {
    let broker = FakeBroker::usual(1).await;
    let mut config = broker.config();
    config.default_api_timeout = Millis::new(50);
    let client = highwater_client::Client::connect(config).await.unwrap();
    let mut consumer = Consumer::new(&client, earliest());
    let error = consumer
        .assign_topic("nope", StartAt::Earliest)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    let error = consumer
        .assign(TOPIC, PartitionIndex::new(5), StartAt::Earliest)
        .await;
    assert!(error.unwrap_err().to_string().contains("orders-5"));
    assert!(consumer.poll(Millis::new(10)).await.unwrap().is_empty());
}
