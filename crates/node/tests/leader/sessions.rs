//! Sessions of followers: what they do not mention, what they cost, and how they end.

use highwater_types::ErrorCode;

use crate::cluster::*;

/// 2,000 partitions that nothing happens to cost next to nothing: no message to another shard but
/// one to hear it, and no look at any partition.
#[test]
fn an_idle_session_of_2_000_partitions_costs_one_message_per_shard() {
    const PARTITIONS: i32 = 2_000;
    for shards in 1..=3_u16 {
        let mut cluster = Cluster::new(shards, PARTITIONS, &[1, 2], &[1, 2]);
        let mut follower = cluster.follower(2, 17).without_waiting().in_session();
        let all: Vec<Want> = (0..PARTITIONS).map(|number| at(0).of(number)).collect();
        cluster.send(&mut follower, &all, &[]);
        let answer = cluster.answer(&mut follower).expect("an answer");
        assert_eq!(rows(&answer).len(), 2_000);
        for round in 0..5 {
            let before = cluster.world.steps;
            cluster.send(&mut follower, &[], &[]);
            let answer = cluster.answer(&mut follower).expect("an answer");
            assert_eq!(rows(&answer).len(), 0, "{shards} shards, round {round}");
            let steps = cluster.world.steps - before;
            assert_eq!(
                steps,
                u64::from(shards),
                "the request, and who has to hear it"
            );
        }
        // One of them is written to: one is told, and nobody else is looked at.
        cluster.append(1_234);
        let before = cluster.world.steps;
        cluster.send(&mut follower, &[], &[]);
        let answer = cluster.answer(&mut follower).expect("an answer");
        assert_eq!(told(&answer), [1_234]);
        let steps = cluster.world.steps - before;
        assert!(steps <= u64::from(shards) + 1, "{steps}");
    }
}

#[test]
fn a_session_tells_of_what_changed_and_of_nothing_else() {
    for shards in 1..=3 {
        let mut cluster = Cluster::new(shards, 3, &[1, 2], &[1, 2]);
        let mut follower = cluster.follower(2, 17).without_waiting().in_session();
        let all: Vec<Want> = (0..3).map(|number| at(0).of(number)).collect();
        cluster.fetch(&mut follower, &all);
        cluster.append(1);
        let answer = cluster.fetch(&mut follower, &[]).expect("an answer");
        assert_eq!(told(&answer), [1]);
        // That it has it moves the high watermark, which is news.
        let row = only(
            &cluster
                .fetch(&mut follower, &[at(1).of(1)])
                .expect("an answer"),
        );
        assert_eq!((row.partition_index, row.high_watermark), (1, 1));
        let answer = cluster.fetch(&mut follower, &[]).expect("an answer");
        assert_eq!(told(&answer), [0; 0]);
    }
}

#[test]
fn np_03_each_partition_is_served_in_its_turn() {
    let mut cluster = Cluster::new(1, 3, &[1, 2], &[1, 2]);
    for partition in 0..3 {
        for _ in 0..3 {
            cluster.append(partition);
        }
    }
    let mut follower = cluster.follower(2, 17).in_session();
    // Room for one batch.
    follower.max_bytes = 1;
    let all: Vec<Want> = (0..3).map(|number| at(0).of(number)).collect();
    let mut served = Vec::new();
    let mut wants = all;
    let mut held = [0; 3];
    for _ in 0..9 {
        let answer = cluster.fetch(&mut follower, &wants).expect("an answer");
        let with: Vec<_> = rows(&answer).into_iter().filter(has_records).collect();
        assert_eq!(with.len(), 1);
        let partition = with[0].partition_index;
        served.push(partition);
        let at_now = &mut held[usize::try_from(partition).expect("small")];
        *at_now += 1;
        wants = vec![at(*at_now).of(partition)];
    }
    for round in served.chunks(3) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2]);
    }
}

#[test]
fn np_04_a_request_out_of_order_changes_nothing() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.append(0);
    let mut follower = cluster.follower(2, 17).without_waiting().in_session();
    cluster.fetch(&mut follower, &[at(0)]);
    cluster.fetch(&mut follower, &[]);
    cluster.fetch(&mut follower, &[]);
    let good = follower.session;
    for epoch in [good.1 - 1, good.1 + 1, i32::MAX] {
        follower.session = (good.0, epoch);
        let answer = cluster.fetch(&mut follower, &[at(1)]).expect("an answer");
        assert_eq!(answer.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        assert_eq!((cluster.known(2), cluster.high_watermark()), (Some(0), 0));
    }
    follower.session = (good.0 ^ 1, good.1);
    let answer = cluster.fetch(&mut follower, &[at(1)]).expect("an answer");
    assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    assert_eq!((cluster.known(2), cluster.high_watermark()), (Some(0), 0));
    follower.session = good;
    cluster.fetch(&mut follower, &[at(1)]).expect("an answer");
    assert_eq!((cluster.known(2), cluster.high_watermark()), (Some(1), 1));
}

/// A session by id does not go on by name, nor the other way.
#[test]
fn a_session_keeps_to_ids_or_to_names() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    for (first, then) in [(12, 13), (13, 12)] {
        let mut follower = cluster.follower(2, first).without_waiting().in_session();
        cluster.fetch(&mut follower, &[at(0)]);
        follower.version = then;
        let answer = cluster.fetch(&mut follower, &[at(0)]).expect("an answer");
        assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
    }
}

/// The old session of a partition that moved to another one says nothing of it any more.
#[test]
fn a_stale_session_of_the_same_follower_pulls_nothing_back() {
    for shards in 1..=2 {
        let mut cluster = Cluster::new(shards, 2, &[1, 2], &[1, 2]);
        let mut joining = cluster.follower(2, 17).without_waiting().in_session();
        let mut ordinary = cluster.follower(2, 17).without_waiting().in_session();
        cluster.fetch(&mut joining, &[at(0), at(0).of(1)]);
        cluster.fetch(&mut ordinary, &[at(0).of(1)]);
        cluster.append(0);
        cluster.append(0);
        cluster.fetch(&mut ordinary, &[at(2)]);
        assert_eq!((cluster.known(2), cluster.high_watermark()), (Some(2), 2));
        // Two requests that do not take it out yet: the first reads it, the second only hears.
        for _ in 0..2 {
            cluster.fetch(&mut joining, &[]);
            assert_eq!(cluster.known(2), Some(2), "{shards} shards");
        }
        cluster.send(&mut joining, &[], &[0]);
        cluster.answer(&mut joining).expect("an answer");
        cluster.append(0);
        assert_eq!((cluster.known(2), cluster.high_watermark()), (Some(2), 2));
        cluster.fetch(&mut ordinary, &[at(3)]);
        assert_eq!(cluster.high_watermark(), 3);
    }
}

#[test]
fn a_follower_that_asks_for_it_is_told_of_the_high_watermark_after_a_linger() {
    for shards in 1..=3 {
        let mut cluster = Cluster::new(shards, 1, &[1, 2, 3], &[1, 2, 3]);
        let mut second = cluster.follower(2, 18).in_session();
        let mut third = cluster.follower(3, 18).in_session();
        cluster.append(0);
        cluster
            .fetch(&mut second, &[at(0).knows(0)])
            .expect("records");
        assert!(cluster.fetch(&mut second, &[at(1).knows(0)]).is_none());
        cluster
            .fetch(&mut third, &[at(0).knows(0)])
            .expect("records");
        cluster.world.advance(100);
        assert!(cluster.answer(&mut second).is_none());
        // The last of the ISR has it: both are to know.
        assert!(cluster.fetch(&mut third, &[at(1).knows(0)]).is_none());
        cluster.world.advance(4);
        assert!(cluster.answer(&mut second).is_none());
        assert!(cluster.answer(&mut third).is_none());
        cluster.world.advance(1);
        for follower in [&mut second, &mut third] {
            let answer = cluster.answer(follower).expect("told");
            let row = only(&answer);
            assert_eq!(
                (row.high_watermark, has_records(&row)),
                (1, false),
                "{shards}"
            );
            assert!(cluster.fetch(follower, &[]).is_none());
        }
        cluster.world.advance(100);
        assert!(cluster.answer(&mut second).is_none(), "it knows");
    }
}

/// A mention says what the follower knows: the answer before may have been dropped.
#[test]
fn a_mention_says_which_high_watermark_is_known() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    let mut follower = cluster.follower(2, 18).in_session();
    cluster.append(0);
    cluster
        .fetch(&mut follower, &[at(0).knows(0)])
        .expect("records");
    assert!(cluster.fetch(&mut follower, &[at(1).knows(0)]).is_none());
    cluster.world.advance(5);
    let row = only(&cluster.answer(&mut follower).expect("told"));
    assert_eq!(row.high_watermark, 1);
    assert!(cluster.fetch(&mut follower, &[at(1).knows(0)]).is_none());
    cluster.world.advance(5);
    let row = only(&cluster.answer(&mut follower).expect("told again"));
    assert_eq!(row.high_watermark, 1);
    assert!(cluster.fetch(&mut follower, &[at(1).knows(1)]).is_none());
    cluster.world.advance(100);
    assert!(cluster.answer(&mut follower).is_none());
}

#[test]
fn a_follower_that_does_not_ask_for_it_waits_as_in_kafka() {
    for version in [17, 18] {
        let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
        let mut follower = cluster.follower(2, version).in_session();
        cluster.append(0);
        cluster.fetch(&mut follower, &[at(0)]).expect("records");
        assert!(cluster.fetch(&mut follower, &[at(1)]).is_none());
        assert_eq!(cluster.high_watermark(), 1);
        cluster.world.advance(499);
        assert!(cluster.answer(&mut follower).is_none());
        cluster.world.advance(1);
        let row = only(&cluster.answer(&mut follower).expect("told"));
        assert_eq!(row.high_watermark, 1);
    }
}

/// At most 200 answers a second that say nothing but a high watermark.
#[test]
fn prompt_answers_are_bounded_whatever_the_number_of_partitions() {
    let mut cluster = Cluster::new(1, 50, &[1, 2, 3], &[1, 2, 3]);
    let all: Vec<Want> = (0..50).map(|number| at(0).of(number).knows(0)).collect();
    let mut second = cluster.follower(2, 18).in_session();
    let mut third = cluster.follower(3, 18).in_session();
    cluster.fetch(&mut second, &all);
    cluster.fetch(&mut third, &all);
    cluster.world.advance(500);
    cluster.answer(&mut second).expect("the wait is over");
    cluster.answer(&mut third).expect("the wait is over");
    for partition in 0..50 {
        cluster.append(partition);
    }
    let mine: Vec<Want> = (0..50).map(|number| at(1).of(number).knows(0)).collect();
    assert!(cluster.fetch(&mut second, &mine).is_none());
    // The high watermarks move one by one, each millisecond one.
    let mut answers = 0;
    for number in 0..50 {
        let one = [at(1).of(number).knows(0)];
        third.max_wait_ms = 0;
        cluster.fetch(&mut third, &one);
        cluster.world.advance(1);
        if cluster.answer(&mut second).is_some() {
            answers += 1;
            assert!(cluster.fetch(&mut second, &[]).is_none());
        }
    }
    assert!((8..=10).contains(&answers), "{answers} in 50 ms");
}

/// Evicted, or the leader restarted: a follower just begins anew.
#[test]
fn a_follower_whose_session_is_gone_begins_anew() {
    let mut cluster = Cluster::new(2, 2, &[1, 2], &[1, 2]);
    cluster.append(0);
    let mut follower = cluster.follower(2, 17).without_waiting().in_session();
    cluster.fetch(&mut follower, &[at(0), at(0).of(1)]);
    let old = follower.session;
    follower.session = (old.0, 0);
    let wants = [at(1), at(0).of(1)];
    let answer = cluster.fetch(&mut follower, &wants).expect("an answer");
    assert_eq!(rows(&answer).len(), 2);
    assert_ne!(follower.session.0, old.0);
    assert_eq!(cluster.high_watermark(), 1);
    let mut late = follower.clone();
    late.session = old;
    let answer = cluster.fetch(&mut late, &[]).expect("an answer");
    assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn np_02_followers_take_the_places_of_old_consumers_not_the_other_way() {
    let configs = "max.incremental.fetch.session.cache.slots=2";
    let mut cluster = Cluster::with_properties(configs);
    let mut consumers: Vec<Follower> = (0..2)
        .map(|_| cluster.follower(-1, 17).without_waiting().in_session())
        .collect();
    for consumer in &mut consumers {
        cluster.fetch(consumer, &[at(0)]).expect("an answer");
        assert_ne!(consumer.session.0, 0);
    }
    cluster.world.advance(121_000);
    for consumer in &mut consumers {
        cluster.fetch(consumer, &[]).expect("an answer");
    }
    let mut others: Vec<Follower> = [-1, 2, 3]
        .map(|id| cluster.follower(id, 17).without_waiting().in_session())
        .into();
    let mut opened = Vec::new();
    for other in &mut others {
        cluster.fetch(other, &[at(0)]).expect("an answer");
        opened.push(other.session.0 != 0);
    }
    assert_eq!(
        opened,
        [false, true, true],
        "consumers in good use stay for consumers"
    );
    for consumer in &mut consumers {
        let answer = cluster.fetch(consumer, &[]).expect("an answer");
        assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    }
    for follower in &mut others[1..] {
        let answer = cluster.fetch(follower, &[]).expect("an answer");
        assert_eq!(answer.error_code, ErrorCode::NONE);
    }
}

/// Between shards one message brings what a parked fetch waits for, and one tells the leader that
/// it was taken.
#[test]
fn a_parked_fetch_of_another_shard_costs_one_hop() {
    for home in 0..2 {
        let mut cluster = Cluster::new(2, 1, &[1, 2], &[1, 2]);
        cluster.world.next_home = home;
        let mut follower = cluster.follower(2, 18).in_session();
        let mut offset = cluster.world.offsets(TOPIC, 0)[3];
        assert!(cluster.fetch(&mut follower, &[at(offset)]).is_none());
        cluster.world.advance(500);
        cluster.answer(&mut follower).expect("the session");
        assert!(cluster.fetch(&mut follower, &[]).is_none());
        // A producer on the shard of the partition.
        let id = cluster.world.id(TOPIC, 0);
        cluster.world.next_home = highwater_node::owner_shard(id, 2);
        let producer = cluster.world.connect();
        let is_far = home != highwater_node::owner_shard(id, 2);
        for _ in 0..3 {
            let before = cluster.world.steps;
            let value = crate::support::batch(&["v"]);
            cluster.world.send_produce(producer, -1, (TOPIC, 0), value);
            let row = only(&cluster.answer(&mut follower).expect("brought"));
            assert!(has_records(&row) && row.error_code == ErrorCode::NONE);
            let steps = cluster.world.steps - before;
            assert_eq!(steps, 1 + u64::from(is_far), "home {home}");
            offset += 1;
            cluster.send(&mut follower, &[at(offset)], &[]);
            assert!(cluster.world.receive_produce(producer).is_some());
        }
    }
}
