//! A leader and its followers.

use highwater_protocol::Response;

use crate::cluster::Cluster;
use crate::support::{batch, syncs};

const T: (&str, i32) = ("t", 0);

/// Everybody who is up holds the same.
pub(crate) fn assert_same(it: &Cluster, nodes: &[i32], partitions: i32) {
    for number in 0..partitions {
        let of = |node| {
            let [_, _, end] = it.offsets(node, "t", number);
            // An epoch without a record is known to its leader only.
            let mut epochs = it.epochs(node, "t", number);
            epochs.retain(|(_, start)| *start < end);
            (it.bytes(node, "t", number), epochs)
        };
        let first = of(nodes[0]);
        for node in nodes {
            let (bytes, epochs) = of(*node);
            let offsets = it.offsets(*node, "t", number);
            assert!(
                bytes == first.0 && epochs == first.1,
                "node {node}, partition {number}: {epochs:?} {offsets:?} {:?}",
                it.host(*node).events
            );
        }
    }
}

#[test]
fn a_follower_copies_byte_for_byte_and_the_high_watermark_follows() {
    let mut it = Cluster::new(2, 1, "");
    it.topic("t", 1, &[1, 2], &[]);
    assert_eq!(it.produce(1, T, batch(&["a", "b"])), 0);
    assert_eq!(it.produce(1, T, batch(&["c"])), 2);
    it.run();
    assert_same(&it, &[1, 2], 1);
    assert_eq!(it.epochs(2, "t", 0), [(0, 0)]);
    it.advance(20);
    assert_eq!(it.offsets(1, "t", 0), [0, 3, 3]);
    assert_eq!(it.offsets(2, "t", 0), [0, 3, 3]);
}

#[test]
fn an_acks_all_write_is_answered_once_the_follower_has_it() {
    let mut it = Cluster::new(2, 2, "");
    it.topic("t", 4, &[1, 2], &[("min.insync.replicas", "2")]);
    it.held.insert((2, 1));
    let conn = it.send_produce(1, -1, ("t", 3), batch(&["a"]));
    assert_eq!(it.produced(1, conn), None);
    it.release(2, 1);
    assert_eq!(
        it.produced(1, conn),
        Some((0, 0)),
        "{:?}",
        it.host(2).events
    );
}

#[test]
fn a_follower_that_was_away_catches_up() {
    let mut it = Cluster::new(3, 2, "");
    it.topic("t", 3, &[1, 2, 3], &[]);
    it.produce(1, T, batch(&["a"]));
    it.advance(20);
    it.kill(2);
    for round in 0..50 {
        it.produce(1, ("t", round % 3), batch(&["b", "c", "d"]));
    }
    it.register(2);
    it.start(2);
    it.advance(2_000);
    assert_same(&it, &[1, 2, 3], 3);
    it.stop(2);
    it.produce(1, T, batch(&["e"]));
    it.register(2);
    it.start(2);
    it.advance(2_000);
    assert_same(&it, &[1, 2, 3], 3);
    assert_eq!(it.offsets(2, "t", 0)[1], it.offsets(1, "t", 0)[2]);
}

#[test]
fn rt_02_the_old_leader_cuts_what_the_new_one_never_had() {
    let mut it = Cluster::new(2, 1, "");
    let topic = it.topic("t", 1, &[1, 2], &[]);
    it.produce(1, T, batch(&["a", "b", "c", "d"]));
    it.advance(20);
    it.held.insert((1, 2));
    it.produce(1, T, batch(&["m4"]));
    it.kill(1);
    it.elect(topic, 0, 2, &[2]);
    it.produce(2, T, batch(&["m5"]));
    it.held.clear();
    it.register(1);
    it.start(1);
    it.advance(2_000);
    assert!(
        it.has_event(
            1,
            "truncate t-0 5 -> 4: own epochs (0, 0), the leader's epoch 0 ends at 4"
        ),
        "{:?}",
        it.host(1).events
    );
    assert_same(&it, &[1, 2], 1);
    assert_eq!(it.epochs(1, "t", 0), [(0, 0), (1, 4)]);
    assert_eq!(it.offsets(1, "t", 0), [0, 5, 5]);
}

#[test]
fn roles_change_and_the_logs_agree_again() {
    let mut it = Cluster::new(3, 2, "");
    let topic = it.topic("t", 2, &[1, 2, 3], &[]);
    for round in 0..12 {
        let leader = 1 + round % 3;
        it.elect(topic, 0, leader, &[1, 2, 3]);
        it.produce(leader, T, batch(&["a", "b"]));
        if round % 2 == 0 {
            it.advance(5);
        }
    }
    it.advance(2_000);
    assert_same(&it, &[1, 2, 3], 2);
}

#[test]
fn a_new_epoch_of_the_same_leader_goes_on() {
    let mut it = Cluster::new(2, 1, "");
    let topic = it.topic("t", 1, &[1, 2], &[]);
    it.produce(1, T, batch(&["a"]));
    // The leader hears of it first, then the follower does.
    for first in [1, 2] {
        it.elect_silently(topic, 0, 1, &[1, 2]);
        let topics = std::collections::BTreeSet::from([topic]);
        let changed = highwater_node::Changed::Topics(std::sync::Arc::new(topics));
        it.publish_to(first, &changed);
        it.advance(100);
        it.publish_to(3 - first, &changed);
        it.advance(600);
        it.produce(1, T, batch(&["b"]));
    }
    it.advance(1_000);
    assert_same(&it, &[1, 2], 1);
    assert_eq!(it.epochs(2, "t", 0), [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(it.offsets(2, "t", 0), [0, 3, 3]);
}

#[test]
fn rt_06_epochs_without_records_do_not_loop() {
    let mut it = Cluster::new(2, 1, "");
    let topic = it.topic("t", 1, &[1, 2], &[]);
    it.produce(1, T, batch(&["a", "b", "c", "d", "e"]));
    it.advance(20);
    it.held.extend([(1, 2), (2, 1)]);
    it.elect(topic, 0, 2, &[1, 2]);
    it.elect(topic, 0, 1, &[1, 2]);
    assert_eq!(it.epochs(2, "t", 0), [(0, 0), (1, 5)]);
    it.release(1, 2);
    it.release(2, 1);
    it.advance(1_500);
    it.produce(1, T, batch(&["f"]));
    it.advance(1_500);
    assert_same(&it, &[1, 2], 1);
    assert_eq!(it.offsets(2, "t", 0), [0, 6, 6]);
}

#[test]
fn rt_12_a_bad_batch_rests_one_partition_alone() {
    let mut it = Cluster::new(2, 1, "");
    it.topic("t", 10, &[1, 2], &[]);
    it.tamper = Some(Box::new(|response| {
        let Response::Fetch(fetch) = response else {
            return;
        };
        let rows = fetch.responses.iter_mut().flat_map(|it| &mut it.partitions);
        for row in rows.filter(|row| row.partition_index == 3) {
            if let Some(records) = row.records.as_mut().filter(|it| !it.is_empty()) {
                let mut bad = records.to_vec();
                *bad.last_mut().expect("bytes") ^= 1;
                *records = bad.into();
            }
        }
    }));
    for number in 0..10 {
        it.produce(1, ("t", number), batch(&["a"]));
    }
    it.advance(5_000);
    for number in 0..10 {
        let expected = i64::from(number != 3);
        assert_eq!(
            it.offsets(2, "t", number)[2],
            expected,
            "partition {number}"
        );
    }
    let refused = |it: &Cluster| {
        let events = it.host(2).events.iter();
        events
            .filter(|it| it.contains("t-3 from its leader are refused"))
            .count()
    };
    assert_eq!(refused(&it), 1, "told once: {:?}", it.host(2).events);
    it.tamper = None;
    it.advance(2_000);
    assert_same(&it, &[1, 2], 10);
}

#[test]
fn rt_15_a_late_answer_of_a_former_leader_changes_nothing() {
    let mut it = Cluster::new(3, 1, "");
    let topic = it.topic("t", 1, &[1, 2, 3], &[]);
    it.produce(1, T, batch(&["a"]));
    it.advance(20);
    it.held.insert((1, 2));
    it.held.insert((1, 3));
    it.produce(1, T, batch(&["old", "old"]));
    it.elect(topic, 0, 3, &[2, 3]);
    it.produce(3, T, batch(&["new"]));
    it.advance(1_000);
    let before = it.bytes(2, "t", 0);
    assert_eq!(it.epochs(2, "t", 0), [(0, 0), (1, 1)]);
    it.release(1, 2);
    assert_eq!(it.bytes(2, "t", 0), before);
    it.release(1, 3);
    it.advance(2_000);
    assert_same(&it, &[1, 2, 3], 1);
}

#[test]
fn a_leader_that_comes_back_has_new_sessions() {
    let mut it = Cluster::new(2, 2, "");
    let topic = it.topic("t", 4, &[1, 2], &[]);
    it.produce(1, T, batch(&["a"]));
    it.advance(20);
    it.kill(1);
    it.advance(300);
    it.register(1);
    it.start(1);
    for number in 0..4 {
        it.elect(topic, number, 1, &[1, 2]);
        it.produce(1, ("t", number), batch(&["b"]));
    }
    it.advance(2_000);
    assert_same(&it, &[1, 2], 4);
}

#[test]
fn connections_that_break_are_made_anew() {
    let mut it = Cluster::new(2, 1, "");
    it.topic("t", 2, &[1, 2], &[]);
    for _ in 0..10 {
        it.produce(1, T, batch(&["a"]));
        it.reset(2, 1);
        it.produce(1, ("t", 1), batch(&["a"]));
        it.advance(1_100);
    }
    assert_same(&it, &[1, 2], 2);
}

#[test]
fn a_topic_that_is_deleted_under_a_fetch_is_gone() {
    let mut it = Cluster::new(2, 1, "");
    let topic = it.topic("t", 3, &[1, 2], &[]);
    it.produce(1, T, batch(&["a"]));
    it.held.insert((1, 2));
    it.produce(1, T, batch(&["b"]));
    it.delete_topic(topic);
    it.release(1, 2);
    it.topic("t", 1, &[1, 2], &[]);
    it.produce(1, T, batch(&["c"]));
    it.advance(3_000);
    assert_same(&it, &[1, 2], 1);
    assert_eq!(it.offsets(2, "t", 0), [0, 1, 1]);
}

#[test]
fn flush_messages_1_flushes_before_the_next_fetch_and_holds_up_nobody_else() {
    let mut it = Cluster::new(2, 1, "");
    it.topic("f", 1, &[1, 2], &[("flush.messages", "1")]);
    it.topic("t", 1, &[1, 2], &[]);
    it.advance(10);
    it.hosts.get_mut(&2).expect("a node").hold_jobs = syncs;
    let flushed = it.send_produce(1, -1, ("f", 0), batch(&["a"]));
    it.advance(100);
    assert_eq!(it.offsets(2, "f", 0)[2], 1, "it has the record");
    assert_eq!(it.produced(1, flushed), None, "but not on disk");
    let plain = it.send_produce(1, -1, T, batch(&["a"]));
    assert_eq!(it.produced(1, plain), Some((0, 0)));
    it.release_jobs(2);
    assert_eq!(it.produced(1, flushed), Some((0, 0)), "at once");
}

#[test]
fn a_partition_that_joins_does_not_wait_for_a_parked_fetch() {
    let mut it = Cluster::new(2, 1, "");
    it.topic("idle", 1, &[1, 2], &[]);
    it.advance(10);
    it.topic("t", 2, &[1, 2], &[]);
    for number in 0..2 {
        let conn = it.send_produce(1, -1, ("t", number), batch(&["a"]));
        it.advance(30);
        assert_eq!(it.produced(1, conn), Some((0, 0)), "partition {number}");
    }
    it.advance(2_000);
    let conn = it.send_produce(1, -1, T, batch(&["b"]));
    assert_eq!(it.produced(1, conn), Some((0, 1)));
}

#[test]
fn nothing_is_appended_after_the_close() {
    let mut it = Cluster::new(2, 1, "");
    it.topic("t", 1, &[1, 2], &[]);
    it.produce(1, T, batch(&["a"]));
    it.advance(20);
    it.held.insert((1, 2));
    it.produce(1, T, batch(&["b"]));
    it.stop(2);
    it.held.clear();
    it.register(2);
    it.start(2);
    it.advance(2_000);
    assert_same(&it, &[1, 2], 1);
}

#[test]
fn the_old_rule_loses_what_was_acknowledged() {
    // Accident 1 of the founding stories.
    let mut it = Cluster::with_rule(2, 1, "", true);
    let topic = it.topic("t", 1, &[1, 2], &[]);
    it.produce(1, T, batch(&["a", "b", "c", "d"]));
    it.advance(6_000);
    let conn = it.send_produce(1, -1, T, batch(&["m4"]));
    assert_eq!(it.produced(1, conn), Some((0, 4)), "acknowledged");
    assert_eq!(it.offsets(2, "t", 0), [0, 4, 5]);
    it.kill(2);
    it.held.insert((1, 2));
    it.start(2);
    it.kill(1);
    it.held.clear();
    it.elect(topic, 0, 2, &[2]);
    it.start(1);
    it.advance(2_000);
    for node in [1, 2] {
        let [_, _, end] = it.offsets(node, "t", 0);
        assert_eq!(end, 4, "node {node}: {:?}", it.host(node).events);
    }
    assert!(it.has_event(2, "truncate t-0 5 -> 4"));
}

#[test]
fn a_damaged_copy_is_copied_again_once_it_is_out_of_the_isr() {
    let mut it = Cluster::new(2, 1, "");
    let topic = it.topic("t", 1, &[1, 2], &[]);
    for _ in 0..10 {
        it.produce(1, T, batch(&["a", "b", "c", "d"]));
    }
    it.advance(1_000);
    it.stop(2);
    it.rot(2, "t-0/00000000000000000000.log");
    it.register(2);
    it.start(2);
    it.advance(2_000);
    let [_, _, end] = it.offsets(2, "t", 0);
    assert_eq!(
        end,
        40,
        "not cut while it may be elected: {:?}",
        it.host(2).events
    );
    assert!(!it.has_event(2, "truncate t-0"), "{:?}", it.host(2).events);
    it.change(topic, 0, |it| it.in_sync_replicas.truncate(1));
    it.publish(&[topic].into());
    it.advance(2_000);
    assert!(
        it.has_event(2, "truncate t-0 40 -> "),
        "{:?}",
        it.host(2).events
    );
    assert_same(&it, &[1, 2], 1);
    assert!(!it.has_event(2, "data-loss"), "{:?}", it.host(2).events);
}
