use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use highwater_disk::{Blocking, Disk, EntryKind};
use highwater_log::checkpoint::{OffsetCheckpoint, offsets, partition_metadata};
use highwater_types::{Offset, TopicPartition};

use super::{BootError, shown};
use crate::control::files::METADATA_DIR;
use crate::journal::{JournalEntry, Level};
use crate::shard::{FoundLog, FoundTopic};

/// What an unfinished replacement of partition.metadata leaves.
const UNFINISHED_METADATA: &str = "partition.metadata.tmp";

/// What is in one log directory.
#[derive(Debug)]
pub(super) struct Inventory {
    logs: Vec<FoundLog>,
    leftovers: Vec<PathBuf>,
}

impl Inventory {
    /// All logs.
    pub(super) fn found(&self) -> Vec<FoundLog> {
        self.logs.clone()
    }

    /// One of the logs that are there, if any is.
    pub(super) fn any_log(&self) -> Option<&FoundLog> {
        let mut logs = self.logs.iter();
        logs.find(|log| log.topic != FoundTopic::Missing)
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
    b: &Blocking,
) -> Result<Inventory, BootError> {
    let recovery_points = checkpoint(dir, offsets::RECOVERY_POINT_FILE, events)?;
    let high_watermarks = checkpoint(dir, offsets::HIGH_WATERMARK_FILE, events)?;
    let log_starts = checkpoint(dir, offsets::LOG_START_FILE, events)?;
    let cleaned = checkpoint(dir, offsets::CLEANER_FILE, events)?;
    let entries = dir
        .list(Path::new(""))
        .map_err(|why| BootError(format!("{}: {why}", dir.root().display())))?;
    let mut logs = Vec::new();
    let mut leftovers = Vec::new();
    for entry in entries
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::Dir)
    {
        match classify(&entry.name) {
            Kind::Metadata | Kind::Kept => {}
            Kind::Leftover => leftovers.push(entry.name.into()),
            Kind::Log(_) if remove_unfinished(dir, &entry.name, b)? => {}
            Kind::Log(name) => logs.push((topic(dir, &entry.name, events), name)),
            Kind::Foreign => {
                let text = format!("{} is no log; left alone", shown(dir, &entry.name));
                events.push(JournalEntry::text(Level::Warn, text));
            }
        }
    }
    let there: BTreeSet<TopicPartition> = logs.iter().map(|(_, name)| name.clone()).collect();
    let missing = high_watermarks.keys().filter(|name| !there.contains(*name));
    logs.extend(missing.map(|name| (FoundTopic::Missing, name.clone())));
    let found = |(topic, name): (FoundTopic, TopicPartition)| FoundLog {
        topic,
        recovery_point: recovery_points.get(&name).copied(),
        high_watermark: high_watermarks.get(&name).copied(),
        log_start_offset: log_starts.get(&name).copied(),
        was_cleaned: cleaned.contains_key(&name),
        topic_partition: name,
    };
    Ok(Inventory {
        logs: logs.into_iter().map(found).collect(),
        leftovers,
    })
}

/// Removes the directory of a log that was being made when the last run ended: not even its
/// partition.metadata is there, so nothing was ever in it. Whether it was one.
fn remove_unfinished<D: Disk>(dir: &D, name: &str, b: &Blocking) -> Result<bool, BootError> {
    // One that cannot be listed is no such thing.
    let Ok(entries) = dir.list(Path::new(name)) else {
        return Ok(false);
    };
    let only_begun = entries
        .iter()
        .all(|entry| entry.name == UNFINISHED_METADATA);
    if only_begun {
        dir.remove(Path::new(name), b)
            .map_err(|why| BootError(format!("{}: {why}", shown(dir, name))))?;
    }
    Ok(only_begun)
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

/// The topic that a log belongs to, by its partition.metadata.
fn topic<D: Disk>(dir: &D, name: &str, events: &mut Vec<JournalEntry>) -> FoundTopic {
    let path = Path::new(name).join(partition_metadata::FILE);
    let (topic, why) = match dir.read(&path) {
        Ok(Some(bytes)) => match partition_metadata::decode(&bytes) {
            Ok(id) => return FoundTopic::Known(id),
            Err(why) => (FoundTopic::Unknown, why.to_string()),
        },
        Ok(None) => (FoundTopic::Unknown, "it is missing".to_owned()),
        Err(why) => (FoundTopic::Unreadable(why.to_string()), why.to_string()),
    };
    let text = format!("{}: {why}", shown(dir, &path.display().to_string()));
    events.push(JournalEntry::text(Level::Warn, text));
    topic
}

/// A checkpoint file's lines. One that cannot be read counts as empty: more is scanned then, and
/// high watermarks are learnt anew.
fn checkpoint<D: Disk>(
    dir: &D,
    file: &str,
    events: &mut Vec<JournalEntry>,
) -> Result<BTreeMap<TopicPartition, Offset>, BootError> {
    let bytes = dir.read(Path::new(file));
    let bytes = bytes.map_err(|why| {
        let file = shown(dir, file);
        BootError(format!(
            "{file}: {why}; make it readable, or remove it: it is made anew"
        ))
    })?;
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
