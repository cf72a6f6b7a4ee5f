use highwater_disk::{Disk, DiskError};
use highwater_types::Offset;

use super::scan::{Found, Located};
use super::{LogSegment, OffsetEntry};
use crate::config::LogConfig;

/// Where the batch with an offset lies, or why none does.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// The first batch that ends at or above the offset.
    Batch(Located),
    /// Every batch of the segment ends below the offset.
    End,
    /// The way to the offset is damaged.
    Damaged {
        /// First byte that is no batch.
        position: u64,
        /// The offset that should be there.
        expected: Offset,
    },
    /// The offset index contradicts the batches.
    IndexLies,
}

impl<D: Disk> LogSegment<D> {
    /// Finds the first batch that ends at or above `target`.
    pub(crate) fn locate(&self, target: Offset) -> Result<Place, DiskError> {
        let entry = self.offset_index.lookup(target)?;
        let mut position = entry.map_or(0, |entry| entry.position);
        let mut expected = self.base_offset;
        let mut scanner = self.headers()?;
        let mut check = entry;
        loop {
            match scanner.header_at(position, expected)? {
                Found::Batch(batch) => {
                    if check
                        .take()
                        .is_some_and(|entry| batch.header.last_offset() != entry.offset)
                    {
                        return Ok(Place::IndexLies);
                    }
                    if batch.header.last_offset() >= target {
                        return Ok(Place::Batch(batch));
                    }
                    position = batch.end();
                    expected = batch.header.next_offset();
                }
                Found::End if check.is_none() => return Ok(Place::End),
                Found::Bad(_) if check.is_none() => {
                    return Ok(Place::Damaged { position, expected });
                }
                Found::End | Found::Bad(_) => return Ok(Place::IndexLies),
            }
        }
    }

    /// The first batch that ends at or above `target` and begins at or above `from`, found by
    /// the index entry behind damage that ends at `from`.
    pub(crate) fn locate_after(
        &self,
        from: Offset,
        target: Offset,
    ) -> Result<Option<Located>, DiskError> {
        let Some(entry) = self.first_sound_entry(|entry| entry.offset >= from)? else {
            return Ok(None);
        };
        let mut position = entry.position;
        let mut scanner = self.headers()?;
        while let Found::Batch(batch) = scanner.header_at(position, from)? {
            if batch.header.last_offset() >= target {
                return Ok(Some(batch));
            }
            position = batch.end();
        }
        Ok(None)
    }

    /// Base offset of the first batch behind `position` that an index entry leads to and that
    /// lies at or above `expected`.
    pub(crate) fn next_indexed(
        &self,
        position: u64,
        expected: Offset,
    ) -> Result<Option<Offset>, DiskError> {
        let behind = |entry: &OffsetEntry| entry.position > position && entry.offset >= expected;
        let Some(entry) = self.first_sound_entry(behind)? else {
            return Ok(None);
        };
        match self.headers()?.header_at(entry.position, expected)? {
            Found::Batch(batch) => Ok(Some(batch.header.base_offset)),
            Found::End | Found::Bad(_) => Ok(None),
        }
    }

    /// The first index entry that fulfils `wanted`, as all later ones must, and that leads to a
    /// batch.
    fn first_sound_entry(
        &self,
        wanted: impl Fn(&OffsetEntry) -> bool,
    ) -> Result<Option<OffsetEntry>, DiskError> {
        let entries = &self.offset_index.0;
        let mut scanner = self.headers()?;
        for at in entries.partition_point(|entry| !wanted(entry))?..entries.len() {
            let Some(entry) = entries.at(at)? else { break };
            if let Found::Batch(batch) = scanner.header_at(entry.position, self.base_offset)?
                && batch.header.last_offset() == entry.offset
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Builds both indexes anew from the headers of the batches, skipping damage.
    pub(crate) fn reindex(&mut self, config: &LogConfig) -> Result<(), DiskError> {
        let (size, end_offset) = (self.size, self.end_offset);
        let mut scanner = self.headers()?;
        self.forget();
        let mut expected = self.base_offset;
        let mut position = 0;
        while position < size {
            match scanner.header_at(position, expected)? {
                Found::Batch(batch) => {
                    self.skip_to(position);
                    self.note(&batch.header, config.index_interval_bytes);
                    expected = batch.header.next_offset();
                    position = batch.end();
                }
                Found::End => break,
                Found::Bad(_) => {
                    match scanner.resync(position + 1..u64::MAX, expected, end_offset)? {
                        Some(batch) => position = batch.position,
                        None => break,
                    }
                }
            }
        }
        self.skip_to(size);
        self.end_offset = end_offset;
        Ok(())
    }
}
