//! Brings a node up: identity, locks, the metadata log, and the machines.

mod identity;
mod inventory;
mod metadata;

pub(crate) use metadata::{OpenMetadata, OpenRole, voter_set};

use std::sync::Arc;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_types::{DirectoryId, NodeId, Now};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use crate::config::NodeConfig;
use crate::control::files::METADATA_DIR;
use crate::control::{Control, ControlDir, ControlParams};
use crate::journal::JournalEntry;
use crate::shard::{Shard, ShardDir, ShardParams};
use identity::{Identity, Shutdown};
use inventory::Inventory;
use metadata::Start;

/// A node that is ready to be driven. Each machine wants a first `Tick` at once.
#[derive(Debug)]
pub struct Node<D: Disk> {
    /// The control machine. It holds the locks of the log directories.
    pub control: Control<D>,
    /// The data shards, by number.
    pub shards: Vec<Shard<D>>,
    /// The cluster.
    pub cluster_id: String,
    /// The node.
    pub node_id: NodeId,
    /// What is worth telling about the start.
    pub events: Vec<JournalEntry>,
}

/// Why a node does not start. Each text says what, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BootError(pub String);

/// Starts a node on formatted log directories, ours or Apache Kafka's. `dirs` are the disks of
/// `config.log_dirs`, in order; `seed` is random and new for each start.
///
/// # Errors
/// [`BootError`]. Up to then nothing was changed but what a crash would be recovered from.
pub fn boot<D: Disk>(
    config: NodeConfig,
    dirs: Vec<D>,
    now: Now,
    seed: [u8; 32],
    b: &Blocking,
) -> Result<Node<D>, BootError> {
    let mut random = ChaCha8Rng::from_seed(seed);
    let mut events = Vec::new();
    let locks = dirs
        .iter()
        .map(identity::lock)
        .collect::<Result<Vec<_>, _>>()?;
    let identity = Identity::read(&config, &dirs, &mut random, now, b)?;
    let shutdown = identity::read_clean_shutdown(&dirs, &mut events)?;
    let metadata_disk = dirs.get(config.metadata_dir).ok_or_else(|| {
        BootError("there are fewer log directories than the config names".to_owned())
    })?;
    let was_clean = shutdown.clean.get(config.metadata_dir) == Some(&true);
    let start = Start {
        config: &config,
        identity: &identity,
        was_clean,
        now,
    };
    let metadata = metadata::open(&start, metadata_disk, &mut events, b)?;
    let inventories = dirs
        .iter()
        .map(|dir| inventory::list(dir, &mut events, b))
        .collect::<Result<Vec<_>, _>>()?;
    refuse_lost_metadata(&metadata, &dirs, &inventories)?;
    // From here on logs change: the markers of the last clean stop must not be found again.
    identity::remove_clean_shutdown(&dirs, b)?;
    let found = Found {
        dirs: &dirs,
        identity: &identity,
        shutdown: &shutdown,
        inventories,
    };
    let shards = (0..config.shards())
        .map(|number| {
            let seed = next_seed(&mut random);
            found.shard(&config, metadata.log.kraft_version, number, seed)
        })
        .collect();
    let cluster_id: Arc<str> = identity.cluster_id.as_str().into();
    let node_id = config.node_id;
    let control = Control::new(ControlParams {
        cluster_id,
        dirs: found.control_dirs(),
        locks,
        metadata,
        previous_epoch: shutdown.previous_epoch,
        seed: next_seed(&mut random),
        config,
    });
    Ok(Node {
        control,
        shards,
        cluster_id: identity.cluster_id,
        node_id,
        events,
    })
}

/// Metadata that has never known a topic is not that of directories with logs: they would all be
/// set aside as strays.
fn refuse_lost_metadata<D: Disk>(
    metadata: &OpenMetadata<D>,
    dirs: &[D],
    inventories: &[Inventory],
) -> Result<(), BootError> {
    let mut logs = dirs.iter().zip(inventories);
    let found = logs.find_map(|(dir, inventory)| Some((dir, inventory.any_log()?)));
    match found {
        Some((dir, log)) if metadata.is_new() => Err(BootError(format!(
            "the metadata log is as new, but there are logs of partitions ({}): the metadata \
             that knew them are lost; restore {METADATA_DIR} from another copy, or move those \
             logs away",
            shown(dir, &log.topic_partition.to_string())
        ))),
        _ => Ok(()),
    }
}

/// What was found in the log directories.
struct Found<'a, D: Disk> {
    dirs: &'a [D],
    identity: &'a Identity,
    shutdown: &'a Shutdown,
    inventories: Vec<Inventory>,
}

impl<D: Disk> Found<'_, D> {
    fn control_dirs(&self) -> Vec<ControlDir<D>> {
        let dirs = self.dirs.iter().zip(&self.identity.directory_ids);
        let dir = |(disk, id): (&D, &DirectoryId)| ControlDir {
            disk: disk.clone(),
            id: *id,
            offline: false,
        };
        dirs.map(dir).collect()
    }

    fn shard(
        &self,
        config: &NodeConfig,
        kraft_version: i16,
        number: u16,
        seed: [u8; 32],
    ) -> Shard<D> {
        let dirs = self.dirs.iter().zip(&self.identity.directory_ids);
        let dirs = dirs.zip(&self.shutdown.clean).zip(&self.inventories);
        let dirs = dirs.map(|(((disk, id), clean), inventory)| ShardDir {
            disk: disk.clone(),
            id: *id,
            clean_shutdown: *clean,
            found: inventory.found(),
            leftovers: inventory.leftovers_for(number),
        });
        Shard::new(ShardParams {
            number,
            shards: config.shards(),
            node_id: config.node_id,
            cluster_id: self.identity.cluster_id.as_str().into(),
            kraft_version,
            broker_config: Arc::clone(&config.broker),
            trace: config.trace,
            old_rule: config.old_rule,
            dirs: dirs.collect(),
            seed,
        })
    }
}

fn next_seed(random: &mut ChaCha8Rng) -> [u8; 32] {
    let mut seed = [0; 32];
    random.fill_bytes(&mut seed);
    seed
}

/// A file system gives out space in blocks, and a replaced file is there twice for a moment.
const NEEDED_BYTES_MIN: usize = 64 << 10;

/// That a file could not be written, and, where it is for lack of space, what helps.
fn not_written<D: Disk>(dir: &D, file: &str, bytes: usize, why: &DiskError) -> BootError {
    let path = shown(dir, file);
    if !why.is_full() {
        return BootError(format!("{path}: {why}"));
    }
    let needed = bytes.max(NEEDED_BYTES_MIN).div_ceil(1024);
    let free = dir.free_space().map_or_else(
        |why| why.to_string(),
        |bytes| format!("{} KiB", bytes / 1024),
    );
    BootError(format!(
        "{path} cannot be written: no space is left on its file system ({free} free, {needed} KiB \
         needed to start, more to take records); make room there, but remove no file of a log, or \
         move the whole log directory to a larger file system and change log.dirs"
    ))
}

/// The path of a file in a log directory, for messages.
fn shown<D: Disk>(dir: &D, file: &str) -> String {
    dir.root().join(file).display().to_string()
}
