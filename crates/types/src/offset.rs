use std::fmt;

/// A position in a partition's log. Ends are exclusive: a log end offset is the next to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(i64);

impl Offset {
    /// The first offset of a new log.
    pub const ZERO: Self = Self(0);
    /// The wire's "no offset".
    pub const NONE: Self = Self(-1);
    /// Above every offset of every log.
    pub const MAX: Self = Self(i64::MAX);

    /// Wraps a raw offset as it is on the wire or on disk.
    #[must_use]
    pub const fn new(raw: i64) -> Self {
        Self(raw)
    }

    /// The raw offset as it is on the wire or on disk.
    #[must_use]
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// The offset `count` records further. Saturates at [`Offset::MAX`].
    #[must_use]
    pub const fn plus(self, count: i64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// The offset right after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// How many offsets lie from `earlier` (inclusive) to `self` (exclusive); negative if `self`
    /// is the smaller one.
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
