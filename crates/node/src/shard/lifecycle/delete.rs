use std::path::PathBuf;

use highwater_disk::{Blocking, Disk, DiskError};
use highwater_log::checkpoint::partition_metadata;
use highwater_log::{DeleteLog, PartitionLog, RemovedFiles, renamed_dir};
use highwater_types::{ErrorCode, Millis, Mono, Now, TopicIdPartition, TopicPartition, Uuid};
use rand_chacha::rand_core::RngCore as _;

use crate::job::{Job, LogDirNumber, Work};
use crate::journal::{Happening, JournalEntry, Level};
use crate::machine::Effect;
use crate::shard::partition::PartitionState;
use crate::shard::{Effects, Shard};

/// Something that was renamed out of the way and is removed later.
#[derive(Debug)]
pub(crate) struct DelayedRemoval<D: Disk> {
    pub(crate) dir: LogDirNumber,
    pub(crate) removal: Removal<D>,
}

/// A job: removes what was renamed out of the way.
#[derive(Debug)]
pub enum Removal<D: Disk> {
    /// Files of one log.
    Files(RemovedFiles<D>),
    /// The directory of a log that had been open.
    Log(DeleteLog<D>),
    /// Other paths of a log directory.
    Paths(D, Vec<PathBuf>),
}

impl<D: Disk> Removal<D> {
    /// Does the work.
    ///
    /// # Errors
    /// What the disk says of the first path that it does not remove.
    pub fn run(self, b: &Blocking) -> Result<(), DiskError> {
        match self {
            Self::Files(files) => files.run(b),
            Self::Log(log) => log.run(b),
            Self::Paths(disk, paths) => paths.iter().try_for_each(|path| disk.remove(path, b)),
        }
    }
}

impl<D: Disk> Shard<D> {
    /// The partition is no longer this broker's: its log is renamed at once and removed after
    /// `file.delete.delay.ms`.
    pub(super) fn delete_partition(
        &mut self,
        now: Now,
        id: TopicIdPartition,
        out: &mut Effects<D>,
    ) {
        self.end_waiting_appends(id, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, out);
        let Some(partition) = self.partitions.remove(id) else {
            return;
        };
        self.checkpoints.note_deleted();
        let (name, dir) = (partition.name.clone(), partition.dir);
        match partition.state {
            PartitionState::Online(online) => self.delete_log(now, dir, online.log, out),
            PartitionState::Opening { is_new, queued } => {
                self.refuse_queued(queued, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, out);
                let before = self.lifecycle.to_open.len();
                self.lifecycle.to_open.retain(|request| request.id != id);
                self.lifecycle
                    .name_taken
                    .retain(|(_, request)| request.id != id);
                let was_waiting = self.lifecycle.to_open.len() < before;
                self.abandon_open(id);
                if was_waiting && !is_new {
                    self.delete_log_dir(now, dir, (id, &name), Millis::ZERO, out);
                }
            }
            PartitionState::Failed => {
                self.abandon_open(id);
                let delay = partition.settings.file_delete_delay;
                self.delete_log_dir(now, dir, (id, &name), delay, out);
            }
        }
    }

    /// A job that is out to open a log brings it back for nobody: it is deleted then.
    fn abandon_open(&mut self, id: TopicIdPartition) {
        let out_now = self.lifecycle.opening.values_mut();
        out_now
            .filter(|request| request.id == id)
            .for_each(|it| it.abandoned = true);
    }

    /// Deletes an open log.
    pub(super) fn delete_log(
        &mut self,
        now: Now,
        dir: LogDirNumber,
        log: PartitionLog<D>,
        out: &mut Effects<D>,
    ) {
        if self.online_dir(dir).is_none() {
            return;
        }
        let name = log.topic_partition().clone();
        let unique = self.random_uuid();
        match log.delete(now, unique) {
            Ok(job) => {
                let renamed_to = job.dir().display().to_string();
                let due = job.not_before();
                self.remove_at(
                    due,
                    DelayedRemoval {
                        dir,
                        removal: Removal::Log(job),
                    },
                );
                let happening = Happening::LogDeleted {
                    partition: name,
                    renamed_to,
                };
                self.journal(Level::Info, happening, out);
            }
            Err(why) => journal_stays(&name, &why, out),
        }
    }

    fn delete_log_dir(
        &mut self,
        now: Now,
        dir: LogDirNumber,
        (id, name): (TopicIdPartition, &TopicPartition),
        delay: Millis,
        out: &mut Effects<D>,
    ) {
        if self.online_dir(dir).is_none() || self.is_of_another(dir, id, name) {
            return;
        }
        match self.rename_log_dir(dir, name, "delete") {
            Ok(renamed_to) => {
                let due = now.mono.plus(delay);
                self.remove_dir_at(due, dir, PathBuf::from(&renamed_to));
                let happening = Happening::LogDeleted {
                    partition: name.clone(),
                    renamed_to,
                };
                self.journal(Level::Info, happening, out);
            }
            Err(why) if why.is_not_found() => {}
            Err(why) => journal_stays(name, &why, out),
        }
    }

    /// Whether a directory of that name is another topic's: one that was made under a name that is
    /// free again, perhaps by another shard.
    fn is_of_another(
        &self,
        dir: LogDirNumber,
        id: TopicIdPartition,
        name: &TopicPartition,
    ) -> bool {
        let path = PathBuf::from(name.to_string()).join(partition_metadata::FILE);
        let read = self.online_dir(dir).map(|dir| dir.disk.read(&path));
        let Some(Ok(Some(bytes))) = read else {
            return false;
        };
        partition_metadata::decode(&bytes).is_ok_and(|found| found != id.topic_id)
    }

    fn random_uuid(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        self.random.fill_bytes(&mut bytes);
        Uuid::from_random(bytes)
    }

    /// Renames the directory of a log out of the way; see [`renamed_dir`].
    pub(super) fn rename_log_dir(
        &mut self,
        dir: LogDirNumber,
        name: &TopicPartition,
        what: &str,
    ) -> Result<String, DiskError> {
        let to = renamed_dir(name, self.random_uuid(), what);
        if let Some(log_dir) = self.online_dir(dir) {
            log_dir.disk.rename(name.to_string().as_ref(), &to)?;
        }
        Ok(to.display().to_string())
    }

    fn remove_dir_at(&mut self, due: Mono, dir: LogDirNumber, path: PathBuf) {
        if let Some(disk) = self.online_dir(dir).map(|dir| dir.disk.clone()) {
            let removal = Removal::Paths(disk, vec![path]);
            self.remove_at(due, DelayedRemoval { dir, removal });
        }
    }

    /// Has what was renamed out of the way removed at its time.
    pub(crate) fn remove_later(&mut self, due: Mono, dir: LogDirNumber, removal: Removal<D>) {
        self.remove_at(due, DelayedRemoval { dir, removal });
    }

    /// Queues a removal for its time.
    pub(super) fn remove_at(&mut self, due: Mono, removal: DelayedRemoval<D>) {
        self.lifecycle.delayed_count += 1;
        self.lifecycle
            .delayed
            .insert((due, self.lifecycle.delayed_count), removal);
    }

    /// Starts the removals whose time has come.
    pub(super) fn remove_what_is_due(&mut self, now: Now, out: &mut Effects<D>) {
        let later = self.lifecycle.delayed.split_off(&(now.mono, u64::MAX));
        let due = std::mem::replace(&mut self.lifecycle.delayed, later);
        for DelayedRemoval { dir, removal } in due.into_values() {
            if self.online_dir(dir).is_some() {
                let token = self.new_token();
                let work = Work::Remove(removal);
                out.push(Effect::Job {
                    token,
                    job: Job { dir, work },
                });
            }
        }
    }

    /// Removes what the last run renamed for deletion and did not get to.
    pub(super) fn remove_leftovers(&mut self, out: &mut Effects<D>) {
        let leftovers = std::mem::take(&mut self.lifecycle.leftovers);
        for (dir, paths) in leftovers {
            let Some(disk) = self.online_dir(dir).map(|dir| dir.disk.clone()) else {
                continue;
            };
            let token = self.new_token();
            let work = Work::Remove(Removal::Paths(disk, paths));
            out.push(Effect::Job {
                token,
                job: Job { dir, work },
            });
        }
    }

    /// A removal is done. A failed one costs space, nothing else.
    pub(crate) fn handle_removed(&self, result: Result<(), DiskError>, out: &mut Effects<D>) {
        if let Err(why) = result {
            let text = format!("a deleted file could not be removed: {why}");
            out.push(Effect::Event(JournalEntry::text(Level::Warn, text)));
        }
    }

    /// When the next removal is due.
    pub(super) fn next_removal(&self) -> Option<Mono> {
        self.lifecycle.delayed.keys().next().map(|(due, _)| *due)
    }
}

fn journal_stays<D: Disk>(name: &TopicPartition, why: &DiskError, out: &mut Effects<D>) {
    let text = format!("{name} is deleted but its directory stays: {why}");
    out.push(Effect::Event(JournalEntry::text(Level::Error, text)));
}
