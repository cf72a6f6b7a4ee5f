//! A broker's copy of the metadata log: followed, cut, taken over from snapshots, and never ahead
//! of what is committed.

use std::path::Path;

use highwater_disk::MemDisk;
use highwater_metadata::build_batch;
use highwater_node::Work;
use highwater_protocol::ApiKey;
use highwater_records::Batches;
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::PartitionRecord;
use highwater_types::{NodeId, Offset, WallMs};

use crate::cluster::{Cluster, Role, the_partition};
use crate::host::file;

const LOG: &str = "__cluster_metadata-0/00000000000000000000.log";
const QUORUM_STATE: &str = "__cluster_metadata-0/quorum-state";
const TWO: [(i32, Role, &str); 2] = [(1, Role::Combined, ""), (2, Role::Broker, "")];
/// Snapshots come often, and what they replace goes.
const SMALL: &str = "metadata.log.max.record.bytes.between.snapshots=1\n\
    internal.metadata.log.segment.bytes=1024\nmetadata.max.retention.bytes=1\n\
    internal.metadata.delete.delay.millis=0\n";

/// The bytes of the metadata log of a node that was not cut.
fn log(cluster: &Cluster, id: i32) -> Vec<u8> {
    file(&cluster.members[&id].dirs, LOG).expect("a metadata log")
}

fn knows(cluster: &Cluster, id: i32, topic: &str) -> bool {
    let image = cluster.host(id).control.image();
    image.topic_by_name(topic).is_some()
}

fn committed(cluster: &Cluster, id: i32) -> Option<Offset> {
    cluster.host(id).control.metadata_high_watermark()
}

#[test]
fn i_19_the_copy_is_the_leaders_log_byte_for_byte() {
    let mut cluster = Cluster::serving(&TWO);
    for name in ["a", "b", "c"] {
        cluster.create(1, name, &[2]);
    }
    cluster.settle(1);
    assert!(log(&cluster, 1) == log(&cluster, 2));
    assert_eq!(committed(&cluster, 1), committed(&cluster, 2));
    // As Kafka's observers keep it: no vote, the leader, and its epoch.
    cluster.pass(10);
    let state = file(&cluster.members[&2].dirs, QUORUM_STATE).expect("kept");
    let expected = "{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\
                    \"votedDirectoryId\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"data_version\":1}";
    let first = "{\"clusterId\":\"\",\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\
                 \"appliedOffset\":0,\"currentVoters\":[],\"data_version\":0}";
    let state = String::from_utf8(state).expect("text");
    // The form follows kraft.version, which it did not know when it first heard of the leader.
    assert!([expected, first].contains(&state.as_str()), "{state}");
}

#[test]
fn what_is_appended_and_not_committed_is_not_applied() {
    let mut cluster = Cluster::serving(&TWO);
    cluster.create(1, "a", &[2]);
    cluster.settle(1);
    cluster.host_mut(1).hold = |work| matches!(work, Work::SyncLog(_));
    let before = committed(&cluster, 2);
    let client = cluster.on(1, |host| {
        host.connect(highwater_protocol::ListenerKind::Controller)
    });
    let request = crate::quorum_requests::create("b");
    cluster.on(1, |host| host.ask(client, &request, 7));
    cluster.run_until("the copy has it", |cluster| {
        log(cluster, 1) == log(cluster, 2) && log(cluster, 2).len() > 100
    });
    cluster.pass(1000);
    assert!(!knows(&cluster, 2, "b"));
    assert_eq!(committed(&cluster, 2), before);
    cluster.on(1, |host| host.release());
    cluster.settle(1);
    assert!(knows(&cluster, 2, "b"));
    // That it is committed is told at once, not with the next record.
    let fetches = cluster.carried.iter();
    assert!(fetches.filter(|it| it.2 == ApiKey::Fetch).count() > 3);
}

#[test]
fn a_broker_that_was_cut_off_returns() {
    let mut cluster = Cluster::serving(&TWO);
    cluster.create(1, "a", &[1]);
    cluster.settle(1);
    cluster.cut(1, 2);
    cluster.pass(12_000);
    let fenced = |cluster: &Cluster| {
        let broker = cluster.host(1).control.image().broker(NodeId::new(2));
        broker.expect("registered").fenced
    };
    assert!(fenced(&cluster));
    cluster.create(1, "b", &[1]);
    assert!(!knows(&cluster, 2, "b"));
    cluster.heal();
    cluster.run_until("it is back", |cluster| {
        knows(cluster, 2, "b") && !fenced(cluster)
    });
    // Failures are told once.
    let told = cluster.host(2).events.iter();
    let told = told.filter(|it| it.contains("cannot be followed"));
    assert_eq!(told.count(), 1);
}

#[test]
fn a_restart_goes_on_from_its_own_snapshot_and_log() {
    let nodes = [(1, Role::Combined, ""), (2, Role::Broker, SMALL)];
    let mut cluster = Cluster::serving(&nodes);
    for name in ["a", "b", "c", "d"] {
        cluster.create(1, name, &[2]);
        cluster.settle(1);
        cluster.pass(100);
    }
    cluster.stop(2);
    let before = cluster.carried.len();
    cluster.start(2);
    // What its snapshot has is known before anybody is asked.
    let known = committed(&cluster, 2).expect("a snapshot");
    assert!(known > Offset::new(5), "{known}");
    cluster.run_until("it serves", |cluster| cluster.host(2).control.is_serving());
    let asked = cluster.carried.iter().skip(before);
    let asked: Vec<_> = asked.filter(|it| it.2 == ApiKey::FetchSnapshot).collect();
    assert_eq!(asked, Vec::<&(i32, i32, ApiKey)>::new());
    cluster.settle(1);
    assert!(knows(&cluster, 2, "d"));
}

#[test]
fn a_snapshot_comes_over_the_wire_when_the_records_are_gone() {
    let nodes = [
        (1, Role::Combined, SMALL),
        (
            2,
            Role::Broker,
            "controller.quorum.fetch.snapshot.max.bytes=100\n",
        ),
    ];
    let mut cluster = Cluster::new(&nodes);
    cluster.start(1);
    cluster.run_until("it serves", |cluster| cluster.host(1).control.is_serving());
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        cluster.create(1, name, &[1]);
        cluster.pass(100);
    }
    assert_eq!(
        file(&cluster.members[&1].dirs, LOG),
        None,
        "the start moved"
    );
    cluster.start(2);
    cluster.run_until("it serves", |cluster| cluster.host(2).control.is_serving());
    cluster.settle(1);
    assert!(knows(&cluster, 2, "a") && knows(&cluster, 2, "h"));
    let pieces = cluster
        .carried
        .iter()
        .filter(|it| it.2 == ApiKey::FetchSnapshot);
    assert!(pieces.count() > 3);
    // The copy of it is whole, and the log goes on behind it.
    let files = cluster.members[&2].dirs[0].files();
    let is_snapshot = |path: &&std::path::PathBuf| {
        path.starts_with("__cluster_metadata-0")
            && path.extension().is_some_and(|it| it == "checkpoint")
    };
    let snapshot = files.keys().find(is_snapshot).expect("a snapshot").clone();
    let theirs = cluster.members[&1].dirs[0].files();
    if let Some(theirs) = theirs.get(&snapshot) {
        assert!(files[&snapshot] == *theirs);
    }
    assert!(
        !files
            .keys()
            .any(|it| it.to_string_lossy().ends_with(".part"))
    );
    // And it starts again from it.
    cluster.kill(2, true);
    cluster.start(2);
    cluster.run_until("it serves", |cluster| cluster.host(2).control.is_serving());
    cluster.settle(1);
    assert!(knows(&cluster, 2, "h"));
}

#[test]
fn a_broker_that_lags_behind_the_start_of_the_log_catches_up_by_a_snapshot() {
    let nodes = [(1, Role::Combined, SMALL), (2, Role::Broker, "")];
    let mut cluster = Cluster::serving(&nodes);
    cluster.create(1, "gone", &[2]);
    cluster.settle(1);
    cluster.cut(1, 2);
    let request = crate::quorum_requests::delete("gone");
    cluster.call(1, highwater_protocol::ListenerKind::Controller, request);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        cluster.create(1, name, &[1]);
        cluster.pass(100);
    }
    assert!(knows(&cluster, 2, "gone"));
    cluster.heal();
    cluster.settle(1);
    assert!(knows(&cluster, 2, "h"));
    // What the snapshot does not have any more is gone, from the shards too.
    assert!(!knows(&cluster, 2, "gone"));
    cluster.pass(100);
    let told = &cluster.host(2).events;
    assert!(
        told.iter()
            .any(|it| it.contains("gone-0") && it.contains("delet")),
        "{told:#?}"
    );
}

#[test]
fn i_19_a_tail_that_the_leader_lost_is_cut() {
    let mut cluster = Cluster::serving(&TWO);
    cluster.create(1, "kept", &[2]);
    cluster.settle(1);
    cluster.host_mut(1).hold = |work| matches!(work, Work::SyncLog(_));
    let kept = log(&cluster, 2);
    let client = cluster.on(1, |host| {
        host.connect(highwater_protocol::ListenerKind::Controller)
    });
    let request = crate::quorum_requests::create("lost");
    cluster.on(1, |host| host.ask(client, &request, 7));
    cluster.run_until("the copy is longer", |cluster| {
        log(cluster, 2).len() > kept.len()
    });
    let tail = log(&cluster, 2);
    // The leader loses its power, and with it what was never flushed.
    cluster.kill(1, true);
    cluster.start(1);
    cluster.run_until("both serve", |cluster| {
        cluster.host(1).control.is_serving() && cluster.host(2).control.is_serving()
    });
    cluster.settle(1);
    assert!(!knows(&cluster, 1, "lost") && !knows(&cluster, 2, "lost"));
    assert!(knows(&cluster, 2, "kept"));
    let told = &cluster.host(2).events;
    assert!(
        told.iter().any(|it| it.contains("has another tail")),
        "{told:#?}"
    );
    let now = cluster.members[&2].dirs[0].files();
    let now: Vec<u8> = now
        .iter()
        .filter(|(path, _)| {
            path.starts_with("__cluster_metadata-0")
                && path.extension().is_some_and(|it| it == "log")
        })
        .flat_map(|(_, bytes)| bytes.clone())
        .collect();
    assert!(now.starts_with(&kept) && !now.starts_with(&tail));
    assert!(now == log(&cluster, 1));
    assert_eq!(
        file(&cluster.members[&2].dirs, LOG).map(|it| it.len()),
        Some(kept.len())
    );
}

#[test]
fn a_damaged_copy_is_fetched_again() {
    let mut cluster = Cluster::serving(&TWO);
    for name in ["a", "b", "c"] {
        cluster.create(1, name, &[2]);
    }
    cluster.settle(1);
    cluster.stop(2);
    let member = cluster.members.get_mut(&2).expect("there");
    let mut files = member.dirs[0].files();
    let bytes = files.get_mut(Path::new(LOG)).expect("a log");
    bytes[200] ^= 1;
    files.remove(Path::new(".kafka_cleanshutdown"));
    member.dirs = vec![MemDisk::with_files("a", &files)];
    cluster.start(2);
    cluster.run_until("it serves", |cluster| cluster.host(2).control.is_serving());
    cluster.settle(1);
    assert!(knows(&cluster, 2, "c"));
    let told = &cluster.host(2).events;
    // Nothing of a copy need be durable, so it is no loss.
    assert!(told.iter().any(|it| it.contains("wrong CRC")), "{told:#?}");
}

/// The bytes of the log of a stopped node, changed.
fn rewrite(cluster: &mut Cluster, id: i32, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let member = cluster.members.get_mut(&id).expect("there");
    let mut files = member.dirs[0].files();
    let bytes = files.remove(Path::new(LOG)).expect("a log");
    files.insert(LOG.into(), change(bytes));
    member.dirs = vec![MemDisk::with_files("a", &files)];
}

#[test]
fn rot_in_a_copy_that_was_closed_cleanly_is_found_when_it_is_applied() {
    let mut cluster = Cluster::serving(&TWO);
    for name in ["a", "b", "c"] {
        cluster.create(1, name, &[2]);
    }
    cluster.settle(1);
    cluster.stop(2);
    rewrite(&mut cluster, 2, |mut bytes| {
        bytes[800] ^= 1;
        bytes
    });
    cluster.start(2);
    cluster.run_until("it serves", |cluster| cluster.host(2).control.is_serving());
    cluster.settle(1);
    assert!(knows(&cluster, 2, "c"));
    let told = &cluster.host(2).events;
    assert!(
        told.iter().any(|it| it.contains("fetching it again")),
        "{told:#?}"
    );
}

#[test]
fn cm_07_metadata_that_do_not_fit_stop_the_node_and_get_into_no_snapshot() {
    let nodes = [(1, Role::Combined, ""), (2, Role::Broker, "")];
    let mut cluster = Cluster::serving(&nodes);
    cluster.create(1, "a", &[2]);
    cluster.settle(1);
    cluster.stop(2);
    // In the place of the topic's records, others whose checksum is right: they name no topic.
    rewrite(&mut cluster, 2, |bytes| {
        let mut changed = Vec::new();
        for batch in Batches::new(&bytes) {
            let batch = batch.expect("a batch");
            let header = *batch.header();
            let end = changed.len() + batch.size_bytes();
            let names_topic = |it: &[u8]| it.windows(2).any(|pair| pair == b"\x02a");
            let begin = changed.len();
            let own = &bytes[begin.min(bytes.len())..end.min(bytes.len())];
            if header.attributes.is_control() || !names_topic(own) {
                changed.extend_from_slice(own);
                continue;
            }
            let count = header.last_offset().raw() - header.base_offset.raw() + 1;
            let record = MetadataRecord::from(PartitionRecord::default());
            let records = vec![record; usize::try_from(count).expect("few")];
            let wrong = build_batch(
                &records,
                header.base_offset,
                header.leader_epoch,
                WallMs::new(1_796_100_000_000),
                33,
            );
            changed.extend_from_slice(&wrong.expect("fits"));
            changed.extend_from_slice(&bytes[end..]);
            break;
        }
        changed
    });
    let member = cluster.members.get_mut(&2).expect("there");
    let snapshots = "metadata.log.max.record.bytes.between.snapshots=1\n";
    member.config = crate::cluster::node_config(2, Role::Broker, snapshots);
    cluster.start(2);
    cluster.run_until("it stopped", |cluster| cluster.host(2).stopped);
    let told = cluster.host(2).events.join("\n");
    assert!(told.contains("cannot be applied"), "{told}");
    let files = cluster.members[&2].dirs[0].files();
    let wrong = files.keys().filter(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".checkpoint") && !name.contains("/00000000000000000000-")
    });
    // None that reaches behind the bad record: at most what was good before it.
    assert!(wrong.count() <= 1);
}

/// A broker joins while topics are made, and loses its power at an operation of its disk; it comes
/// up again and knows everything. Returns how many operations its first life had.
fn join_and_lose_power(at: Option<u64>, seed: Option<u64>) -> u64 {
    let nodes = [(1, Role::Combined, SMALL), (2, Role::Broker, SMALL)];
    let mut cluster = Cluster::serving(&nodes[..1]);
    for name in ["a", "b", "c", "d", "e", "f"] {
        cluster.create(1, name, &[1]);
        cluster.pass(50);
    }
    let mut joining = Cluster::new(&nodes[1..]);
    let member = joining.members.remove(&2).expect("there");
    let disk = member.dirs[0].clone();
    cluster.members.insert(2, member);
    let begun = disk.ops_count();
    if let Some(op) = at {
        disk.power_off_at_op(begun + op, seed);
    }
    let started = cluster.try_start(2).is_ok();
    for name in ["g", "h", "i"] {
        cluster.create(1, name, &[1]);
        cluster.pass(200);
    }
    let ops = disk.ops_count() - begun;
    if started {
        cluster.kill(2, false);
    }
    disk.power_on();
    cluster.start(2);
    cluster.run_until("it serves", |cluster| cluster.host(2).control.is_serving());
    cluster.settle(1);
    let topics = ["a", "f", "g", "i"];
    let lacks = topics.iter().find(|topic| !knows(&cluster, 2, topic));
    assert_eq!(lacks, None, "op {at:?}, seed {seed:?}");
    ops
}

#[test]
fn an_observer_survives_a_loss_of_power_at_every_operation() {
    let ops = join_and_lose_power(None, None);
    assert!(ops > 50, "{ops}");
    for seed in [None, Some(1)] {
        for op in 0..=ops {
            join_and_lose_power(Some(op), seed);
        }
    }
}

#[test]
fn cm_09_a_broker_back_from_a_power_cut_leads_in_no_old_epoch() {
    let nodes = [
        (100, Role::Controller, ""),
        (1, Role::Broker, ""),
        (2, Role::Broker, ""),
    ];
    let mut cluster = Cluster::serving(&nodes);
    cluster.create(100, "orders", &[1, 2]);
    cluster.settle(100);
    let state = |cluster: &Cluster| {
        let image = cluster.host(100).control.image();
        let topic = image.topic_by_name("orders").expect("the topic");
        the_partition(topic).clone()
    };
    cluster.run_until("both are in sync", |cluster| {
        state(cluster).in_sync_replicas.len() == 2
    });
    let before = state(&cluster);
    assert_eq!(before.leader, NodeId::new(1));
    // Back within its session.
    cluster.kill(1, true);
    cluster.start(1);
    cluster.run_until("it serves", |cluster| cluster.host(1).control.is_serving());
    let after = state(&cluster);
    assert!(after.leader_epoch > before.leader_epoch, "{after:?}");
    assert_eq!(after.leader, NodeId::new(2));
    // The first image that its shards got had its new registration, so no old leadership.
    let led = cluster.host(1).events.iter();
    let led = led.filter(|it| it.contains("orders-0") && it.contains("leads"));
    assert_eq!(led.collect::<Vec<_>>(), Vec::<&String>::new());
}
