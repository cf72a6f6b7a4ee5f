use highwater_types::ErrorCode;

use crate::world::*;

#[test]
fn trap_11_a_fetch_in_the_middle_of_a_batch_gets_the_whole_batch() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    world.produce("t", 0, 5, 10);
    world.produce("t", 0, 5, 10);
    let whole = world.fetch_now(13, &fetch_request(vec![fetch_topic("t", id, &[(0, 0)])]));
    let middle = world.fetch_now(13, &fetch_request(vec![fetch_topic("t", id, &[(0, 3)])]));
    assert_eq!(
        partitions(&whole)[0].records,
        partitions(&middle)[0].records
    );
    assert!(record_bytes(partitions(&middle)[0]) > 0);
    assert_eq!(partitions(&middle)[0].high_watermark, 10);
}

#[test]
fn trap_12_no_other_replica_is_preferred() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    world.produce("t", 0, 1, 10);
    let answer = world.fetch_now(18, &fetch_request(vec![fetch_topic("t", id, &[(0, 0)])]));
    assert_eq!(partitions(&answer)[0].preferred_read_replica.raw(), -1);
}

#[test]
fn trap_13_an_empty_fetch_is_answered_at_max_wait() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 3);
        let wanted = fetch_topic("t", id, &[(0, 0), (1, 0), (2, 0)]);
        let ticket = world.fetch(13, &fetch_request(vec![wanted]));
        assert!(!world.is_answered(ticket));
        world.advance(499);
        assert!(!world.is_answered(ticket));
        world.advance(1);
        let answer = world.fetched(ticket, 13);
        assert_eq!(partitions(&answer).len(), 3);
        assert!(
            partitions(&answer)
                .iter()
                .all(|it| it.error_code == ErrorCode::NONE)
        );
    }
}

#[test]
fn a_parked_fetch_wakes_when_something_is_readable() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 4);
        for partition in 0..4 {
            let wanted = fetch_topic("t", id, &[(0, 0), (1, 0), (2, 0), (3, 0)]);
            let mut request = fetch_request(vec![wanted]);
            for it in &mut request.topics[0].partitions {
                it.fetch_offset = i64::from(it.partition < partition);
            }
            let ticket = world.fetch(13, &request);
            assert!(
                !world.is_answered(ticket),
                "{shards} shards, partition {partition}"
            );
            world.produce("t", partition, 1, 10);
            let answer = world.fetched(ticket, 13);
            let with_records = partitions(&answer)
                .into_iter()
                .filter(|it| record_bytes(it) > 0);
            let found: Vec<i32> = with_records.map(|it| it.partition_index).collect();
            assert_eq!(found, [partition]);
        }
    }
}

#[test]
fn a_parked_fetch_waits_for_its_min_bytes() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 2);
        let mut request = fetch_request(vec![fetch_topic("t", id, &[(0, 0), (1, 0)])]);
        request.min_bytes = 1_000;
        request.max_wait_ms = 60_000;
        let ticket = world.fetch(13, &request);
        for _ in 0..3 {
            world.produce("t", 0, 1, 200);
            assert!(!world.is_answered(ticket), "{shards} shards");
        }
        world.produce("t", 1, 1, 400);
        let answer = world.fetched(ticket, 13);
        let bytes: Vec<usize> = partitions(&answer).into_iter().map(record_bytes).collect();
        assert!(bytes[0] > 600 && bytes[1] > 400, "{bytes:?}");
    }
}

#[test]
fn idle_parked_fetches_cost_nothing() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    world.topic("busy", 1);
    let mut request = fetch_request(vec![fetch_topic("t", id, &[(0, 0)])]);
    request.max_wait_ms = 3_600_000;
    for conn in 0..100 {
        world.fetch_on(0, conn, 13, &request);
    }
    let before = world.steps;
    world.advance(4_000);
    assert_eq!(world.steps, before, "no tick while nothing is due");
    world.produce("busy", 0, 1, 10);
    assert!(world.answers.is_empty());
    world.produce("t", 0, 1, 10);
    assert_eq!(world.answers.len(), 100);
}

#[test]
fn a_closed_connection_takes_its_parked_fetch_with_it() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 3);
        let wanted = fetch_topic("t", id, &[(0, 0), (1, 0), (2, 0)]);
        world.fetch_on(0, 7, 13, &fetch_request(vec![wanted]));
        world.step(0, highwater_node::Input::Closed(highwater_node::ConnId(7)));
        world.produce("t", 0, 1, 10);
        world.advance(600);
        assert!(world.answers.is_empty());
    }
}

#[test]
fn b_43_limits_and_offsets_that_make_no_sense() {
    let mut world = World::new(1, "fetch.max.bytes=2000");
    let id = world.topic("t", 3);
    for partition in 0..3 {
        world.produce("t", partition, 1, 900);
        world.produce("t", partition, 1, 900);
    }
    // The broker's own limit holds whatever the client asks for.
    let mut request = fetch_request(vec![fetch_topic("t", id, &[(0, 0), (1, 0), (2, 0)])]);
    request.max_bytes = i32::MAX;
    request.topics[0]
        .partitions
        .iter_mut()
        .for_each(|it| it.partition_max_bytes = i32::MAX);
    let answer = world.fetch_now(13, &request);
    let bytes: usize = partitions(&answer).into_iter().map(record_bytes).sum();
    assert!((900..=2_000).contains(&bytes), "{bytes}");
    // Not even one byte asked for: still one batch, or nobody would get on.
    for max_bytes in [0, -1, i32::MIN] {
        request.max_bytes = max_bytes;
        let answer = world.fetch_now(13, &request);
        let bytes: Vec<usize> = partitions(&answer).into_iter().map(record_bytes).collect();
        assert!(bytes[0] > 900 && bytes[0] < 1_100, "{bytes:?}");
        assert_eq!(bytes[1..], [0, 0]);
    }
    for offset in [-5, 3, i64::MAX, i64::MIN] {
        let answer = world.fetch_now(
            13,
            &fetch_request(vec![fetch_topic("t", id, &[(0, offset)])]),
        );
        assert_eq!(
            partitions(&answer)[0].error_code,
            ErrorCode::OFFSET_OUT_OF_RANGE,
            "{offset}"
        );
        assert_eq!(partitions(&answer)[0].high_watermark, -1);
        assert_eq!(partitions(&answer)[0].aborted_transactions, None);
    }
}

#[test]
fn c_18_max_bytes_1_brings_one_batch_of_the_first_partition_with_data() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 5);
        for partition in 1..5 {
            world.produce("t", partition, 1, 100);
        }
        let wanted: Vec<(i32, i64)> = (0..5).map(|partition| (partition, 0)).collect();
        let mut request = fetch_request(vec![fetch_topic("t", id, &wanted)]);
        request.max_bytes = 1;
        let answer = world.fetch_now(13, &request);
        let bytes: Vec<usize> = partitions(&answer).into_iter().map(record_bytes).collect();
        assert_eq!(
            bytes.iter().filter(|it| **it > 0).count(),
            1,
            "{shards} shards: {bytes:?}"
        );
        assert!(bytes[1] > 100, "{shards} shards: {bytes:?}");
    }
}

#[test]
fn leader_epochs_of_the_client_are_checked() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    world.insert_partition(
        "t",
        id,
        highwater_types::PartitionIndex::new(0),
        partition_image(4),
    );
    world.publish(highwater_node::Changed::Everything);
    world.produce("t", 0, 1, 10);
    let mut request = fetch_request(vec![fetch_topic("t", id, &[(0, 0)])]);
    for (epoch, error) in [
        (-1, ErrorCode::NONE),
        (4, ErrorCode::NONE),
        (3, ErrorCode::FENCED_LEADER_EPOCH),
        (5, ErrorCode::UNKNOWN_LEADER_EPOCH),
    ] {
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        let answer = world.fetch_now(16, &request);
        let partition = partitions(&answer)[0];
        assert_eq!(partition.error_code, error, "{epoch}");
        // Kafka 4.4 tells the leader from v16 on, though v12 has the field.
        for version in 12..16 {
            let answer = world.fetch_now(version, &request);
            let partition = partitions(&answer)[0];
            assert_eq!(partition.error_code, error, "v{version}");
            assert_eq!(partition.current_leader.leader_id.raw(), -1, "v{version}");
        }
        // KIP-951: who is told that the epoch is old learns the new one, and where the leader is.
        if error == ErrorCode::FENCED_LEADER_EPOCH {
            assert_eq!(partition.current_leader.leader_id.raw(), 1);
            assert_eq!(partition.current_leader.leader_epoch, 4);
            assert_eq!(answer.node_endpoints.len(), 1);
            assert_eq!(answer.node_endpoints[0].port, 9092);
        }
    }
}

#[test]
fn trap_14_a_client_of_another_history_is_told_where_it_parted() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    let partition = highwater_types::PartitionIndex::new(0);
    world.produce("t", 0, 3, 10);
    world.insert_partition("t", id, partition, partition_image(2));
    world.publish(highwater_node::Changed::Everything);
    world.produce("t", 0, 3, 10);
    let mut request = fetch_request(vec![fetch_topic("t", id, &[(0, 5)])]);
    request.topics[0].partitions[0].last_fetched_epoch = 0;
    let answer = world.fetch_now(12, &request);
    let told = partitions(&answer)[0];
    assert_eq!(
        (told.diverging_epoch.epoch, told.diverging_epoch.end_offset),
        (0, 3)
    );
    assert_eq!(record_bytes(told), 0);
    assert_eq!(told.error_code, ErrorCode::NONE);
    // An epoch that the leader never had.
    request.topics[0].partitions[0].last_fetched_epoch = 1;
    let answer = world.fetch_now(12, &request);
    assert_eq!(partitions(&answer)[0].diverging_epoch.end_offset, 3);
    // The same history.
    request.topics[0].partitions[0].last_fetched_epoch = 2;
    let answer = world.fetch_now(12, &request);
    assert_eq!(partitions(&answer)[0].diverging_epoch.end_offset, -1);
    assert!(record_bytes(partitions(&answer)[0]) > 0);
    // An epoch from the future.
    request.topics[0].partitions[0].last_fetched_epoch = 9;
    let answer = world.fetch_now(12, &request);
    assert_eq!(
        partitions(&answer)[0].error_code,
        ErrorCode::OFFSET_OUT_OF_RANGE
    );
}

#[test]
fn what_the_metadata_does_not_know() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    let other = topic_id("other");
    let by_id = world.fetch_now(13, &fetch_request(vec![fetch_topic("", other, &[(0, 0)])]));
    assert_eq!(
        partitions(&by_id)[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_ID
    );
    assert_eq!(partitions(&by_id)[0].aborted_transactions, Some(Vec::new()));
    let by_id = world.fetch_now(13, &fetch_request(vec![fetch_topic("", id, &[(1, 0)])]));
    assert_eq!(
        partitions(&by_id)[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    for name in ["other", "..", "a/b", "nul\0", ""] {
        let by_name = world.fetch_now(12, &fetch_request(vec![fetch_topic(name, id, &[(0, 0)])]));
        let error = partitions(&by_name)[0].error_code;
        assert_eq!(error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "{name:?}");
    }
}

#[test]
fn np_01_a_client_that_claims_to_be_a_replica_changes_nothing() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    world.produce("t", 0, 3, 10);
    for replica in [1, 2, 77] {
        let mut request = fetch_request(vec![fetch_topic("t", id, &[(0, 3)])]);
        request.replica_id = highwater_types::NodeId::new(replica);
        request.max_wait_ms = 0;
        let answer = world.fetch_now(13, &request);
        assert_eq!(
            partitions(&answer)[0].error_code,
            ErrorCode::NOT_LEADER_OR_FOLLOWER
        );
        request.topics[0].partitions[0].current_leader_epoch = 0;
        let answer = world.fetch_now(13, &request);
        assert_eq!(
            partitions(&answer)[0].error_code,
            ErrorCode::UNKNOWN_LEADER_EPOCH
        );
    }
}

#[test]
fn a_deleted_topic_completes_the_fetches_that_wait_for_it() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 2);
        let ticket = world.fetch(
            13,
            &fetch_request(vec![fetch_topic("t", id, &[(0, 0), (1, 0)])]),
        );
        let by_name = world.fetch(
            12,
            &fetch_request(vec![fetch_topic("t", id, &[(0, 0), (1, 0)])]),
        );
        assert!(!world.is_answered(ticket) && !world.is_answered(by_name));
        world.remove_topic("t");
        let answer = world.fetched(ticket, 13);
        assert_eq!(
            partitions(&answer)[0].error_code,
            ErrorCode::UNKNOWN_TOPIC_ID
        );
        let answer = world.fetched(by_name, 12);
        let error = partitions(&answer)[0].error_code;
        assert_eq!(error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
}

#[test]
fn rt_14_records_high_watermark_and_log_start_are_of_one_moment() {
    let mut world = World::new(3, "");
    let id = world.topic("t", 6);
    for partition in 0..6 {
        world.produce("t", partition, 1, 10);
    }
    let wanted: Vec<(i32, i64)> = (0..6).map(|partition| (partition, 0)).collect();
    world.hold_parts = true;
    let ticket = world.fetch(13, &fetch_request(vec![fetch_topic("t", id, &wanted)]));
    assert!(!world.is_answered(ticket));
    world.release_parts();
    let answer = world.fetched(ticket, 13);
    for partition in partitions(&answer) {
        assert_eq!(partition.high_watermark, 1);
        assert!(record_bytes(partition) > 0);
    }
    let order: Vec<i32> = partitions(&answer)
        .iter()
        .map(|it| it.partition_index)
        .collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_change_while_other_shards_are_asked_is_not_lost() {
    let mut world = World::new(3, "");
    let id = world.topic("t", 6);
    let wanted: Vec<(i32, i64)> = (0..6).map(|partition| (partition, 0)).collect();
    world.hold_parts = true;
    let ticket = world.fetch(13, &fetch_request(vec![fetch_topic("t", id, &wanted)]));
    let held = std::mem::take(&mut world.held_parts);
    world.hold_parts = false;
    // Every partition gets records while the questions are under way; those of the home shard
    // were read before.
    for partition in 0..6 {
        world.produce("t", partition, 1, 10);
    }
    for (to, from, part) in held {
        world.step(usize::from(to), highwater_node::Input::Part { from, part });
    }
    let answer = world.fetched(ticket, 13);
    assert!(partitions(&answer).iter().any(|it| record_bytes(it) > 0));
}

#[test]
fn flush_messages_holds_back_what_is_readable() {
    let mut world = World::new(1, "log.flush.interval.messages=1");
    let id = world.topic("t", 1);
    let ticket = world.fetch(13, &fetch_request(vec![fetch_topic("t", id, &[(0, 0)])]));
    world.hold_jobs = true;
    let produced = world.send_batch("t", 0, &[1, 2, 3], 10);
    assert!(!world.is_answered(ticket), "nothing is flushed yet");
    assert!(!world.is_answered(produced));
    world.release_jobs();
    assert!(world.is_answered(produced));
    let answer = world.fetched(ticket, 13);
    assert_eq!(partitions(&answer)[0].high_watermark, 3);
    assert!(record_bytes(partitions(&answer)[0]) > 0);
}

#[test]
fn kip_207_a_new_leader_that_lags_does_not_tell_the_latest_offset() {
    let mut world = World::new(1, "log.flush.interval.messages=1");
    let id = world.topic("t", 1);
    world.produce_at("t", 0, &[100], 10);
    world.hold_jobs = true;
    world.send_batch("t", 0, &[200], 10);
    // The epoch begins at the log end, above the high watermark.
    let partition = highwater_types::PartitionIndex::new(0);
    world.insert_partition("t", id, partition, partition_image(1));
    world.publish(highwater_node::Changed::Everything);
    world.hold_jobs = false;
    for (version, error) in [
        (4, ErrorCode::LEADER_NOT_AVAILABLE),
        (5, ErrorCode::OFFSET_NOT_AVAILABLE),
    ] {
        for (timestamp, error) in [
            (-1, error),
            (150, error),
            (300, error),
            (50, ErrorCode::NONE),
            (-2, ErrorCode::NONE),
        ] {
            let told = crate::look_ups::list_one(&mut world, version, timestamp);
            assert_eq!(told, error, "v{version}, {timestamp}");
        }
    }
    world.release_jobs();
    let told = crate::look_ups::list_one(&mut world, 5, -1);
    assert_eq!(told, ErrorCode::NONE);
}

#[test]
fn a_read_that_starts_in_damage_is_refused_and_its_neighbours_are_not() {
    let mut damaged = 0..0;
    let mut world = World::of_kafka_with(1, "one-node-clean", |files| {
        let path = std::path::Path::new("plain-0/00000000000000000000.log");
        let log = files.get_mut(path).expect("the first segment");
        let spots: Vec<(usize, i64, i64)> = {
            let mut position = 0;
            highwater_records::Batches::new(log)
                .map(|batch| {
                    let batch = batch.expect("a batch");
                    let header = batch.header();
                    let spot = (
                        position,
                        header.base_offset.raw(),
                        header.next_offset().raw(),
                    );
                    position += batch.size_bytes();
                    spot
                })
                .collect()
        };
        let (position, from, to) = spots[spots.len() / 2];
        damaged = from..to;
        log[position..position + 20].fill(0xff);
    });
    let id = world.image.topic_by_name("plain").expect("a topic").id;
    let at = |world: &mut World, offset: i64| {
        let mut request = fetch_request(vec![fetch_topic("plain", id, &[(0, offset)])]);
        request.max_wait_ms = 0;
        let answer = world.fetch_now(13, &request);
        let told = partitions(&answer)[0];
        (told.error_code, record_bytes(told) > 0)
    };
    assert_eq!(at(&mut world, 0), (ErrorCode::NONE, true));
    assert_eq!(
        at(&mut world, damaged.start),
        (ErrorCode::CORRUPT_MESSAGE, false)
    );
    assert_eq!(
        at(&mut world, damaged.end - 1),
        (ErrorCode::CORRUPT_MESSAGE, false)
    );
    assert_eq!(at(&mut world, 83), (ErrorCode::NONE, true));
}

#[test]
fn a_lost_leadership_completes_parked_fetches_and_names_the_new_leader() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 2);
        let mut brokers = (*world.image.brokers).clone();
        let second = highwater_types::NodeId::new(2);
        brokers.insert(second, std::sync::Arc::new(broker(2, 9093)));
        world.image.brokers = std::sync::Arc::new(brokers);
        let mut knows = fetch_request(vec![fetch_topic("t", id, &[(0, 0), (1, 0)])]);
        for partition in &mut knows.topics[0].partitions {
            partition.current_leader_epoch = 0;
        }
        let plain = fetch_request(vec![fetch_topic("t", id, &[(0, 0), (1, 0)])]);
        let (newest, old) = (world.fetch(17, &knows), world.fetch(10, &plain));
        // Versions 11 and later may read from a follower (KIP-392).
        let content = world.fetch(17, &plain);
        let waiting = [newest, old, content];
        assert!(waiting.iter().all(|it| !world.is_answered(*it)));
        let mut image = partition_image(3);
        image.leader = second;
        image.assigned_replicas.push(second);
        image.in_sync_replicas.push(second);
        image
            .directories
            .push(highwater_types::DirectoryId::UNASSIGNED);
        let partition = highwater_types::PartitionIndex::new(1);
        world.insert_partition("t", id, partition, image);
        world.publish(highwater_node::Changed::Everything);
        let answer = world.fetched(newest, 17);
        let told = partitions(&answer);
        assert_eq!(told[0].error_code, ErrorCode::NONE);
        assert_eq!(told[1].error_code, ErrorCode::FENCED_LEADER_EPOCH);
        assert_eq!(told[1].current_leader.leader_id, second);
        assert_eq!(told[1].current_leader.leader_epoch, 3);
        let endpoints: Vec<i32> = answer.node_endpoints.iter().map(|it| it.port).collect();
        assert_eq!(endpoints, [9093]);
        let answer = world.fetched(old, 10);
        let told = partitions(&answer);
        assert_eq!(told[0].error_code, ErrorCode::NONE);
        assert_eq!(told[1].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
        assert!(!world.is_answered(content));
    }
}

#[test]
fn rt_14_a_log_start_that_moves_is_told_and_bounds_reads() {
    let properties = "log.retention.bytes=1048576\nlog.segment.bytes=1048576\n";
    let mut world = World::new(1, properties);
    let id = world.topic("t", 1);
    for _ in 0..40 {
        world.produce("t", 0, 1, 100_000);
    }
    let session = {
        let mut request = fetch_request(vec![fetch_topic("t", id, &[(0, 40)])]);
        (request.session_epoch, request.max_wait_ms) = (0, 0);
        let answer = world.fetch_now(13, &request);
        assert_eq!(partitions(&answer)[0].log_start_offset, 0);
        answer.session_id
    };
    world.advance(301_000);
    let mut request = fetch_request(Vec::new());
    (
        request.session_id,
        request.session_epoch,
        request.max_wait_ms,
    ) = (session, 1, 0);
    let answer = world.fetch_now(13, &request);
    let told = partitions(&answer)[0];
    assert!(told.log_start_offset > 10, "{told:?}");
    assert_eq!((told.high_watermark, record_bytes(told)), (40, 0));
    let start = told.log_start_offset;
    for (offset, error) in [
        (start - 1, ErrorCode::OFFSET_OUT_OF_RANGE),
        (start, ErrorCode::NONE),
    ] {
        let request = fetch_request(vec![fetch_topic("t", id, &[(0, offset)])]);
        let answer = world.fetch_now(13, &request);
        assert_eq!(partitions(&answer)[0].error_code, error);
    }
}

/// Of an answer only the first batch may be larger than its partition's limit (KIP-74), whichever
/// shards own the partitions.
#[test]
fn c_18_a_tiny_limit_per_partition_brings_one_batch_however_many_shards_there_are() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 6);
        for partition in 0..6 {
            world.produce("t", partition, 1, 100);
        }
        for session_epoch in [-1, 0] {
            let wanted: Vec<(i32, i64)> = (0..6).map(|it| (it, 0)).collect();
            let mut topic = fetch_topic("t", id, &wanted);
            for partition in &mut topic.partitions {
                partition.partition_max_bytes = 1;
            }
            let mut request = fetch_request(vec![topic]);
            request.session_epoch = session_epoch;
            let answer = world.fetch_now(13, &request);
            let served: Vec<i32> = partitions(&answer)
                .iter()
                .filter(|it| record_bytes(it) > 0)
                .map(|it| it.partition_index)
                .collect();
            assert_eq!(
                served,
                [0],
                "{shards} shards, session epoch {session_epoch}"
            );
        }
    }
}
