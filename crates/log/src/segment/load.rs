use highwater_disk::{Disk, DiskError, DiskFile};
use highwater_types::{Offset, WallMs};

use super::entries::{Entries, Entry as _};
use super::scan::Found;
use super::{LogSegment, OffsetEntry, Place, TimeEntry};

/// What is wrong with an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexProblem {
    /// The file's extension.
    pub(crate) file: &'static str,
    pub(crate) why: &'static str,
    /// It is no damage: Kafka leaves the newest index of its metadata log at full size.
    pub(crate) is_usual: bool,
}

impl IndexProblem {
    const fn new(file: &'static str, why: &'static str) -> Self {
        Self {
            file,
            why,
            is_usual: false,
        }
    }
}

impl<D: Disk> LogSegment<D> {
    /// Takes the indexes from their files, given the lengths of all three files, after checking
    /// them against the batches that their last entries lead to. The segment then stands in front
    /// of the batch that has the last index entry: the caller reads on from there.
    ///
    /// `limit` is where the next segment begins.
    pub(crate) fn load_indexes(
        &mut self,
        log: u64,
        index: Option<u64>,
        time_index: Option<u64>,
        limit: Offset,
    ) -> Result<Result<(), IndexProblem>, DiskError> {
        // The whole file counts while entries are followed.
        self.size = log;
        let result = self.load_offset_index(log, index, limit)?;
        let result = match result {
            Ok(()) => self.load_time_index(time_index, limit)?,
            Err(bad) => Err(bad),
        };
        self.size = self.offset_index.0.last().map_or(0, |entry| entry.position);
        Ok(result)
    }

    /// Whether the time index does not end with the greatest timestamp.
    pub(crate) fn lacks_time_entry(&self) -> bool {
        self.greatest.map(|entry| entry.timestamp)
            != self.time_index.0.last().map(|entry| entry.timestamp)
    }

    fn load_offset_index(
        &mut self,
        log: u64,
        len: Option<u64>,
        limit: Offset,
    ) -> Result<Result<(), IndexProblem>, DiskError> {
        let bad = |why| Ok(Err(IndexProblem::new("index", why)));
        let Some(len) = len else {
            return bad("it was missing");
        };
        if len % OffsetEntry::SIZE as u64 != 0 {
            return bad("its size is no whole number of entries");
        }
        let file = self.offset_index.0.file().clone();
        self.offset_index.0 =
            Entries::open(self.base_offset, file, len / OffsetEntry::SIZE as u64)?;
        let Some(last) = self.offset_index.0.last() else {
            return Ok(Ok(()));
        };
        if last.position == 0 && last.offset == self.base_offset {
            return Ok(Err(IndexProblem {
                file: "index",
                why: "it is not cut to its entries",
                is_usual: true,
            }));
        }
        if last.offset <= self.base_offset || last.offset >= limit || last.position >= log {
            return bad("its last entry points out of the segment");
        }
        match self.headers()?.header_at(last.position, self.base_offset)? {
            Found::Batch(batch) if batch.header.last_offset() == last.offset => {
                self.end_offset = batch.header.base_offset;
                Ok(Ok(()))
            }
            Found::Batch(_) | Found::End | Found::Bad(_) => {
                bad("its last entry does not lead to a batch")
            }
        }
    }

    fn load_time_index(
        &mut self,
        len: Option<u64>,
        limit: Offset,
    ) -> Result<Result<(), IndexProblem>, DiskError> {
        let bad = |why| Ok(Err(IndexProblem::new("timeindex", why)));
        let Some(len) = len else {
            return bad("it was missing");
        };
        if len % TimeEntry::SIZE as u64 != 0 {
            return bad("its size is no whole number of entries");
        }
        let first = match self.headers()?.header_at(0, self.base_offset)? {
            Found::Batch(batch) => Some(batch.header.max_timestamp),
            Found::End | Found::Bad(_) => None,
        };
        self.first_timestamp = first;
        let file = self.time_index.0.file().clone();
        self.time_index.0 = Entries::open(self.base_offset, file, len / TimeEntry::SIZE as u64)?;
        let Some(last) = self.time_index.0.last() else {
            // Right for an empty segment, and for records without timestamps.
            return if first.is_some_and(|first| first > WallMs::NONE) {
                bad("it has no entry")
            } else {
                Ok(Ok(()))
            };
        };
        if last.offset < self.base_offset
            || last.offset >= limit
            || first.is_some_and(|first| last.timestamp < first)
        {
            return bad("its last entry does not fit the segment");
        }
        match self.locate(last.offset)? {
            Place::Batch(batch)
                if batch.header.last_offset() == last.offset
                    && batch.header.max_timestamp == last.timestamp =>
            {
                self.greatest = Some(last);
                Ok(Ok(()))
            }
            Place::Batch(_) | Place::End | Place::Damaged { .. } | Place::IndexLies => {
                bad("its last entry contradicts the batches")
            }
        }
    }
}

/// The entries of an offset index file, whatever they are worth.
pub(crate) fn decode_offset_index<F: DiskFile>(
    file: &F,
    base: Offset,
) -> Result<Vec<OffsetEntry>, DiskError> {
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    let entries = bytes.chunks_exact(OffsetEntry::SIZE);
    Ok(entries
        .filter_map(|one| OffsetEntry::decode(one, base))
        .collect())
}
