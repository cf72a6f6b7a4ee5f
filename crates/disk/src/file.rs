//! The real disk: the one file of the cores' crates that uses `std::fs`.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, OFlags, fcntl_lock, fdatasync, statvfs};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev};

use crate::api::LOCK_FILE;
use crate::{
    Blocking, DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskOp, EntryKind, OpenMode,
    SMALL_FILE_BYTES_MAX, path, replace,
};

/// Slices that one `pwritev` takes (Linux's IOV_MAX).
const SLICES_PER_WRITE_MAX: usize = 1024;

/// Attempts to lock a lock file that others keep removing.
const LOCK_ATTEMPTS: usize = 16;

/// A log directory of the file system. Clones are cheap and mean the same directory.
#[derive(Clone, Debug)]
pub struct FileDisk {
    root: Arc<Path>,
}

/// An open file of a [`FileDisk`]. Lends its descriptor for `sendfile`.
#[derive(Debug)]
pub struct FileFile {
    file: File,
    path: PathBuf,
    /// A sync or writeback failed: the kernel may have dropped dirty pages, so no later success
    /// proves anything.
    sync_failed: AtomicBool,
}

/// Holds a log directory's `.lock` until dropped; a clean drop removes the file, as Kafka does.
#[derive(Debug)]
pub struct FileLock {
    /// Always there until the drop.
    file: Option<File>,
    full: PathBuf,
    key: LockKey,
}

/// Device and inode of a locked directory.
type LockKey = (u64, u64);

/// The directories that this process has locked: fcntl locks do not exclude their own process.
static LOCKED_HERE: Mutex<BTreeSet<LockKey>> = Mutex::new(BTreeSet::new());

impl FileDisk {
    /// The log directory `dir`, which must exist.
    ///
    /// # Errors
    /// When `dir` is missing or not a directory.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, DiskError> {
        let dir = dir.as_ref();
        let meta = fs::metadata(dir).map_err(|why| error(DiskOp::Open, dir, &why))?;
        if !meta.is_dir() {
            let kind = DiskErrorKind::WrongKind;
            return Err(DiskError::new(
                DiskOp::Open,
                dir,
                kind,
                "it is not a directory",
            ));
        }
        Ok(Self { root: dir.into() })
    }

    /// The log directory `dir`, made with all its parents when missing.
    ///
    /// # Errors
    /// When it cannot be made, or is not a directory.
    pub fn create(dir: impl AsRef<Path>) -> Result<Self, DiskError> {
        let dir = dir.as_ref();
        fs::create_dir_all(dir).map_err(|why| error(DiskOp::CreateDir, dir, &why))?;
        Self::open(dir)
    }

    /// The path as the system knows it.
    fn full(&self, op: DiskOp, path: &Path) -> Result<PathBuf, DiskError> {
        let mut full = self.root.to_path_buf();
        full.extend(path::names(op, path)?);
        Ok(full)
    }
}

impl Disk for FileDisk {
    type File = FileFile;
    type Lock = FileLock;

    fn root(&self) -> &Path {
        &self.root
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<FileFile>, DiskError> {
        let full = self.full(DiskOp::Open, path)?;
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true).truncate(false);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        // Opening a pipe would wait for whoever is at its other end.
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = options
            .open(full)
            .map_err(|why| error(DiskOp::Open, path, &why))?;
        let meta = file
            .metadata()
            .map_err(|why| error(DiskOp::Open, path, &why))?;
        if !meta.is_file() {
            let kind = DiskErrorKind::WrongKind;
            let what = if meta.is_dir() {
                "it is a directory"
            } else {
                "it is no regular file"
            };
            return Err(DiskError::new(DiskOp::Open, path, kind, what));
        }
        let path = path.to_path_buf();
        Ok(Arc::new(FileFile {
            file,
            path,
            sync_failed: AtomicBool::new(false),
        }))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, DiskError> {
        let full = self.full(DiskOp::List, dir)?;
        let failed = |why: io::Error| error(DiskOp::List, dir, &why);
        let mut entries = Vec::new();
        for entry in fs::read_dir(full).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Links are followed, as Kafka does; one that leads nowhere counts as a file. A name
            // that vanished since it was read is left out.
            let Ok(meta) = fs::metadata(entry.path()).or_else(|_| entry.metadata()) else {
                continue;
            };
            let kind = if meta.is_dir() {
                EntryKind::Dir
            } else {
                EntryKind::File
            };
            let len = if meta.is_dir() { 0 } else { meta.len() };
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry { name, kind, len });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let full = self.full(DiskOp::CreateDir, dir)?;
        match fs::create_dir(&full) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists && full.is_dir() => Ok(()),
            Err(why) => Err(error(DiskOp::CreateDir, dir, &why)),
            Ok(()) => Ok(()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let full_from = self.full(DiskOp::Rename, from)?;
        let full_to = self.full(DiskOp::Rename, to)?;
        fs::rename(full_from, full_to).map_err(|why| error(DiskOp::Rename, from, &why))
    }

    fn remove(&self, path: &Path, _b: &Blocking) -> Result<(), DiskError> {
        let full = self.full(DiskOp::Remove, path)?;
        if full == *self.root {
            let kind = DiskErrorKind::BadPath;
            let why = "it is the log directory itself";
            return Err(DiskError::new(DiskOp::Remove, path, kind, why));
        }
        let removed = match fs::symlink_metadata(&full) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&full),
            Ok(_) => fs::remove_file(&full),
            Err(why) => Err(why),
        };
        match removed {
            Err(why) if is_missing(&why) => Ok(()),
            done => done.map_err(|why| error(DiskOp::Remove, path, &why)),
        }
    }

    fn sync_dir(&self, dir: &Path, _b: &Blocking) -> Result<(), DiskError> {
        let full = self.full(DiskOp::SyncDir, dir)?;
        let failed = |why: io::Error| error(DiskOp::SyncDir, dir, &why);
        let opened = OpenOptions::new().read(true).open(full).map_err(failed)?;
        if !opened.metadata().map_err(failed)?.is_dir() {
            let kind = DiskErrorKind::WrongKind;
            return Err(DiskError::new(
                DiskOp::SyncDir,
                dir,
                kind,
                "it is not a directory",
            ));
        }
        opened.sync_all().map_err(failed)
    }

    fn lock(&self) -> Result<FileLock, DiskError> {
        let path = Path::new(LOCK_FILE);
        let failed = |why: io::Error| error(DiskOp::Lock, path, &why);
        let locked = |by: &str| {
            let why = format!("{} is in use by {by}", self.root.display());
            DiskError::new(DiskOp::Lock, path, DiskErrorKind::Locked, why)
        };
        let meta = fs::metadata(&self.root).map_err(failed)?;
        let key = (meta.dev(), meta.ino());
        // Held throughout: nobody of this process opens the file while another closes it, which
        // would drop the lock.
        let mut here = LOCKED_HERE.lock().unwrap_or_else(PoisonError::into_inner);
        if here.contains(&key) {
            return Err(locked("this process"));
        }
        let full = self.root.join(LOCK_FILE);
        for _ in 0..LOCK_ATTEMPTS {
            let mut options = OpenOptions::new();
            let file = options
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&full);
            let file = file.map_err(failed)?;
            match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::AGAIN | Errno::ACCESS) => return Err(locked("another process")),
                Err(why) => return Err(failed(why.into())),
            }
            // Between our open and our lock, the former holder may have removed the file.
            if is_same_file(&file, &full) {
                here.insert(key);
                return Ok(FileLock {
                    file: Some(file),
                    full,
                    key,
                });
            }
        }
        Err(locked("processes that start and stop"))
    }

    fn free_space(&self) -> Result<u64, DiskError> {
        let failed = |why: Errno| error(DiskOp::FreeSpace, Path::new(""), &why.into());
        let stat = statvfs(&*self.root).map_err(failed)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn replace(&self, path: &Path, bytes: &[u8], b: &Blocking) -> Result<(), DiskError> {
        replace::replace(self, path, bytes, b)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
        let file = match self.open(path, OpenMode::Read) {
            Ok(file) => file,
            Err(why) if why.is_not_found() => return Ok(None),
            Err(why) => {
                return Err(DiskError {
                    op: DiskOp::Read,
                    ..why
                });
            }
        };
        let len = file.len()?;
        let too_large = || {
            let why = format!("it has {len} bytes, too many to be read whole");
            DiskError::new(DiskOp::Read, path, DiskErrorKind::TooLarge, why)
        };
        if len > SMALL_FILE_BYTES_MAX {
            return Err(too_large());
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| too_large())?];
        let read = file.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }
}

impl FileFile {
    fn error(&self, op: DiskOp, why: &io::Error) -> DiskError {
        error(op, &self.path, why)
    }
}

impl DiskFile for FileFile {
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn write_at(&self, at: u64, bufs: &[IoSlice<'_>]) -> Result<(), DiskError> {
        // Nearly always one call takes everything, and nothing is copied.
        let wanted: usize = bufs.iter().map(|buf| buf.len()).sum();
        let first = bufs
            .get(..bufs.len().min(SLICES_PER_WRITE_MAX))
            .unwrap_or_default();
        let done = match pwritev(&self.file, first, at) {
            Ok(written) => written,
            Err(Errno::INTR) => 0,
            Err(why) => return Err(self.error(DiskOp::Write, &why.into())),
        };
        if done == wanted {
            return Ok(());
        }
        let mut slices: Vec<IoSlice<'_>> = bufs.to_vec();
        let mut left = slices.as_mut_slice();
        // Also takes empty slices off the front, which would read as a write of nothing.
        IoSlice::advance_slices(&mut left, done);
        let mut at = at.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
        while !left.is_empty() {
            let batch = left
                .get(..left.len().min(SLICES_PER_WRITE_MAX))
                .unwrap_or_default();
            let written = match pwritev(&self.file, batch, at) {
                Ok(0) => {
                    let why = io::Error::from(io::ErrorKind::WriteZero);
                    return Err(self.error(DiskOp::Write, &why));
                }
                Ok(written) => written,
                Err(Errno::INTR) => 0,
                Err(why) => return Err(self.error(DiskOp::Write, &why.into())),
            };
            IoSlice::advance_slices(&mut left, written);
            at = at.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let from = at.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
            match self.file.read_at(rest, from) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(self.error(DiskOp::Read, &why)),
            }
        }
        Ok(done)
    }

    fn read_at_now(&self, at: u64, buf: &mut [u8]) -> Result<Option<usize>, DiskError> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let from = at.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
            let mut slices = [IoSliceMut::new(rest)];
            match preadv2(&self.file, &mut slices, from, ReadWriteFlags::NOWAIT) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                // The file system or the kernel cannot say: better a wait than no answer.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    return self.read_at(at, buf).map(Some);
                }
                Err(why) => return Err(self.error(DiskOp::Read, &why.into())),
            }
        }
        Ok(Some(done))
    }

    fn len(&self) -> Result<u64, DiskError> {
        let meta = self
            .file
            .metadata()
            .map_err(|why| self.error(DiskOp::Len, &why))?;
        Ok(meta.len())
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.file
            .set_len(len)
            .map_err(|why| self.error(DiskOp::SetLen, &why))
    }

    fn sync(&self, _b: &Blocking) -> Result<(), DiskError> {
        if self.sync_failed.load(Ordering::Acquire) {
            let why = io::Error::other("an earlier sync of this file failed");
            return Err(self.error(DiskOp::Sync, &why));
        }
        fdatasync(&self.file).map_err(|why| {
            self.sync_failed.store(true, Ordering::Release);
            self.error(DiskOp::Sync, &why.into())
        })
    }

    fn start_writeback(&self, _range: Range<u64>, b: &Blocking) {
        // A failure is kept and answered by the next sync: the kernel reports it only once.
        let _kept = self.sync(b);
    }
}

impl AsFd for FileFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut here = LOCKED_HERE.lock().unwrap_or_else(PoisonError::into_inner);
        // Removed while still locked, so that a newcomer who opened it notices; see `lock`.
        if self
            .file
            .as_ref()
            .is_some_and(|file| is_same_file(file, &self.full))
        {
            // A file that stays does no harm: it is not locked.
            let _left = fs::remove_file(&self.full);
        }
        // Closing unlocks. It comes before the next thread of ours may lock: a close takes away
        // every lock of the process on the file.
        drop(self.file.take());
        here.remove(&self.key);
    }
}

/// Whether the name `full` still means the open `file`.
fn is_same_file(file: &File, full: &Path) -> bool {
    match (file.metadata(), fs::metadata(full)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

fn is_missing(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn error(op: DiskOp, path: &Path, why: &io::Error) -> DiskError {
    let kind = match why.kind() {
        io::ErrorKind::NotFound => DiskErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DiskErrorKind::AlreadyExists,
        io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::DirectoryNotEmpty => DiskErrorKind::WrongKind,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            DiskErrorKind::Full
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            DiskErrorKind::Denied
        }
        _ => match Errno::from_io_error(why) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => DiskErrorKind::Exhausted,
            _ => DiskErrorKind::Io,
        },
    };
    DiskError::new(op, path, kind, why.to_string())
}
