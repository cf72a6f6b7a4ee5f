use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use highwater_disk::{Disk, DiskError, OpenMode};

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
