//! Our replay against the state and the records of running Apache Kafka 4.4 nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use highwater_fixtures::{Files, KAFKA_DATA_SETS, kafka_data};
use highwater_metadata::{
    MetadataDelta, MetadataImage, build_batch, build_quorum_batch, read_snapshot, replay_batch,
    snapshot_records, write_snapshot,
};
use highwater_records::Batches;
use highwater_records::stored::MetadataRecord;
use highwater_types::{Offset, OffsetAndEpoch};

/// The metadata directories of a set: each holds the files of one copy of the log.
fn metadata_dirs(files: &Files) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = files
        .keys()
        .filter_map(|path| path.parent())
        .filter(|dir| dir.ends_with("__cluster_metadata-0") && !dir.starts_with("dump"))
        .filter(|dir| !dir.components().any(|part| part.as_os_str() == "dump"))
        .map(Path::to_path_buf)
        .collect();
    dirs.dedup();
    dirs
}

/// `<end offset>-<epoch>.checkpoint` files of a directory, without the bootstrap one.
fn snapshots(files: &Files, dir: &Path) -> BTreeMap<i64, PathBuf> {
    let ends = files
        .keys()
        .filter(|path| path.parent() == Some(dir))
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".checkpoint")?;
            let (end, _) = name.split_once('-')?;
            Some((end.parse().ok()?, path.clone()))
        });
    ends.filter(|(end, _)| *end > 0).collect()
}

fn load(bytes: &[u8]) -> MetadataImage {
    let mut delta = MetadataDelta::default();
    read_snapshot(bytes, |record| Ok(delta.replay(&record)?)).expect("a whole snapshot");
    delta.take().expect("no open transaction").0
}

/// What two images must have in common: all but their ends, which a snapshot has in its name only,
/// and the order of what Kafka keeps in hash maps.
fn comparable(mut image: MetadataImage) -> MetadataImage {
    image.end = MetadataImage::default().end;
    for broker in Arc::make_mut(&mut image.brokers).values_mut() {
        let broker = Arc::make_mut(broker);
        broker.endpoints.sort_by(|a, b| a.name.cmp(&b.name));
        broker.features.sort_by(|a, b| a.name.cmp(&b.name));
    }
    for controller in Arc::make_mut(&mut image.controllers).values_mut() {
        Arc::make_mut(controller)
            .features
            .sort_by(|a, b| a.name.cmp(&b.name));
    }
    image
}

#[test]
fn a_replayed_log_gives_the_state_that_kafka_wrote_as_snapshot() {
    let mut compared = 0;
    for set in KAFKA_DATA_SETS {
        let files = kafka_data(set);
        for dir in metadata_dirs(&files) {
            compared += replay_dir(set, &files, &dir);
        }
    }
    assert!(compared >= 10, "only {compared} snapshots were compared");
}

fn replay_dir(set: &str, files: &Files, dir: &Path) -> usize {
    let snapshots = snapshots(files, dir);
    let mut compared = 0;
    let mut delta = MetadataDelta::default();
    let logs: BTreeMap<i64, &Vec<u8>> = files
        .iter()
        .filter(|(path, _)| path.parent() == Some(dir))
        .filter_map(|(path, bytes)| {
            let base = path.file_name()?.to_str()?.strip_suffix(".log")?;
            Some((base.parse().ok()?, bytes))
        })
        .collect();
    let Some(first) = logs.keys().next().copied() else {
        return 0;
    };
    let mut start = 0;
    if first > 0 {
        // The log begins at a snapshot, which may lie inside its first segment.
        let (end, at) = snapshots
            .range(first..)
            .next()
            .expect("a snapshot to start from");
        delta = MetadataDelta::new(load(files.get(at).expect("listed")));
        start = *end;
    }
    for bytes in logs.into_values() {
        let mut batches = Batches::new(bytes);
        for batch in batches.by_ref() {
            let batch = batch.expect("a batch");
            let base = batch.header().base_offset.raw();
            if base < start {
                continue;
            }
            if let Some(path) = snapshots.get(&base).filter(|_| base > start) {
                let ours = delta.take().expect("snapshots lie at boundaries").0;
                let kafkas = load(files.get(path).expect("listed"));
                assert!(
                    comparable(ours) == comparable(kafkas),
                    "{set}: {}",
                    path.display()
                );
                compared += 1;
            }
            replay_batch(&mut delta, &batch)
                .unwrap_or_else(|why| panic!("{set}: {}: {why}", dir.display()));
        }
        let rest = batches.rest();
        assert!(
            rest.iter().all(|byte| *byte == 0),
            "{set}: {} bytes left",
            rest.len()
        );
    }
    delta.image().assert_invariants();
    compared
}

#[test]
fn our_snapshot_of_kafkas_state_holds_the_records_of_kafkas_snapshot() {
    let mut seen = 0;
    for set in KAFKA_DATA_SETS {
        let files = kafka_data(set);
        for dir in metadata_dirs(&files) {
            for path in snapshots(&files, &dir).values() {
                let bytes = files.get(path).expect("listed");
                let mut kafkas = Vec::new();
                let control = read_snapshot(bytes, |record| {
                    kafkas.push(record.to_json(record.usual_version()).to_string());
                    Ok(())
                })
                .expect("whole");
                let image = load(bytes);
                let mut ours: Vec<_> = snapshot_records(&image)
                    .map(|record| record.to_json(record.usual_version()).to_string())
                    .collect();
                // Kafka lists hash maps in their own order; ours are sorted.
                kafkas.sort();
                ours.sort();
                assert!(ours == kafkas, "{set}: {}", path.display());
                let end = image.end;
                let written = write_snapshot(
                    &control,
                    end.epoch,
                    control.last_contained_timestamp,
                    image.metadata_version(),
                    snapshot_records(&image),
                )
                .expect("fits");
                assert_eq!(load(&written), image, "{set}: {}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 10, "only {seen} snapshots");
}

#[test]
fn the_end_of_an_image_is_behind_its_last_batch() {
    let files = kafka_data("one-node-clean");
    let path = Path::new("data/__cluster_metadata-0/00000000000000000000.log");
    let bytes = files.get(path).expect("in the fixture");
    let mut delta = MetadataDelta::default();
    for batch in Batches::new(bytes) {
        replay_batch(&mut delta, &batch.expect("a batch")).expect("fits");
    }
    let OffsetAndEpoch { offset, epoch } = delta.image().end;
    assert_eq!((offset, epoch.raw()), (Offset::new(344), 3));
    assert_eq!(delta.image().topics.len(), 15);
    assert_eq!(delta.image().next_producer_id, 3000);
}

/// Every batch of every log, as the records that it holds, is built again to the same bytes: record
/// versions, control records, framing and all.
#[test]
fn our_batches_are_kafkas_to_the_byte() {
    let mut rebuilt = 0;
    for set in KAFKA_DATA_SETS {
        let files = kafka_data(set);
        for dir in metadata_dirs(&files) {
            for (path, bytes) in &files {
                let is_log = path.extension().is_some_and(|it| it == "log");
                if path.parent() == Some(&dir) && is_log {
                    rebuilt += rebuild(set, bytes);
                }
            }
        }
    }
    assert!(rebuilt > 600, "only {rebuilt} batches");
}

fn rebuild(set: &str, bytes: &[u8]) -> usize {
    let mut rebuilt = 0;
    for batch in Batches::new(bytes) {
        let batch = batch.expect("a batch");
        let header = *batch.header();
        let open = batch.open(1 << 24).expect("readable");
        let (base, epoch, time) = (
            header.base_offset,
            header.leader_epoch,
            header.max_timestamp,
        );
        let ours = if header.attributes.is_control() {
            let mut scratch = MetadataDelta::default();
            let records = replay_batch(&mut scratch, &batch).expect("control records always fit");
            build_quorum_batch(&records, base, epoch, time)
        } else {
            let records: Vec<MetadataRecord> = open
                .records()
                .map(|record| {
                    let value = record.expect("a record").value.expect("a value");
                    MetadataRecord::decode_value(value).expect("decodes").0
                })
                .collect();
            build_batch(&records, base, epoch, time, 33)
        };
        assert!(
            ours.expect("fits") == batch.bytes(),
            "{set}: batch at {base}"
        );
        rebuilt += 1;
    }
    rebuilt
}
