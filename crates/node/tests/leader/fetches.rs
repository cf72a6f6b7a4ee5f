//! One fetch: what counts, and what does not.

use highwater_types::ErrorCode;

use crate::cluster::*;

/// The founding exchange, with a follower of every version, in a session and without one.
#[test]
fn five_step_exchange() {
    for shards in 1..=3 {
        for version in 12..=18 {
            for in_session in [false, true] {
                let mut cluster = Cluster::new(shards, 1, &[1, 2], &[1, 2]);
                let follower = cluster.follower(2, version).without_waiting();
                let mut follower = if in_session {
                    follower.in_session()
                } else {
                    follower
                };
                let case = format!("{shards} shards, version {version}, session {in_session}");
                for _ in 0..4 {
                    cluster.append(0);
                }
                let row = cluster.fetch_one(&mut follower, at(0));
                assert!(has_records(&row), "{case}");
                let row = cluster.fetch_one(&mut follower, at(4));
                assert_eq!(
                    (row.high_watermark, cluster.high_watermark()),
                    (4, 4),
                    "(1) {case}"
                );
                cluster.append(0);
                assert_eq!(cluster.high_watermark(), 4, "(2) {case}");
                let row = cluster.fetch_one(&mut follower, at(4));
                assert!(has_records(&row) && row.high_watermark == 4, "(3) {case}");
                let row = cluster.fetch_one(&mut follower, at(5));
                assert_eq!(cluster.high_watermark(), 5, "(4) {case}");
                assert_eq!(row.high_watermark, 5, "(5) {case}");
            }
        }
    }
}

#[test]
fn a_parked_fetch_is_answered_by_the_append_itself() {
    for shards in 1..=3 {
        for in_session in [false, true] {
            let mut cluster = Cluster::new(shards, 1, &[1, 2], &[1, 2]);
            let follower = cluster.follower(2, 17);
            let mut follower = if in_session {
                follower.in_session()
            } else {
                follower
            };
            for offset in 0..5 {
                assert!(cluster.fetch(&mut follower, &[at(offset)]).is_none());
                // No time passes.
                cluster.append(0);
                let answer = cluster
                    .answer(&mut follower)
                    .expect("answered by the append");
                assert!(has_records(&only(&answer)), "{shards} shards at {offset}");
            }
            assert_eq!(cluster.high_watermark(), 4);
        }
    }
}

#[test]
fn rt_04_a_fetch_of_another_leader_epoch_changes_nothing() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.metadata(1, 3, &[1, 2]);
    cluster.append(0);
    let mut follower = cluster.follower(2, 17);
    for (epoch, error) in [
        (1, ErrorCode::FENCED_LEADER_EPOCH),
        (4, ErrorCode::UNKNOWN_LEADER_EPOCH),
    ] {
        let row = cluster.fetch_one(&mut follower, at(1).in_epoch(epoch));
        assert_eq!(row.error_code, error);
        assert_eq!((cluster.known(2), cluster.high_watermark()), (None, 0));
    }
    assert!(cluster.fetch(&mut follower, &[at(0).in_epoch(3)]).is_some());
    assert_eq!(cluster.known(2), Some(0));
}

/// A fetch without a leader epoch cannot be told from one that was meant for another leader.
#[test]
fn a_follower_that_names_no_leader_epoch_is_served_and_acknowledges_nothing() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.append(0);
    let mut follower = cluster.follower(2, 17);
    let row = cluster.fetch_one(&mut follower, at(0).in_epoch(-1));
    assert!(has_records(&row));
    let mut follower = follower.without_waiting();
    let row = cluster.fetch_one(&mut follower, at(1).in_epoch(-1));
    assert_eq!(row.error_code, ErrorCode::NONE);
    assert_eq!((cluster.known(2), cluster.high_watermark()), (None, 0));
}

#[test]
fn rt_07_a_fetch_that_diverges_changes_nothing() {
    for version in [12, 17] {
        let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
        for _ in 0..10 {
            cluster.append(0);
        }
        cluster.metadata(1, 2, &[1, 2, 3]);
        cluster.append(0);
        let mut third = cluster.follower(3, version).without_waiting();
        let caught_up = Want {
            last_epoch: 2,
            ..at(11).in_epoch(2)
        };
        cluster.fetch_one(&mut third, caught_up);
        let mut old_leader = cluster.follower(2, version);
        let before = cluster.leader(0).followers.clone();
        let row = cluster.fetch_one(&mut old_leader, at(15).in_epoch(2));
        assert_eq!(row.error_code, ErrorCode::NONE);
        assert!(!has_records(&row));
        let end = &row.diverging_epoch;
        assert_eq!((end.epoch, end.end_offset), (0, 10), "version {version}");
        assert_eq!(cluster.leader(0).followers, before);
        assert_eq!(cluster.high_watermark(), 0);
        // It has cut its log: now it counts.
        let row = cluster.fetch_one(&mut old_leader, at(10).in_epoch(2));
        assert!(has_records(&row));
        assert_eq!((cluster.known(2), cluster.high_watermark()), (Some(10), 10));
    }
}

/// The session remembers what counted, and must not take it for what it does not know any more.
#[test]
fn rt_07_a_session_that_diverges_does_not_count_what_counted_before() {
    let mut cluster = Cluster::new(1, 2, &[1, 2], &[1, 2]);
    let mut follower = cluster.follower(2, 17).without_waiting().in_session();
    cluster.append(0);
    cluster.fetch(&mut follower, &[at(0), at(0).of(1)]);
    cluster.fetch(&mut follower, &[at(1)]);
    assert_eq!(cluster.high_watermark(), 1);
    cluster.metadata(1, 1, &[1, 2]);
    let none = cluster.fetch(&mut follower, &[]).expect("an answer");
    assert_eq!(only(&none).error_code, ErrorCode::FENCED_LEADER_EPOCH);
    let wrong = Want {
        last_epoch: 0,
        ..at(2).in_epoch(1)
    };
    let row = cluster.fetch_one(&mut follower, wrong);
    assert_eq!(row.diverging_epoch.end_offset, 1);
    cluster.world.advance(100);
    cluster.fetch(&mut follower, &[]);
    cluster.append(0);
    assert_eq!(cluster.known(2), None);
    assert_eq!(cluster.high_watermark(), 1);
}

#[test]
fn a_fetch_out_of_range_changes_nothing() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.append(0);
    let mut follower = cluster.follower(2, 17);
    let beyond = Want {
        last_epoch: -1,
        ..at(7)
    };
    let row = cluster.fetch_one(&mut follower, beyond);
    assert_eq!(row.error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!((cluster.known(2), cluster.high_watermark()), (None, 0));
}

/// The leader's metadata are behind, or ahead.
#[test]
fn a_follower_that_is_not_assigned_yet_is_told_to_come_again() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.world.add_broker(highwater_types::NodeId::new(3));
    let mut newcomer = cluster.follower(3, 17);
    let row = cluster.fetch_one(&mut newcomer, at(0));
    assert_eq!(row.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH);
    let row = cluster.fetch_one(&mut newcomer, at(0).in_epoch(-1));
    assert_eq!(row.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let topic = cluster.topic;
    cluster.world.change(topic, 0, |it| {
        it.assigned_replicas = nodes(&[1, 2, 3]);
    });
    cluster.append(0);
    let row = cluster.fetch_one(&mut newcomer, at(0));
    assert!(has_records(&row));
    assert_eq!(cluster.known(3), Some(0));
}

#[test]
fn a_leader_that_follows_now_says_who_leads() {
    let mut cluster = Cluster::new(1, 1, &[1, 2, 3], &[1, 2, 3]);
    let mut parked = cluster.follower(3, 17).in_session();
    assert!(cluster.fetch(&mut parked, &[at(0)]).is_none());
    cluster.metadata(2, 1, &[2, 3]);
    let row = only(&cluster.answer(&mut parked).expect("answered at once"));
    assert_eq!(row.error_code, ErrorCode::FENCED_LEADER_EPOCH);
    let row = cluster.fetch_one(&mut parked, at(0).in_epoch(1));
    assert_eq!(row.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let leader = &row.current_leader;
    assert_eq!((leader.leader_id.raw(), leader.leader_epoch), (2, 1));
}
