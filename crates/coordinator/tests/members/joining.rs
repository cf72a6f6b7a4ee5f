//! Who gets in, and as what.

use highwater_coordinator::{
    AppendRefused, CommitPartition, CommitTopic, GenerationId, GroupAnswer, GroupEvent,
    GroupRequest, GroupSettings, GroupState, LeaveCause, MemberId, OffsetCommitRequest,
    RebalanceCause,
};
use highwater_types::{ErrorCode, LeaderEpoch, Millis, Offset, PartitionIndex, TopicId, TopicName};

use crate::support::{Vary as _, World, join, protocol};

#[test]
fn a_member_without_an_id_is_given_one_first() {
    let mut world = World::new();
    let id = world.pending();
    let uuid = id.as_str().strip_prefix("app-").unwrap();
    assert_eq!(uuid.len(), 36, "the client id, a dash, a uuid: {id}");
    let first = world.log.newest_group();
    assert_eq!(
        first.generation, 0,
        "the first request records the empty group, as in Kafka"
    );
    assert_eq!((first.protocol_type.as_str(), first.protocol), ("", None));
    assert_eq!(first.leader, None);
    assert_eq!(first.current_state_timestamp, world.now.wall.raw());
    assert_eq!(world.state(), GroupState::Empty);

    let answer = world.join(join().of(&id));
    let answer = world.joined(answer);
    assert_eq!(answer.error, ErrorCode::NONE);
    assert_eq!(answer.generation_id, GenerationId::new(1));
    assert_eq!((&answer.leader, &answer.member_id), (&id, &id));
    assert_eq!(answer.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(answer.protocol_name.as_deref(), Some("range"));
    assert_eq!(answer.members.len(), 1);
    assert_eq!(answer.members[0].metadata, &b"topics"[..]);
    assert!(!answer.skip_assignment);
    assert_eq!(
        world.log.records.len(),
        1,
        "a generation is recorded with its assignment"
    );
}

#[test]
fn the_first_join_waits_for_the_record_of_its_group() {
    let mut world = World::new();
    let id = world.join(join());
    assert_eq!(world.answers[&id].0, Offset::new(1));
    world.log.refuse = Some(AppendRefused::TooFewInSync);
    let mut other = join();
    other.group_id = "other".into();
    let answer = world.join_now(other);
    assert_eq!(answer.error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    world.log.refuse = Some(AppendRefused::NotLeader);
    let mut other = join();
    other.group_id = "other".into();
    let answer = world.join_now(other);
    assert_eq!(answer.error, ErrorCode::NOT_COORDINATOR);
}

#[test]
fn an_unknown_id_is_unknown_with_and_without_a_group() {
    let mut world = World::new();
    let ghost = MemberId::from("app-ghost");
    let answer = world.join_now(join().of(&ghost));
    assert_eq!(
        (answer.error, answer.member_id),
        (ErrorCode::UNKNOWN_MEMBER_ID, ghost.clone())
    );
    assert!(world.log.records.is_empty(), "and makes no group");
    world.pending();
    let answer = world.join_now(join().of(&ghost));
    assert_eq!(
        (answer.error, answer.member_id),
        (ErrorCode::UNKNOWN_MEMBER_ID, ghost)
    );
}

#[test]
fn a_pending_id_is_nobodys_instance_id() {
    let mut world = World::new();
    let id = world.pending();
    let answer = world.join_now(join().of(&id).instance("i"));
    assert_eq!(answer.error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(world.join_now(join().of(&id)).error, ErrorCode::NONE);
}

#[test]
fn c_12_v0_has_one_timeout_and_lives_beside_a_v9_member() {
    let mut world = World::new();
    let mut old = join().old();
    old.rebalance_timeout = None;
    let old = world.join(old);
    let old = world.joined(old);
    let id = world.pending();
    let new = world.join(join().of(&id));
    assert_eq!(
        world.heartbeat(&old.member_id, old.generation_id),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let mut again = join().old().of(&old.member_id);
    again.rebalance_timeout = None;
    let again = world.join(again);
    let (old, new) = (world.joined(again), world.joined(new));
    assert_eq!((old.error, new.error), (ErrorCode::NONE, ErrorCode::NONE));
    assert_eq!(old.generation_id, new.generation_id);
    let ids = [old.member_id.clone(), new.member_id];
    world.sync_all(&ids, old.generation_id);
    let stored = world.log.newest_group();
    let stored_old = stored
        .members
        .iter()
        .find(|it| it.member_id == old.member_id.as_str());
    assert_eq!(
        stored_old.unwrap().rebalance_timeout,
        10_000,
        "at v0 the session timeout"
    );
}

#[test]
fn the_protocol_that_most_like_best_wins_among_those_that_all_offer() {
    let mut world = World::new();
    let offers: [&[&str]; 3] = [
        &["sticky", "range", "robin"],
        &["robin", "range"],
        &["own", "range", "robin"],
    ];
    let ids: Vec<_> = offers.iter().map(|_| world.pending()).collect();
    let mut last = None;
    for (id, names) in ids.iter().zip(offers) {
        last = Some(world.join(join().of(id).offers(names)));
    }
    let answer = world.joined(last.unwrap());
    assert_eq!(answer.protocol_name.as_deref(), Some("range"));
    let mut stranger = join().old().offers(&["other"]);
    let answer = world.join_now(stranger.clone());
    assert_eq!(answer.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    stranger.protocols = vec![protocol("range", "")];
    stranger.protocol_type = "connect".into();
    let answer = world.join_now(stranger);
    assert_eq!(answer.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_protocol_offered_twice_counts_once() {
    let mut world = World::new();
    let (_, _) = world.stable(2);
    // Were it counted twice, "other" would seem to be offered by both others.
    let twice = join().old().offers(&["range", "other", "other"]);
    world.join(twice);
    let answer = world.join_now(join().old().offers(&["other"]));
    assert_eq!(answer.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn the_initial_delay_gathers_members_and_grows_with_them_up_to_the_rebalance_timeout() {
    let mut world = World::with(GroupSettings {
        initial_rebalance_delay: Millis::new(3_000),
        ..GroupSettings::default()
    });
    let mut request = join().old();
    request.rebalance_timeout = Some(Millis::new(7_000));
    let first = world.join(request.clone());
    world.advance(2_999);
    assert_eq!(world.answer(first), None);
    world.join(request.clone());
    world.advance(2_000);
    assert_eq!(
        world.answer(first),
        None,
        "one joined, so it waits for 3 s more"
    );
    world.join(request.clone());
    world.advance(1_500);
    assert_eq!(
        world.answer(first),
        None,
        "and another, so it waits for the last second"
    );
    world.join(request);
    world.advance(501);
    let answer = world.joined(first);
    assert_eq!(answer.generation_id, GenerationId::new(1));
    assert_eq!(world.describe().members.len(), 4);
}

#[test]
fn the_initial_delay_is_not_cut_short_nor_extended_without_members() {
    let mut world = World::with(GroupSettings::default());
    let first = world.join(join().old());
    world.advance(2_999);
    assert_eq!(world.answer(first), None);
    world.advance(1);
    assert_eq!(world.joined(first).error, ErrorCode::NONE);
}

#[test]
fn only_the_leader_is_told_who_the_members_are() {
    let mut world = World::new();
    let ids: Vec<_> = (0..3).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    let answers: Vec<_> = joins.iter().map(|id| world.joined(*id)).collect();
    for answer in &answers {
        let is_leader = answer.leader == answer.member_id;
        assert_eq!(answer.members.len(), if is_leader { 3 } else { 0 });
    }
}

#[test]
fn an_id_that_was_given_out_is_waited_for_until_its_session_ends() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    let pending = world.pending();
    assert_eq!(
        world.heartbeat(&ids[0], generation),
        ErrorCode::NONE,
        "it disturbs nobody"
    );
    assert_eq!(
        world.heartbeat(&pending, generation),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let again = world.join(join().of(&ids[0]));
    assert_eq!(
        world.answer(again),
        None,
        "the rebalance waits for the pending one"
    );
    let waits = world.describe().waits_for;
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].member_id, pending);
    assert_eq!(waits[0].left, Millis::new(20_000));
    world.advance(10_000);
    assert_eq!(world.joined(again).error, ErrorCode::NONE);
    let answer = world.join_now(join().of(&pending));
    assert_eq!(
        answer.error,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "it is used too late"
    );
}

#[test]
fn a_second_join_of_the_same_member_takes_the_place_of_the_first() {
    let mut world = World::new();
    let (ids, _) = world.stable(2);
    let first = world.join(join().of(&ids[0]));
    let second = world.join(join().of(&ids[0]));
    assert_eq!(world.joined(first).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(world.answer(second), None);
    world.join(join().of(&ids[1]));
    assert_eq!(world.joined(second).error, ErrorCode::NONE);
}

#[test]
fn who_missed_its_answer_gets_it_again() {
    let mut world = World::new();
    let ids: Vec<_> = (0..2).map(|_| world.pending()).collect();
    let joins: Vec<_> = ids.iter().map(|id| world.join(join().of(id))).collect();
    for (id, first) in ids.iter().zip(joins) {
        let first = world.joined(first);
        let again = world.join_now(join().of(id));
        assert_eq!(again, first);
    }
    assert_eq!(world.state(), GroupState::CompletingRebalance);
}

#[test]
fn in_a_stable_group_only_the_leader_or_a_change_begins_a_rebalance() {
    let mut world = World::new();
    let (ids, generation) = world.stable(3);
    let answer = world.join_now(join().of(&ids[1]));
    assert_eq!(
        (answer.error, answer.generation_id),
        (ErrorCode::NONE, generation)
    );
    assert!(answer.members.is_empty());
    assert_eq!(world.state(), GroupState::Stable);

    let changed = world.join(join().of(&ids[1]).says("more topics"));
    assert_eq!(world.answer(changed), None);
    for id in [&ids[0], &ids[2]] {
        assert_eq!(
            world.heartbeat(id, generation),
            ErrorCode::REBALANCE_IN_PROGRESS
        );
        world.join(join().of(id));
    }
    let generation = world.joined(changed).generation_id;
    world.sync_all(&ids, generation);

    let mut request = join().of(&ids[0]);
    request.reason = Some("new partitions".into());
    let leader = world.join(request);
    assert_eq!(world.answer(leader), None);
    let began = GroupEvent::RebalanceBegan {
        generation_id: generation,
        cause: RebalanceCause::LeaderRejoined {
            member_id: ids[0].clone(),
            reason: Some("new partitions".into()),
        },
    };
    assert!(world.events.contains(&began), "{:?}", world.events);
}

#[test]
fn a_new_member_whose_join_is_forgotten_for_too_long_goes() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    let new = world.join(join().old());
    for _ in 0..40 {
        world.heartbeat(&ids[0], generation);
        world.advance(5_000);
        if world.answer(new).is_some() {
            break;
        }
    }
    // The old one never joined again: it was dropped, and the new one leads alone.
    assert_eq!(world.joined(new).members.len(), 1);
}

#[test]
fn trap_31_a_member_that_was_never_told_its_id_goes_with_its_connection() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    let lost = world.join(join().old());
    assert_eq!(
        world.heartbeat(&ids[0], generation),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    world.coordinator.forget(lost);
    world.advance(0);
    let again = world.join(join().of(&ids[0]));
    assert_eq!(world.joined(again).members.len(), 1, "it holds up nobody");
    assert_eq!(world.answer(lost), None);
    let left = |it: &GroupEvent| {
        matches!(
            it,
            GroupEvent::Left {
                cause: LeaveCause::Disconnected,
                ..
            }
        )
    };
    assert!(world.events.iter().any(left));
}

#[test]
fn a_member_that_knows_its_id_outlives_its_connection() {
    let mut world = World::new();
    let (ids, _) = world.stable(2);
    let lost = world.join(join().of(&ids[0]));
    world.coordinator.forget(lost);
    let other = world.join(join().of(&ids[1]));
    assert_eq!(
        world.joined(other).error,
        ErrorCode::NONE,
        "it has joined all the same"
    );
    assert_eq!(world.answer(lost), None, "nobody is there to be answered");
    let again = world.join_now(join().of(&ids[0]));
    assert_eq!(again.error, ErrorCode::NONE);
}

#[test]
fn a_group_of_offsets_alone_is_empty_and_can_be_joined() {
    let mut world = World::new();
    let id = world.send(GroupRequest::OffsetCommit(OffsetCommitRequest {
        group_id: "g".into(),
        generation_id: GenerationId::NONE,
        member_id: MemberId::default(),
        instance_id: None,
        retention: None,
        topics: vec![CommitTopic {
            name: TopicName::new("t").unwrap(),
            topic_id: TopicId::ZERO,
            partitions: vec![CommitPartition {
                partition: PartitionIndex::new(0),
                offset: Offset::new(5),
                leader_epoch: LeaderEpoch::NONE,
                metadata: "".into(),
            }],
        }],
        knows_member_epochs: false,
    }));
    assert!(matches!(
        world.answer(id),
        Some(GroupAnswer::OffsetCommit(_))
    ));
    let described = world.describe();
    assert_eq!(
        (described.state, &*described.protocol_type),
        (GroupState::Empty, "")
    );
    let id = world.pending();
    assert!(
        world.log.groups().is_empty(),
        "as in Kafka, as the group is not new"
    );
    let first = world.join(join().of(&id));
    let generation = world.joined(first).generation_id;
    assert_eq!(generation, GenerationId::new(1));
    world.sync_all(std::slice::from_ref(&id), generation);
}

#[test]
fn a_reason_is_kept_only_as_long_as_clients_make_it() {
    let mut world = World::new();
    let (ids, _) = world.stable(1);
    let mut request = join().of(&ids[0]);
    request.reason = Some("\u{e4}".repeat(300).into());
    world.join(request);
    let of = |it: &GroupEvent| match it {
        GroupEvent::RebalanceBegan {
            cause: RebalanceCause::LeaderRejoined { reason, .. },
            ..
        } => reason.clone(),
        _ => None,
    };
    let reason = world.events.iter().rev().find_map(of).unwrap();
    assert_eq!(reason.len(), 254, "whole characters");
}
