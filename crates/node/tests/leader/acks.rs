//! Writes that wait for followers.

use highwater_types::ErrorCode;

use crate::cluster::*;
use crate::support::{batch, idempotent};

const T0: (&str, i32) = (TOPIC, 0);

fn error(cluster: &mut Cluster, producer: u64) -> Option<ErrorCode> {
    let rows = cluster.world.receive_produce(producer)?;
    Some(rows[0].error_code)
}

/// The whole exchange takes no tick: each step is the answer to the one before.
#[test]
fn a_write_is_acknowledged_by_the_fetch_behind_it() {
    for shards in 1..=3 {
        let mut cluster = Cluster::new(shards, 1, &[1, 2, 3], &[1, 2, 3]);
        let mut second = cluster.follower(2, 18).in_session();
        let mut third = cluster.follower(3, 17).in_session();
        let producer = cluster.world.connect();
        for offset in 0..5 {
            assert!(cluster.fetch(&mut second, &[at(offset)]).is_none());
            assert!(cluster.fetch(&mut third, &[at(offset)]).is_none());
            cluster.world.send_produce(producer, -1, T0, batch(&["v"]));
            for follower in [&mut second, &mut third] {
                assert_eq!(error(&mut cluster, producer), None);
                let answer = cluster.answer(follower).expect("parked fetches go out");
                assert!(has_records(&only(&answer)));
                cluster.send(follower, &[at(offset + 1)], &[]);
            }
            assert_eq!(error(&mut cluster, producer), Some(ErrorCode::NONE));
            // For the next round.
            for follower in [&mut second, &mut third] {
                cluster.world.advance(500);
                cluster.answer(follower);
            }
        }
        assert!(!cluster.asks());
    }
}

#[test]
fn an_ack_waits_for_a_slow_follower_until_it_is_out() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
    let mut second = cluster.follower(2, 17).without_waiting();
    let producer = cluster.world.connect();
    cluster.world.send_produce(producer, -1, T0, batch(&["v"]));
    for _ in 0..4 {
        cluster.fetch_one(&mut second, at(1));
        cluster.world.advance(900);
        assert_eq!(error(&mut cluster, producer), None);
    }
    let asked = cluster.asked();
    cluster.tell(&asked, Ok(ErrorCode::NONE));
    assert_eq!(error(&mut cluster, producer), Some(ErrorCode::NONE));
}

#[test]
fn leadership_that_is_lost_fails_who_waits_also_when_it_is_regained() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    let (lost, regained) = (cluster.world.connect(), cluster.world.connect());
    cluster.world.send_produce(lost, -1, T0, batch(&["v"]));
    cluster.metadata(2, 1, &[1, 2]);
    let refused = Some(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(error(&mut cluster, lost), refused);
    cluster.metadata(1, 2, &[1, 2]);
    cluster.world.send_produce(regained, -1, T0, batch(&["v"]));
    // Somebody else led in epoch 3.
    cluster.metadata(1, 4, &[1, 2]);
    assert_eq!(error(&mut cluster, regained), refused);
}

#[test]
fn an_epoch_that_begins_with_the_same_leader_keeps_who_waits() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    let mut follower = cluster.follower(2, 17).without_waiting();
    let producer = cluster.world.connect();
    cluster.world.send_produce(producer, -1, T0, batch(&["v"]));
    cluster.fetch_one(&mut follower, at(0));
    cluster.metadata(1, 1, &[1, 2]);
    assert_eq!(error(&mut cluster, producer), None);
    cluster.fetch_one(&mut follower, at(1));
    assert_eq!(
        error(&mut cluster, producer),
        None,
        "a fetch of the epoch before"
    );
    cluster.fetch_one(&mut follower, at(1).in_epoch(1));
    assert_eq!(error(&mut cluster, producer), Some(ErrorCode::NONE));
}

#[test]
fn pi_03_a_retry_waits_for_the_high_watermark_too() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    let mut follower = cluster.follower(2, 17).without_waiting();
    let (first, retry) = (cluster.world.connect(), cluster.world.connect());
    cluster
        .world
        .send_produce(first, -1, T0, idempotent(7, 0, 0, 3));
    cluster.world.disconnect(first);
    cluster
        .world
        .send_produce(retry, -1, T0, idempotent(7, 0, 0, 3));
    assert_eq!(error(&mut cluster, retry), None, "in the log is not safe");
    assert_eq!(cluster.world.offsets(TOPIC, 0)[3], 3, "once");
    cluster.fetch_one(&mut follower, at(3));
    let rows = cluster.world.receive_produce(retry).expect("answered");
    assert_eq!(
        (rows[0].error_code, rows[0].base_offset),
        (ErrorCode::NONE, 0)
    );
}

#[test]
fn pi_05_sequences_of_a_partition_go_on_over_a_change_of_leader() {
    let mut cluster = Cluster::new(1, 2, &[1, 2], &[1]);
    let producer = cluster.world.connect();
    for partition in [0, 1] {
        let to = (TOPIC, partition);
        cluster
            .world
            .send_produce(producer, -1, to, idempotent(7, 0, 0, 2));
        assert_eq!(error(&mut cluster, producer), Some(ErrorCode::NONE));
    }
    cluster.metadata(2, 1, &[1, 2]);
    cluster
        .world
        .send_produce(producer, -1, T0, idempotent(7, 0, 2, 2));
    let refused = Some(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(error(&mut cluster, producer), refused, "not out of order");
    cluster.metadata(1, 2, &[1]);
    cluster
        .world
        .send_produce(producer, -1, T0, idempotent(7, 0, 2, 2));
    assert_eq!(error(&mut cluster, producer), Some(ErrorCode::NONE));
    cluster
        .world
        .send_produce(producer, -1, (TOPIC, 1), idempotent(7, 0, 2, 2));
    assert_eq!(error(&mut cluster, producer), Some(ErrorCode::NONE));
    cluster
        .world
        .send_produce(producer, -1, T0, idempotent(7, 0, 9, 2));
    let gap = Some(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(error(&mut cluster, producer), gap);
}

#[test]
fn a_write_that_nobody_copies_in_time_is_told_so() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    let producer = cluster.world.connect();
    let row = (TOPIC, 0, Some(batch(&["v"])));
    cluster.world.send_produce_of(producer, -1, 300, &[row]);
    cluster.world.advance(299);
    assert_eq!(error(&mut cluster, producer), None);
    cluster.world.advance(1);
    let rows = cluster.world.receive_produce(producer).expect("told");
    assert_eq!(rows[0].error_code, ErrorCode::REQUEST_TIMED_OUT);
    let mut follower = cluster.follower(2, 17).without_waiting();
    cluster.fetch_one(&mut follower, at(1));
    assert_eq!(cluster.high_watermark(), 1, "the record stays");
}
