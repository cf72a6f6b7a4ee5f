//! The member's state machine, call by call.

use bytes::Bytes;
use highwater_types::{ErrorCode, Millis, Mono, NodeId};

use super::test_support::{counts, partition_set, topic};
use super::{
    Assignor, CallId, CallTo, GroupError, GroupMember, MemberCall, MemberConfig, MemberOutput,
    PartitionSet, Subscription, decode_assignment, encode_assignment,
};
use crate::messages::find_coordinator_response::Coordinator;
use crate::messages::join_group_response::JoinGroupResponseMember;
use crate::messages::{
    FindCoordinatorResponse, HeartbeatResponse, JoinGroupResponse, LeaveGroupResponse,
    SyncGroupResponse,
};
use crate::response::Response;

/// A member, its clock, and what it wants done.
struct Played {
    member: GroupMember,
    now: Mono,
    out: Vec<MemberOutput>,
}

impl Played {
    fn new(assignors: &[Assignor]) -> Self {
        let mut config = MemberConfig::new("g");
        config.assignors = assignors.to_vec();
        Self::with(config)
    }

    fn with(config: MemberConfig) -> Self {
        Self {
            member: GroupMember::new(config),
            now: Mono::from_micros(1_000_000),
            out: Vec::new(),
        }
    }

    fn subscribe(&mut self, topics: &str) {
        let topics = topics.split_whitespace().map(topic).collect();
        self.member.subscribe(self.now, topics, &mut self.out);
    }

    /// The call that was just sent, after all other outputs, which are given too.
    fn sent(&mut self) -> (CallId, MemberCall, Vec<MemberOutput>) {
        let mut outputs = std::mem::take(&mut self.out);
        match outputs.pop() {
            Some(MemberOutput::Send { id, call, .. }) => (id, call, outputs),
            other => panic!("nothing is sent: {other:?} after {outputs:?}"),
        }
    }

    fn outputs(&mut self) -> Vec<MemberOutput> {
        std::mem::take(&mut self.out)
    }

    fn answer(&mut self, id: CallId, answer: impl Into<Response>) {
        self.member
            .handle_answer(self.now, id, answer.into(), &mut self.out);
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now.plus(Millis::new(ms));
        self.member.tick(self.now, &mut self.out);
    }

    /// Goes on to the next deadline.
    fn wait_until_due(&mut self) {
        self.now = self
            .member
            .next_deadline()
            .expect("something is due")
            .max(self.now);
        self.member.tick(self.now, &mut self.out);
    }

    fn found(&mut self) {
        let (id, call, _) = self.sent();
        assert!(
            matches!(call, MemberCall::FindCoordinator { .. }),
            "{call:?}"
        );
        self.answer(id, coordinator(ErrorCode::NONE));
    }

    /// Answers JoinGroup: the member is a follower.
    fn joined(&mut self, generation: i32) -> Vec<MemberOutput> {
        let (id, call, before) = self.sent();
        assert!(matches!(call, MemberCall::Join(_)), "{call:?}");
        let protocol = self.member.config.assignors[0].name();
        self.answer(id, join(generation, protocol, "leader"));
        before
    }

    fn synced(&mut self, assigned: &str) {
        let (id, call, _) = self.sent();
        assert!(matches!(call, MemberCall::Sync(_)), "{call:?}");
        self.answer(id, sync(assigned));
    }

    /// Up to a stable member that owns `assigned`.
    fn stable(assignors: &[Assignor], topics: &str, assigned: &str) -> Self {
        let mut played = Self::new(assignors);
        played.subscribe(topics);
        played.found();
        played.joined(1);
        played.synced(assigned);
        assert!(played.member.is_stable());
        played
    }

    fn heartbeat(&mut self, code: ErrorCode) {
        self.wait(3_000);
        let (id, call, _) = self.sent();
        assert!(matches!(call, MemberCall::Heartbeat(_)), "{call:?}");
        self.answer(id, heartbeat(code));
    }
}

fn coordinator(error_code: ErrorCode) -> FindCoordinatorResponse {
    FindCoordinatorResponse {
        coordinators: vec![Coordinator {
            key: "g".to_owned(),
            node_id: NodeId::new(3),
            host: "h".to_owned(),
            port: 9,
            error_code,
            error_message: None,
        }],
        ..Default::default()
    }
}

fn join(generation_id: i32, protocol: &str, leader: &str) -> JoinGroupResponse {
    JoinGroupResponse {
        generation_id,
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some(protocol.to_owned()),
        leader: leader.to_owned(),
        member_id: "me".to_owned(),
        ..Default::default()
    }
}

fn join_refused(error_code: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code,
        member_id: "given".to_owned(),
        ..Default::default()
    }
}

fn sync(assigned: &str) -> SyncGroupResponse {
    SyncGroupResponse {
        assignment: encode_assignment(&partition_set(assigned)).unwrap(),
        ..Default::default()
    }
}

fn sync_refused(error_code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code,
        ..Default::default()
    }
}

fn heartbeat(error_code: ErrorCode) -> HeartbeatResponse {
    HeartbeatResponse {
        error_code,
        ..Default::default()
    }
}

fn subscription(call: &MemberCall) -> Subscription {
    let MemberCall::Join(request) = call else {
        panic!("{call:?}");
    };
    Subscription::decode(&request.protocols[0].metadata).unwrap()
}

const EAGER: [Assignor; 2] = [Assignor::Range, Assignor::CooperativeSticky];
const COOPERATIVE: [Assignor; 1] = [Assignor::CooperativeSticky];

#[test]
fn a_member_finds_its_coordinator_takes_an_id_joins_and_syncs() {
    let mut played = Played::new(&EAGER);
    assert_eq!(played.member.next_deadline(), None, "it wants nothing yet");
    played.subscribe("a");
    played.found();
    let outputs = played.outputs();
    let MemberOutput::Send {
        id,
        to,
        call,
        timeout,
    } = &outputs[0]
    else {
        panic!("{outputs:?}");
    };
    assert!(matches!(to, CallTo::Coordinator(it) if (it.host.as_str(), it.port) == ("h", 9)));
    assert_eq!(
        *timeout,
        Millis::new(305_000),
        "a rebalance waits for the slowest member"
    );
    let MemberCall::Join(request) = call else {
        panic!("{call:?}");
    };
    assert_eq!(request.member_id, "");
    let names: Vec<_> = request
        .protocols
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["range", "cooperative-sticky"]);
    played.answer(*id, join_refused(ErrorCode::MEMBER_ID_REQUIRED));
    let (id, call, _) = played.sent();
    assert!(
        matches!(&call, MemberCall::Join(it) if it.member_id == "given"),
        "{call:?}"
    );
    played.answer(id, join(1, "range", "other"));
    let (id, call, _) = played.sent();
    let MemberCall::Sync(request) = call else {
        panic!("{call:?}");
    };
    assert_eq!(
        (request.generation_id, request.member_id.as_str()),
        (1, "me")
    );
    assert_eq!(request.assignments, [], "only the leader deals");
    played.answer(id, sync("a-1"));
    assert_eq!(
        played.outputs(),
        [MemberOutput::Assigned(partition_set("a-1"))]
    );
    assert!(played.member.is_stable());
    assert_eq!(played.member.identity().unwrap().generation, 1);
}

#[test]
fn the_leader_counts_partitions_and_deals() {
    let mut played = Played::new(&EAGER);
    played.subscribe("a");
    played.found();
    let (id, call, _) = played.sent();
    let MemberCall::Join(request) = call else {
        panic!("{call:?}");
    };
    let mut answer = join(1, "range", "me");
    let of = |member_id: &str, metadata: &Bytes| JoinGroupResponseMember {
        member_id: member_id.to_owned(),
        group_instance_id: None,
        metadata: metadata.clone(),
    };
    let metadata = &request.protocols[0].metadata;
    let wrong = Bytes::from_static(b"\0");
    answer.members = vec![of("other", metadata), of("me", metadata), of("odd", &wrong)];
    played.answer(id, answer.clone());
    let asked = played.outputs();
    assert_eq!(asked, [MemberOutput::CountTopics([topic("a")].into())]);
    played
        .member
        .handle_topics(played.now, &counts("a:3 b:7"), &mut played.out);
    let (id, call, _) = played.sent();
    let MemberCall::Sync(request) = call else {
        panic!("{call:?}");
    };
    let dealt: Vec<_> = request
        .assignments
        .iter()
        .map(|it| {
            (
                it.member_id.as_str(),
                decode_assignment(&it.assignment).unwrap(),
            )
        })
        .collect();
    let expected = [
        ("me", partition_set("a-0 a-1")),
        ("odd", PartitionSet::new()),
        ("other", partition_set("a-2")),
    ];
    assert_eq!(dealt, expected);
    played.answer(id, sync("a-0 a-1"));
    played.outputs();
    // It watches what it dealt by.
    assert_eq!(played.member.watched_topics(), [topic("a")].into());
    played
        .member
        .topics_changed(played.now, &counts("a:3 b:8"), &mut played.out);
    assert_eq!(played.outputs(), []);
    played
        .member
        .topics_changed(played.now, &counts("a:4"), &mut played.out);
    let outputs = played.outputs();
    assert_eq!(outputs, [MemberOutput::Revoke(partition_set("a-0 a-1"))]);
    // A static leader that came back deals nothing, but watches.
    played.member.released(played.now, &mut played.out);
    let (id, _, _) = played.sent();
    answer.skip_assignment = true;
    played.answer(id, answer);
    played.outputs();
    played
        .member
        .handle_topics(played.now, &counts("a:4"), &mut played.out);
    let (_, call, _) = played.sent();
    assert!(matches!(call, MemberCall::Sync(it) if it.assignments.is_empty()));
    assert_eq!(played.member.watched_topics(), [topic("a")].into());
}

#[test]
fn an_eager_member_gives_up_everything_before_it_joins_again() {
    let mut played = Played::stable(&EAGER, "a", "a-0 a-1");
    played.outputs();
    played.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(
        played.outputs(),
        [MemberOutput::Revoke(partition_set("a-0 a-1"))]
    );
    assert!(played.member.identity().is_some(), "it may still commit");
    // Its owner takes its time; heartbeats keep it in the group.
    played.wait(2_999);
    assert_eq!(played.outputs(), []);
    played.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(played.outputs(), []);
    played.member.released(played.now, &mut played.out);
    let (id, call, _) = played.sent();
    assert_eq!(subscription(&call).owned, PartitionSet::new());
    assert_eq!(subscription(&call).generation, Some(1));
    played.answer(id, join(2, "range", "leader"));
    played.synced("a-0");
    assert_eq!(
        played.outputs(),
        [MemberOutput::Assigned(partition_set("a-0"))]
    );
}

#[test]
fn a_cooperative_member_reads_on_and_gives_up_only_what_moves() {
    let mut played = Played::stable(&COOPERATIVE, "a", "a-0 a-1");
    played.outputs();
    played.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let (id, call, outputs) = played.sent();
    assert_eq!(outputs, [], "nothing is given up");
    assert_eq!(subscription(&call).owned, partition_set("a-0 a-1"));
    played.answer(id, join(2, "cooperative-sticky", "leader"));
    played.synced("a-0 a-2");
    let expected = [
        MemberOutput::Revoke(partition_set("a-1")),
        MemberOutput::Assigned(partition_set("a-2")),
    ];
    assert_eq!(played.outputs(), expected);
    played.member.released(played.now, &mut played.out);
    let (id, call, _) = played.sent();
    assert_eq!(subscription(&call).owned, partition_set("a-0 a-2"));
    assert_eq!(subscription(&call).generation, Some(2));
    played.answer(id, join(3, "cooperative-sticky", "leader"));
    played.synced("a-0 a-2");
    assert_eq!(
        played.outputs(),
        [MemberOutput::Assigned(PartitionSet::new())]
    );
    assert!(played.member.is_stable());
}

#[test]
fn who_is_no_longer_known_loses_everything_and_joins_as_new() {
    for (code, member_id) in [
        (ErrorCode::UNKNOWN_MEMBER_ID, ""),
        (ErrorCode::ILLEGAL_GENERATION, "me"),
    ] {
        let mut played = Played::stable(&COOPERATIVE, "a", "a-0");
        played.outputs();
        played.heartbeat(code);
        let (_, call, outputs) = played.sent();
        assert_eq!(outputs, [MemberOutput::Lost], "{code}");
        assert_eq!(subscription(&call).owned, PartitionSet::new());
        assert_eq!(subscription(&call).generation, None);
        assert!(matches!(call, MemberCall::Join(it) if it.member_id == member_id));
        assert_eq!(played.member.identity(), None, "no commit counts any more");
    }
}

#[test]
fn what_was_being_given_up_is_lost_too() {
    let mut played = Played::stable(&EAGER, "a", "a-0");
    played.outputs();
    played.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    played.outputs();
    played.heartbeat(ErrorCode::UNKNOWN_MEMBER_ID);
    let (_, call, outputs) = played.sent();
    assert_eq!(outputs, [MemberOutput::Lost]);
    assert!(matches!(call, MemberCall::Join(_)));
    // The owner's late word changes nothing.
    played.member.released(played.now, &mut played.out);
    assert_eq!(played.outputs(), []);
}

#[test]
fn the_coordinator_is_looked_for_anew_when_it_moved_loads_or_is_silent() {
    let mut played = Played::stable(&EAGER, "a", "a-0");
    played.outputs();
    played.heartbeat(ErrorCode::NOT_COORDINATOR);
    assert_eq!(played.outputs(), [], "a pause first");
    played.wait_until_due();
    let (id, call, _) = played.sent();
    assert!(matches!(call, MemberCall::FindCoordinator { .. }));
    played.answer(id, coordinator(ErrorCode::COORDINATOR_NOT_AVAILABLE));
    assert_eq!(played.outputs(), []);
    played.wait_until_due();
    played.found();
    // It loads: the same coordinator is asked again, after longer pauses.
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let (id, call, _) = played.sent();
        assert!(matches!(call, MemberCall::Heartbeat(_)), "{call:?}");
        let before = played.now;
        played.answer(id, heartbeat(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
        played.wait_until_due();
        pauses.push(played.now.since(before).as_u64());
        if played.out.is_empty() {
            played.wait(3_000);
        }
    }
    let (id, _, _) = played.sent();
    // Silence.
    played
        .member
        .handle_failure(played.now, id, &mut played.out);
    played.wait_until_due();
    played.found();
    let (id, _, _) = played.sent();
    played.answer(id, heartbeat(ErrorCode::NONE));
    assert!(
        played.member.is_stable(),
        "all the time it kept its partitions"
    );
    assert_eq!(*played.member.owned(), partition_set("a-0"));
}

#[test]
fn a_join_that_is_refused_for_a_while_is_tried_again() {
    for code in [
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ErrorCode::NOT_COORDINATOR,
        ErrorCode::REBALANCE_IN_PROGRESS,
        ErrorCode::UNKNOWN_MEMBER_ID,
    ] {
        let mut played = Played::new(&EAGER);
        played.subscribe("a");
        played.found();
        let (id, _, _) = played.sent();
        played.answer(id, join_refused(code));
        assert_eq!(played.outputs(), [], "{code}: not at once");
        played.wait_until_due();
        let (_, call, _) = played.sent();
        let finds = matches!(call, MemberCall::FindCoordinator { .. });
        let is_gone =
            code == ErrorCode::NOT_COORDINATOR || code == ErrorCode::COORDINATOR_NOT_AVAILABLE;
        assert_eq!(finds, is_gone, "{code}");
    }
}

#[test]
fn a_sync_that_comes_too_late_joins_again() {
    let mut played = Played::new(&EAGER);
    played.subscribe("a");
    played.found();
    played.joined(1);
    let (id, _, _) = played.sent();
    played.answer(id, sync_refused(ErrorCode::REBALANCE_IN_PROGRESS));
    let (_, call, _) = played.sent();
    assert!(
        matches!(call, MemberCall::Join(it) if it.member_id == "me"),
        "at once, as itself"
    );
    // A sync without an answer may have been carried out: joining again tells.
    let mut played = Played::new(&EAGER);
    played.subscribe("a");
    played.found();
    played.joined(1);
    let (id, _, _) = played.sent();
    played
        .member
        .handle_failure(played.now, id, &mut played.out);
    played.wait_until_due();
    played.found();
    let (_, call, _) = played.sent();
    assert!(matches!(call, MemberCall::Join(it) if it.member_id == "me"));
}

#[test]
fn fencing_and_refusals_are_final() {
    let mut config = MemberConfig::new("g");
    config.instance_id = Some("i".to_owned());
    let mut played = Played::with(config);
    played.subscribe("a");
    played.found();
    let (id, call, _) = played.sent();
    let named = Some("i".to_owned());
    assert!(matches!(call, MemberCall::Join(it) if it.group_instance_id == named));
    played.answer(id, join(1, "range", "leader"));
    played.synced("a-0");
    played.outputs();
    played.heartbeat(ErrorCode::FENCED_INSTANCE_ID);
    let why = GroupError::Fenced {
        instance_id: "i".to_owned(),
    };
    assert_eq!(
        played.outputs(),
        [MemberOutput::Lost, MemberOutput::Failed(why)]
    );
    assert_eq!(played.member.next_deadline(), None);
    for code in [
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::INVALID_SESSION_TIMEOUT,
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode::GROUP_MAX_SIZE_REACHED,
        ErrorCode::new(4711),
    ] {
        let mut played = Played::new(&EAGER);
        played.subscribe("a");
        played.found();
        let (id, _, _) = played.sent();
        played.answer(id, join_refused(code));
        let outputs = played.outputs();
        assert!(
            matches!(outputs[..], [MemberOutput::Failed(_)]),
            "{outputs:?}"
        );
    }
}

#[test]
fn a_group_that_speaks_something_else_is_refused() {
    let mut played = Played::new(&EAGER);
    played.subscribe("a");
    played.found();
    let (id, _, _) = played.sent();
    played.answer(id, join(1, "roundrobin", "leader"));
    let outputs = played.outputs();
    assert!(matches!(
        outputs[..],
        [MemberOutput::Failed(GroupError::Protocol { .. })]
    ));
    let mut played = Played::new(&EAGER);
    played.subscribe("a");
    played.found();
    played.joined(1);
    let (id, _, _) = played.sent();
    let strange = SyncGroupResponse {
        assignment: Bytes::from_static(b"\0\0\xff"),
        ..Default::default()
    };
    played.answer(id, strange);
    let outputs = played.outputs();
    assert!(matches!(
        outputs[..],
        [MemberOutput::Failed(GroupError::Assignment(_))]
    ));
}

#[test]
fn a_member_leaves_and_says_why_and_a_static_one_only_stops() {
    let mut played = Played::stable(&EAGER, "a", "a-0");
    played.outputs();
    played.member.leave(played.now, "done", &mut played.out);
    let (id, call, _) = played.sent();
    let MemberCall::Leave {
        reason, member_id, ..
    } = &call
    else {
        panic!("{call:?}");
    };
    assert_eq!((reason.as_str(), member_id.as_str()), ("done", "me"));
    assert_eq!(played.member.identity(), None);
    played.answer(id, LeaveGroupResponse::default());
    assert_eq!(played.outputs(), [MemberOutput::Left]);
    let mut config = MemberConfig::new("g");
    config.instance_id = Some("i".to_owned());
    let mut played = Played::with(config);
    played.subscribe("a");
    played.found();
    played.joined(1);
    played.synced("a-0");
    played.outputs();
    played.member.leave(played.now, "done", &mut played.out);
    assert_eq!(played.outputs(), [MemberOutput::Left]);
}

#[test]
fn leaving_does_not_wait_behind_a_join_under_way() {
    let mut played = Played::stable(&COOPERATIVE, "a", "a-0");
    played.outputs();
    played.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let (join_id, _, _) = played.sent();
    played.member.leave(played.now, "done", &mut played.out);
    let (id, call, outputs) = played.sent();
    assert_eq!(outputs, [MemberOutput::Abandon(join_id)]);
    assert!(matches!(call, MemberCall::Leave { .. }));
    played.answer(join_id, join(2, "cooperative-sticky", "me"));
    assert_eq!(played.outputs(), [], "that answer came too late");
    played
        .member
        .handle_failure(played.now, id, &mut played.out);
    assert_eq!(played.outputs(), [MemberOutput::Left]);
}

#[test]
fn who_does_not_poll_leaves_and_joins_again_when_it_does() {
    let mut played = Played::stable(&EAGER, "a", "a-0");
    played.outputs();
    let mut beats = 0;
    let outputs = loop {
        played.wait_until_due();
        let (id, call, outputs) = played.sent();
        if !matches!(call, MemberCall::Heartbeat(_)) {
            let text = format!("{call:?}");
            assert!(text.contains("max.poll.interval.ms"), "{text}");
            played.answer(id, LeaveGroupResponse::default());
            break outputs;
        }
        beats += 1;
        played.answer(id, heartbeat(ErrorCode::NONE));
    };
    assert_eq!(beats, 99, "every 3 s for 300 s");
    assert_eq!(outputs, [MemberOutput::Lost]);
    assert_eq!(played.outputs(), [], "it has not left for good");
    assert_eq!(played.member.next_deadline(), None);
    played.member.polled(played.now, &mut played.out);
    let (_, call, _) = played.sent();
    assert!(matches!(call, MemberCall::Join(it) if it.member_id.is_empty()));
}

#[test]
fn a_new_subscription_joins_again_now_or_when_the_join_under_way_is_done() {
    let mut played = Played::stable(&COOPERATIVE, "a b", "a-0 b-0");
    played.outputs();
    played.subscribe("b c");
    assert_eq!(
        played.outputs(),
        [MemberOutput::Revoke(partition_set("a-0"))]
    );
    played.member.released(played.now, &mut played.out);
    let (id, call, _) = played.sent();
    let told = subscription(&call);
    assert_eq!(told.topics, [topic("b"), topic("c")].into());
    assert_eq!(told.owned, partition_set("b-0"));
    // Another change while it joins.
    played.subscribe("c");
    assert_eq!(played.outputs(), []);
    played.answer(id, join(2, "cooperative-sticky", "leader"));
    played.synced("b-0 c-0");
    let outputs = played.outputs();
    let given_up = MemberOutput::Revoke(partition_set("b-0"));
    assert_eq!(
        outputs,
        [given_up, MemberOutput::Assigned(partition_set("c-0"))]
    );
}

#[test]
fn a_refused_commit_says_what_a_heartbeat_would_have_said() {
    let mut played = Played::stable(&EAGER, "a", "a-0");
    played.outputs();
    let identity = played.member.identity().unwrap();
    let refuse = |played: &mut Played, code| {
        let (now, out) = (played.now, &mut played.out);
        played
            .member
            .handle_offsets_refused(now, &identity, code, out);
    };
    refuse(&mut played, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    assert!(played.member.is_stable());
    refuse(&mut played, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(
        played.outputs(),
        [MemberOutput::Revoke(partition_set("a-0"))]
    );
    refuse(&mut played, ErrorCode::ILLEGAL_GENERATION);
    let (id, call, outputs) = played.sent();
    assert_eq!(outputs, [MemberOutput::Lost]);
    assert!(matches!(call, MemberCall::Join(_)));
    // What a commit of the old generation was answered says nothing about the new one.
    played.answer(id, join(2, "range", "leader"));
    played.synced("a-0");
    played.outputs();
    refuse(&mut played, ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(played.member.is_stable());
}

#[test]
fn a_commit_that_a_join_overtook_costs_nothing() {
    let mut played = Played::stable(&COOPERATIVE, "a", "a-0");
    played.outputs();
    played.heartbeat(ErrorCode::REBALANCE_IN_PROGRESS);
    let (id, _, _) = played.sent();
    let identity = played.member.identity().unwrap();
    let (now, out) = (played.now, &mut played.out);
    let code = ErrorCode::ILLEGAL_GENERATION;
    played
        .member
        .handle_offsets_refused(now, &identity, code, out);
    assert_eq!(played.outputs(), [], "it reads on");
    played.answer(id, join(2, "cooperative-sticky", "leader"));
    played.synced("a-0");
    assert_eq!(
        played.outputs(),
        [MemberOutput::Assigned(PartitionSet::new())]
    );
}

#[test]
fn a_heartbeat_under_way_does_not_hold_up_a_join() {
    let mut played = Played::stable(&COOPERATIVE, "a", "a-0");
    played.outputs();
    played.wait(3_000);
    let (id, call, _) = played.sent();
    assert!(matches!(call, MemberCall::Heartbeat(_)));
    played.subscribe("a b");
    assert_eq!(played.outputs(), [], "one call at a time");
    played.answer(id, heartbeat(ErrorCode::REBALANCE_IN_PROGRESS));
    let (_, call, outputs) = played.sent();
    assert_eq!(outputs, []);
    assert_eq!(subscription(&call).topics, [topic("a"), topic("b")].into());
}
