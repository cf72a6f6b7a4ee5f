//! SC-16: the small files of a log directory survive a loss of power at every step of a write.

use std::path::Path;

use highwater_disk::{Blocking, Disk, MemDisk};
use highwater_log::LeaderEpochCache;
use highwater_log::checkpoint::{
    CleanShutdown, MetaProperties, OffsetCheckpoint, clean_shutdown, leader_epochs,
    meta_properties, offsets, partition_metadata,
};
use highwater_types::{
    BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicId, TopicPartition, Uuid, WallMs,
};

/// Writes `old` and then `new` over it, with the power going before each operation and many
/// choices of what survives. What is left must be one of both as `decode` reads them.
fn survives<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    file: &str,
    old: &[u8],
    new: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, E>,
) {
    let b = Blocking::enter();
    let path = Path::new("t-0").join(file);
    let start = MemDisk::with_files("dir", &[(path.clone(), old.to_vec())].into());
    let ops = {
        let disk = start.snapshot();
        disk.replace(&path, new, &b).expect("replaced");
        disk.ops_count()
    };
    let (old_read, new_read) = (decode(old).expect("good"), decode(new).expect("good"));
    assert_ne!(old_read, new_read);
    let (mut left_old, mut left_new) = (0, 0);
    for op in 0..=ops {
        for seed in (0..40).map(Some).chain([None]) {
            let disk = start.snapshot();
            disk.power_off_at_op(op, seed);
            let written = disk.session().replace(&path, new, &b);
            assert_eq!(written.is_ok(), op == ops, "{file} op {op}");
            disk.power_on();
            let bytes = disk.read(&path).expect("readable").expect("never missing");
            let left = decode(&bytes).unwrap_or_else(|why| panic!("{file} op {op}: {why:?}"));
            assert!(
                left == old_read || left == new_read,
                "{file} op {op}: {left:?}"
            );
            left_old += u32::from(left == old_read);
            left_new += u32::from(left == new_read);
            // An interrupted write is no obstacle to the next.
            disk.session().replace(&path, new, &b).expect("replaced");
            disk.power_off_losing_unsynced();
            let bytes = disk.read(&path).expect("readable").expect("durable");
            assert_eq!(decode(&bytes).expect("good"), new_read, "{file} op {op}");
        }
    }
    assert!(
        left_old > 0 && left_new > 0,
        "{file}: {left_old} old, {left_new} new"
    );
}

fn checkpoint(offset: i64) -> Vec<u8> {
    let log = TopicPartition::parse("orders-0").expect("a name");
    OffsetCheckpoint {
        offsets: [(log, Offset::new(offset))].into(),
    }
    .encode()
}

fn epochs(entries: &[(i32, i64)]) -> Vec<u8> {
    let mut cache = LeaderEpochCache::new();
    for (epoch, start) in entries {
        cache.assign(LeaderEpoch::new(*epoch), Offset::new(*start));
    }
    leader_epochs::encode(&cache)
}

#[test]
fn sc_16_offset_checkpoints() {
    for file in [
        offsets::RECOVERY_POINT_FILE,
        offsets::HIGH_WATERMARK_FILE,
        offsets::LOG_START_FILE,
    ] {
        survives(
            file,
            &checkpoint(7),
            &checkpoint(4096),
            OffsetCheckpoint::decode,
        );
    }
}

#[test]
fn sc_16_leader_epochs() {
    let (old, new) = (
        epochs(&[(0, 0), (2, 50)]),
        epochs(&[(0, 0), (2, 50), (3, 90)]),
    );
    survives(leader_epochs::FILE, &old, &new, leader_epochs::decode);
}

#[test]
fn sc_16_identities() {
    let topic = |raw| partition_metadata::encode(TopicId::new(Uuid::from_u128(raw)));
    survives(
        partition_metadata::FILE,
        &topic(1000),
        &topic(1001),
        partition_metadata::decode,
    );
    let meta = |node| {
        let meta = MetaProperties {
            cluster_id: "c".to_owned(),
            node_id: NodeId::new(node),
            directory_id: None,
        };
        meta.encode(WallMs::new(0))
    };
    survives(
        meta_properties::FILE,
        &meta(1),
        &meta(2),
        MetaProperties::decode,
    );
}

#[test]
fn sc_16_the_marker_of_a_clean_stop() {
    let marker = |epoch| {
        CleanShutdown {
            broker_epoch: BrokerEpoch::new(epoch),
        }
        .encode()
    };
    survives(
        clean_shutdown::FILE,
        &marker(5),
        &marker(289),
        CleanShutdown::decode,
    );
}
