//! Clients that read from a follower, or from a leader that has just begun.

use highwater_types::ErrorCode;

use crate::cluster::*;

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
