//! Many partitions, and many bytes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use highwater_protocol::Response;

use crate::cluster::Cluster;
use crate::pair::assert_same;
use crate::support::batch;

/// Partitions that come and go in thousands cost what they need and no more: a fetch names those
/// that changed.
#[test]
fn thousands_of_partitions_come_are_idle_and_go() {
    let mut it = Cluster::new(2, 2, "");
    let topic = it.topic("t", 3_000, &[1, 2], &[]);
    it.advance(2_000);
    let before = it.frame_bytes;
    it.advance(10_000);
    let idle = it.frame_bytes - before;
    assert!(idle < 40_000, "{idle} bytes in 10 s of nothing");
    for number in (0..3_000).step_by(500) {
        it.produce(1, ("t", number), batch(&["a"]));
    }
    it.advance(1_000);
    for number in (0..3_000).step_by(500) {
        assert_eq!(it.offsets(2, "t", number), [0, 1, 1], "partition {number}");
    }
    it.delete_topic(topic);
    it.advance(1_000);
    let before = it.frame_bytes;
    it.advance(10_000);
    assert_eq!(it.frame_bytes - before, 0, "nobody is followed any more");
}

/// The answer's limit is reached by the first partitions: the others get their turn.
#[test]
fn no_partition_starves_when_answers_are_full() {
    let properties = "replica.fetch.max.bytes=100000\nreplica.fetch.response.max.bytes=300000";
    let mut it = Cluster::new(2, 1, properties);
    let topic = it.topic("t", 10, &[1, 2], &[]);
    it.advance(1_000);
    it.held.insert((2, 1));
    let value = "v".repeat(90_000);
    for _ in 0..10 {
        for number in 0..10 {
            it.produce(1, ("t", number), batch(&[&value]));
        }
    }
    // Which partitions each answer had records of.
    let served = Rc::new(RefCell::new(Vec::new()));
    let answers = Rc::clone(&served);
    it.tamper = Some(Box::new(move |response| {
        let Response::Fetch(fetch) = response else {
            return;
        };
        let rows = fetch.responses.iter().flat_map(|it| &it.partitions);
        let rows = rows.filter(|row| row.records.as_ref().is_some_and(|it| !it.is_empty()));
        let rows: Vec<i32> = rows.map(|row| row.partition_index).collect();
        if !rows.is_empty() {
            answers.borrow_mut().push(rows);
        }
    }));
    let mut ends = Vec::new();
    it.release(2, 1);
    it.advance(1);
    for number in 0..10 {
        ends.push(it.offsets(2, "t", number)[2]);
    }
    assert_eq!(ends, [10; 10]);
    let first: BTreeSet<i32> = served.borrow().iter().take(4).flatten().copied().collect();
    assert_eq!(first.len(), 10, "each in its turn: {:?}", served.borrow());
    // Also when each request is full, for the leader keeps no session.
    it.reset(2, 1);
    it.advance(2_000);
    assert_same(&it, &[1, 2], 10);
    it.delete_topic(topic);
}
