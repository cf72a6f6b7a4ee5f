use highwater_protocol::messages::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use highwater_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use highwater_protocol::messages::{ListOffsetsResponse, OffsetForLeaderEpochResponse};
use highwater_types::{ErrorCode, NodeId, PartitionIndex};

use crate::world::*;

/// A request for `(partition, timestamp)` pairs of topic `t`.
fn list(wanted: &[(i32, i64)]) -> ListOffsetsRequest {
    let partitions = wanted
        .iter()
        .map(|(partition_index, timestamp)| ListOffsetsPartition {
            partition_index: *partition_index,
            timestamp: *timestamp,
            ..ListOffsetsPartition::default()
        });
    ListOffsetsRequest {
        replica_id: NodeId::NONE,
        topics: vec![ListOffsetsTopic {
            name: "t".to_owned(),
            partitions: partitions.collect(),
        }],
        ..ListOffsetsRequest::default()
    }
}

/// The error of a question about the first partition of topic `t`.
pub(crate) fn list_one(world: &mut World, version: i16, timestamp: i64) -> ErrorCode {
    let answer: ListOffsetsResponse = world.ask(version, list(&[(0, timestamp)]));
    answer.topics[0].partitions[0].error_code
}

/// Error, timestamp and offset of each row.
fn rows(answer: &ListOffsetsResponse) -> Vec<(i16, i64, i64)> {
    let rows = answer.topics.iter().flat_map(|topic| &topic.partitions);
    rows.map(|it| (it.error_code.raw(), it.timestamp, it.offset))
        .collect()
}

#[test]
fn c_27_times_that_do_not_rise_within_a_batch() {
    let mut world = World::new(1, "log.message.timestamp.before.max.ms=9223372036854775807");
    world.topic("t", 1);
    world.produce_at("t", 0, &[100, 300, 200, 400], 10);
    for (time, expected) in [
        (200, (300, 1)),
        (201, (300, 1)),
        (400, (400, 3)),
        (401, (-1, -1)),
        (0, (100, 0)),
    ] {
        let answer: ListOffsetsResponse = world.ask(7, list(&[(0, time)]));
        assert_eq!(rows(&answer), [(0, expected.0, expected.1)], "{time}");
    }
}

#[test]
fn trap_06_no_match_is_minus_one_twice() {
    let mut world = World::new(1, "");
    world.topic("t", 1);
    for version in 1..=11 {
        let answer: ListOffsetsResponse = world.ask(version, list(&[(0, 5)]));
        assert_eq!(rows(&answer), [(0, -1, -1)], "v{version}");
    }
}

#[test]
fn trap_10_times_that_fall_from_batch_to_batch() {
    let mut world = World::new(1, "");
    world.topic("t", 1);
    world.produce_at("t", 0, &[500, 501], 10);
    world.produce_at("t", 0, &[100, 101], 10);
    world.produce_at("t", 0, &[600], 10);
    for (time, offset) in [(100, 0), (500, 0), (501, 1), (502, 4), (601, -1)] {
        let answer: ListOffsetsResponse = world.ask(7, list(&[(0, time)]));
        assert_eq!(rows(&answer)[0].2, offset, "{time}");
    }
    let answer: ListOffsetsResponse = world.ask(7, list(&[(0, -3)]));
    assert_eq!(rows(&answer), [(0, 600, 4)]);
}

#[test]
fn trap_08_special_timestamps_come_with_their_versions() {
    let mut world = World::new(1, "");
    world.topic("t", 1);
    world.produce("t", 0, 3, 10);
    for version in 1..=11 {
        for (timestamp, since) in [
            (-1, 1),
            (-2, 1),
            (-3, 7),
            (-4, 8),
            (-5, 9),
            (-6, 11),
            (-7, 99),
        ] {
            let answer: ListOffsetsResponse = world.ask(version, list(&[(0, timestamp)]));
            let error = answer.topics[0].partitions[0].error_code;
            let expected = if version >= since {
                ErrorCode::NONE
            } else {
                ErrorCode::UNSUPPORTED_VERSION
            };
            assert_eq!(error, expected, "v{version}, {timestamp}");
        }
    }
}

#[test]
fn what_cannot_be_asked() {
    let mut world = World::new(2, "");
    world.topic("t", 2);
    let answer: ListOffsetsResponse = world.ask(7, list(&[(0, -1), (1, -1), (0, -2), (9, -1)]));
    let errors: Vec<i16> = rows(&answer).iter().map(|it| it.0).collect();
    let twice = ErrorCode::INVALID_REQUEST.raw();
    assert_eq!(
        errors,
        [twice, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.raw()],
        "one row for what is named twice, as in Kafka"
    );
    let mut request = list(&[(0, -1)]);
    request.topics[0].name = "../x".to_owned();
    let answer: ListOffsetsResponse = world.ask(7, request);
    assert_eq!(
        rows(&answer)[0].0,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.raw()
    );
    let answer: ListOffsetsResponse = world.ask(7, list(&[]));
    assert_eq!(rows(&answer), []);
}

#[test]
fn leader_epochs_are_checked_and_told() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    world.produce("t", 0, 2, 10);
    world.insert_partition("t", id, PartitionIndex::new(0), partition_image(3));
    world.publish(highwater_node::Changed::Everything);
    world.produce("t", 0, 2, 10);
    for (epoch, error) in [(-1, 0), (3, 0), (2, 74), (4, 75)] {
        let mut request = list(&[(0, -1)]);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        let answer: ListOffsetsResponse = world.ask(4, request);
        assert_eq!(rows(&answer)[0].0, error);
        let expected = if error == 0 { 3 } else { -1 };
        assert_eq!(answer.topics[0].partitions[0].leader_epoch, expected);
    }
    let answer: ListOffsetsResponse = world.ask(4, list(&[(0, -2)]));
    assert_eq!(answer.topics[0].partitions[0].leader_epoch, 0);
}

#[test]
fn c_28_many_partitions_in_one_request() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        world.topic("t", 300);
        for partition in (0..300).step_by(7) {
            world.produce("t", partition, 1, 10);
        }
        let wanted: Vec<(i32, i64)> = (0..300).map(|partition| (partition, 0)).collect();
        let answer: ListOffsetsResponse = world.ask(7, list(&wanted));
        for (partition, (error, _, offset)) in rows(&answer).into_iter().enumerate() {
            assert_eq!(error, 0);
            assert_eq!(
                offset,
                if partition % 7 == 0 { 0 } else { -1 },
                "{partition}"
            );
        }
    }
}

#[test]
fn where_epochs_end() {
    for shards in 1..=2 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 1);
        for epoch in [2, 5] {
            world.produce("t", 0, 4, 10);
            let image = partition_image(epoch);
            world.insert_partition("t", id, PartitionIndex::new(0), image);
            world.publish(highwater_node::Changed::Everything);
        }
        world.produce("t", 0, 1, 10);
        let ask = |leader_epoch: i32, current_leader_epoch: i32| OffsetForLeaderEpochRequest {
            topics: vec![OffsetForLeaderTopic {
                topic: "t".to_owned(),
                partitions: vec![OffsetForLeaderPartition {
                    partition: 0,
                    current_leader_epoch,
                    leader_epoch,
                }],
            }],
            ..OffsetForLeaderEpochRequest::default()
        };
        for (asked, epoch, end) in [
            (0, 0, 4),
            (1, 0, 4),
            (2, 2, 8),
            (4, 2, 8),
            (5, 5, 9),
            (6, -1, -1),
            (-1, -1, -1),
        ] {
            for version in 2..=4 {
                let answer: OffsetForLeaderEpochResponse = world.ask(version, ask(asked, -1));
                let told = &answer.topics[0].partitions[0];
                let found = (told.error_code.raw(), told.leader_epoch, told.end_offset);
                assert_eq!(found, (0, epoch, end), "epoch {asked}");
            }
        }
        for (current, error) in [(5, 0), (4, 74), (6, 75)] {
            let answer: OffsetForLeaderEpochResponse = world.ask(4, ask(2, current));
            assert_eq!(answer.topics[0].partitions[0].error_code.raw(), error);
        }
        let mut unknown = ask(0, -1);
        unknown.topics[0].partitions[0].partition = 7;
        let answer: OffsetForLeaderEpochResponse = world.ask(4, unknown);
        let told = &answer.topics[0].partitions[0];
        assert_eq!(
            (told.error_code.raw(), told.leader_epoch, told.end_offset),
            (3, -1, -1)
        );
    }
}
