//! A follower alone: the test is its leader.

use highwater_node::{PeerError, Token};
use highwater_protocol::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use highwater_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use highwater_protocol::messages::{FetchRequest, FetchResponse, ListOffsetsResponse};
use highwater_protocol::{OutRequest, Response};
use highwater_records::{BatchBuilder, BatchOptions};
use highwater_types::{ErrorCode, LeaderEpoch, NodeId, Offset, TopicId, WallMs};

use crate::support::{NODE, World};

const LEADER: NodeId = NodeId::new(2);

/// Node 1 follows node 2 in the partitions of `t`, in epoch 3.
struct Alone {
    world: World,
    topic: TopicId,
}

type At = (u16, Token);

/// What a leader says of one partition.
#[derive(Default)]
struct Says {
    partition: i32,
    error: ErrorCode,
    high_watermark: i64,
    log_start: i64,
    diverging: Option<(i32, i64)>,
    records: Vec<u8>,
}

/// `count` records in a batch at `base`.
fn batch_at(base: i64, count: i64, epoch: i32) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for number in 0..count {
        let value = format!("{base}+{number}@{epoch}");
        let time = WallMs::new(1_700_000_000_000);
        builder
            .append(time, None, Some(value.as_bytes()), &[])
            .expect("room");
    }
    let options = BatchOptions {
        base_offset: Offset::new(base),
        leader_epoch: LeaderEpoch::new(epoch),
        ..BatchOptions::default()
    };
    builder.finish(&options).expect("a batch").to_vec()
}

impl Alone {
    fn new(partitions: i32) -> Self {
        let mut world = World::new();
        world.add_broker(LEADER);
        let topic = world.topic("t", partitions, &[]);
        let mut it = Self { world, topic };
        for number in 0..partitions {
            it.follow(number, 3);
        }
        it
    }

    fn follow(&mut self, number: i32, epoch: i32) {
        self.world.change(self.topic, number, |it| {
            it.assigned_replicas = vec![LEADER, NODE];
            it.in_sync_replicas = vec![LEADER];
            it.leader = LEADER;
            it.leader_epoch = LeaderEpoch::new(epoch);
        });
    }

    /// The fetch that is out.
    fn fetch(&mut self) -> (At, FetchRequest) {
        let mut sent = self.world.sent.iter();
        let at = sent.position(|(_, _, it)| matches!(it, OutRequest::Fetch(_)));
        let at = at.expect("a fetch is out");
        let (shard, token, request) = self.world.sent.remove(at);
        match request {
            OutRequest::Fetch(request) => ((shard, token), request),
            other => panic!("{other:?}"),
        }
    }

    fn is_fetching(&self) -> bool {
        let mut sent = self.world.sent.iter();
        sent.any(|(_, _, it)| matches!(it, OutRequest::Fetch(_)))
    }

    fn answer(&mut self, at: At, says: Vec<Says>) {
        let rows = says.into_iter().map(|it| {
            let (epoch, end_offset) = it.diverging.unwrap_or((-1, -1));
            PartitionData {
                partition_index: it.partition,
                error_code: it.error,
                high_watermark: it.high_watermark,
                log_start_offset: it.log_start,
                diverging_epoch: EpochEndOffset { epoch, end_offset },
                records: Some(it.records.into()),
                ..PartitionData::default()
            }
        });
        let topic = FetchableTopicResponse {
            topic_id: self.topic.uuid(),
            partitions: rows.collect(),
            ..FetchableTopicResponse::default()
        };
        let response = FetchResponse {
            session_id: 9,
            responses: vec![topic],
            ..FetchResponse::default()
        };
        self.world.answer_peer(at, Ok(response.into()));
    }

    /// Answers the fetch that is out.
    fn say(&mut self, says: Vec<Says>) {
        let (at, _) = self.fetch();
        self.answer(at, says);
    }

    /// Gives records of partition 0, all committed.
    fn give(&mut self, records: Vec<u8>, high_watermark: i64) {
        self.say(vec![Says {
            records,
            high_watermark,
            ..Says::default()
        }]);
    }

    /// Answers both questions where the log of partition 0 lies.
    fn say_range(&mut self, start: i64, end: i64) {
        let sent = std::mem::take(&mut self.world.sent);
        for (shard, token, request) in sent {
            let OutRequest::ListOffsets(request) = request else {
                self.world.sent.push((shard, token, request));
                continue;
            };
            assert_eq!(request.replica_id, NODE);
            let row = &request.topics[0].partitions[0];
            assert_eq!(row.current_leader_epoch, 3);
            let offset = if row.timestamp == -1 { end } else { start };
            let row = ListOffsetsPartitionResponse {
                offset,
                ..ListOffsetsPartitionResponse::default()
            };
            let topic = ListOffsetsTopicResponse {
                name: "t".to_owned(),
                partitions: vec![row],
            };
            let response = ListOffsetsResponse {
                topics: vec![topic],
                ..ListOffsetsResponse::default()
            };
            self.world.answer_peer((shard, token), Ok(response.into()));
        }
    }

    /// Log start, high watermark, log end of partition 0.
    fn offsets(&self) -> [i64; 3] {
        let [start, high_watermark, _, end] = self.world.offsets("t", 0);
        [start, high_watermark, end]
    }
}

/// (partition, offset, last fetched epoch) of what a request names.
fn named(request: &FetchRequest) -> Vec<(i32, i64, i32)> {
    let rows = request.topics.iter().flat_map(|it| &it.partitions);
    rows.map(|it| (it.partition, it.fetch_offset, it.last_fetched_epoch))
        .collect()
}

fn forgotten(request: &FetchRequest) -> Vec<i32> {
    let rows = request.forgotten_topics_data.iter();
    rows.flat_map(|it| it.partitions.clone()).collect()
}

#[test]
fn a_fetch_says_who_fetches_and_where() {
    let mut it = Alone::new(3);
    let (at, first) = it.fetch();
    assert_eq!(first.replica_state.replica_id, NODE);
    assert_eq!((first.max_wait_ms, first.min_bytes), (500, 1));
    assert_eq!((first.session_id, first.session_epoch), (0, 0));
    let row = &first.topics[0].partitions[0];
    assert_eq!(row.current_leader_epoch, 3);
    assert_eq!(row.partition_max_bytes, 1 << 20);
    it.answer(at, vec![]);
    // The partitions that came while the first fetch was out were asked for beside it.
    let mut all = named(&first);
    while it.is_fetching() && all.len() < 3 {
        let (at, request) = it.fetch();
        all.extend(named(&request));
        it.answer(at, vec![]);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(
        all,
        [(0, 0, 0), (1, 0, 0), (2, 0, 0)],
        "epoch 0 was its own"
    );
}

#[test]
fn records_then_high_watermark_then_log_start() {
    let mut it = Alone::new(1);
    it.give(batch_at(0, 5, 2), 3);
    assert_eq!(it.offsets(), [0, 3, 5]);
    let (at, request) = it.fetch();
    assert_eq!(named(&request), [(0, 5, 2)]);
    assert_eq!((request.session_id, request.session_epoch), (9, 1));
    it.answer(
        at,
        vec![Says {
            high_watermark: 9,
            log_start: 4,
            ..Says::default()
        }],
    );
    assert_eq!(it.offsets(), [4, 5, 5]);
    let (_, request) = it.fetch();
    assert_eq!(named(&request), [(0, 5, 2)], "its log start is another");
    assert_eq!(request.topics[0].partitions[0].high_watermark, 5);
}

#[test]
fn rt_14_the_log_start_never_passes_the_end() {
    let mut it = Alone::new(1);
    it.say(vec![Says {
        records: batch_at(0, 10, 2),
        high_watermark: 300,
        log_start: 200,
        ..Says::default()
    }]);
    assert_eq!(it.offsets(), [10, 10, 10]);
}

#[test]
fn rt_08_cut_first_then_the_high_watermark() {
    let mut it = Alone::new(1);
    it.give(batch_at(0, 15, 1), 8);
    it.say(vec![Says {
        high_watermark: 20,
        diverging: Some((1, 10)),
        records: batch_at(10, 10, 2),
        ..Says::default()
    }]);
    assert_eq!(it.offsets(), [0, 0, 0], "a batch is cut as a whole");
    assert!(
        it.world
            .has_event("truncate t-0 15 -> 0: own epochs (1, 0)")
    );
    assert!(
        it.world.has_event("data-loss t-0 [0,8)"),
        "{:?}",
        it.world.events
    );
}

#[test]
fn rt_17_a_loss_is_told_before_it_happens() {
    let mut it = Alone::new(1);
    for at in 0..10 {
        it.give(batch_at(at, 1, 1), 8);
    }
    assert_eq!(it.offsets(), [0, 8, 10]);
    it.say(vec![Says {
        diverging: Some((1, 6)),
        ..Says::default()
    }]);
    assert_eq!(it.offsets(), [0, 6, 6]);
    let events = &it.world.events;
    let told = |part: &str| events.iter().position(|it| it.contains(part));
    let truncated = told("truncate t-0 10 -> 6: own epochs (1, 0), the leader's epoch 1 ends at 6");
    let lost = told("data-loss t-0 [6,8)");
    assert!(truncated.is_some() && truncated < lost, "{events:?}");
    // What the next start finds: no more than there is.
    let points = it.world.checkpoint("replication-offset-checkpoint");
    it.world.advance(1);
    let points_after = it.world.checkpoint("replication-offset-checkpoint");
    assert_eq!(points_after["t-0"], 6, "{points:?}");
}

#[test]
fn rt_10_a_leader_that_starts_further_up_begins_the_log_anew() {
    let mut it = Alone::new(1);
    it.give(batch_at(0, 300, 1), 300);
    it.say(vec![Says {
        error: ErrorCode::OFFSET_OUT_OF_RANGE,
        ..Says::default()
    }]);
    assert!(!it.is_fetching(), "{:?}", it.world.sent);
    it.say_range(500, 900);
    assert_eq!(it.offsets(), [500, 500, 500]);
    assert!(!it.world.has_event("data-loss"), "{:?}", it.world.events);
    let (_, request) = it.fetch();
    assert_eq!(named(&request), [(0, 500, -1)]);
}

#[test]
fn rt_13_a_batch_may_straddle_the_start_of_an_empty_log() {
    let mut it = Alone::new(1);
    it.say(vec![Says {
        error: ErrorCode::OFFSET_OUT_OF_RANGE,
        ..Says::default()
    }]);
    it.say_range(15, 20);
    assert_eq!(it.offsets(), [15, 15, 15]);
    it.say(vec![Says {
        records: batch_at(10, 10, 1),
        high_watermark: 20,
        log_start: 15,
        ..Says::default()
    }]);
    assert_eq!(it.offsets(), [15, 20, 20]);
    assert!(!it.world.has_event("data-loss"), "{:?}", it.world.events);
}

#[test]
fn rt_11_a_leader_with_a_shorter_log_and_no_history_is_followed() {
    let mut it = Alone::new(1);
    for at in 0..10 {
        it.give(batch_at(at, 1, 1), 10);
    }
    it.say(vec![Says {
        error: ErrorCode::OFFSET_OUT_OF_RANGE,
        ..Says::default()
    }]);
    it.say_range(0, 5);
    assert_eq!(it.offsets(), [0, 5, 5]);
    assert!(it.world.has_event("data-loss t-0 [5,10)"));
}

#[test]
fn kafka_18723_records_of_an_epoch_that_is_not_known_yet_are_left() {
    let mut it = Alone::new(1);
    let mut records = batch_at(0, 5, 3);
    records.extend(batch_at(5, 5, 4));
    it.give(records, 10);
    assert_eq!(it.offsets(), [0, 5, 5]);
    it.give(batch_at(5, 5, 4), 10);
    assert_eq!(it.offsets(), [0, 5, 5]);
    assert!(!it.is_fetching(), "not over and over");
    it.follow(0, 4);
    it.give(batch_at(5, 5, 4), 10);
    assert_eq!(it.offsets(), [0, 10, 10]);
}

#[test]
fn what_is_no_batch_is_refused_and_asked_for_again_later() {
    for records in [
        vec![0; 100],
        b"no batch at all, but long enough to be one, or so it seems to be at first".to_vec(),
        batch_at(0, 5, 2)[..40].to_vec(),
        {
            let mut bad = batch_at(0, 5, 2);
            bad[25] ^= 1;
            bad
        },
        batch_at(i64::MAX - 3, 5, 2),
    ] {
        let mut it = Alone::new(1);
        it.give(records, 5);
        assert_eq!(it.offsets(), [0, 0, 0]);
        assert!(!it.is_fetching(), "{:?}", it.world.sent);
        it.world.advance(30);
        it.give(batch_at(0, 5, 2), 5);
        assert_eq!(it.offsets(), [0, 5, 5], "{:?}", it.world.events);
    }
}

#[test]
fn answers_that_make_no_sense_do_no_harm() {
    let mut it = Alone::new(2);
    it.world.advance(1);
    it.give(batch_at(0, 5, 2), 5);
    for says in [
        Says {
            high_watermark: -7,
            log_start: -7,
            ..Says::default()
        },
        Says {
            high_watermark: i64::MAX,
            log_start: i64::MIN,
            ..Says::default()
        },
        Says {
            diverging: Some((2, -5)),
            ..Says::default()
        },
        Says {
            diverging: Some((i32::MAX, i64::MAX)),
            ..Says::default()
        },
        Says {
            partition: 77,
            ..Says::default()
        },
    ] {
        it.say(vec![says]);
        assert_eq!(it.offsets(), [0, 5, 5]);
        it.world.advance(2_000);
        while it.world.sent.len() > 1 {
            it.world.sent.remove(0);
        }
        assert!(it.is_fetching());
    }
}

#[test]
fn rt_15_an_answer_in_another_epoch_is_dropped() {
    let mut it = Alone::new(1);
    let (at, _) = it.fetch();
    it.follow(0, 4);
    it.answer(
        at,
        vec![Says {
            records: batch_at(0, 5, 3),
            high_watermark: 5,
            ..Says::default()
        }],
    );
    assert_eq!(it.offsets(), [0, 0, 0]);
    it.give(batch_at(0, 5, 3), 5);
    assert_eq!(it.offsets(), [0, 5, 5]);
}

#[test]
fn a_fenced_fetch_waits_for_metadata() {
    let mut it = Alone::new(1);
    it.say(vec![Says {
        error: ErrorCode::FENCED_LEADER_EPOCH,
        ..Says::default()
    }]);
    it.world.advance(60_000);
    assert!(!it.is_fetching());
    it.follow(0, 4);
    assert!(it.is_fetching());
}

#[test]
fn errors_rest_one_partition_for_longer_and_longer() {
    let mut it = Alone::new(1);
    let mut waits = Vec::new();
    for _ in 0..8 {
        it.say(vec![Says {
            error: ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ..Says::default()
        }]);
        let mut waited = 0;
        while !it.is_fetching() {
            it.world.advance(25);
            waited += 25;
        }
        waits.push(waited);
    }
    assert_eq!(waits, [25, 50, 100, 200, 400, 800, 1_000, 1_000]);
}

#[test]
fn a_leader_that_does_not_answer_is_asked_again_with_pauses() {
    let mut it = Alone::new(1);
    it.give(batch_at(0, 5, 2), 5);
    let mut waits = Vec::new();
    for _ in 0..7 {
        let (at, _) = it.fetch();
        it.world.answer_peer(at, Err(PeerError::Disconnected));
        let mut waited = 0;
        while !it.is_fetching() {
            it.world.advance(50);
            waited += 50;
        }
        waits.push(waited);
    }
    assert_eq!(waits, [50, 100, 200, 400, 800, 1_000, 1_000]);
    let (_, request) = it.fetch();
    assert_eq!((request.session_id, request.session_epoch), (9, 0));
    assert_eq!(named(&request), [(0, 5, 2)], "a new session names all");
    let told = it.world.events.iter();
    let told = told.filter(|it| it.contains("broker 2 does not answer"));
    assert_eq!(told.count(), 1);
}

#[test]
fn a_lost_session_is_begun_anew_at_once() {
    let mut it = Alone::new(1);
    it.give(batch_at(0, 5, 2), 5);
    let (at, _) = it.fetch();
    let response = FetchResponse {
        error_code: ErrorCode::FETCH_SESSION_ID_NOT_FOUND,
        ..FetchResponse::default()
    };
    it.world.answer_peer(at, Ok(response.into()));
    let (_, request) = it.fetch();
    assert_eq!((request.session_id, request.session_epoch), (0, 0));
    assert_eq!(named(&request), [(0, 5, 2)]);
}

#[test]
fn another_kind_of_answer_is_none() {
    let mut it = Alone::new(1);
    let (at, _) = it.fetch();
    let other: Response = ListOffsetsResponse::default().into();
    it.world.answer_peer(at, Ok(other));
    assert!(!it.is_fetching());
    it.world.advance(50);
    assert!(it.is_fetching());
}

#[test]
fn a_leader_elsewhere_is_not_waited_for() {
    let mut it = Alone::new(1);
    let (old, _) = it.fetch();
    let brokers = std::sync::Arc::make_mut(&mut it.world.image.brokers);
    let leader = std::sync::Arc::make_mut(brokers.get_mut(&LEADER).expect("registered"));
    leader.endpoints[0].port = 9_999;
    it.world
        .publish(highwater_node::Changed::Topics(std::sync::Arc::default()));
    let (at, _) = it.fetch();
    it.answer(
        old,
        vec![Says {
            records: batch_at(0, 7, 2),
            ..Says::default()
        }],
    );
    assert_eq!(it.offsets(), [0, 0, 0]);
    it.answer(
        at,
        vec![Says {
            records: batch_at(0, 5, 2),
            ..Says::default()
        }],
    );
    assert_eq!(it.offsets(), [0, 0, 5]);
}

#[test]
fn partitions_that_leave_are_forgotten() {
    let mut it = Alone::new(1);
    it.give(batch_at(0, 5, 2), 5);
    let (at, _) = it.fetch();
    it.world.add_partition(it.topic);
    it.world.change(it.topic, 0, |it| {
        it.leader = NODE;
        it.leader_epoch = LeaderEpoch::new(4);
    });
    it.answer(
        at,
        vec![Says {
            records: batch_at(5, 5, 2),
            ..Says::default()
        }],
    );
    assert_eq!(it.offsets()[2], 5, "it leads now");
    while it.is_fetching() {
        let (at, request) = it.fetch();
        assert!(named(&request).iter().all(|it| it.0 == 1), "{request:?}");
        if !forgotten(&request).is_empty() {
            assert_eq!(forgotten(&request), [0]);
            return;
        }
        it.answer(at, vec![]);
        it.world.advance(1);
    }
    panic!("it is still in the session");
}

#[test]
fn a_stop_ends_it() {
    let mut it = Alone::new(2);
    let (at, _) = it.fetch();
    it.world.sent.clear();
    it.world.close();
    it.answer(
        at,
        vec![Says {
            records: batch_at(0, 5, 2),
            ..Says::default()
        }],
    );
    assert!(!it.is_fetching());
    assert_eq!(it.world.stopped.len(), 1);
}
