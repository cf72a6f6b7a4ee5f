//! Requests about groups, and consumers as far as a test needs them.

use bytes::Bytes;
use highwater_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest,
    OffsetFetchResponse, SyncGroupRequest, SyncGroupResponse,
    join_group_request::JoinGroupRequestProtocol,
    leave_group_request::MemberIdentity,
    offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic},
    offset_fetch_request::{
        OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    },
    sync_group_request::SyncGroupRequestAssignment,
};
use highwater_protocol::{Request, Response};
use highwater_types::{ErrorCode, TopicId, Uuid};

use crate::support::World;

/// The newest versions.
pub(crate) const JOIN: i16 = 9;
pub(crate) const SYNC: i16 = 5;
pub(crate) const HEARTBEAT: i16 = 4;
pub(crate) const LEAVE: i16 = 5;
pub(crate) const COMMIT: i16 = 9;
pub(crate) const FETCH: i16 = 9;

pub(crate) const OFFSETS: &str = "__consumer_offsets";

/// A world with `__consumer_offsets` of so many partitions, and a topic `t` of three.
pub(crate) fn world(shards: u16, partitions: i32) -> World {
    world_with(shards, partitions, "group.initial.rebalance.delay.ms=0\n")
}

pub(crate) fn world_with(shards: u16, partitions: i32, properties: &str) -> World {
    let mut world = World::with(shards, 1, properties);
    world.topic(OFFSETS, partitions, &[("cleanup.policy", "compact")]);
    world.topic("t", 3, &[]);
    world
}

/// Sends a request; its answer comes with [`told`].
pub(crate) fn send(world: &mut World, conn: u64, version: i16, request: impl Into<Request>) {
    let request = request.into();
    let body = request.encode(version).expect("fits the version");
    world.send(conn, request.api_key(), version, &body);
}

/// The next answer, if it is there.
pub(crate) fn told<A: Answer>(world: &mut World, conn: u64, version: i16) -> Option<A> {
    // A group whose delay is nothing still gathers until the next tick.
    world.advance(0);
    let body = world.receive(conn, A::API, version)?;
    let response = Response::decode(A::API, version, &body).expect("an answer");
    assert_eq!(response.encode(version), Ok(body), "nothing is left over");
    Some(A::of(response))
}

/// Asks on a connection of its own and expects the answer at once.
pub(crate) fn ask<A: Answer>(world: &mut World, version: i16, request: A::Request) -> A {
    let conn = world.connect();
    let answer = ask_on(world, conn, version, request);
    world.disconnect(conn);
    answer
}

pub(crate) fn ask_on<A: Answer>(
    world: &mut World,
    conn: u64,
    version: i16,
    request: A::Request,
) -> A {
    send(world, conn, version, request);
    told(world, conn, version).expect("an answer at once")
}

/// An answer, and its request.
pub(crate) trait Answer {
    type Request: Into<Request>;
    const API: highwater_protocol::ApiKey;
    fn of(response: Response) -> Self;
}

macro_rules! answers {
    ($($api:ident $request:ident $response:ident;)*) => {$(
        impl Answer for highwater_protocol::messages::$response {
            type Request = highwater_protocol::messages::$request;
            const API: highwater_protocol::ApiKey = highwater_protocol::ApiKey::$api;

            fn of(response: Response) -> Self {
                match response {
                    Response::$api(response) => response,
                    other => panic!("another answer: {other:?}"),
                }
            }
        }
    )*};
}

answers! {
    OffsetCommit OffsetCommitRequest OffsetCommitResponse;
    OffsetFetch OffsetFetchRequest OffsetFetchResponse;
    FindCoordinator FindCoordinatorRequest FindCoordinatorResponse;
    JoinGroup JoinGroupRequest JoinGroupResponse;
    Heartbeat HeartbeatRequest HeartbeatResponse;
    LeaveGroup LeaveGroupRequest LeaveGroupResponse;
    SyncGroup SyncGroupRequest SyncGroupResponse;
    DescribeGroups DescribeGroupsRequest DescribeGroupsResponse;
    ListGroups ListGroupsRequest ListGroupsResponse;
    DeleteGroups DeleteGroupsRequest DeleteGroupsResponse;
    OffsetDelete OffsetDeleteRequest OffsetDeleteResponse;
}

pub(crate) fn join_request(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        member_id: member_id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".to_owned(),
            metadata: Bytes::from_static(b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\0"),
        }],
        ..JoinGroupRequest::default()
    }
}

/// One consumer on a connection of its own.
pub(crate) struct Member {
    pub(crate) conn: u64,
    pub(crate) group: String,
    pub(crate) id: String,
    pub(crate) generation: i32,
}

impl Member {
    /// Gets a member id; the member is not in the group yet.
    pub(crate) fn new(world: &mut World, group: &str) -> Self {
        let conn = world.connect();
        let answer: JoinGroupResponse = ask_on(world, conn, JOIN, join_request(group, ""));
        assert_eq!(answer.error_code, ErrorCode::MEMBER_ID_REQUIRED);
        Self {
            conn,
            group: group.to_owned(),
            id: answer.member_id,
            generation: -1,
        }
    }

    /// The only member of a group, with an assignment.
    pub(crate) fn alone(world: &mut World, group: &str) -> Self {
        let mut member = Self::new(world, group);
        member.send_join(world);
        let joined = member.joined(world).expect("nobody else is waited for");
        assert_eq!(joined.leader, member.id);
        member.send_sync(world, &[&member.id.clone()]);
        let synced = member.synced(world).expect("the leader waits for nobody");
        assert_eq!(synced.error_code, ErrorCode::NONE);
        member
    }

    pub(crate) fn send_join(&self, world: &mut World) {
        send(world, self.conn, JOIN, join_request(&self.group, &self.id));
    }

    pub(crate) fn joined(&mut self, world: &mut World) -> Option<JoinGroupResponse> {
        let answer: JoinGroupResponse = told(world, self.conn, JOIN)?;
        assert_eq!(answer.error_code, ErrorCode::NONE, "{answer:?}");
        self.generation = answer.generation_id;
        Some(answer)
    }

    /// Asks for the assignment; as the leader, with one for each of `members`: its own id.
    pub(crate) fn send_sync(&self, world: &mut World, members: &[&str]) {
        let assignments = members.iter().map(|id| SyncGroupRequestAssignment {
            member_id: (*id).to_owned(),
            assignment: Bytes::copy_from_slice(id.as_bytes()),
        });
        let request = SyncGroupRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("range".to_owned()),
            assignments: assignments.collect(),
            ..SyncGroupRequest::default()
        };
        send(world, self.conn, SYNC, request);
    }

    pub(crate) fn synced(&self, world: &mut World) -> Option<SyncGroupResponse> {
        told(world, self.conn, SYNC)
    }

    pub(crate) fn heartbeat_request(&self) -> HeartbeatRequest {
        HeartbeatRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: None,
        }
    }

    pub(crate) fn heartbeat(&self, world: &mut World) -> ErrorCode {
        let request = self.heartbeat_request();
        let answer: HeartbeatResponse = ask_on(world, self.conn, HEARTBEAT, request);
        answer.error_code
    }

    pub(crate) fn commit(&self, world: &mut World, offsets: &[(i32, i64)]) -> Vec<ErrorCode> {
        let request = self.commit_request(offsets);
        let answer: OffsetCommitResponse = ask_on(world, self.conn, COMMIT, request);
        codes(&answer)
    }

    pub(crate) fn commit_request(&self, offsets: &[(i32, i64)]) -> OffsetCommitRequest {
        OffsetCommitRequest {
            generation_id_or_member_epoch: self.generation,
            member_id: self.id.clone(),
            ..commit_request(&self.group, "t", offsets)
        }
    }

    pub(crate) fn leave(&self, world: &mut World) -> ErrorCode {
        let request = LeaveGroupRequest {
            group_id: self.group.clone(),
            members: vec![MemberIdentity {
                member_id: self.id.clone(),
                ..MemberIdentity::default()
            }],
            ..LeaveGroupRequest::default()
        };
        let answer: LeaveGroupResponse = ask_on(world, self.conn, LEAVE, request);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        answer.members[0].error_code
    }
}

/// A commit by nobody's member.
pub(crate) fn commit_request(
    group: &str,
    topic: &str,
    offsets: &[(i32, i64)],
) -> OffsetCommitRequest {
    let partitions = offsets
        .iter()
        .map(|(index, offset)| OffsetCommitRequestPartition {
            partition_index: *index,
            committed_offset: *offset,
            committed_leader_epoch: 7,
            committed_metadata: Some("note".to_owned()),
        });
    OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.to_owned(),
            topic_id: Uuid::ZERO,
            partitions: partitions.collect(),
        }],
        ..OffsetCommitRequest::default()
    }
}

pub(crate) fn commit(world: &mut World, group: &str, offsets: &[(i32, i64)]) {
    let request = commit_request(group, "t", offsets);
    let answer: OffsetCommitResponse = ask(world, COMMIT, request);
    assert!(codes(&answer).iter().all(|it| !it.is_error()), "{answer:?}");
}

pub(crate) fn codes(answer: &OffsetCommitResponse) -> Vec<ErrorCode> {
    let topics = answer.topics.iter();
    topics
        .flat_map(|topic| topic.partitions.iter().map(|it| it.error_code))
        .collect()
}

/// A fetch of one group's offsets in `t`, or with `None` of all, at any version.
pub(crate) fn fetch_request(
    version: i16,
    group: &str,
    partitions: Option<&[i32]>,
    topic_id: TopicId,
) -> OffsetFetchRequest {
    if version < 8 {
        let topics = partitions.map(|partitions| {
            vec![OffsetFetchRequestTopic {
                name: "t".to_owned(),
                partition_indexes: partitions.to_vec(),
            }]
        });
        return OffsetFetchRequest {
            group_id: group.to_owned(),
            topics,
            ..OffsetFetchRequest::default()
        };
    }
    let topics = partitions.map(|partitions| {
        vec![OffsetFetchRequestTopics {
            name: "t".to_owned(),
            topic_id: topic_id.uuid(),
            partition_indexes: partitions.to_vec(),
        }]
    });
    OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics,
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    }
}

/// What is fetched, in one form for all versions: the error of the group, and of each partition
/// number, offset, epoch, note and error.
pub(crate) type Fetched = (ErrorCode, Vec<(i32, i64, i32, String, ErrorCode)>);

pub(crate) fn fetched(answer: OffsetFetchResponse) -> Fetched {
    let old = answer.topics.into_iter().flat_map(|it| it.partitions);
    let mut rows: Vec<_> = old
        .map(|it| {
            let note = it.metadata.unwrap_or_default();
            let (index, offset) = (it.partition_index, it.committed_offset);
            (
                index,
                offset,
                it.committed_leader_epoch,
                note,
                it.error_code,
            )
        })
        .collect();
    let mut error = answer.error_code;
    for group in answer.groups {
        error = group.error_code;
        for it in group.topics.into_iter().flat_map(|it| it.partitions) {
            let note = it.metadata.unwrap_or_default();
            let (index, offset) = (it.partition_index, it.committed_offset);
            rows.push((
                index,
                offset,
                it.committed_leader_epoch,
                note,
                it.error_code,
            ));
        }
    }
    (error, rows)
}

/// The committed offsets of a group in `t`, by partition.
pub(crate) fn offsets_of(world: &mut World, group: &str) -> Result<Vec<(i32, i64)>, ErrorCode> {
    let request = fetch_request(FETCH, group, None, TopicId::default());
    let answer: OffsetFetchResponse = ask(world, FETCH, request);
    let (error, rows) = fetched(answer);
    if error.is_error() {
        return Err(error);
    }
    Ok(rows.into_iter().map(|row| (row.0, row.1)).collect())
}
