//! What a node finds in a log directory, from the text files that Apache Kafka leaves in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use highwater_node::{FoundLog, FoundTopic};
use highwater_types::{Offset, TopicPartition};

/// Every log of a directory, with its last leader epoch.
pub(crate) fn logs(files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<(FoundLog, i32)> {
    let recovery_points = offsets(files, "recovery-point-offset-checkpoint");
    let high_watermarks = offsets(files, "replication-offset-checkpoint");
    let log_starts = offsets(files, "log-start-offset-checkpoint");
    let logs = recovery_points.iter().map(|(dir, recovery_point)| {
        let metadata = text(files, &format!("{dir}/partition.metadata"));
        let id = metadata.lines().nth(1);
        let id = id.and_then(|line| line.strip_prefix("topic_id: "));
        let epochs = text(files, &format!("{dir}/leader-epoch-checkpoint"));
        let last = epochs.lines().skip(2).last();
        let last = last.and_then(|line| line.split(' ').next()?.parse().ok());
        let log = FoundLog {
            topic_partition: TopicPartition::parse(dir).expect("a partition"),
            topic: FoundTopic::Known(
                id.and_then(|it| it.trim().parse().ok())
                    .expect("a topic id"),
            ),
            recovery_point: Some(*recovery_point),
            high_watermark: high_watermarks.get(dir).copied(),
            log_start_offset: log_starts.get(dir).copied(),
            was_cleaned: false,
        };
        (log, last.unwrap_or(0))
    });
    logs.collect()
}

/// A checkpoint file's offsets, by the name of the log's directory.
fn offsets(files: &BTreeMap<PathBuf, Vec<u8>>, name: &str) -> BTreeMap<String, Offset> {
    let text = text(files, name);
    let lines = text.lines().skip(2).map(|line| {
        let (partition, offset) = line.rsplit_once(' ').expect("a partition and an offset");
        let offset = offset.parse().expect("an offset");
        (partition.replace(' ', "-"), Offset::new(offset))
    });
    lines.collect()
}

fn text(files: &BTreeMap<PathBuf, Vec<u8>>, name: &str) -> String {
    let bytes = files.get(Path::new(name)).cloned().unwrap_or_default();
    String::from_utf8(bytes).expect("text")
}
