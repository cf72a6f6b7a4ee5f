//! Answers wait for the high watermark; requests wait for others; nothing is answered out of order
//! or twice.

use highwater_protocol::messages::{
    HeartbeatResponse, JoinGroupResponse, OffsetCommitResponse, OffsetFetchResponse,
    SyncGroupResponse,
};
use highwater_types::{ErrorCode, Millis, NodeId, TopicId};

use crate::member::{
    self, COMMIT, FETCH, HEARTBEAT, JOIN, Member, OFFSETS, SYNC, ask, codes, fetch_request,
    fetched, offsets_of, send, told, world, world_with,
};
use crate::support::{self, World, syncs};

/// A world whose coordinator's records are safe only once a sync, held back, is done.
fn world_of_slow_disks() -> World {
    let mut world = World::with(1, 1, "group.initial.rebalance.delay.ms=0\n");
    world.topic(OFFSETS, 1, &[("flush.messages", "1")]);
    world.topic("t", 3, &[]);
    world
}

#[test]
fn a_commit_is_answered_once_it_is_safe_and_reads_wait_too() {
    let mut world = world_of_slow_disks();
    let member = Member::alone(&mut world, "g");
    world.hold = syncs;
    send(
        &mut world,
        member.conn,
        COMMIT,
        member.commit_request(&[(0, 5)]),
    );
    assert_eq!(
        told::<OffsetCommitResponse>(&mut world, member.conn, COMMIT),
        None
    );
    let reader = world.connect();
    let request = fetch_request(FETCH, "g", Some(&[0]), TopicId::default());
    send(&mut world, reader, FETCH, request);
    assert_eq!(told::<OffsetFetchResponse>(&mut world, reader, FETCH), None);
    // A heartbeat needs the group's own record only, and that is safe.
    let other = world.connect();
    send(&mut world, other, HEARTBEAT, member.heartbeat_request());
    let beat: HeartbeatResponse = told(&mut world, other, HEARTBEAT).expect("at once");
    assert_eq!(beat.error_code, ErrorCode::NONE);
    // So does a read of another group.
    assert_eq!(offsets_of(&mut world, "other"), Ok(Vec::new()));
    world.release();
    let answer: OffsetCommitResponse = told(&mut world, member.conn, COMMIT).expect("safe");
    assert_eq!(codes(&answer), [ErrorCode::NONE]);
    let answer = told(&mut world, reader, FETCH).expect("safe");
    assert_eq!(fetched(answer).1[0].1, 5);
}

/// C-46: a commit that its replicas do not confirm is answered with a code that is tried again,
/// and the member's heartbeat behind it keeps it alive.
#[test]
fn c_46_what_is_not_safe_in_time_may_be_tried_again() {
    let mut world = world_of_slow_disks();
    let member = Member::alone(&mut world, "g");
    world.hold = syncs;
    send(
        &mut world,
        member.conn,
        COMMIT,
        member.commit_request(&[(0, 5)]),
    );
    send(
        &mut world,
        member.conn,
        HEARTBEAT,
        member.heartbeat_request(),
    );
    world.advance(4_999);
    assert_eq!(
        told::<OffsetCommitResponse>(&mut world, member.conn, COMMIT),
        None
    );
    world.advance(1);
    let answer: OffsetCommitResponse = told(&mut world, member.conn, COMMIT).expect("given up");
    assert_eq!(codes(&answer), [ErrorCode::COORDINATOR_NOT_AVAILABLE]);
    let beat: HeartbeatResponse = told(&mut world, member.conn, HEARTBEAT).expect("right after");
    assert_eq!(beat.error_code, ErrorCode::NONE);
    world.release();
    assert_eq!(
        told::<OffsetCommitResponse>(&mut world, member.conn, COMMIT),
        None,
        "once"
    );
    // The record is there all the same.
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 5)]));
}

#[test]
fn an_assignment_is_given_once_it_is_safe() {
    let mut world = world_of_slow_disks();
    let mut member = Member::new(&mut world, "g");
    member.send_join(&mut world);
    let joined = member.joined(&mut world).expect("alone");
    world.hold = syncs;
    member.send_sync(&mut world, &[&joined.member_id]);
    assert_eq!(
        told::<SyncGroupResponse>(&mut world, member.conn, SYNC),
        None
    );
    world.release();
    let answer: SyncGroupResponse = told(&mut world, member.conn, SYNC).expect("safe");
    assert_eq!(answer.assignment, member.id.as_bytes());
}

/// A partition that has too few replicas in sync takes no record: nothing changes.
#[test]
fn go_09_a_refused_append_changes_nothing() {
    let mut world = World::with(1, 1, "group.initial.rebalance.delay.ms=0\n");
    let offsets = world.topic(OFFSETS, 1, &[("min.insync.replicas", "2")]);
    world.topic("t", 3, &[]);
    let both = vec![support::NODE, NodeId::new(2)];
    member::commit(&mut world, "g", &[(0, 5)]);
    let mut member = Member::new(&mut world, "h");
    member.send_join(&mut world);
    member.joined(&mut world).expect("alone");
    world.change(offsets, 0, |it| {
        it.assigned_replicas = both;
        it.in_sync_replicas = vec![support::NODE];
    });
    let end = world.offsets(OFFSETS, 0);
    let request = member::commit_request("g", "t", &[(0, 9), (1, 9)]);
    let answer: OffsetCommitResponse = ask(&mut world, COMMIT, request);
    assert_eq!(codes(&answer), [ErrorCode::COORDINATOR_NOT_AVAILABLE; 2]);
    member.send_sync(&mut world, &[&member.id]);
    let synced: SyncGroupResponse = told(&mut world, member.conn, SYNC).expect("refused");
    assert_eq!(synced.error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(world.offsets(OFFSETS, 0), end, "nothing was written");
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 5)]));
}

#[test]
fn a_record_that_is_too_large_is_refused() {
    let mut world = World::with(1, 1, "offset.metadata.max.bytes=2000000\n");
    world.topic(OFFSETS, 1, &[("max.message.bytes", "500")]);
    world.topic("t", 3, &[]);
    let mut request = member::commit_request("g", "t", &[(0, 9)]);
    request.topics[0].partitions[0].committed_metadata = Some("x".repeat(1_000));
    let answer: OffsetCommitResponse = ask(&mut world, COMMIT, request);
    assert_eq!(codes(&answer), [ErrorCode::UNKNOWN_SERVER_ERROR]);
    assert_eq!(offsets_of(&mut world, "g"), Ok(Vec::new()));
}

/// A join that waits for others parks its connection: what comes behind it waits too.
#[test]
fn answers_leave_in_the_order_of_their_requests() {
    let mut world = world(1, 1);
    let mut first = Member::alone(&mut world, "g");
    let mut second = Member::new(&mut world, "g");
    second.send_join(&mut world);
    send(
        &mut world,
        second.conn,
        HEARTBEAT,
        second.heartbeat_request(),
    );
    assert_eq!(
        told::<JoinGroupResponse>(&mut world, second.conn, JOIN),
        None
    );
    first.send_join(&mut world);
    let joined = second.joined(&mut world).expect("all are here");
    assert_eq!(joined.generation_id, 2);
    let beat: HeartbeatResponse = told(&mut world, second.conn, HEARTBEAT).expect("behind it");
    // It was sent with the generation that the member knew then.
    assert_eq!(beat.error_code, ErrorCode::ILLEGAL_GENERATION);
    assert!(first.joined(&mut world).is_some());
}

/// SyncGroup gives no part of an assignment: followers wait for the leader's, and when a member
/// joins meanwhile they are told to join again.
#[test]
fn trap_31_no_assignment_is_given_while_the_group_rebalances() {
    let mut world = world(1, 1);
    let mut first = Member::alone(&mut world, "g");
    let mut second = Member::new(&mut world, "g");
    second.send_join(&mut world);
    first.send_join(&mut world);
    first.joined(&mut world).expect("all are here");
    second.joined(&mut world).expect("all are here");
    second.send_sync(&mut world, &[]);
    assert_eq!(second.synced(&mut world), None);
    let third = Member::new(&mut world, "g");
    third.send_join(&mut world);
    let synced = second.synced(&mut world).expect("told to join again");
    assert_eq!(synced.error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(synced.assignment.is_empty());
}

#[test]
fn sessions_end_without_heartbeats_and_only_then() {
    let mut world = world(1, 1);
    let member = Member::alone(&mut world, "g");
    for _ in 0..5 {
        world.advance(9_999);
        assert_eq!(member.heartbeat(&mut world), ErrorCode::NONE);
    }
    world.advance(10_000);
    assert_eq!(member.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
}

/// As in Kafka, a member whose connection is gone stays until its session ends; the others wait
/// for it no longer than that.
#[test]
fn a_connection_that_closes_while_its_member_joins() {
    let mut world = world(1, 1);
    let mut first = Member::alone(&mut world, "g");
    let second = Member::new(&mut world, "g");
    second.send_join(&mut world);
    world.disconnect(second.conn);
    first.send_join(&mut world);
    let joined = first
        .joined(&mut world)
        .expect("both are here as far as anybody knows");
    assert_eq!(joined.members.len(), 2);
    first.send_sync(&mut world, &[&first.id]);
    assert_eq!(
        first.synced(&mut world).expect("given").error_code,
        ErrorCode::NONE
    );
    world.advance(9_000);
    assert_eq!(first.heartbeat(&mut world), ErrorCode::NONE);
    world.advance(1_000);
    assert_eq!(
        first.heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    first.send_join(&mut world);
    assert_eq!(first.joined(&mut world).expect("alone").members.len(), 1);
}

/// A connection that closes while answers wait takes nobody else's along.
#[test]
fn a_connection_that_closes_while_its_commit_waits() {
    let mut world = world_of_slow_disks();
    world.hold = syncs;
    let (gone, stays) = (world.connect(), world.connect());
    for conn in [gone, stays] {
        let request = member::commit_request("g", "t", &[(0, 5)]);
        send(&mut world, conn, COMMIT, request);
    }
    world.disconnect(gone);
    world.advance(100);
    world.hold = support::never;
    world.release();
    let answer: OffsetCommitResponse = told(&mut world, stays, COMMIT).expect("safe");
    assert_eq!(codes(&answer), [ErrorCode::NONE]);
    world.advance(10_000);
}

/// A configured node gives a new group time to gather.
#[test]
fn the_first_join_of_a_group_waits_for_more_when_the_config_says_so() {
    let mut world = world_with(1, 1, "");
    let mut first = Member::new(&mut world, "g");
    let begin = world.now.mono;
    first.send_join(&mut world);
    assert!(first.joined(&mut world).is_none());
    let mut second = Member::new(&mut world, "g");
    second.send_join(&mut world);
    world.advance(2_999);
    assert!(second.joined(&mut world).is_none());
    while first.joined(&mut world).is_none() {
        world.advance(500);
    }
    assert!(world.now.mono.since(begin) >= Millis::new(3_000));
    assert!(second.joined(&mut world).is_some());
}
