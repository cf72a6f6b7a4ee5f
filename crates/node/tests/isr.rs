//! A leader, its followers and the controller: who is in the ISR, end to end within a shard.

#![allow(
    clippy::indexing_slicing,
    reason = "a test that does not find what it needs panics"
)]

mod support;

use highwater_node::{PeerError, Token};
use highwater_protocol::messages::alter_partition_response::{PartitionData, TopicData};
use highwater_protocol::messages::{AlterPartitionRequest, AlterPartitionResponse};
use highwater_protocol::{OutRequest, Response};
use highwater_types::{ErrorCode, NodeId, TopicId};

use support::{NODE, World, batch};

const T: (&str, i32) = ("t", 0);
const OTHER: NodeId = NodeId::new(2);

/// Node 1 leads `t-0`; node 2 is in the ISR and never fetches.
fn world() -> (World, TopicId) {
    let mut world = World::with(1, 1, "replica.lag.time.max.ms=2000");
    world.add_broker(OTHER);
    let topic = world.topic("t", 1, &[]);
    world.change(topic, 0, |it| {
        it.assigned_replicas = vec![NODE, OTHER];
        it.in_sync_replicas = vec![NODE, OTHER];
    });
    (world, topic)
}

/// The AlterPartition that is out.
fn asked(world: &mut World) -> ((u16, Token), AlterPartitionRequest) {
    assert_eq!(world.sent.len(), 1, "{:?}", world.sent);
    let (shard, token, request) = world.sent.remove(0);
    match request {
        OutRequest::AlterPartition(request) => ((shard, token), request),
        other => panic!("{other:?}"),
    }
}

/// What a controller says that grants everything.
fn granted(request: &AlterPartitionRequest) -> Response {
    let partition = &request.topics[0].partitions[0];
    let isr = partition.new_isr_with_epochs.iter();
    let row = PartitionData {
        leader_id: request.broker_id,
        leader_epoch: partition.leader_epoch,
        isr: isr.map(|it| it.broker_id).collect(),
        partition_epoch: partition.partition_epoch + 1,
        ..PartitionData::default()
    };
    let topic = TopicData {
        topic_id: request.topics[0].topic_id,
        partitions: vec![row],
    };
    AlterPartitionResponse {
        topics: vec![topic],
        ..AlterPartitionResponse::default()
    }
    .into()
}

#[test]
fn a_follower_that_does_not_fetch_leaves_the_isr_once_the_controller_says_so() {
    let (mut world, topic) = world();
    let conn = world.connect();
    world.send_produce(conn, -1, T, batch(&["a"]));
    world.advance(1_900);
    assert!(world.sent.is_empty(), "{:?}", world.sent);
    world.advance(1_100);
    let (at, request) = asked(&mut world);
    assert_eq!(request.topics[0].topic_id, topic.uuid());
    let isr = &request.topics[0].partitions[0].new_isr_with_epochs;
    assert_eq!(
        isr.iter().map(|it| it.broker_id).collect::<Vec<_>>(),
        [NODE]
    );
    assert!(world.has_event("isr-wanted t-0 1: 2 lags (leo=0 of 1, behind for "));
    assert_eq!(world.offsets("t", 0)[1], 0, "not before it is committed");
    assert!(world.receive_produce(conn).is_none());
    world.answer_peer(at, Ok(granted(&request)));
    assert!(world.has_event("isr t-0 1,2 -> 1"));
    let answer = world.receive_produce(conn).expect("an answer");
    assert_eq!(answer[0].error_code, ErrorCode::NONE);
}

#[test]
fn ih_07_a_lost_answer_is_asked_for_again_after_a_while() {
    let (mut world, _) = world();
    world.produce(1, T, batch(&["a"]));
    world.advance(3_000);
    let (at, first) = asked(&mut world);
    world.answer_peer(at, Err(PeerError::TimedOut));
    assert!(world.sent.is_empty(), "not at once");
    world.advance(50);
    let (at, second) = asked(&mut world);
    assert_eq!(first, second);
    let mut stale = granted(&second);
    if let Response::AlterPartition(stale) = &mut stale {
        stale.topics[0].partitions[0].error_code = ErrorCode::INVALID_UPDATE_VERSION;
    }
    world.answer_peer(at, Ok(stale));
    world.advance(10_000);
    assert!(world.sent.is_empty(), "the metadata will tell");
}

#[test]
fn a_stale_registration_is_no_verdict_on_the_change() {
    let (mut world, _) = world();
    world.produce(1, T, batch(&["a"]));
    world.advance(3_000);
    let (at, request) = asked(&mut world);
    let refused = AlterPartitionResponse {
        error_code: ErrorCode::STALE_BROKER_EPOCH,
        ..AlterPartitionResponse::default()
    };
    world.answer_peer(at, Ok(refused.into()));
    world.advance(50);
    assert_eq!(asked(&mut world).1, request);
}
