//! Static members (KIP-345).

use highwater_coordinator::{
    AppendRefused, GenerationId, GroupEvent, GroupRequest, GroupState, JoinAnswer, LeaveCause,
    MemberId,
};
use highwater_types::ErrorCode;

use crate::support::{Vary as _, World, join, protocol, sync};

/// A stable group of static members `a` (which leads) and `b`.
fn stable(world: &mut World) -> (MemberId, MemberId, GenerationId) {
    let a = world.join(join().instance("a"));
    let b = world.join(join().instance("b"));
    let (a, b) = (world.joined(a), world.joined(b));
    assert_eq!((a.error, b.error), (ErrorCode::NONE, ErrorCode::NONE));
    let ids = if a.leader == a.member_id {
        [a.member_id.clone(), b.member_id.clone()]
    } else {
        [b.member_id.clone(), a.member_id.clone()]
    };
    world.sync_all(&ids, a.generation_id);
    (a.member_id, b.member_id, a.generation_id)
}

fn instances(answer: &JoinAnswer) -> Vec<&str> {
    let of = answer
        .members
        .iter()
        .map(|it| it.instance_id.as_ref().unwrap().as_str());
    of.collect()
}

#[test]
fn trap_29_a_static_member_that_restarts_goes_on_with_its_assignment() {
    let mut world = World::new();
    let (a, b, generation) = stable(&mut world);
    assert!(
        b.as_str().starts_with("b-"),
        "the instance id, a dash, a uuid: {b}"
    );
    let records = world.log.records.len();
    let answer = world.join_now(join().instance("b"));
    let new = answer.member_id.clone();
    assert_eq!(
        (answer.error, answer.generation_id),
        (ErrorCode::NONE, generation)
    );
    assert_ne!(new, b);
    assert_eq!(world.state(), GroupState::Stable, "nobody rebalances");
    assert_eq!(
        world.log.records.len(),
        records + 1,
        "the new id is recorded at once"
    );
    let stored = world.log.newest_group();
    assert!(stored.members.iter().any(|it| it.member_id == new.as_str()));
    assert!(!stored.members.iter().any(|it| it.member_id == b.as_str()));
    let mut request = sync(&new, generation, &[]);
    request.instance_id = Some("b".into());
    let id = world.send(GroupRequest::Sync(request));
    assert_eq!(
        world.synced(id).assignment,
        b.as_str().as_bytes(),
        "what the old one had"
    );

    assert_eq!(
        world.heartbeat_as(&b, generation, Some("b")),
        ErrorCode::FENCED_INSTANCE_ID
    );
    assert_eq!(
        world.heartbeat_as(&new, generation, Some("b")),
        ErrorCode::NONE
    );
    assert_eq!(
        world.heartbeat_as(&a, generation, Some("a")),
        ErrorCode::NONE
    );
    assert_eq!(
        world.heartbeat(&b, generation),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let answer = world.join_now(join().of(&b).instance("b"));
    assert_eq!(
        (answer.error, &answer.member_id),
        (ErrorCode::FENCED_INSTANCE_ID, &b)
    );
    let mut request = sync(&b, generation, &[]);
    request.instance_id = Some("b".into());
    let id = world.send(GroupRequest::Sync(request));
    assert_eq!(world.synced(id).error, ErrorCode::FENCED_INSTANCE_ID);
    let left = world.leave(&[(b.as_str(), Some("b"))]);
    assert_eq!(left.members[0].error, ErrorCode::FENCED_INSTANCE_ID);
}

#[test]
fn a_static_leader_that_restarts_is_told_not_to_assign() {
    for knows_skip in [true, false] {
        let mut world = World::new();
        let (_, _, generation) = stable(&mut world);
        let leader = world.log.newest_group().leader.unwrap();
        let instance = leader.get(..1).unwrap();
        let mut request = join().instance(instance);
        request.knows_skip_assignment = knows_skip;
        let answer = world.join_now(request);
        assert_eq!(
            (answer.error, answer.generation_id),
            (ErrorCode::NONE, generation)
        );
        assert_eq!(answer.skip_assignment, knows_skip);
        if knows_skip {
            assert_eq!(answer.leader, answer.member_id);
            assert_eq!(instances(&answer), ["a", "b"]);
        } else {
            assert_eq!(
                answer.leader.as_str(),
                leader,
                "the old one: so it does not assign"
            );
            assert!(answer.members.is_empty());
        }
        assert_eq!(
            world.log.newest_group().leader.as_deref(),
            Some(answer.member_id.as_str())
        );
    }
}

#[test]
fn a_static_member_that_changes_what_it_offers_begins_a_rebalance() {
    let mut world = World::new();
    // Both offer both protocols.
    let both = || {
        let mut it = join();
        it.protocols = vec![protocol("range", "topics"), protocol("robin", "topics")];
        it
    };
    let a = world.join(both().instance("a"));
    let b = world.join(both().instance("b"));
    let (a, b) = (world.joined(a), world.joined(b));
    let mut ids = [a.member_id.clone(), b.member_id.clone()];
    ids.sort_by_key(|id| *id != a.leader);
    world.sync_all(&ids, a.generation_id);
    let records = world.log.records.len();
    let again = world.join(join().instance("b").offers(&["robin"]));
    assert_eq!(world.answer(again), None);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
    assert_eq!(world.log.records.len(), records);
    let beat = world.heartbeat_as(&b.member_id, b.generation_id, Some("b"));
    assert_eq!(beat, ErrorCode::FENCED_INSTANCE_ID);
    world.join(both().of(&a.member_id).instance("a"));
    let answer = world.joined(again);
    assert_eq!(answer.protocol_name.as_deref(), Some("robin"));
    assert_eq!(answer.generation_id, a.generation_id.next());
}

#[test]
fn a_static_member_that_restarts_in_the_middle_fences_the_old_ones_requests() {
    let mut world = World::new();
    let (a, b, generation) = stable(&mut world);
    // While members join.
    let old = world.join(join().of(&a).instance("a").says("more"));
    assert_eq!(world.answer(old), None);
    let new = world.join(join().instance("a"));
    let fenced = world.joined(old);
    assert_eq!(
        (fenced.error, &fenced.member_id),
        (ErrorCode::FENCED_INSTANCE_ID, &a)
    );
    assert_eq!(world.answer(new), None);
    let b_joins = world.join(join().of(&b).instance("b"));
    let (new, b_answer) = (world.joined(new), world.joined(b_joins));
    assert_eq!(new.generation_id, generation.next());
    // While they sync.
    let ids = [&new.member_id, &b_answer.member_id];
    let (instance, follower) = if *ids[0] == new.leader {
        ("b", ids[1].clone())
    } else {
        ("a", ids[0].clone())
    };
    let waits = world.sync(&follower, new.generation_id, &[]);
    assert_eq!(world.answer(waits), None);
    let newer = world.join(join().instance(instance));
    assert_eq!(world.synced(waits).error, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(
        world.answer(newer),
        None,
        "the leader may already assign to the old id"
    );
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_static_member_keeps_its_place_until_its_session_ends() {
    let mut world = World::new();
    let (a, b, generation) = stable(&mut world);
    world.advance(6_000);
    assert_eq!(
        world.heartbeat_as(&a, generation, Some("a")),
        ErrorCode::NONE
    );
    assert_eq!(
        world.heartbeat_as(&b, generation, Some("b")),
        ErrorCode::NONE
    );
    let again = world.join(join().of(&a).instance("a").says("more"));
    for _ in 0..3 {
        world.advance(6_000);
        let beat = world.heartbeat_as(&b, generation, Some("b"));
        assert_eq!(beat, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    world.advance(2_000);
    let answer = world.joined(again);
    assert_eq!(
        answer.error,
        ErrorCode::NONE,
        "the join phase ends by its timeout"
    );
    assert_eq!(answer.leader, a, "and the one who joined leads");
    assert_eq!(instances(&answer), ["a", "b"], "b is still assigned to");
    world.sync(&a, answer.generation_id, &[(&a, "x"), (&b, "y")]);
    world.advance(9_999);
    world.heartbeat_as(&a, answer.generation_id, Some("a"));
    world.advance(1);
    assert_eq!(
        world.state(),
        GroupState::PreparingRebalance,
        "b was silent"
    );
    let left = |it: &GroupEvent| {
        matches!(
            it,
            GroupEvent::Left {
                cause: LeaveCause::SessionTimeout,
                ..
            }
        )
    };
    assert!(world.events.iter().any(left));
}

#[test]
fn when_only_static_members_are_left_and_none_joins_their_sessions_decide() {
    let mut world = World::new();
    let a = world.join(join().instance("a"));
    let a = world.joined(a);
    let ids = [a.member_id.clone()];
    world.sync_all(&ids, a.generation_id);
    let new = world.join(join().old());
    let new_id = world
        .describe()
        .members
        .iter()
        .map(|it| it.member_id.clone())
        .collect::<Vec<_>>();
    let new_id = new_id.into_iter().find(|id| *id != a.member_id).unwrap();
    world.leave(&[(new_id.as_str(), None)]);
    assert_eq!(world.joined(new).error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
    for _ in 0..5 {
        world.advance(9_000);
        let beat = world.heartbeat_as(&a.member_id, a.generation_id, Some("a"));
        assert_eq!(
            beat,
            ErrorCode::REBALANCE_IN_PROGRESS,
            "it is never dropped for that"
        );
    }
    world.advance(10_000);
    assert_eq!(world.describe().members.len(), 0);
    world.advance(20_000);
    assert_eq!(world.state(), GroupState::Empty);
}

#[test]
fn a_refused_record_leaves_the_old_static_member_in_its_place() {
    let mut world = World::new();
    let (_, b, generation) = stable(&mut world);
    world.log.refuse = Some(AppendRefused::TooFewInSync);
    let answer = world.join_now(join().instance("b").says("other"));
    assert_eq!(answer.error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert!(answer.member_id.is_empty());
    assert_eq!(
        world.heartbeat_as(&b, generation, Some("b")),
        ErrorCode::NONE
    );
    let described = world.describe();
    let of_b = described
        .members
        .iter()
        .find(|it| it.member_id == b)
        .unwrap();
    assert_eq!(of_b.metadata, &b"topics"[..], "what it said is as it was");
    world.log.refuse = None;
    assert_eq!(world.join_now(join().instance("b")).error, ErrorCode::NONE);
}

#[test]
fn an_administrator_removes_a_static_member_by_its_instance_id() {
    let mut world = World::new();
    let (a, _, generation) = stable(&mut world);
    let answer = world.leave(&[("", Some("b")), ("wrong", Some("a"))]);
    assert_eq!(answer.members[0].error, ErrorCode::NONE);
    assert!(answer.members[0].member_id.is_empty(), "as in the request");
    assert_eq!(answer.members[1].error, ErrorCode::FENCED_INSTANCE_ID);
    let beat = world.heartbeat_as(&a, generation, Some("a"));
    assert_eq!(beat, ErrorCode::REBALANCE_IN_PROGRESS);
    let answer = world.join_now(join().of(&a).instance("b"));
    assert_eq!(answer.error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn after_a_reload_the_fenced_one_stays_fenced() {
    let mut world = World::new();
    let (_, b, generation) = stable(&mut world);
    let new = world.join_now(join().instance("b")).member_id;
    world.reload(world.log.records.len());
    assert_eq!(
        world.heartbeat_as(&b, generation, Some("b")),
        ErrorCode::FENCED_INSTANCE_ID
    );
    assert_eq!(
        world.heartbeat_as(&new, generation, Some("b")),
        ErrorCode::NONE
    );
}
