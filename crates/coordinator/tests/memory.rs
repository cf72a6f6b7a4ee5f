//! What loaded groups take up: 10,000 of them with ten offsets each have to fit in 60 MB.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use highwater_coordinator::{
    AppendRefused, Appender, Coordinator, GroupSettings, NewRecord, ReplayedAt,
};
use highwater_records::stored::GroupRecord;
use highwater_records::stored::coordinator::group_metadata_value::MemberMetadata;
use highwater_records::stored::coordinator::{
    GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue,
};
use highwater_types::{Now, Offset, ProducerEpoch, ProducerId, Uuid, WallMs};

const GROUPS: usize = 10_000;
const OFFSETS: i32 = 10;
const BYTES_MAX: usize = 60 << 20;
/// On every Linux that this is built for.
const PAGE_BYTES: usize = 4096;

struct NoLog;

impl Appender for NoLog {
    fn append(&mut self, _: Now, _: &[NewRecord]) -> Result<Offset, AppendRefused> {
        Err(AppendRefused::NotLeader)
    }
}

/// The memory of this process that is really there, in bytes.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * PAGE_BYTES
}

fn group(group: &str) -> (Bytes, Option<Bytes>) {
    let member_id = format!("consumer-1-0bf872c4-8ff9-4ad7-b353-{group}");
    let member = MemberMetadata {
        member_id: member_id.clone(),
        client_id: "consumer-1".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        rebalance_timeout: 300_000,
        session_timeout: 45_000,
        subscription: Bytes::from_static(&[0; 60]),
        assignment: Bytes::from_static(&[0; 60]),
        ..MemberMetadata::default()
    };
    let value = GroupMetadataValue {
        protocol_type: "consumer".to_owned(),
        generation: 1,
        protocol: Some("range".to_owned()),
        leader: Some(member_id),
        current_state_timestamp: 1_000,
        members: vec![member],
    };
    let group = group.to_owned();
    let record = GroupRecord::GroupMetadata(GroupMetadataKey { group }, Some(value));
    record.encode(3).unwrap()
}

fn offset(group: &str, topic: &str, partition: i32) -> (Bytes, Option<Bytes>) {
    let key = OffsetCommitKey {
        group: group.to_owned(),
        topic: topic.to_owned(),
        partition,
    };
    let value = OffsetCommitValue {
        offset: 1_000_000,
        leader_epoch: 3,
        commit_timestamp: 1_000,
        topic_id: Uuid::from_u128(7),
        ..OffsetCommitValue::default()
    };
    let record = GroupRecord::OffsetCommit(key, Some(value));
    record.encode(4).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn ten_thousand_groups_with_ten_offsets_fit_in_60_mb() {
    let before = resident_bytes();
    let mut coordinator = Coordinator::new(Arc::new(GroupSettings::default()), [7; 32]);
    let mut at = Offset::ZERO;
    let mut replay = |(key, value): (Bytes, Option<Bytes>)| {
        let replayed = ReplayedAt {
            offset: at,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            transactional: false,
            timestamp: WallMs::NONE,
        };
        let done = coordinator.replay(replayed, &key, value.as_deref());
        done.expect("a record of a coordinator");
        at = at.next();
    };
    let began = std::time::Instant::now();
    for number in 0..GROUPS {
        let name = format!("group-{number:06}");
        replay(group(&name));
        for partition in 0..OFFSETS {
            // A topic of usual length; ten of them, shared by all groups.
            let topic = format!("a-topic-of-some-department-{}", number % 10);
            replay(offset(&name, &topic, partition));
        }
        // Each offset is committed again and again: the log is longer than what it says.
        for partition in 0..OFFSETS {
            let topic = format!("a-topic-of-some-department-{}", number % 10);
            replay(offset(&name, &topic, partition));
        }
    }
    coordinator.loaded(Now::default(), &mut NoLog, &mut Vec::new());
    let took = began.elapsed();
    let bytes = resident_bytes().saturating_sub(before);
    println!("{GROUPS} groups: {bytes} bytes, {took:?} with writing the records");
    assert!(bytes < BYTES_MAX, "{bytes} bytes for {GROUPS} groups");
    assert!(bytes > GROUPS * 500, "{bytes} bytes cannot be all of it");
}
