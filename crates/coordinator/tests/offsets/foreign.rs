//! Groups of other types in a log of Kafka.

use highwater_coordinator::{
    DescribeRequest, GroupAnswer, GroupRequest, GroupState, HeartbeatRequest, LeaveRequest,
    LeavingMember, ListRequest, MemberId, OffsetCommitRequest, OffsetFetchRequest, SyncRequest,
};
use highwater_records::stored::GroupRecord;
use highwater_records::stored::coordinator::{
    ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue, ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue, ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue, ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue, ShareGroupMetadataKey, ShareGroupMetadataValue,
    StreamsGroupMetadataKey, StreamsGroupMetadataValue,
};
use highwater_types::{ErrorCode, Millis, ProducerId};

use crate::support::{Entry, MemLog, World, fetch_all, settings, simple, subscription};

fn entry(record: &GroupRecord) -> Entry {
    let (key, value) = record.encode(0).unwrap();
    Entry::Record {
        key,
        value,
        producer_id: ProducerId::NONE,
    }
}

fn consumer_group(epoch: i32) -> Entry {
    let value = ConsumerGroupMetadataValue {
        epoch,
        ..ConsumerGroupMetadataValue::default()
    };
    let group_id = "g".to_owned();
    let key = ConsumerGroupMetadataKey { group_id };
    entry(&GroupRecord::ConsumerGroupMetadata(key, Some(value)))
}

fn member() -> (String, String) {
    ("g".to_owned(), "m".to_owned())
}

fn consumer_member(is_there: bool) -> Entry {
    let (group_id, member_id) = member();
    let key = ConsumerGroupMemberMetadataKey {
        group_id,
        member_id,
    };
    let value = is_there.then(|| ConsumerGroupMemberMetadataValue {
        subscribed_topic_names: vec!["orders".to_owned()],
        ..ConsumerGroupMemberMetadataValue::default()
    });
    entry(&GroupRecord::ConsumerGroupMemberMetadata(key, value))
}

fn target(assignment_epoch: i32) -> [Entry; 2] {
    let (group_id, member_id) = member();
    let member = GroupRecord::ConsumerGroupTargetAssignmentMember(
        ConsumerGroupTargetAssignmentMemberKey {
            group_id: group_id.clone(),
            member_id,
        },
        Some(ConsumerGroupTargetAssignmentMemberValue::default()),
    );
    let metadata = GroupRecord::ConsumerGroupTargetAssignmentMetadata(
        ConsumerGroupTargetAssignmentMetadataKey { group_id },
        Some(ConsumerGroupTargetAssignmentMetadataValue {
            assignment_epoch,
            ..ConsumerGroupTargetAssignmentMetadataValue::default()
        }),
    );
    [entry(&member), entry(&metadata)]
}

fn current(member_epoch: i32) -> Entry {
    let (group_id, member_id) = member();
    let key = ConsumerGroupCurrentMemberAssignmentKey {
        group_id,
        member_id,
    };
    let value = ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch,
        state: 0,
        ..ConsumerGroupCurrentMemberAssignmentValue::default()
    };
    entry(&GroupRecord::ConsumerGroupCurrentMemberAssignment(
        key,
        Some(value),
    ))
}

/// A consumer group with one member, at rest in epoch 3.
fn with_member() -> Vec<Entry> {
    let mut entries = vec![consumer_member(true), consumer_group(3)];
    entries.extend(target(3));
    entries.push(current(3));
    entries
}

/// The same after its member has left.
fn without_member() -> Vec<Entry> {
    let mut entries = vec![consumer_member(true), consumer_group(3)];
    entries.extend([consumer_member(false), consumer_group(4)]);
    let [_, metadata] = target(4);
    entries.push(metadata);
    entries
}

fn world(entries: Vec<Entry>) -> World {
    let log = MemLog {
        entries,
        ..MemLog::default()
    };
    World::with(settings(), log)
}

fn state(world: &mut World) -> Option<GroupState> {
    let listed = world.list_with(ListRequest::default());
    listed.first().map(|it| it.state)
}

fn by_member(epoch: i32) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id: highwater_coordinator::GenerationId::new(epoch),
        member_id: MemberId::new("m"),
        ..simple("g", &[("orders", 0, 5)])
    }
}

#[test]
fn the_states_of_a_consumer_group_are_kafkas() {
    let mut entries = vec![consumer_member(true), consumer_group(3)];
    assert_eq!(
        state(&mut world(entries.clone())),
        Some(GroupState::Assigning)
    );
    entries.extend(target(3));
    assert_eq!(
        state(&mut world(entries.clone())),
        Some(GroupState::Reconciling)
    );
    entries.push(current(3));
    assert_eq!(state(&mut world(entries.clone())), Some(GroupState::Stable));
    assert_eq!(state(&mut world(without_member())), Some(GroupState::Empty));
}

#[test]
fn a_group_with_members_of_another_type_refuses_classic_ones() {
    let mut world = world(with_member());
    let before = world.log.entries.len();
    let joined = world.join(World::join_request("g", "", subscription(&["orders"])));
    assert_eq!(joined.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let (generation_id, member_id) = (by_member(3).generation_id, MemberId::new("m"));
    let (_, answer) = world.ask(GroupRequest::Heartbeat(HeartbeatRequest {
        group_id: "g".into(),
        generation_id,
        member_id: member_id.clone(),
        instance_id: None,
    }));
    let GroupAnswer::Heartbeat(answer) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(answer.error, ErrorCode::UNKNOWN_MEMBER_ID);
    let (_, answer) = world.ask(GroupRequest::Sync(SyncRequest {
        group_id: "g".into(),
        generation_id,
        member_id: member_id.clone(),
        instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: Vec::new(),
    }));
    let GroupAnswer::Sync(answer) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(answer.error, ErrorCode::UNKNOWN_MEMBER_ID);
    world.ask(GroupRequest::Leave(LeaveRequest {
        group_id: "g".into(),
        members: vec![LeavingMember {
            member_id,
            instance_id: None,
            reason: None,
        }],
    }));
    let (_, answer) = world.ask(GroupRequest::Describe(DescribeRequest {
        group_id: "g".into(),
        unknown_is_error: true,
    }));
    let GroupAnswer::Describe(answer) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(answer.error, ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(world.delete_group("g").error, ErrorCode::NON_EMPTY_GROUP);
    // Nothing of all that has touched it.
    assert_eq!(world.log.entries.len(), before);
    assert_eq!(state(&mut world), Some(GroupState::Stable));
}

#[test]
fn members_of_another_type_commit_with_their_epoch() {
    let mut world = world(with_member());
    assert_eq!(world.commit_with(by_member(3)), [ErrorCode::NONE]);
    assert_eq!(
        world.commit_with(by_member(2)),
        [ErrorCode::STALE_MEMBER_EPOCH]
    );
    let old_client = OffsetCommitRequest {
        knows_member_epochs: false,
        ..by_member(3)
    };
    assert_eq!(
        world.commit_with(old_client),
        [ErrorCode::UNSUPPORTED_VERSION]
    );
    let stranger = OffsetCommitRequest {
        member_id: MemberId::new("x"),
        ..by_member(3)
    };
    assert_eq!(world.commit_with(stranger), [ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_eq!(
        world.commit("g", "orders", 0, 1),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    // And read with it, or as somebody else.
    let asked = |member: Option<&str>, member_epoch| OffsetFetchRequest {
        member_id: member.map(MemberId::new),
        member_epoch,
        ..fetch_all("g")
    };
    for (member, epoch, error) in [
        (Some("m"), 3, ErrorCode::NONE),
        (None, -1, ErrorCode::NONE),
        (Some("m"), 2, ErrorCode::STALE_MEMBER_EPOCH),
        (Some("x"), 3, ErrorCode::UNKNOWN_MEMBER_ID),
    ] {
        let (_, answer) = world.fetch_with(asked(member, epoch));
        assert_eq!(answer.error, error, "{member:?} {epoch}");
    }
    // What is read is neither deleted nor expired.
    let answer = world.delete_offsets("g", "orders", &[0]);
    let error = answer.topics[0].partitions[0].error;
    assert_eq!(error, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
    world.age(Millis::new(u64::from(u32::MAX)));
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), 5);
}

#[test]
fn an_empty_consumer_group_becomes_classic_and_keeps_its_offsets() {
    let mut world = world(without_member());
    assert_eq!(world.commit("g", "orders", 0, 7), ErrorCode::NONE);
    world.member_of("g", &["orders"]);
    for _ in 0..2 {
        let listed = world.list_with(ListRequest::default());
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (listed[0].group_type, listed[0].state),
            ("classic", GroupState::Stable)
        );
        assert_eq!(world.fetch("g", "orders", 0), 7);
        world.reload();
    }
    // Kafka would load it as a classic group, too: none of the other records is left.
    let mut live = std::collections::BTreeMap::new();
    for entry in &world.log.entries {
        if let Entry::Record { key, value, .. } = entry {
            live.insert(key.clone(), value.is_some());
        }
    }
    let types: Vec<u8> = live
        .iter()
        .filter(|(_, live)| **live)
        .map(|(key, _)| key[1])
        .collect();
    assert_eq!(types, [1, 2]);
}

#[test]
fn an_empty_consumer_group_is_deleted_and_expires() {
    let mut world = world(without_member());
    world.commit("g", "orders", 0, 7);
    assert_eq!(world.delete_group("g").error, ErrorCode::NONE);
    assert_eq!(world.list(), [""; 0]);
    world.reload();
    assert_eq!(world.list(), [""; 0]);

    let mut world = self::world(without_member());
    world.commit("g", "orders", 0, 7);
    world.look_for_old_offsets();
    assert_eq!(world.list(), ["g"]);
    world.age(Millis::new(u64::from(u32::MAX)));
    world.look_for_old_offsets();
    world.reload();
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn a_share_group_has_no_offsets_here_and_is_left_alone() {
    let group_id = "s".to_owned();
    let group = GroupRecord::ShareGroupMetadata(
        ShareGroupMetadataKey {
            group_id: group_id.clone(),
        },
        Some(ShareGroupMetadataValue::default()),
    );
    let member = GroupRecord::ShareGroupMemberMetadata(
        ShareGroupMemberMetadataKey {
            group_id,
            member_id: "m".to_owned(),
        },
        Some(ShareGroupMemberMetadataValue::default()),
    );
    for entries in [vec![entry(&group)], vec![entry(&group), entry(&member)]] {
        let mut world = world(entries.clone());
        assert_eq!(
            world.commit("s", "orders", 0, 5),
            ErrorCode::GROUP_ID_NOT_FOUND
        );
        assert_eq!(world.fetch("s", "orders", 0), -1);
        let answer = world.delete_offsets("s", "orders", &[0]);
        assert_eq!(answer.error, ErrorCode::GROUP_ID_NOT_FOUND);
        let joined = world.join(World::join_request("s", "", subscription(&["orders"])));
        assert_eq!(joined.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        assert_ne!(world.delete_group("s").error, ErrorCode::NONE);
        world.age(Millis::new(u64::from(u32::MAX)));
        world.look_for_old_offsets();
        assert_eq!(world.log.entries.len(), entries.len());
    }
}

#[test]
fn records_of_a_kafka_to_come_are_skipped_and_damage_is_not() {
    let unknown = Entry::Record {
        key: bytes::Bytes::from_static(b"\0\x63whatever"),
        value: Some(bytes::Bytes::from_static(b"\0\0")),
        producer_id: ProducerId::NONE,
    };
    let group_id = "streams".to_owned();
    let streams = GroupRecord::StreamsGroupMetadata(
        StreamsGroupMetadataKey { group_id },
        Some(StreamsGroupMetadataValue::default()),
    );
    let mut world = world(vec![unknown, entry(&streams)]);
    assert_eq!(world.list(), ["streams"]);
    let at = highwater_coordinator::ReplayedAt {
        offset: highwater_types::Offset::new(7),
        producer_id: ProducerId::NONE,
        producer_epoch: highwater_types::ProducerEpoch::NONE,
        transactional: false,
        timestamp: highwater_types::WallMs::NONE,
    };
    for (key, value) in [
        (&b""[..], None),
        (&b"\0"[..], None),
        (&b"\0\x01\0\x05g"[..], None),
        (&b"\0\x02\0\x01g"[..], Some(&b"\0\x09"[..])),
        (&b"\0\x02\0\x01g"[..], Some(&b"\0\x03"[..])),
    ] {
        let error = world.coordinator.replay(at, key, value);
        assert_eq!(error.expect_err("damaged").offset.raw(), 7);
    }
    assert_eq!(world.list(), ["streams"]);
}
