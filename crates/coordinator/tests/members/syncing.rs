//! Assignments.

use highwater_coordinator::{GenerationId, GroupEvent, GroupRequest, GroupState};
use highwater_types::ErrorCode;

use crate::support::{Vary as _, World, join, sync};

#[test]
fn each_gets_its_own_assignment_before_and_after_the_leader() {
    let mut world = World::new();
    let ids: Vec<_> = (0..4).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answer = world.joined(joins[0]);
    let (leader, generation) = (answer.leader, answer.generation_id);
    let others: Vec<_> = ids.iter().filter(|id| **id != leader).collect();
    let early = world.sync(others[0], generation, &[]);
    assert_eq!(world.answer(early), None);
    let assignments = [(&leader, "one"), (others[0], "two"), (others[1], "three")];
    let assigns = world.sync(&leader, generation, &assignments);
    let late = world.sync(others[1], generation, &[]);
    let forgotten = world.sync(others[2], generation, &[]);
    for (id, text) in [
        (assigns, "one"),
        (early, "two"),
        (late, "three"),
        (forgotten, ""),
    ] {
        let answer = world.synced(id);
        assert_eq!(answer.error, ErrorCode::NONE);
        assert_eq!(answer.assignment, text.as_bytes());
        assert_eq!(answer.protocol_type.as_deref(), Some("consumer"));
        assert_eq!(answer.protocol_name.as_deref(), Some("range"));
        assert_eq!(
            world.answers[&id].0,
            world.log.end(),
            "it waits for the record"
        );
    }
    let stored = world.log.newest_group();
    assert_eq!(stored.leader.as_deref(), Some(leader.as_str()));
    assert_eq!(stored.protocol.as_deref(), Some("range"));
    let of = |id: &str| stored.members.iter().find(|it| it.member_id == id).unwrap();
    assert_eq!(of(others[0].as_str()).assignment, &b"two"[..]);
    assert_eq!(of(others[0].as_str()).subscription, &b"topics"[..]);
    assert_eq!(of(others[2].as_str()).assignment, &b""[..]);
}

#[test]
fn an_assignment_can_be_asked_for_again() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    for id in &ids {
        let again = world.sync(id, generation, &[(&ids[0], "ignored")]);
        assert_eq!(world.synced(again).assignment, id.as_str().as_bytes());
    }
    assert_eq!(world.log.end().raw(), 2, "nothing is recorded again");
}

#[test]
fn each_state_has_its_answer_to_a_sync() {
    let mut world = World::new();
    let ghost = "ghost".into();
    let one = GenerationId::new(1);
    let expect = |world: &mut World, request, error| {
        let id = world.send(GroupRequest::Sync(request));
        let answer = world.synced(id);
        assert_eq!(answer.error, error);
        assert!(answer.assignment.is_empty());
    };
    expect(
        &mut world,
        sync(&ghost, one, &[]),
        ErrorCode::UNKNOWN_MEMBER_ID,
    );
    let id = world.pending();
    expect(
        &mut world,
        sync(&id, one, &[]),
        ErrorCode::UNKNOWN_MEMBER_ID,
    );
    let first = world.join(join().of(&id));
    let zero = GenerationId::new(0);
    expect(
        &mut world,
        sync(&id, zero, &[]),
        ErrorCode::REBALANCE_IN_PROGRESS,
    );
    expect(
        &mut world,
        sync(&id, one, &[]),
        ErrorCode::ILLEGAL_GENERATION,
    );
    world.joined(first);
    expect(
        &mut world,
        sync(&ghost, one, &[]),
        ErrorCode::UNKNOWN_MEMBER_ID,
    );
    expect(
        &mut world,
        sync(&id, zero, &[]),
        ErrorCode::ILLEGAL_GENERATION,
    );
    let mut typed = sync(&id, one, &[]);
    typed.protocol_type = Some("connect".into());
    expect(&mut world, typed, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let mut named = sync(&id, one, &[]);
    named.protocol_type = Some("consumer".into());
    named.protocol_name = Some("robin".into());
    expect(
        &mut world,
        named.clone(),
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
    );
    assert_eq!(world.state(), GroupState::CompletingRebalance);
    named.protocol_name = Some("range".into());
    let id = world.send(GroupRequest::Sync(named));
    assert_eq!(world.synced(id).error, ErrorCode::NONE);
}

#[test]
fn trap_31_a_rebalance_never_ends_a_sync_with_half_an_assignment() {
    let mut world = World::new();
    let ids: Vec<_> = (0..3).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answer = world.joined(joins[0]);
    let (leader, generation) = (answer.leader, answer.generation_id);
    let others: Vec<_> = ids.iter().filter(|id| **id != leader).collect();
    let waits = world.sync(others[0], generation, &[]);
    let new = world.join(join().old());
    assert_eq!(world.synced(waits).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(world.synced(waits).assignment.is_empty());
    let late = world.sync(&leader, generation, &[(&leader, "old")]);
    assert_eq!(world.synced(late).error, ErrorCode::REBALANCE_IN_PROGRESS);
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let again = world.joined(new);
    assert_eq!(again.generation_id, generation.next());
    let late = world.sync(&leader, generation, &[(&leader, "old")]);
    assert_eq!(world.synced(late).error, ErrorCode::ILLEGAL_GENERATION);
    assert!(
        joins
            .into_iter()
            .all(|id| world.joined(id).error == ErrorCode::NONE)
    );
}

#[test]
fn a_second_sync_of_the_same_member_takes_the_place_of_the_first() {
    let mut world = World::new();
    let ids: Vec<_> = (0..2).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answer = world.joined(joins[0]);
    let follower = ids.iter().find(|id| **id != answer.leader).unwrap();
    let first = world.sync(follower, answer.generation_id, &[]);
    let second = world.sync(follower, answer.generation_id, &[]);
    assert_eq!(world.synced(first).error, ErrorCode::REBALANCE_IN_PROGRESS);
    world.coordinator.forget(second);
    world.sync(&answer.leader, answer.generation_id, &[(follower, "x")]);
    assert_eq!(world.answer(second), None, "nobody is there to be answered");
    let third = world.sync(follower, answer.generation_id, &[]);
    assert_eq!(world.synced(third).assignment, &b"x"[..]);
}

#[test]
fn a_join_in_the_middle_of_syncing_answers_the_sync() {
    let mut world = World::new();
    let ids: Vec<_> = (0..2).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answer = world.joined(joins[0]);
    let follower = ids.iter().find(|id| **id != answer.leader).unwrap();
    let waits = world.sync(follower, answer.generation_id, &[]);
    let joins = world.join(join().of(follower).says("changed"));
    assert_eq!(world.synced(waits).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(world.answer(joins), None);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
    let completed = |it: &GroupEvent| matches!(it, GroupEvent::RebalanceCompleted { .. });
    assert!(!world.events.iter().any(completed));
}
