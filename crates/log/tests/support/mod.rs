//! Kafka's own data directories on a disk in memory.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

pub mod known;
pub mod own;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, MemDisk};
use highwater_fixtures::Files;
use highwater_log::checkpoint::{OffsetCheckpoint, partition_metadata};
use highwater_log::{LogConfig, OpenError, OpenLog, PartitionLog, RecoveryReport};
use highwater_types::{
    Millis, Mono, Now, Offset, PartitionIndex, TopicId, TopicName, TopicPartition, WallMs,
};

/// When the fixtures were made, so that nothing in them has expired.
pub const FIXTURE_TIME: i64 = 1_796_000_000_000;

/// The directory of one log in a fixture set.
#[derive(Clone, Debug)]
pub struct FixtureLog {
    pub set: &'static str,
    /// The log directory within the set, `data` or `data/node-1` and so on.
    pub root: PathBuf,
    /// The log's directory within it.
    pub name: String,
    /// All files of the log directory, by their path in it.
    pub files: Files,
}

/// Every log of every set.
pub fn all_logs() -> Vec<FixtureLog> {
    highwater_fixtures::KAFKA_DATA_SETS
        .into_iter()
        .flat_map(logs_of)
        .collect()
}

/// Every log of one set.
pub fn logs_of(set: &'static str) -> Vec<FixtureLog> {
    let padding = padding();
    let mut roots: BTreeMap<PathBuf, Files> = BTreeMap::new();
    let mut logs = Vec::new();
    let files = highwater_fixtures::kafka_data(set);
    for path in files.keys().filter(|path| path.starts_with("data")) {
        if path.extension().is_some_and(|it| it == "log") {
            let dir = path.parent().unwrap();
            logs.push((dir.parent().unwrap().to_path_buf(), dir.to_path_buf()));
        }
    }
    logs.dedup();
    for (root, _) in &logs {
        roots.entry(root.clone()).or_insert_with(|| {
            let below = files.iter().filter(|(path, _)| path.starts_with(root));
            below
                .map(|(path, bytes)| {
                    let mut bytes = bytes.clone();
                    if let Some(size) = padding.get(&Path::new(set).join(path)) {
                        bytes.resize(*size, 0);
                    }
                    (path.strip_prefix(root).unwrap().to_path_buf(), bytes)
                })
                .collect()
        });
    }
    logs.into_iter()
        .map(|(root, dir)| FixtureLog {
            set,
            name: dir.file_name().unwrap().to_str().unwrap().to_owned(),
            files: roots[&root]
                .iter()
                .filter(|(path, _)| {
                    path.starts_with(dir.file_name().unwrap()) || path.components().count() == 1
                })
                .map(|(path, bytes)| (path.clone(), bytes.clone()))
                .collect(),
            root,
        })
        .collect()
}

fn padding() -> BTreeMap<PathBuf, usize> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/padding.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut sizes = BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut fields = line.split('\t');
        let (path, size) = (fields.next().unwrap(), fields.next().unwrap());
        sizes.insert(PathBuf::from(path), size.parse().unwrap());
    }
    sizes
}

impl FixtureLog {
    pub fn disk(&self) -> MemDisk {
        MemDisk::with_files(self.set, &self.files)
    }

    pub fn topic_partition(&self) -> TopicPartition {
        let name = self
            .name
            .trim_end_matches("-after")
            .trim_end_matches("-before");
        TopicPartition::parse(name).unwrap_or_else(|| TopicPartition {
            topic: TopicName::new("odd").unwrap(),
            partition: PartitionIndex::new(0),
        })
    }

    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files
            .get(&Path::new(&self.name).join(name))
            .map(Vec::as_slice)
    }

    pub fn checkpoint(&self, file: &str) -> Option<Offset> {
        let bytes = self.files.get(Path::new(file))?;
        let checkpoint = OffsetCheckpoint::decode(bytes).unwrap();
        checkpoint.offsets.get(&self.topic_partition()).copied()
    }

    /// Of the metadata log: the end of its oldest snapshot.
    pub fn log_start_offset(&self) -> Option<Offset> {
        if !self.name.starts_with("__cluster_metadata") {
            return self.checkpoint("log-start-offset-checkpoint");
        }
        let names = self
            .files
            .keys()
            .filter(|path| path.starts_with(&self.name));
        let snapshots = names.filter(|path| path.extension().is_some_and(|it| it == "checkpoint"));
        let ends = snapshots.filter_map(|path| {
            let stem = path.file_stem()?.to_str()?;
            stem.split_once('-')?.0.parse().ok().map(Offset::new)
        });
        ends.min()
    }

    pub fn topic_id(&self) -> TopicId {
        match self.file("partition.metadata") {
            Some(bytes) => partition_metadata::decode(bytes).unwrap(),
            None => TopicId::ZERO,
        }
    }

    pub fn open_on(
        &self,
        disk: MemDisk,
        clean: bool,
    ) -> Result<(PartitionLog<MemDisk>, RecoveryReport), OpenError> {
        let checkpoint = |file| self.checkpoint(file).unwrap_or(Offset::ZERO);
        OpenLog {
            disk,
            dir: PathBuf::from(&self.name),
            topic_partition: self.topic_partition(),
            topic_id: self.topic_id(),
            config: LogConfig {
                index_interval_bytes: 256,
                producer_id_expiration_ms: Millis::MAX,
                ..LogConfig::default()
            },
            recovery_point: checkpoint("recovery-point-offset-checkpoint"),
            high_watermark: checkpoint("replication-offset-checkpoint"),
            log_start_offset: self.log_start_offset().unwrap_or(Offset::ZERO),
            was_cleaned: self.checkpoint("cleaner-offset-checkpoint").is_some(),
            leader_epoch: None,
            clean_shutdown: clean,
            now: now(FIXTURE_TIME),
        }
        .run(&Blocking::enter(), &|_| {})
    }
}

pub fn now(wall: i64) -> Now {
    Now {
        mono: Mono::START.plus(Millis::new(wall.unsigned_abs())),
        wall: WallMs::new(wall),
    }
}
