//! Reads of logs that Apache Kafka wrote.

use std::collections::{BTreeMap, BTreeSet};

use highwater_protocol::messages::ListOffsetsResponse;
use highwater_protocol::messages::fetch_response::PartitionData;
use highwater_protocol::messages::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use highwater_records::{Batches, ControlType, DECOMPRESSED_BYTES_MAX};
use highwater_types::ErrorCode;

use crate::world::*;

/// One record as a test needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    offset: i64,
    timestamp: i64,
    producer: i64,
    transactional: bool,
    control: Option<ControlType>,
}

/// The records of an answer from `offset` on. The last batch may be cut.
fn records(partition: &PartitionData, offset: i64) -> Vec<Seen> {
    let bytes = partition.records.clone().unwrap_or_default();
    let mut seen = Vec::new();
    for batch in Batches::new(&bytes) {
        let Ok(batch) = batch else { break };
        let header = *batch.header();
        let control = batch.control_type().expect("a control type");
        let open = batch.open(DECOMPRESSED_BYTES_MAX).expect("whole");
        for record in open.records() {
            let record = record.expect("a record");
            seen.push(Seen {
                offset: record.offset.raw(),
                timestamp: record.timestamp.raw(),
                producer: header.producer_id.raw(),
                transactional: header.attributes.is_transactional(),
                control,
            });
        }
    }
    seen.retain(|it| it.offset >= offset);
    seen
}

/// Reads a partition to its end, as a client would: fetch after fetch.
fn read_all(world: &mut World, topic: &str, partition: i32, committed: bool) -> Vec<Seen> {
    let start = earliest(world, topic, partition);
    let id = world.image.topic_by_name(topic).expect("a topic").id;
    let mut offset = start;
    let mut all = Vec::new();
    loop {
        let mut request = fetch_request(vec![fetch_topic(topic, id, &[(partition, offset)])]);
        request.isolation_level = i8::from(committed);
        request.max_wait_ms = 0;
        let ticket = world.fetch(13, &request);
        let answer = world.fetched(ticket, 13);
        let told = partitions(&answer)[0].clone();
        assert_eq!(
            told.error_code,
            ErrorCode::NONE,
            "{topic}-{partition} at {offset}"
        );
        let mut found = records(&told, offset);
        let Some(last) = found.last().map(|it| it.offset) else {
            return all;
        };
        if committed {
            found = skip_aborted(found, &told);
        }
        all.extend(found);
        offset = last + 1;
    }
}

/// What the Java client does with the list of aborted transactions.
fn skip_aborted(records: Vec<Seen>, told: &PartitionData) -> Vec<Seen> {
    let mut aborted: Vec<(i64, i64)> = told
        .aborted_transactions
        .iter()
        .flatten()
        .map(|it| (it.first_offset, it.producer_id.raw()))
        .collect();
    aborted.sort_unstable();
    let mut open = BTreeSet::new();
    let mut kept = Vec::new();
    for record in records {
        while let Some((first, producer)) = aborted.first().copied() {
            if first > record.offset {
                break;
            }
            open.insert(producer);
            aborted.remove(0);
        }
        match record.control {
            Some(ControlType::Abort) => {
                open.remove(&record.producer);
            }
            Some(_) => {}
            None if record.transactional && open.contains(&record.producer) => {}
            None => kept.push(record),
        }
    }
    kept
}

fn earliest(world: &mut World, topic: &str, partition: i32) -> i64 {
    list(world, topic, partition, -2, 0).1
}

/// Timestamp, offset and leader epoch.
fn list(
    world: &mut World,
    topic: &str,
    partition: i32,
    timestamp: i64,
    isolation_level: i8,
) -> (i64, i64, i32) {
    let request = ListOffsetsRequest {
        replica_id: highwater_types::NodeId::NONE,
        isolation_level,
        topics: vec![ListOffsetsTopic {
            name: topic.to_owned(),
            partitions: vec![ListOffsetsPartition {
                partition_index: partition,
                timestamp,
                ..ListOffsetsPartition::default()
            }],
        }],
        timeout_ms: 0,
    };
    let answer: ListOffsetsResponse = world.ask(11, request);
    let told = &answer.topics[0].partitions[0];
    assert_eq!(
        told.error_code,
        ErrorCode::NONE,
        "{topic}-{partition} at time {timestamp}"
    );
    (told.timestamp, told.offset, told.leader_epoch)
}

fn all_partitions(world: &World) -> Vec<(String, i32)> {
    let partitions = world.image.partitions();
    partitions
        .map(|(topic, index, _)| (topic.name.to_string(), index.raw()))
        .collect()
}

#[test]
fn trap_16_aborted_records_never_reach_a_reader_of_committed_data() {
    for set in ["one-node-clean", "one-node-killed", "one-node-recovered"] {
        let mut world = World::of_kafka(1, set);
        let mut skipped = 0;
        for (topic, partition) in all_partitions(&world) {
            let all = read_all(&mut world, &topic, partition, false);
            let (_, stable_end, _) = list(&mut world, &topic, partition, -1, 1);
            let expected = committed(&all, stable_end);
            let read = read_all(&mut world, &topic, partition, true);
            assert_eq!(read, expected, "{set}: {topic}-{partition}");
            skipped += all.len() - expected.len();
        }
        assert!(skipped > 20, "{set}: there is something to skip: {skipped}");
    }
}

/// What was committed below `stable_end`, found from the markers alone.
fn committed(all: &[Seen], stable_end: i64) -> Vec<Seen> {
    let mut open: BTreeMap<i64, Vec<Seen>> = BTreeMap::new();
    let mut kept = Vec::new();
    for record in all {
        match record.control {
            Some(ControlType::Commit) => {
                kept.append(&mut open.remove(&record.producer).unwrap_or_default());
            }
            Some(_) => drop(open.remove(&record.producer)),
            None if record.transactional => {
                open.entry(record.producer)
                    .or_default()
                    .push(record.clone());
            }
            None => kept.push(record.clone()),
        }
    }
    kept.retain(|it| it.offset < stable_end);
    kept.sort_by_key(|it| it.offset);
    kept
}

#[test]
fn trap_07_times_are_found_inside_of_batches_in_every_log() {
    for shards in 1..=3 {
        let mut world = World::of_kafka(shards, "one-node-clean");
        let mut looked = 0;
        for (topic, partition) in all_partitions(&world) {
            let all = read_all(&mut world, &topic, partition, false);
            let mut times: BTreeSet<i64> = all.iter().map(|it| it.timestamp).collect();
            times.extend(
                times
                    .clone()
                    .into_iter()
                    .flat_map(|time| [time - 1, time + 1]),
            );
            times.extend([0, i64::MAX]);
            for time in times.into_iter().filter(|time| *time >= 0) {
                let expected = all.iter().find(|it| it.timestamp >= time);
                let expected = expected.map_or((-1, -1), |it| (it.timestamp, it.offset));
                let (timestamp, offset, _) = list(&mut world, &topic, partition, time, 0);
                assert_eq!(
                    (timestamp, offset),
                    expected,
                    "{topic}-{partition} at {time}"
                );
                looked += 1;
            }
        }
        assert!(looked > 500, "{looked}");
    }
}

#[test]
fn trap_08_special_timestamps_in_every_log() {
    let mut world = World::of_kafka(2, "one-node-clean");
    for (topic, partition) in all_partitions(&world) {
        let all = read_all(&mut world, &topic, partition, false);
        let end = all.last().map_or(0, |it| it.offset + 1);
        let (time, latest, epoch) = list(&mut world, &topic, partition, -1, 0);
        assert!(latest >= end && time == -1, "{topic}-{partition}");
        let id = world
            .image
            .topic_by_name(&topic)
            .expect("a topic")
            .partitions
            .clone();
        let image = id
            .get(&highwater_types::PartitionIndex::new(partition))
            .expect("there");
        assert_eq!(epoch, image.leader_epoch.raw());
        let (time, offset, _) = list(&mut world, &topic, partition, -2, 0);
        assert_eq!(
            (time, offset),
            (-1, all.first().map_or(latest, |it| it.offset.min(offset)))
        );
        assert_eq!(list(&mut world, &topic, partition, -4, 0).1, offset);
        assert_eq!(list(&mut world, &topic, partition, -5, 0), (-1, -1, -1));
        assert_eq!(list(&mut world, &topic, partition, -6, 0), (-1, -1, -1));
        let greatest = all
            .iter()
            .map(|it| it.timestamp)
            .max()
            .filter(|it| *it >= 0);
        let first = all.iter().find(|it| Some(it.timestamp) == greatest);
        let expected = first.map_or((-1, -1), |it| (it.timestamp, it.offset));
        let (time, offset, _) = list(&mut world, &topic, partition, -3, 0);
        assert_eq!((time, offset), expected, "{topic}-{partition}");
    }
}

#[test]
fn trap_09_and_c_29_the_latest_offset_depends_on_the_isolation_level() {
    // The killed directory has a transaction that hangs.
    let mut world = World::of_kafka(1, "one-node-killed");
    let mut hanging = 0;
    for (topic, partition) in all_partitions(&world) {
        let latest = list(&mut world, &topic, partition, -1, 0).1;
        let stable = list(&mut world, &topic, partition, -1, 1).1;
        assert!(stable <= latest);
        hanging += usize::from(stable < latest);
        // C-29: behind the last data record there may be markers; they are read at once.
        if latest > 0 {
            let id = world.image.topic_by_name(&topic).expect("a topic").id;
            let request = fetch_request(vec![fetch_topic(&topic, id, &[(partition, latest - 1)])]);
            let ticket = world.fetch(13, &request);
            let answer = world.fetched(ticket, 13);
            let found = records(partitions(&answer)[0], latest - 1);
            assert!(found.len() <= 1, "{topic}-{partition}");
        }
    }
    assert!(hanging > 0, "no transaction hangs");
}
