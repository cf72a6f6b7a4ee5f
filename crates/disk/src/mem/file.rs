use std::io::IoSlice;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use super::disk::{lock, refused};
use super::fault::FaultEffect;
use super::state::State;
use super::tree::NodeId;
use crate::{Blocking, DiskError, DiskErrorKind, DiskFile, DiskOp};

/// An open file of a [`MemDisk`](crate::MemDisk). Works on after a rename or removal of its name,
/// and answers Gone after a crash or power-off.
#[derive(Debug)]
pub struct MemFile {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) node: NodeId,
    /// Keeps the node alive when its last name is gone.
    pub(super) _held: Arc<()>,
    /// Counts as one open file.
    pub(super) _counted: Arc<()>,
    pub(super) generation: u64,
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

impl MemFile {
    fn begin(
        &self,
        op: DiskOp,
        changes: bool,
    ) -> Result<(MutexGuard<'_, State>, Option<FaultEffect>), DiskError> {
        let mut state = lock(&self.state);
        let effect = state.begin(Some(self.generation), op, &self.path, changes)?;
        if matches!(op, DiskOp::Write | DiskOp::SetLen) && !self.writable {
            return Err(self.refused(op, DiskErrorKind::Denied));
        }
        Ok((state, effect))
    }

    fn refused(&self, op: DiskOp, kind: DiskErrorKind) -> DiskError {
        refused(op, &self.path, kind)
    }

    /// A position that memory could hold.
    fn position(&self, op: DiskOp, at: u64) -> Result<usize, DiskError> {
        let fits = usize::try_from(at)
            .ok()
            .filter(|at| *at <= isize::MAX.unsigned_abs() / 2);
        fits.ok_or_else(|| self.refused(op, DiskErrorKind::Full))
    }

    fn read(&self, state: &State, at: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        let refuse = |kind| self.refused(DiskOp::Read, kind);
        let content = state.tree.content(self.node).map_err(refuse)?;
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let there = content.seen().get(from..).unwrap_or_default();
        let len = there.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..len), there.get(..len)) {
            to.copy_from_slice(from);
        }
        Ok(len)
    }
}

impl DiskFile for MemFile {
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn write_at(&self, at: u64, bufs: &[IoSlice<'_>]) -> Result<(), DiskError> {
        let (mut state, effect) = self.begin(DiskOp::Write, true)?;
        let at = self.position(DiskOp::Write, at)?;
        let refuse = |kind| self.refused(DiskOp::Write, kind);
        let wanted: usize = bufs.iter().map(|buf| buf.len()).sum();
        let len = state.tree.content(self.node).map_err(refuse)?.seen().len();
        // Overwriting needs no room; a gap before `at` does.
        let fits = len.saturating_add(state.room()).saturating_sub(at);
        let (allowed, kind) = match effect {
            Some(FaultEffect::ShortWrite { bytes, kind }) => (bytes.min(fits), Some(kind)),
            Some(FaultEffect::Error(kind)) => return Err(refuse(kind)),
            None => (fits, None),
        };
        let content = state.tree.content_mut(self.node).map_err(refuse)?;
        let written = content.write(at, bufs, allowed);
        match kind {
            Some(kind) => Err(refuse(kind)),
            None if written < wanted => Err(refuse(DiskErrorKind::Full)),
            None => Ok(()),
        }
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        let (state, _) = self.begin(DiskOp::Read, false)?;
        self.read(&state, at, buf)
    }

    fn read_at_now(&self, at: u64, buf: &mut [u8]) -> Result<Option<usize>, DiskError> {
        let (mut state, _) = self.begin(DiskOp::Read, false)?;
        state.looks = state.looks.wrapping_add(1);
        if state.cold_every > 0 && state.looks.is_multiple_of(state.cold_every) {
            return Ok(None);
        }
        self.read(&state, at, buf).map(Some)
    }

    fn len(&self) -> Result<u64, DiskError> {
        let (state, _) = self.begin(DiskOp::Len, false)?;
        let content = state.tree.content(self.node);
        let content = content.map_err(|kind| self.refused(DiskOp::Len, kind))?;
        Ok(u64::try_from(content.seen().len()).unwrap_or(u64::MAX))
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        let (mut state, _) = self.begin(DiskOp::SetLen, true)?;
        let len = self.position(DiskOp::SetLen, len)?;
        let refuse = |kind| self.refused(DiskOp::SetLen, kind);
        let old_len = state.tree.content(self.node).map_err(refuse)?.seen().len();
        if len.saturating_sub(old_len) > state.room() {
            return Err(refuse(DiskErrorKind::Full));
        }
        state
            .tree
            .content_mut(self.node)
            .map_err(refuse)?
            .set_len(len);
        Ok(())
    }

    fn sync(&self, _b: &Blocking) -> Result<(), DiskError> {
        let (mut state, effect) = self.begin(DiskOp::Sync, true)?;
        let refuse = |kind| self.refused(DiskOp::Sync, kind);
        let content = state.tree.content_mut(self.node).map_err(refuse)?;
        match effect {
            Some(FaultEffect::Error(kind) | FaultEffect::ShortWrite { kind, .. }) => {
                content.fail_sync();
                Err(refuse(kind))
            }
            None => {
                content.sync();
                Ok(())
            }
        }
    }

    fn start_writeback(&self, _range: Range<u64>, _b: &Blocking) {
        // Advice: what survives a loss of power is the random source's choice anyway.
    }
}
