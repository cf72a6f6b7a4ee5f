//! Offsets that transactions commit, as logs of Kafka have them.

use highwater_coordinator::{OffsetDeleteAnswer, OffsetFetchRequest};
use highwater_types::{ErrorCode, Millis, ProducerId};

use crate::support::{Entry, MemLog, World, fetch_all, fetch_one, settings, simple};

const PRODUCER: ProducerId = ProducerId::new(9);

/// The record that a commit would write.
fn record(group: &str, partition: i32, offset: i64, producer_id: ProducerId) -> Entry {
    let mut world = World::new();
    world.commit(group, "orders", partition, offset);
    match world.log.entries.remove(0) {
        Entry::Record { key, value, .. } => Entry::Record {
            key,
            value,
            producer_id,
        },
        other @ Entry::End { .. } => panic!("{other:?}"),
    }
}

fn end(committed: bool) -> Entry {
    Entry::End {
        producer_id: PRODUCER,
        committed,
    }
}

fn world(entries: Vec<Entry>) -> World {
    let log = MemLog {
        entries,
        ..MemLog::default()
    };
    World::with(settings(), log)
}

fn stable(request: OffsetFetchRequest) -> OffsetFetchRequest {
    OffsetFetchRequest {
        require_stable: true,
        ..request
    }
}

#[test]
fn trap_26_an_open_transaction_makes_its_offsets_unstable() {
    let plain = record("g", 0, 3, ProducerId::NONE);
    let open = record("g", 0, 5, PRODUCER);
    let mut world = world(vec![plain, open, record("g", 1, 7, PRODUCER)]);
    // Who does not ask for stable offsets gets what is committed.
    assert_eq!(world.fetch_all("g"), [("orders".to_owned(), 0, 3)]);
    assert_eq!(world.fetch("g", "orders", 1), -1);
    for partition in [0, 1] {
        let request = stable(fetch_one("g", "orders", partition));
        let (_, answer) = world.fetch_with(request);
        let row = &answer.topics[0].partitions[0];
        assert_eq!(row.error, ErrorCode::UNSTABLE_OFFSET_COMMIT);
        assert_eq!(row.offset.raw(), -1);
    }
    let (_, answer) = world.fetch_with(stable(fetch_all("g")));
    let row = &answer.topics[0].partitions[0];
    assert_eq!(row.error, ErrorCode::UNSTABLE_OFFSET_COMMIT);
    // Another partition is stable.
    let (_, answer) = world.fetch_with(stable(fetch_one("g", "orders", 2)));
    assert_eq!(answer.topics[0].partitions[0].error, ErrorCode::NONE);
}

#[test]
fn the_end_of_a_transaction_commits_its_offsets_or_forgets_them() {
    let entries = vec![
        record("g", 0, 3, ProducerId::NONE),
        record("g", 0, 5, PRODUCER),
        record("only-in-it", 0, 5, PRODUCER),
    ];
    for (committed, offset) in [(true, 5), (false, 3)] {
        let mut entries = entries.clone();
        entries.push(end(committed));
        let mut world = world(entries);
        let (_, answer) = world.fetch_with(stable(fetch_one("g", "orders", 0)));
        let row = &answer.topics[0].partitions[0];
        assert_eq!((row.error, row.offset.raw()), (ErrorCode::NONE, offset));
        let expected: &[&str] = if committed {
            &["g", "only-in-it"]
        } else {
            &["g"]
        };
        assert_eq!(world.list(), expected);
    }
}

#[test]
fn go_04_the_later_record_wins_whenever_its_transaction_ends() {
    let in_transaction = record("g", 0, 50, PRODUCER);
    let plain = record("g", 0, 60, ProducerId::NONE);
    // As it was written, and as it is once the older of the two is cleaned away.
    let mut world_before = world(vec![in_transaction.clone(), plain.clone(), end(true)]);
    assert_eq!(world_before.fetch("g", "orders", 0), 60);
    let mut world_after = world(vec![plain, in_transaction, end(true)]);
    assert_eq!(
        world_after.fetch("g", "orders", 0),
        50,
        "here it is the later one"
    );
}

#[test]
fn a_tombstone_ends_what_a_transaction_would_commit() {
    let open = record("g", 0, 5, PRODUCER);
    let mut world = world(vec![open]);
    let OffsetDeleteAnswer { error, topics } = world.delete_offsets("g", "orders", &[0, 1]);
    assert_eq!((error, topics[0].partitions.len()), (ErrorCode::NONE, 2));
    assert_eq!(world.log.entries.len(), 2, "one tombstone");
    world.log.entries.push(end(true));
    world.reload();
    assert_eq!(world.fetch("g", "orders", 0), -1);
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn trap_35_an_open_transaction_keeps_its_offset_and_its_group() {
    let plain = record("g", 0, 3, ProducerId::NONE);
    let mut world = world(vec![plain, record("g", 0, 5, PRODUCER)]);
    world.age(Millis::new(u64::from(u32::MAX)));
    world.look_for_old_offsets();
    assert_eq!(world.fetch("g", "orders", 0), 3);
    world.log.entries.push(end(true));
    world.reload();
    assert_eq!(world.fetch("g", "orders", 0), 5);
    world.look_for_old_offsets();
    assert_eq!(world.list(), [""; 0], "and then it is as old as any");
}

#[test]
fn a_deleted_group_takes_open_transactions_with_it() {
    let mut world = world(vec![
        record("g", 0, 5, PRODUCER),
        record("g", 1, 5, PRODUCER),
    ]);
    world.commit_with(simple("g", &[("orders", 1, 9)]));
    world.log.batches.clear();
    assert_eq!(world.delete_group("g").error, ErrorCode::NONE);
    assert_eq!(
        world.log.batches,
        [2, 1],
        "a tombstone for each partition, then the group's"
    );
    world.log.entries.push(end(true));
    world.reload();
    assert_eq!(world.list(), [""; 0]);
}

#[test]
fn a_marker_of_a_producer_that_committed_no_offsets_changes_nothing() {
    let mut world = world(vec![
        end(true),
        record("g", 0, 3, ProducerId::NONE),
        end(false),
    ]);
    assert_eq!(world.fetch("g", "orders", 0), 3);
}
