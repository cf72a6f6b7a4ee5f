use bytes::Bytes;
use highwater_coordinator::{
    AppendRefused, GroupEvent, GroupState, ListRequest, OffsetCommitRequest,
};
use highwater_types::ErrorCode;

use crate::support::{Entry, World, simple};

fn errors(answer: &highwater_coordinator::OffsetDeleteAnswer) -> Vec<ErrorCode> {
    let rows = answer.topics.iter().flat_map(|it| &it.partitions);
    rows.map(|it| it.error).collect()
}

#[test]
fn trap_27_offsets_in_use_are_not_deleted_and_others_are() {
    let mut world = World::new();
    let (generation_id, member_id) = world.member_of("g", &["orders"]);
    world.commit_with(OffsetCommitRequest {
        generation_id,
        member_id: member_id.clone(),
        ..simple("g", &[("orders", 0, 5), ("old", 0, 6)])
    });
    let subscribed = world.delete_offsets("g", "orders", &[0, 1]);
    assert_eq!(subscribed.error, ErrorCode::NONE);
    assert_eq!(
        errors(&subscribed),
        [ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC; 2]
    );
    let free = world.delete_offsets("g", "old", &[0, 7]);
    assert_eq!(errors(&free), [ErrorCode::NONE; 2]);
    assert_eq!(world.fetch_all("g"), [("orders".to_owned(), 0, 5)]);
    // An empty group reads nothing. When nothing of it is left it is dead.
    world.leave("g", &member_id);
    assert_eq!(
        errors(&world.delete_offsets("g", "orders", &[0])),
        [ErrorCode::NONE]
    );
    for _ in 0..2 {
        assert_eq!(world.fetch_all("g"), []);
        world.reload();
    }
    let unknown = world.delete_offsets("unknown", "orders", &[0]);
    assert_eq!(unknown.error, ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(unknown.topics, []);
}

#[test]
fn a_group_without_a_name_commits_and_reads_but_deletes_no_offsets() {
    let mut world = World::new();
    assert_eq!(world.commit("", "orders", 0, 5), ErrorCode::NONE);
    world.reload();
    assert_eq!(world.fetch("", "orders", 0), 5);
    let refused = world.delete_offsets("", "orders", &[0]);
    assert_eq!(refused.error, ErrorCode::INVALID_GROUP_ID);
    assert_eq!(world.delete_group("").error, ErrorCode::NONE);
    assert_eq!(world.fetch("", "orders", 0), -1);
}

#[test]
fn trap_27_a_group_of_offsets_only_is_dead_without_them() {
    let mut world = World::new();
    world.commit("g", "orders", 0, 5);
    assert_eq!(world.list(), ["g"]);
    world.delete_offsets("g", "orders", &[0]);
    assert_eq!(world.list(), [""; 0]);
    assert_eq!(world.delete_group("g").error, ErrorCode::GROUP_ID_NOT_FOUND);
}

#[test]
fn members_that_are_no_consumers_keep_all_their_groups_offsets() {
    let mut world = World::new();
    let mut request = World::join_request("connect", "", Bytes::from_static(b"?"));
    request.protocol_type = "connect".into();
    let joined = world.join(request);
    world.sync("connect", &joined);
    let refused = world.delete_offsets("connect", "orders", &[0]);
    assert_eq!(refused.error, ErrorCode::NON_EMPTY_GROUP);
}

#[test]
fn trap_28_a_deleted_group_stays_deleted() {
    let mut world = World::new();
    let (_, member_id) = world.member_of("g", &["orders"]);
    let answer = world.delete_group("g");
    assert_eq!(answer.error, ErrorCode::NON_EMPTY_GROUP);
    world.leave("g", &member_id);
    let rows: Vec<_> = (0..2_500)
        .map(|partition| ("orders", partition, 5))
        .collect();
    world.commit_with(simple("g", &rows));
    world.commit("simple", "orders", 0, 6);
    world.log.batches.clear();
    assert_eq!(world.delete_group("g").error, ErrorCode::NONE);
    assert_eq!(
        world.log.batches,
        [1_000, 1_000, 500, 1],
        "batches that fit"
    );
    assert_eq!(world.delete_group("simple").error, ErrorCode::NONE);
    for _ in 0..2 {
        assert_eq!(world.list(), [""; 0]);
        assert_eq!(world.fetch_all("g"), []);
        assert_eq!(world.delete_group("g").error, ErrorCode::GROUP_ID_NOT_FOUND);
        world.reload();
    }
    let deleted = GroupEvent::Deleted { by_request: true };
    let told = world.events.iter().filter(|(_, event)| *event == deleted);
    assert_eq!(told.count(), 2);
    // A group of the same name is a new one.
    world.commit("g", "orders", 1, 1);
    assert_eq!(world.fetch_all("g"), [("orders".to_owned(), 1, 1)]);
}

#[test]
fn trap_28_half_a_deletion_can_be_told_and_finished() {
    let mut world = World::new();
    world.commit_with(simple("g", &[("orders", 0, 5), ("orders", 1, 6)]));
    world.log.refuse = Some(AppendRefused::TooFewInSync);
    let answer = world.delete_group("g");
    assert_eq!(answer.error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(world.fetch_all("g").len(), 2);
    world.log.refuse = None;
    assert_eq!(world.delete_group("g").error, ErrorCode::NONE);
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut world = World::new();
    let (_, member_id) = world.member_of("empty", &["orders"]);
    world.leave("empty", &member_id);
    world.member_of("stable", &["orders"]);
    world.commit("simple", "orders", 0, 5);
    let listed = world.list_with(ListRequest::default());
    let rows: Vec<_> = listed
        .iter()
        .map(|it| (it.group_id.as_str(), it.protocol_type.as_ref(), it.state))
        .collect();
    let expected = [
        ("empty", "consumer", GroupState::Empty),
        ("simple", "", GroupState::Empty),
        ("stable", "consumer", GroupState::Stable),
    ];
    assert_eq!(rows, expected);
    assert!(listed.iter().all(|it| it.group_type == "classic"));
    let mut count = |states: &[&str], types: &[&str]| {
        let texts = |it: &[&str]| it.iter().map(|&it| it.to_owned()).collect();
        let request = ListRequest {
            states: texts(states),
            types: texts(types),
        };
        world.list_with(request).len()
    };
    // KIP-518: whatever their case.
    assert_eq!(count(&["STABLE"], &[]), 1);
    assert_eq!(count(&["Empty", "stable"], &["Classic"]), 3);
    assert_eq!(count(&[], &["consumer"]), 0);
    assert_eq!(count(&["no such state"], &[]), 0);
}

#[test]
fn what_is_written_are_kafkas_bytes() {
    let mut world = World::new();
    let mut request = simple("g", &[("t", 3, 42)]);
    request.topics[0].topic_id = crate::support::topic_id(0x0102);
    world.commit_with(request);
    let Entry::Record { key, value, .. } = &world.log.entries[0] else {
        panic!("not a record");
    };
    // Type 1; group, topic, partition.
    assert_eq!(key.as_ref(), b"\0\x01\0\x01g\0\x01t\0\0\0\x03");
    let value = value.as_ref().expect("a value");
    // Version 4; offset, leader epoch, empty text.
    let expected = b"\0\x04\0\0\0\0\0\0\0\x2a\xff\xff\xff\xff\x01";
    assert_eq!(&value[..expected.len()], expected);
    // After the commit's time: one tagged field, the topic id.
    let tags = &value[expected.len() + 8..];
    assert_eq!(tags, b"\x01\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02");
}
