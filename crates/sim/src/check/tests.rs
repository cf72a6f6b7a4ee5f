//! A checker that cannot fail proves nothing: each invariant is broken once, by hand, and has to be
//! missed by its name.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use highwater_disk::{Disk as _, DiskFile as _, OpenMode};
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_records::{BATCH_HEADER_BYTES, Batch, BatchHeader, ProducerStamp};
use highwater_types::{
    LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicIdPartition, TopicPartition, Uuid,
};

use super::Checker;
use crate::scenario::world_after;
use crate::world::World;
use crate::world::clients::requests::SentBatch;

const NODE: NodeId = NodeId::new(1);
const LOG: &str = "orders-0/00000000000000000000.log";

/// What the checker says of a world, looked at anew; empty when nothing is wrong.
fn complaint(world: &mut World) -> String {
    let checker = std::mem::take(&mut world.checker);
    said(|| {
        let mut checker = checker;
        checker.everything(world);
    })
}

fn said(look: impl FnOnce()) -> String {
    match catch_unwind(AssertUnwindSafe(look)) {
        Ok(()) => String::new(),
        Err(why) => {
            let text = why.downcast_ref::<String>().cloned();
            text.or_else(|| why.downcast_ref::<&str>().map(|it| (*it).to_owned()))
                .unwrap_or_default()
        }
    }
}

#[track_caller]
fn assert_named(said: &str, id: &str) {
    assert!(said.contains(id), "{id} is not in: {said:?}");
}

/// A node that holds two batches of one idempotent producer.
fn two_batches() -> World {
    world_after(
        "# Two batches.\nnode\ntopic orders\n\
         produce orders-0 records=2 pid=7 epoch=0 seq=0\n\
         produce orders-0 records=2 pid=7 epoch=0 seq=2\n",
    )
}

/// The same, with the second batch changed on disk; the checker reads the log from its start.
fn second_batch(change: impl FnOnce(&mut Vec<u8>)) -> World {
    let mut world = two_batches();
    let disk = world.node(NODE).disks[0].clone();
    let bytes = disk.files()[Path::new(LOG)].clone();
    let first = Batch::parse(&bytes).expect("a batch").size_bytes();
    let mut second = bytes[first..].to_vec();
    let before = second.len();
    change(&mut second);
    assert_eq!(second.len(), before, "the log keeps its length");
    let file = disk
        .session()
        .open(Path::new(LOG), OpenMode::Write)
        .expect("there");
    file.write_at(first as u64, &[std::io::IoSlice::new(&second)])
        .expect("memory");
    world.checker.bytes.clear();
    world.checker.last_seen.clear();
    world
}

/// Changes the header of a batch and makes its checksum right.
fn with_header(batch: &mut [u8], change: impl FnOnce(&mut BatchHeader)) {
    let mut header = BatchHeader::parse(batch).expect("a batch");
    change(&mut header);
    let header = header.with_crc_over(&batch[BATCH_HEADER_BYTES..]);
    batch[..BATCH_HEADER_BYTES].copy_from_slice(&header.encode());
}

#[test]
fn nothing_is_missed_where_nothing_is_wrong() {
    assert_eq!(complaint(&mut two_batches()), "");
    assert_eq!(complaint(&mut second_batch(|_| ())), "");
}

#[test]
fn i_08_a_high_watermark_that_fell_is_missed() {
    let mut world = two_batches();
    let seen = world
        .checker
        .last_seen
        .values_mut()
        .next()
        .expect("a replica");
    seen.plant_high_watermark(Offset::new(9));
    assert_named(&complaint(&mut world), "I-08");
}

#[test]
fn i_09_a_read_above_the_high_watermark_is_missed() {
    let mut checker = Checker::default();
    checker.history.high_watermark(id(), Offset::new(3));
    let read = |checker: &mut Checker, high_watermark: i64, offset: i64| {
        let data = PartitionData {
            high_watermark,
            ..PartitionData::default()
        };
        let records = [(Offset::new(offset), b"m0".to_vec())];
        said(|| checker.history.was_read(id(), &data, &records))
    };
    assert_eq!(read(&mut checker, 3, 2), "");
    assert_named(&read(&mut checker, 2, 2), "I-09");
    assert_named(&read(&mut checker, 9, 3), "I-09");
}

#[test]
fn i_10_an_epoch_that_the_cache_does_not_know_is_missed() {
    let mut world = second_batch(|batch| {
        with_header(batch, |header| header.leader_epoch = LeaderEpoch::new(9));
    });
    assert_named(&complaint(&mut world), "I-10");
}

#[test]
fn i_12_an_acknowledgement_before_the_high_watermark_is_missed() {
    let mut checker = Checker::default();
    checker.history.high_watermark(id(), Offset::new(1));
    let batch = sent(&[b"m0", b"m1"]);
    let told = said(|| checker.history.acknowledged(id(), &batch, Offset::ZERO));
    assert_named(&told, "I-12");
}

#[test]
fn i_17_another_value_at_a_told_offset_is_missed() {
    let mut checker = Checker::default();
    checker.history.high_watermark(id(), Offset::new(2));
    checker
        .history
        .acknowledged(id(), &sent(&[b"m0", b"m1"]), Offset::ZERO);
    let data = PartitionData {
        high_watermark: 2,
        ..PartitionData::default()
    };
    let other = [(Offset::new(1), b"m7".to_vec())];
    assert_named(
        &said(|| checker.history.was_read(id(), &data, &other)),
        "I-17",
    );
    let stored = || checker.history.is_stored(id(), Offset::ZERO, b"m9");
    assert_named(&said(stored), "I-17");
    let holds = || checker.history.holds(id(), &[Offset::ZERO].into());
    assert_named(&said(holds), "I-17");
}

#[test]
fn i_18_bytes_that_are_no_batches_and_batches_that_overlap_are_missed() {
    let mut world = second_batch(|batch| *batch.last_mut().expect("bytes") ^= 1);
    assert_named(&complaint(&mut world), "I-18");
    let mut world = second_batch(|batch| {
        with_header(batch, |header| header.base_offset = Offset::new(1));
    });
    assert_named(&complaint(&mut world), "I-18");
    let mut world = second_batch(|batch| {
        with_header(batch, |header| header.base_offset = Offset::new(3));
    });
    assert_named(&complaint(&mut world), "I-18");
}

#[test]
fn i_21_a_sequence_that_comes_twice_is_missed() {
    let mut world = second_batch(|batch| {
        with_header(batch, |header| header.base_sequence = 0);
    });
    assert_named(&complaint(&mut world), "I-21");
}

#[test]
fn i_28_another_run_has_another_trace() {
    let (one, two) = (two_batches(), two_batches());
    assert_eq!(one.trace.hash(), two.trace.hash());
    let other = world_after("# One.\nnode\ntopic orders\nproduce orders-0 records=1\n");
    assert_ne!(one.trace.hash(), other.trace.hash());
}

fn id() -> TopicIdPartition {
    TopicIdPartition {
        topic_id: TopicId::new(Uuid::from_u128(1 << 80)),
        partition: PartitionIndex::new(0),
    }
}

fn sent(values: &[&[u8]]) -> SentBatch {
    SentBatch {
        partition: TopicPartition::parse("orders-0").expect("a partition"),
        topic_id: Uuid::from_u128(1 << 80),
        values: values.iter().map(|it| it.to_vec()).collect(),
        acks: -1,
        stamp: ProducerStamp::NONE,
    }
}
