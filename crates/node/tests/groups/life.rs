//! Coordinators come and go with leadership, and their groups survive.

use std::collections::BTreeSet;
use std::path::PathBuf;

use highwater_disk::{Disk as _, DiskErrorKind, DiskOp, Fault, FaultEffect, FaultPath, MemDisk};
use highwater_node::Work;
use highwater_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, HeartbeatResponse, JoinGroupResponse,
    ListGroupsRequest, ListGroupsResponse, OffsetCommitResponse, OffsetFetchResponse,
};
use highwater_records::{Batches, Compression};
use highwater_types::{ErrorCode, NodeId, TopicId};

use crate::member::{
    self, COMMIT, FETCH, HEARTBEAT, JOIN, Member, OFFSETS, ask, codes, commit, fetch_request,
    fetched, offsets_of, send, told, world,
};
use crate::support::{NODE, World};

fn loads(work: &Work<MemDisk>) -> bool {
    matches!(work, Work::ReadGroups(_))
}

fn opens(work: &Work<MemDisk>) -> bool {
    matches!(work, Work::OpenLog(_))
}

fn list(world: &mut World) -> Result<BTreeSet<String>, ErrorCode> {
    let answer: ListGroupsResponse = ask(world, 5, ListGroupsRequest::default());
    if answer.error_code.is_error() {
        assert_eq!(answer.groups, []);
        return Err(answer.error_code);
    }
    Ok(answer.groups.into_iter().map(|it| it.group_id).collect())
}

/// GO-05, traps 32: never an empty success before all of the log is replayed.
#[test]
fn go_05_trap_32_nothing_is_answered_while_a_coordinator_is_loaded() {
    let mut world = world(1, 1);
    let member = Member::alone(&mut world, "g");
    member.commit(&mut world, &[(0, 5)]);
    world.kill();
    world.hold = opens;
    world.start();
    let loading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    assert_eq!(offsets_of(&mut world, "g"), Err(loading), "not even open");
    world.hold = loads;
    world.release();
    assert_eq!(offsets_of(&mut world, "g"), Err(loading));
    for version in 1..=10 {
        let id = world.id("t", 0).topic_id;
        let request = fetch_request(version, "g", Some(&[0]), id);
        let (error, rows) = fetched(ask(&mut world, version, request));
        let expected: &[_] = if version == 1 {
            &[(0, -1, -1, String::new(), loading)]
        } else {
            assert_eq!(error, loading, "v{version}");
            &[]
        };
        assert_eq!(rows, expected, "v{version}");
    }
    assert_eq!(list(&mut world), Err(loading));
    let request = DescribeGroupsRequest {
        groups: vec!["g".to_owned()],
        ..DescribeGroupsRequest::default()
    };
    let described: DescribeGroupsResponse = ask(&mut world, 6, request);
    assert_eq!(described.groups[0].error_code, loading);
    let request = member::commit_request("g", "t", &[(0, 9)]);
    let answer: OffsetCommitResponse = ask(&mut world, COMMIT, request);
    assert_eq!(codes(&answer), [loading]);
    let answer: JoinGroupResponse = ask(&mut world, JOIN, member::join_request("g", ""));
    assert_eq!(answer.error_code, loading);
    let answer: HeartbeatResponse = ask(&mut world, HEARTBEAT, member.heartbeat_request());
    assert_eq!(answer.error_code, loading);
    world.release();
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 5)]));
    let answer: HeartbeatResponse = ask(&mut world, HEARTBEAT, member.heartbeat_request());
    assert_eq!(
        answer.error_code,
        ErrorCode::NONE,
        "the member is still one"
    );
}

/// A long log is loaded in chunks, and a step replays one of them.
#[test]
fn a_long_log_is_loaded_in_chunks() {
    let mut world = World::with(1, 1, "offsets.load.buffer.size=2000\n");
    world.topic(OFFSETS, 1, &[]);
    world.topic("t", 3, &[]);
    for number in 0..100 {
        commit(&mut world, &format!("g-{number}"), &[(0, number)]);
    }
    world.stop();
    world.hold = loads;
    world.start();
    let mut chunks = 0;
    while !world.held.is_empty() {
        let loading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        assert_eq!(offsets_of(&mut world, "g-0"), Err(loading));
        assert_eq!(world.held.len(), 1, "one after the other");
        chunks += 1;
        world.release();
    }
    assert!(chunks > 5, "{chunks}");
    assert_eq!(list(&mut world).expect("loaded").len(), 100);
    assert_eq!(offsets_of(&mut world, "g-99"), Ok(vec![(0, 99)]));
    assert!(world.has_event("groups of __consumer_offsets-0 loaded: records=100"));
}

#[test]
fn groups_and_offsets_survive_stops_kills_and_power_cuts() {
    let mut world = World::with(1, 1, "group.initial.rebalance.delay.ms=0\n");
    world.topic(OFFSETS, 1, &[("flush.messages", "1")]);
    world.topic("t", 3, &[]);
    let member = Member::alone(&mut world, "g");
    let stops: [fn(&mut World); 3] = [World::stop, World::kill, World::power_off];
    for (offset, stop) in (1..).zip(stops) {
        let conn = world.connect();
        let answer: OffsetCommitResponse = member::ask_on(
            &mut world,
            conn,
            COMMIT,
            member.commit_request(&[(0, offset)]),
        );
        assert_eq!(codes(&answer), [ErrorCode::NONE]);
        stop(&mut world);
        world.start();
        assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, offset)]));
        let answer: HeartbeatResponse = ask(&mut world, HEARTBEAT, member.heartbeat_request());
        assert_eq!(
            answer.error_code,
            ErrorCode::NONE,
            "member and generation are the same"
        );
        let request = DescribeGroupsRequest {
            groups: vec!["g".to_owned()],
            ..DescribeGroupsRequest::default()
        };
        let described: DescribeGroupsResponse = ask(&mut world, 6, request);
        let group = &described.groups[0];
        assert_eq!(group.group_state, "Stable");
        assert_eq!(group.members[0].member_assignment, member.id.as_bytes());
    }
}

/// Who waits when leadership is lost is told so, whatever becomes of it.
#[test]
fn lost_leadership_ends_everything_that_waits() {
    let mut world = world(1, 1);
    let offsets = world.id(OFFSETS, 0).topic_id;
    let mut first = Member::alone(&mut world, "g");
    first.commit(&mut world, &[(0, 5)]);
    let second = Member::new(&mut world, "g");
    second.send_join(&mut world);
    assert!(first.heartbeat(&mut world) == ErrorCode::REBALANCE_IN_PROGRESS);
    world.change(offsets, 0, |it| {
        it.leader = NodeId::new(2);
        it.leader_epoch = it.leader_epoch.next();
    });
    let lost = ErrorCode::NOT_COORDINATOR;
    let answer: JoinGroupResponse = told(&mut world, second.conn, JOIN).expect("told");
    assert_eq!(answer.error_code, lost);
    assert_eq!(offsets_of(&mut world, "g"), Err(lost));
    assert_eq!(first.heartbeat(&mut world), lost);
    assert_eq!(
        list(&mut world),
        Ok(BTreeSet::new()),
        "it lists what it leads"
    );
    world.change(offsets, 0, |it| {
        it.leader = NODE;
        it.leader_epoch = it.leader_epoch.next();
    });
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 5)]));
    // What no record carries is gone: the rebalance. The generation is the one before.
    assert_eq!(first.heartbeat(&mut world), ErrorCode::NONE);
    first.send_join(&mut world);
    assert!(first.joined(&mut world).is_some());
}

/// A load that is under way when leadership is lost and regained begins anew.
#[test]
fn leadership_is_lost_and_regained_while_a_coordinator_is_loaded() {
    let mut world = world(1, 1);
    let offsets = world.id(OFFSETS, 0).topic_id;
    commit(&mut world, "g", &[(0, 5)]);
    world.hold = loads;
    for leader in [NodeId::new(2), NODE, NodeId::new(2), NODE] {
        world.change(offsets, 0, |it| {
            it.leader = leader;
            it.leader_epoch = it.leader_epoch.next();
        });
    }
    let loading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    assert_eq!(offsets_of(&mut world, "g"), Err(loading));
    world.hold = crate::support::never;
    world.release();
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 5)]));
    // What the reads of the loads before brought is not replayed: one record, not three.
    assert!(world.has_event("groups of __consumer_offsets-0 loaded: records=1"));
    assert!(!world.has_event("loaded: records=2"));
    // An epoch bump that keeps the leader keeps the coordinator.
    let member = Member::new(&mut world, "h");
    member.send_join(&mut world);
    world.change(offsets, 0, |it| it.leader_epoch = it.leader_epoch.next());
    let answer: JoinGroupResponse = told(&mut world, member.conn, JOIN).expect("alone");
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

#[test]
fn a_deleted_offsets_topic_ends_its_coordinators_and_a_new_one_begins_empty() {
    let mut world = world(1, 1);
    let offsets = world.id(OFFSETS, 0).topic_id;
    commit(&mut world, "g", &[(0, 5)]);
    world.delete_topic(offsets);
    assert_eq!(offsets_of(&mut world, "g"), Err(ErrorCode::NOT_COORDINATOR));
    assert_eq!(list(&mut world), Ok(BTreeSet::new()));
    world.topic(OFFSETS, 2, &[]);
    assert_eq!(offsets_of(&mut world, "g"), Ok(Vec::new()));
}

/// The offsets of a topic go with it, also when it goes while they are being loaded; those of a
/// topic of the same name begin anew.
#[test]
fn offsets_of_deleted_topics_are_deleted() {
    let mut world = world(1, 1);
    let topic = world.id("t", 0).topic_id;
    world.topic("stays", 1, &[]);
    let stays = member::commit_request("g", "stays", &[(0, 4)]);
    let _: OffsetCommitResponse = ask(&mut world, COMMIT, stays);
    commit(&mut world, "g", &[(0, 5), (1, 6)]);
    world.delete_topic(topic);
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 4)]));
    world.topic("t", 3, &[]);
    let request = fetch_request(FETCH, "g", Some(&[0]), TopicId::default());
    let answer: OffsetFetchResponse = ask(&mut world, FETCH, request);
    assert_eq!(fetched(answer).1[0].1, -1);
    let topic = world.id("t", 0).topic_id;
    commit(&mut world, "g", &[(0, 7)]);
    world.stop();
    world.hold = loads;
    world.start();
    world.delete_topic(topic);
    world.hold = crate::support::never;
    world.release();
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 4)]));
    world.kill();
    world.start();
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 4)]), "for good");
}

/// What Kafka's decoder expects of the coordinator's batches.
#[test]
fn batches_of_the_coordinator_have_kafkas_form() {
    for (codec, id) in [(Compression::None, 0), (Compression::Zstd, 4)] {
        let properties = format!("offsets.topic.compression.codec={id}\n");
        let mut world = World::with(1, 1, &properties);
        world.topic(OFFSETS, 1, &[]);
        world.topic("t", 3, &[]);
        commit(&mut world, "g", &[(0, 5), (1, 6)]);
        let path = format!("{OFFSETS}-0/00000000000000000000.log");
        let bytes = world.disks[0].read(path.as_ref()).expect("readable");
        let bytes = bytes.expect("there");
        let batches: Vec<_> = Batches::new(&bytes).collect();
        assert_eq!(batches.len(), 1, "one batch for one request");
        let batch = batches[0].as_ref().expect("whole");
        batch.check_crc().expect("right");
        let header = batch.header();
        assert_eq!(header.attributes.compression(), Ok(codec));
        assert!(!header.producer_id.is_some());
        assert_eq!(header.base_sequence, 0);
        assert_eq!(header.record_count, 2);
        assert_eq!(header.base_timestamp, world.now.wall);
        world.kill();
        world.start();
        assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 5), (1, 6)]));
    }
}

/// Descriptors may be there again a second later: the load is not given up.
#[test]
fn a_load_that_lacks_descriptors_is_tried_again() {
    let mut world = world(1, 1);
    commit(&mut world, "g", &[(0, 5)]);
    world.stop();
    world.hold = loads;
    world.start();
    world.disks[0].inject(Fault {
        path: FaultPath::EndsWith(".log".to_owned()),
        op: DiskOp::Read,
        after: 0,
        times: 1,
        effect: FaultEffect::Error(DiskErrorKind::Exhausted),
    });
    world.hold = crate::support::never;
    world.release();
    let loading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    assert_eq!(offsets_of(&mut world, "g"), Err(loading));
    assert!(world.has_event("their load is tried again"));
    world.advance(1_000);
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 5)]));
}

#[test]
fn a_log_that_is_no_coordinators_is_not_served() {
    let mut world = world(1, 1);
    commit(&mut world, "g", &[(0, 5)]);
    world.stop();
    let path = PathBuf::from(format!("{OFFSETS}-0/00000000000000000000.log"));
    let mut files = world.disks[0].files();
    let log = files.get_mut(&path).expect("a log");
    *log.last_mut().expect("a batch") ^= 1;
    world.disks[0] = MemDisk::with_files("/data0", &files);
    world.start();
    assert_eq!(offsets_of(&mut world, "g"), Err(ErrorCode::NOT_COORDINATOR));
    assert!(world.has_event("groups of __consumer_offsets-0 are not served"));
    assert_eq!(
        world.produce(-1, ("t", 0), crate::support::batch(&["x"])).0,
        0
    );
}

/// GO-06: what a member of an old generation commits is refused.
#[test]
fn go_06_a_member_of_an_old_generation_commits_nothing() {
    let mut world = world(1, 1);
    let old = Member::alone(&mut world, "g");
    assert_eq!(old.commit(&mut world, &[(0, 10)]), [ErrorCode::NONE]);
    let mut new = Member::new(&mut world, "g");
    new.send_join(&mut world);
    // While the group prepares its rebalance the members of its generation still commit.
    assert_eq!(old.commit(&mut world, &[(0, 11)]), [ErrorCode::NONE]);
    let again = Member {
        conn: world.connect(),
        group: "g".to_owned(),
        id: old.id.clone(),
        generation: old.generation,
    };
    again.send_join(&mut world);
    new.joined(&mut world).expect("all are here");
    // While it completes, nobody does.
    let completing = new.commit(&mut world, &[(0, 12)]);
    assert_eq!(completing, [ErrorCode::REBALANCE_IN_PROGRESS]);
    let stale = old.commit(&mut world, &[(0, 3)]);
    assert_eq!(stale, [ErrorCode::ILLEGAL_GENERATION]);
    let nobody = member::commit_request("g", "t", &[(0, 3)]);
    let nobody: OffsetCommitResponse = ask(&mut world, COMMIT, nobody);
    assert!(codes(&nobody)[0].is_error(), "the group has members");
    assert_eq!(offsets_of(&mut world, "g"), Ok(vec![(0, 11)]));
    send(&mut world, old.conn, HEARTBEAT, old.heartbeat_request());
    let beat: HeartbeatResponse = told(&mut world, old.conn, HEARTBEAT).expect("told");
    assert_eq!(beat.error_code, ErrorCode::ILLEGAL_GENERATION);
}
