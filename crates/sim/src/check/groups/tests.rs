//! I-24 is broken once in each way, by hand, and has to be missed by its name.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::{BufMut as _, BytesMut};
use highwater_protocol::client::group::{
    CommittedOffset, FetchedOffsets, MemberIdentity, PartitionSet, Subscription, encode_assignment,
};
use highwater_types::{ErrorCode, LeaderEpoch, Mono, NodeId, Offset, TopicName, TopicPartition};

use super::{CoordinatorLife, GroupHistory, JoinFloor};
use crate::client::ClientId;
use crate::scenario::world_after;
use crate::world::World;
use crate::world::clients::{SentCommit, SentOffsetFetch};

const GROUP: &str = "g";

/// What the checker says; empty when nothing is wrong.
fn said(look: impl FnOnce()) -> String {
    match catch_unwind(AssertUnwindSafe(look)) {
        Ok(()) => String::new(),
        Err(why) => why.downcast_ref::<String>().cloned().unwrap_or_default(),
    }
}

#[track_caller]
fn assert_missed(said: &str, words: &str) {
    assert!(said.contains("I-24"), "I-24 is not in: {said:?}");
    assert!(said.contains(words), "'{words}' is not in: {said:?}");
}

fn log_name() -> TopicPartition {
    partition("__consumer_offsets-0")
}

fn partition(name: &str) -> TopicPartition {
    TopicPartition::parse(name).expect("a partition")
}

fn partitions(names: &[&str]) -> PartitionSet {
    names.iter().map(|it| partition(it)).collect()
}

fn put_string(to: &mut BytesMut, text: &str) {
    to.put_i16(i16::try_from(text.len()).expect("short"));
    to.put_slice(text.as_bytes());
}

fn put_bytes(to: &mut BytesMut, bytes: &[u8]) {
    to.put_i32(i32::try_from(bytes.len()).expect("short"));
    to.put_slice(bytes);
}

/// The newest record of the log says this of the group.
fn group_at(history: &mut GroupHistory, at: i64, generation: i32, members: &[(&str, &[&str])]) {
    let (mut key, mut value) = (BytesMut::new(), BytesMut::new());
    key.put_i16(2);
    put_string(&mut key, GROUP);
    value.put_i16(3);
    put_string(&mut value, "consumer");
    value.put_i32(generation);
    put_string(&mut value, "range");
    put_string(&mut value, "leader");
    value.put_i64(0);
    value.put_i32(i32::try_from(members.len()).expect("few"));
    for (id, assigned) in members {
        put_string(&mut value, id);
        value.put_i16(-1);
        put_string(&mut value, "client");
        put_string(&mut value, "/host");
        value.put_i64(0);
        let subscription = Subscription {
            topics: [TopicName::new("orders").expect("a name")].into(),
            ..Subscription::default()
        };
        put_bytes(&mut value, &subscription.encode().expect("encodes"));
        let assigned = encode_assignment(&partitions(assigned)).expect("encodes");
        put_bytes(&mut value, &assigned);
    }
    history.record(&log_name(), Offset::new(at), Some(&key), Some(&value));
}

/// The newest record of the log commits this for `orders-0`, or deletes it.
fn offset_at(history: &mut GroupHistory, at: i64, value: Option<(i64, &str)>) {
    let mut key = BytesMut::new();
    key.put_i16(1);
    put_string(&mut key, GROUP);
    put_string(&mut key, "orders");
    key.put_i32(0);
    let value = value.map(|(offset, mark)| {
        let mut value = BytesMut::new();
        value.put_i16(3);
        value.put_i64(offset);
        value.put_i32(-1);
        put_string(&mut value, mark);
        value.put_i64(0);
        value
    });
    history.record(&log_name(), Offset::new(at), Some(&key), value.as_deref());
}

fn sent(history: &mut GroupHistory, offset: i64, by: Option<(&str, i32)>) -> SentCommit {
    let commit = SentCommit {
        group: GROUP.to_owned(),
        identity: by.map(|(member_id, generation)| MemberIdentity {
            member_id: member_id.to_owned(),
            instance_id: None,
            generation,
        }),
        offsets: [(partition("orders-0"), Offset::new(offset))].into(),
        mark: history.next_mark(),
    };
    history.is_committed(&commit);
    commit
}

/// Member `a` owns `orders-0` in generation 2, and has committed 5 as `c0`.
fn one_member() -> (GroupHistory, SentCommit) {
    let mut history = GroupHistory::default();
    group_at(&mut history, 0, 1, &[("a", &["orders-0"])]);
    group_at(&mut history, 1, 2, &[("a", &["orders-0"])]);
    let commit = sent(&mut history, 5, Some(("a", 2)));
    offset_at(&mut history, 2, Some((5, "c0")));
    history.commit_answered(&commit, &answer(ErrorCode::NONE));
    (history, commit)
}

fn answer(code: ErrorCode) -> BTreeMap<TopicPartition, ErrorCode> {
    [(partition("orders-0"), code)].into()
}

fn told(history: &mut GroupHistory, floor: i64, offset: Option<(i64, &str)>) {
    let fetch = SentOffsetFetch {
        group: GROUP.to_owned(),
        floor: [(log_name(), Offset::new(floor))].into(),
    };
    let offset = offset.map(|(offset, mark)| CommittedOffset {
        offset: Offset::new(offset),
        leader_epoch: LeaderEpoch::NONE,
        metadata: mark.to_owned(),
    });
    let told: FetchedOffsets = [(partition("orders-0"), Ok(offset))].into();
    history.was_fetched(&fetch, &told);
}

/// Two members, of which each has a partition.
fn two_members() -> World {
    world_after(
        "# Two.\nnode offsets.topic.num.partitions=1 group.initial.rebalance.delay.ms=0\n\
         topic orders partitions=2\njoin g member=11 topics=orders\n\
         join g member=12 topics=orders\nsettle g\n",
    )
}

fn assigned_again(world: &mut World, id: ClientId) -> String {
    let mut checker = std::mem::take(&mut world.checker);
    said(|| checker.groups.was_assigned(world, id))
}

#[test]
fn nothing_is_missed_where_nothing_is_wrong() {
    let (mut history, _) = one_member();
    told(&mut history, 3, Some((5, "c0")));
    assert_eq!(history.records(), 3);
    assert_eq!(assigned_again(&mut two_members(), ClientId(11)), "");
}

#[test]
fn i_24_two_owners_in_a_generation_are_missed() {
    let (mut history, _) = one_member();
    let look = || group_at(&mut history, 3, 2, &[("b", &["orders-0"])]);
    assert_missed(&said(look), "two owners");
    let (mut history, _) = one_member();
    let both: [(&str, &[&str]); 2] = [("a", &["orders-0"]), ("b", &["orders-0"])];
    assert_missed(&said(|| group_at(&mut history, 3, 3, &both)), "two owners");
}

#[test]
fn i_24_an_owner_beside_one_whose_session_lasts_is_missed() {
    let mut world = two_members();
    let of_first = world.member(ClientId(11)).expect("a member").reads.clone();
    let second = world.member_mut(ClientId(12)).expect("a member");
    second.reads.extend(of_first);
    assert_missed(
        &assigned_again(&mut world, ClientId(11)),
        "a session that lasts",
    );
}

#[test]
fn i_24_an_owner_beside_one_whose_session_is_over_is_right() {
    let mut world = two_members();
    let of_first = world.member(ClientId(11)).expect("a member").reads.clone();
    let second = world.member_mut(ClientId(12)).expect("a member");
    second.reads.extend(of_first);
    second.heard_at = None;
    assert_eq!(assigned_again(&mut world, ClientId(11)), "");
}

#[test]
fn i_24_another_assignment_than_the_log_has_is_missed() {
    let mut world = two_members();
    let checker = std::mem::take(&mut world.checker);
    let member = world.member(ClientId(11)).expect("a member");
    let identity = member.member.identity().expect("in a generation");
    let of = super::Assignment {
        group: GROUP,
        generation: identity.generation,
        member_id: &identity.member_id,
        owner: &identity.member_id,
    };
    let other = partitions(&["orders-0", "orders-1"]);
    let look = || checker.groups.is_recorded(of, &other);
    assert_missed(&said(look), "another assignment");
}

#[test]
fn i_24_a_generation_that_falls_is_missed() {
    let (mut history, _) = one_member();
    assert_missed(&said(|| group_at(&mut history, 3, 1, &[])), "follows 2");
    let (mut history, _) = one_member();
    let [one, two] = [1, 2].map(|life| CoordinatorLife {
        node: NodeId::new(1),
        life,
        leader_epochs: Vec::new(),
        is_alone: true,
    });
    let floor = history.join_floor(GROUP, one.clone());
    assert_eq!(
        floor,
        JoinFloor {
            life: one.clone(),
            generation: 2
        }
    );
    history.was_joined(GROUP, &floor, (one.clone(), 4));
    let floor = history.join_floor(GROUP, one.clone());
    // Another life only knows what was recorded.
    history.was_joined(GROUP, &floor, (two, 3));
    let look = || history.was_joined(GROUP, &floor, (one, 3));
    assert_missed(&said(look), "was joined after");
}

#[test]
fn i_24_a_commit_of_an_old_generation_is_missed() {
    let (mut history, _) = one_member();
    sent(&mut history, 3, Some(("a", 1)));
    let look = || offset_at(&mut history, 3, Some((3, "c1")));
    assert_missed(&said(look), "in generation 1");
}

#[test]
fn i_24_a_commit_by_nobody_in_the_group_is_missed() {
    let (mut history, _) = one_member();
    sent(&mut history, 3, Some(("b", 2)));
    let look = || offset_at(&mut history, 3, Some((3, "c1")));
    assert_missed(&said(look), "a commit of b");
    let (mut history, _) = one_member();
    sent(&mut history, 3, None);
    let look = || offset_at(&mut history, 3, Some((3, "c1")));
    assert_missed(&said(look), "nobody's commit");
}

#[test]
fn i_24_an_offset_that_moves_by_itself_is_missed() {
    let (mut history, _) = one_member();
    let look = || offset_at(&mut history, 3, Some((4, "c0")));
    assert_missed(&said(look), "nobody committed");
}

#[test]
fn i_24_a_refused_commit_that_counts_is_missed() {
    let (mut history, _) = one_member();
    let commit = sent(&mut history, 3, Some(("a", 2)));
    history.commit_answered(&commit, &answer(ErrorCode::ILLEGAL_GENERATION));
    let look = || offset_at(&mut history, 3, Some((3, "c1")));
    assert_missed(&said(look), "was refused");
}

#[test]
fn i_24_an_acknowledged_commit_that_is_not_there_is_missed() {
    let (mut history, _) = one_member();
    let commit = sent(&mut history, 6, Some(("a", 2)));
    let look = || history.commit_answered(&commit, &answer(ErrorCode::NONE));
    assert_missed(&said(look), "not in the log");
}

#[test]
fn i_24_an_older_offset_than_the_log_has_is_missed() {
    let (mut history, _) = one_member();
    sent(&mut history, 7, Some(("a", 2)));
    offset_at(&mut history, 3, Some((7, "c1")));
    // What is asked for before may be told as it was then.
    told(&mut history, 3, Some((5, "c0")));
    told(&mut history, 3, Some((7, "c1")));
    let look = || told(&mut history, 4, Some((5, "c0")));
    assert_missed(&said(look), "is told as");
    assert_missed(&said(|| told(&mut history, 4, None)), "is told as");
}

#[test]
fn i_24_a_record_that_is_gone_or_changed_after_a_start_is_missed() {
    let (mut history, _) = one_member();
    let stored = [0, 1].map(Offset::new).into();
    assert_missed(&said(|| history.holds(&log_name(), &stored)), "is gone");
    sent(&mut history, 9, Some(("a", 2)));
    let look = || offset_at(&mut history, 2, Some((9, "c1")));
    assert_missed(&said(look), "another record");
}

#[test]
fn i_24_an_offset_that_is_deleted_while_the_group_lives_is_missed() {
    let (mut history, _) = one_member();
    assert_missed(&said(|| offset_at(&mut history, 3, None)), "is deleted");
    let (mut history, _) = one_member();
    group_at(&mut history, 3, 3, &[]);
    offset_at(&mut history, 4, None);
}

#[test]
fn a_cut_takes_commits_and_lets_generations_come_again() {
    let (mut history, _) = one_member();
    let now = Mono::from_micros(7);
    assert_eq!(history.cut(&log_name(), Offset::new(3), now), 0);
    assert_eq!(history.cut(&log_name(), Offset::new(1), now), 1);
    group_at(&mut history, 1, 2, &[("b", &["orders-0"])]);
    assert_eq!(history.sessions_since, now);
}
