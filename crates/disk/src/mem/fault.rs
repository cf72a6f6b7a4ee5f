use std::path::{Path, PathBuf};

use crate::{DiskErrorKind, DiskOp};

/// A fault to come: the operations that it meets fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub path: FaultPath,
    /// On what operation.
    pub op: DiskOp,
    /// How many such operations still go well.
    pub after: u32,
    /// How many then fail; [`u32::MAX`] is for ever.
    pub times: u32,
    /// How they fail.
    pub effect: FaultEffect,
}

/// Which paths a [`Fault`] meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultPath {
    /// Every path.
    Any,
    /// This path alone, as a handle was opened by.
    Is(PathBuf),
    /// Every path in this directory or below it.
    Under(PathBuf),
    /// Every path whose text ends so, as `.index`.
    EndsWith(String),
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// Nothing is done; the error is of this kind. A sync that fails so loses what it was to
    /// write, as Linux does: it stays visible, and no later sync makes it durable.
    Error(DiskErrorKind),
    /// The first bytes of a write are written, then it fails with this kind.
    ShortWrite {
        /// How many bytes are written.
        bytes: usize,
        /// What is said.
        kind: DiskErrorKind,
    },
}

impl Fault {
    /// The next `op` on `path` fails once with an input/output error.
    #[must_use]
    pub fn io_error(op: DiskOp, path: FaultPath) -> Self {
        let effect = FaultEffect::Error(DiskErrorKind::Io);
        Self {
            path,
            op,
            after: 0,
            times: 1,
            effect,
        }
    }

    /// Counts one operation; the effect when it is to fail.
    pub(super) fn meet(&mut self, op: DiskOp, path: &Path) -> Option<FaultEffect> {
        if op != self.op || self.times == 0 || !self.path.matches(path) {
            return None;
        }
        if self.after > 0 {
            self.after -= 1;
            return None;
        }
        if self.times != u32::MAX {
            self.times -= 1;
        }
        Some(self.effect)
    }
}

impl FaultPath {
    fn matches(&self, path: &Path) -> bool {
        match self {
            Self::Any => true,
            Self::Is(this) => path == this,
            Self::Under(dir) => path.starts_with(dir),
            Self::EndsWith(end) => path.to_string_lossy().ends_with(end.as_str()),
        }
    }
}
