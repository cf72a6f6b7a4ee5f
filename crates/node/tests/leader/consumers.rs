//! Clients that read from a follower, or from a leader that has just begun.

use highwater_protocol::ApiKey;
use highwater_protocol::messages::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use highwater_protocol::messages::list_offsets_response::ListOffsetsResponse;
use highwater_protocol::wire::Message as _;
use highwater_types::{ErrorCode, NodeId};

use crate::cluster::*;

/// Asks for the latest offset: error and offset.
fn latest(cluster: &mut Cluster, version: i16) -> (ErrorCode, i64) {
    let partition = ListOffsetsPartition {
        timestamp: -1,
        ..ListOffsetsPartition::default()
    };
    let request = ListOffsetsRequest {
        replica_id: NodeId::NONE,
        topics: vec![ListOffsetsTopic {
            name: TOPIC.to_owned(),
            partitions: vec![partition],
        }],
        ..ListOffsetsRequest::default()
    };
    let conn = cluster.world.connect();
    let body = request.to_bytes(version).expect("legal");
    cluster
        .world
        .send(conn, ApiKey::ListOffsets, version, &body);
    let body = cluster.world.receive(conn, ApiKey::ListOffsets, version);
    let answer = ListOffsetsResponse::from_bytes(&body.expect("an answer"), version);
    let row = &answer.expect("legal").topics[0].partitions[0];
    (row.error_code, row.offset)
}

/// KIP-207: what the epoch before acknowledged may lie above the high watermark of a leader that
/// has just begun; to tell a client that the log ends there would let it go back.
#[test]
fn a_leader_that_has_just_begun_does_not_say_where_the_log_ends() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    let mut follower = cluster.follower(2, 17).without_waiting();
    for _ in 0..3 {
        cluster.append(0);
    }
    cluster.fetch_one(&mut follower, at(2));
    assert_eq!(latest(&mut cluster, 10), (ErrorCode::NONE, 2));
    cluster.metadata(1, 1, &[1, 2]);
    assert_eq!(latest(&mut cluster, 10).0, ErrorCode::OFFSET_NOT_AVAILABLE);
    assert_eq!(latest(&mut cluster, 4).0, ErrorCode::LEADER_NOT_AVAILABLE);
    cluster.fetch_one(&mut follower, at(3).in_epoch(1));
    assert_eq!(latest(&mut cluster, 10), (ErrorCode::NONE, 3));
}

#[test]
fn a_leader_hides_from_consumers_what_followers_read() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    for _ in 0..3 {
        cluster.append(0);
    }
    let mut consumer = cluster.follower(-1, 17).without_waiting();
    let mut follower = cluster.follower(2, 17).without_waiting();
    assert!(!has_records(&cluster.fetch_one(&mut consumer, at(0))));
    assert!(has_records(&cluster.fetch_one(&mut follower, at(0))));
    cluster.fetch_one(&mut follower, at(2));
    let row = cluster.fetch_one(&mut consumer, at(0));
    assert!(has_records(&row));
    assert_eq!(row.high_watermark, 2);
}

#[test]
fn a_consumer_of_a_follower_reads_below_its_high_watermark() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    let mut follower = cluster.follower(2, 17).without_waiting();
    for _ in 0..3 {
        cluster.append(0);
    }
    cluster.fetch_one(&mut follower, at(2));
    cluster.metadata(2, 1, &[1, 2]);
    for version in 11..=18 {
        let mut consumer = cluster.follower(-1, version).without_waiting();
        let row = cluster.fetch_one(&mut consumer, at(0).in_epoch(1));
        assert!(has_records(&row), "version {version}");
        assert_eq!(row.high_watermark, 2);
        for above in [2, 3] {
            let row = cluster.fetch_one(&mut consumer, at(above).in_epoch(1));
            assert_eq!(
                row.error_code,
                ErrorCode::NONE,
                "KIP-392: no error at {above}"
            );
            assert!(!has_records(&row));
        }
        let row = cluster.fetch_one(&mut consumer, at(0).in_epoch(0));
        assert_eq!(row.error_code, ErrorCode::FENCED_LEADER_EPOCH);
        let row = cluster.fetch_one(&mut consumer, at(0).in_epoch(2));
        assert_eq!(row.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH);
    }
    // Before KIP-392, and for followers, it has to be the leader.
    let mut old = cluster.follower(-1, 10);
    let row = cluster.fetch_one(&mut old, at(0).in_epoch(1));
    assert_eq!(row.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let row = cluster.fetch_one(&mut follower, at(0).in_epoch(1));
    assert_eq!(row.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
}
