//! Logs from the first image to the last flush.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use highwater_disk::{Blocking, Disk as _, DiskOp, Fault, FaultPath};
use highwater_log::checkpoint::offsets::{
    HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE,
};
use highwater_node::{Changed, LogDirNumber, Machine as _, Part};
use highwater_types::{DirectoryId, Millis, Mono, NodeId};

use support::{World, batch, dir_id, everything, idempotent, never, syncs};

const T: (&str, i32) = ("t", 0);

#[test]
fn a_new_log_has_its_identity_before_its_data() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    let text = world.disks[0]
        .read("t-0/partition.metadata".as_ref())
        .expect("readable");
    let expected = format!("version: 0\ntopic_id: {topic}");
    assert_eq!(text.as_deref(), Some(expected.as_bytes()));
}

#[test]
fn logs_loaded_is_told_once_all_logs_are_open() {
    let mut world = World::new();
    world.topic("t", 3, &[]);
    assert_eq!(world.produce(-1, T, batch(&["a"])), (0, 0));
    world.kill();
    world.events.clear();
    world.hold = everything;
    world.start();
    assert!(!world.has_event("LogsLoaded"));
    assert_eq!(
        world.held.len(),
        2,
        "no more at once than num.recovery.threads.per.data.dir"
    );
    assert_eq!(
        world.produce(1, T, batch(&["b"])).0,
        6,
        "not while it recovers"
    );
    world.hold = never;
    world.release();
    assert!(world.has_event("LogsLoaded"), "{:?}", world.events);
    assert_eq!(world.offsets("t", 0)[3], 1);
}

#[test]
fn a_clean_stop_writes_checkpoints_and_the_next_start_finds_everything() {
    let mut world = World::new();
    world.topic("t", 2, &[]);
    world.produce(-1, T, batch(&["a", "b"]));
    world.stop();
    assert!(
        world.has_event("Closed { unclean: {} }"),
        "{:?}",
        world.events
    );
    for file in [RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE] {
        let lines = world.checkpoint(file);
        assert_eq!((lines["t-0"], lines["t-1"]), (2, 0), "{file}");
    }
    assert!(world.checkpoint(LOG_START_FILE).is_empty());
    world.disks[0].power_off_losing_unsynced();
    world.start();
    assert_eq!(world.offsets("t", 0), [0, 2, 2, 2]);
    assert_eq!(world.produce(-1, T, batch(&["c"])), (0, 2));
}

#[test]
fn after_a_kill_everything_is_there_and_the_sole_replica_commits_it() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    for _ in 0..10 {
        world.produce(-1, T, batch(&["a", "b"]));
    }
    world.kill();
    world.change(topic, 0, |it| it.leader_epoch = it.leader_epoch.next());
    world.start();
    assert_eq!(world.offsets("t", 0)[1..], [20, 20, 20]);
    assert!(!world.has_event("data-loss"));
}

#[test]
fn unflushed_records_below_the_checkpointed_high_watermark_are_a_loss_that_is_told() {
    let mut world = World::new();
    world.topic("t", 1, &[]);
    world.produce(-1, T, batch(&["a", "b"]));
    world.advance(6_000);
    assert_eq!(world.checkpoint(HIGH_WATERMARK_FILE)["t-0"], 2);
    world.power_off();
    world.start();
    assert_eq!(world.offsets("t", 0)[3], 0);
    assert!(world.has_event("data-loss t-0 [0,2)"), "{:?}", world.events);
}

#[test]
fn checkpoints_are_written_at_intervals_and_only_after_changes() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.messages", "1")]);
    world.advance(120_000);
    let idle: Vec<_> = world
        .shards
        .iter()
        .filter_map(highwater_node_deadline)
        .collect();
    world.produce(-1, T, batch(&["a"]));
    world.advance(1);
    assert_eq!(
        world.checkpoint(HIGH_WATERMARK_FILE)["t-0"],
        1,
        "long after the last write"
    );
    world.produce(-1, T, batch(&["b"]));
    world.advance(4_900);
    assert_eq!(world.checkpoint(HIGH_WATERMARK_FILE)["t-0"], 1);
    world.advance(200);
    assert_eq!(
        world.checkpoint(HIGH_WATERMARK_FILE)["t-0"],
        2,
        "5 s after the last write"
    );
    assert_eq!(world.checkpoint(RECOVERY_POINT_FILE)["t-0"], 1);
    world.advance(60_000);
    assert_eq!(world.checkpoint(RECOVERY_POINT_FILE)["t-0"], 2);
    let ops = world.disks[0].ops_count();
    world.advance(100_000);
    assert_eq!(
        world.disks[0].ops_count(),
        ops,
        "idle partitions cost nothing"
    );
    assert!(
        idle.iter().all(|due| due.as_micros() > 200_000_000),
        "{idle:?}"
    );
}

fn highwater_node_deadline(shard: &highwater_node::Shard<highwater_disk::MemDisk>) -> Option<Mono> {
    highwater_node::Machine::next_deadline(shard)
}

#[test]
fn checkpoints_of_several_shards_share_one_file() {
    for shards in 1..=3 {
        let mut world = World::with(shards, 1, "");
        world.topic("t", 9, &[]);
        for number in 0..9 {
            world.produce(-1, ("t", number), batch(&["a"]));
        }
        world.advance(6_000);
        let lines = world.checkpoint(HIGH_WATERMARK_FILE);
        assert_eq!(lines.len(), 9, "{lines:?}");
        assert!(lines.values().all(|offset| *offset == 1));
        world.stop();
        assert_eq!(world.checkpoint(RECOVERY_POINT_FILE).len(), 9);
        world.start();
        world.stop();
        assert_eq!(world.checkpoint(RECOVERY_POINT_FILE).len(), 9);
    }
}

#[test]
fn a_deleted_topic_is_renamed_at_once_and_removed_later() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.produce(-1, T, batch(&["a"]));
    world.delete_topic(topic);
    let names = world.dir_names();
    assert!(
        names
            .iter()
            .any(|name| name.starts_with("t-0.") && name.ends_with("-delete"))
    );
    assert!(!names.contains(&"t-0".to_owned()));
    // The name is free again.
    world.topic("t", 1, &[]);
    assert_eq!(world.produce(-1, T, batch(&["b"])), (0, 0));
    world.advance(59_000);
    assert!(
        world
            .dir_names()
            .iter()
            .any(|name| name.ends_with("-delete"))
    );
    world.advance(2_000);
    assert!(
        !world
            .dir_names()
            .iter()
            .any(|name| name.ends_with("-delete"))
    );
    assert_eq!(world.offsets("t", 0)[3], 1);
}

#[test]
fn a_topic_made_again_while_its_old_log_is_being_opened_starts_empty() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.produce(-1, T, batch(&["a"]));
    world.kill();
    world.hold = everything;
    world.start();
    world.delete_topic(topic);
    world.topic("t", 1, &[]);
    world.hold = never;
    world.release();
    assert_eq!(world.offsets("t", 0)[3], 0);
    assert!(
        world
            .dir_names()
            .iter()
            .any(|name| name.ends_with("-delete"))
    );
}

#[test]
fn what_a_stop_left_of_deleted_topics_is_removed_at_the_next_start() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.delete_topic(topic);
    world.stop();
    assert!(
        world
            .dir_names()
            .iter()
            .any(|name| name.ends_with("-delete"))
    );
    world.start();
    assert!(
        !world
            .dir_names()
            .iter()
            .any(|name| name.ends_with("-delete"))
    );
}

#[test]
fn rt_16_a_log_of_another_topic_id_is_set_aside() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.topic("kept", 1, &[]);
    world.produce(-1, T, batch(&["old"]));
    world.produce(-1, ("kept", 0), batch(&["a"]));
    world.kill();
    // While the node was down the topic was deleted and made again.
    let old = world.image.topics.remove(&topic).expect("made");
    world.image.topic_ids.remove(&old.name);
    world.topic("t", 1, &[]);
    world.start();
    assert!(world.has_event("stray t-0 -> t-0."), "{:?}", world.events);
    assert!(
        world
            .dir_names()
            .iter()
            .any(|name| name.ends_with("-stray"))
    );
    assert_eq!(world.offsets("t", 0)[3], 0, "starts empty");
    assert_eq!(world.offsets("kept", 0)[3], 1);
}

#[test]
fn a_log_without_partition_metadata_is_set_aside_as_kafka_does() {
    let mut world = World::new();
    world.topic("t", 1, &[]);
    world.produce(-1, T, batch(&["a"]));
    world.kill();
    let disk = world.disks[0].session();
    disk.remove("t-0/partition.metadata".as_ref(), &Blocking::enter())
        .expect("removed");
    world.start();
    assert!(
        world.has_event("partition.metadata is missing"),
        "{:?}",
        world.events
    );
    assert_eq!(world.offsets("t", 0)[3], 0);
}

#[test]
fn retention_deletes_what_is_old_below_the_high_watermark() {
    let mut world = World::new();
    let configs = [("retention.ms", "1000"), ("internal.segment.bytes", "200")];
    let topic = world.topic("t", 1, &configs);
    for _ in 0..5 {
        world.produce(-1, T, batch(&["some text that fills a segment soon"]));
    }
    world.advance(310_000);
    assert_eq!(
        world.offsets("t", 0),
        [5, 5, 5, 5],
        "all is old, the active segment too"
    );
    assert!(
        world.has_event("retain t-0 log-start=5"),
        "{:?}",
        world.events
    );
    assert_eq!(world.produce(-1, T, batch(&["b"])), (0, 5));
    // Files stay for file.delete.delay.ms.
    let files = || world.disks[0].list(Path::new("t-0")).expect("there");
    assert!(files().iter().any(|file| file.name.ends_with(".deleted")));
    world.advance(61_000);
    let files = world.disks[0].list(Path::new("t-0")).expect("there");
    assert!(
        !files.iter().any(|file| file.name.ends_with(".deleted")),
        "{files:?}"
    );
    assert!(world.image.topic(topic).is_some());
}

#[test]
fn sc_15_retention_never_passes_the_high_watermark() {
    let mut world = World::new();
    let configs = [
        ("retention.ms", "1000"),
        ("internal.segment.bytes", "200"),
        ("min.insync.replicas", "2"),
    ];
    let topic = world.topic("t", 1, &configs);
    world.change(topic, 0, |it| it.assigned_replicas.push(NodeId::new(2)));
    for _ in 0..5 {
        world.produce(1, T, batch(&["some text that fills a segment soon"]));
    }
    world.advance(310_000);
    assert_eq!(world.offsets("t", 0)[..2], [0, 0]);
}

#[test]
fn flush_ms_flushes_in_the_background() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.ms", "1000")]);
    assert_eq!(world.produce(-1, T, batch(&["a"])), (0, 0));
    world.advance(999);
    assert_eq!(world.offsets("t", 0)[2], 0);
    world.advance(1);
    assert_eq!(world.offsets("t", 0)[2], 1);
}

#[test]
fn a_changed_config_is_in_force_at_once() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.hold = syncs;
    assert_eq!(world.produce(-1, T, batch(&["a"])), (0, 0));
    world.set_configs("t", &[("flush.messages", "1")]);
    world.publish(Changed::Topics(
        [topic].into_iter().collect::<BTreeSet<_>>().into(),
    ));
    let conn = world.connect();
    world.send_produce(conn, -1, T, batch(&["b"]));
    assert_eq!(world.receive_produce(conn), None);
    world.release();
    world.release();
    assert!(world.receive_produce(conn).is_some());
}

/// A change that reaches every partition is worked off in pieces, with the newest image; others
/// are served in between.
#[test]
fn a_change_of_everything_takes_many_short_steps() {
    for gone in [false, true] {
        let mut world = World::new();
        let small = world.topic("a", 1, &[]);
        let large = world.topic("b", 2_500, &[]);
        world.advance(10);
        let in_force = |world: &World, ms: u64| {
            let partitions = world.shards[0].partitions().iter();
            let retentions = partitions.map(|it| {
                let log = it.online().expect("open").log();
                log.config().retention_ms
            });
            retentions.filter(|it| *it == Some(Millis::new(ms))).count()
        };
        for topic in ["a", "b"] {
            world.set_configs(topic, &[("retention.ms", "77")]);
        }
        world.publish(Changed::Everything);
        let first = in_force(&world, 77);
        assert!((1..=1_000).contains(&first), "{first} in the first step");
        assert_eq!(world.shards[0].next_deadline(), Some(Mono::START));
        // Somebody writes meanwhile, and the metadata moves on once more.
        assert_eq!(world.produce(1, ("b", 2_499), batch(&["a"])), (0, 0));
        if gone {
            world.delete_topic(large);
        } else {
            world.set_configs("b", &[("retention.ms", "78")]);
            let changed = BTreeSet::from([large]);
            world.publish(Changed::Topics(Arc::new(changed)));
        }
        world.advance(1);
        assert_ne!(world.shards[0].next_deadline(), Some(Mono::START));
        let left = world.shards[0].partitions().iter().count();
        if gone {
            assert_eq!((left, in_force(&world, 77)), (1, 1));
        } else {
            assert_eq!(in_force(&world, 78), 2_500);
            assert_eq!(in_force(&world, 77), 1, "{small}");
        }
    }
}

/// The job that opens a log has the configuration of when it began.
#[test]
fn a_config_that_changes_while_the_log_is_opened_reaches_the_log() {
    let mut world = World::new();
    world.hold = everything;
    let topic = world.topic("t", 1, &[("internal.segment.bytes", "1000000")]);
    world.set_configs("t", &[("internal.segment.bytes", "200")]);
    world.publish(Changed::Topics(Arc::new(BTreeSet::from([topic]))));
    world.hold = never;
    world.release();
    for _ in 0..3 {
        let text = "some text that fills more than half of a segment, and then some more of it";
        world.produce(1, T, batch(&[text]));
    }
    let files = world.disks[0].list(Path::new("t-0")).expect("there");
    let logs = files.iter().filter(|file| file.name.ends_with(".log"));
    assert_eq!(logs.count(), 3, "{files:?}");
}

#[test]
fn sc_06_a_failed_sync_takes_its_directory_offline_and_no_other() {
    let mut world = World::with(1, 2, "");
    let topic = world.topic("t", 2, &[("flush.messages", "1")]);
    let dirs: Vec<_> = (0..2)
        .map(|number| {
            world.disks.iter().position(|disk| {
                disk.files()
                    .keys()
                    .any(|path| path.starts_with(format!("t-{number}")))
            })
        })
        .collect();
    assert_ne!(dirs[0], dirs[1], "new logs are spread over the directories");
    let bad = dirs[0].expect("somewhere");
    let now = world.disks[bad].ops_count();
    let conn = world.connect();
    world.hold = syncs;
    world.send_produce(conn, -1, T, batch(&["a"]));
    world.disks[bad].fail_from_op(Some(now));
    world.hold = never;
    world.release();
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        56
    );
    assert!(world.has_event("is offline"), "{:?}", world.events);
    assert!(world.has_event("to control: DirOffline"));
    world.disks[bad].fail_from_op(None);
    assert_eq!(
        world.produce(1, T, batch(&["b"])),
        (56, -1),
        "a later sync proves nothing"
    );
    assert_eq!(world.produce(-1, ("t", 1), batch(&["c"])), (0, 0));
    world.change(topic, 1, |it| it.directories = vec![dir_id(0)]);
    world.stop();
    assert!(
        world.has_event("Closed { unclean: {LogDirNumber("),
        "{:?}",
        world.events
    );
}

#[test]
fn i_27_a_log_that_does_not_open_stops_that_partition_only() {
    let mut world = World::new();
    world.topic("bad", 1, &[]);
    world.topic("t", 1, &[]);
    world.produce(-1, ("bad", 0), batch(&["a"]));
    world.produce(-1, T, batch(&["a"]));
    world.kill();
    let path = FaultPath::Is("bad-0/00000000000000000000.log".into());
    world.disks[0].inject(Fault {
        times: u32::MAX,
        ..Fault::io_error(DiskOp::Read, path)
    });
    world.start();
    assert!(world.has_event("failed bad-0"), "{:?}", world.events);
    assert!(world.has_event("LogsLoaded"));
    assert_eq!(world.produce(1, ("bad", 0), batch(&["b"])), (56, -1));
    assert_eq!(world.produce(1, T, batch(&["b"])), (0, 1));
}

#[test]
fn sc_07_re_02_a_full_disk_refuses_and_takes_up_again_when_there_is_room() {
    let mut world = World::new();
    world.topic("t", 1, &[]);
    assert_eq!(world.produce(-1, T, batch(&["a"])), (0, 0));
    let used: usize = world.disks[0].files().values().map(Vec::len).sum();
    world.disks[0].set_capacity(Some(used + 40));
    assert_eq!(world.produce(-1, T, batch(&["b"])), (56, -1));
    world.disks[0].set_capacity(None);
    assert_eq!(
        world.produce(-1, T, batch(&["c"])),
        (0, 1),
        "the torn tail was cut first"
    );
    world.kill();
    world.start();
    assert_eq!(world.offsets("t", 0)[3], 2);
}

#[test]
fn new_logs_go_where_the_metadata_says() {
    let mut world = World::with(1, 2, "");
    world.topic("t", 1, &[]);
    let topic = world.topic("u", 1, &[]);
    world.change(topic, 0, |it| {
        it.directories = vec![DirectoryId::UNASSIGNED]
    });
    let in_dir = |world: &World, dir: usize, log: &str| {
        world.disks[dir]
            .files()
            .keys()
            .any(|path| path.starts_with(log))
    };
    assert!(
        in_dir(&world, 0, "t-0") && in_dir(&world, 1, "u-0"),
        "the emptiest"
    );
    assert!(!in_dir(&world, 1, "t-0"));
}

#[test]
fn pi_09_producers_survive_a_clean_stop_and_a_loss_of_power() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.messages", "1")]);
    for sequence in 0..3 {
        world.produce(-1, T, idempotent(9, 0, sequence, 1));
    }
    world.stop();
    world.start();
    // A snapshot remembers the last batch of each producer, as in Kafka.
    assert_eq!(world.produce(-1, T, idempotent(9, 0, 2, 1)), (0, 2));
    assert_eq!(world.produce(-1, T, idempotent(9, 0, 3, 1)), (0, 3));
    world.power_off();
    world.start();
    assert_eq!(world.produce(-1, T, idempotent(9, 0, 3, 1)), (0, 3));
    assert_eq!(world.produce(-1, T, idempotent(9, 0, 5, 1)).0, 45);
}

#[test]
fn a_partition_that_moves_away_is_deleted_here() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.produce(-1, T, batch(&["a"]));
    world.change(topic, 0, |it| {
        it.assigned_replicas = vec![NodeId::new(2)];
        it.in_sync_replicas = vec![NodeId::new(2)];
        it.leader = NodeId::new(2);
        it.leader_epoch = it.leader_epoch.next();
    });
    assert!(
        world
            .dir_names()
            .iter()
            .any(|name| name.ends_with("-delete"))
    );
    assert_eq!(world.produce(1, T, batch(&["b"])).0, 6);
}

#[test]
fn a_stop_while_logs_are_being_opened_waits_for_them() {
    let mut world = World::new();
    world.topic("t", 3, &[]);
    world.produce(-1, T, batch(&["a"]));
    world.advance(6_000);
    world.kill();
    world.hold = everything;
    world.start();
    world.hold = never;
    world.close();
    assert!(world.stopped.is_empty());
    world.release();
    assert_eq!(world.stopped.len(), 1, "{:?}", world.events);
    assert_eq!(world.checkpoint(HIGH_WATERMARK_FILE)["t-0"], 1);
}

#[test]
fn a_stop_waits_for_a_sync_that_is_out() {
    let mut world = World::new();
    world.topic("t", 1, &[("flush.messages", "1")]);
    world.hold = syncs;
    let conn = world.connect();
    world.send_produce(conn, -1, T, batch(&["a"]));
    world.hold = never;
    world.close();
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        6
    );
    assert!(
        world.stopped.is_empty(),
        "two jobs of one log never run at once"
    );
    world.send_produce(conn, 1, T, batch(&["late"]));
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0]
            .error_code
            .raw(),
        6
    );
    world.release();
    assert_eq!(world.stopped.len(), 1);
    assert_eq!(world.checkpoint(RECOVERY_POINT_FILE)["t-0"], 1);
}

#[test]
fn a_topic_made_again_waits_for_the_sync_of_its_old_log() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[("flush.messages", "1")]);
    world.change(topic, 0, |it| it.leader_epoch = it.leader_epoch.next());
    world.hold = syncs;
    let waits = world.connect();
    world.send_produce(waits, 1, T, batch(&["a"]));
    world.delete_topic(topic);
    world.topic("t", 1, &[]);
    let conn = world.connect();
    world.send_produce(conn, 1, T, batch(&["new"]));
    assert_eq!(world.receive_produce(conn), None);
    assert!(!world.dir_names().contains(&"t-0".to_owned()));
    world.hold = never;
    world.release();
    assert_eq!(
        world.receive_produce(conn).expect("an answer")[0].base_offset,
        0
    );
    assert!(!world.has_event("is offline"), "{:?}", world.events);
    let names = world.disks[0].list(Path::new("t-0")).expect("there");
    assert!(
        !names.iter().any(|file| file.name.ends_with(".snapshot")),
        "{names:?}"
    );
}

#[test]
fn cm_12_a_replica_that_leaves_and_comes_back_while_its_log_is_opened_starts_empty() {
    let mut world = World::new();
    let topic = world.topic("t", 1, &[]);
    world.produce(-1, T, batch(&["a"]));
    world.kill();
    world.hold = everything;
    world.start();
    world.change(topic, 0, |it| it.assigned_replicas = vec![NodeId::new(2)]);
    world.change(topic, 0, |it| it.assigned_replicas = vec![NodeId::new(1)]);
    world.hold = never;
    world.release();
    assert_eq!(world.offsets("t", 0)[3], 0);
}

#[test]
fn a_stop_before_the_first_image_loses_no_checkpoint() {
    let mut world = World::new();
    world.topic("t", 2, &[]);
    world.produce(-1, T, batch(&["a"]));
    world.advance(61_000);
    world.kill();
    let before = [RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE].map(|file| world.checkpoint(file));
    world.start_without_image();
    world.close();
    assert_eq!(world.stopped.len(), 1);
    let after = [RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE].map(|file| world.checkpoint(file));
    assert_eq!(before, after);
    assert!(
        world.has_event("unclean: {LogDirNumber(0)}"),
        "never scanned since the kill: {:?}",
        world.events
    );
}

/// Apache Kafka reads over it without a word.
#[test]
fn a_segment_that_is_gone_after_a_clean_stop_is_told_as_a_loss() {
    let mut world = World::new();
    world.topic("t", 1, &[("internal.segment.bytes", "200")]);
    for _ in 0..5 {
        world.produce(1, T, batch(&["some text that fills a segment soon"]));
    }
    world.stop();
    let gone = Path::new("t-0/00000000000000000002.log");
    let b = Blocking::enter();
    assert!(world.disks[0].read(gone).expect("readable").is_some());
    world.disks[0].remove(gone, &b).expect("no faults");
    for _ in 0..2 {
        world.events.clear();
        world.start();
        assert!(
            world.has_event("records [2, 3) are missing between two segments"),
            "{:?}",
            world.events
        );
        assert!(world.has_event("data-loss t-0 [2,3)"), "{:?}", world.events);
        assert_eq!(world.produce(1, T, batch(&["more"])).0, 0);
        world.stop();
    }
}

/// The directory goes offline while the job that opens a log is out, and then the topic is deleted:
/// the job brings its log back for nobody.
#[test]
fn a_log_that_comes_back_from_a_lost_directory_for_a_deleted_topic_is_for_nobody() {
    for releases_last in [false, true] {
        let mut world = World::with(1, 2, "");
        world.hold = everything;
        let topic = world.topic("t", 4, &[]);
        let offline = Part::DirOffline {
            dir: LogDirNumber(1),
            why: "a test".to_owned(),
        };
        world.give(0, offline);
        if !releases_last {
            world.hold = never;
            world.release();
        }
        world.delete_topic(topic);
        world.hold = never;
        world.release();
        world.topic("other", 2, &[]);
        assert_eq!(world.produce(1, ("other", 0), batch(&["a"])), (0, 0));
    }
}
