use std::path::Path;

use highwater_disk::{Blocking, Disk};
use highwater_log::checkpoint::{CleanShutdown, MetaProperties, clean_shutdown, meta_properties};
use highwater_types::{BrokerEpoch, DirectoryId, Now, Uuid};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore as _;

use super::{BootError, not_written, shown};
use crate::config::NodeConfig;
use crate::journal::{JournalEntry, Level};

/// Whose directories these are.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) cluster_id: String,
    /// Of each directory, in order.
    pub(super) directory_ids: Vec<DirectoryId>,
}

/// How the last run ended.
#[derive(Debug)]
pub(super) struct Shutdown {
    /// For each directory, whether its logs were closed cleanly.
    pub(super) clean: Vec<bool>,
    /// The broker epoch that ended cleanly everywhere, else none.
    pub(super) previous_epoch: BrokerEpoch,
}

pub(super) fn lock<D: Disk>(dir: &D) -> Result<D::Lock, BootError> {
    dir.lock().map_err(|why| {
        let root = dir.root().display();
        if why.is_full() {
            return not_written(dir, ".lock", 0, &why);
        }
        BootError(if why.is_locked() {
            format!(
                "log directory {root} is in use by another process; stop that one first, or use \
                 another directory"
            )
        } else {
            format!(
                "cannot write to the log directory {root}: {why}; let this user write there, or \
                 take it out of log.dirs"
            )
        })
    })
}

impl Identity {
    /// Reads `meta.properties` of every directory. They must all be of this node and of one
    /// cluster. A directory of a release before 3.7 is given an id.
    pub(super) fn read<D: Disk>(
        config: &NodeConfig,
        dirs: &[D],
        random: &mut ChaCha8Rng,
        now: Now,
        b: &Blocking,
    ) -> Result<Self, BootError> {
        let mut cluster: Option<(String, String)> = None;
        let mut directory_ids: Vec<DirectoryId> = Vec::new();
        for dir in dirs {
            let path = shown(dir, meta_properties::FILE);
            let mut found = read_one(dir, &path)?;
            if found.node_id != config.node_id {
                return Err(BootError(format!(
                    "{path} is of node {}, but node.id is {}; set node.id to {}, or use another \
                     directory",
                    found.node_id, config.node_id, found.node_id
                )));
            }
            let (id, first) =
                cluster.get_or_insert_with(|| (found.cluster_id.clone(), path.clone()));
            if *id != found.cluster_id {
                return Err(BootError(format!(
                    "log directories of two clusters: {first} says {id}, {path} says {}; take one \
                     of them out of log.dirs",
                    found.cluster_id
                )));
            }
            let id = match found.directory_id {
                Some(id) => id,
                None => {
                    let mut bytes = [0; 16];
                    random.fill_bytes(&mut bytes);
                    let id = DirectoryId::new(Uuid::from_random(bytes));
                    found.directory_id = Some(id);
                    let bytes = found.encode(now.wall);
                    let file = meta_properties::FILE;
                    dir.replace(Path::new(file), &bytes, b)
                        .map_err(|why| not_written(dir, file, bytes.len(), &why))?;
                    id
                }
            };
            if directory_ids.contains(&id) {
                return Err(BootError(format!(
                    "two log directories have the directory.id {id}; one is a copy of the other: \
                     take {} out of log.dirs",
                    dir.root().display()
                )));
            }
            directory_ids.push(id);
        }
        let (cluster_id, _) =
            cluster.ok_or_else(|| BootError("there is no log directory".to_owned()))?;
        Ok(Self {
            cluster_id,
            directory_ids,
        })
    }
}

fn read_one<D: Disk>(dir: &D, path: &str) -> Result<MetaProperties, BootError> {
    let bytes = dir.read(Path::new(meta_properties::FILE));
    let bytes = bytes.map_err(|why| BootError(format!("{path}: {why}")))?;
    let Some(bytes) = bytes else {
        return Err(BootError(format!(
            "log directory {} is not formatted: there is no readable meta.properties; format it \
             with: highwater format --config FILE",
            dir.root().display()
        )));
    };
    MetaProperties::decode(&bytes).map_err(|why| {
        BootError(format!(
            "{path}: {why}; restore the file, or use another directory"
        ))
    })
}

/// Reads the marker of a clean stop in every directory. The epoch counts only if all agree.
pub(super) fn read_clean_shutdown<D: Disk>(
    dirs: &[D],
    events: &mut Vec<JournalEntry>,
) -> Result<Shutdown, BootError> {
    let mut clean = Vec::with_capacity(dirs.len());
    let mut epochs = Vec::with_capacity(dirs.len());
    for dir in dirs {
        let path = shown(dir, clean_shutdown::FILE);
        let bytes = dir.read(Path::new(clean_shutdown::FILE));
        let bytes =
            bytes.map_err(|why| BootError(format!("{path}: {why}; remove it and start again")))?;
        let marker = bytes.and_then(|bytes| match CleanShutdown::decode(&bytes) {
            Ok(marker) => Some(marker),
            Err(why) => {
                let text = format!("{path}: {why}; taken as if the stop was not clean");
                events.push(JournalEntry::text(Level::Warn, text));
                None
            }
        });
        clean.push(marker.is_some());
        epochs.push(marker.map_or(BrokerEpoch::NONE, |marker| marker.broker_epoch));
    }
    let first = epochs.first().copied().unwrap_or(BrokerEpoch::NONE);
    let agreed = epochs.iter().all(|epoch| *epoch == first);
    let previous_epoch = if agreed { first } else { BrokerEpoch::NONE };
    Ok(Shutdown {
        clean,
        previous_epoch,
    })
}

pub(super) fn remove_clean_shutdown<D: Disk>(dirs: &[D], b: &Blocking) -> Result<(), BootError> {
    for dir in dirs {
        let failed = |why| not_written(dir, clean_shutdown::FILE, 0, &why);
        dir.remove(Path::new(clean_shutdown::FILE), b)
            .map_err(failed)?;
        dir.sync_dir(Path::new(""), b).map_err(failed)?;
    }
    Ok(())
}
