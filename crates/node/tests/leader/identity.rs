//! Who may fetch as a follower.

use highwater_metadata::image::FeatureLevels;
use highwater_types::{BrokerEpoch, ErrorCode};

use crate::cluster::*;

const REFUSED: ErrorCode = ErrorCode::NOT_LEADER_OR_FOLLOWER;

fn metadata_version(cluster: &mut Cluster, level: i16) {
    let levels = [("metadata.version".to_owned(), level)].into();
    cluster.world.image.features = std::sync::Arc::new(FeatureLevels { levels });
    cluster.broker(2, |_| {});
}

#[test]
fn np_01_a_fetch_without_the_registered_broker_epoch_is_refused() {
    for shards in 1..=2 {
        let mut cluster = Cluster::new(shards, 1, &[1, 2, 3], &[1, 2, 3]);
        cluster.append(0);
        for (version, epoch) in [(15, -1), (17, -1), (17, -7), (17, 4), (18, 0)] {
            let mut liar = cluster.follower(2, version);
            liar.epoch = epoch;
            let row = cluster.fetch_one(&mut liar, at(1));
            assert_eq!(row.error_code, REFUSED, "version {version}, epoch {epoch}");
            assert_eq!((cluster.known(2), cluster.high_watermark()), (None, 0));
        }
        // An id that is nobody's, and the leader's own.
        for id in [1, 7] {
            let mut liar = cluster.follower(id, 17);
            let row = cluster.fetch_one(&mut liar, at(1));
            assert_eq!(row.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH, "{id}");
        }
        assert_eq!(cluster.high_watermark(), 0);
        assert!(!cluster.asks());
    }
}

/// Below version 15 there is no place for a broker epoch. No broker speaks that any more once
/// metadata.version is 3.5-IV1.
#[test]
fn np_01_an_old_version_is_no_way_around() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    cluster.append(0);
    metadata_version(&mut cluster, 10);
    for version in 12..15 {
        let mut liar = cluster.follower(2, version);
        let row = cluster.fetch_one(&mut liar, at(1));
        assert_eq!(row.error_code, REFUSED, "version {version}");
        assert_eq!((cluster.known(2), cluster.high_watermark()), (None, 0));
    }
    metadata_version(&mut cluster, 7);
    let mut follower = cluster.follower(2, 12).without_waiting();
    let row = cluster.fetch_one(&mut follower, at(1));
    assert_eq!((row.error_code, row.high_watermark), (ErrorCode::NONE, 1));
}

#[test]
fn ih_04_a_fetch_of_an_older_registration_changes_nothing() {
    let mut cluster = Cluster::new(1, 1, &[1, 3], &[1]);
    for _ in 0..10 {
        cluster.append(0);
    }
    // The held fetch was sent as registration 5; since then it lost its tail and is 9.
    cluster.broker(3, |it| it.epoch = BrokerEpoch::new(9));
    let mut held = cluster.follower(3, 17);
    let row = cluster.fetch_one(&mut held, at(10));
    assert_eq!(row.error_code, REFUSED);
    assert_eq!(cluster.known(3), None);
    let mut now = cluster.follower(3, 17).without_waiting();
    now.epoch = 9;
    cluster.fetch_one(&mut now, at(4));
    assert_eq!(cluster.known(3), Some(4));
    assert!(!cluster.asks(), "not there yet");
    cluster.fetch_one(&mut now, at(10));
    assert_eq!(cluster.asked().isr(), [(1, REGISTERED), (3, 9)]);
}

/// The leader's metadata are behind: the follower is registered anew, and fetches already.
#[test]
fn ih_04_a_newer_registration_than_the_leader_knows_joins_once_it_is_known() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1]);
    cluster.append(0);
    let mut follower = cluster.follower(2, 17).without_waiting().in_session();
    follower.epoch = 9;
    cluster.fetch(&mut follower, &[at(1)]);
    assert_eq!(cluster.known(2), Some(1));
    assert!(!cluster.asks());
    cluster.broker(2, |it| it.epoch = BrokerEpoch::new(9));
    assert_eq!(
        cluster.asked().isr(),
        [(1, REGISTERED), (2, 9)],
        "without a new fetch"
    );
}

#[test]
fn np_08_a_fetch_that_comes_twice_is_as_one() {
    let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
    for _ in 0..3 {
        cluster.append(0);
    }
    let mut follower = cluster.follower(2, 17).without_waiting();
    cluster.fetch_one(&mut follower, at(3));
    let after = (cluster.leader(0).clone(), cluster.high_watermark());
    let mut twin = cluster.follower(2, 17).without_waiting();
    cluster.fetch_one(&mut twin, at(3));
    assert_eq!((cluster.leader(0).clone(), cluster.high_watermark()), after);
    // A late copy of an older fetch: the leader knows less for a while, and promises no less.
    cluster.world.advance(60);
    cluster.fetch_one(&mut twin, at(1));
    assert_eq!((cluster.known(2), cluster.high_watermark()), (Some(1), 3));
    cluster.append(0);
    assert_eq!(cluster.high_watermark(), 3);
    cluster.fetch_one(&mut follower, at(4));
    assert_eq!(cluster.high_watermark(), 4);
}
