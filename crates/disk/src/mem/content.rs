use std::io::IoSlice;

use super::random::Draw;

/// Simulated disks write sectors of this many bytes whole, or not at all.
const SECTOR_BYTES: usize = 512;

/// The bytes of one file: what every reader sees, and what of it is not durable yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// What is seen: the page cache.
    seen: Vec<u8>,
    /// What was done since the last good sync, oldest first, with what it takes to undo it.
    unsynced: Vec<Change>,
    /// The durable bytes, once a failed sync has parted them from `seen` for good. As long as it
    /// is `None`, undoing `unsynced` gives the durable bytes.
    parted: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Change {
    Write {
        at: usize,
        new: Vec<u8>,
        old: Vec<u8>,
        old_len: usize,
    },
    SetLen {
        len: usize,
        cut: Vec<u8>,
        old_len: usize,
    },
}

impl Content {
    /// A file whose `bytes` are durable.
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self {
            seen: bytes,
            unsynced: Vec::new(),
            parted: None,
        }
    }

    /// The bytes that a reader sees.
    pub(super) fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// Whether something would be lost with the power.
    pub(super) fn is_dirty(&self) -> bool {
        !self.unsynced.is_empty() || self.parted.is_some()
    }

    /// Writes at most `room` of the bytes of `bufs` at `at`; returns how many.
    pub(super) fn write(&mut self, at: usize, bufs: &[IoSlice<'_>], room: usize) -> usize {
        let mut new = Vec::with_capacity(bufs.iter().map(|buf| buf.len()).sum());
        for buf in bufs {
            new.extend_from_slice(buf);
        }
        new.truncate(room);
        if new.is_empty() {
            return 0;
        }
        let old_len = self.seen.len();
        let end = at + new.len();
        let old = self
            .seen
            .get(at..end.min(old_len))
            .unwrap_or_default()
            .to_vec();
        put(&mut self.seen, at, &new);
        let written = new.len();
        self.unsynced.push(Change::Write {
            at,
            new,
            old,
            old_len,
        });
        written
    }

    /// Cuts the file, or extends it with zeros.
    pub(super) fn set_len(&mut self, len: usize) {
        let old_len = self.seen.len();
        if len == old_len && self.parted.is_none() {
            return;
        }
        let cut = self.seen.get(len..).unwrap_or_default().to_vec();
        self.seen.resize(len, 0);
        self.unsynced.push(Change::SetLen { len, cut, old_len });
    }

    /// Makes everything durable that a sync can still reach.
    pub(super) fn sync(&mut self) {
        let changes = std::mem::take(&mut self.unsynced);
        if let Some(durable) = &mut self.parted {
            for change in &changes {
                change.redo(durable);
            }
            // A whole rewrite heals the file; anything less does not.
            if *durable == self.seen {
                self.parted = None;
            }
        }
    }

    /// A failed sync: as Linux does, the dirty pages are marked clean, so that what they held is
    /// still seen, but no later sync writes it.
    pub(super) fn fail_sync(&mut self) {
        if self.is_dirty() {
            self.parted = Some(self.durable_bytes());
            self.unsynced.clear();
        }
    }

    /// Drops everything that is not durable.
    pub(super) fn lose(&mut self) {
        *self = Self::durable(self.durable_bytes());
    }

    /// The power goes: of the unsynced changes all, none, the first few, or any survive, torn
    /// within a sector or between sectors.
    pub(super) fn lose_some(&mut self, draw: &mut Draw<'_>) {
        if !self.is_dirty() {
            return;
        }
        let mut left = self.durable_bytes();
        let changes = std::mem::take(&mut self.unsynced);
        let whole = match draw.below(4) {
            0 => 0,
            1 => changes.len(),
            _ => draw.below(changes.len() + 1),
        };
        let reorders = draw.below(3) == 0;
        for (nth, change) in changes.iter().enumerate() {
            if nth < whole && !(reorders && draw.flip()) {
                change.redo(&mut left);
            } else if nth == whole || (reorders && draw.flip()) {
                change.tear(&mut left, draw);
            }
        }
        *self = Self::durable(left);
    }

    fn durable_bytes(&self) -> Vec<u8> {
        if let Some(durable) = &self.parted {
            return durable.clone();
        }
        let mut bytes = self.seen.clone();
        for change in self.unsynced.iter().rev() {
            change.undo(&mut bytes);
        }
        bytes
    }
}

impl Change {
    fn redo(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { at, new, .. } => put(bytes, *at, new),
            Self::SetLen { len, .. } => bytes.resize(*len, 0),
        }
    }

    fn undo(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write {
                at, old, old_len, ..
            } => {
                bytes.truncate(*old_len);
                put(bytes, *at, old);
                bytes.truncate(*old_len);
            }
            Self::SetLen { len, cut, old_len } => {
                bytes.resize(*old_len, 0);
                put(bytes, *len, cut);
                bytes.truncate(*old_len);
            }
        }
    }

    /// Redoes a part of the change.
    fn tear(&self, bytes: &mut Vec<u8>, draw: &mut Draw<'_>) {
        let Self::Write { at, new, .. } = self else {
            return;
        };
        match draw.below(3) {
            // Cut at any byte.
            0 => put(
                bytes,
                *at,
                new.get(..draw.below(new.len())).unwrap_or_default(),
            ),
            // The new length is there, the bytes are not.
            1 => bytes.resize(bytes.len().max(at + new.len()), 0),
            // Each sector by itself.
            _ => {
                let mut from = 0;
                while from < new.len() {
                    let sector_end = (at + from) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES;
                    let to = (sector_end - at).min(new.len());
                    if draw.flip() {
                        put(bytes, at + from, new.get(from..to).unwrap_or_default());
                    }
                    from = to;
                }
            }
        }
    }
}

/// Overwrites `bytes` from `at` on; fills a gap before it with zeros.
fn put(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    if new.is_empty() {
        return;
    }
    let end = at + new.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    if let Some(place) = bytes.get_mut(at..end) {
        place.copy_from_slice(new);
    }
}
