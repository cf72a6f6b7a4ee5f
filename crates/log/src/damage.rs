use std::fmt;

use highwater_types::Offset;

/// Offsets that a log should hold and whose bytes are no good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// First damaged offset.
    pub from: Offset,
    /// Exclusive end.
    pub to: Offset,
}

impl DamagedRange {
    /// Whether `offset` is in the damage.
    #[must_use]
    pub fn contains(&self, offset: Offset) -> bool {
        self.from <= offset && offset < self.to
    }
}

impl fmt::Display for DamagedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.from, self.to)
    }
}

/// All known damage of a log.
///
/// Invariant: sorted, no range is empty, and none touches another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    ranges: Vec<DamagedRange>,
}

impl Damage {
    pub(crate) fn ranges(&self) -> &[DamagedRange] {
        &self.ranges
    }

    /// The range that `offset` lies in.
    pub(crate) fn at(&self, offset: Offset) -> Option<DamagedRange> {
        let after = self.ranges.partition_point(|range| range.from <= offset);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        range.contains(offset).then_some(*range)
    }

    /// The first range that begins at or above `offset`.
    pub(crate) fn next_from(&self, offset: Offset) -> Option<DamagedRange> {
        let at = self.ranges.partition_point(|range| range.from < offset);
        self.ranges.get(at).copied()
    }

    pub(crate) fn add(&mut self, new: DamagedRange) {
        if new.from >= new.to {
            return;
        }
        let mut merged = new;
        self.ranges.retain(|range| {
            let apart = range.to < merged.from || merged.to < range.from;
            if !apart {
                merged.from = merged.from.min(range.from);
                merged.to = merged.to.max(range.to);
            }
            apart
        });
        let at = self
            .ranges
            .partition_point(|range| range.from < merged.from);
        self.ranges.insert(at, merged);
    }

    /// Forgets what is outside `[from, to)`.
    pub(crate) fn clamp(&mut self, from: Offset, to: Offset) {
        for range in &mut self.ranges {
            range.from = range.from.max(from);
            range.to = range.to.min(to);
        }
        self.ranges.retain(|range| range.from < range.to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: i64, to: i64) -> DamagedRange {
        DamagedRange {
            from: Offset::new(from),
            to: Offset::new(to),
        }
    }

    #[test]
    fn ranges_merge_and_are_clamped() {
        let mut damage = Damage::default();
        damage.add(range(10, 20));
        damage.add(range(40, 50));
        damage.add(range(20, 25));
        damage.add(range(7, 7));
        assert_eq!(damage.ranges(), [range(10, 25), range(40, 50)]);
        assert_eq!(damage.at(Offset::new(24)), Some(range(10, 25)));
        assert_eq!(damage.at(Offset::new(25)), None);
        assert_eq!(damage.next_from(Offset::new(25)), Some(range(40, 50)));
        damage.add(range(0, 45));
        assert_eq!(damage.ranges(), [range(0, 50)]);
        damage.clamp(Offset::new(5), Offset::new(9));
        assert_eq!(damage.ranges(), [range(5, 9)]);
        damage.clamp(Offset::new(9), Offset::new(99));
        assert!(damage.ranges().is_empty());
    }
}
