use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $raw:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($raw);

        impl $name {
            /// The wire's "none".
            pub const NONE: Self = Self(-1);

            /// Wraps a raw id as it is on the wire or on disk.
            #[must_use]
            pub const fn new(raw: $raw) -> Self {
                Self(raw)
            }

            /// The raw id as it is on the wire or on disk.
            #[must_use]
            pub const fn raw(self) -> $raw {
                self.0
            }

            /// Whether this is an id at all: not negative.
            #[must_use]
            pub const fn is_some(self) -> bool {
                self.0 >= 0
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

id!(
    /// A node: a process that is a broker, a controller or both (`node.id`).
    NodeId,
    i32
);
id!(
    /// A partition's number within its topic.
    PartitionIndex,
    i32
);
id!(
    /// An idempotent or transactional producer.
    ProducerId,
    i64
);
id!(
    /// One life of a producer id.
    ProducerEpoch,
    i16
);
