use std::fmt;

use crate::Offset;

macro_rules! epoch {
    ($(#[$doc:meta])* $name:ident, $raw:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($raw);

        impl $name {
            /// The wire's "no epoch".
            pub const NONE: Self = Self(-1);
            /// The first epoch.
            pub const ZERO: Self = Self(0);

            /// Wraps a raw epoch as it is on the wire or on disk.
            #[must_use]
            pub const fn new(raw: $raw) -> Self {
                Self(raw)
            }

            /// The raw epoch as it is on the wire or on disk.
            #[must_use]
            pub const fn raw(self) -> $raw {
                self.0
            }

            /// The epoch right after this one.
            ///
            /// # Panics
            /// When the epoch space is used up, which no cluster reaches.
            #[must_use]
            pub const fn next(self) -> Self {
                assert!(self.0 < <$raw>::MAX, "epoch space is used up");
                Self(self.0 + 1)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

epoch!(
    /// Grows with each leader of a partition or of the quorum.
    LeaderEpoch,
    i32
);
epoch!(
    /// Grows with each change of a partition's metadata.
    PartitionEpoch,
    i32
);
epoch!(
    /// One registration of a broker: the metadata offset of its registration record.
    BrokerEpoch,
    i64
);

/// The end of a log. Orders logs by epoch first, then by offset, as votes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetAndEpoch {
    /// Epoch of the last record.
    pub epoch: LeaderEpoch,
    /// Exclusive end offset.
    pub offset: Offset,
}
