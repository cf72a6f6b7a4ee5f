//! Regions of files that are read after the log was cut (KAFKA-18723).

use highwater_protocol::messages::fetch_response::{
    EpochEndOffset, FetchResponse, FetchableTopicResponse, PartitionData,
};
use highwater_protocol::{OutRequest, Response};

use crate::cluster::*;
use crate::support::batch;

/// The fetch that this broker, a follower now, has sent: its leader says where histories part.
fn cut_to(cluster: &mut Cluster, end_offset: i64) {
    let is_fetch = |it: &OutRequest| matches!(it, OutRequest::Fetch(_));
    let sent = &mut cluster.world.sent;
    let at = sent.iter().position(|(_, _, it)| is_fetch(it));
    let (shard, token, _) = sent.remove(at.expect("a follower fetches"));
    let row = PartitionData {
        diverging_epoch: EpochEndOffset {
            epoch: 0,
            end_offset,
        },
        ..PartitionData::default()
    };
    let topic = FetchableTopicResponse {
        topic_id: cluster.topic.uuid(),
        partitions: vec![row],
        ..FetchableTopicResponse::default()
    };
    let answer = FetchResponse {
        session_id: 77,
        responses: vec![topic],
        ..FetchResponse::default()
    };
    let answer = Ok(Response::from(answer));
    cluster.world.answer_peer((shard, token), answer);
}

#[test]
fn a_late_region_read_across_a_truncation_yields_its_own_bytes_or_ends_short() {
    for cut in 0..3 {
        let mut cluster = Cluster::new(1, 1, &[1, 2], &[1, 2]);
        for value in ["first", "second", "third"] {
            let (error, _) = cluster.world.produce(1, (TOPIC, 0), batch(&[value]));
            assert_eq!(error, 0);
        }
        let mut follower = cluster.follower(2, 17);
        cluster.send(&mut follower, &[at(0)], &[]);
        let there = cluster.world.receive_frame(follower.conn).expect("at once");
        cluster.world.hold_writes = true;
        cluster.send(&mut follower, &[at(0)], &[]);
        cluster.metadata(2, 1, &[1, 2]);
        cut_to(&mut cluster, cut);
        assert_eq!(cluster.world.offsets(TOPIC, 0)[3], cut);
        // It leads again, and other records take the place.
        cluster.metadata(1, 2, &[1]);
        let (bytes, wanted) = {
            for _ in 0..3 {
                let value = batch(&["quite another one"]);
                let conn = cluster.world.connect();
                cluster.world.send_produce(conn, 1, (TOPIC, 0), value);
            }
            cluster.world.send_held(follower.conn).expect("held")
        };
        assert_eq!(cluster.world.offsets(TOPIC, 0)[3], cut + 3);
        assert!(bytes.len() as u64 <= wanted);
        // The first frame went without its length and has another correlation id.
        let (late, there) = (&bytes[8..], &there[4..]);
        assert_eq!(late, &there[..late.len()], "cut to {cut}");
        // A cut at the base of a segment takes the file out of the way whole.
        let ends_short = late.len() < there.len();
        assert_eq!(ends_short, cut > 0, "cut to {cut}");
    }
}
