use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use highwater_disk::{Disk, EntryKind};
use highwater_log::checkpoint::{OffsetCheckpoint, offsets, partition_metadata};
use highwater_types::{Offset, TopicId, TopicIdPartition, TopicPartition};

use super::{BootError, shown};
use crate::control::files::METADATA_DIR;
use crate::journal::{JournalEntry, Level};
use crate::shard::{FoundLog, owner_shard};

/// What is in one log directory.
#[derive(Debug)]
pub(super) struct Inventory {
    logs: Vec<FoundLog>,
    leftovers: Vec<PathBuf>,
}

impl Inventory {
    /// The logs that belong to one shard.
    pub(super) fn found_by(&self, shard: u16, shards: u16) -> Vec<FoundLog> {
        let owner = |log: &FoundLog| {
            let topic_id = log.topic_id.unwrap_or(TopicId::ZERO);
            let partition = log.topic_partition.partition;
            owner_shard(
                TopicIdPartition {
                    topic_id,
                    partition,
                },
                shards,
            )
        };
        self.logs
            .iter()
            .filter(|log| owner(log) == shard)
            .cloned()
            .collect()
    }

    /// Directories to remove; the first shard does it.
    pub(super) fn leftovers_for(&self, shard: u16) -> Vec<PathBuf> {
        if shard == 0 {
            self.leftovers.clone()
        } else {
            Vec::new()
        }
    }
}

/// Lists the logs of a directory and what the checkpoint files say of them. Anything else in it is
/// told and left alone.
pub(super) fn list<D: Disk>(
    dir: &D,
    events: &mut Vec<JournalEntry>,
) -> Result<Inventory, BootError> {
    let recovery_points = checkpoint(dir, offsets::RECOVERY_POINT_FILE, events)?;
    let high_watermarks = checkpoint(dir, offsets::HIGH_WATERMARK_FILE, events)?;
    let log_starts = checkpoint(dir, offsets::LOG_START_FILE, events)?;
    let entries = dir
        .list(Path::new(""))
        .map_err(|why| BootError(format!("{}: {why}", dir.root().display())))?;
    let mut inventory = Inventory {
        logs: Vec::new(),
        leftovers: Vec::new(),
    };
    for entry in entries
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::Dir)
    {
        match classify(&entry.name) {
            Kind::Metadata | Kind::Kept => {}
            Kind::Leftover => inventory.leftovers.push(entry.name.into()),
            Kind::Log(topic_partition) => {
                let at =
                    |lines: &BTreeMap<TopicPartition, Offset>| lines.get(&topic_partition).copied();
                inventory.logs.push(FoundLog {
                    topic_id: topic_id(dir, &entry.name, events),
                    recovery_point: at(&recovery_points),
                    high_watermark: at(&high_watermarks),
                    log_start_offset: at(&log_starts),
                    topic_partition,
                });
            }
            Kind::Foreign => {
                let text = format!("{} is no log; left alone", shown(dir, &entry.name));
                events.push(JournalEntry::text(Level::Warn, text));
            }
        }
    }
    Ok(inventory)
}

enum Kind {
    Metadata,
    Log(TopicPartition),
    /// A deleted log that the last run did not get to remove.
    Leftover,
    /// Set aside, or on its way to another directory: not ours to touch.
    Kept,
    Foreign,
}

fn classify(name: &str) -> Kind {
    if name == METADATA_DIR {
        return Kind::Metadata;
    }
    let renamed = |suffix: &str| {
        let rest = name
            .strip_suffix(suffix)
            .and_then(|rest| rest.rsplit_once('.'));
        rest.is_some_and(|(_, unique)| {
            unique.len() == 32 && unique.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    if renamed("-delete") {
        return Kind::Leftover;
    }
    if renamed("-stray") || renamed("-future") || name == "lost+found" {
        return Kind::Kept;
    }
    TopicPartition::parse(name).map_or(Kind::Foreign, Kind::Log)
}

/// The topic that a log belongs to; `None` when the file is missing or bad: a stray then.
fn topic_id<D: Disk>(dir: &D, name: &str, events: &mut Vec<JournalEntry>) -> Option<TopicId> {
    let path = Path::new(name).join(partition_metadata::FILE);
    let why = match dir.read(&path) {
        Ok(Some(bytes)) => match partition_metadata::decode(&bytes) {
            Ok(id) => return Some(id),
            Err(why) => why.to_string(),
        },
        Ok(None) => "it is missing".to_owned(),
        Err(why) => why.to_string(),
    };
    let text = format!("{}: {why}", shown(dir, &path.display().to_string()));
    events.push(JournalEntry::text(Level::Warn, text));
    None
}

/// A checkpoint file's lines. One that cannot be read counts as empty: more is scanned then, and
/// high watermarks are learnt anew.
fn checkpoint<D: Disk>(
    dir: &D,
    file: &str,
    events: &mut Vec<JournalEntry>,
) -> Result<BTreeMap<TopicPartition, Offset>, BootError> {
    let bytes = dir.read(Path::new(file));
    let bytes = bytes.map_err(|why| BootError(format!("{}: {why}", shown(dir, file))))?;
    let decoded = bytes
        .map(|bytes| OffsetCheckpoint::decode(&bytes))
        .transpose();
    match decoded {
        Ok(checkpoint) => Ok(checkpoint.map(|it| it.offsets).unwrap_or_default()),
        Err(why) => {
            let text = format!("{}: {why}; taken as empty", shown(dir, file));
            events.push(JournalEntry::text(Level::Warn, text));
            Ok(BTreeMap::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let unique = "0123456789abcdef0123456789abcdef";
        assert!(matches!(classify("orders-0"), Kind::Log(_)));
        assert!(matches!(classify("__cluster_metadata-0"), Kind::Metadata));
        assert!(matches!(
            classify(&format!("orders-0.{unique}-delete")),
            Kind::Leftover
        ));
        assert!(matches!(
            classify(&format!("orders-0.{unique}-stray")),
            Kind::Kept
        ));
        assert!(matches!(
            classify(&format!("orders-0.{unique}-future")),
            Kind::Kept
        ));
        assert!(matches!(classify("orders-0.short-delete"), Kind::Foreign));
        assert!(matches!(classify("photos"), Kind::Foreign));
    }
}
