//! The log directories, as control sees them.

use highwater_disk::Disk;

use super::{Control, ControlDir, Effects};
use crate::job::LogDirNumber;

impl<D: Disk> Control<D> {
    /// A directory must not be used any more. Without that of the metadata log, or without any,
    /// the node cannot go on.
    pub(super) fn take_dir_offline(
        &mut self,
        number: LogDirNumber,
        why: &str,
        out: &mut Effects<D>,
    ) {
        self.unclean.insert(number);
        if let Some(dir) = self.dirs.get_mut(usize::from(number.0)) {
            dir.offline = true;
        }
        if number == self.metadata_dir() {
            self.fail(
                format!("the directory of the metadata log is offline: {why}"),
                out,
            );
        } else if self.online_dirs().next().is_none() {
            self.fail("every log directory is offline".to_owned(), out);
        }
    }

    pub(super) fn online_dirs(&self) -> impl Iterator<Item = &ControlDir<D>> {
        self.dirs.iter().filter(|dir| !dir.offline)
    }

    pub(super) fn offline_dirs(&self) -> impl Iterator<Item = &ControlDir<D>> {
        self.dirs.iter().filter(|dir| dir.offline)
    }

    pub(super) fn metadata_dir(&self) -> LogDirNumber {
        LogDirNumber(u16::try_from(self.config.metadata_dir).expect("a handful of directories"))
    }

    pub(super) fn metadata_disk(&self) -> &D {
        let dir = self.dirs.get(self.config.metadata_dir);
        &dir.expect("the metadata directory is one of them").disk
    }
}
