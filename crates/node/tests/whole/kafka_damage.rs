//! The table of damages that were tried on a running Kafka 4.4 (each on a copy of a directory that
//! it had stopped cleanly, with and without the marker of that stop), here on a whole node. Kafka
//! refuses to start, loses producers or does not notice; ours starts each time, every other
//! partition is as it was, and the damaged one says what happened to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use highwater_disk::{Disk as _, MemDisk};
use highwater_node::NodeConfig;
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use highwater_protocol::messages::{FetchRequest, FetchResponse};
use highwater_protocol::{FetchView, ListenerKind, Request, Response};
use highwater_types::{ErrorCode, NodeId};

use crate::host::{Host, config, fixture};

type Files = BTreeMap<PathBuf, Vec<u8>>;

const MARKER: &str = ".kafka_cleanshutdown";

/// What a node knows of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    start: i64,
    high_watermark: i64,
    end: i64,
    epochs: Vec<(i32, i64)>,
    /// Producer id, epoch and last sequence.
    producers: Vec<(i64, i16, i32)>,
    aborted: Vec<(i64, i64)>,
}

fn kafka_config() -> NodeConfig {
    config("metadata.log.max.record.bytes.between.snapshots=100000\n")
}

fn start(files: &Files) -> Host {
    Host::serving(&kafka_config(), &[MemDisk::with_files("a", files)])
}

fn directory(clean: bool) -> Files {
    let mut files = fixture("one-node-clean", "")[0].files();
    if !clean {
        files.remove(Path::new(MARKER)).expect("it was clean");
    }
    files
}

/// Every partition that is online, by name.
fn known(host: &Host) -> BTreeMap<String, Known> {
    let mut all = BTreeMap::new();
    for partition in host
        .shards
        .iter()
        .flat_map(|shard| shard.partitions().iter())
    {
        let online = partition
            .online()
            .unwrap_or_else(|why| panic!("{}: {why}", partition.name()));
        let log = online.log();
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        let entries = log.epochs().entries.iter();
        let producers = log.producers().producers();
        let aborted = log.aborted_transactions(start, end);
        let known = Known {
            start: start.raw(),
            high_watermark: online.high_watermark().raw(),
            end: end.raw(),
            epochs: entries
                .map(|it| (it.epoch.raw(), it.start_offset.raw()))
                .collect(),
            producers: producers
                .map(|it| (it.producer_id.raw(), it.epoch.raw(), it.last_sequence()))
                .collect(),
            aborted: aborted
                .iter()
                .map(|it| (it.producer_id.raw(), it.first_offset.raw()))
                .collect(),
        };
        all.insert(partition.name().to_string(), known);
    }
    all
}

fn edit<'a>(files: &'a mut Files, path: &str) -> &'a mut Vec<u8> {
    files
        .get_mut(Path::new(path))
        .unwrap_or_else(|| panic!("{path} is in the fixture"))
}

/// Error and whether there are records, for a fetch of a partition at an offset.
fn fetch(host: &mut Host, topic: &str, partition: i32, offset: i64) -> (ErrorCode, bool) {
    let request = FetchRequest {
        replica_id: NodeId::new(-1),
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![FetchTopic {
            topic: topic.to_owned(),
            partitions: vec![FetchPartition {
                partition,
                fetch_offset: offset,
                current_leader_epoch: -1,
                last_fetched_epoch: -1,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let request = Request::Fetch(FetchView::from_message(&request, 12).expect("a request"));
    let client = host.connect(ListenerKind::Broker);
    host.ask(client, &request, 12);
    let answer: FetchResponse = match host.answer(client, &request, 12) {
        Some(Response::Fetch(answer)) => answer,
        other => panic!("{other:?}"),
    };
    let row = &answer.responses[0].partitions[0];
    (
        row.error_code,
        row.records.as_ref().is_some_and(|it| !it.is_empty()),
    )
}

/// Applies a damage with and without the marker, starts, asserts that every partition but
/// `damaged` is as without the damage, and gives the node and what is known of `damaged` without
/// and with the damage.
fn each(damaged: &str, damage: impl Fn(&mut Files), look: impl Fn(&mut Host, &Known, &Known)) {
    for clean in [true, false] {
        let whole = known(&start(&directory(clean)));
        let mut files = directory(clean);
        damage(&mut files);
        let mut host = start(&files);
        let mut found = known(&host);
        let mut expected = whole.clone();
        let before = expected.remove(damaged).expect("in the fixture");
        let after = found.remove(damaged).expect("it is served");
        assert_eq!(found, expected, "clean={clean}: only {damaged} may differ");
        look(&mut host, &before, &after);
        host.stop();
    }
}

/// A line that names the partition and has `words`.
fn assert_said(host: &Host, name: &str, words: &str) {
    let line = host
        .events
        .iter()
        .find(|it| it.contains(name) && it.contains(words));
    assert!(line.is_some(), "{name}, {words}: {:#?}", host.events);
}

const CODECS: &str = "codecs-0/00000000000000000000.log";

#[test]
fn damage_garbage_at_the_end_of_the_active_segment_is_cut_and_the_broker_starts() {
    let garbage = |files: &mut Files| {
        edit(files, CODECS).extend([0xde, 0xad, 0xbe, 0xef].repeat(8));
    };
    each("codecs-0", garbage, |host, before, after| {
        assert_eq!(after, before);
        assert_said(host, "codecs-0", "cut 32 bytes");
        assert_eq!(fetch(host, "codecs", 0, 40), (ErrorCode::NONE, true));
    });
}

#[test]
fn damage_a_bad_checksum_in_the_last_batch_is_noticed_and_said() {
    let flip = |files: &mut Files| *edit(files, CODECS).last_mut().expect("bytes") ^= 0x10;
    each("codecs-0", flip, |host, before, after| {
        assert_eq!(
            (after.end, after.high_watermark),
            (before.end, before.high_watermark)
        );
        assert_said(host, "codecs-0", "DAMAGE");
        assert_eq!(
            fetch(host, "codecs", 0, 45),
            (ErrorCode::CORRUPT_MESSAGE, false)
        );
        assert_eq!(fetch(host, "codecs", 0, 0), (ErrorCode::NONE, true));
    });
}

#[test]
fn damage_missing_last_bytes_are_kept_as_damage_and_never_given_again() {
    let cut = |files: &mut Files| {
        let log = edit(files, "logappend-0/00000000000000000000.log");
        log.truncate(log.len() - 10);
    };
    each("logappend-0", cut, |host, before, after| {
        assert_eq!(
            (after.end, after.high_watermark),
            (before.end, before.high_watermark)
        );
        assert_said(host, "logappend-0", "DAMAGE");
        assert_eq!(
            fetch(host, "logappend", 0, 8),
            (ErrorCode::CORRUPT_MESSAGE, false)
        );
        assert_eq!(fetch(host, "logappend", 0, 0), (ErrorCode::NONE, true));
    });
}

#[test]
fn damage_below_the_recovery_point_costs_nothing_at_the_start() {
    let flip = |files: &mut Files| {
        let log = edit(files, "plain-2/00000000000000000000.log");
        log[100] ^= 1;
    };
    each("plain-2", flip, |host, before, after| {
        assert_eq!(after, before, "it is not read; log verify finds it");
        assert_eq!(fetch(host, "plain", 2, 75), (ErrorCode::NONE, true));
    });
}

#[test]
fn damage_a_missing_or_wrong_index_of_an_old_segment_is_rebuilt() {
    let old = "plain-2/00000000000000000075";
    let index = format!("{old}.index");
    let gone = |files: &mut Files| {
        files.remove(Path::new(&index)).expect("in the fixture");
    };
    each("plain-2", gone, |host, before, after| {
        assert_eq!(after, before);
        assert_said(host, "plain-2", ".index built anew");
    });
    let garbage = |files: &mut Files| edit(files, &format!("{old}.timeindex")).fill(0x7f);
    each("plain-2", garbage, |host, before, after| {
        assert_eq!(after, before);
        assert_said(host, "plain-2", ".timeindex built anew");
    });
}

#[test]
fn damage_lost_leader_epochs_come_back_from_the_batches() {
    let gone = |files: &mut Files| {
        files
            .remove(Path::new("plain-1/leader-epoch-checkpoint"))
            .expect("in the fixture");
    };
    each("plain-1", gone, |host, before, after| {
        assert!(before.epochs.len() > 3, "{before:?}");
        assert_eq!(after, before);
        assert_said(host, "plain-1", "leader epochs taken from the batches");
    });
}

#[test]
fn damage_an_empty_log_start_checkpoint_gives_the_start_of_the_first_segment() {
    let empty = |files: &mut Files| edit(files, "log-start-offset-checkpoint").clear();
    each("trimmed-0", empty, |host, before, after| {
        assert_eq!((before.start, after.start), (37, 35), "as in Kafka");
        assert_eq!(after.end, before.end);
        assert_eq!(fetch(host, "trimmed", 0, 35), (ErrorCode::NONE, true));
    });
}

#[test]
fn damage_a_missing_high_watermark_checkpoint_is_learned_again() {
    let gone = |files: &mut Files| {
        files
            .remove(Path::new("replication-offset-checkpoint"))
            .expect("in the fixture");
    };
    each("plain-0", gone, |_, before, after| {
        assert_eq!(after, before, "a sole replica has everything at once");
        assert!(after.high_watermark > 0);
    });
}

#[test]
fn damage_a_missing_transaction_index_is_rebuilt_also_after_a_clean_stop() {
    let gone = |files: &mut Files| {
        files
            .remove(Path::new("txn-0/00000000000000000007.txnindex"))
            .expect("in the fixture");
    };
    each("txn-0", gone, |_, before, after| {
        assert!(!before.aborted.is_empty(), "{before:?}");
        assert_eq!(after, before);
    });
}

#[test]
fn damage_without_its_snapshots_every_log_still_knows_its_producers() {
    for clean in [true, false] {
        let whole = known(&start(&directory(clean)));
        let mut files = directory(clean);
        let before = files.len();
        files.retain(|path, _| !is_producer_snapshot(path));
        assert!(files.len() < before);
        let host = start(&files);
        let found = known(&host);
        let mut seen = 0;
        for (name, before) in &whole {
            let after = &found[name];
            for producer in &before.producers {
                assert!(
                    after.producers.contains(producer),
                    "{name} {producer:?} of {after:?}"
                );
                seen += 1;
            }
            assert_eq!(
                (&after.epochs, after.end),
                (&before.epochs, before.end),
                "{name}"
            );
            assert_eq!(after.aborted, before.aborted, "{name}");
        }
        assert!(seen > 5, "{seen} producers: {whole:#?}");
        host.stop();
    }
}

fn is_producer_snapshot(path: &Path) -> bool {
    let is_snapshot = path.extension().is_some_and(|it| it == "snapshot");
    is_snapshot && !path.starts_with("__cluster_metadata-0")
}

/// All of the damages at once, and a directory whose marker is garbage.
#[test]
fn damage_a_node_with_every_log_damaged_serves_them_all() {
    let mut files = directory(true);
    let logs: Vec<PathBuf> = files
        .keys()
        .filter(|path| path.extension().is_some_and(|it| it == "log"))
        .filter(|path| !path.starts_with("__cluster_metadata-0"))
        .cloned()
        .collect();
    for path in &logs {
        files
            .get_mut(path)
            .expect("there")
            .extend([0xde, 0xad, 0xbe, 0xef].repeat(8));
    }
    files.insert(PathBuf::from(MARKER), b"\0\0".to_vec());
    files.retain(|path, _| !is_producer_snapshot(path));
    let whole = known(&start(&directory(true)));
    let dirs = [MemDisk::with_files("a", &files)];
    let host = Host::serving(&kafka_config(), &dirs);
    let found = known(&host);
    let ends = |known: &BTreeMap<String, Known>| -> Vec<(String, i64)> {
        known
            .iter()
            .map(|(name, it)| (name.clone(), it.end))
            .collect()
    };
    assert_eq!(ends(&found), ends(&whole));
    host.stop();
    drop(dirs[0].lock().expect("free again"));
}
