use bytes::Bytes;
use highwater_coordinator::{AppendRefused, GroupEvent, GroupRequest, OffsetCommitRequest};
use highwater_types::{ErrorCode, Millis, Offset};

use crate::support::{World, name, simple, subscription, topic_id};

/// As long as the settings of these tests keep offsets.
const RETENTION: Millis = Millis::new(1_000_000);

#[test]
fn kip_211_offsets_of_an_empty_group_count_from_when_it_became_empty() {
    let mut world = World::new();
    let (generation_id, member_id) = world.member_of("g", &["orders"]);
    world.commit_with(OffsetCommitRequest {
        generation_id,
        member_id: member_id.clone(),
        ..simple("g", &[("orders", 0, 5)])
    });
    // Old commits of a live group do not matter, for however long it lives.
    world.age(RETENTION);
    world.age(RETENTION);
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), 5);
    world.leave("g", &member_id);
    world.age(Millis::new(RETENTION.as_u64() - 10_000));
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), 5);
    // The time it became empty is in the log, and outlives a reload.
    world.reload();
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), 5);
    world.age(Millis::new(10_000));
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), -1);
    // Nothing of the group is left, here and in the log.
    assert_eq!(world.list(), [""; 0]);
    world.reload();
    assert_eq!(world.list(), [""; 0]);
    let last = world.events.last().map(|(_, event)| event.clone());
    assert_eq!(last, Some(GroupEvent::Deleted { by_request: false }));
}

#[test]
fn an_offset_that_is_reset_in_a_group_long_empty_stays() {
    let mut world = World::new();
    let (generation_id, member_id) = world.member_of("g", &["orders"]);
    world.commit_with(OffsetCommitRequest {
        generation_id,
        member_id: member_id.clone(),
        ..simple("g", &[("orders", 0, 5), ("orders", 1, 6)])
    });
    world.leave("g", &member_id);
    world.age(RETENTION);
    world.commit("g", "orders", 0, 2);
    world.look_for_old_offsets();
    assert_eq!(world.fetch_all("g"), [("orders".to_owned(), 0, 2)]);
    world.age(RETENTION);
    world.look_for_old_offsets();
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn go_01_nothing_expires_while_a_rebalance_runs() {
    let mut world = World::new();
    let (generation_id, member_id) = world.member_of("g", &["orders"]);
    world.commit_with(OffsetCommitRequest {
        generation_id,
        member_id,
        ..simple("g", &[("orders", 0, 5), ("not-read", 0, 6)])
    });
    let second = World::join_request("g", "", subscription(&["orders"]));
    world.send(GroupRequest::Join(second));
    world.age(RETENTION);
    world.age(RETENTION);
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), 5);
    assert_eq!(world.fetch("g", "not-read", 0), 6);
}

#[test]
fn go_02_no_expiry_of_its_own_is_none_in_the_past() {
    // KAFKA-8069: -1 was taken for a time long ago after a reload.
    let mut world = World::new();
    world.commit("g", "orders", 0, 5);
    world.reload();
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), 5);
}

#[test]
fn offsets_of_a_group_without_members_count_from_their_commit() {
    let mut world = World::new();
    world.commit("g", "orders", 0, 5);
    world.age(Millis::new(RETENTION.as_u64() / 2));
    world.commit("g", "orders", 1, 6);
    world.age(Millis::new(RETENTION.as_u64() / 2));
    world.look_for_old_offsets();
    assert_eq!(world.fetch_all("g"), [("orders".to_owned(), 1, 6)]);
    world.age(RETENTION);
    world.look_for_old_offsets();
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn a_live_group_loses_only_what_no_member_reads() {
    let mut world = World::new();
    let (generation_id, member_id) = world.member_of("g", &["orders"]);
    world.commit_with(OffsetCommitRequest {
        generation_id,
        member_id,
        ..simple("g", &[("orders", 0, 5), ("once-read", 0, 6)])
    });
    world.age(RETENTION);
    world.look_for_old_offsets();
    assert_eq!(world.fetch_all("g"), [("orders".to_owned(), 0, 5)]);
    assert_eq!(world.list(), ["g"]);
}

#[test]
fn b_46_a_member_that_nobody_understands_keeps_all_offsets() {
    let mut world = World::new();
    for (group, blob) in [("none", &b""[..]), ("one", &b"\0"[..])] {
        let blob = Bytes::copy_from_slice(blob);
        let joined = world.join(World::join_request(group, "", blob));
        world.sync(group, &joined);
        world.commit_with(OffsetCommitRequest {
            generation_id: joined.generation_id,
            member_id: joined.member_id,
            ..simple(group, &[("orders", 0, 5)])
        });
        world.age(RETENTION);
        world.look_for_old_offsets();
        assert_eq!(world.fetch(group, "orders", 0), 5);
        let answer = world.delete_offsets(group, "orders", &[0]);
        let error = answer.topics[0].partitions[0].error;
        assert_eq!(error, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
    }
}

#[test]
fn a_retention_of_its_own_holds_instead_and_outlives_a_reload() {
    let mut world = World::new();
    for (group, retention) in [("short", 10_000), ("long", 5_000_000)] {
        world.commit_with(OffsetCommitRequest {
            retention: Some(Millis::new(retention)),
            ..simple(group, &[("orders", 0, 5)])
        });
    }
    world.reload();
    world.age(Millis::new(9_000));
    world.look_for_old_offsets();
    assert_eq!(world.list(), ["long"], "10 s are over by now");
    world.age(RETENTION);
    world.look_for_old_offsets();
    assert_eq!(world.fetch("long", "orders", 0), 5);
    world.age(Millis::new(4_000_000));
    world.look_for_old_offsets();
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn a_group_that_never_committed_goes_when_it_is_empty() {
    let mut world = World::new();
    let (_, member_id) = world.member_of("g", &["orders"]);
    world.leave("g", &member_id);
    assert_eq!(world.list(), ["g"]);
    world.look_for_old_offsets();
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn a_refused_tombstone_is_tried_again() {
    let mut world = World::new();
    world.commit("g", "orders", 0, 5);
    world.age(RETENTION);
    world.log.refuse = Some(AppendRefused::TooFewInSync);
    world.look_for_old_offsets();
    assert_eq!(
        world.fetch("g", "orders", 0),
        5,
        "not recorded, so not expired"
    );
    world.log.refuse = None;
    world.look_for_old_offsets();
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn many_groups_expire_in_small_steps() {
    let mut world = World::new();
    for group in 0..1_200 {
        world.commit(&format!("g{group}"), "orders", 0, 5);
    }
    world.age(RETENTION);
    world.log.batches.clear();
    world.pass(Millis::new(500));
    assert_eq!(world.list().len(), 1_200);
    let mut steps = 0;
    while !world.list().is_empty() {
        let before = world.list().len();
        let due = world.coordinator.next_deadline().expect("a next look");
        world.now.mono = world.now.mono.max(due);
        world.tick();
        steps += 1;
        assert!(before - world.list().len() <= 500, "a step is short");
        assert!(steps < 10, "it comes to an end");
    }
    assert_eq!(steps, 3);
}

#[test]
fn topics_that_are_deleted_take_their_offsets_with_them() {
    let mut world = World::new();
    let (old, new) = (topic_id(1), topic_id(2));
    let mut request = simple("g", &[("orders", 0, 5), ("orders", 1, 6), ("kept", 0, 7)]);
    request.topics[0].topic_id = old;
    request.topics[1].topic_id = new;
    world.commit_with(request);
    world.commit("only", "orders", 0, 9);
    let mut out = Vec::new();
    let deleted = [(old, name("orders"))];
    world
        .coordinator
        .topics_deleted(world.now, &deleted, &mut world.log, &mut out);
    // A commit for a later topic of the name stays; one that does not tell is of the old one.
    let left = [("kept".to_owned(), 0, 7), ("orders".to_owned(), 1, 6)];
    for _ in 0..2 {
        assert_eq!(world.fetch_all("g"), left);
        assert_eq!(world.fetch_all("only"), []);
        assert_eq!(world.list(), ["g"]);
        world.reload();
    }
    let (after, _) = world.fetch_with(crate::support::fetch_all("only"));
    assert_eq!(
        after,
        Offset::new(6),
        "that it is gone depends on the tombstone"
    );
}
