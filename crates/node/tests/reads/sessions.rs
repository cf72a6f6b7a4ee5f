use highwater_protocol::messages::FetchRequest;
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use highwater_types::{ErrorCode, TopicId};

use crate::world::*;

/// Goes on with a session; waits for nothing.
fn next(session: i32, epoch: i32, topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest {
        session_id: session,
        session_epoch: epoch,
        max_wait_ms: 0,
        ..fetch_request(topics)
    }
}

/// Opens a session over partitions at offset 0.
fn open(world: &mut World, id: TopicId, partitions: &[i32]) -> i32 {
    let wanted: Vec<(i32, i64)> = partitions.iter().map(|it| (*it, 0)).collect();
    let request = next(0, 0, vec![fetch_topic("t", id, &wanted)]);
    let ticket = world.fetch(13, &request);
    if !world.is_answered(ticket) {
        world.advance(1);
    }
    let answer = world.fetched(ticket, 13);
    assert_eq!(answer.error_code, ErrorCode::NONE);
    assert!(answer.session_id > 0, "session ids are not zero");
    assert_eq!(
        answer
            .responses
            .iter()
            .map(|it| it.partitions.len())
            .sum::<usize>(),
        wanted.len()
    );
    answer.session_id
}

fn forgotten(id: TopicId, partitions: &[i32]) -> Vec<ForgottenTopic> {
    vec![ForgottenTopic {
        topic_id: id.uuid(),
        partitions: partitions.to_vec(),
        ..ForgottenTopic::default()
    }]
}

#[test]
fn an_incremental_answer_leaves_out_what_has_not_changed() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 3);
        let session = open(&mut world, id, &[0, 1, 2]);
        let answer = world.fetch_now(13, &next(session, 1, Vec::new()));
        assert_eq!((answer.session_id, answer.responses.len()), (session, 0));
        world.produce("t", 1, 1, 10);
        let answer = world.fetch_now(13, &next(session, 2, Vec::new()));
        let told: Vec<i32> = partitions(&answer)
            .iter()
            .map(|it| it.partition_index)
            .collect();
        assert_eq!(told, [1], "{shards} shards");
        // The client has the records: nothing is new.
        let moved = vec![fetch_topic("t", id, &[(1, 1)])];
        let answer = world.fetch_now(13, &next(session, 3, moved));
        assert_eq!(answer.responses.len(), 0);
        // It asks from the start again.
        let back = vec![fetch_topic("t", id, &[(1, 0)])];
        let answer = world.fetch_now(13, &next(session, 4, back));
        assert_eq!(partitions(&answer).len(), 1);
        // And again, for it did not say otherwise.
        let answer = world.fetch_now(13, &next(session, 5, Vec::new()));
        assert_eq!(partitions(&answer).len(), 1);
    }
}

#[test]
fn a_session_parks_and_wakes() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 3);
        let session = open(&mut world, id, &[0, 1, 2]);
        for round in 0..3 {
            let mut request = next(session, round + 1, Vec::new());
            if round > 0 {
                let at = (round - 1, 1);
                request.topics = vec![fetch_topic("t", id, &[at])];
            }
            request.max_wait_ms = 500;
            let ticket = world.fetch(13, &request);
            assert!(!world.is_answered(ticket), "{shards} shards, round {round}");
            world.produce("t", round, 1, 10);
            let answer = world.fetched(ticket, 13);
            let told: Vec<i32> = partitions(&answer)
                .iter()
                .map(|it| it.partition_index)
                .collect();
            assert_eq!(told, [round]);
        }
        let mut request = next(session, 4, vec![fetch_topic("t", id, &[(2, 1)])]);
        request.max_wait_ms = 500;
        let ticket = world.fetch(13, &request);
        world.advance(500);
        assert_eq!(world.fetched(ticket, 13).responses.len(), 0);
    }
}

#[test]
fn forgotten_partitions_leave_and_an_empty_session_is_closed() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 2);
        let session = open(&mut world, id, &[0, 1]);
        let mut request = next(session, 1, Vec::new());
        request.forgotten_topics_data = forgotten(id, &[0]);
        assert_eq!(world.fetch_now(13, &request).responses.len(), 0);
        world.produce("t", 0, 1, 10);
        world.produce("t", 1, 1, 10);
        let answer = world.fetch_now(13, &next(session, 2, Vec::new()));
        let told: Vec<i32> = partitions(&answer)
            .iter()
            .map(|it| it.partition_index)
            .collect();
        assert_eq!(told, [1]);
        // The last one leaves: answered at once, and the session is gone.
        let mut request = next(session, 3, Vec::new());
        request.forgotten_topics_data = forgotten(id, &[1]);
        request.max_wait_ms = 10_000;
        let answer = world.fetch_now(13, &request);
        assert_eq!((answer.error_code, answer.session_id), (ErrorCode::NONE, 0));
        let answer = world.fetch_now(13, &next(session, 4, Vec::new()));
        assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
        assert_eq!(answer.session_id, 0);
    }
}

#[test]
fn np_04_a_repeated_or_early_request_is_refused_and_changes_nothing() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 2);
    let session = open(&mut world, id, &[0, 1]);
    world.fetch_now(13, &next(session, 1, Vec::new()));
    for epoch in [1, 3] {
        let mut request = next(session, epoch, Vec::new());
        request.forgotten_topics_data = forgotten(id, &[0, 1]);
        let answer = world.fetch_now(13, &request);
        assert_eq!(answer.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        assert_eq!((answer.session_id, answer.responses.len()), (0, 0));
    }
    world.produce("t", 0, 1, 10);
    let answer = world.fetch_now(13, &next(session, 2, Vec::new()));
    assert_eq!(partitions(&answer).len(), 1);
}

#[test]
fn names_and_ids_do_not_mix_in_one_session() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    let session = open(&mut world, id, &[0]);
    let answer = world.fetch_now(12, &next(session, 1, Vec::new()));
    assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
    let answer = world.fetch_now(13, &next(session, 1, Vec::new()));
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

#[test]
fn a_full_or_final_request_closes_the_session_that_it_names() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    let first = open(&mut world, id, &[0]);
    let wanted = || vec![fetch_topic("t", id, &[(0, 0)])];
    let answer = world.fetch_now(13, &next(first, 0, wanted()));
    let second = answer.session_id;
    assert!(second > 0 && second != first);
    let gone = world.fetch_now(13, &next(first, 1, Vec::new()));
    assert_eq!(gone.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    // As the Java client closes: final epoch, no partition; answered at once.
    let mut close = next(second, -1, Vec::new());
    close.max_wait_ms = 500;
    let answer = world.fetch_now(13, &close);
    assert_eq!((answer.error_code, answer.session_id), (ErrorCode::NONE, 0));
    let gone = world.fetch_now(13, &next(second, 1, Vec::new()));
    assert_eq!(gone.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn a_request_that_overtakes_a_parked_one_ends_it() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    let session = open(&mut world, id, &[0]);
    let mut request = next(session, 1, Vec::new());
    request.max_wait_ms = 500;
    let parked = world.fetch_on(0, 1, 13, &request);
    assert!(!world.is_answered(parked));
    request.session_epoch = 2;
    let second = world.fetch_on(0, 2, 13, &request);
    let answer = world.fetched(parked, 13);
    assert_eq!(answer.error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    world.produce("t", 0, 1, 10);
    assert_eq!(partitions(&world.fetched(second, 13)).len(), 1);
}

#[test]
fn np_03_each_partition_is_served_in_its_turn() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 3);
        let session = open(&mut world, id, &[0, 1, 2]);
        for partition in 0..3 {
            for _ in 0..4 {
                world.produce("t", partition, 1, 1_000);
            }
        }
        let mut offsets = [0_i64; 3];
        let mut served = Vec::new();
        let mut changed: Vec<FetchTopic> = Vec::new();
        for epoch in 1..=6 {
            let mut request = next(session, epoch, std::mem::take(&mut changed));
            request.max_bytes = 1_000;
            let answer = world.fetch_now(13, &request);
            let with_records: Vec<i32> = partitions(&answer)
                .into_iter()
                .filter(|it| record_bytes(it) > 0)
                .map(|it| it.partition_index)
                .collect();
            assert_eq!(with_records.len(), 1, "{shards} shards, epoch {epoch}");
            let partition = with_records[0];
            let offset = &mut offsets[usize::try_from(partition).expect("small")];
            *offset += 1;
            changed = vec![fetch_topic("t", id, &[(partition, *offset)])];
            served.push(partition);
        }
        assert_eq!(served, [0, 1, 2, 0, 1, 2], "{shards} shards");
    }
}

#[test]
fn c_20_a_client_that_opens_a_session_per_poll_gets_none_and_is_named() {
    let mut world = World::new(1, "max.incremental.fetch.session.cache.slots=3");
    let id = world.topic("t", 1);
    let good: Vec<i32> = (0..3).map(|_| open(&mut world, id, &[0])).collect();
    for _ in 0..20 {
        let answer = world.fetch_now(13, &next(0, 0, vec![fetch_topic("t", id, &[(0, 0)])]));
        assert_eq!((answer.error_code, answer.session_id), (ErrorCode::NONE, 0));
        assert_eq!(partitions(&answer).len(), 1);
    }
    let told: Vec<&String> = world
        .journal
        .iter()
        .filter(|it| it.contains("fetch session"))
        .collect();
    assert_eq!(told.len(), 1, "once, not twenty times");
    assert!(told[0].contains("client test"), "{told:?}");
    for session in good {
        let answer = world.fetch_now(13, &next(session, 1, Vec::new()));
        assert_eq!(
            (answer.error_code, answer.session_id),
            (ErrorCode::NONE, session)
        );
    }
}

#[test]
fn np_02_an_evicted_client_just_opens_another_session() {
    let mut world = World::new(1, "max.incremental.fetch.session.cache.slots=1");
    let id = world.topic("t", 1);
    let first = open(&mut world, id, &[0]);
    world.advance(121_000);
    let second = open(&mut world, id, &[0]);
    assert_ne!(first, second);
    let answer = world.fetch_now(13, &next(first, 1, Vec::new()));
    assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    let answer = world.fetch_now(13, &next(second, 1, Vec::new()));
    assert_eq!(answer.error_code, ErrorCode::NONE);
}

#[test]
fn after_an_error_the_partition_is_named_again() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 2);
    let session = open(&mut world, id, &[0, 1]);
    let beyond = vec![fetch_topic("t", id, &[(0, 9)])];
    let answer = world.fetch_now(13, &next(session, 1, beyond));
    assert_eq!(
        partitions(&answer)[0].error_code,
        ErrorCode::OFFSET_OUT_OF_RANGE
    );
    let back = vec![fetch_topic("t", id, &[(0, 0)])];
    let answer = world.fetch_now(13, &next(session, 2, back));
    assert_eq!(partitions(&answer).len(), 1);
    assert_eq!(partitions(&answer)[0].high_watermark, 0);
    let answer = world.fetch_now(13, &next(session, 3, Vec::new()));
    assert_eq!(answer.responses.len(), 0);
}

#[test]
fn a_session_by_name_survives_that_its_topic_is_made_anew() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 1);
        let request = next(0, 0, vec![fetch_topic("t", id, &[(0, 0)])]);
        let session = world.fetch_now(12, &request).session_id;
        world.remove_topic("t");
        let answer = world.fetch_now(12, &next(session, 1, Vec::new()));
        let error = partitions(&answer)[0].error_code;
        assert_eq!(error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        world.topic_with_id("t", topic_id("second"), 1);
        let answer = world.fetch_now(12, &next(session, 2, Vec::new()));
        assert_eq!(partitions(&answer)[0].error_code, ErrorCode::NONE);
        let mut request = next(session, 3, Vec::new());
        request.max_wait_ms = 500;
        let ticket = world.fetch(12, &request);
        assert!(!world.is_answered(ticket));
        world.produce("t", 0, 1, 10);
        let answer = world.fetched(ticket, 12);
        assert!(record_bytes(partitions(&answer)[0]) > 0, "{shards} shards");
    }
}

#[test]
fn an_unknown_partition_does_not_make_a_session_spin() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 1);
    let topics = vec![
        fetch_topic("", topic_id("gone"), &[(0, 0)]),
        fetch_topic("t", id, &[(0, 0)]),
    ];
    let mut request = next(0, 0, topics);
    request.max_wait_ms = 500;
    let answer = world.fetch_now(13, &request);
    assert_eq!(
        partitions(&answer)[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_ID
    );
    // Told once, it waits like the others.
    let mut request = next(answer.session_id, 1, Vec::new());
    request.max_wait_ms = 500;
    let ticket = world.fetch(13, &request);
    assert!(!world.is_answered(ticket));
    world.advance(500);
    let answer = world.fetched(ticket, 13);
    assert_eq!(partitions(&answer).len(), 1);
}

#[test]
fn a_session_over_many_partitions_looks_only_at_those_that_changed() {
    let mut world = World::new(1, "");
    let id = world.topic("t", 200);
    let all: Vec<i32> = (0..200).collect();
    let session = open(&mut world, id, &all);
    world.produce("t", 150, 1, 10);
    world.produce("t", 3, 1, 10);
    let answer = world.fetch_now(13, &next(session, 1, Vec::new()));
    let told: Vec<i32> = partitions(&answer)
        .iter()
        .map(|it| it.partition_index)
        .collect();
    assert_eq!(told, [3, 150]);
}

#[test]
fn a_partition_may_join_a_session_later() {
    for shards in 1..=3 {
        let mut world = World::new(shards, "");
        let id = world.topic("t", 3);
        let session = open(&mut world, id, &[0]);
        let joins = FetchTopic {
            topic_id: id.uuid(),
            partitions: (1..3)
                .map(|partition| FetchPartition {
                    partition,
                    partition_max_bytes: 1 << 20,
                    ..FetchPartition::default()
                })
                .collect(),
            ..FetchTopic::default()
        };
        let answer = world.fetch_now(13, &next(session, 1, vec![joins]));
        assert_eq!(partitions(&answer).len(), 2, "a new partition is told once");
        let mut request = next(session, 2, Vec::new());
        request.max_wait_ms = 500;
        let ticket = world.fetch(13, &request);
        world.produce("t", 2, 1, 10);
        assert_eq!(partitions(&world.fetched(ticket, 13)).len(), 1);
    }
}

const ROOM: &str = "max.incremental.fetch.session.partitions=1000\n";

fn all_of(id: TopicId, partitions: i32) -> Vec<FetchTopic> {
    let wanted: Vec<(i32, i64)> = (0..partitions).map(|it| (it, 0)).collect();
    vec![fetch_topic("t", id, &wanted)]
}

/// Fetches that wait without a session remember their partitions too. Where there is no room they
/// are answered at once, and their client is kept from asking again at once.
#[test]
fn fetches_that_wait_without_a_session_hold_a_bounded_number_of_partitions() {
    let mut world = World::new(1, ROOM);
    let id = world.topic("t", 600);
    let request = FetchRequest {
        session_epoch: -1,
        ..fetch_request(all_of(id, 600))
    };
    let parked = world.fetch_on(0, 1, 13, &request);
    assert!(!world.is_answered(parked));
    let refused = world.fetch_on(0, 2, 13, &request);
    let answer = world.answers.get(&refused).expect("answered at once");
    assert_eq!(answer.mute.as_u64(), 500, "as long as it wanted to wait");
    let answer = world.fetched(refused, 13);
    assert_eq!((answer.throttle_time_ms, answer.session_id), (500, 0));
    assert_eq!(partitions(&answer).len(), 600);
    // One that wants a session is treated alike: it waits for its first answer without one.
    let request = FetchRequest {
        session_epoch: 0,
        ..request
    };
    let refused = world.fetch_on(0, 3, 13, &request);
    let answer = world.fetched(refused, 13);
    assert_eq!((answer.throttle_time_ms, answer.session_id), (500, 0));
    assert_eq!(world.journal.len(), 1, "{:?}", world.journal);
    // What there is to read is never held back, and room comes back with the answer.
    world.produce("t", 0, 1, 10);
    assert!(world.is_answered(parked));
    let answer = world.fetch_now(13, &request);
    assert_eq!(answer.throttle_time_ms, 0);
    assert!(answer.session_id > 0);
}

/// A request of more partitions than all may have together still gets what it asks for.
#[test]
fn a_fetch_larger_than_the_room_for_all_is_served_without_a_session() {
    for shards in 1..=3 {
        let mut world = World::new(shards, ROOM);
        let id = world.topic("t", 1100);
        world.produce("t", 1, 1, 10);
        world.produce("t", 1000, 1, 10);
        let request = FetchRequest {
            session_epoch: 0,
            min_bytes: 1,
            ..fetch_request(all_of(id, 1100))
        };
        let answer = world.fetch_now(13, &request);
        assert_eq!(answer.session_id, 0, "{shards} shards");
        let with_data = partitions(&answer)
            .iter()
            .filter(|it| record_bytes(it) > 0)
            .count();
        assert_eq!(with_data, 2, "{shards} shards");
    }
}

/// Sessions that are out of use make room for the partitions of others.
#[test]
fn np_02_an_idle_session_goes_when_its_partitions_are_in_the_way() {
    let mut world = World::new(1, ROOM);
    let id = world.topic("t", 600);
    let all: Vec<i32> = (0..600).collect();
    let idle = open(&mut world, id, &all);
    let answer = world.fetch_now(13, &next(0, 0, all_of(id, 600)));
    assert_eq!(answer.session_id, 0, "the other is in use");
    world.advance(121_000);
    open(&mut world, id, &all);
    let answer = world.fetch_now(13, &next(idle, 1, Vec::new()));
    assert_eq!(answer.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}
