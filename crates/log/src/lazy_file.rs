use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use highwater_disk::{Blocking, Disk, DiskError, DiskFile as _, OpenMode};

/// A file that is opened when it is first needed: most files of most logs are never read.
#[derive(Debug)]
pub(crate) struct LazyFile<D: Disk> {
    disk: D,
    path: PathBuf,
    mode: OpenMode,
    file: OnceLock<Arc<D::File>>,
}

impl<D: Disk> LazyFile<D> {
    pub(crate) const fn new(disk: D, path: PathBuf, mode: OpenMode) -> Self {
        Self {
            disk,
            path,
            mode,
            file: OnceLock::new(),
        }
    }

    /// A file that is open already.
    pub(crate) fn opened(disk: D, path: PathBuf, mode: OpenMode, file: Arc<D::File>) -> Self {
        let file = OnceLock::from(file);
        Self {
            disk,
            path,
            mode,
            file,
        }
    }

    /// The open file.
    pub(crate) fn open(&self) -> Result<&Arc<D::File>, DiskError> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = self.disk.open(&self.path, self.mode)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// The open file, which is held no longer than the caller does unless it is held already.
    pub(crate) fn open_briefly(&self) -> Result<Arc<D::File>, DiskError> {
        match self.file.get() {
            Some(file) => Ok(Arc::clone(file)),
            None => self.disk.open(&self.path, self.mode),
        }
    }

    /// The file for a job that makes it durable.
    pub(crate) fn unsynced(&self) -> UnsyncedFile<D> {
        UnsyncedFile {
            path: self.path.clone(),
            file: self.file.get().cloned(),
        }
    }

    /// Whether there is such a file already.
    pub(crate) fn exists(&self) -> Result<bool, DiskError> {
        if self.file.get().is_some() {
            return Ok(true);
        }
        match self.disk.open(&self.path, OpenMode::Read) {
            Ok(_) => Ok(true),
            Err(why) if why.is_not_found() => Ok(false),
            Err(why) => Err(why),
        }
    }

    /// Lets go of the handle; it is opened again when needed.
    pub(crate) fn release(&mut self) {
        self.file = OnceLock::new();
    }
}

impl<D: Disk> Clone for LazyFile<D> {
    fn clone(&self) -> Self {
        Self {
            disk: self.disk.clone(),
            path: self.path.clone(),
            mode: self.mode,
            file: self.file.clone(),
        }
    }
}

/// A file with bytes that are not durable yet.
///
/// A file that is open stays open until it is synced: an error of an earlier write-back is told
/// to that handle. The others, as recovery leaves them by the thousand, are opened one by one when
/// their turn comes; what was lost before this process opened them, recovery has seen.
#[derive(Debug)]
pub(crate) struct UnsyncedFile<D: Disk> {
    path: PathBuf,
    file: Option<Arc<D::File>>,
}

impl<D: Disk> UnsyncedFile<D> {
    /// Opens the file, if it is not open. `None`: it was deleted meanwhile, or cut off.
    pub(crate) fn open(&self, disk: &D) -> Result<Option<Arc<D::File>>, DiskError> {
        match &self.file {
            Some(file) => Ok(Some(Arc::clone(file))),
            // Never made here: under its name there may be none any more.
            None => match disk.open(&self.path, OpenMode::Write) {
                Ok(file) => Ok(Some(file)),
                Err(why) if why.is_not_found() => Ok(None),
                Err(why) => Err(why),
            },
        }
    }

    /// Makes the file's bytes durable.
    pub(crate) fn sync(&self, disk: &D, b: &Blocking) -> Result<(), DiskError> {
        self.open(disk)?.map_or(Ok(()), |file| file.sync(b))
    }
}
