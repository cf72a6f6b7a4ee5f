use std::path::PathBuf;

use highwater_disk::{Disk, DiskError};
use highwater_types::{DirectoryId, ErrorCode, Now, TopicIdPartition};

use crate::job::LogDirNumber;
use crate::journal::{Happening, Level};
use crate::machine::{Effect, MachineId};
use crate::part::Part;
use crate::shard::params::{FoundLog, ShardDir};
use crate::shard::partition::PartitionState;
use crate::shard::{Effects, Shard};

/// A log directory while the shard runs.
#[derive(Debug)]
pub(crate) struct LogDir<D: Disk> {
    pub(crate) disk: D,
    pub(crate) id: DirectoryId,
    pub(crate) clean_shutdown: bool,
    pub(crate) offline: bool,
    /// Open jobs of this shard that are out in it.
    pub(crate) opening: usize,
}

/// What the last run left in the directories.
#[derive(Debug)]
pub(crate) struct Inventory {
    pub(crate) found: Vec<(LogDirNumber, FoundLog)>,
    pub(crate) leftovers: Vec<(LogDirNumber, Vec<PathBuf>)>,
}

/// The directories, and what was found in them.
pub(crate) fn split<D: Disk>(dirs: Vec<ShardDir<D>>) -> (Vec<LogDir<D>>, Inventory) {
    let mut inventory = Inventory {
        found: Vec::new(),
        leftovers: Vec::new(),
    };
    let mut split = Vec::with_capacity(dirs.len());
    for (number, dir) in (0_u16..).map(LogDirNumber).zip(dirs) {
        inventory
            .found
            .extend(dir.found.into_iter().map(|log| (number, log)));
        if !dir.leftovers.is_empty() {
            inventory.leftovers.push((number, dir.leftovers));
        }
        split.push(LogDir {
            disk: dir.disk,
            id: dir.id,
            clean_shutdown: dir.clean_shutdown,
            offline: false,
            opening: 0,
        });
    }
    (split, inventory)
}

impl<D: Disk> Shard<D> {
    /// A directory that may be used.
    pub(crate) fn online_dir(&self, number: LogDirNumber) -> Option<&LogDir<D>> {
        self.dirs
            .get(usize::from(number.0))
            .filter(|dir| !dir.offline)
    }

    pub(crate) fn dir_mut(&mut self, number: LogDirNumber) -> Option<&mut LogDir<D>> {
        self.dirs.get_mut(usize::from(number.0))
    }

    /// Where a new log goes: the directory that the metadata names, or, when it names none, the
    /// one that has the fewest logs of this shard. `None` when that one is offline.
    pub(crate) fn choose_dir(&self, wanted: DirectoryId) -> Option<LogDirNumber> {
        let numbered = || (0_u16..).map(LogDirNumber).zip(&self.dirs);
        if let Some((number, dir)) = numbered().find(|(_, dir)| dir.id == wanted) {
            return (!dir.offline).then_some(number);
        }
        if self.dirs.len() == 1 {
            return self.online_dir(LogDirNumber(0)).map(|_| LogDirNumber(0));
        }
        let logs_in = |number| self.partitions.iter().filter(|it| it.dir == number).count();
        numbered()
            .filter(|(_, dir)| !dir.offline)
            .map(|(number, _)| number)
            .min_by_key(|number| (logs_in(*number), *number))
    }

    /// A disk error that casts doubt on a whole directory, such as a failed sync: what the page
    /// cache still holds may never have reached the disk, and a later success proves nothing.
    pub(crate) fn fail_dir(
        &mut self,
        now: Now,
        number: LogDirNumber,
        why: &DiskError,
        out: &mut Effects<D>,
    ) {
        if self.online_dir(number).is_none() {
            return;
        }
        let why = why.to_string();
        let others = (0..self.shards)
            .filter(|other| *other != self.number)
            .map(MachineId::Shard);
        for to in std::iter::once(MachineId::Control).chain(others) {
            out.push(Effect::Part {
                to,
                part: Part::DirOffline {
                    dir: number,
                    why: why.clone(),
                },
            });
        }
        self.take_dir_offline(now, number, &why, out);
    }

    /// Stops using a directory: all its partitions answer KAFKA_STORAGE_ERROR.
    pub(crate) fn take_dir_offline(
        &mut self,
        now: Now,
        number: LogDirNumber,
        why: &str,
        out: &mut Effects<D>,
    ) {
        let Some(dir) = self.dir_mut(number).filter(|dir| !dir.offline) else {
            return;
        };
        dir.offline = true;
        let path = dir.disk.root().display().to_string();
        let happening = Happening::DirOffline {
            dir: number,
            path,
            why: why.to_owned(),
        };
        self.journal(Level::Error, happening, out);
        self.lifecycle
            .to_open
            .retain(|request| request.dir != number);
        self.lifecycle
            .name_taken
            .retain(|(_, request)| request.dir != number);
        let ids: Vec<_> = self
            .partitions
            .iter()
            .filter(|it| it.dir == number)
            .map(|it| it.id)
            .collect();
        for id in ids {
            self.fail_partition(id, "its log directory is offline", out);
        }
        self.note_if_loaded(out);
        self.note_if_closed(now, out);
    }

    /// Stops one partition: KAFKA_STORAGE_ERROR from now on. Others go on.
    pub(crate) fn fail_partition(&mut self, id: TopicIdPartition, why: &str, out: &mut Effects<D>) {
        let Some(partition) = self.partitions.find_mut(id) else {
            return;
        };
        partition.kept = partition.lines();
        let before = std::mem::replace(&mut partition.state, PartitionState::Failed);
        self.end_waiting_appends(id, ErrorCode::KAFKA_STORAGE_ERROR, out);
        if let PartitionState::Opening { queued, .. } = before {
            self.refuse_queued(queued, ErrorCode::KAFKA_STORAGE_ERROR, out);
        }
        let why = why.to_owned();
        let happening = |partition| Happening::PartitionFailed { partition, why };
        self.partition_changed(id, Level::Error, happening, out);
    }
}
