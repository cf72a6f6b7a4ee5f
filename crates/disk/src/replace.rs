use std::io::IoSlice;
use std::path::Path;

use crate::{Blocking, Disk, DiskError, DiskFile as _, OpenMode, path};

/// The steps of [`Disk::replace`], the same on every disk: write `<path>.tmp`, fsync it, rename
/// it over `path`, fsync the directory. Each step is one that a crash test can cut at.
pub(crate) fn replace<D: Disk>(
    disk: &D,
    to: &Path,
    bytes: &[u8],
    b: &Blocking,
) -> Result<(), DiskError> {
    let mut tmp = to.as_os_str().to_owned();
    tmp.push(".tmp");
    let tmp = Path::new(&tmp);
    let file = disk.open(tmp, OpenMode::Create)?;
    // What an earlier, interrupted replace left is cut off.
    file.set_len(0)?;
    file.write_at(0, &[IoSlice::new(bytes)])?;
    file.sync(b)?;
    disk.rename(tmp, to)?;
    disk.sync_dir(path::parent(to), b)
}
