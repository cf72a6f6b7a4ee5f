use std::fmt;

/// A span of time in milliseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any process lives.
    pub const MAX: Self = Self(u64::MAX / 1_000_000);

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// The span that a wire or config field of `ms` milliseconds means; negative counts as zero.
    #[must_use]
    pub fn from_wire(ms: impl Into<i64>) -> Self {
        Self(u64::try_from(ms.into()).unwrap_or(0))
    }

    /// The span in milliseconds.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// Monotonic time in microseconds since some start of its own. Judges every timeout, lag and
/// session; a jump of the wall clock never moves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

impl Mono {
    /// The start of this clock.
    pub const START: Self = Self(0);

    /// The time `micros` microseconds after the start of this clock.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start of this clock.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The time `span` later; saturates.
    #[must_use]
    pub const fn plus(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0.saturating_mul(1000)))
    }

    /// Whole milliseconds from `earlier` to `self`; zero when `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0) / 1000)
    }
}

/// Wall-clock time: milliseconds since 1970 (UTC). Only stamps records and files, and ages them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallMs(i64);

impl WallMs {
    /// The wire's "no timestamp".
    pub const NONE: Self = Self(-1);

    /// Wraps a raw timestamp as it is on the wire or on disk.
    #[must_use]
    pub const fn new(raw: i64) -> Self {
        Self(raw)
    }

    /// The raw timestamp as it is on the wire or on disk.
    #[must_use]
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// Milliseconds from `earlier` to `self`; negative when `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for WallMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Both clocks at the moment of a step. The simulator skews them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Judges spans of time.
    pub mono: Mono,
    /// Stamps records.
    pub wall: WallMs,
}
