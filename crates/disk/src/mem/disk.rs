use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::content::Content;
use super::fault::Fault;
use super::file::MemFile;
use super::state::State;
use super::tree::{NodeId, NodeKind, Tree};
use crate::{
    Blocking, DirEntry, Disk, DiskError, DiskErrorKind, DiskOp, EntryKind, OpenMode,
    SMALL_FILE_BYTES_MAX, path, replace,
};

/// What a disk without a capacity says is free (1 TiB).
const FREE_BYTES_UNLIMITED: u64 = 1 << 40;

/// A log directory in memory that loses, tears and reorders what was not synced.
///
/// Clones share one disk. The disk itself outlives [`MemDisk::crash`] and [`MemDisk::power_off`];
/// open files and locks from before answer Gone, and so do disk handles made by
/// [`MemDisk::session`]. A node under test is given a session, so that nothing of a dead node can
/// reach the disk.
///
/// Deterministic: what it does depends on the calls and on the random source it is given. Its
/// mutex is the one exemption from "one owner, no locks".
#[derive(Clone, Debug)]
pub struct MemDisk {
    name: PathBuf,
    state: Arc<Mutex<State>>,
    /// Set in a session: the one life in which this handle works.
    generation: Option<u64>,
}

/// Holds a [`MemDisk`]'s lock until dropped.
#[derive(Debug)]
pub struct MemLock {
    state: Arc<Mutex<State>>,
    generation: u64,
}

impl MemDisk {
    /// An empty disk that calls itself `name`.
    pub fn new(name: impl Into<PathBuf>) -> Self {
        let state = Arc::new(Mutex::new(State::new()));
        Self {
            name: name.into(),
            state,
            generation: None,
        }
    }

    /// A disk with `files`, all durable.
    ///
    /// # Panics
    /// When a path leads out of the disk or is both a file and a directory.
    #[must_use]
    pub fn with_files(name: impl Into<PathBuf>, files: &BTreeMap<PathBuf, Vec<u8>>) -> Self {
        let disk = Self::new(name);
        for (path, bytes) in files {
            let mut state = disk.state();
            let names = path::names(DiskOp::Open, path).expect("a path within the disk");
            for depth in 1..names.len() {
                let dir = names.get(..depth).unwrap_or_default();
                if state.tree.find(dir).is_err() {
                    state
                        .tree
                        .create(dir, NodeKind::dir())
                        .expect("a new directory");
                }
            }
            let content = Content::durable(bytes.clone());
            state
                .tree
                .create(&names, NodeKind::File(content))
                .expect("a new file");
        }
        disk.write_back();
        disk
    }

    /// The files as a reader sees them now, by path.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        let mut files = BTreeMap::new();
        collect(&state.tree, Tree::ROOT, &PathBuf::new(), &mut files);
        files
    }

    /// A disk of its own in the same state, unsynced changes and armed faults included; nothing
    /// is open on it.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let mut state = self.state().clone();
        state.handles = Arc::new(());
        state.handles_max = 0;
        state.crash();
        Self {
            name: self.name.clone(),
            state: Arc::new(Mutex::new(state)),
            generation: None,
        }
    }

    /// A handle for one life of a process: it answers Gone from the next crash or power-off on.
    #[must_use]
    pub fn session(&self) -> Self {
        let generation = Some(self.state().generation);
        Self {
            generation,
            ..self.clone()
        }
    }

    /// The process dies. What it wrote stays in the page cache; handles and locks are gone.
    pub fn crash(&self) {
        self.state().crash();
    }

    /// The power goes and comes back. Of what was not synced, `random` decides what survives and
    /// how it is torn; handles and locks are gone.
    pub fn power_off(&self, random: &mut dyn FnMut() -> u64) {
        self.state().power_off(Some(random));
    }

    /// The power goes and comes back, and everything that was not synced is lost.
    pub fn power_off_losing_unsynced(&self) {
        self.state().power_off(None);
    }

    /// What the kernel does by itself after a while: everything written so far becomes durable.
    pub fn write_back(&self) {
        self.state().tree.write_back();
    }

    /// Whether a loss of power would lose anything.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.state().tree.is_dirty()
    }

    /// Operations so far that changed the disk or its durability, failed ones included. Crash
    /// tests run a procedure once to count them, then once more for each number.
    #[must_use]
    pub fn ops_count(&self) -> u64 {
        self.state().ops
    }

    /// The power goes just before the operation that [`MemDisk::ops_count`] would call `op`, and
    /// stays off: everything answers Gone until [`MemDisk::power_on`]. With a seed, it decides
    /// what survives; without one, everything unsynced is lost.
    pub fn power_off_at_op(&self, op: u64, seed: Option<u64>) {
        self.state().power_off_at_op = Some((op, seed));
    }

    /// Ends a power-off that was armed by [`MemDisk::power_off_at_op`], and disarms it.
    pub fn power_on(&self) {
        let mut state = self.state();
        state.powered = true;
        state.power_off_at_op = None;
    }

    /// Every operation from number `op` on fails with an input/output error; `None` ends it.
    pub fn fail_from_op(&self, op: Option<u64>) {
        self.state().fail_at_op = op;
    }

    /// Arms a fault. Of several that meet an operation, the one armed first counts.
    pub fn inject(&self, fault: Fault) {
        self.state().faults.push(fault);
    }

    /// Disarms all faults.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Bytes that all files together may have; a write beyond it writes what fits and fails.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.state().capacity_bytes = bytes;
    }

    /// Most files that were open at once since this was asked last; a process has only so many
    /// descriptors.
    #[expect(
        clippy::must_use_candidate,
        reason = "asking also begins the count anew"
    )]
    pub fn take_open_files_max(&self) -> usize {
        let mut state = self.state();
        let now = Arc::strong_count(&state.handles) - 1;
        std::mem::replace(&mut state.handles_max, now)
    }

    /// Every `every`-th `read_at_now` finds its bytes not in the page cache; 0 for never, 1 for
    /// always.
    pub fn set_cold(&self, every: u32) {
        self.state().cold_every = every;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Begins an operation that has no special way to fail.
    fn begin(
        &self,
        op: DiskOp,
        path: &Path,
        changes: bool,
    ) -> Result<MutexGuard<'_, State>, DiskError> {
        let mut state = self.state();
        state.begin(self.generation, op, path, changes)?;
        Ok(state)
    }
}

impl Disk for MemDisk {
    type File = MemFile;
    type Lock = MemLock;

    fn root(&self) -> &Path {
        &self.name
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<MemFile>, DiskError> {
        let names = path::names(DiskOp::Open, path)?;
        let creates = matches!(mode, OpenMode::Create | OpenMode::CreateNew);
        let mut state = self.begin(DiskOp::Open, path, creates)?;
        let refuse = |kind| refused(DiskOp::Open, path, kind);
        let node = match (state.tree.find(&names), mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(refuse(DiskErrorKind::AlreadyExists)),
            (Ok(node), _) => node,
            (Err(DiskErrorKind::NotFound), OpenMode::Create | OpenMode::CreateNew) => {
                let file = NodeKind::File(Content::default());
                state.tree.create(&names, file).map_err(refuse)?
            }
            (Err(kind), _) => return Err(refuse(kind)),
        };
        state.tree.content(node).map_err(refuse)?;
        let held = state.tree.node(node).map(|node| Arc::clone(&node.held));
        let held = held.expect("the file was found");
        let generation = state.generation;
        let counted = Arc::clone(&state.handles);
        state.handles_max = state.handles_max.max(Arc::strong_count(&counted) - 1);
        let file = MemFile {
            state: Arc::clone(&self.state),
            node,
            _held: held,
            _counted: counted,
            generation,
            path: path.to_path_buf(),
            writable: mode != OpenMode::Read,
        };
        Ok(Arc::new(file))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, DiskError> {
        let names = path::names(DiskOp::List, dir)?;
        let state = self.begin(DiskOp::List, dir, false)?;
        let refuse = |kind| refused(DiskOp::List, dir, kind);
        let node = state.tree.find(&names).map_err(refuse)?;
        let entries = state.tree.entries(node).map_err(refuse)?.iter();
        Ok(entries
            .map(|(name, node)| entry(&state.tree, name, *node))
            .collect())
    }

    fn create_dir(&self, dir: &Path) -> Result<(), DiskError> {
        let names = path::names(DiskOp::CreateDir, dir)?;
        let mut state = self.begin(DiskOp::CreateDir, dir, true)?;
        let there = state.tree.find(&names);
        let done = match there {
            Ok(node) => state.tree.entries(node).map(|_| ()),
            Err(_) => state.tree.create(&names, NodeKind::dir()).map(|_| ()),
        };
        done.map_err(|kind| refused(DiskOp::CreateDir, dir, kind))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let from_names = path::names(DiskOp::Rename, from)?;
        let to_names = path::names(DiskOp::Rename, to)?;
        let mut state = self.begin(DiskOp::Rename, from, true)?;
        let done = state.tree.rename(&from_names, &to_names);
        done.map_err(|kind| refused(DiskOp::Rename, from, kind))
    }

    fn remove(&self, path: &Path, _b: &Blocking) -> Result<(), DiskError> {
        let names = path::names(DiskOp::Remove, path)?;
        let mut state = self.begin(DiskOp::Remove, path, true)?;
        match state.tree.remove(&names) {
            Ok(()) | Err(DiskErrorKind::NotFound) => Ok(()),
            Err(kind) => Err(refused(DiskOp::Remove, path, kind)),
        }
    }

    fn sync_dir(&self, dir: &Path, _b: &Blocking) -> Result<(), DiskError> {
        let names = path::names(DiskOp::SyncDir, dir)?;
        let mut state = self.begin(DiskOp::SyncDir, dir, true)?;
        let refuse = |kind| refused(DiskOp::SyncDir, dir, kind);
        let node = state.tree.find(&names).map_err(refuse)?;
        state.tree.entries(node).map_err(refuse)?;
        state.tree.sync_names(node);
        Ok(())
    }

    fn lock(&self) -> Result<MemLock, DiskError> {
        let path = Path::new(crate::api::LOCK_FILE);
        let mut state = self.begin(DiskOp::Lock, path, true)?;
        if state.locked_by.is_some() {
            return Err(refused(DiskOp::Lock, path, DiskErrorKind::Locked));
        }
        if state.tree.find(&[crate::api::LOCK_FILE]).is_err() {
            let file = NodeKind::File(Content::default());
            let made = state.tree.create(&[crate::api::LOCK_FILE], file);
            made.map_err(|kind| refused(DiskOp::Lock, path, kind))?;
        }
        let generation = state.generation;
        state.locked_by = Some(generation);
        Ok(MemLock {
            state: Arc::clone(&self.state),
            generation,
        })
    }

    fn free_space(&self) -> Result<u64, DiskError> {
        let state = self.begin(DiskOp::FreeSpace, Path::new(""), false)?;
        if state.capacity_bytes.is_none() {
            return Ok(FREE_BYTES_UNLIMITED);
        }
        Ok(u64::try_from(state.room()).unwrap_or(u64::MAX))
    }

    fn replace(&self, path: &Path, bytes: &[u8], b: &Blocking) -> Result<(), DiskError> {
        replace::replace(self, path, bytes, b)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
        let names = path::names(DiskOp::Read, path)?;
        let state = self.begin(DiskOp::Read, path, false)?;
        let found = state
            .tree
            .find(&names)
            .and_then(|node| state.tree.content(node));
        let content = match found {
            Ok(content) => content,
            Err(DiskErrorKind::NotFound) => return Ok(None),
            Err(kind) => return Err(refused(DiskOp::Read, path, kind)),
        };
        if u64::try_from(content.seen().len()).unwrap_or(u64::MAX) > SMALL_FILE_BYTES_MAX {
            return Err(refused(DiskOp::Read, path, DiskErrorKind::TooLarge));
        }
        Ok(Some(content.seen().to_vec()))
    }
}

impl Drop for MemLock {
    /// A clean end removes the lock file, as Kafka does; after a crash it stays.
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        if state.locked_by == Some(self.generation) && state.powered {
            state.locked_by = None;
            // The file may have been removed by the test; the lock is free either way.
            let _gone = state.tree.remove(&[crate::api::LOCK_FILE]);
        }
    }
}

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn refused(op: DiskOp, path: &Path, kind: DiskErrorKind) -> DiskError {
    let why = match kind {
        DiskErrorKind::NotFound => "no such file or directory",
        DiskErrorKind::AlreadyExists => "it exists already",
        DiskErrorKind::WrongKind => "it is a file, or a directory, or not empty",
        DiskErrorKind::Full => "no space is left on the disk",
        DiskErrorKind::Exhausted => "no file descriptor is left",
        DiskErrorKind::Locked => "it is locked by another process",
        DiskErrorKind::Denied => "it is open for reading only",
        DiskErrorKind::BadPath => "it is the log directory itself",
        DiskErrorKind::TooLarge => "it is too large to be read whole",
        DiskErrorKind::Gone => "the handle is from before a crash",
        DiskErrorKind::Io => "input/output error",
    };
    DiskError::new(op, path, kind, why)
}

fn entry(tree: &Tree, name: &str, node: NodeId) -> DirEntry {
    let (kind, len) = match tree.content(node) {
        Ok(content) => (EntryKind::File, content.seen().len()),
        Err(_) => (EntryKind::Dir, 0),
    };
    DirEntry {
        name: name.to_owned(),
        kind,
        len: u64::try_from(len).unwrap_or(u64::MAX),
    }
}

fn collect(tree: &Tree, dir: NodeId, at: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let Ok(entries) = tree.entries(dir) else {
        return;
    };
    for (name, node) in entries {
        let path = at.join(name);
        match tree.content(*node) {
            Ok(content) => {
                files.insert(path, content.seen().to_vec());
            }
            Err(_) => collect(tree, *node, &path, files),
        }
    }
}
