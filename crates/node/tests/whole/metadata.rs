//! The metadata log itself: its bytes, snapshots, and what is refused.

use std::collections::BTreeMap;
use std::path::Path;

use highwater_disk::{Blocking, Disk as _, MemDisk};
use highwater_metadata::{MetadataDelta, replay_batch};
use highwater_node::{NodeConfig, format};
use highwater_protocol::ListenerKind;
use highwater_protocol::messages::CreateTopicsRequest;
use highwater_protocol::messages::create_topics_request::CreatableTopic;
use highwater_records::stored::MetadataRecord;
use highwater_records::{Batches, ControlRecord, ControlType};
use highwater_types::{Millis, Now};

use crate::host::{Host, config, file, formatted, options};

const LOG: &str = "__cluster_metadata-0/00000000000000000000.log";

fn create(host: &mut Host, name: &str) {
    let topic = CreatableTopic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    };
    host.call(ListenerKind::Controller, request);
}

/// The types of the records of each batch, control batches in brackets.
fn outline(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch.expect("a batch");
        batch.check_crc().expect("its checksum is right");
        let control = batch.header().attributes.is_control();
        let open = batch.open(1 << 20).expect("readable");
        let kinds: Vec<String> = open
            .records()
            .map(|record| {
                let record = record.expect("a record");
                if control {
                    let kind = ControlRecord::of(&record)
                        .expect("a control record")
                        .control_type;
                    return format!("{kind:?}");
                }
                assert_eq!(record.key, None);
                let value = record.value.expect("a value");
                let (record, version) = MetadataRecord::decode_value(value).expect("decodes");
                format!("{}:{version}", record.dump_type())
            })
            .collect();
        let line = kinds.join(" ");
        lines.push(if control { format!("[{line}]") } else { line });
    }
    lines
}

#[test]
fn a_new_metadata_log_begins_as_kafkas_does() {
    let config = config("");
    let dirs = formatted(&config);
    let host = Host::serving(&config, &dirs);
    let lines = outline(&file(&dirs, LOG).expect("there"));
    assert_eq!(
        lines[..2],
        [
            "[LeaderChange KraftVersion KraftVoters]".to_owned(),
            "BEGIN_TRANSACTION_RECORD:0 FEATURE_LEVEL_RECORD:0 FEATURE_LEVEL_RECORD:0 \
             CONFIG_RECORD:0 END_TRANSACTION_RECORD:0"
                .to_owned()
        ]
    );
    assert_eq!(
        lines[2..],
        [
            "REGISTER_CONTROLLER_RECORD:0",
            "REGISTER_BROKER_RECORD:4",
            "BROKER_REGISTRATION_CHANGE_RECORD:0 BROKER_REGISTRATION_CHANGE_RECORD:3",
        ]
    );
    assert_eq!(ControlType::LeaderChange.raw(), 2);
    let names = |dir: &MemDisk| {
        let entries = dir.list(Path::new("__cluster_metadata-0")).expect("there");
        entries.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    for name in [
        "partition.metadata",
        "quorum-state",
        "00000000000000000000.log",
    ] {
        assert!(names(&dirs[0]).iter().any(|it| it == name), "{name}");
    }
    drop(host);
}

#[test]
fn snapshots_are_made_and_old_segments_go() {
    let config = config(
        "metadata.log.max.record.bytes.between.snapshots=3000\n\
         internal.metadata.log.segment.bytes=2000\nmetadata.max.retention.bytes=6000\n\
         internal.metadata.delete.delay.millis=0\n",
    );
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    for number in 0..100 {
        create(&mut host, &format!("t{number}"));
    }
    host.pass(Millis::new(2000));
    let entries = dirs[0]
        .list(Path::new("__cluster_metadata-0"))
        .expect("there");
    let count = |suffix: &str| {
        entries
            .iter()
            .filter(|it| it.name.ends_with(suffix))
            .count()
    };
    assert!((1..=3).contains(&count(".checkpoint")), "{entries:?}");
    assert!(count(".log") < 6, "{entries:?}");
    assert_eq!(file(&dirs, LOG), None, "the first segment is gone");
    let image = host.control.image().clone();
    drop(host);
    dirs[0].crash();
    let host = Host::serving(&config, &dirs);
    assert_eq!(host.control.image().topics.len(), 100);
    assert_eq!(host.control.image().topic_ids, image.topic_ids);
}

#[test]
fn cm_08_a_hole_in_the_metadata_refuses_to_start_and_says_where() {
    let config = config(
        "metadata.log.max.record.bytes.between.snapshots=3000\n\
         internal.metadata.log.segment.bytes=2000\nmetadata.max.retention.bytes=6000\n\
         internal.metadata.delete.delay.millis=0\n",
    );
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    for number in 0..100 {
        create(&mut host, &format!("t{number}"));
    }
    host.stop();
    let entries = dirs[0]
        .list(Path::new("__cluster_metadata-0"))
        .expect("there");
    for entry in entries.iter().filter(|it| it.name.ends_with(".checkpoint")) {
        let path = Path::new("__cluster_metadata-0").join(&entry.name);
        dirs[0].remove(&path, &Blocking::enter()).expect("removed");
    }
    let refused = Host::try_start(&config, &dirs).err().expect("refused").0;
    assert!(
        refused.contains("the records from 0 on are missing"),
        "{refused}"
    );
}

#[test]
fn a_damaged_snapshot_falls_back_to_an_older_one() {
    let config = config("metadata.log.max.record.bytes.between.snapshots=3000\n");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    for number in 0..60 {
        create(&mut host, &format!("t{number}"));
    }
    host.stop();
    let entries = dirs[0]
        .list(Path::new("__cluster_metadata-0"))
        .expect("there");
    let snapshots: Vec<_> = entries
        .iter()
        .filter(|it| it.name.ends_with(".checkpoint"))
        .collect();
    assert!(snapshots.len() >= 3, "{entries:?}");
    let newest = Path::new("__cluster_metadata-0").join(&snapshots[snapshots.len() - 1].name);
    dirs[0]
        .replace(&newest, b"rubbish", &Blocking::enter())
        .expect("written");
    let host = Host::serving(&config, &dirs);
    assert_eq!(host.control.image().topics.len(), 60);
    assert!(
        host.events.iter().any(|it| it.contains(".checkpoint")),
        "{:?}",
        host.events
    );
}

#[test]
fn what_is_on_disk_replays_to_what_the_node_acts_on() {
    let config = config("");
    let dirs = formatted(&config);
    let mut host = Host::serving(&config, &dirs);
    create(&mut host, "a");
    create(&mut host, "b");
    let mut delta = MetadataDelta::default();
    let bytes = file(&dirs, LOG).expect("there");
    for batch in Batches::new(&bytes) {
        replay_batch(&mut delta, &batch.expect("a batch")).expect("fits");
    }
    assert!(delta.take().expect("a boundary").0 == **host.control.image());
}

fn refused(config: &NodeConfig, dirs: &[MemDisk]) -> String {
    Host::try_start(config, dirs).err().expect("refused").0
}

#[test]
fn sc_10_identities_that_do_not_fit_are_refused_in_words() {
    let one = config("");
    let dirs = formatted(&one);
    let other_node = refused(&config("node.id=2\n"), &dirs);
    assert!(
        other_node.contains("of node 1, but node.id is 2"),
        "{other_node}"
    );
    let empty = refused(&one, &[MemDisk::new("a")]);
    assert!(
        empty.contains("not formatted") && empty.contains("highwater format"),
        "{empty}"
    );
    // Two directories of two clusters.
    let both = config("log.dirs=a,b\n");
    let mut other_options = options();
    other_options.cluster_id = Some("NA2Ru8BiRSeksP7Zb7oYlg".to_owned());
    let stranger = MemDisk::new("b");
    let alone = config("log.dirs=b\n");
    let stranger_dirs = [stranger.clone()];
    format(
        &alone,
        &stranger_dirs,
        &other_options,
        Now::default(),
        [1; 32],
        &Blocking::enter(),
    )
    .expect("formatted");
    let two = refused(&both, &[dirs[0].clone(), stranger]);
    for part in [
        "sFZgKj3kQfiXtPP7KgFf4w",
        "NA2Ru8BiRSeksP7Zb7oYlg",
        "a/meta.properties",
        "b/meta",
    ] {
        assert!(two.contains(part), "{two}");
    }
    let copy = MemDisk::with_files("b", &dirs[0].files());
    let copied = refused(&both, &[dirs[0].clone(), copy]);
    assert!(copied.contains("one is a copy of the other"), "{copied}");
    let text = String::from_utf8(file(&dirs, "meta.properties").expect("there")).expect("text");
    let reserved: String = text
        .lines()
        .map(|line| {
            if line.starts_with("directory.id") {
                "directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    let files: BTreeMap<_, _> = [("meta.properties".into(), reserved.into_bytes())].into();
    let bad = refused(&one, &[MemDisk::with_files("a", &files)]);
    assert!(bad.contains("directory.id"), "{bad}");
}

#[test]
fn a_directory_in_use_is_refused() {
    let config = config("");
    let dirs = formatted(&config);
    let host = Host::serving(&config, &dirs);
    let lock = dirs[0].lock();
    assert!(lock.is_err());
    drop(host);
}

#[test]
fn a_metadata_transaction_cut_short_is_aborted() {
    use highwater_metadata::build_batch;
    use highwater_records::stored::metadata::{BeginTransactionRecord, TopicRecord};
    use highwater_types::{LeaderEpoch, Offset, Uuid, WallMs};
    let config = config("");
    let dirs = formatted(&config);
    Host::serving(&config, &dirs).stop();
    let mut bytes = file(&dirs, LOG).expect("there");
    let end = Batches::new(&bytes)
        .map(|it| it.expect("a batch").header().next_offset())
        .last();
    let records: [MetadataRecord; 2] = [
        BeginTransactionRecord::default().into(),
        TopicRecord {
            name: "half".to_owned(),
            topic_id: Uuid::from_u128(1 << 80),
        }
        .into(),
    ];
    let half = build_batch(
        &records,
        end.unwrap_or(Offset::ZERO),
        LeaderEpoch::new(1),
        WallMs::new(5),
        33,
    );
    bytes.extend(half.expect("fits"));
    let mut files = dirs[0].files();
    files.insert(LOG.into(), bytes);
    files.remove(Path::new(".kafka_cleanshutdown"));
    let dirs = [MemDisk::with_files("a", &files)];
    let host = Host::serving(&config, &dirs);
    assert!(host.control.image().topic_by_name("half").is_none());
    let lines = outline(&file(&dirs, LOG).expect("there"));
    assert!(
        lines.iter().any(|it| it == "ABORT_TRANSACTION_RECORD:0"),
        "{lines:?}"
    );
}
