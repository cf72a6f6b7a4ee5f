//! LeaveGroup.

use highwater_coordinator::{GroupEvent, GroupState, LeaveCause, LeftMember};
use highwater_types::ErrorCode;

use crate::support::{Vary as _, World, join};

#[test]
fn who_leaves_is_answered_each_for_itself() {
    let mut world = World::new();
    let (ids, generation) = world.stable(3);
    let pending = world.pending();
    let answer = world.leave(&[
        (ids[1].as_str(), None),
        ("ghost", None),
        (pending.as_str(), None),
        (ids[1].as_str(), None),
        ("", Some("nobody")),
        ("", None),
    ]);
    assert_eq!(answer.error, ErrorCode::NONE);
    let errors: Vec<_> = answer.members.iter().map(|it| it.error).collect();
    let unknown = ErrorCode::UNKNOWN_MEMBER_ID;
    let none = ErrorCode::NONE;
    assert_eq!(errors, [none, unknown, none, unknown, unknown, unknown]);
    let echo = LeftMember {
        member_id: "".into(),
        instance_id: Some("nobody".into()),
        error: unknown,
    };
    assert_eq!(answer.members[4], echo);
    assert_eq!(
        world.heartbeat(&ids[0], generation),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let left = GroupEvent::Left {
        member_id: ids[1].clone(),
        instance_id: None,
        cause: LeaveCause::Asked {
            reason: Some("bye".into()),
        },
    };
    assert!(world.events.contains(&left));
    assert_eq!(
        world.join_now(join().of(&pending)).error,
        unknown,
        "the id is gone too"
    );
}

#[test]
fn nobody_leaves_a_group_that_is_not_there() {
    let mut world = World::new();
    let answer = world.leave(&[("a", None), ("", Some("i"))]);
    assert_eq!(answer.error, ErrorCode::NONE);
    let errors: Vec<_> = answer.members.iter().map(|it| it.error).collect();
    assert_eq!(errors, [ErrorCode::UNKNOWN_MEMBER_ID; 2]);
}

#[test]
fn the_last_one_leaves_an_empty_group_and_its_answer_waits_for_the_record() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    world.leave(&[(ids[0].as_str(), None), (ids[1].as_str(), None)]);
    assert_eq!(world.state(), GroupState::Empty);
    let stored = world.log.newest_group();
    assert_eq!(stored.generation, generation.next().raw());
    assert!(stored.members.is_empty());
    let after = world.answers.values().rev().nth(1).unwrap().0;
    assert_eq!(after, world.log.end());
    let id = world.pending();
    let first = world.join(join().of(&id));
    let answer = world.joined(first);
    assert_eq!(
        answer.generation_id,
        generation.next().next(),
        "generations go on"
    );
}

#[test]
fn who_leaves_in_the_middle_is_answered_and_no_longer_waited_for() {
    let mut world = World::new();
    let (ids, _) = world.stable(3);
    let first = world.join(join().of(&ids[0]));
    let second = world.join(join().of(&ids[1]));
    world.leave(&[(ids[1].as_str(), None), (ids[2].as_str(), None)]);
    let gone = world.joined(second);
    assert_eq!(gone.error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(gone.member_id.is_empty());
    assert_eq!(world.joined(first).members.len(), 1);
}

#[test]
fn a_parked_sync_of_a_member_that_is_removed_is_answered() {
    let mut world = World::new();
    let ids: Vec<_> = (0..2).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answer = world.joined(joins[0]);
    let follower = ids.iter().find(|id| **id != answer.leader).unwrap();
    let waits = world.sync(follower, answer.generation_id, &[]);
    world.leave(&[(follower.as_str(), None)]);
    assert_eq!(world.synced(waits).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_pending_one_that_leaves_disturbs_nobody() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    let pending = world.pending();
    world.leave(&[(pending.as_str(), None)]);
    assert_eq!(world.heartbeat(&ids[0], generation), ErrorCode::NONE);
    let pending = world.pending();
    let again = world.join(join().of(&ids[0]));
    assert_eq!(world.answer(again), None);
    world.leave(&[(pending.as_str(), None)]);
    assert_eq!(
        world.joined(again).error,
        ErrorCode::NONE,
        "it is no longer waited for"
    );
}
