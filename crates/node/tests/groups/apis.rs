//! Every API at every version, good and refused.

use highwater_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse, OffsetCommitResponse,
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchResponse, SyncGroupRequest,
    SyncGroupResponse,
    leave_group_request::MemberIdentity,
    offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic},
};
use highwater_types::{ErrorCode, TopicId};

use crate::member::{
    self, JOIN, Member, ask, ask_on, codes, commit, fetch_request, fetched, offsets_of, send, told,
    world,
};
use crate::support::World;

/// Joins at a version, with two requests where the version wants a member id first.
fn join_at(world: &mut World, conn: u64, version: i16, group: &str) -> JoinGroupResponse {
    let request = |member_id: &str| JoinGroupRequest {
        rebalance_timeout_ms: if version >= 1 { 20_000 } else { -1 },
        ..member::join_request(group, member_id)
    };
    let answer: JoinGroupResponse = ask_on(world, conn, version, request(""));
    if version < 4 {
        return answer;
    }
    assert_eq!(
        answer.error_code,
        ErrorCode::MEMBER_ID_REQUIRED,
        "v{version}"
    );
    assert_eq!(answer.generation_id, -1);
    ask_on(world, conn, version, request(&answer.member_id))
}

#[test]
fn trap_04_c_12_every_version_of_join_group_joins() {
    let mut world = world(1, 1);
    for version in 0..=9 {
        let group = format!("join-{version}");
        let conn = world.connect();
        let answer = join_at(&mut world, conn, version, &group);
        assert_eq!(answer.error_code, ErrorCode::NONE, "v{version}");
        assert_eq!((answer.generation_id, answer.members.len()), (1, 1));
        assert_eq!(answer.leader, answer.member_id);
        assert!(answer.member_id.starts_with("test-"), "{answer:?}");
        assert_eq!(answer.protocol_name.as_deref(), Some("range"));
        let protocol_type = (version >= 7).then_some("consumer");
        assert_eq!(answer.protocol_type.as_deref(), protocol_type);
        // Refused: an unknown member, a wrong session timeout.
        let unknown = member::join_request(&group, "nobody");
        let unknown: JoinGroupResponse = ask(&mut world, version, unknown);
        assert_eq!(
            unknown.error_code,
            ErrorCode::UNKNOWN_MEMBER_ID,
            "v{version}"
        );
        let name = unknown.protocol_name.as_deref();
        assert_eq!(name, (version < 7).then_some(""), "v{version}");
        let short = JoinGroupRequest {
            session_timeout_ms: 5_999,
            ..member::join_request(&group, "")
        };
        let short: JoinGroupResponse = ask(&mut world, version, short);
        assert_eq!(short.error_code, ErrorCode::INVALID_SESSION_TIMEOUT);
    }
}

/// The old forms of group requests work beside a member of the newest.
#[test]
fn c_12_members_of_old_and_new_versions_share_a_group() {
    let mut world = world(1, 1);
    let mut newest = Member::alone(&mut world, "mixed");
    let old = world.connect();
    let request = JoinGroupRequest {
        rebalance_timeout_ms: -1,
        ..member::join_request("mixed", "")
    };
    send(&mut world, old, 0, request);
    assert_eq!(told::<JoinGroupResponse>(&mut world, old, 0), None);
    assert_eq!(
        newest.heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    newest.send_join(&mut world);
    let of_leader = newest.joined(&mut world).expect("all are here");
    let of_old: JoinGroupResponse = told(&mut world, old, 0).expect("all are here");
    assert_eq!((of_leader.members.len(), of_old.members.len()), (2, 0));
    assert_eq!(of_old.generation_id, of_leader.generation_id);
    newest.send_sync(&mut world, &[&newest.id, &of_old.member_id]);
    let request = SyncGroupRequest {
        group_id: "mixed".to_owned(),
        generation_id: of_old.generation_id,
        member_id: of_old.member_id.clone(),
        ..SyncGroupRequest::default()
    };
    let synced: SyncGroupResponse = ask_on(&mut world, old, 0, request);
    assert_eq!(synced.error_code, ErrorCode::NONE);
    assert_eq!(synced.assignment, of_old.member_id.as_bytes());
}

#[test]
fn every_version_of_sync_heartbeat_and_leave() {
    let mut world = world(1, 1);
    for version in 0..=5 {
        let group = format!("g-{version}");
        let conn = world.connect();
        let joined = join_at(&mut world, conn, 3, &group);
        let sync = |generation_id| SyncGroupRequest {
            group_id: group.clone(),
            generation_id,
            member_id: joined.member_id.clone(),
            protocol_type: (version >= 5).then(|| "consumer".to_owned()),
            protocol_name: (version >= 5).then(|| "range".to_owned()),
            ..SyncGroupRequest::default()
        };
        let synced: SyncGroupResponse = ask(&mut world, version, sync(1));
        assert_eq!(synced.error_code, ErrorCode::NONE, "v{version}");
        let protocol = (version >= 5).then_some("range");
        assert_eq!(synced.protocol_name.as_deref(), protocol, "v{version}");
        let unnamed = SyncGroupRequest {
            protocol_name: None,
            ..sync(1)
        };
        let unnamed: SyncGroupResponse = ask(&mut world, version, unnamed);
        let code = if version >= 5 {
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL
        } else {
            ErrorCode::NONE
        };
        assert_eq!(unnamed.error_code, code, "v{version}");
        let stale: SyncGroupResponse = ask(&mut world, version, sync(0));
        assert_eq!(
            stale.error_code,
            ErrorCode::ILLEGAL_GENERATION,
            "v{version}"
        );
        let heartbeat = |generation_id, member_id: &str| HeartbeatRequest {
            group_id: group.clone(),
            generation_id,
            member_id: member_id.to_owned(),
            group_instance_id: None,
        };
        let id = &joined.member_id;
        let expected = [
            (1, id.as_str(), ErrorCode::NONE),
            (0, id.as_str(), ErrorCode::ILLEGAL_GENERATION),
            (1, "nobody", ErrorCode::UNKNOWN_MEMBER_ID),
        ];
        for (generation, id, code) in expected {
            let request = heartbeat(generation, id);
            let answer: HeartbeatResponse = ask(&mut world, version.min(4), request);
            assert_eq!(answer.error_code, code, "v{version}");
        }
        for code in [ErrorCode::NONE, ErrorCode::UNKNOWN_MEMBER_ID] {
            let left = leave_at(&mut world, version, &group, id);
            assert_eq!(left, code, "v{version}");
        }
    }
}

fn leave_at(world: &mut World, version: i16, group: &str, id: &str) -> ErrorCode {
    let mut request = LeaveGroupRequest {
        group_id: group.to_owned(),
        ..LeaveGroupRequest::default()
    };
    if version < 3 {
        request.member_id = id.to_owned();
        let answer: LeaveGroupResponse = ask(world, version, request);
        return answer.error_code;
    }
    request.members = vec![MemberIdentity {
        member_id: id.to_owned(),
        ..MemberIdentity::default()
    }];
    let answer: LeaveGroupResponse = ask(world, version, request);
    assert_eq!(
        (answer.error_code, answer.members.len()),
        (ErrorCode::NONE, 1)
    );
    answer.members[0].error_code
}

/// Static members are taken out by their instance ids, many at once.
#[test]
fn trap_29_static_members_leave_in_a_batch_by_instance_id() {
    let mut world = world(1, 1);
    let conn = world.connect();
    let request = JoinGroupRequest {
        group_instance_id: Some("i-1".to_owned()),
        ..member::join_request("static", "")
    };
    let joined: JoinGroupResponse = ask_on(&mut world, conn, JOIN, request.clone());
    assert_eq!(joined.error_code, ErrorCode::NONE, "needs no id first");
    // The same instance comes again: it has another id, and the old one is fenced.
    let again: JoinGroupResponse = ask(&mut world, JOIN, request);
    assert_eq!(again.error_code, ErrorCode::NONE);
    assert_ne!(again.member_id, joined.member_id);
    let old = HeartbeatRequest {
        group_id: "static".to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id,
        group_instance_id: Some("i-1".to_owned()),
    };
    let old: HeartbeatResponse = ask(&mut world, 4, old);
    assert_eq!(old.error_code, ErrorCode::FENCED_INSTANCE_ID);
    let members = ["i-1", "i-2"].map(|id| MemberIdentity {
        group_instance_id: Some(id.to_owned()),
        ..MemberIdentity::default()
    });
    let request = LeaveGroupRequest {
        group_id: "static".to_owned(),
        members: members.to_vec(),
        ..LeaveGroupRequest::default()
    };
    let answer: LeaveGroupResponse = ask(&mut world, 3, request);
    let codes: Vec<_> = answer.members.iter().map(|it| it.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::UNKNOWN_MEMBER_ID]);
}

#[test]
fn trap_25_every_version_of_commit_and_fetch_keeps_offset_epoch_and_note() {
    let mut world = world(1, 1);
    let id = world.id("t", 0).topic_id;
    for version in 2..=10_i16 {
        let group = format!("g-{version}");
        let mut request = member::commit_request(&group, "t", &[(0, 5), (2, 6)]);
        request.topics[0].topic_id = id.uuid();
        let answer: OffsetCommitResponse = ask(&mut world, version, request);
        assert_eq!(codes(&answer), [ErrorCode::NONE; 2], "v{version}");
        for fetch in 1..=10_i16 {
            let request = fetch_request(fetch, &group, Some(&[0, 1, 2]), id);
            let answer: OffsetFetchResponse = ask(&mut world, fetch, request);
            let committed = if version >= 6 && fetch >= 5 { 7 } else { -1 };
            let note = "note".to_owned();
            let none = ErrorCode::NONE;
            let rows = vec![
                (0, 5, committed, note.clone(), none),
                (1, -1, -1, String::new(), none),
                (2, 6, committed, note, none),
            ];
            assert_eq!(fetched(answer), (none, rows), "v{version}, v{fetch}");
        }
    }
}

#[test]
fn commits_to_what_is_not_there_are_refused_row_by_row() {
    let mut world = world(1, 1);
    let id = world.id("t", 0).topic_id;
    let mut request = member::commit_request("g", "t", &[(0, 5), (9, 6)]);
    let gone = member::commit_request("g", "gone", &[(0, 5)]).topics;
    request.topics.extend(gone);
    let answer: OffsetCommitResponse = ask(&mut world, 9, request.clone());
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let rows: Vec<_> = answer
        .topics
        .iter()
        .flat_map(|topic| {
            let rows = topic.partitions.iter();
            rows.map(|it| (topic.name.as_str(), it.partition_index, it.error_code))
        })
        .collect();
    // As in Kafka, what is refused comes first, and a topic has one place.
    let expected = [
        ("t", 9, unknown),
        ("t", 0, ErrorCode::NONE),
        ("gone", 0, unknown),
    ];
    assert_eq!(rows, expected);
    request.topics[0].topic_id = id.uuid();
    request.topics[1].topic_id = highwater_types::Uuid::from_u128(77);
    let answer: OffsetCommitResponse = ask(&mut world, 10, request);
    let expected = [unknown, ErrorCode::NONE, ErrorCode::UNKNOWN_TOPIC_ID];
    assert_eq!(codes(&answer), expected);
}

#[test]
fn c_11_commits_at_version_1_close_their_connection() {
    let mut world = world(1, 1);
    let conn = world.connect();
    world.send(conn, highwater_protocol::ApiKey::OffsetCommit, 1, &[0; 32]);
    assert!(world.is_closed(conn));
}

#[test]
fn trap_26_c_45_null_topics_are_all_offsets_and_none_are_none() {
    let mut world = world(1, 1);
    let id = world.id("t", 0).topic_id;
    commit(&mut world, "g", &[(0, 5), (1, 6)]);
    let ask = |world: &mut World, version, partitions: Option<&[i32]>| {
        let mut request = fetch_request(version, "g", partitions, id);
        if partitions.is_some() {
            if let Some(topics) = request.topics.as_mut() {
                topics.clear();
            }
            if let Some(topics) = request.groups.first_mut().and_then(|it| it.topics.as_mut()) {
                topics.clear();
            }
        }
        let (error, rows) = fetched(ask(world, version, request));
        assert_eq!(error, ErrorCode::NONE);
        rows.into_iter().map(|it| (it.0, it.1)).collect::<Vec<_>>()
    };
    for version in 1..=10_i16 {
        assert_eq!(ask(&mut world, version, Some(&[])), [], "v{version}");
        if version >= 2 {
            assert_eq!(
                ask(&mut world, version, None),
                [(0, 5), (1, 6)],
                "v{version}"
            );
        }
    }
}

#[test]
fn offsets_of_unknown_groups_topics_and_names_are_none() {
    let mut world = world(1, 1);
    let mut request = fetch_request(9, "nobody", Some(&[0]), TopicId::default());
    let topics = request.groups[0].topics.as_mut().expect("topics");
    let mut odd = topics[0].clone();
    odd.name = "no topic's name!".to_owned();
    topics.insert(0, odd);
    let answer: OffsetFetchResponse = ask(&mut world, 9, request);
    let group = &answer.groups[0];
    assert_eq!(group.topics[0].name, "no topic's name!");
    assert_eq!(group.topics[1].name, "t");
    let row = (0, -1, -1, String::new(), ErrorCode::NONE);
    assert_eq!(fetched(answer), (ErrorCode::NONE, vec![row.clone(), row]));
    let request = fetch_request(10, "nobody", Some(&[0]), TopicId::default());
    let (error, rows) = fetched(ask(&mut world, 10, request));
    assert_eq!(error, ErrorCode::NONE);
    assert_eq!(rows[0].4, ErrorCode::UNKNOWN_TOPIC_ID);
}

fn describe(
    world: &mut World,
    version: i16,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    ask(world, version, request)
}

#[test]
fn trap_30_every_version_of_describe_groups() {
    let mut world = world(1, 1);
    let member = Member::alone(&mut world, "g");
    for version in 0..=6 {
        let request = DescribeGroupsRequest {
            groups: vec!["g".to_owned(), "nobody".to_owned()],
            include_authorized_operations: version >= 3,
            ..DescribeGroupsRequest::default()
        };
        let answer = describe(&mut world, version, request);
        let [group, nobody] = answer.groups.as_slice() else {
            panic!("{answer:?}")
        };
        assert_eq!(group.error_code, ErrorCode::NONE);
        let said = (group.group_state.as_str(), group.protocol_data.as_str());
        assert_eq!(said, ("Stable", "range"), "v{version}");
        assert_eq!(group.protocol_type, "consumer");
        let found = &group.members[0];
        assert_eq!(found.member_id, member.id);
        assert_eq!(
            (found.client_id.as_str(), found.client_host.as_str()),
            ("test", "/127.0.0.1")
        );
        assert_eq!(found.member_assignment, member.id.as_bytes());
        assert!(!found.member_metadata.is_empty());
        let operations = if version >= 3 { 3400 } else { i32::MIN };
        assert_eq!(group.authorized_operations, operations, "v{version}");
        assert_eq!(nobody.group_state, "Dead");
        let (code, text) = if version >= 6 {
            (
                ErrorCode::GROUP_ID_NOT_FOUND,
                Some("Group nobody not found."),
            )
        } else {
            (ErrorCode::NONE, None)
        };
        assert_eq!(
            (nobody.error_code, nobody.error_message.as_deref()),
            (code, text)
        );
    }
}

#[test]
fn only_who_asks_is_told_why_a_group_rebalances_and_for_whom_it_waits() {
    let mut world = world(1, 1);
    let first = Member::alone(&mut world, "g");
    let second = Member::new(&mut world, "g");
    second.send_join(&mut world);
    let request = |include_rebalances| DescribeGroupsRequest {
        groups: vec!["g".to_owned()],
        include_rebalances,
        ..DescribeGroupsRequest::default()
    };
    let quiet = describe(&mut world, 6, request(false));
    assert_eq!(quiet.groups[0].rebalances, Default::default());
    let told = describe(&mut world, 6, request(true));
    let rebalances = &told.groups[0].rebalances;
    let waits: Vec<_> = rebalances
        .waits_for
        .iter()
        .map(|it| &it.member_id)
        .collect();
    assert_eq!(waits, [&first.id]);
    assert!(rebalances.waits_for[0].left_ms > 0);
    let last = rebalances
        .happenings
        .iter()
        .rfind(|it| it.what == "rebalance began");
    let last = last.expect("a rebalance");
    assert_eq!(last.member_id, second.id, "{last:?}");
    assert!(last.text.contains(&second.id), "{last:?}");
    assert_eq!(last.at_ms, world.now.wall.raw());
}

#[test]
fn every_version_of_list_groups_with_its_filters() {
    let mut world = world(1, 1);
    let _stable = Member::alone(&mut world, "stable");
    commit(&mut world, "empty", &[(0, 1)]);
    for version in 0..=5_i16 {
        let answer: ListGroupsResponse = ask(&mut world, version, ListGroupsRequest::default());
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let groups = answer.groups.iter();
        let groups: Vec<_> = groups
            .map(|it| {
                (
                    it.group_id.as_str(),
                    it.group_state.as_str(),
                    it.group_type.as_str(),
                )
            })
            .collect();
        let state = |text| if version >= 4 { text } else { "" };
        let kind = if version >= 5 { "classic" } else { "" };
        let expected = [
            ("empty", state("Empty"), kind),
            ("stable", state("Stable"), kind),
        ];
        assert_eq!(groups, expected, "v{version}");
    }
    let filtered = |world: &mut World, states: &[&str], types: &[&str]| {
        let text = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        let request = ListGroupsRequest {
            states_filter: text(states),
            types_filter: text(types),
        };
        let answer: ListGroupsResponse = ask(world, 5, request);
        let groups = answer.groups.into_iter();
        groups.map(|it| it.group_id).collect::<Vec<_>>()
    };
    assert_eq!(filtered(&mut world, &["empty"], &[]), ["empty"]);
    assert_eq!(
        filtered(&mut world, &["Stable", "Empty"], &["Classic"]).len(),
        2
    );
    assert_eq!(filtered(&mut world, &["Dead"], &[]), [""; 0]);
    assert_eq!(filtered(&mut world, &[], &["consumer"]), [""; 0]);
}

#[test]
fn trap_28_every_version_of_delete_groups_and_the_deleted_stay_deleted() {
    let mut world = world(1, 1);
    for version in 0..=3 {
        let gone = format!("gone-{version}");
        commit(&mut world, &gone, &[(0, 1)]);
        let member = Member::alone(&mut world, &format!("live-{version}"));
        let names = [
            gone.as_str(),
            "nobody",
            member.group.as_str(),
            gone.as_str(),
        ];
        let request = DeleteGroupsRequest {
            groups_names: names.map(str::to_owned).to_vec(),
        };
        let answer: DeleteGroupsResponse = ask(&mut world, version, request);
        let results = answer.results.iter();
        let results: Vec<_> = results
            .map(|it| (it.group_id.as_str(), it.error_code))
            .collect();
        let expected = [
            (gone.as_str(), ErrorCode::NONE),
            ("nobody", ErrorCode::GROUP_ID_NOT_FOUND),
            (member.group.as_str(), ErrorCode::NON_EMPTY_GROUP),
        ];
        assert_eq!(results, expected, "v{version}");
    }
    world.stop();
    world.start();
    let answer: ListGroupsResponse = ask(&mut world, 5, ListGroupsRequest::default());
    assert!(
        answer
            .groups
            .iter()
            .all(|it| it.group_id.starts_with("live-"))
    );
    assert_eq!(offsets_of(&mut world, "gone-0"), Ok(Vec::new()));
}

#[test]
fn trap_27_offsets_of_subscribed_topics_are_not_deleted_others_are() {
    let mut world = world(1, 1);
    world.topic("other", 1, &[]);
    let member = Member::alone(&mut world, "g");
    member.commit(&mut world, &[(0, 1)]);
    let other = highwater_protocol::messages::OffsetCommitRequest {
        generation_id_or_member_epoch: member.generation,
        member_id: member.id.clone(),
        ..member::commit_request("g", "other", &[(0, 4)])
    };
    let _: OffsetCommitResponse = ask(&mut world, 9, other);
    let delete = |world: &mut World, group: &str| {
        let topic = |name: &str, partitions: &[i32]| OffsetDeleteRequestTopic {
            name: name.to_owned(),
            partitions: partitions
                .iter()
                .map(|it| OffsetDeleteRequestPartition {
                    partition_index: *it,
                })
                .collect(),
        };
        let request = OffsetDeleteRequest {
            group_id: group.to_owned(),
            topics: vec![
                topic("t", &[0, 9]),
                topic("other", &[0]),
                topic("gone", &[0]),
            ],
        };
        let answer: OffsetDeleteResponse = ask(world, 0, request);
        let rows = answer.topics.iter().flat_map(|topic| {
            let rows = topic.partitions.iter();
            rows.map(|it| (topic.name.clone(), it.partition_index, it.error_code))
        });
        (answer.error_code, rows.collect::<Vec<_>>())
    };
    let row = |name: &str, partition, code| (name.to_owned(), partition, code);
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    let rows = |code| {
        vec![
            row("t", 9, unknown),
            row("t", 0, code),
            row("gone", 0, unknown),
            row("other", 0, ErrorCode::NONE),
        ]
    };
    assert_eq!(delete(&mut world, "g"), (ErrorCode::NONE, rows(subscribed)));
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 1)]));
    assert_eq!(member.leave(&mut world), ErrorCode::NONE);
    assert_eq!(
        delete(&mut world, "g"),
        (ErrorCode::NONE, rows(ErrorCode::NONE))
    );
    assert_eq!(
        delete(&mut world, "nobody").0,
        ErrorCode::GROUP_ID_NOT_FOUND
    );
    assert_eq!(delete(&mut world, "").0, ErrorCode::INVALID_GROUP_ID);
}
