use std::io::IoSlice;

use highwater_disk::{Disk, DiskError, DiskFile};
use highwater_types::Offset;

use crate::lazy_file::LazyFile;

/// How many entries one read of a search takes.
const BLOCK: u64 = 256;

/// One entry of an index file. On disk: big-endian, fixed size, offsets relative to the
/// segment's base offset as int32.
pub(crate) trait Entry: Copy + PartialEq + std::fmt::Debug {
    /// Bytes on disk.
    const SIZE: usize;
    /// Reads one entry; `None` when `bytes` is not [`Entry::SIZE`] long.
    fn decode(bytes: &[u8], base: Offset) -> Option<Self>;
    /// Appends the entry's bytes.
    fn encode(self, base: Offset, out: &mut Vec<u8>);
}

/// A sorted index: its older entries lie in a file, the newer ones wait in memory to be written.
///
/// Looking up the newest entries reads no file. Nothing is mapped into memory: a cut file or a
/// failing disk would be a signal there, not an error.
#[derive(Debug)]
pub(crate) struct Entries<D: Disk, E> {
    base: Offset,
    file: LazyFile<D>,
    /// Entries that the file holds and that count.
    on_file: u64,
    /// Entries after those. Kept in memory until written; a few are kept beyond that.
    tail: Vec<E>,
    /// How many of `tail` the file has already; they are in both.
    written: usize,
    /// The last of all entries, so that nobody reads for it.
    last: Option<E>,
}

impl<D: Disk, E: Entry> Entries<D, E> {
    /// No entries yet.
    pub(crate) const fn new(base: Offset, file: LazyFile<D>) -> Self {
        Self {
            base,
            file,
            on_file: 0,
            tail: Vec::new(),
            written: 0,
            last: None,
        }
    }

    /// The first `count` entries of `file`.
    pub(crate) fn open(base: Offset, file: LazyFile<D>, count: u64) -> Result<Self, DiskError> {
        let mut entries = Self::new(base, file);
        entries.on_file = count;
        entries.last = match count.checked_sub(1) {
            Some(at) => entries.read_block(at, 1)?.last().copied(),
            None => None,
        };
        Ok(entries)
    }

    /// The base offset of the segment.
    pub(crate) const fn base(&self) -> Offset {
        self.base
    }

    pub(crate) fn len(&self) -> u64 {
        self.on_file + self.tail.len() as u64
    }

    pub(crate) const fn last(&self) -> Option<E> {
        self.last
    }

    pub(crate) fn push(&mut self, entry: E) {
        self.tail.push(entry);
        self.last = Some(entry);
    }

    /// The entry number `at`, if there is one that can be read.
    pub(crate) fn at(&self, at: u64) -> Result<Option<E>, DiskError> {
        if at >= self.len() {
            return Ok(None);
        }
        match at.checked_sub(self.on_file) {
            Some(in_tail) => Ok(usize::try_from(in_tail)
                .ok()
                .and_then(|n| self.tail.get(n))
                .copied()),
            None => Ok(self.read_block(at, 1)?.first().copied()),
        }
    }

    /// How many entries from the start fulfil `below`; the entries must be sorted by it.
    pub(crate) fn partition_point(&self, below: impl Fn(&E) -> bool) -> Result<u64, DiskError> {
        Ok(self.search(self.on_file / 2, below)?.0)
    }

    /// The last entry that fulfils `below`; the entries must be sorted by it. A good `guess` of its
    /// number makes it one read.
    pub(crate) fn last_where(
        &self,
        guess: u64,
        below: impl Fn(&E) -> bool,
    ) -> Result<Option<E>, DiskError> {
        Ok(self.search(guess, below)?.1)
    }

    /// How many entries from the start fulfil `below`, and the last of them. Looks into the file
    /// block by block, first around `guess`.
    fn search(
        &self,
        guess: u64,
        below: impl Fn(&E) -> bool,
    ) -> Result<(u64, Option<E>), DiskError> {
        if self.on_file == 0 || self.tail.first().is_some_and(&below) {
            let count = self.tail.partition_point(&below);
            let last = count.checked_sub(1).and_then(|at| self.tail.get(at));
            return Ok((self.on_file + count as u64, last.copied()));
        }
        // All before `low` fulfil `below`; none from `high` on does, or is on the file.
        let (mut low, mut high, mut last) = (0, self.on_file, None);
        let mut from = guess.saturating_sub(BLOCK / 2);
        while low < high {
            from = from.clamp(low, high.saturating_sub(BLOCK).max(low));
            let block = self.read_block(from, BLOCK.min(high - from))?;
            let count = block.partition_point(&below);
            match count.checked_sub(1).and_then(|at| block.get(at)) {
                // A file that was cut ends as if nothing followed.
                None if from == low => break,
                None => high = from,
                Some(entry) => {
                    low = from + count as u64;
                    last = Some(*entry);
                    if count < block.len() {
                        break;
                    }
                }
            }
            from = (low + (high - low) / 2).saturating_sub(BLOCK / 2);
        }
        Ok((low, last))
    }

    /// Forgets all but the first `count` entries. The file is cut by [`Entries::write`].
    pub(crate) fn truncate(&mut self, count: u64) -> Result<(), DiskError> {
        if count >= self.len() {
            return Ok(());
        }
        match count.checked_sub(self.on_file) {
            Some(keep) => self
                .tail
                .truncate(usize::try_from(keep).unwrap_or(usize::MAX)),
            None => {
                self.on_file = count;
                self.tail.clear();
            }
        }
        self.written = self.written.min(self.tail.len());
        self.last = match self.len().checked_sub(1) {
            Some(at) => self.at(at)?,
            None => None,
        };
        Ok(())
    }

    /// Forgets all entries. The file is cut by the next trimming [`Entries::write`].
    pub(crate) fn clear(&mut self) {
        self.on_file = 0;
        self.written = 0;
        self.tail.clear();
        self.last = None;
    }

    /// Whether the file lacks entries.
    pub(crate) const fn has_unwritten(&self) -> bool {
        self.written < self.tail.len()
    }

    pub(crate) const fn file(&self) -> &LazyFile<D> {
        &self.file
    }

    pub(crate) fn release(&mut self) {
        self.file.release();
    }

    /// Writes the entries that the file lacks. With `trim` the file is also cut to its entries.
    pub(crate) fn write(&mut self, trim: bool) -> Result<(), DiskError> {
        if !trim && !self.has_unwritten() {
            return Ok(());
        }
        let file = self.file.open()?;
        let missing = self.tail.get(self.written..).unwrap_or_default();
        let mut bytes = Vec::with_capacity(missing.len() * E::SIZE);
        for entry in missing {
            entry.encode(self.base, &mut bytes);
        }
        let at = (self.on_file + self.written as u64) * E::SIZE as u64;
        if !bytes.is_empty() {
            file.write_at(at, &[IoSlice::new(&bytes)])?;
        }
        if trim {
            let end = self.len() * E::SIZE as u64;
            if file.len()? != end {
                file.set_len(end)?;
            }
        }
        self.written = self.tail.len();
        self.drop_written();
        Ok(())
    }

    /// Keeps a few written entries in memory, so that readers near the end need no file.
    fn drop_written(&mut self) {
        const KEEP: usize = 32;
        let drop = self.written.saturating_sub(KEEP);
        if drop > KEEP {
            self.tail.drain(..drop);
            self.written -= drop;
            self.on_file += drop as u64;
        }
    }

    fn read_block(&self, from: u64, count: u64) -> Result<Vec<E>, DiskError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let count = usize::try_from(count).unwrap_or(0);
        let mut bytes = vec![0; count * E::SIZE];
        let read = self
            .file
            .open()?
            .read_at(from * E::SIZE as u64, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes
            .chunks_exact(E::SIZE)
            .filter_map(|one| E::decode(one, self.base))
            .collect())
    }
}

/// Reads a big-endian int32 at `at`.
pub(crate) fn be_i32(bytes: &[u8], at: usize) -> Option<i32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(i32::from_be_bytes)
}

/// Reads a big-endian int64 at `at`.
pub(crate) fn be_i64(bytes: &[u8], at: usize) -> Option<i64> {
    bytes
        .get(at..at + 8)?
        .try_into()
        .ok()
        .map(i64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use highwater_disk::{MemDisk, OpenMode};

    use super::super::OffsetEntry;
    use super::*;

    /// Entries 10, 20, 30, .. of which the older ones are on file.
    fn entries(count: u64) -> Entries<MemDisk, OffsetEntry> {
        let file = LazyFile::new(
            MemDisk::new("test"),
            PathBuf::from("0.index"),
            OpenMode::Create,
        );
        let mut entries = Entries::new(Offset::new(0), file);
        for number in 1..=count {
            let (offset, position) = (Offset::new(0).plus(10 * number.cast_signed()), number * 7);
            entries.push(OffsetEntry { offset, position });
        }
        entries.write(true).expect("no faults");
        entries
    }

    #[test]
    fn every_entry_is_found_from_every_guess() {
        for count in [0, 1, 31, 65, 300, 2_000] {
            let entries = entries(count);
            for guess in [0, 1, count / 2, count, u64::MAX] {
                for target in (0..count + 2).step_by(if count > 500 { 37 } else { 1 }) {
                    let below = |entry: &OffsetEntry| {
                        entry.offset <= Offset::new(0).plus(10 * target.cast_signed())
                    };
                    let found = entries.last_where(guess, below).expect("no faults");
                    let expected = target.min(count);
                    assert_eq!(
                        found.map_or(0, |entry| entry.position),
                        expected * 7,
                        "{target} of {count} from {guess}"
                    );
                    assert_eq!(entries.partition_point(below).expect("no faults"), expected);
                }
            }
        }
    }

    #[test]
    fn a_file_that_was_cut_ends_where_it_ends() {
        let entries = entries(2_000);
        let file = entries.file().open().expect("no faults");
        file.set_len(100 * OffsetEntry::SIZE as u64)
            .expect("no faults");
        for guess in [0, 50, 1_000, 2_000] {
            let found = entries.last_where(guess, |entry| entry.position <= 3_500);
            let found = found.expect("no faults").expect("an entry");
            assert_eq!(found.position, 700, "from {guess}");
        }
    }
}
