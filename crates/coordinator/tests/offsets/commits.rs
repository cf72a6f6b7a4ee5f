use highwater_coordinator::{
    AppendRefused, CommitPartition, CommitTopic, FetchTopic, GenerationId, GroupEvent,
    GroupRequest, MemberId, OffsetCommitRequest, OffsetFetchRequest, OffsetsBy, OffsetsCause,
};
use highwater_types::{ErrorCode, LeaderEpoch, Millis, Offset, PartitionIndex, TopicId};

use crate::support::{World, fetch_all, fetch_one, name, simple, subscription, topic_id};

fn by_member(
    group: &str,
    (generation_id, member_id): &(GenerationId, MemberId),
    offset: i64,
) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id: *generation_id,
        member_id: member_id.clone(),
        ..simple(group, &[("orders", 0, offset)])
    }
}

#[test]
fn trap_25_text_and_leader_epoch_come_back() {
    let mut world = World::new();
    let mut request = simple("g", &[("orders", 3, 42)]);
    let row = &mut request.topics[0].partitions[0];
    row.metadata = "caf\u{e9} \u{1f600}".into();
    row.leader_epoch = LeaderEpoch::new(7);
    request.topics[0].topic_id = topic_id(0xabc);
    assert_eq!(world.commit_with(request), [ErrorCode::NONE]);
    for _ in 0..2 {
        let (after, answer) = world.fetch_with(fetch_one("g", "orders", 3));
        assert_eq!(after, Offset::new(1), "what is read is committed");
        let row = &answer.topics[0].partitions[0];
        assert_eq!(row.offset, Offset::new(42));
        assert_eq!(row.leader_epoch, LeaderEpoch::new(7));
        assert_eq!(row.metadata.as_ref(), "caf\u{e9} \u{1f600}");
        world.reload();
    }
}

#[test]
fn trap_26_c_45_null_topics_are_all_and_no_topics_are_none() {
    let mut world = World::new();
    let all = [("orders", 0, 5), ("orders", 1, 6), ("payments", 0, 7)];
    world.commit_with(simple("g", &all));
    let mut expected = Vec::new();
    for (topic, partition, offset) in all {
        expected.push((topic.to_owned(), partition, offset));
    }
    assert_eq!(world.fetch_all("g"), expected);
    let none = OffsetFetchRequest {
        topics: Some(Vec::new()),
        ..fetch_all("g")
    };
    assert_eq!(world.fetch_with(none).1.topics, []);
    // What was never committed, and a group that nobody knows: no error, no offset.
    assert_eq!(world.fetch("g", "orders", 9), -1);
    assert_eq!(world.fetch("unknown", "orders", 0), -1);
    assert_eq!(world.fetch_all("unknown"), []);
}

#[test]
fn c_11_a_commit_of_a_member_and_one_of_a_consumer_without_membership() {
    let mut world = World::new();
    let member = world.member_of("g", &["orders"]);
    assert_eq!(
        world.commit_with(by_member("g", &member, 5)),
        [ErrorCode::NONE]
    );
    assert_eq!(world.fetch("g", "orders", 0), 5);
    // Sarama's commits without a generation, to a group that nobody joined.
    assert_eq!(world.commit("simple", "orders", 0, 8), ErrorCode::NONE);
    assert_eq!(world.fetch("simple", "orders", 0), 8);
    // While there are members, only they commit.
    assert_eq!(
        world.commit("g", "orders", 0, 1),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    assert_eq!(world.fetch("g", "orders", 0), 5);
    // When they are gone, anybody may again: that is how offsets are reset.
    world.leave("g", &member.1);
    assert_eq!(world.commit("g", "orders", 0, 1), ErrorCode::NONE);
    assert_eq!(world.fetch("g", "orders", 0), 1);
}

#[test]
fn go_06_an_old_generation_does_not_commit() {
    let mut world = World::new();
    let old = world.member_of("g", &["orders"]);
    assert_eq!(
        world.commit_with(by_member("g", &old, 5)),
        [ErrorCode::NONE]
    );
    // It joins again: a new generation.
    let request = World::join_request("g", old.1.as_str(), subscription(&["orders", "more"]));
    let joined = world.join(request);
    assert!(joined.generation_id > old.0);
    let completing = (joined.generation_id, joined.member_id.clone());
    // Its assignment is not there yet; the partition may be another's.
    let in_progress = [ErrorCode::REBALANCE_IN_PROGRESS];
    assert_eq!(
        world.commit_with(by_member("g", &completing, 6)),
        in_progress
    );
    world.sync("g", &joined);
    let stale = [ErrorCode::ILLEGAL_GENERATION];
    assert_eq!(world.commit_with(by_member("g", &old, 2)), stale);
    assert_eq!(
        world.commit_with(by_member("g", &completing, 7)),
        [ErrorCode::NONE]
    );
    assert_eq!(world.fetch("g", "orders", 0), 7);
    let stranger = (joined.generation_id, MemberId::new("nobody"));
    let unknown = [ErrorCode::UNKNOWN_MEMBER_ID];
    assert_eq!(world.commit_with(by_member("g", &stranger, 1)), unknown);
}

#[test]
fn commits_while_a_rebalance_is_prepared_are_taken() {
    let mut world = World::new();
    let member = world.member_of("g", &["orders"]);
    let second = World::join_request("g", "", subscription(&["orders"]));
    world.send(GroupRequest::Join(second));
    // The old member still owns its partitions until it joins again.
    assert_eq!(
        world.commit_with(by_member("g", &member, 9)),
        [ErrorCode::NONE]
    );
    assert_eq!(world.fetch("g", "orders", 0), 9);
}

#[test]
fn a_commit_keeps_a_member_alive() {
    let mut world = World::new();
    let member = world.member_of("g", &["orders"]);
    for offset in 0..4 {
        // The session is 30 s.
        world.pass(Millis::new(20_000));
        assert_eq!(
            world.commit_with(by_member("g", &member, offset)),
            [ErrorCode::NONE]
        );
    }
    world.pass(Millis::new(40_000));
    let unknown = [ErrorCode::UNKNOWN_MEMBER_ID];
    assert_eq!(world.commit_with(by_member("g", &member, 9)), unknown);
}

#[test]
fn a_member_of_an_unknown_group_is_told_so_in_words_that_it_knows() {
    let mut world = World::new();
    let nobody = (GenerationId::new(3), MemberId::new("m"));
    let mut request = by_member("gone", &nobody, 1);
    assert_eq!(
        world.commit_with(request.clone()),
        [ErrorCode::GROUP_ID_NOT_FOUND]
    );
    request.knows_member_epochs = false;
    assert_eq!(world.commit_with(request), [ErrorCode::ILLEGAL_GENERATION]);
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn a_static_member_that_was_replaced_does_not_commit() {
    let mut world = World::new();
    let mut request = World::join_request("g", "", subscription(&["orders"]));
    request.instance_id = Some("one".into());
    let first = world.join(request.clone());
    world.sync("g", &first);
    let second = world.join(request);
    assert_ne!(first.member_id, second.member_id);
    let mut commit = by_member("g", &(second.generation_id, first.member_id), 5);
    commit.instance_id = Some("one".into());
    assert_eq!(
        world.commit_with(commit.clone()),
        [ErrorCode::FENCED_INSTANCE_ID]
    );
    commit.instance_id = Some("two".into());
    assert_eq!(world.commit_with(commit), [ErrorCode::UNKNOWN_MEMBER_ID]);
}

#[test]
fn text_that_is_too_long_fails_its_partition_only() {
    let mut world = World::new();
    let row = |partition, text: String| CommitPartition {
        partition: PartitionIndex::new(partition),
        offset: Offset::new(1),
        leader_epoch: LeaderEpoch::NONE,
        metadata: text.into(),
    };
    let most = world.settings.offset_metadata_bytes_max;
    let mut request = simple("g", &[]);
    request.topics = vec![CommitTopic {
        name: name("orders"),
        topic_id: TopicId::ZERO,
        partitions: vec![
            row(0, "x".repeat(most)),
            row(1, "x".repeat(most + 1)),
            // Kafka counts characters, not bytes.
            row(2, "\u{e9}".repeat(most)),
        ],
    }];
    let too_large = ErrorCode::OFFSET_METADATA_TOO_LARGE;
    let errors = world.commit_with(request.clone());
    assert_eq!(errors, [ErrorCode::NONE, too_large, ErrorCode::NONE]);
    assert_eq!(world.fetch("g", "orders", 1), -1);
    // Nothing is left to be committed: no group comes of it.
    request.group_id = "other".into();
    request.topics[0].partitions = vec![row(1, "x".repeat(most + 1))];
    assert_eq!(world.commit_with(request), [too_large]);
    assert_eq!(world.list(), ["g"]);
}

#[test]
fn go_09_a_refused_append_changes_nothing_and_says_so() {
    let mut world = World::new();
    world.commit("g", "orders", 0, 5);
    for (refused, error) in [
        (
            AppendRefused::TooFewInSync,
            ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ),
        (AppendRefused::NotLeader, ErrorCode::NOT_COORDINATOR),
        (AppendRefused::TooLarge, ErrorCode::UNKNOWN_SERVER_ERROR),
    ] {
        world.log.refuse = Some(refused);
        assert_eq!(world.commit("g", "orders", 0, 9), error);
        assert_eq!(world.commit("new", "orders", 0, 9), error);
        assert_eq!(world.fetch("g", "orders", 0), 5);
        assert_eq!(world.list(), ["g"]);
    }
    world.log.refuse = None;
    // A group id that no record can hold.
    let huge = "g".repeat(40_000);
    assert_eq!(
        world.commit(&huge, "orders", 0, 9),
        ErrorCode::UNKNOWN_SERVER_ERROR
    );
    assert_eq!(world.list(), ["g"]);
}

#[test]
fn an_answer_waits_for_the_record_that_it_depends_on() {
    let mut world = World::new();
    let (after, _) = world.commit_after(simple("g", &[("orders", 0, 1), ("orders", 1, 1)]));
    assert_eq!(after, Offset::new(2), "the end of its own batch");
    world.commit("other", "orders", 0, 1);
    assert_eq!(world.fetch_with(fetch_all("g")).0, Offset::new(2));
    assert_eq!(world.fetch_with(fetch_all("other")).0, Offset::new(3));
    // That nothing is there depends on the tombstone that says so.
    world.delete_group("g");
    assert_eq!(world.fetch_with(fetch_all("g")).0, world.log.end());
}

#[test]
fn an_offset_of_an_older_topic_of_the_name_is_not_given() {
    let mut world = World::new();
    let (old, new) = (topic_id(1), topic_id(2));
    let mut request = simple("g", &[("orders", 0, 500)]);
    request.topics[0].topic_id = old;
    world.commit_with(request.clone());
    let asked = |topic_id| OffsetFetchRequest {
        topics: Some(vec![FetchTopic {
            name: name("orders"),
            topic_id,
            partitions: vec![PartitionIndex::new(0)],
        }]),
        ..fetch_all("g")
    };
    let offset = |world: &mut World, id| {
        let (_, answer) = world.fetch_with(asked(id));
        answer.topics[0].partitions[0].offset.raw()
    };
    assert_eq!(offset(&mut world, old), 500);
    assert_eq!(offset(&mut world, new), -1);
    // Who asks by name only gets what the name has, as in Kafka.
    assert_eq!(offset(&mut world, TopicId::ZERO), 500);
    // All offsets: only those of the topic that is there now.
    world.topics.0.insert("orders".to_owned(), new);
    assert_eq!(world.fetch_all("g"), []);
    request.topics[0].topic_id = new;
    request.topics[0].partitions[0].offset = Offset::new(3);
    world.commit_with(request);
    assert_eq!(world.fetch_all("g"), [("orders".to_owned(), 0, 3)]);
    assert_eq!(offset(&mut world, new), 3);
    assert_eq!(offset(&mut world, old), -1);
}

#[test]
fn the_journal_tells_resets_loudly_and_commits_quietly() {
    let mut world = World::new();
    let member = world.member_of("g", &["orders"]);
    world.events.clear();
    world.commit_with(by_member("g", &member, 50));
    world.leave("g", &member.1);
    world.commit("g", "orders", 0, 20);
    let moved: Vec<_> = world
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            GroupEvent::Offsets(moved) => Some(moved.clone()),
            _ => None,
        })
        .collect();
    let [usual, reset] = moved.as_slice() else {
        panic!("{moved:?}");
    };
    assert!(usual.is_usual());
    assert_eq!(usual.cause, OffsetsCause::Committed);
    let OffsetsBy::Client { member_id, .. } = &usual.by else {
        panic!("by {:?}", usual.by);
    };
    assert_eq!(*member_id, member.1);
    assert!(!reset.is_usual());
    let said = "offsets of 1 partitions moved back by client 'client' at /127.0.0.1: \
                orders-0 50 -> 20";
    assert_eq!(reset.to_string(), said);
}

#[test]
fn the_journal_stays_small_whatever_a_commit_holds() {
    let mut world = World::new();
    let rows: Vec<_> = (0..1_000)
        .map(|partition| ("orders", partition, 5))
        .collect();
    world.commit_with(simple("g", &rows));
    let Some((_, GroupEvent::Offsets(moved))) = world.events.last() else {
        panic!("{:?}", world.events.last());
    };
    assert_eq!((moved.partitions, moved.named.len()), (1_000, 8));
}
