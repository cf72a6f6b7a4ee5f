//! Counting what a group has not read yet, against a broker with a log.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use highwater_client::{Client, PartitionName};
use highwater_protocol::ApiKey;
use highwater_records::{BatchBuilder, BatchHeader, BatchOptions, EndTransactionMarker};
use highwater_types::{LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, WallMs};
use support::{FakeBroker, FakeLog, TOPIC};

fn first() -> PartitionName {
    (TOPIC.to_owned(), PartitionIndex::new(0))
}

fn put_data(log: &mut FakeLog, count: usize) {
    let mut builder = BatchBuilder::new();
    for _ in 0..count {
        builder
            .append(WallMs::new(1), None, Some(b"value"), &[])
            .unwrap();
    }
    let options = BatchOptions {
        base_offset: Offset::new(log.partitions[0].end_offset),
        ..BatchOptions::default()
    };
    log.put(0, &builder.finish(&options).unwrap());
}

fn put_marker(log: &mut FakeLog) {
    let marker = EndTransactionMarker {
        committed: true,
        coordinator_epoch: LeaderEpoch::new(0),
    };
    let (id, epoch) = (ProducerId::new(1), ProducerEpoch::new(0));
    let bytes = BatchBuilder::end_transaction(WallMs::new(1), id, epoch, marker);
    let mut header = BatchHeader::parse(&bytes).unwrap();
    header.base_offset = Offset::new(log.partitions[0].end_offset);
    log.put(0, &[header.encode().as_slice(), &bytes[61..]].concat());
}

async fn counted(client: &Client, from: i64, to: i64, bytes_max: u64) -> (u64, u64, i64) {
    let range = (Offset::new(from), Offset::new(to));
    let counts = client
        .count_records(&first(), range, bytes_max)
        .await
        .unwrap();
    (counts.data, counts.control, counts.counted_to.raw())
}

#[tokio::test]
async fn control_records_are_lag_that_no_consumer_ever_reads() {
    let broker = FakeBroker::usual(1).await;
    {
        let log = &mut broker.state.lock().unwrap().log;
        for _ in 0..4 {
            put_data(log, 5);
            put_marker(log);
        }
    }
    let client = broker.client().await;
    client.refresh(Some(&[TOPIC.to_owned()])).await.unwrap();
    assert_eq!(counted(&client, 0, 24, u64::MAX).await, (20, 4, 24));
    assert_eq!(counted(&client, 3, 24, u64::MAX).await, (17, 4, 24));
    assert_eq!(counted(&client, 24, 24, u64::MAX).await, (0, 0, 24));
    assert!(broker.asked(ApiKey::Fetch).len() >= 2);
    let (data, control, to) = counted(&client, 0, 24, 1).await;
    assert!(
        to > 0 && to < 24,
        "it stops early, after the first answer: {to}"
    );
    assert_eq!(data + control, u64::try_from(to).unwrap());
    assert_eq!(
        counted(&client, 0, 24, 0).await,
        (0, 0, 0),
        "nothing is read at all"
    );
}
