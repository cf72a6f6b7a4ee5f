use std::fmt;
use std::path::{Path, PathBuf};

/// What a disk refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {op} {}: {detail}", path.display())]
pub struct DiskError {
    /// The path as the caller gave it, relative to the log directory.
    pub path: PathBuf,
    /// What was tried.
    pub op: DiskOp,
    /// The kind of refusal, for decisions.
    pub kind: DiskErrorKind,
    /// What the system said, for people.
    pub detail: String,
}

/// What was tried on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskOp {
    /// Opening a file or the log directory itself.
    Open,
    /// Listing a directory.
    List,
    /// Making a directory.
    CreateDir,
    /// Renaming a file or directory.
    Rename,
    /// Removing a file or directory.
    Remove,
    /// Making the names in a directory durable.
    SyncDir,
    /// Taking the directory's lock.
    Lock,
    /// Asking for free space.
    FreeSpace,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Asking for a file's length.
    Len,
    /// Cutting or extending a file.
    SetLen,
    /// Making a file's bytes durable.
    Sync,
}

/// Why a disk refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskErrorKind {
    /// No such file or directory.
    NotFound,
    /// There is one already, and it was to be new.
    AlreadyExists,
    /// A file where a directory was meant, a directory where a file was meant, or a directory
    /// that is not empty.
    WrongKind,
    /// No space is left.
    Full,
    /// No file descriptor, or no memory of the system, is left.
    Exhausted,
    /// The handle is from before a simulated crash or power-off.
    Gone,
    /// Another process, or this one, holds the lock.
    Locked,
    /// The file system does not allow it to this user.
    Denied,
    /// The path is not one inside the log directory: our caller's mistake.
    BadPath,
    /// A small file is too large to be read whole.
    TooLarge,
    /// Anything else, EIO above all.
    Io,
}

impl DiskError {
    /// An error of `kind` that happened on trying `op` on `path`.
    #[must_use]
    pub fn new(op: DiskOp, path: &Path, kind: DiskErrorKind, detail: impl Into<String>) -> Self {
        Self {
            path: path.to_path_buf(),
            op,
            kind,
            detail: detail.into(),
        }
    }

    /// Whether the file or directory was not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == DiskErrorKind::NotFound
    }

    /// Whether the disk is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind == DiskErrorKind::Full
    }

    /// Whether the same may go well later, when space or descriptors are free again: nothing is
    /// wrong with the disk itself.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, DiskErrorKind::Full | DiskErrorKind::Exhausted)
    }

    /// Whether the handle is from before a simulated crash or power-off.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.kind == DiskErrorKind::Gone
    }

    /// Whether somebody else holds the lock.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.kind == DiskErrorKind::Locked
    }
}

impl fmt::Display for DiskOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::List => "list",
            Self::CreateDir => "make directory",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::SyncDir => "sync directory",
            Self::Lock => "lock",
            Self::FreeSpace => "ask free space of",
            Self::Read => "read",
            Self::Write => "write",
            Self::Len => "ask length of",
            Self::SetLen => "set length of",
            Self::Sync => "sync",
        })
    }
}
