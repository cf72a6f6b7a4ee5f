//! Requests that no honest client sends.

use bytes::Bytes;
use highwater_protocol::ApiKey;
use highwater_protocol::messages::{
    DescribeGroupsRequest, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, OffsetCommitResponse,
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest, OffsetFetchResponse,
    SyncGroupRequest, SyncGroupResponse,
    join_group_request::JoinGroupRequestProtocol,
    offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic},
};
use highwater_types::ErrorCode;

use crate::member::{
    self, COMMIT, JOIN, Member, ask, ask_on, codes, commit, offsets_of, send, world,
};

fn protocol(name: &str, metadata: &[u8]) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol {
        name: name.to_owned(),
        metadata: Bytes::copy_from_slice(metadata),
    }
}

#[test]
fn b_45_joins_without_a_group_protocols_or_sense() {
    let mut world = world(1, 1);
    let good = member::join_request("g", "");
    let cases = [
        (
            JoinGroupRequest {
                group_id: String::new(),
                ..good.clone()
            },
            ErrorCode::INVALID_GROUP_ID,
        ),
        (
            JoinGroupRequest {
                protocols: Vec::new(),
                ..good.clone()
            },
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ),
        (
            JoinGroupRequest {
                protocol_type: String::new(),
                ..good.clone()
            },
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ),
        (
            JoinGroupRequest {
                session_timeout_ms: i32::MAX,
                ..good.clone()
            },
            ErrorCode::INVALID_SESSION_TIMEOUT,
        ),
        (
            JoinGroupRequest {
                session_timeout_ms: -1,
                ..good.clone()
            },
            ErrorCode::INVALID_SESSION_TIMEOUT,
        ),
        (
            JoinGroupRequest {
                protocols: vec![protocol("range", &vec![0; 5 << 20])],
                ..good.clone()
            },
            ErrorCode::MESSAGE_TOO_LARGE,
        ),
    ];
    for (request, code) in cases {
        for version in [0, 3, JOIN] {
            let answer: JoinGroupResponse = ask(&mut world, version, request.clone());
            assert_eq!(answer.error_code, code, "v{version}");
            assert_eq!((answer.generation_id, answer.members.len()), (-1, 0));
        }
    }
    // A rebalance that may take 24 days, or less than none, is the members' own business.
    for (group, rebalance_timeout_ms) in [("long", i32::MAX), ("negative", i32::MIN)] {
        let request = JoinGroupRequest {
            rebalance_timeout_ms,
            ..member::join_request(group, "")
        };
        let answer: JoinGroupResponse = ask(&mut world, 3, request);
        assert_eq!(answer.error_code, ErrorCode::NONE);
    }
    world.advance(60_000);
}

#[test]
fn b_45_a_group_without_a_name_has_no_members() {
    let mut world = world(1, 1);
    let invalid = ErrorCode::INVALID_GROUP_ID;
    let answer: SyncGroupResponse = ask(&mut world, 4, SyncGroupRequest::default());
    assert_eq!(answer.error_code, invalid);
    let answer: HeartbeatResponse = ask(&mut world, 4, HeartbeatRequest::default());
    assert_eq!(answer.error_code, invalid);
    let answer: LeaveGroupResponse = ask(&mut world, 5, LeaveGroupRequest::default());
    assert_eq!(answer.error_code, invalid);
    // But it has offsets, for clients of old.
    commit(&mut world, "", &[(0, 5)]);
    assert_eq!(offsets_of(&mut world, ""), Ok(vec![(0, 5)]));
}

/// What members say to each other may be anything: nothing reads past its end.
#[test]
fn b_46_subscriptions_of_no_bytes_and_of_one() {
    let mut world = world(1, 1);
    world.topic("other", 1, &[]);
    let blobs: [&[u8]; 5] = [b"", b"\0", b"\0\x01", b"\0\0\x7f\xff\xff\xff", b"\xff\xff"];
    for (number, blob) in (0..).zip(blobs) {
        let group = format!("g-{number}");
        let conn = world.connect();
        let mut request = member::join_request(&group, "");
        request.protocols = vec![protocol("range", blob)];
        let joined: JoinGroupResponse = ask_on(&mut world, conn, 3, request);
        assert_eq!(joined.error_code, ErrorCode::NONE);
        assert_eq!(joined.members[0].metadata, blob, "handed on as it is");
        let mut member = Member {
            conn,
            group: group.clone(),
            id: joined.member_id,
            generation: joined.generation_id,
        };
        member.send_sync(&mut world, &[]);
        let synced = member.synced(&mut world).expect("the leader's");
        assert_eq!(
            (synced.error_code, synced.assignment.len()),
            (ErrorCode::NONE, 0)
        );
        assert_eq!(member.commit(&mut world, &[(0, 1)]), [ErrorCode::NONE]);
        let delete = OffsetDeleteRequest {
            group_id: group.clone(),
            topics: vec![OffsetDeleteRequestTopic {
                name: "t".to_owned(),
                partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
            }],
        };
        let deleted: OffsetDeleteResponse = ask(&mut world, 0, delete);
        assert!(!deleted.error_code.is_error() || deleted.topics.is_empty());
        world.kill();
        world.start();
        member.conn = world.connect();
        assert_eq!(
            member.heartbeat(&mut world),
            ErrorCode::NONE,
            "it is loaded, too"
        );
    }
}

#[test]
fn texts_of_commits_are_bounded() {
    let mut world = world(1, 1);
    let mut request = member::commit_request("g", "t", &[(0, 5), (1, 5)]);
    request.topics[0].partitions[0].committed_metadata = Some("x".repeat(4_097));
    request.topics[0].partitions[1].committed_metadata = Some("x".repeat(4_096));
    let answer: OffsetCommitResponse = ask(&mut world, COMMIT, request);
    let too_large = ErrorCode::OFFSET_METADATA_TOO_LARGE;
    assert_eq!(codes(&answer), [too_large, ErrorCode::NONE]);
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(1, 5)]));
}

#[test]
fn a_request_of_too_many_groups_closes_its_connection() {
    let mut world = world(1, 1);
    let conn = world.connect();
    let request = DescribeGroupsRequest {
        groups: vec!["some".to_owned(); 100_001],
        ..DescribeGroupsRequest::default()
    };
    send(&mut world, conn, 6, request);
    assert!(world.is_closed(conn));
    assert!(
        world.has_event("DescribeGroups of 100001 groups"),
        "{:?}",
        world.events.last()
    );
    let empty = OffsetFetchRequest::default();
    let answer: OffsetFetchResponse = ask(&mut world, 9, empty);
    assert_eq!(answer.groups, []);
}

/// Cut, long or odd bodies never do more than close their connection.
#[test]
fn bodies_that_are_no_requests() {
    let mut world = world(1, 1);
    let apis = [8_i16, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47];
    for api in apis.map(|raw| ApiKey::from_raw(raw).expect("known")) {
        let (min, max) = api.versions();
        for version in min..=max {
            for body in [&[][..], &[0xff; 9], &[0x7f; 40], &[0; 3], &[0; 200]] {
                let conn = world.connect();
                world.send(conn, api, version, body);
                world.disconnect(conn);
            }
        }
    }
    world.advance(60_000);
    commit(&mut world, "g", &[(0, 1)]);
}
