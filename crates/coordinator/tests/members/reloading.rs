//! What a reload brings back.

use highwater_coordinator::{GroupState, JoinProtocol};
use highwater_types::ErrorCode;

use crate::support::{Vary as _, World, join};

#[test]
fn a_loaded_member_goes_on_with_a_fresh_session() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let before = world.describe();
    world.advance(9_000);
    world.reload(world.log.records.len());
    world.advance(9_999);
    let after = world.describe();
    assert_eq!(after.members, before.members);
    assert_eq!(
        (after.state, after.protocol),
        (before.state, before.protocol)
    );
    assert_eq!(world.heartbeat(&ids[0], generation), ErrorCode::NONE);
    world.advance(1);
    assert_eq!(
        world.heartbeat(&ids[1], generation),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
}

#[test]
fn a_generation_that_was_not_recorded_is_gone_and_its_members_start_over() {
    let mut world = World::new();
    let (ids, generation) = world.stable(2);
    let joins: Vec<_> = ids
        .iter()
        .map(|id| world.join(join().of(id).says("new")))
        .collect();
    let newer = world.joined(joins[0]).generation_id;
    assert_eq!(newer, generation.next());
    world.reload(world.log.records.len());
    assert_eq!(world.state(), GroupState::Stable);
    for id in &ids {
        assert_eq!(world.heartbeat(id, newer), ErrorCode::ILLEGAL_GENERATION);
        let waits = world.sync(id, newer, &[]);
        assert_eq!(world.synced(waits).error, ErrorCode::ILLEGAL_GENERATION);
    }
    let joins: Vec<_> = ids
        .iter()
        .map(|id| world.join(join().of(id).says("new")))
        .collect();
    assert_eq!(world.joined(joins[0]).generation_id, newer);
}

#[test]
fn a_loaded_member_may_offer_more_again() {
    let mut world = World::new();
    let (ids, _) = world.stable(1);
    world.reload(world.log.records.len());
    let mut request = join().of(&ids[0]);
    request.protocols.push(JoinProtocol {
        name: "robin".into(),
        metadata: bytes::Bytes::new(),
    });
    let again = world.join(request);
    assert_eq!(world.joined(again).error, ErrorCode::NONE);
    let other = world.join(join().old().offers(&["robin"]));
    assert_eq!(
        world.answer(other),
        None,
        "it fits, so it is waited for the first"
    );
}

#[test]
fn an_empty_group_loads_as_empty_with_its_generation() {
    let mut world = World::new();
    let (ids, generation) = world.stable(1);
    world.leave(&[(ids[0].as_str(), None)]);
    world.reload(world.log.records.len());
    assert_eq!(world.state(), GroupState::Empty);
    let id = world.pending();
    let first = world.join(join().of(&id));
    assert_eq!(world.joined(first).generation_id, generation.next().next());
}
