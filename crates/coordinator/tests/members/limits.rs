//! What is refused, and bounds.

use highwater_coordinator::{
    AppendRefused, GenerationId, GroupAnswer, GroupRequest, GroupSettings, GroupState,
    HeartbeatRequest, LeaveRequest, MemberId, SyncRequest,
};
use highwater_types::{ErrorCode, Millis};

use crate::support::{Vary as _, World, join, protocol, settings, sync};

#[test]
fn b_45_an_empty_group_id_is_invalid_in_every_request() {
    let mut world = World::new();
    let mut request = join();
    request.group_id = "".into();
    assert_eq!(world.join_now(request).error, ErrorCode::INVALID_GROUP_ID);

    let request = SyncRequest {
        group_id: "".into(),
        ..sync(&"m".into(), GenerationId::new(1), &[])
    };
    let id = world.send(GroupRequest::Sync(request));
    assert_eq!(world.synced(id).error, ErrorCode::INVALID_GROUP_ID);

    let request = HeartbeatRequest {
        group_id: "".into(),
        generation_id: GenerationId::new(1),
        member_id: "m".into(),
        instance_id: None,
    };
    let id = world.send(GroupRequest::Heartbeat(request));
    let Some(GroupAnswer::Heartbeat(answer)) = world.answer(id) else {
        panic!("no answer");
    };
    assert_eq!(answer.error, ErrorCode::INVALID_GROUP_ID);

    let request = LeaveRequest {
        group_id: "".into(),
        members: Vec::new(),
    };
    let id = world.send(GroupRequest::Leave(request));
    let Some(GroupAnswer::Leave(answer)) = world.answer(id) else {
        panic!("no answer");
    };
    assert_eq!(answer.error, ErrorCode::INVALID_GROUP_ID);
    assert!(world.log.records.is_empty());
}

#[test]
fn b_45_session_timeouts_outside_the_bounds_are_invalid() {
    let mut world = World::new();
    for (ms, error) in [
        (0, ErrorCode::INVALID_SESSION_TIMEOUT),
        (5_999, ErrorCode::INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode::MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode::MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode::INVALID_SESSION_TIMEOUT),
        (2_147_483_647, ErrorCode::INVALID_SESSION_TIMEOUT),
    ] {
        let mut request = join();
        request.session_timeout = Millis::new(ms);
        assert_eq!(world.join_now(request).error, error, "{ms}");
    }
}

#[test]
fn b_45_no_protocols_or_no_type_are_inconsistent_and_leave_no_group() {
    let mut world = World::new();
    let mut request = join();
    request.protocol_type = "".into();
    for request in [join().offers(&[]), request] {
        let answer = world.join_now(request);
        assert_eq!(answer.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        assert_eq!(answer.member_id, MemberId::default());
    }
    assert!(world.log.records.is_empty());
    assert_eq!(world.state(), GroupState::Dead);
}

#[test]
fn b_45_the_longest_timeouts_overflow_nothing() {
    let mut world = World::with(GroupSettings {
        session_timeout_max: Millis::new(2_147_483_647),
        initial_rebalance_delay: Millis::new(3_000),
        ..settings()
    });
    let mut request = join().old();
    request.session_timeout = Millis::new(2_147_483_647);
    request.rebalance_timeout = Some(Millis::new(2_147_483_647));
    let first = world.join(request.clone());
    world.join(request);
    world.advance(100_000);
    let answer = world.joined(first);
    assert_eq!(answer.error, ErrorCode::NONE);
    world.sync(&answer.leader, answer.generation_id, &[]);
    let member = &world.log.newest_group().members[0];
    assert_eq!(member.session_timeout, i32::MAX);
    assert_eq!(member.rebalance_timeout, i32::MAX);
}

#[test]
fn b_45_a_timeout_of_nothing_ends_and_does_not_spin() {
    let mut world = World::with(GroupSettings {
        session_timeout_min: Millis::ZERO,
        ..settings()
    });
    for instance in [None, Some("i")] {
        let mut request = join().old();
        request.session_timeout = Millis::ZERO;
        request.rebalance_timeout = Some(Millis::ZERO);
        request.instance_id = instance.map(Into::into);
        world.join(request);
        world.advance(10_000);
    }
    assert_eq!(world.state(), GroupState::Empty);
}

#[test]
fn b_45_metadata_that_no_record_can_hold_is_never_stored() {
    let mut world = World::new();
    let id = world.pending();
    let mut request = join().of(&id);
    request.protocols = vec![protocol("range", "much")];
    let first = world.join(request);
    world.advance(0);
    let generation = world.joined(first).generation_id;
    let records = world.log.records.len();
    world.log.refuse = Some(AppendRefused::TooLarge);
    let answer = world.sync(&id, generation, &[(&id, "all")]);
    assert_eq!(world.synced(answer).error, ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!(world.log.records.len(), records);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}

#[test]
fn b_45_names_longer_than_a_record_holds_are_refused_at_the_door() {
    let long = "x".repeat(40_000);
    let mut world = World::new();
    let mut typed = join();
    typed.protocol_type = long.as_str().into();
    for request in [join().offers(&[&long]), join().instance(&long), typed] {
        assert_eq!(world.join_now(request).error, ErrorCode::INVALID_REQUEST);
    }
    world.client = Box::leak(long.into_boxed_str());
    let id = world.pending();
    assert!(id.as_str().len() < 32_767, "a member id fits a record");
    let mut request = join();
    request.group_id = world.client.into();
    let answer = world.join_now(request);
    assert_eq!(
        answer.error,
        ErrorCode::UNKNOWN_SERVER_ERROR,
        "no record can name the group"
    );
}

#[test]
fn a_group_has_at_most_its_size_of_members() {
    let small = GroupSettings {
        members_max: 2,
        ..settings()
    };
    let mut world = World::with(small);
    let (ids, generation) = world.stable(2);
    let answer = world.join_now(join());
    assert_eq!(answer.error, ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(answer.member_id, MemberId::default());
    assert_eq!(
        world.heartbeat(&ids[0], generation),
        ErrorCode::NONE,
        "nobody else notices"
    );
    // A member of the full group may come again; while all do, those who come first count.
    let leader = world.join(join().of(&ids[0]));
    assert_eq!(world.answer(leader), None);
    let third = world.join(join().old());
    assert_eq!(
        world.answer(third),
        None,
        "one place is free as long as the other is not back"
    );
    let late = world.join_now(join().of(&ids[1]));
    assert_eq!(late.error, ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(
        world.joined(leader).error,
        ErrorCode::NONE,
        "nobody is waited for any more"
    );
    assert_eq!(world.describe().members.len(), 2);
}

#[test]
fn a_loaded_group_that_is_too_large_rebalances_and_keeps_who_comes_first() {
    let mut world = World::new();
    let (ids, generation) = world.stable(4);
    let records = world.log.records.len();
    world.reload_with(
        records,
        GroupSettings {
            members_max: 2,
            ..settings()
        },
    );
    assert_eq!(world.state(), GroupState::PreparingRebalance);
    let beat = world.heartbeat(&ids[0], generation);
    assert_eq!(
        beat,
        ErrorCode::REBALANCE_IN_PROGRESS,
        "so that it can still commit"
    );
    let kept: Vec<_> = ids[..2]
        .iter()
        .map(|id| world.join(join().of(id)))
        .collect();
    for id in &ids[2..] {
        let answer = world.join_now(join().of(id));
        assert_eq!(answer.error, ErrorCode::GROUP_MAX_SIZE_REACHED);
    }
    for id in kept {
        let answer = world.joined(id);
        assert_eq!(answer.error, ErrorCode::NONE);
        assert_eq!(
            answer.generation_id,
            GenerationId::new(generation.raw() + 1)
        );
    }
}
