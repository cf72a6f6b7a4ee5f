use std::fmt;
use std::sync::Arc;

use highwater_disk::{Disk, DiskError};
use highwater_types::Offset;

use super::PartitionLog;
use crate::damage::DamagedRange;
use crate::error::ReadError;
use crate::segment::Place;
use crate::transaction_index::AbortedTransaction;

/// What a read gives.
#[derive(Debug)]
pub enum ReadResult<F> {
    /// Bytes of a local segment.
    Local(LocalRead<F>),
    /// The offset is in tiered storage. Not yet given by any log.
    Remote,
}

/// Bytes of a local segment.
#[derive(Debug)]
pub struct LocalRead<F> {
    /// Where the bytes lie; `None` when there is nothing to read below the bound.
    pub region: Option<FileRegion<F>>,
    /// Base offset of the first batch: at or below the offset that was asked for, unless
    /// compaction removed it.
    pub first_offset: Option<Offset>,
    /// Bytes of the first batch, whole: more than `region` has when `max_bytes` cut it.
    pub first_batch_bytes: u64,
    /// Exclusive end of the offsets that `region` can hold; generous when `max_bytes` cut it.
    pub end_offset: Offset,
    /// The read ended for no other reason than `max_bytes`, or the segment's end: more can be
    /// read.
    pub more: bool,
}

/// Bytes `[position, position + len)` of a segment file, to be read at the moment of sending.
///
/// The file never gets other bytes there (KAFKA-18723): the region yields these or ends short.
pub struct FileRegion<F> {
    /// The segment's file.
    pub file: Arc<F>,
    /// First byte.
    pub position: u64,
    /// Length in bytes.
    pub len: u64,
}

impl<F> fmt::Debug for FileRegion<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region [{}, +{})", self.position, self.len)
    }
}

/// Where a batch begins.
#[derive(Clone, Copy, Debug)]
struct Spot {
    segment: usize,
    base_offset: Offset,
    position: u64,
    size: u64,
}

impl<D: Disk> PartitionLog<D> {
    /// Finds the batches from the one that holds `from` on: at most `max_bytes`, of one segment,
    /// and only whole batches that end at or below `up_to`. The last batch may be cut where
    /// `max_bytes` falls inside it, as in Kafka. The first never is: with `at_least_one` it comes
    /// whole whatever its size, without it is left out when it is larger than `max_bytes`.
    ///
    /// Nothing is read but a few headers, for which readers near the log end need no file.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`], [`ReadError::Damaged`] when `from` lies in damage, and what the
    /// disk says.
    pub fn read(
        &mut self,
        from: Offset,
        up_to: Offset,
        max_bytes: u64,
        at_least_one: bool,
    ) -> Result<ReadResult<D::File>, ReadError> {
        let log_end_offset = self.log_end_offset();
        if from < self.log_start_offset || from > log_end_offset {
            let log_start_offset = self.log_start_offset;
            return Err(ReadError::OutOfRange {
                offset: from,
                log_start_offset,
                log_end_offset,
            });
        }
        let bound = up_to.min(log_end_offset);
        let nothing = LocalRead {
            region: None,
            first_offset: None,
            first_batch_bytes: 0,
            end_offset: from,
            more: false,
        };
        if from >= bound {
            return Ok(ReadResult::Local(nothing));
        }
        let Some(spot) = self.spot(from)? else {
            return Ok(ReadResult::Local(nothing));
        };
        self.refuse_damage(from, spot.base_offset)?;
        let end = self.end_position(&spot, bound)?;
        let room = end.saturating_sub(spot.position);
        if room < spot.size {
            // Not even the first batch lies wholly below the bound.
            return Ok(ReadResult::Local(nothing));
        }
        let wanted = match max_bytes {
            max if max >= spot.size => max,
            _ if at_least_one => spot.size,
            // Nobody could use a part of the first batch.
            _ => 0,
        };
        let len = wanted.min(room);
        let segment = self
            .segments
            .get(spot.segment)
            .expect("a spot is in a segment");
        let file = Arc::clone(segment.file()?);
        let region = FileRegion {
            file,
            position: spot.position,
            len,
        };
        Ok(ReadResult::Local(LocalRead {
            more: spot.position + len < end || end == segment.size && segment.end_offset < bound,
            region: (len > 0).then_some(region),
            first_offset: Some(spot.base_offset),
            first_batch_bytes: spot.size,
            end_offset: segment.end_offset.min(bound),
        }))
    }

    /// The transactions that were aborted and overlap `[from, up_to)`, for readers of committed
    /// data. `from` is where the read began, `up_to` the exclusive end of what it returned.
    #[must_use]
    pub fn aborted_transactions(&self, from: Offset, up_to: Offset) -> Vec<AbortedTransaction> {
        let mut found = Vec::new();
        let first = self.segment_of(from).unwrap_or(0);
        for segment in self.segments.range(first..) {
            let here = segment.transactions.collect(from, up_to);
            found.extend(here.transactions);
            if here.is_complete {
                break;
            }
        }
        found
    }

    /// The first batch that ends above `from`, going on into later segments.
    fn spot(&mut self, from: Offset) -> Result<Option<Spot>, ReadError> {
        let last = self.segments.len().saturating_sub(1);
        if let Some(batch) = self.recent.find(from) {
            return Ok(Some(Spot {
                segment: last,
                base_offset: batch.base_offset,
                position: batch.position,
                size: batch.size,
            }));
        }
        let mut number = self.segment_of(from).unwrap_or(0);
        while let Some(segment) = self.segments.get(number) {
            match segment.locate(from)? {
                Place::Batch(batch) => {
                    return Ok(Some(Spot {
                        segment: number,
                        base_offset: batch.header.base_offset,
                        position: batch.position,
                        size: batch.size,
                    }));
                }
                Place::End => number += 1,
                Place::IndexLies => self.reindex(number)?,
                Place::Damaged { position, expected } => {
                    let range = self.damage_from(number, position, expected)?;
                    self.damage.add(range);
                    if range.contains(from) {
                        return Err(damaged(from, range));
                    }
                    return self.spot_after(number, range, from);
                }
            }
        }
        Ok(None)
    }

    /// The first batch at or above `from`, which lies behind `range`.
    fn spot_after(
        &mut self,
        number: usize,
        range: DamagedRange,
        from: Offset,
    ) -> Result<Option<Spot>, ReadError> {
        let Some(segment) = self.segments.get(number) else {
            return Ok(None);
        };
        match segment.locate_after(range.to, from)? {
            Some(batch) => Ok(Some(Spot {
                segment: number,
                base_offset: batch.header.base_offset,
                position: batch.position,
                size: batch.size,
            })),
            None => Err(damaged(
                from,
                DamagedRange {
                    from: range.from,
                    to: segment.end_offset,
                },
            )),
        }
    }

    /// A read that would skip damage must not: what lies between `from` and the batch that was
    /// found is missing for a reason.
    fn refuse_damage(&self, from: Offset, found: Offset) -> Result<(), ReadError> {
        match self.damage.at(from) {
            Some(range) => Err(damaged(from, range)),
            None => match self.damage.next_from(from) {
                Some(range) if range.from < found => Err(damaged(from, range)),
                _ => Ok(()),
            },
        }
    }

    /// Exclusive position in the segment of `spot` up to which batches end at or below `bound`
    /// and no known damage lies.
    fn end_position(&mut self, spot: &Spot, bound: Offset) -> Result<u64, DiskError> {
        let damage = self
            .damage
            .next_from(spot.base_offset)
            .map(|range| range.from);
        let bound = damage.map_or(bound, |from| from.min(bound));
        let segment = self
            .segments
            .get(spot.segment)
            .expect("a spot is in a segment");
        if bound >= segment.end_offset {
            return Ok(segment.size);
        }
        if spot.segment + 1 == self.segments.len()
            && let Some(batch) = self.recent.find(bound)
        {
            return Ok(batch.position);
        }
        match segment.locate(bound)? {
            Place::Batch(batch) => Ok(batch.position),
            Place::Damaged { position, .. } => Ok(position),
            Place::End | Place::IndexLies => Ok(segment.size),
        }
    }

    /// What is damaged from `position` on: up to the next batch that an index entry still leads
    /// to, or to the end of the segment.
    fn damage_from(
        &self,
        number: usize,
        position: u64,
        expected: Offset,
    ) -> Result<DamagedRange, DiskError> {
        let segment = self
            .segments
            .get(number)
            .expect("a segment with this number");
        let to = segment.next_indexed(position, expected)?;
        Ok(DamagedRange {
            from: expected,
            to: to.unwrap_or(segment.end_offset),
        })
    }

    /// Puts up new indexes for a segment whose indexes contradict its batches.
    fn reindex(&mut self, number: usize) -> Result<(), DiskError> {
        let config = self.config.clone();
        let is_active = number + 1 == self.segments.len();
        let segment = self
            .segments
            .get_mut(number)
            .expect("a segment with this number");
        segment.reindex(&config)?;
        if is_active { Ok(()) } else { segment.finish() }
    }
}

fn damaged(offset: Offset, range: DamagedRange) -> ReadError {
    ReadError::Damaged {
        offset,
        from: range.from,
        to: range.to,
    }
}
