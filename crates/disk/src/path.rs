use std::path::{Component, Path};

use crate::{DiskError, DiskErrorKind, DiskOp};

/// The names of a relative path, from the log directory down. Empty for the directory itself.
///
/// # Errors
/// When the path is absolute, climbs (`..`), or is not UTF-8.
pub(crate) fn names(op: DiskOp, path: &Path) -> Result<Vec<&str>, DiskError> {
    let bad = |why: &str| DiskError::new(op, path, DiskErrorKind::BadPath, why);
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => {
                names.push(name.to_str().ok_or_else(|| bad("the path is not UTF-8"))?);
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(bad("the path leads out of the log directory"));
            }
        }
    }
    Ok(names)
}

/// The directory that holds `path`; the empty path is the log directory.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new(""))
}
