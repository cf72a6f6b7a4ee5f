use std::io::IoSlice;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::DiskError;

/// The file whose lock is the log directory's.
pub(crate) const LOCK_FILE: &str = ".lock";

/// Proof that the caller may block: held only by job runners, start-up and offline commands.
#[derive(Debug)]
pub struct Blocking(());

impl Blocking {
    /// States that this thread may block on the disk. `cargo xtask tidy` allows the name
    /// `Blocking::enter` only in job runners, start-up and offline commands.
    #[must_use]
    pub const fn enter() -> Self {
        Self(())
    }
}

/// How [`Disk::open`] treats a file that is or is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; opened for reading only.
    Read,
    /// Must exist; opened for reading and writing.
    Write,
    /// Created when missing; opened for reading and writing.
    Create,
    /// Must not exist yet.
    CreateNew,
}

/// What a [`DirEntry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name alone, without the directory's path.
    pub name: String,
    /// File or directory.
    pub kind: EntryKind,
    /// Length in bytes; zero for a directory.
    pub len: u64,
}

/// One log directory. All paths are relative to it; none may climb out of it.
pub trait Disk: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// An open file of this disk.
    type File: DiskFile;
    /// Holds the directory's lock until dropped.
    type Lock: Send + std::fmt::Debug + 'static;

    /// The directory as a person knows it, for messages.
    fn root(&self) -> &Path;

    /// Opens a file.
    ///
    /// # Errors
    /// [`DiskError`] names the path and what the system said.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<Self::File>, DiskError>;

    /// The names in `dir`, sorted.
    ///
    /// # Errors
    /// When `dir` is missing or unreadable.
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, DiskError>;

    /// Makes one directory; it is no error when it is there already.
    ///
    /// # Errors
    /// When the parent is missing or the disk refuses.
    fn create_dir(&self, dir: &Path) -> Result<(), DiskError>;

    /// Renames a file or directory over whatever file is at `to`.
    ///
    /// # Errors
    /// When `from` is missing or the disk refuses.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file, or a directory with all that is in it. No error when it is gone already.
    ///
    /// # Errors
    /// When the disk refuses.
    fn remove(&self, path: &Path, b: &Blocking) -> Result<(), DiskError>;

    /// Makes the names in `dir` durable.
    ///
    /// # Errors
    /// When the disk refuses; the directory's durability is then unknown.
    fn sync_dir(&self, dir: &Path, b: &Blocking) -> Result<(), DiskError>;

    /// Takes the directory's `.lock` (fcntl, as Java's: flock would not exclude a JVM).
    ///
    /// # Errors
    /// [`DiskError::is_locked`] when another process holds it.
    fn lock(&self) -> Result<Self::Lock, DiskError>;

    /// Free bytes of the file system.
    ///
    /// # Errors
    /// When the system cannot say.
    fn free_space(&self) -> Result<u64, DiskError>;

    /// Replaces a whole small file atomically: write `<path>.tmp`, fsync, rename, fsync the
    /// directory. After a crash the old or the new bytes are there, nothing else.
    ///
    /// # Errors
    /// When any of the steps fails. The old bytes or the new ones are then in place, never a mix.
    fn replace(&self, path: &Path, bytes: &[u8], b: &Blocking) -> Result<(), DiskError>;

    /// Reads a whole small file; `None` when there is none.
    ///
    /// # Errors
    /// When the file is there but unreadable, or has more than
    /// [`SMALL_FILE_BYTES_MAX`](crate::SMALL_FILE_BYTES_MAX) bytes.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, DiskError>;
}

/// An open file. Positions and lengths are in bytes.
pub trait DiskFile: Send + Sync + std::fmt::Debug + 'static {
    /// The path it was opened by, for messages.
    fn path(&self) -> PathBuf;

    /// Writes all of `bufs` at `at`.
    ///
    /// # Errors
    /// On any short or failed write: the caller fences the log, the tail is unknown.
    fn write_at(&self, at: u64, bufs: &[IoSlice<'_>]) -> Result<(), DiskError>;

    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    ///
    /// # Errors
    /// When the disk refuses, or the handle is from before a simulated power-off.
    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, DiskError>;

    /// As [`DiskFile::read_at`], but `None` when it would wait for the disk.
    ///
    /// # Errors
    /// As [`DiskFile::read_at`].
    fn read_at_now(&self, at: u64, buf: &mut [u8]) -> Result<Option<usize>, DiskError>;

    /// The file's length.
    ///
    /// # Errors
    /// When the disk refuses.
    fn len(&self) -> Result<u64, DiskError>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// When the disk refuses.
    fn is_empty(&self) -> Result<bool, DiskError> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) the file.
    ///
    /// # Errors
    /// When the disk refuses.
    fn set_len(&self, len: u64) -> Result<(), DiskError>;

    /// Makes the file's bytes durable.
    ///
    /// # Errors
    /// After an error nothing written since the last good sync may be trusted, and a later
    /// success proves nothing: the log directory goes offline.
    fn sync(&self, b: &Blocking) -> Result<(), DiskError>;

    /// Starts writing a range back, to spread the cost of a later sync. Advice only.
    fn start_writeback(&self, range: Range<u64>, b: &Blocking);
}
