//! Produce through connection, shard, replica and log.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use std::path::Path;

use bytes::Bytes;
use highwater_protocol::ApiKey;
use highwater_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use highwater_protocol::messages::{
    ApiVersionsRequest, MetadataRequest, ProduceRequest, ProduceResponse,
};
use highwater_protocol::wire::Message as _;
use highwater_records::{BatchOptions, Compression, Compressor, ProducerStamp};
use highwater_types::{NodeId, ProducerEpoch, ProducerId, TopicId, Uuid, WallMs};

use support::{World, batch, batch_with, everything, idempotent, never, prepares, syncs};

const T: (&str, i32) = ("t", 0);

fn world() -> World {
    let mut world = World::new();
    world.topic("t", 1, &[]);
    world
}

#[test]
fn appends_get_offsets_one_after_the_other() {
    let mut world = world();
    assert_eq!(world.produce(1, T, batch(&["a", "b"])), (0, 0));
    assert_eq!(world.produce(-1, T, batch(&["c"])), (0, 2));
    assert_eq!(world.offsets("t", 0), [0, 3, 0, 3]);
    assert!(
        world.has_event("append t-0 [0,2) epoch=0"),
        "{:?}",
        world.events
    );
}

/// The outcome of each good and bad request as a running Kafka 4.4 gave it. Rows 27 and 29 are of
/// transactions, which are not served yet; row 14 is a listed difference: codec 7 is answered 76.
#[test]
fn the_captured_produce_cases_have_kafkas_outcomes() {
    let files = highwater_fixtures::wire();
    let text = |path: &str| String::from_utf8(files[Path::new(path)].clone()).expect("text");
    let cases = text("00-Produce-cases/cases.tsv");
    let mut world = World::new();
    // Later than the captured timestamps.
    world.now.wall = WallMs::new(1_900_000_000_000);
    world.topic("__consumer_offsets", 1, &[]);
    let (mut topic_made, mut appended_of_transactions) = (false, 0);
    for line in cases.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [nn, case, version, error, base_offset, ..] = fields.as_slice() else {
            panic!("{line}")
        };
        let path = format!("00-Produce-cases/{nn}-{case}.request.hex");
        let frame = Bytes::from(highwater_fixtures::unhex(&files[Path::new(&path)]));
        let version: i16 = version.trim_start_matches('v').parse().expect("a version");
        if !topic_made {
            let name = topic_of(&frame, version);
            world.topic(&name, 1, &[]);
            topic_made = true;
        }
        let number: i32 = nn.parse().expect("a number");
        let expected: i16 = error
            .split(' ')
            .next()
            .and_then(|it| it.parse().ok())
            .expect("a code");
        let mut expected_offset: i64 = base_offset.parse().expect("an offset");
        if [27, 29].contains(&number) {
            appended_of_transactions += i64::from(expected == 0);
            continue;
        }
        if expected_offset >= 0 {
            expected_offset -= appended_of_transactions;
        }
        let conn = world.connect();
        world.send_frame(conn, frame);
        let body = world
            .receive(conn, ApiKey::Produce, version)
            .expect("an answer");
        let answer = ProduceResponse::from_bytes(&body, version).expect("an answer of Produce");
        let row = &answer.responses[0].partition_responses[0];
        let expected = if number == 14 { 76 } else { expected };
        assert_eq!(
            (row.error_code.raw(), row.base_offset),
            (expected, expected_offset),
            "{line}"
        );
        let path = format!("00-Produce-cases/{nn}-{case}.response.hex");
        let kafkas = Bytes::from(highwater_fixtures::unhex(&files[Path::new(&path)]));
        let kafkas = kafkas.slice(4 + usize::from(version >= 9)..);
        let kafkas = ProduceResponse::from_bytes(&kafkas, version).expect("Kafka's answer");
        let kafkas = &kafkas.responses[0].partition_responses[0];
        assert_eq!(row.log_append_time_ms, kafkas.log_append_time_ms, "{line}");
        // The captured log was trimmed for the rows after the transactions.
        if number < 26 {
            assert_eq!(row.log_start_offset, kafkas.log_start_offset, "{line}");
        }
    }
}

fn topic_of(frame: &Bytes, version: i16) -> String {
    let mut body = frame.clone();
    highwater_protocol::RequestHeader::decode(&mut body).expect("a header");
    ProduceRequest::from_bytes(&body, version)
        .expect("a request")
        .topic_data[0]
        .name
        .clone()
}

#[test]
fn transactional_batches_are_refused_in_words() {
    let mut world = world();
    let producer = ProducerStamp {
        id: ProducerId::new(5),
        epoch: ProducerEpoch::new(0),
        base_sequence: 0,
    };
    let options = BatchOptions {
        producer,
        transactional: true,
        ..BatchOptions::default()
    };
    let records = Some(batch_with(&["a"], options));
    let conn = world.connect();
    for (transactional_id, code) in [(None, 53), (Some("id".to_owned()), 48)] {
        let partition = PartitionProduceData {
            index: 0,
            records: records.clone(),
        };
        let request = ProduceRequest {
            transactional_id,
            acks: -1,
            timeout_ms: 1000,
            topic_data: vec![TopicProduceData {
                name: "t".to_owned(),
                partition_data: vec![partition],
                ..TopicProduceData::default()
            }],
        };
        world.send(
            conn,
            ApiKey::Produce,
            12,
            &request.to_bytes(12).expect("legal"),
        );
        let rows = world.receive_produce(conn).expect("an answer");
        assert_eq!(rows[0].error_code.raw(), code);
        assert!(rows[0].error_message.is_some());
    }
    assert_eq!(world.offsets("t", 0)[3], 0);
}

#[test]
fn pi_01_a_retry_after_a_kill_is_a_duplicate() {
    let mut world = world();
    assert_eq!(world.produce(-1, T, idempotent(7, 0, 0, 5)), (0, 0));
    world.kill();
    world.start();
    assert_eq!(world.produce(-1, T, idempotent(7, 0, 0, 5)), (0, 0));
    assert_eq!(world.offsets("t", 0)[3], 5);
}

#[test]
fn pi_02_five_batches_are_remembered() {
    let mut world = world();
    for sequence in 0..6 {
        assert_eq!(
            world.produce(1, T, idempotent(7, 0, sequence, 1)),
            (0, i64::from(sequence))
        );
    }
    for sequence in 1..6 {
        assert_eq!(
            world.produce(1, T, idempotent(7, 0, sequence, 1)),
            (0, i64::from(sequence))
        );
    }
    let (error, _) = world.produce(1, T, idempotent(7, 0, 0, 1));
    assert!([45, 46].contains(&error), "{error}");
    assert_eq!(world.offsets("t", 0)[3], 6);
}

#[test]
fn pi_06_a_new_epoch_begins_at_sequence_0() {
    let mut world = world();
    assert_eq!(world.produce(1, T, idempotent(7, 0, 0, 10)), (0, 0));
    assert_eq!(world.produce(1, T, idempotent(7, 1, 10, 1)).0, 45);
    assert_eq!(world.produce(1, T, idempotent(7, 1, 0, 1)), (0, 10));
}

#[test]
fn pi_07_an_idle_producer_is_forgotten_and_taken_back() {
    let mut world = World::with(1, 1, "producer.id.expiration.ms=60000\n");
    world.topic("t", 1, &[]);
    assert_eq!(world.produce(1, T, idempotent(7, 0, 0, 7)), (0, 0));
    assert_eq!(
        world.produce(1, T, idempotent(7, 0, 9, 1)).0,
        45,
        "still known"
    );
    world.advance(700_000);
    assert_eq!(
        world.produce(1, T, idempotent(7, 0, 9, 1)),
        (0, 7),
        "unknown: any sequence"
    );
}

#[test]
fn pi_08_sequences_wrap_to_0() {
    let mut world = world();
    assert_eq!(
        world.produce(1, T, idempotent(7, 0, i32::MAX - 1, 1)),
        (0, 0)
    );
    assert_eq!(world.produce(1, T, idempotent(7, 0, i32::MAX, 3)), (0, 1));
    assert_eq!(
        world.produce(1, T, idempotent(7, 0, i32::MAX, 3)),
        (0, 1),
        "a retry"
    );
    assert_eq!(world.produce(1, T, idempotent(7, 0, 2, 1)), (0, 4));
}

#[test]
fn flush_messages_1_answers_acks_all_after_the_flush() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.messages", "1")]);
    world.hold = syncs;
    let conn = world.connect();
    world.send_produce(conn, -1, T, batch(&["a"]));
    world.send_produce(conn, -1, T, batch(&["b"]));
    assert_eq!(world.receive_produce(conn), None);
    assert_eq!(
        world.offsets("t", 0),
        [0, 0, 0, 2],
        "appended, pipelined, not flushed"
    );
    assert_eq!(
        world.held.len(),
        1,
        "one sync serves both, once the log end is looked at again"
    );
    world.release();
    assert_eq!(
        world.receive_produce(conn).expect("the first")[0].base_offset,
        0
    );
    assert_eq!(world.receive_produce(conn), None);
    world.release();
    assert_eq!(
        world.receive_produce(conn).expect("the second")[0].base_offset,
        1
    );
    assert_eq!(world.offsets("t", 0), [0, 2, 2, 2]);
    world.power_off();
    world.start();
    assert_eq!(world.offsets("t", 0)[3], 2, "nothing acknowledged is lost");
}

#[test]
fn a_deduplicated_retry_waits_for_the_high_watermark_too() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.messages", "1")]);
    world.hold = syncs;
    let first = world.connect();
    world.send_produce(first, -1, T, idempotent(7, 0, 0, 2));
    world.disconnect(first);
    let second = world.connect();
    world.send_produce(second, -1, T, idempotent(7, 0, 0, 2));
    assert_eq!(
        world.receive_produce(second),
        None,
        "in the log, but not safe"
    );
    world.release();
    let rows = world.receive_produce(second).expect("an answer");
    assert_eq!((rows[0].error_code.raw(), rows[0].base_offset), (0, 0));
}

#[test]
fn flushed_before_acknowledged_holds_for_acks_1_too() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.messages", "1")]);
    world.hold = syncs;
    let conn = world.connect();
    world.send_produce(conn, 1, T, batch(&["a"]));
    assert_eq!(world.receive_produce(conn), None);
    world.hold = never;
    world.release();
    let rows = world.receive_produce(conn).expect("an answer");
    assert_eq!((rows[0].error_code.raw(), rows[0].base_offset), (0, 0));
}

#[test]
fn re_03_a_wait_ends_at_its_timeout() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.messages", "1")]);
    world.hold = syncs;
    let conn = world.connect();
    world.send_produce_of(conn, -1, 500, &[("t", 0, Some(batch(&["a"])))]);
    world.advance(499);
    assert_eq!(world.receive_produce(conn), None);
    world.advance(1);
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        7
    );
    world.release();
    assert_eq!(world.receive_produce(conn), None, "answered once");
}

#[test]
fn a_waiting_write_fails_when_leadership_is_lost() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[("flush.messages", "1")]);
    world.hold = syncs;
    let conn = world.connect();
    world.send_produce(conn, -1, T, batch(&["a"]));
    // Leader epoch 1 with the same leader keeps the wait; epoch 3 means it was elsewhere.
    world.change(topic, 0, |it| it.leader_epoch = it.leader_epoch.next());
    assert_eq!(world.receive_produce(conn), None);
    world.change(topic, 0, |it| {
        it.leader_epoch = it.leader_epoch.next().next()
    });
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        6
    );
}

#[test]
fn not_the_leader_says_who_is() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.add_broker(NodeId::new(2));
    world.change(topic, 0, |it| {
        it.leader = NodeId::new(2);
        it.leader_epoch = it.leader_epoch.next();
    });
    let conn = world.connect();
    world.send_produce(conn, 1, T, batch(&["a"]));
    let body = world.receive(conn, ApiKey::Produce, 12).expect("an answer");
    let answer = ProduceResponse::from_bytes(&body, 12).expect("an answer of Produce");
    let rows = &answer.responses[0].partition_responses;
    assert_eq!(rows[0].error_code.raw(), 6);
    assert_eq!(rows[0].current_leader.leader_id, NodeId::new(2));
    assert_eq!(rows[0].current_leader.leader_epoch, 1);
    let [endpoint] = answer.node_endpoints.as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!((endpoint.node_id, endpoint.port), (NodeId::new(2), 9092));
}

#[test]
fn a_waiting_write_ends_when_its_topic_is_deleted() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[("flush.messages", "1")]);
    world.hold = syncs;
    let conn = world.connect();
    world.send_produce(conn, -1, T, batch(&["a"]));
    world.delete_topic(topic);
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        3
    );
    world.release();
}

#[test]
fn b_17_a_bad_batch_leaves_the_others_of_its_request_alone() {
    let mut world = World::new();
    world.topic("t", 3, &[]);
    let mut bad = batch(&["b"]).to_vec();
    *bad.last_mut().expect("bytes") ^= 1;
    let conn = world.connect();
    let rows = [
        ("t", 0, Some(batch(&["a"]))),
        ("t", 1, Some(bad.into())),
        ("t", 2, Some(batch(&["c"]))),
    ];
    world.send_produce_of(conn, 1, 1000, &rows);
    let rows = world.receive_produce(conn).expect("an answer");
    let codes: Vec<i16> = rows.iter().map(|row| row.error_code.raw()).collect();
    assert_eq!(codes, [0, 2, 0]);
}

#[test]
fn b_20_null_records_are_answered() {
    let mut world = world();
    let conn = world.connect();
    world.send_produce_of(conn, 1, 1000, &[("t", 0, None)]);
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        87
    );
}

#[test]
fn b_30_acks_7_a_negative_timeout_and_partition_minus_1() {
    // Apache Kafka 4.4 takes a negative time-out as none at all.
    let mut world = world();
    let conn = world.connect();
    let records = Some(batch(&["a"]));
    world.send_produce_of(conn, 7, 1000, &[("t", 0, records.clone())]);
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        21
    );
    world.send_produce_of(conn, 1, -5, &[("t", 0, records.clone())]);
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        0
    );
    // Records that are no batch are told before acks that are none.
    let cut = records.as_ref().map(|it: &Bytes| it.slice(..30));
    world.send_produce_of(conn, 7, 1000, &[("t", 0, cut)]);
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        87
    );
    world.send_produce_of(conn, 1, 1000, &[("t", -1, records)]);
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        3
    );
    assert_eq!(world.offsets("t", 0)[3], 1, "nothing else was appended");
}

#[test]
fn b_15_topic_names_and_ids_that_are_none() {
    let mut world = world();
    let long = "x".repeat(300);
    for name in ["..", "a/b", "nul\0", "", long.as_str()] {
        assert_eq!(
            world.produce(1, (name, 0), batch(&["a"])),
            (3, -1),
            "{name:?}"
        );
    }
    for (id, code) in [(Uuid::ZERO, 100), (Uuid::from_u128(1 << 90), 100)] {
        assert_eq!(produce_by_id(&mut world, id), (code, -1));
    }
    let id = world.image.topic_by_name("t").expect("made").id;
    assert_eq!(produce_by_id(&mut world, TopicId::uuid(id)), (0, 0));
}

fn produce_by_id(world: &mut World, topic_id: Uuid) -> (i16, i64) {
    let partition = PartitionProduceData {
        index: 0,
        records: Some(batch(&["a"])),
    };
    let topic = TopicProduceData {
        topic_id,
        partition_data: vec![partition],
        ..TopicProduceData::default()
    };
    let request = ProduceRequest {
        acks: 1,
        timeout_ms: 1000,
        topic_data: vec![topic],
        ..ProduceRequest::default()
    };
    let conn = world.connect();
    world.send(
        conn,
        ApiKey::Produce,
        13,
        &request.to_bytes(13).expect("legal"),
    );
    let body = world.receive(conn, ApiKey::Produce, 13).expect("an answer");
    let answer = ProduceResponse::from_bytes(&body, 13).expect("an answer of Produce");
    assert_eq!(answer.responses[0].topic_id, topic_id);
    let row = &answer.responses[0].partition_responses[0];
    (row.error_code.raw(), row.base_offset)
}

#[test]
fn trap_37_max_message_bytes_and_keys_of_compacted_topics() {
    let mut world = World::new();
    world.topic("small", 1, &[("max.message.bytes", "200")]);
    let long = "x".repeat(300);
    assert_eq!(world.produce(1, ("small", 0), batch(&[&long])).0, 10);
    assert_eq!(world.produce(1, ("small", 0), batch(&["fits"])), (0, 0));
    world.topic("compact", 1, &[("cleanup.policy", "compact")]);
    let conn = world.connect();
    world.send_produce(conn, 1, ("compact", 0), batch(&["a", "b"]));
    let rows = world.receive_produce(conn).expect("an answer");
    assert_eq!(rows[0].error_code.raw(), 87);
    assert_eq!(
        rows[0].record_errors.len(),
        2,
        "each record is named (KIP-467)"
    );
    assert_eq!(rows[0].record_errors[1].batch_index, 1);
    assert!(rows[0].error_message.is_some());
}

#[test]
fn log_append_time_is_the_brokers_and_told() {
    let mut world = World::new();
    world.topic("t", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let conn = world.connect();
    world.send_produce(conn, 1, T, batch(&["a"]));
    let rows = world.receive_produce(conn).expect("an answer");
    assert_eq!(rows[0].log_append_time_ms, world.now.wall.raw());
    assert_eq!(rows[0].log_start_offset, 0);
}

#[test]
fn b_29_timestamps_are_judged() {
    let mut world = World::new();
    world.topic("t", 1, &[("message.timestamp.before.max.ms", "1000")]);
    world.advance(2_000);
    assert_eq!(world.produce(1, T, batch(&["a"])).0, 32);
}

#[test]
fn c_14_acks_0_gets_no_answer_and_an_error_closes() {
    let mut world = world();
    let conn = world.connect();
    world.send_produce_of(conn, 0, 1000, &[]);
    world.send_produce(conn, 0, T, batch(&["a"]));
    assert_eq!(world.receive_frame(conn), None);
    world.send_produce(conn, 1, T, batch(&["b"]));
    assert_eq!(
        world.receive_produce(conn).expect("still usable")[0].base_offset,
        1
    );
    world.send_produce(conn, 0, ("nope", 0), batch(&["a"]));
    assert_eq!(world.receive_frame(conn), None);
    assert!(world.is_closed(conn));
    let conn = world.connect();
    let mut bad = batch(&["b"]).to_vec();
    *bad.last_mut().expect("bytes") ^= 1;
    world.send_produce(conn, 0, T, bad.into());
    assert!(world.is_closed(conn));
}

#[test]
fn ih_12_below_the_minimum_isr_acks_all_is_refused() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[("min.insync.replicas", "2")]);
    world.change(topic, 0, |it| it.assigned_replicas.push(NodeId::new(2)));
    assert_eq!(world.produce(-1, T, batch(&["a"])), (19, -1));
    assert_eq!(world.produce(1, T, batch(&["a"])), (0, 0));
    assert_eq!(world.offsets("t", 0), [0, 0, 0, 1], "written, not readable");
}

#[test]
fn a_request_over_many_partitions_and_shards_is_joined() {
    for shards in 1..=3 {
        let mut world = World::with(shards, 1, "");
        world.topic("t", 50, &[]);
        let conn = world.connect();
        let rows: Vec<_> = (0..50)
            .map(|number| ("t", number, Some(batch(&["a", "b"]))))
            .collect();
        world.send_produce_of(conn, -1, 1000, &rows);
        world.send_produce_of(conn, -1, 1000, &rows);
        for expected in [0, 2] {
            let rows = world.receive_produce(conn).expect("an answer");
            assert_eq!(rows.len(), 50);
            for (row, number) in rows.iter().zip(0..) {
                assert_eq!((row.index, row.error_code.raw()), (number, 0));
                assert_eq!(row.base_offset, expected);
            }
        }
    }
}

#[test]
fn waits_on_several_shards_are_joined_admitted_and_cancelled() {
    let mut world = World::with(3, 1, "");
    world.topic("t", 9, &[("flush.messages", "1")]);
    world.hold = syncs;
    let conn = world.connect();
    let rows: Vec<_> = (0..9)
        .map(|number| ("t", number, Some(batch(&["a"]))))
        .collect();
    world.send_produce_of(conn, -1, 1000, &rows);
    assert!(world.has_event("admitted 0"), "{:?}", world.events);
    assert_eq!(world.receive_produce(conn), None);
    world.release();
    assert_eq!(world.receive_produce(conn).expect("an answer").len(), 9);
    world.send_produce_of(conn, -1, 1000, &rows);
    world.disconnect(conn);
    for shard in &world.shards {
        assert_eq!(
            shard.produce_waiting_count(),
            0,
            "nobody waits for a closed connection"
        );
    }
    world.release();
}

#[test]
fn a_big_compressed_batch_is_validated_in_a_job_and_keeps_its_place() {
    let mut world = World::new();
    world.topic("t", 2, &[("max.message.bytes", "10000000")]);
    world.hold = prepares;
    let big = "x".repeat(3 << 20);
    let options = BatchOptions {
        compressor: Compressor::new(Compression::Gzip),
        ..BatchOptions::default()
    };
    let conn = world.connect();
    world.send_produce(conn, 1, T, batch_with(&[&big], options));
    world.send_produce(conn, 1, T, batch(&["after"]));
    assert_eq!(
        world.offsets("t", 0)[3],
        0,
        "not admitted: the next does not overtake"
    );
    let other = world.connect();
    world.send_produce(other, 1, ("t", 1), batch(&["other"]));
    assert!(
        world.receive_produce(other).is_some(),
        "other connections go on"
    );
    world.release();
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0].base_offset,
        0
    );
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0].base_offset,
        1
    );
}

#[test]
fn compression_type_of_a_topic_is_applied() {
    let mut world = World::new();
    world.topic("t", 1, &[("compression.type", "gzip")]);
    let text = "x".repeat(10_000);
    assert_eq!(world.produce(-1, T, batch(&[&text, &text])), (0, 0));
    let id = world.id("t", 0);
    let online = world.shards[0]
        .partitions()
        .find(id)
        .expect("owned")
        .online()
        .expect("online");
    assert!(online.log().size_bytes() < 1000);
}

#[test]
fn appends_to_a_new_partition_wait_until_its_log_is_made() {
    let mut world = World::new();
    world.hold = everything;
    world.topic("t", 1, &[]);
    let conn = world.connect();
    world.send_produce(conn, 1, T, batch(&["a"]));
    assert_eq!(world.receive_produce(conn), None);
    world.hold = never;
    world.release();
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0].base_offset,
        0
    );
}

/// NP-05 against the shard: 50 pipelined requests of many kinds, some of them slow.
#[test]
fn np_05_fifty_mixed_requests_are_answered_in_order() {
    for shards in 1..=3 {
        let mut world = World::with(shards, 1, "");
        world.topic("t", 4, &[("flush.messages", "1")]);
        world.hold = syncs;
        let conn = world.connect();
        for number in 0..50 {
            match number % 5 {
                0 | 1 => world.send_produce(conn, -1, ("t", number % 4), batch(&["a"])),
                2 => world.send_produce(conn, 1, ("t", 0), batch(&["b"])),
                3 => {
                    let body = MetadataRequest::default().to_bytes(9).expect("legal");
                    world.send(conn, ApiKey::Metadata, 9, &body);
                }
                _ => {
                    let body = ApiVersionsRequest::default().to_bytes(0).expect("legal");
                    world.send(conn, ApiKey::ApiVersions, 0, &body);
                }
            }
        }
        let mut answered = Vec::new();
        for _ in 0..100 {
            while let Some(frame) = world.receive_frame(conn) {
                let id = frame.first_chunk::<4>().expect("a correlation id");
                answered.push(i32::from_be_bytes(*id));
            }
            world.release();
        }
        assert_eq!(answered, (1..=50).collect::<Vec<_>>());
    }
}
