//! Who is in the ISR, and what the high watermark waits for meanwhile.

use highwater_node::PeerError;
use highwater_types::{ErrorCode, NodeId};

use crate::cluster::*;
use crate::support::batch;

#[test]
fn a_paused_follower_leaves_with_the_numbers_and_comes_back() {
    for shards in 1..=2 {
        let mut cluster = Cluster::new(shards, 1, &[1, 2], &[1, 2]);
        let mut follower = cluster.follower(2, 17).in_session();
        assert!(cluster.fetch(&mut follower, &[at(0)]).is_none());
        cluster.world.advance(400);
        cluster.append(0);
        cluster.answer(&mut follower).expect("answered");
        cluster.world.advance(1_000);
        assert!(!cluster.asks());
        cluster.world.advance(2_000);
        let asked = cluster.asked();
        assert_eq!(asked.isr(), [(1, REGISTERED)]);
        let line = "isr-wanted t-0 1: 2 lags (leo=0 of 1, behind for 3000 ms, last fetch 3000 ms";
        assert!(cluster.world.has_event(line), "{:?}", cluster.world.events);
        assert_eq!(cluster.high_watermark(), 0, "not before it is committed");
        cluster.tell(&asked, Ok(ErrorCode::NONE));
        assert!(cluster.world.has_event("isr t-0 1,2 -> 1"));
        assert_eq!(cluster.high_watermark(), 1);
        follower.max_wait_ms = 0;
        let row = only(
            &cluster
                .fetch(&mut follower, &[])
                .expect("what it did not take"),
        );
        assert!(has_records(&row));
        assert!(!cluster.asks());
        cluster.fetch(&mut follower, &[at(1)]);
        let asked = cluster.asked();
        assert_eq!(asked.isr(), [(1, REGISTERED), (2, REGISTERED)]);
        assert!(
            cluster
                .world
                .has_event("isr-wanted t-0 1,2: 2 has caught up (leo=1 hw=1)")
        );
        cluster.tell(&asked, Ok(ErrorCode::NONE));
        assert!(cluster.world.has_event("isr t-0 1 -> 1,2"));
    }
}

/// The lag is counted from the last request of the session, though it did not mention the
/// partition since it was caught up.
#[test]
fn an_append_after_a_long_idle_time_finds_the_follower_caught_up() {
    for shards in 1..=3 {
        let mut cluster = Cluster::new(shards, 2, &[1, 2], &[1, 2]);
        let mut follower = cluster.follower(2, 17).in_session();
        assert!(
            cluster
                .fetch(&mut follower, &[at(0), at(0).of(1)])
                .is_none()
        );
        for _ in 0..20 {
            cluster.world.advance(500);
            cluster.answer(&mut follower).expect("the wait is over");
            assert!(cluster.fetch(&mut follower, &[]).is_none());
        }
        cluster.append(0);
        // The answer is lost with the follower; the last request came just before.
        cluster.world.advance(1_900);
        assert!(!cluster.asks(), "{shards} shards: {:?}", cluster.world.sent);
        cluster.world.advance(1_200);
        assert_eq!(cluster.asked().isr(), [(1, REGISTERED)]);
    }
}

#[test]
fn a_follower_that_fell_silent_while_idle_is_out_soon_after_the_next_append() {
    for shards in 1..=3 {
        let mut cluster = Cluster::new(shards, 1, &[1, 2], &[1, 2]);
        let mut follower = cluster.follower(2, 17).in_session();
        assert!(cluster.fetch(&mut follower, &[at(0)]).is_none());
        cluster.world.advance(20_000);
        assert!(!cluster.asks(), "it holds all there is");
        cluster.append(0);
        cluster.world.advance(LAG_MAX / 2);
        assert_eq!(cluster.asked().isr(), [(1, REGISTERED)]);
    }
}

#[test]
fn ih_01_the_high_watermark_waits_for_who_is_about_to_join() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2]);
    let mut second = cluster.follower(2, 17).without_waiting();
    let mut third = cluster.follower(3, 17).without_waiting();
    cluster.fetch_one(&mut third, at(0));
    let asked = cluster.asked();
    assert_eq!(asked.isr(), [(1, 5), (2, -1), (3, 5)]);
    for _ in 0..10 {
        cluster.append(0);
    }
    cluster.fetch_one(&mut second, at(10));
    assert_eq!(cluster.high_watermark(), 0, "3 may be in the ISR by now");
    cluster.tell(&asked, Ok(ErrorCode::NONE));
    assert_eq!(cluster.high_watermark(), 0);
    cluster.fetch_one(&mut third, at(10));
    assert_eq!(cluster.high_watermark(), 10);
}

#[test]
fn ih_02_who_is_about_to_leave_is_waited_for_until_it_is_committed() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
    let mut second = cluster.follower(2, 17).without_waiting();
    let mut third = cluster.follower(3, 17).without_waiting();
    for _ in 0..5 {
        cluster.append(0);
    }
    cluster.fetch_one(&mut third, at(5));
    for _ in 0..5 {
        cluster.append(0);
    }
    for _ in 0..4 {
        cluster.fetch_one(&mut second, at(10));
        cluster.world.advance(900);
    }
    let asked = cluster.asked();
    assert_eq!(asked.isr(), [(1, 5), (2, 5)]);
    assert_eq!(cluster.high_watermark(), 5);
    cluster.tell(&asked, Ok(ErrorCode::NONE));
    assert_eq!(cluster.high_watermark(), 10);
}

#[test]
fn ih_03_who_joins_has_reached_the_start_of_the_leader_epoch() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2]);
    for _ in 0..10 {
        cluster.append(0);
    }
    let mut second = cluster.follower(2, 17).without_waiting();
    cluster.fetch_one(&mut second, at(6));
    cluster.metadata(1, 1, &[1, 2]);
    let mut third = cluster.follower(3, 17).without_waiting();
    for offset in [7, 9] {
        cluster.fetch_one(&mut third, at(offset).in_epoch(1));
        assert!(!cluster.asks(), "above the high watermark is not enough");
    }
    cluster.fetch_one(&mut third, at(10).in_epoch(1));
    assert_eq!(cluster.asked().isr(), [(1, 5), (2, -1), (3, 5)]);
}

#[test]
fn ih_05_a_fenced_follower_joins_only_once_it_is_not() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1]);
    cluster.append(0);
    cluster.broker(2, |it| it.fenced = true);
    let mut follower = cluster.follower(2, 17).without_waiting().in_session();
    cluster.fetch(&mut follower, &[at(1)]);
    for _ in 0..10 {
        cluster.world.advance(400);
        cluster.fetch(&mut follower, &[]);
    }
    assert!(!cluster.asks());
    cluster.broker(2, |it| it.fenced = false);
    let asked = cluster.asked();
    // The controller knows something newer.
    cluster.tell(&asked, Ok(ErrorCode::INELIGIBLE_REPLICA));
    assert!(!cluster.asks(), "not over and over");
    cluster.broker(2, |it| it.in_controlled_shutdown = true);
    cluster.world.advance(LAG_MAX + 1);
    assert!(!cluster.asks());
    cluster.broker(2, |it| it.in_controlled_shutdown = false);
    assert!(!cluster.asks(), "it was silent for long");
    cluster.fetch(&mut follower, &[]);
    cluster.world.advance(LAG_MAX / 2);
    assert_eq!(cluster.asked().isr(), [(1, 5), (2, 5)]);
}

#[test]
fn ih_06_a_broker_that_shuts_down_is_not_waited_for() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
    let mut second = cluster.follower(2, 17).without_waiting();
    let mut third = cluster.follower(3, 17).without_waiting();
    cluster.append(0);
    cluster.fetch_one(&mut second, at(1));
    cluster.fetch_one(&mut third, at(1));
    cluster.append(0);
    cluster.fetch_one(&mut second, at(2));
    assert_eq!(cluster.high_watermark(), 1);
    // One batch of metadata: out of the ISR, and shutting down.
    cluster.broker(3, |it| it.in_controlled_shutdown = true);
    assert_eq!(cluster.high_watermark(), 1, "it is in the ISR still");
    cluster.metadata(1, 0, &[1, 2]);
    assert_eq!(cluster.high_watermark(), 2);
}

#[test]
fn ih_07_a_lost_answer_is_asked_for_again_and_a_stale_epoch_waits_for_the_metadata() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.append(0);
    cluster.world.advance(3_000);
    let mut asked = cluster.asked();
    for lost in [
        Err(PeerError::TimedOut),
        Err(PeerError::Disconnected),
        Ok(ErrorCode::NOT_CONTROLLER),
    ] {
        cluster.tell(&asked, lost);
        assert!(!cluster.asks(), "not at once");
        cluster.world.advance(50);
        let again = cluster.asked();
        assert_eq!(again.request, asked.request);
        asked = again;
    }
    cluster.tell(&asked, Ok(ErrorCode::INVALID_UPDATE_VERSION));
    cluster.world.advance(10_000);
    assert!(!cluster.asks(), "the metadata will tell");
    assert_eq!(cluster.high_watermark(), 0);
    cluster.metadata(1, 0, &[1]);
    assert_eq!(cluster.high_watermark(), 1);
    let mut follower = cluster.follower(2, 17).without_waiting();
    cluster.fetch_one(&mut follower, at(1));
    assert_eq!(cluster.asked().isr(), [(1, 5), (2, 5)], "never frozen");
}

#[test]
fn ih_09_an_answer_to_a_change_of_another_epoch_is_ignored() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
    cluster.append(0);
    let mut second = cluster.follower(2, 17).without_waiting();
    for _ in 0..4 {
        cluster.fetch_one(&mut second, at(1));
        cluster.world.advance(900);
    }
    let first = cluster.asked();
    assert_eq!(first.isr(), [(1, 5), (2, 5)]);
    cluster.metadata(1, 1, &[1, 2, 3]);
    cluster.world.advance(3_500);
    assert!(!cluster.asks(), "one request at a time");
    cluster.tell(&first, Ok(ErrorCode::NONE));
    assert!(!cluster.world.has_event("isr t-0 1,2,3 -> 1,2"));
    let second = cluster.asked();
    assert_eq!(second.isr(), [(1, 5)], "of the new epoch");
    cluster.tell(&second, Ok(ErrorCode::NONE));
    assert!(cluster.world.has_event("isr t-0 1,2,3 -> 1"));
}

#[test]
fn ih_12_below_the_minimum_nothing_is_acknowledged_nor_readable() {
    let configs = [("min.insync.replicas", "2")];
    let mut cluster = Cluster::with(1, 1, &[1, 2], &[1, 2], &configs);
    let producer = cluster.world.connect();
    cluster
        .world
        .send_produce(producer, -1, (TOPIC, 0), batch(&["v"]));
    assert!(cluster.world.receive_produce(producer).is_none());
    cluster.world.advance(3_000);
    let asked = cluster.asked();
    cluster.tell(&asked, Ok(ErrorCode::NONE));
    let rows = cluster.world.receive_produce(producer).expect("told");
    let after = ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND;
    assert_eq!((rows[0].error_code, rows[0].base_offset), (after, 0));
    let (error, _) = cluster.world.produce(-1, (TOPIC, 0), batch(&["v"]));
    assert_eq!(error, ErrorCode::NOT_ENOUGH_REPLICAS.raw());
    cluster.append(0);
    assert_eq!(cluster.high_watermark(), 0, "not readable");
    let mut follower = cluster.follower(2, 17).without_waiting();
    cluster.fetch_one(&mut follower, at(2));
    assert_eq!(cluster.high_watermark(), 0);
    let asked = cluster.asked();
    cluster.tell(&asked, Ok(ErrorCode::NONE));
    assert_eq!(cluster.high_watermark(), 2);
}

/// A zombie: nobody answers it any more. Its high watermark cannot move without those who follow
/// somebody else by now.
#[test]
fn np_07_a_zombie_leader_acknowledges_nothing() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
    let producer = cluster.world.connect();
    let mut consumer = cluster.follower(-1, 17).without_waiting();
    cluster
        .world
        .send_produce_of(producer, -1, 1_500, &[(TOPIC, 0, Some(batch(&["v"])))]);
    let (error, _) = cluster.world.produce(1, (TOPIC, 0), batch(&["w"]));
    assert_eq!(error, 0, "acks=1 asks nobody, as in Kafka");
    cluster.world.advance(5_000);
    let rows = cluster.world.receive_produce(producer).expect("told");
    assert_eq!(rows[0].error_code, ErrorCode::REQUEST_TIMED_OUT);
    let asked = cluster.asked();
    for _ in 0..3 {
        cluster.tell(&asked, Err(PeerError::Disconnected));
        cluster.world.advance(2_000);
        assert_eq!(cluster.high_watermark(), 0);
    }
    let row = cluster.fetch_one(&mut consumer, at(0));
    assert!(!has_records(&row), "nobody reads what nobody else has");
    // What followers of the new leader still send is of another epoch.
    let mut follower = cluster.follower(2, 17);
    let row = cluster.fetch_one(&mut follower, at(2).in_epoch(1));
    assert_eq!(row.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH);
    assert_eq!(cluster.high_watermark(), 0);
    cluster.metadata(2, 1, &[2, 3]);
    let (error, _) = cluster.world.produce(1, (TOPIC, 0), batch(&["w"]));
    assert_eq!(error, ErrorCode::NOT_LEADER_OR_FOLLOWER.raw());
}

/// The process stood still: what it did not hear meanwhile is not the followers' fault.
#[test]
fn after_a_standstill_queued_fetches_are_worked_off_before_anybody_is_judged() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
    let mut second = cluster.follower(2, 17).without_waiting();
    let mut third = cluster.follower(3, 17).without_waiting();
    cluster.append(0);
    for follower in [&mut second, &mut third] {
        cluster.fetch_one(follower, at(1));
    }
    cluster.append(0);
    // Nothing is handled for a minute; the tick is the first that comes.
    cluster.world.stand_still(60_000);
    cluster.world.advance(0);
    assert!(!cluster.asks());
    // What waited in the socket.
    cluster.fetch_one(&mut second, at(2));
    cluster.world.advance(2_000);
    assert_eq!(
        cluster.asked().isr(),
        [(1, 5), (2, 5)],
        "3 did not send anything"
    );
}

#[test]
fn all_that_lag_leave_in_one_change_and_partitions_share_a_request() {
    let mut cluster = Cluster::new(1, 3, &[1, 2, 3], &[1, 2, 3]);
    for partition in 0..3 {
        cluster.append(partition);
    }
    cluster.world.advance(3_000);
    let asked = cluster.asked();
    let partitions = &asked.request.topics[0].partitions;
    assert_eq!(partitions.len(), 3);
    let alone = |isr: &[highwater_protocol::messages::alter_partition_request::BrokerState]| {
        isr.len() == 1 && isr[0].broker_id == NodeId::new(1)
    };
    assert!(partitions.iter().all(|it| alone(&it.new_isr_with_epochs)));
    assert!(!cluster.asks());
}

/// A controller that does not answer for long is asked over and over; people are told once.
#[test]
fn a_change_that_nobody_answers_is_told_once() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.append(0);
    cluster.world.advance(3_000);
    let first = cluster.asked();
    cluster.tell(&first, Err(PeerError::Disconnected));
    for _ in 0..20 {
        cluster.world.advance(50);
        let again = cluster.asked();
        assert_eq!(again.request, first.request);
        cluster.tell(&again, Err(PeerError::Disconnected));
    }
    let loud = cluster.world.loud.iter();
    let told = loud.filter(|line| line.starts_with("isr-wanted t-0 1: "));
    assert_eq!(told.count(), 1, "{:?}", cluster.world.loud);
}
