//! How a rebalance goes, who is lost in it, and what members hear meanwhile.

use highwater_coordinator::{
    AppendRefused, GenerationId, GroupEvent, GroupState, LeaveCause, MemberId, RebalanceCause,
};
use highwater_types::{ErrorCode, Millis, Offset};

use crate::support::{Vary as _, World, join};

#[test]
fn who_does_not_join_again_in_time_is_out() {
    let mut world = World::new();
    let (ids, generation) = world.stable(3);
    let first = world.join(join().of(&ids[0]));
    // The others heartbeat, so that their sessions last, but do not join again.
    for _ in 0..4 {
        for id in &ids[1..] {
            let error = world.heartbeat(id, generation);
            assert_eq!(error, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        assert_eq!(world.answer(first), None);
        world.advance(5_000);
    }
    let answer = world.joined(first);
    assert_eq!(
        answer.generation_id,
        GenerationId::new(generation.raw() + 1)
    );
    assert_eq!(answer.members.len(), 1);
    for id in &ids[1..] {
        assert_eq!(
            world.heartbeat(id, generation),
            ErrorCode::UNKNOWN_MEMBER_ID
        );
        let left = GroupEvent::Left {
            member_id: id.clone(),
            instance_id: None,
            cause: LeaveCause::RebalanceTimeout,
        };
        assert!(world.events.contains(&left));
    }
}

#[test]
fn a_leader_that_does_not_join_again_loses_the_lead() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let other = world.join(join().of(&ids[1]).says("changed"));
    world.heartbeat(&ids[0], generation);
    world.advance(9_000);
    world.heartbeat(&ids[0], generation);
    world.advance(9_000);
    world.heartbeat(&ids[0], generation);
    world.advance(2_000);
    let answer = world.joined(other);
    assert_eq!((&answer.leader, answer.members.len()), (&ids[1], 1));
}

#[test]
fn each_state_has_its_heartbeat() {
    let mut world = World::new();
    let ghost = MemberId::from("ghost");
    let one = GenerationId::new(1);
    assert_eq!(
        world.heartbeat(&ghost, one),
        ErrorCode::UNKNOWN_MEMBER_ID,
        "no group"
    );
    let id = world.pending();
    assert_eq!(
        world.heartbeat(&id, one),
        ErrorCode::UNKNOWN_MEMBER_ID,
        "Empty"
    );
    let first = world.join(join().of(&id));
    let zero = GenerationId::new(0);
    assert_eq!(
        world.heartbeat(&id, zero),
        ErrorCode::REBALANCE_IN_PROGRESS,
        "Preparing"
    );
    assert_eq!(
        world.heartbeat(&id, one),
        ErrorCode::ILLEGAL_GENERATION,
        "of the future"
    );
    let generation = world.joined(first).generation_id;
    assert_eq!(
        world.heartbeat(&id, generation),
        ErrorCode::NONE,
        "Completing"
    );
    assert_eq!(
        world.heartbeat(&id, zero),
        ErrorCode::ILLEGAL_GENERATION,
        "go_06: of the past"
    );
    world.sync_all(std::slice::from_ref(&id), generation);
    assert_eq!(world.heartbeat(&id, generation), ErrorCode::NONE, "Stable");
    assert_eq!(
        world.heartbeat(&ghost, generation),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let error = world.heartbeat_as(&id, generation, Some("i"));
    assert_eq!(
        error,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "nobody has this instance id"
    );
}

#[test]
fn an_answer_waits_for_the_record_of_its_group_and_no_other() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    let end = world.log.end();
    world.send(highwater_coordinator::GroupRequest::Join({
        let mut other = join();
        other.group_id = "other".into();
        other
    }));
    assert_ne!(world.log.end(), end);
    world.heartbeat(&ids[0], generation);
    let (_, (after, _)) = world.answers.last_key_value().unwrap();
    assert_eq!(*after, end);
}

#[test]
fn generations_grow_by_one_and_nothing_is_recorded_before_the_assignment() {
    let mut world = World::new();
    let (mut ids, mut generation) = world.stable(2);
    for round in 0..3 {
        let records = world.log.records.len();
        let joins: Vec<_> = ids
            .iter()
            .map(|id| world.join(join().of(id).says("again")))
            .collect();
        let joins: Vec<_> = joins.into_iter().map(|id| world.joined(id)).collect();
        assert!(
            joins.iter().all(|it| it.generation_id == generation.next()),
            "{round}"
        );
        assert_eq!(world.log.records.len(), records);
        generation = generation.next();
        ids.sort_by_key(|id| *id != joins[0].leader);
        world.sync_all(&ids, generation);
        assert_eq!(world.log.records.len(), records + 1);
        assert_eq!(world.log.newest_group().generation, generation.raw());
    }
}

#[test]
fn a_refused_assignment_sends_all_back_to_join() {
    for (why, error) in [
        (
            AppendRefused::TooFewInSync,
            ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ),
        (AppendRefused::NotLeader, ErrorCode::NOT_COORDINATOR),
        (AppendRefused::Disk, ErrorCode::NOT_COORDINATOR),
        (AppendRefused::TooLarge, ErrorCode::UNKNOWN_SERVER_ERROR),
    ] {
        let mut world = World::new();
        let ids: Vec<_> = (0..2).map(|_| world.pending()).collect();
        let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
        let answer = world.joined(joins[0]);
        let (leader, generation) = (answer.leader, answer.generation_id);
        let follower = ids.iter().find(|id| **id != leader).unwrap();
        let records = world.log.records.clone();
        world.log.refuse = Some(why);
        let waiting = world.sync(follower, generation, &[]);
        let assigning = world.sync(&leader, generation, &[(&leader, "all")]);
        for id in [waiting, assigning] {
            let answer = world.synced(id);
            assert_eq!(answer.error, error);
            assert!(answer.assignment.is_empty());
            assert_eq!((answer.protocol_type, answer.protocol_name), (None, None));
        }
        assert_eq!(world.log.records, records);
        assert_eq!(world.state(), GroupState::PreparingRebalance);
        let began = GroupEvent::RebalanceBegan {
            generation_id: generation,
            cause: RebalanceCause::AssignmentNotRecorded,
        };
        assert!(world.events.contains(&began));

        world.log.refuse = None;
        let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
        let next = world.joined(joins[0]).generation_id;
        assert_eq!(next, generation.next());
        world.sync_all(&[leader.clone(), follower.clone()], next);
    }
}

#[test]
fn that_a_group_is_empty_is_recorded_and_tried_again_when_refused() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    world.log.refuse = Some(AppendRefused::TooFewInSync);
    let answer = world.leave(&[(ids[0].as_str(), None)]);
    assert_eq!(answer.error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(world.state(), GroupState::Empty);
    assert_eq!(world.log.newest_group().generation, generation.raw());
    world.advance(2_500);
    world.log.refuse = None;
    world.advance(1_000);
    let stored = world.log.newest_group();
    assert_eq!(stored.generation, generation.next().raw());
    assert!(stored.members.is_empty());
    assert_eq!((stored.leader, stored.protocol), (None, None));
    assert_eq!(stored.protocol_type, "consumer", "kept, as in Kafka");
    let records = world.log.records.len();
    world.advance(60_000);
    assert_eq!(world.log.records.len(), records, "once");
}

#[test]
fn describe_tells_why_a_rebalance_runs_and_whom_it_waits_for() {
    let mut world = World::new();
    let (ids, _) = world.stable(3);
    let mut request = join().of(&ids[1]).says("other");
    request.reason = Some("subscribed anew".into());
    world.join(request);
    world.advance(5_000);
    let described = world.describe();
    assert_eq!(described.state, GroupState::PreparingRebalance);
    let waits: Vec<_> = described.waits_for.iter().map(|it| &it.member_id).collect();
    let mut missing = vec![&ids[0], &ids[2]];
    missing.sort();
    assert_eq!(waits, missing);
    assert!(
        described
            .waits_for
            .iter()
            .all(|it| it.left == Millis::new(15_000))
    );
    let why = described.past.iter().rev().map(|it| it.event.to_string());
    let why = why.clone().find(|it| it.contains("began")).unwrap();
    assert!(why.ends_with("joined again (subscribed anew)"), "{why}");
    for id in [&ids[0], &ids[2]] {
        world.join(join().of(id));
    }
    let waits = world.describe().waits_for;
    assert_eq!(waits.len(), 3, "for all to sync");
}

#[test]
fn describe_shows_metadata_of_stable_groups_only() {
    let mut world = World::new();
    let (ids, _) = world.stable(2);
    let described = world.describe();
    assert_eq!(described.state, GroupState::Stable);
    assert_eq!(
        (&*described.protocol_type, &*described.protocol),
        ("consumer", "range")
    );
    for member in &described.members {
        assert_eq!(member.metadata, &b"topics"[..]);
        assert_eq!(member.assignment, member.member_id.as_str().as_bytes());
        assert_eq!(
            (&*member.client_id, &*member.client_host),
            ("app", "/127.0.0.1")
        );
    }
    world.join(join().of(&ids[0]));
    let described = world.describe();
    assert_eq!(
        (&*described.protocol_type, &*described.protocol),
        ("consumer", "")
    );
    assert!(described.members.iter().all(|it| it.metadata.is_empty()));
    assert!(
        described.members.iter().all(|it| !it.assignment.is_empty()),
        "still consumed"
    );
}

#[test]
fn trap_30_an_unknown_group_is_dead_and_from_v6_an_error() {
    let mut world = World::new();
    let old = world.describe_as(false);
    assert_eq!((old.error, old.state), (ErrorCode::NONE, GroupState::Dead));
    assert_eq!(old.error_message, None);
    let new = world.describe_as(true);
    assert_eq!(
        (new.error, new.state),
        (ErrorCode::GROUP_ID_NOT_FOUND, GroupState::Dead)
    );
    assert_eq!(new.error_message.as_deref(), Some("Group g not found."));
}

#[test]
fn a_hundred_members_settle_in_one_round() {
    let mut world = World::new();
    let ids: Vec<_> = (0..100).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answers: Vec<_> = joins.into_iter().map(|id| world.joined(id)).collect();
    assert!(
        answers
            .iter()
            .all(|it| it.generation_id == GenerationId::new(1))
    );
    let listed: usize = answers.iter().map(|it| it.members.len()).sum();
    assert_eq!(listed, 100, "one list of members, for the leader");
    let mut ids = ids;
    ids.sort_by_key(|id| *id != answers[0].leader);
    world.sync_all(&ids, GenerationId::new(1));
    assert_eq!(world.state(), GroupState::Stable);
    assert_eq!(world.log.end(), Offset::new(2));
}

#[test]
fn an_assignment_that_was_not_completed_is_taken_back() {
    let mut world = World::new();
    let (ids, _) = world.stable(2);
    for id in &ids {
        world.join(join().of(id).says("more"));
    }
    assert_eq!(world.state(), GroupState::CompletingRebalance);
    world.join(join().old());
    let described = world.describe();
    assert_eq!(described.state, GroupState::PreparingRebalance);
    assert!(
        described.members.iter().all(|it| it.assignment.is_empty()),
        "{described:?}"
    );
}
