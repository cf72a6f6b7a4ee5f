//! A log as the checker remembers it: one mark for each batch that it saw on a disk.

use std::fmt;

use bytes::Bytes;
use highwater_types::{LeaderEpoch, Offset};

/// A batch that was seen. Two marks are equal when the batches are, byte for byte.
#[derive(Clone, Debug)]
pub(super) struct BatchMark {
    pub(super) base: Offset,
    /// Exclusive end.
    pub(super) next: Offset,
    pub(super) epoch: LeaderEpoch,
    /// Over everything behind the leader epoch.
    pub(super) crc: u32,
    /// Whether a producer that deduplicates wrote it.
    pub(super) is_idempotent: bool,
    /// A hash of each record's value, in order.
    pub(super) values: Vec<u64>,
    /// The whole batch, for logs that are read themselves.
    pub(super) bytes: Option<Bytes>,
}

impl PartialEq for BatchMark {
    fn eq(&self, other: &Self) -> bool {
        (self.base, self.next, self.epoch, self.crc)
            == (other.base, other.next, other.epoch, other.crc)
    }
}

impl fmt::Display for BatchMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, next, epoch, crc) = (self.base, self.next, self.epoch, self.crc);
        write!(f, "[{base},{next}) of epoch {epoch} with crc {crc:08x}")
    }
}

/// A batch in words, or that there is none.
pub(super) fn in_words(mark: Option<&BatchMark>) -> String {
    mark.map_or_else(|| "nothing".to_owned(), ToString::to_string)
}

impl BatchMark {
    /// The hash of the value at `offset`.
    pub(super) fn value(&self, offset: Offset) -> Option<u64> {
        let at = usize::try_from(offset.raw() - self.base.raw()).ok()?;
        self.values.get(at).copied()
    }
}

/// FNV-1a of a record's value.
pub(super) fn value_hash(value: &[u8]) -> u64 {
    value.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The batches of a log, in order of their offsets.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks(Vec<BatchMark>);

impl Marks {
    /// Exclusive end of the last batch.
    pub(super) fn end(&self) -> Option<Offset> {
        self.0.last().map(|it| it.next)
    }

    /// Every batch.
    pub(super) fn iter(&self) -> impl Iterator<Item = &BatchMark> {
        self.0.iter()
    }

    /// The last `count` batches.
    pub(super) fn newest(&self, count: usize) -> &[BatchMark] {
        let from = self.0.len().saturating_sub(count);
        self.0.get(from..).unwrap_or_default()
    }

    /// Adds a batch at the end.
    pub(super) fn push(&mut self, mark: BatchMark) {
        self.0.push(mark);
    }

    /// Forgets what ends above `end`.
    pub(super) fn cut(&mut self, end: Offset) {
        let keep = self.0.partition_point(|it| it.next <= end);
        self.0.truncate(keep);
    }

    /// Forgets what ends at or below `start`.
    pub(super) fn drop_below(&mut self, start: Offset) {
        let gone = self.0.partition_point(|it| it.next <= start);
        if gone > 0 {
            self.0.drain(..gone);
        }
    }

    /// The batches that end above `from`, in order.
    pub(super) fn from(&self, from: Offset) -> &[BatchMark] {
        let at = self.0.partition_point(|it| it.next <= from);
        self.0.get(at..).unwrap_or_default()
    }

    /// The batch that holds `offset`.
    pub(super) fn at(&self, offset: Offset) -> Option<&BatchMark> {
        self.from(offset).first().filter(|it| it.base <= offset)
    }

    /// The batch that ends where `mark` begins.
    pub(super) fn before(&self, mark: &BatchMark) -> Option<&BatchMark> {
        let at = self.0.partition_point(|it| it.next <= mark.base);
        let before = self.0.get(at.checked_sub(1)?)?;
        (before.next == mark.base).then_some(before)
    }

    /// Up to where both logs hold the same from `from` on, but no further than `up_to`.
    pub(super) fn agrees_to(&self, other: &Self, from: Offset, up_to: Offset) -> Offset {
        let mut end = from;
        let (own, others) = (self.from(from).iter(), other.from(from).iter());
        for (a, b) in own.zip(others) {
            if end >= up_to || a != b || a.base > end {
                break;
            }
            end = a.next;
        }
        end
    }
}

impl Marks {
    /// Whether something is missing between `start` and the end.
    pub(super) fn has_hole(&self, start: Offset) -> bool {
        let mut end = start;
        let mut marks = self.from(start).iter();
        marks.any(|mark| mark.base > std::mem::replace(&mut end, mark.next))
    }

    /// Up to where this log holds what `committed` holds from `from` on, but no further than
    /// `up_to`. Where `committed` has a hole, lost with a disk, anything is right.
    pub(super) fn holds(&self, committed: &Self, from: Offset, up_to: Offset) -> Offset {
        let mut end = from;
        for mark in committed.from(from) {
            if end >= up_to || mark.base >= up_to {
                break;
            }
            if self.at(mark.base.max(from)) != Some(mark) {
                return end;
            }
            end = mark.next;
        }
        end.max(up_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(base: i64, next: i64, epoch: i32) -> BatchMark {
        BatchMark {
            base: Offset::new(base),
            next: Offset::new(next),
            epoch: LeaderEpoch::new(epoch),
            crc: 7,
            is_idempotent: false,
            values: Vec::new(),
            bytes: None,
        }
    }

    fn log(marks: &[(i64, i64, i32)]) -> Marks {
        Marks(marks.iter().map(|(a, b, c)| mark(*a, *b, *c)).collect())
    }

    #[test]
    fn logs_agree_up_to_where_they_part() {
        let one = log(&[(0, 2, 0), (2, 5, 0), (5, 6, 1)]);
        let other = log(&[(0, 2, 0), (2, 5, 0), (5, 6, 2), (6, 9, 2)]);
        let to = |from, up_to| one.agrees_to(&other, Offset::new(from), Offset::new(up_to));
        assert_eq!(to(0, 100), Offset::new(5));
        assert_eq!(to(2, 100), Offset::new(5));
        assert_eq!(to(5, 100), Offset::new(5));
        assert_eq!(to(0, 2), Offset::new(2));
        let later = log(&[(2, 5, 0), (5, 6, 1), (6, 7, 1)]);
        assert_eq!(
            later.agrees_to(&one, Offset::new(2), Offset::new(100)),
            Offset::new(6)
        );
        assert_eq!(
            later.agrees_to(&one, Offset::ZERO, Offset::new(100)),
            Offset::ZERO
        );
    }

    #[test]
    fn a_batch_is_found_by_any_of_its_offsets() {
        let log = log(&[(0, 2, 0), (2, 5, 0), (7, 8, 1)]);
        let base = |offset| log.at(Offset::new(offset)).map(|it| it.base.raw());
        assert_eq!([base(0), base(1), base(4)], [Some(0), Some(0), Some(2)]);
        assert_eq!([base(5), base(7), base(8)], [None, Some(7), None]);
        assert_eq!(log.before(&mark(2, 5, 0)).map(|it| it.base.raw()), Some(0));
        assert_eq!(log.before(&mark(7, 8, 1)), None);
    }
}
