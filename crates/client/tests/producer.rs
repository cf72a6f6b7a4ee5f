//! The producer, against a broker that keeps sequences and fails as a test wants.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use highwater_client::{
    Acks, Client, ClientError, Delivery, Producer, ProducerConfig, ProducerRecord,
};
use highwater_protocol::messages::ProduceResponse;
use highwater_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use highwater_protocol::{ApiKey, Request};
use highwater_records::{Compression, Compressor};
use highwater_types::{ErrorCode, Millis, PartitionIndex};
use support::{FakeBroker, Reaction, TOPIC, topic_id};

fn config() -> ProducerConfig {
    ProducerConfig {
        linger: Millis::new(1),
        delivery_timeout: Millis::new(10_000),
        max_block: Millis::new(2_000),
        ..ProducerConfig::default()
    }
}

/// Produce answered with `code` for partition 0.
fn refusal(code: ErrorCode, message: Option<&str>) -> Reaction {
    Reaction::Answer(
        ProduceResponse {
            responses: vec![TopicProduceResponse {
                topic_id: topic_id().uuid(),
                partition_responses: vec![PartitionProduceResponse {
                    error_code: code,
                    error_message: message.map(str::to_owned),
                    record_errors: vec![BatchIndexAndErrorMessage {
                        batch_index: 3,
                        batch_index_error_message: Some("that one".to_owned()),
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        }
        .into(),
    )
}

async fn send(producer: &Producer, value: &str) -> Delivery {
    let record = ProducerRecord {
        topic: TOPIC,
        partition: Some(PartitionIndex::new(0)),
        value: Some(value.as_bytes()),
        ..ProducerRecord::default()
    };
    producer.send(record).await.unwrap()
}

async fn send_all(producer: &Producer, values: &[String]) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for value in values {
        deliveries.push(send(producer, value).await);
    }
    deliveries
}

fn values(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| format!("value {n} {}", "x".repeat(n % 300)))
        .collect()
}

#[tokio::test]
async fn records_arrive_in_order_in_every_codec() {
    for codec in Compression::ALL {
        let broker = FakeBroker::usual(1).await;
        let client = broker.client().await;
        let config = ProducerConfig {
            compressor: Compressor::new(codec),
            ..config()
        };
        let producer = Producer::new(&client, config).unwrap();
        let values = values(2000);
        let deliveries = send_all(&producer, &values).await;
        producer.flush().await;
        for (delivery, offset) in deliveries.into_iter().zip(0..) {
            assert_eq!(delivery.wait().await.unwrap().offset.unwrap().raw(), offset);
        }
        producer.close(Millis::new(5_000)).await.unwrap();
        assert_eq!(broker.values(0), values, "{codec}");
        let requests = broker.asked(ApiKey::Produce);
        assert!(requests.iter().all(|version| *version == 13));
        assert!(
            requests.len() < 200,
            "{codec}: records are gathered: {}",
            requests.len()
        );
    }
}

/// Failures of every kind at every place: each record is there once and in order.
#[tokio::test]
async fn failures_neither_lose_nor_repeat_nor_reorder() {
    for seed in 0..8_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let broker = FakeBroker::start(1, move |header, _, _| {
            if header.api_key != 0 {
                return Reaction::Usual;
            }
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            match state % 16 {
                0 => Reaction::Close,
                1 => Reaction::CarryOutAndClose,
                2 => refusal(ErrorCode::NOT_LEADER_OR_FOLLOWER, None),
                3 => refusal(ErrorCode::NOT_ENOUGH_REPLICAS, None),
                4 => refusal(ErrorCode::REQUEST_TIMED_OUT, None),
                5 => Reaction::WrongCorrelation,
                6 | 7 => Reaction::Later(Millis::new(3)),
                _ => Reaction::Usual,
            }
        })
        .await;
        let client = broker.client().await;
        let config = ProducerConfig {
            batch_size: 2_000,
            linger: Millis::ZERO,
            ..config()
        };
        let producer = Producer::new(&client, config).unwrap();
        let values = values(600);
        let deliveries = send_all(&producer, &values).await;
        producer.flush().await;
        for delivery in deliveries {
            delivery.wait().await.unwrap();
        }
        assert_eq!(broker.values(0), values, "seed {seed}");
    }
}

#[tokio::test]
async fn a_refused_batch_fails_its_records_alone() {
    let count = Arc::new(AtomicUsize::new(0));
    let broker = FakeBroker::start(1, {
        let count = count.clone();
        move |header, _, _| match header.api_key {
            0 if count.fetch_add(1, Ordering::Relaxed) == 0 => {
                refusal(ErrorCode::INVALID_RECORD, Some("bad record"))
            }
            _ => Reaction::Usual,
        }
    })
    .await;
    let client = broker.client().await;
    let producer = Producer::new(&client, config()).unwrap();
    let first = send(&producer, "bad").await;
    let error = first.wait().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::INVALID_RECORD));
    let text = error.to_string();
    assert!(
        text.contains("orders-0") && text.contains("bad record"),
        "{text}"
    );
    assert!(text.contains("record 3: that one"), "{text}");
    // Sequences go on although the broker never saw the first batch.
    let second = send(&producer, "good").await;
    second.wait().await.unwrap();
    assert_eq!(broker.values(0), ["good"]);
}

#[tokio::test]
async fn many_in_flight_survive_a_refusal_in_front_of_them() {
    let count = Arc::new(AtomicUsize::new(0));
    let broker = FakeBroker::start(1, {
        let count = count.clone();
        move |header, _, _| match header.api_key {
            0 if count.fetch_add(1, Ordering::Relaxed) == 2 => {
                refusal(ErrorCode::MESSAGE_TOO_LARGE, None)
            }
            _ => Reaction::Usual,
        }
    })
    .await;
    let client = broker.client().await;
    let config = ProducerConfig {
        batch_size: 200,
        linger: Millis::ZERO,
        ..config()
    };
    let producer = Producer::new(&client, config).unwrap();
    let values: Vec<_> = (0..100).map(|n| format!("value {n:0100}")).collect();
    let deliveries = send_all(&producer, &values).await;
    let mut failed = Vec::new();
    for (delivery, value) in deliveries.into_iter().zip(&values) {
        if delivery.wait().await.is_err() {
            failed.push(value.clone());
        }
    }
    assert_eq!(failed.len(), 1, "one batch of one record");
    let kept: Vec<_> = values
        .iter()
        .filter(|value| !failed.contains(value))
        .cloned()
        .collect();
    assert_eq!(broker.values(0), kept);
}

/// KIP-126: with others in flight, idempotent or not, compressed or not.
#[tokio::test]
async fn a_batch_too_large_for_its_broker_is_split_until_it_fits() {
    let codes = [
        ErrorCode::MESSAGE_TOO_LARGE,
        ErrorCode::RECORD_LIST_TOO_LARGE,
    ];
    for (idempotent, codec) in [
        (true, Compression::None),
        (true, Compression::Lz4),
        (false, Compression::None),
    ] {
        for code in codes {
            let broker = FakeBroker::usual(1).await;
            broker.state.lock().unwrap().log.batch_max = Some((700, code));
            let client = broker.client().await;
            let config = ProducerConfig {
                batch_size: 8_000,
                compressor: Compressor::new(codec),
                acks: if idempotent { Acks::All } else { Acks::Leader },
                // Without sequences only one at a time is sure to keep the order.
                max_in_flight: if idempotent { 5 } else { 1 },
                ..config()
            };
            let producer = Producer::new(&client, config).unwrap();
            let values: Vec<String> = (0..300_u64)
                .map(|n| format!("{n} {:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
                .collect();
            let deliveries = send_all(&producer, &values).await;
            producer.flush().await;
            for (delivery, offset) in deliveries.into_iter().zip(0..) {
                let metadata = delivery.wait().await.unwrap();
                assert_eq!(metadata.offset.unwrap().raw(), offset, "{codec}");
            }
            assert_eq!(broker.values(0), values, "{codec} {code}");
            producer.close(Millis::new(5_000)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_is_too_large_by_itself_fails_alone_and_the_rest_of_its_batch_goes() {
    let broker = FakeBroker::usual(1).await;
    let limit = Some((700, ErrorCode::MESSAGE_TOO_LARGE));
    broker.state.lock().unwrap().log.batch_max = limit;
    let client = broker.client().await;
    let config = ProducerConfig {
        linger: Millis::new(60_000),
        ..config()
    };
    let producer = Producer::new(&client, config).unwrap();
    let mut values: Vec<_> = (0..10).map(|n| format!("value {n}")).collect();
    values[4] = "x".repeat(1_000);
    let deliveries = send_all(&producer, &values).await;
    producer.flush().await;
    for (delivery, n) in deliveries.into_iter().zip(0..) {
        let code = delivery.wait().await.err().and_then(|why| why.code());
        let expected = (n == 4).then_some(ErrorCode::MESSAGE_TOO_LARGE);
        assert_eq!(code, expected, "record {n}");
    }
    values.remove(4);
    assert_eq!(broker.values(0), values);
}

#[tokio::test]
async fn acks_0_is_done_once_written_and_acks_1_has_no_sequences() {
    for acks in [Acks::None, Acks::Leader] {
        let broker = FakeBroker::usual(1).await;
        let client = broker.client().await;
        let producer = Producer::new(&client, ProducerConfig { acks, ..config() }).unwrap();
        let metadata = send(&producer, "x").await.wait().await.unwrap();
        assert_eq!(metadata.offset.is_none(), acks == Acks::None);
        producer.close(Millis::new(5_000)).await.unwrap();
        for _ in 0..500 {
            if !broker.values(0).is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(broker.values(0), ["x"]);
        assert!(broker.asked(ApiKey::InitProducerId).is_empty());
    }
}

#[tokio::test]
async fn a_full_buffer_holds_back_and_then_refuses() {
    let broker = FakeBroker::start(1, |header, _, _| match header.api_key {
        0 => Reaction::Silence,
        _ => Reaction::Usual,
    })
    .await;
    let client = broker.client().await;
    let config = ProducerConfig {
        buffer_memory: 8_000,
        batch_size: 2_000,
        max_block: Millis::new(200),
        ..config()
    };
    let producer = Producer::new(&client, config).unwrap();
    let value = vec![b'x'; 1_500];
    let record = ProducerRecord {
        topic: TOPIC,
        value: Some(&value),
        ..Default::default()
    };
    let mut taken = 0;
    let error = loop {
        match producer.send(record).await {
            Ok(_) => taken += 1,
            Err(why) => break why,
        }
    };
    assert_eq!(error, ClientError::BufferFull { waited_ms: 200 });
    assert_eq!(taken, 4, "as many as fit");
}

#[tokio::test]
async fn memory_goes_around_under_pressure() {
    let broker = FakeBroker::start(3, |header, _, _| match header.api_key {
        0 => Reaction::Later(Millis::new(1)),
        _ => Reaction::Usual,
    })
    .await;
    let client = broker.client().await;
    let config = ProducerConfig {
        buffer_memory: 20_000,
        batch_size: 4_000,
        linger: Millis::new(60_000),
        max_block: Millis::new(20_000),
        ..config()
    };
    let producer = Arc::new(Producer::new(&client, config).unwrap());
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let producer = producer.clone();
            tokio::spawn(async move {
                for n in 0..300 {
                    let key = format!("{task}-{n}");
                    let value = vec![b'v'; n];
                    let record = ProducerRecord {
                        topic: TOPIC,
                        key: Some(key.as_bytes()),
                        value: Some(&value),
                        ..Default::default()
                    };
                    producer.send(record).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    producer.flush().await;
    let counts: Vec<_> = (0..3)
        .map(|partition| broker.values(partition).len())
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 1200, "{counts:?}");
    assert!(
        counts.iter().all(|count| *count > 200),
        "keys spread: {counts:?}"
    );
}

#[tokio::test]
async fn what_is_never_acknowledged_expires_with_the_last_reason() {
    let broker = FakeBroker::start(1, |header, _, _| match header.api_key {
        0 => refusal(ErrorCode::NOT_ENOUGH_REPLICAS, None),
        _ => Reaction::Usual,
    })
    .await;
    let client = broker.client().await;
    let config = ProducerConfig {
        delivery_timeout: Millis::new(150),
        ..config()
    };
    let producer = Producer::new(&client, config).unwrap();
    let error = send(&producer, "x").await.wait().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("delivery.timeout.ms=150"), "{text}");
    assert!(text.contains("NOT_ENOUGH_REPLICAS"), "{text}");
    assert!(broker.asked(ApiKey::Produce).len() > 2);
}

#[tokio::test]
async fn retries_are_counted() {
    let broker = FakeBroker::start(1, |header, _, _| match header.api_key {
        0 => refusal(ErrorCode::NOT_ENOUGH_REPLICAS, None),
        _ => Reaction::Usual,
    })
    .await;
    let client = broker.client().await;
    let config = ProducerConfig {
        retries: 2,
        ..config()
    };
    let producer = Producer::new(&client, config).unwrap();
    let error = send(&producer, "x").await.wait().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NOT_ENOUGH_REPLICAS));
    assert_eq!(broker.asked(ApiKey::Produce).len(), 3);
}

#[tokio::test]
async fn a_producer_that_the_broker_forgot_starts_a_new_epoch() {
    let broker = FakeBroker::usual(1).await;
    let client = broker.client().await;
    let producer = Producer::new(&client, config()).unwrap();
    send(&producer, "a").await.wait().await.unwrap();
    let known = {
        let mut state = broker.state.lock().unwrap();
        let producers = &mut state.log.partitions[0].producers;
        let (&id, _) = producers.iter().next().unwrap();
        // As if the batches before were gone: the broker expects an earlier sequence.
        producers.insert(id, (0, -1));
        id
    };
    // The broker says 45, and there is nothing before it to wait for.
    let error = send(&producer, "b").await.wait().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    send(&producer, "c").await.wait().await.unwrap();
    assert_eq!(broker.values(0), ["a", "c"]);
    let state = broker.state.lock().unwrap();
    let expected = BTreeMap::from([(known, (1, 1))]);
    assert_eq!(state.log.partitions[0].producers, expected);
}

#[tokio::test]
async fn records_too_large_and_unknown_partitions_are_refused_at_once() {
    let broker = FakeBroker::usual(1).await;
    let client = broker.client().await;
    let producer = Producer::new(&client, config()).unwrap();
    let value = vec![0; 2_000_000];
    let large = ProducerRecord {
        topic: TOPIC,
        value: Some(&value),
        ..Default::default()
    };
    let error = producer.send(large).await.unwrap_err();
    assert!(
        error.to_string().contains("max.request.size=1048576"),
        "{error}"
    );
    let partition = Some(PartitionIndex::new(7));
    let nowhere = ProducerRecord {
        topic: TOPIC,
        partition,
        ..Default::default()
    };
    let error = producer.send(nowhere).await.unwrap_err();
    assert!(error.to_string().contains("orders-7"), "{error}");
    let quick = ProducerConfig {
        max_block: Millis::new(100),
        ..config()
    };
    let producer = Producer::new(&client, quick).unwrap();
    let unknown = ProducerRecord {
        topic: "nope",
        ..Default::default()
    };
    let error = producer.send(unknown).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
}

#[tokio::test]
async fn an_old_broker_gets_names_instead_of_ids() {
    let broker = FakeBroker::usual(1).await;
    {
        let mut state = broker.state.lock().unwrap();
        state.log.versions.insert(ApiKey::Produce, (0, 9));
        state.log.versions.insert(ApiKey::Metadata, (0, 9));
    }
    let client = broker.client().await;
    let producer = Producer::new(&client, config()).unwrap();
    send(&producer, "old").await.wait().await.unwrap();
    assert_eq!(broker.values(0), ["old"]);
    assert_eq!(broker.asked(ApiKey::Produce), [9]);
}

#[tokio::test]
async fn dropping_a_producer_gives_up_what_is_on_its_way() {
    let broker = FakeBroker::start(1, |header, request, _| match request {
        Request::Produce(_) => Reaction::Silence,
        _ => {
            let _ = header;
            Reaction::Usual
        }
    })
    .await;
    let mut config_client = broker.config();
    config_client.request_timeout = Millis::new(300);
    let client = Client::connect(config_client).await.unwrap();
    let producer = Producer::new(&client, config()).unwrap();
    let delivery = send(&producer, "x").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(producer);
    assert_eq!(delivery.wait().await, Err(ClientError::ProducerClosed));
}
