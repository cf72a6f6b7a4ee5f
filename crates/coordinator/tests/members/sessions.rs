//! What silence does.

use highwater_coordinator::{GroupEvent, GroupState, LeaveCause};
use highwater_types::ErrorCode;

use crate::support::{Vary as _, World, join};

#[test]
fn a_silent_member_is_out_and_the_others_rebalance() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    world.advance(9_999);
    assert_eq!(world.heartbeat(&ids[0], generation), ErrorCode::NONE);
    world.advance(1);
    assert_eq!(
        world.heartbeat(&ids[0], generation),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    assert_eq!(
        world.heartbeat(&ids[1], generation),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let left = GroupEvent::Left {
        member_id: ids[1].clone(),
        instance_id: None,
        cause: LeaveCause::SessionTimeout,
    };
    assert!(world.events.contains(&left));
    let again = world.join(join().of(&ids[0]));
    assert_eq!(world.joined(again).members.len(), 1);
}

#[test]
fn the_last_silent_member_leaves_an_empty_group() {
    let mut world = World::new();
    let (_, generation) = world.stable(1);
    world.advance(10_000);
    assert_eq!(world.state(), GroupState::Empty);
    let stored = world.log.newest_group();
    assert_eq!(stored.generation, generation.next().raw());
    assert!(stored.members.is_empty());
    assert_eq!(stored.current_state_timestamp, world.now.wall.raw());
}

#[test]
fn who_waits_for_the_others_may_be_silent() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let first = world.join(join().of(&ids[0]));
    for _ in 0..3 {
        world.advance(6_000);
        let beat = world.heartbeat(&ids[1], generation);
        assert_eq!(beat, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(
        world.answer(first),
        None,
        "its session of 10 s is long over"
    );
    world.join(join().of(&ids[1]));
    let answer = world.joined(first);
    assert_eq!((answer.error, answer.members.len()), (ErrorCode::NONE, 2));
    // Its session begins anew with the answer.
    world.advance(9_999);
    assert_eq!(
        world.heartbeat(&ids[0], answer.generation_id),
        ErrorCode::NONE
    );
}

#[test]
fn a_new_member_is_waited_for_five_minutes_at_most() {
    let mut world = World::new();
    let mut request = join().old();
    request.rebalance_timeout = Some(highwater_types::Millis::new(1_000_000));
    let old = world.join(request.clone());
    let old = world.joined(old);
    world.sync(&old.member_id, old.generation_id, &[]);
    let new = world.join(request);
    for _ in 0..59 {
        world.advance(5_000);
        let beat = world.heartbeat(&old.member_id, old.generation_id);
        assert_eq!(beat, ErrorCode::REBALANCE_IN_PROGRESS);
        assert_eq!(world.answer(new), None);
    }
    world.advance(5_000);
    let answer = world.joined(new);
    assert_eq!(
        answer.error,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "it may try again"
    );
    assert!(answer.member_id.is_empty());
}

#[test]
fn who_never_asks_for_its_assignment_is_out_after_the_rebalance_timeout() {
    let mut world = World::new();
    let ids: Vec<_> = (0..3).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answer = world.joined(joins[0]);
    let (leader, generation) = (answer.leader, answer.generation_id);
    let others: Vec<_> = ids.iter().filter(|id| **id != leader).collect();
    world.sync(&leader, generation, &[(others[0], "x")]);
    world.sync(others[0], generation, &[]);
    for _ in 0..3 {
        for id in &ids {
            assert_eq!(world.heartbeat(id, generation), ErrorCode::NONE);
        }
        world.advance(5_000);
    }
    for id in &ids {
        world.heartbeat(id, generation);
    }
    world.advance(5_000);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
    assert_eq!(
        world.heartbeat(others[1], generation),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let left = GroupEvent::Left {
        member_id: others[1].clone(),
        instance_id: None,
        cause: LeaveCause::NeverSynced,
    };
    assert!(world.events.contains(&left));
}

#[test]
fn a_leader_that_never_assigns_is_out_and_the_others_are_told() {
    let mut world = World::new();
    let ids: Vec<_> = (0..2).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answer = world.joined(joins[0]);
    let (leader, generation) = (answer.leader, answer.generation_id);
    let follower = ids.iter().find(|id| **id != leader).unwrap();
    let waits = world.sync(follower, generation, &[]);
    world.advance(9_000);
    assert_eq!(world.heartbeat(&leader, generation), ErrorCode::NONE);
    world.advance(9_000);
    assert_eq!(world.heartbeat(&leader, generation), ErrorCode::NONE);
    assert_eq!(
        world.answer(waits),
        None,
        "its own session does not matter meanwhile"
    );
    world.advance(2_000);
    assert_eq!(world.synced(waits).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(
        world.heartbeat(&leader, generation),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let again = world.join(join().of(follower));
    assert_eq!(&world.joined(again).leader, follower);
}
