use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::content::Content;
use super::random::Draw;
use crate::DiskErrorKind;

/// A file or directory, whatever its name; never used again for another.
pub(super) type NodeId = u64;

/// One name of one directory.
type Key = (NodeId, String);

/// Files and directories, as seen and as durable.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: BTreeMap<NodeId, Node>,
    next_id: NodeId,
    /// Changes of names that are not durable yet, oldest first.
    unsynced: Vec<NameChange>,
    /// How many nodes the last sweep left.
    swept: usize,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// Cloned into every open handle: a file without a name lives as long as it is open.
    pub(super) held: Arc<()>,
}

impl Clone for Node {
    /// A node of another tree: no handle holds it.
    fn clone(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            held: Arc::new(()),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    File(Content),
    Dir {
        seen: BTreeMap<String, NodeId>,
        durable: BTreeMap<String, NodeId>,
    },
}

/// One atomic change: each key gets a node, or none. A rename changes two keys.
#[derive(Clone, Debug)]
struct NameChange(Vec<(Key, Option<NodeId>)>);

impl Tree {
    pub(super) const ROOT: NodeId = 0;

    pub(super) fn new() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            next_id: 0,
            unsynced: Vec::new(),
            swept: 0,
        };
        tree.add(NodeKind::dir());
        tree
    }

    pub(super) fn find(&self, names: &[&str]) -> Result<NodeId, DiskErrorKind> {
        let mut at = Self::ROOT;
        for name in names {
            at = *self
                .entries(at)?
                .get(*name)
                .ok_or(DiskErrorKind::NotFound)?;
        }
        Ok(at)
    }

    pub(super) fn entries(&self, dir: NodeId) -> Result<&BTreeMap<String, NodeId>, DiskErrorKind> {
        match self.nodes.get(&dir).map(|node| &node.kind) {
            Some(NodeKind::Dir { seen, .. }) => Ok(seen),
            Some(NodeKind::File(_)) => Err(DiskErrorKind::WrongKind),
            None => Err(DiskErrorKind::NotFound),
        }
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    pub(super) fn content(&self, id: NodeId) -> Result<&Content, DiskErrorKind> {
        match self.nodes.get(&id).map(|node| &node.kind) {
            Some(NodeKind::File(content)) => Ok(content),
            Some(NodeKind::Dir { .. }) => Err(DiskErrorKind::WrongKind),
            None => Err(DiskErrorKind::NotFound),
        }
    }

    pub(super) fn content_mut(&mut self, id: NodeId) -> Result<&mut Content, DiskErrorKind> {
        match self.nodes.get_mut(&id).map(|node| &mut node.kind) {
            Some(NodeKind::File(content)) => Ok(content),
            Some(NodeKind::Dir { .. }) => Err(DiskErrorKind::WrongKind),
            None => Err(DiskErrorKind::NotFound),
        }
    }

    /// Bytes of all files that have a name.
    pub(super) fn used_bytes(&self) -> usize {
        let all = self.nodes.values();
        all.map(|node| match &node.kind {
            NodeKind::File(content) => content.seen().len(),
            NodeKind::Dir { .. } => 0,
        })
        .sum()
    }

    /// Makes a node and gives it the name `names`.
    pub(super) fn create(
        &mut self,
        names: &[&str],
        kind: NodeKind,
    ) -> Result<NodeId, DiskErrorKind> {
        let key = self.key(names)?;
        if self.entries(key.0)?.contains_key(&key.1) {
            return Err(DiskErrorKind::AlreadyExists);
        }
        let id = self.add(kind);
        self.change(NameChange(vec![(key, Some(id))]));
        Ok(id)
    }

    pub(super) fn rename(&mut self, from: &[&str], to: &[&str]) -> Result<(), DiskErrorKind> {
        let moved = self.find(from)?;
        let (from, to) = (self.key(from)?, self.key(to)?);
        if from == to {
            return Ok(());
        }
        if let Some(&there) = self.entries(to.0)?.get(&to.1) {
            let fits = match (self.entries(moved), self.entries(there)) {
                (Err(_), Err(_)) => true,
                (Ok(_), Ok(over)) => over.is_empty(),
                _ => false,
            };
            if !fits {
                return Err(DiskErrorKind::WrongKind);
            }
        }
        self.change(NameChange(vec![(from, None), (to, Some(moved))]));
        Ok(())
    }

    /// Takes the name away, and all names below it.
    pub(super) fn remove(&mut self, names: &[&str]) -> Result<(), DiskErrorKind> {
        let node = self.find(names)?;
        let key = self.key(names)?;
        self.empty(node);
        self.change(NameChange(vec![(key, None)]));
        Ok(())
    }

    fn empty(&mut self, dir: NodeId) {
        let Ok(entries) = self.entries(dir) else {
            return;
        };
        for (name, node) in entries.clone() {
            self.empty(node);
            self.change(NameChange(vec![((dir, name), None)]));
        }
    }

    /// Makes the names in `dir` durable, with whatever earlier changes they build on.
    pub(super) fn sync_names(&mut self, dir: NodeId) {
        let mut keys: BTreeSet<Key> = BTreeSet::new();
        let mut ready = Vec::new();
        let mut rest = Vec::new();
        for change in std::mem::take(&mut self.unsynced).into_iter().rev() {
            let concerned = |(key, _): &(Key, _)| key.0 == dir || keys.contains(key);
            if change.0.iter().any(concerned) {
                keys.extend(change.0.iter().map(|(key, _)| key.clone()));
                ready.push(change);
            } else {
                rest.push(change);
            }
        }
        rest.reverse();
        self.unsynced = rest;
        for change in ready.iter().rev() {
            self.make_durable(change);
        }
        self.sweep_if_worth_it();
    }

    /// What the kernel does by itself within half a minute: everything becomes durable.
    pub(super) fn write_back(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            self.make_durable(&change);
        }
        for node in self.nodes.values_mut() {
            if let NodeKind::File(content) = &mut node.kind {
                content.sync();
            }
        }
        self.sweep();
    }

    /// The power goes, and with it everything that is not durable.
    pub(super) fn lose_unsynced(&mut self) {
        self.unsynced.clear();
        for node in self.nodes.values_mut() {
            if let NodeKind::File(content) = &mut node.kind {
                content.lose();
            }
        }
        self.see_durable();
    }

    /// The power goes. For each name a prefix of its unsynced changes survives, independent of
    /// the other names (a rename ties its two); for the bytes of files see [`Content`].
    pub(super) fn lose_some_unsynced(&mut self, draw: &mut Draw<'_>) {
        let mut lost: BTreeSet<Key> = BTreeSet::new();
        let all_survive = draw.below(4) == 0;
        for change in std::mem::take(&mut self.unsynced) {
            let builds_on_lost = change.0.iter().any(|(key, _)| lost.contains(key));
            if !builds_on_lost && (all_survive || draw.flip()) {
                self.make_durable(&change);
            } else {
                lost.extend(change.0.into_iter().map(|(key, _)| key));
            }
        }
        for node in self.nodes.values_mut() {
            if let NodeKind::File(content) = &mut node.kind {
                content.lose_some(draw);
            }
        }
        self.see_durable();
    }

    /// Whether something would be lost with the power.
    pub(super) fn is_dirty(&self) -> bool {
        let dirty = |node: &Node| matches!(&node.kind, NodeKind::File(it) if it.is_dirty());
        !self.unsynced.is_empty() || self.nodes.values().any(dirty)
    }

    fn key(&self, names: &[&str]) -> Result<Key, DiskErrorKind> {
        let (name, dir) = names.split_last().ok_or(DiskErrorKind::BadPath)?;
        let dir = self.find(dir)?;
        self.entries(dir)?;
        Ok((dir, (*name).to_owned()))
    }

    fn add(&mut self, kind: NodeKind) -> NodeId {
        let id = self.next_id;
        self.next_id += 1;
        self.nodes.insert(
            id,
            Node {
                kind,
                held: Arc::new(()),
            },
        );
        id
    }

    fn change(&mut self, change: NameChange) {
        for ((dir, name), node) in &change.0 {
            if let Some(NodeKind::Dir { seen, .. }) =
                self.nodes.get_mut(dir).map(|node| &mut node.kind)
            {
                set(seen, name, *node);
            }
        }
        self.unsynced.push(change);
    }

    fn make_durable(&mut self, change: &NameChange) {
        for ((dir, name), node) in &change.0 {
            if let Some(NodeKind::Dir { durable, .. }) =
                self.nodes.get_mut(dir).map(|node| &mut node.kind)
            {
                set(durable, name, *node);
            }
        }
    }

    fn see_durable(&mut self) {
        for node in self.nodes.values_mut() {
            if let NodeKind::Dir { seen, durable } = &mut node.kind {
                seen.clone_from(durable);
            }
        }
        self.sweep();
    }

    fn sweep_if_worth_it(&mut self) {
        if self.nodes.len() > 2 * self.swept + 64 {
            self.sweep();
        }
    }

    /// Forgets nodes that have no name, in cache or durable, and no open handle.
    fn sweep(&mut self) {
        let mut alive: BTreeSet<NodeId> = BTreeSet::from([Self::ROOT]);
        let changed = self.unsynced.iter().flat_map(|change| &change.0);
        let mut look: Vec<NodeId> = changed.filter_map(|(_, node)| *node).collect();
        look.push(Self::ROOT);
        let open = self
            .nodes
            .iter()
            .filter(|(_, node)| Arc::strong_count(&node.held) > 1);
        look.extend(open.map(|(id, _)| *id));
        while let Some(id) = look.pop() {
            alive.insert(id);
            if let Some(NodeKind::Dir { seen, durable }) = self.nodes.get(&id).map(|it| &it.kind) {
                let below = seen.values().chain(durable.values());
                look.extend(below.filter(|id| !alive.contains(id)));
            }
        }
        self.nodes.retain(|id, _| alive.contains(id));
        self.swept = self.nodes.len();
    }
}

impl NodeKind {
    pub(super) fn dir() -> Self {
        Self::Dir {
            seen: BTreeMap::new(),
            durable: BTreeMap::new(),
        }
    }
}

fn set(entries: &mut BTreeMap<String, NodeId>, name: &str, node: Option<NodeId>) {
    match node {
        Some(node) => entries.insert(name.to_owned(), node),
        None => entries.remove(name),
    };
}
