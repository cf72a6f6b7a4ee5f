use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const TEXT: GeneralPurpose = URL_SAFE_NO_PAD;

/// Sixteen bytes, written as 22 characters of base64url without padding, as Kafka does.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

/// A text that is not a Kafka uuid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an id: 22 characters of base64url are expected")]
pub struct ParseUuidError {
    text: String,
}

impl Uuid {
    /// All zero: "no id".
    pub const ZERO: Self = Self([0; 16]);

    /// Wraps the bytes as they are on the wire or on disk.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The uuid whose value as a big-endian number is `value`.
    #[must_use]
    pub const fn from_u128(value: u128) -> Self {
        Self(value.to_be_bytes())
    }

    /// The bytes as they are on the wire or on disk.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Whether this is the all-zero "no id".
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Whether Kafka keeps this value for itself: the numbers below 100.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        u128::from_be_bytes(self.0) < 100
    }

    /// A uuid fit for a new topic, directory or incarnation, from 16 random bytes: a version 4
    /// one whose text does not begin with a dash (it would read as a flag on a command line).
    #[must_use]
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
        *version = (*version & 0x0f) | 0x40;
        *variant = (*variant & 0x3f) | 0x80;
        let [first, ..] = &mut bytes;
        // A first sextet of 62 would be written as a dash.
        if *first >> 2 == 62 {
            *first &= 0x7f;
        }
        Self(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&TEXT.encode(self.0))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = TEXT
            .decode(text)
            .ok()
            .and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
        bytes.map(Self).ok_or_else(|| ParseUuidError {
            text: text.to_owned(),
        })
    }
}

macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// All zero: "no id".
            pub const ZERO: Self = Self(Uuid::ZERO);

            /// Gives the uuid its meaning.
            #[must_use]
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The plain uuid.
            #[must_use]
            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// Whether this is the all-zero "no id".
            #[must_use]
            pub fn is_zero(self) -> bool {
                self.0.is_zero()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseUuidError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

uuid_newtype!(
    /// One topic, told apart from others of the same name before and after it.
    TopicId
);
uuid_newtype!(
    /// One log directory (`directory.id` in its meta.properties).
    DirectoryId
);

impl TopicId {
    /// The topic id of `__cluster_metadata`.
    pub const CLUSTER_METADATA: Self = Self(Uuid::from_u128(1));
}

impl DirectoryId {
    /// Kafka's "the broker has not said in which directory the replica is".
    pub const UNASSIGNED: Self = Self(Uuid::from_u128(1));
    /// Kafka's "the directory of this replica is gone".
    pub const LOST: Self = Self(Uuid::from_u128(2));
    /// Kafka's mark for replicas that come from a cluster without directory ids.
    pub const MIGRATING: Self = Self(Uuid::ZERO);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_as_kafka_does() {
        assert_eq!(
            TopicId::CLUSTER_METADATA.to_string(),
            "AAAAAAAAAAAAAAAAAAAAAQ"
        );
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
    }

    #[test]
    fn reads_back_what_it_wrote_and_nothing_else() {
        let uuid = Uuid::from_random([0xf8; 16]);
        assert_eq!(uuid.to_string().parse(), Ok(uuid));
        assert!(!uuid.to_string().starts_with('-'));
        assert!("too-short".parse::<Uuid>().is_err());
        assert!("AAAAAAAAAAAAAAAAAAAAAQ==".parse::<Uuid>().is_err());
    }
}
