use std::path::Path;
use std::sync::Arc;

use super::fault::{Fault, FaultEffect};
use super::random::{Draw, stream};
use super::tree::Tree;
use crate::{DiskError, DiskErrorKind, DiskOp};

/// Everything of a simulated disk, behind its one mutex.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) tree: Tree,
    /// Raised by every crash and power-off; handles of an older one are gone.
    pub(super) generation: u64,
    /// The generation whose process holds `.lock`.
    pub(super) locked_by: Option<u64>,
    pub(super) capacity_bytes: Option<usize>,
    pub(super) faults: Vec<Fault>,
    /// Every how many-th look at the page cache finds the bytes missing; 0 for never.
    pub(super) cold_every: u32,
    pub(super) looks: u32,
    /// Operations so far that changed, or were to change, the disk.
    pub(super) ops: u64,
    /// From this operation on everything fails with an input/output error.
    pub(super) fail_at_op: Option<u64>,
    /// The power goes before this operation; the seed decides what survives, none loses all.
    pub(super) power_off_at_op: Option<(u64, Option<u64>)>,
    pub(super) powered: bool,
    /// One clone for each open file.
    pub(super) handles: Arc<()>,
    /// Most files that were open at once.
    pub(super) handles_max: usize,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            tree: Tree::new(),
            generation: 0,
            locked_by: None,
            capacity_bytes: None,
            faults: Vec::new(),
            cold_every: 0,
            looks: 0,
            ops: 0,
            fail_at_op: None,
            power_off_at_op: None,
            powered: true,
            handles: Arc::new(()),
            handles_max: 0,
        }
    }

    /// Every operation of a handle begins here. `generation` is the handle's, if it has one.
    pub(super) fn begin(
        &mut self,
        generation: Option<u64>,
        op: DiskOp,
        path: &Path,
        changes: bool,
    ) -> Result<Option<FaultEffect>, DiskError> {
        let error = |kind, why: &str| Err(DiskError::new(op, path, kind, why));
        if changes {
            self.cut_power_if_due();
        }
        if !self.powered {
            return error(DiskErrorKind::Gone, "the power is off");
        }
        if generation.is_some_and(|it| it != self.generation) {
            return error(DiskErrorKind::Gone, "the handle is from before a crash");
        }
        let number = self.ops;
        self.ops += u64::from(changes);
        if self.fail_at_op.is_some_and(|at| number >= at) {
            return error(
                DiskErrorKind::Io,
                "input/output error (every operation is to fail)",
            );
        }
        match self
            .faults
            .iter_mut()
            .find_map(|fault| fault.meet(op, path))
        {
            Some(FaultEffect::Error(kind)) if op != DiskOp::Sync => {
                error(kind, "injected by the test")
            }
            effect => Ok(effect),
        }
    }

    pub(super) fn crash(&mut self) {
        self.generation += 1;
        self.locked_by = None;
    }

    pub(super) fn power_off(&mut self, source: Option<&mut dyn FnMut() -> u64>) {
        self.crash();
        match source {
            Some(source) => self.tree.lose_some_unsynced(&mut Draw::new(source)),
            None => self.tree.lose_unsynced(),
        }
    }

    /// How many more bytes fit on the disk.
    pub(super) fn room(&self) -> usize {
        let Some(capacity) = self.capacity_bytes else {
            return usize::MAX;
        };
        capacity.saturating_sub(self.tree.used_bytes())
    }

    fn cut_power_if_due(&mut self) {
        let Some((_, seed)) = self.power_off_at_op.filter(|(at, _)| self.ops >= *at) else {
            return;
        };
        self.power_off_at_op = None;
        self.powered = false;
        match seed {
            Some(seed) => self.power_off(Some(&mut stream(seed))),
            None => self.power_off(None),
        }
    }
}
