use std::fmt;

use highwater_disk::{Blocking, Disk};

/// The number of a log directory within its node, in the order of `log.dirs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogDirNumber(pub u16);

impl fmt::Display for LogDirNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Blocking work, for the pool of one log directory. Holds only owned or immutable data.
#[derive(Debug)]
pub struct Job<D: Disk> {
    /// Whose pool runs it.
    pub dir: LogDirNumber,
    /// What to do.
    pub work: Work<D>,
}

/// The kinds of [`Job`].
#[derive(Debug)]
pub enum Work<D: Disk> {
    /// Removes files or directories that were already renamed out of the way.
    Remove(Remove<D>),
}

/// What a [`Job`] brought. Each kind of work has its kind of result.
#[derive(Debug)]
pub enum JobResult<D: Disk> {
    /// Of [`Work::Remove`].
    Removed(Result<(), highwater_disk::DiskError>),
    /// Keeps the type parameter in use.
    #[doc(hidden)]
    Never(std::convert::Infallible, std::marker::PhantomData<D>),
}

/// Removes paths of one disk.
#[derive(Debug)]
pub struct Remove<D: Disk> {
    /// The disk.
    pub disk: D,
    /// Paths relative to it.
    pub paths: Vec<std::path::PathBuf>,
}

impl<D: Disk> Job<D> {
    /// The log directory whose pool runs it.
    #[must_use]
    pub const fn dir(&self) -> LogDirNumber {
        self.dir
    }

    /// Does the work.
    pub fn run(self, b: &Blocking) -> JobResult<D> {
        match self.work {
            Work::Remove(remove) => JobResult::Removed(
                remove.paths.iter().try_for_each(|path| remove.disk.remove(path, b)),
            ),
        }
    }
}
