//! Many groups over many partitions and shards: every one has one coordinator, and requests about
//! several are taken apart and joined.

use std::collections::BTreeSet;

use highwater_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    JoinGroupResponse, ListGroupsRequest, ListGroupsResponse, OffsetFetchRequest,
    OffsetFetchResponse, offset_fetch_request::OffsetFetchRequestGroup,
};
use highwater_types::{ErrorCode, NodeId};

use crate::member::{self, FETCH, JOIN, Member, OFFSETS, ask, commit, offsets_of, told, world};
use crate::support::World;

fn names(world: &mut World) -> BTreeSet<String> {
    let answer: ListGroupsResponse = ask(world, 5, ListGroupsRequest::default());
    assert_eq!(answer.error_code, ErrorCode::NONE);
    let count = answer.groups.len();
    let names: BTreeSet<_> = answer.groups.into_iter().map(|it| it.group_id).collect();
    assert_eq!(names.len(), count, "each group once");
    names
}

#[test]
fn groups_are_served_from_every_shard() {
    for shards in 1..=3 {
        let mut world = world(shards, 8);
        let groups: Vec<String> = (0..20).map(|number| format!("group-{number}")).collect();
        let members: Vec<_> = groups
            .iter()
            .map(|it| Member::alone(&mut world, it))
            .collect();
        for (member, offset) in members.iter().zip(0..) {
            assert_eq!(member.commit(&mut world, &[(0, offset)]), [ErrorCode::NONE]);
        }
        let used = (0..8).filter(|number| world.offsets(OFFSETS, *number)[3] > 0);
        assert!(used.count() >= 6, "groups are spread");
        assert_eq!(names(&mut world), groups.iter().cloned().collect());
        // Whatever shard the connection is on: connections take turns.
        for (member, offset) in members.iter().zip(0..) {
            assert_eq!(offsets_of(&mut world, &member.group), Ok(vec![(0, offset)]));
            assert_eq!(member.heartbeat(&mut world), ErrorCode::NONE);
        }
        world.kill();
        world.start();
        assert_eq!(names(&mut world), groups.iter().cloned().collect());
        for (group, offset) in groups.iter().zip(0..) {
            assert_eq!(offsets_of(&mut world, group), Ok(vec![(0, offset)]));
        }
    }
}

#[test]
fn requests_about_several_groups_are_answered_in_their_order() {
    for shards in 1..=3 {
        let mut world = world(shards, 8);
        let groups: Vec<String> = (0..20).map(|number| format!("g{number}")).collect();
        for (group, offset) in groups.iter().zip(0..) {
            commit(&mut world, group, &[(1, offset)]);
        }
        let request = OffsetFetchRequest {
            groups: groups
                .iter()
                .map(|group_id| OffsetFetchRequestGroup {
                    group_id: group_id.clone(),
                    topics: None,
                    ..OffsetFetchRequestGroup::default()
                })
                .collect(),
            ..OffsetFetchRequest::default()
        };
        let answer: OffsetFetchResponse = ask(&mut world, FETCH, request);
        let offsets = answer.groups.iter().map(|group| {
            let partition = &group.topics[0].partitions[0];
            (group.group_id.clone(), partition.committed_offset)
        });
        let expected = groups.iter().cloned().zip(0..);
        assert_eq!(offsets.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        let request = DescribeGroupsRequest {
            groups: groups.clone(),
            ..DescribeGroupsRequest::default()
        };
        let answer: DescribeGroupsResponse = ask(&mut world, 6, request);
        let described = answer.groups.iter().map(|it| it.group_id.clone());
        assert_eq!(described.collect::<Vec<_>>(), groups);
        let request = DeleteGroupsRequest {
            groups_names: groups.iter().rev().cloned().collect(),
        };
        let answer: DeleteGroupsResponse = ask(&mut world, 3, request);
        let deleted = answer
            .results
            .iter()
            .map(|it| (it.group_id.clone(), it.error_code));
        let expected = groups.iter().rev().cloned().map(|it| (it, ErrorCode::NONE));
        assert_eq!(deleted.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert_eq!(names(&mut world), BTreeSet::new());
    }
}

/// Of several groups some are coordinated elsewhere: each is answered for itself.
#[test]
fn groups_of_other_brokers_are_refused_one_by_one() {
    let mut world = world(2, 8);
    let groups: Vec<String> = (0..20).map(|number| format!("g{number}")).collect();
    for group in &groups {
        commit(&mut world, group, &[(1, 1)]);
    }
    let all = names(&mut world);
    let offsets = world.id(OFFSETS, 0).topic_id;
    world.change(offsets, 3, |it| {
        it.leader = NodeId::new(2);
        it.leader_epoch = it.leader_epoch.next();
    });
    let left = names(&mut world);
    assert!(left.len() < all.len() && !left.is_empty());
    let request = DescribeGroupsRequest {
        groups,
        ..DescribeGroupsRequest::default()
    };
    let answer: DescribeGroupsResponse = ask(&mut world, 6, request);
    for group in answer.groups {
        let expected = if left.contains(&group.group_id) {
            ErrorCode::NONE
        } else {
            ErrorCode::NOT_COORDINATOR
        };
        assert_eq!(group.error_code, expected, "{group:?}");
    }
}

/// As in Kafka the spread stays as it was when the node began: groups keep their past.
#[test]
fn partitions_that_are_added_move_no_group() {
    let mut world = world(1, 2);
    let groups: Vec<String> = (0..20).map(|number| format!("g{number}")).collect();
    for group in &groups {
        commit(&mut world, group, &[(1, 1)]);
    }
    let offsets = world.id(OFFSETS, 0).topic_id;
    world.add_partition(offsets);
    for group in &groups {
        assert_eq!(offsets_of(&mut world, group), Ok(vec![(1, 1)]));
        commit(&mut world, group, &[(1, 2)]);
    }
    assert_eq!(world.offsets(OFFSETS, 2)[3], 0);
}

#[test]
fn nobody_coordinates_before_there_is_an_offsets_topic() {
    let mut world = World::with(2, 1, "");
    world.topic("t", 3, &[]);
    assert_eq!(offsets_of(&mut world, "g"), Err(ErrorCode::NOT_COORDINATOR));
    assert_eq!(names(&mut world), BTreeSet::new());
    let request = member::commit_request("g", "t", &[(0, 1)]);
    let answer = ask(&mut world, member::COMMIT, request);
    assert_eq!(member::codes(&answer), [ErrorCode::NOT_COORDINATOR]);
}

/// A partition of the offsets topic is led by another broker, in a new epoch.
fn lead(world: &mut World, partition: i32, leader: i32) {
    let offsets = world.id(OFFSETS, partition).topic_id;
    world.change(offsets, partition, |it| {
        it.leader = NodeId::new(leader);
        it.leader_epoch = it.leader_epoch.next();
    });
}

#[test]
fn c_51_a_broker_lists_only_what_it_leads() {
    for shards in 1..=3 {
        let mut world = world(shards, 8);
        let groups: Vec<String> = (0..20).map(|number| format!("g{number}")).collect();
        for group in &groups {
            commit(&mut world, group, &[(0, 1)]);
        }
        let all = names(&mut world);
        (0..4).for_each(|partition| lead(&mut world, partition, 2));
        let here = names(&mut world);
        assert!(!here.is_empty() && here.len() < all.len(), "{here:?}");
        for group in &groups {
            let served = offsets_of(&mut world, group);
            let expected = if here.contains(group) {
                Ok(vec![(0, 1)])
            } else {
                Err(ErrorCode::NOT_COORDINATOR)
            };
            assert_eq!(served, expected, "{group}");
        }
        (0..4).for_each(|partition| lead(&mut world, partition, 1));
        (4..8).for_each(|partition| lead(&mut world, partition, 2));
        let others: BTreeSet<_> = all.difference(&here).cloned().collect();
        assert_eq!(names(&mut world), others, "each group is with one broker");
    }
}

#[test]
fn c_47_a_coordinator_whose_leadership_flaps_serves_in_the_end() {
    for shards in 1..=2 {
        let mut world = world(shards, 4);
        let groups: Vec<String> = (0..20).map(|number| format!("g{number}")).collect();
        for (group, offset) in groups.iter().zip(0..) {
            commit(&mut world, group, &[(0, offset)]);
        }
        let mut waiting = Vec::new();
        for flap in 0..100 {
            let group = &groups[flap % groups.len()];
            let member = Member::new(&mut world, group);
            member.send_join(&mut world);
            waiting.push(member);
            let partition = i32::try_from(flap % 4).expect("small");
            lead(&mut world, partition, 2);
            lead(&mut world, partition, 1);
        }
        // Whoever has joined meanwhile is forgotten with the leadership.
        for partition in 0..4 {
            lead(&mut world, partition, 2);
            lead(&mut world, partition, 1);
        }
        for (group, offset) in groups.iter().zip(0..) {
            assert_eq!(offsets_of(&mut world, group), Ok(vec![(0, offset)]));
            let member = Member::alone(&mut world, group);
            assert_eq!(member.heartbeat(&mut world), ErrorCode::NONE);
        }
        // Nobody is left without an answer.
        for member in waiting {
            let answer: Option<JoinGroupResponse> = told(&mut world, member.conn, JOIN);
            assert!(answer.is_some(), "{}", member.group);
        }
    }
}
