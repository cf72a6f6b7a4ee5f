//! Directories that something happened to between two starts.

use std::path::{Path, PathBuf};

use highwater_disk::MemDisk;
use highwater_log::checkpoint::OffsetCheckpoint;
use highwater_node::Work;
use highwater_protocol::messages::CreateTopicsRequest;
use highwater_protocol::messages::create_topics_request::CreatableTopic;
use highwater_protocol::{ListenerKind, Response};
use highwater_records::Batches;
use highwater_types::{Millis, Offset};

use crate::host::{Host, config, file, formatted};

const METADATA_LOG: &str = "__cluster_metadata-0/00000000000000000000.log";
const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";

/// A node with one topic, after its stop.
fn with_topic(shards: u16) -> (highwater_node::NodeConfig, Vec<MemDisk>) {
    let config = config(&format!("num.shards={shards}\n"));
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "orders");
    host.pass(Millis::new(20));
    host.stop();
    (config, dirs)
}

fn creation(name: &str) -> CreateTopicsRequest {
    let topic = CreatableTopic {
        name: name.to_owned(),
        num_partitions: 3,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    }
}

fn create(host: &mut Host, name: &str) {
    let Response::CreateTopics(answer) = host.call(ListenerKind::Broker, creation(name)) else {
        panic!("another answer")
    };
    assert!(!answer.topics[0].error_code.is_error(), "{answer:?}");
}

/// The directory with one file changed; `None` removes it.
fn changed(dirs: &[MemDisk], path: &str, bytes: Option<Vec<u8>>) -> Vec<MemDisk> {
    let mut files = dirs[0].files();
    match bytes {
        Some(bytes) => files.insert(PathBuf::from(path), bytes),
        None => files.remove(Path::new(path)),
    };
    vec![MemDisk::with_files("a", &files)]
}

/// The metadata log with one byte of each batch in turn turned over, but for the last batch.
fn rotten(log: &[u8]) -> Vec<Vec<u8>> {
    let sizes: Vec<usize> = Batches::new(log)
        .map(|batch| batch.expect("well formed").size_bytes())
        .collect();
    let mut end = 0;
    let mut all = Vec::new();
    for size in &sizes[..sizes.len() - 1] {
        end += size;
        let mut bytes = log.to_vec();
        bytes[end - 1] ^= 1;
        all.push(bytes);
    }
    all
}

fn refused(config: &highwater_node::NodeConfig, dirs: &[MemDisk]) -> String {
    match Host::try_start(config, dirs) {
        Ok(_) => panic!("it starts"),
        Err(why) => why.to_string(),
    }
}

#[test]
fn rotten_metadata_is_refused_and_kept_after_a_clean_stop() {
    let (config, dirs) = with_topic(1);
    for bytes in rotten(&file(&dirs, METADATA_LOG).expect("there")) {
        let dirs = changed(&dirs, METADATA_LOG, Some(bytes.clone()));
        for _ in 0..2 {
            let why = refused(&config, &dirs);
            assert!(why.contains("committed metadata is damaged"), "{why}");
            assert_eq!(file(&dirs, METADATA_LOG).expect("there"), bytes);
        }
    }
}

#[test]
fn rotten_metadata_of_earlier_lives_is_refused_and_kept_after_a_kill() {
    let (config, dirs) = with_topic(1);
    let earlier = file(&dirs, METADATA_LOG).expect("there").len();
    drop(Host::serving(&config, &dirs));
    let log = file(&dirs, METADATA_LOG).expect("there");
    assert!(log.len() > earlier);
    for bytes in rotten(&log) {
        if bytes[..earlier] == log[..earlier] {
            continue;
        }
        let dirs = changed(&dirs, METADATA_LOG, Some(bytes.clone()));
        let why = refused(&config, &dirs);
        assert!(why.contains("committed metadata is damaged"), "{why}");
        assert_eq!(file(&dirs, METADATA_LOG).expect("there"), bytes);
    }
}

/// What was committed in this very life, down to the last batch.
#[test]
fn rotten_metadata_of_the_newest_life_is_refused_and_kept_after_a_kill() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "orders");
    host.pass(Millis::new(20));
    drop(host);
    dirs[0].crash();
    let log = file(&dirs, METADATA_LOG).expect("there");
    let mut all = rotten(&log);
    // The last batch too.
    let mut bytes = log.clone();
    *bytes.last_mut().expect("not empty") ^= 1;
    all.push(bytes);
    assert!(all.len() > 4);
    for bytes in all {
        let dirs = changed(&dirs, METADATA_LOG, Some(bytes.clone()));
        for _ in 0..2 {
            let why = refused(&config, &dirs);
            assert!(why.contains("committed metadata is damaged"), "{why}");
            assert!(
                file(&dirs, METADATA_LOG).expect("there") == bytes,
                "it is kept"
            );
        }
    }
    // Cut short, it has lost what was committed.
    let dirs = changed(&dirs, METADATA_LOG, Some(log[..log.len() - 10].to_vec()));
    let why = refused(&config, &dirs);
    assert!(why.contains("committed metadata is damaged"), "{why}");
}

/// The power goes at any moment of a life, with whatever is not flushed torn: that is never taken
/// for damage of what was committed.
#[test]
fn a_torn_tail_of_the_metadata_is_never_refused() {
    let config = config("");
    let dirs = formatted(&config);
    dirs[0].write_back();
    // Three topics are appended while the flush of the one before is still under way.
    let live = |dirs: &[MemDisk]| {
        let mut host = Host::try_start(&config, dirs).ok()?;
        if !host.try_serve(100) {
            return None;
        }
        host.hold = |work| matches!(work, Work::SyncLog(_));
        for name in ["orders", "payments", "bills"] {
            let client = host.connect(ListenerKind::Broker);
            host.ask(client, &creation(name).into(), 7);
            host.tick();
        }
        for _ in 0..5 {
            host.release();
            host.pass(Millis::new(5));
        }
        Some(host)
    };
    let first = dirs[0].ops_count();
    let count = {
        let dirs = [dirs[0].snapshot()];
        drop(live(&dirs));
        dirs[0].ops_count()
    };
    assert!(count > first + 20);
    let mut started = 0;
    for op in first..count {
        for seed in [None, Some(1), Some(2), Some(3)] {
            let dirs = [dirs[0].snapshot()];
            dirs[0].power_off_at_op(op, seed);
            drop(live(&dirs));
            dirs[0].power_on();
            if let Err(why) = Host::try_start(&config, &dirs) {
                panic!("op {op} of {first}..{count}, seed {seed:?}: {why}");
            }
            started += 1;
        }
    }
    assert!(started > 100, "{started}");
}

/// The epoch of a start has to be written: without a byte of room there is no start, and the
/// words say what helps.
#[test]
fn sc_07_a_start_on_a_full_disk_is_refused_with_a_remedy() {
    let (config, dirs) = with_topic(1);
    let before = dirs[0].files();
    let used = before.values().map(Vec::len).sum();
    dirs[0].set_capacity(Some(used));
    let why = refused(&config, &dirs);
    for part in ["no space is left", "0 KiB free", "KiB needed", "make room"] {
        assert!(why.contains(part), "{why}");
    }
    dirs[0].set_capacity(None);
    Host::serving(&config, &dirs);
}

#[test]
fn logs_without_the_metadata_that_knew_them_are_left_alone() {
    let (config, dirs) = with_topic(1);
    let mut files = dirs[0].files();
    files.retain(|path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !path.starts_with("__cluster_metadata-0") || name.ends_with(".checkpoint")
    });
    let dirs = [MemDisk::with_files("a", &files)];
    for _ in 0..2 {
        let why = refused(&config, &dirs);
        assert!(why.contains("orders-0"), "{why}");
    }
    assert!(file(&dirs, "orders-0/partition.metadata").is_some());
}

#[test]
fn a_log_that_is_gone_or_set_aside_is_told_of() {
    for shards in 1..=3 {
        let (config, dirs) = with_topic(shards);
        let mut lines = OffsetCheckpoint::decode(&file(&dirs, HIGH_WATERMARKS).expect("there"))
            .expect("well formed");
        for offset in lines.offsets.values_mut() {
            *offset = Offset::new(5);
        }
        let dirs = changed(&dirs, HIGH_WATERMARKS, Some(lines.encode()));
        let dirs = changed(&dirs, "orders-0/partition.metadata", None);
        let mut files = dirs[0].files();
        files.retain(|path, _| !path.starts_with("orders-1"));
        let dirs = [MemDisk::with_files("a", &files)];
        let host = Host::serving(&config, &dirs);
        let told = |text: &str| host.events.iter().any(|event| event.contains(text));
        assert!(
            told("data-loss orders-0 [0,5): its log was set aside"),
            "{:?}",
            host.events
        );
        assert!(
            told("data-loss orders-1 [0,5): the directory"),
            "{:?}",
            host.events
        );
        assert!(told("stray orders-0 ->"), "{:?}", host.events);
        for partition in 0..3 {
            let path = format!("orders-{partition}/partition.metadata");
            assert!(file(&dirs, &path).is_some(), "{path}: made anew");
        }
    }
}

#[test]
fn a_log_that_was_being_made_leaves_no_stray() {
    let (config, dirs) = with_topic(1);
    let mut files = dirs[0].files();
    files.retain(|path, _| !path.starts_with("orders-1"));
    files.insert("orders-1/partition.metadata.tmp".into(), b"vers".to_vec());
    files.insert("gone-0/partition.metadata.tmp".into(), Vec::new());
    let dirs = [MemDisk::with_files("a", &files)];
    let host = Host::serving(&config, &dirs);
    assert!(
        !host.events.iter().any(|event| event.contains("stray")),
        "{:?}",
        host.events
    );
    assert!(file(&dirs, "orders-1/partition.metadata").is_some());
    assert_eq!(file(&dirs, "gone-0/partition.metadata.tmp"), None);
}
