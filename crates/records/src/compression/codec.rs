use std::fmt;

/// How the records of a batch are compressed: the lowest three attribute bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// One gzip member.
    Gzip,
    /// Snappy in the framing of snappy-java (xerial), or one raw block.
    Snappy,
    /// One LZ4 frame of independent blocks.
    Lz4,
    /// Zstandard frames; from Produce v7 and Fetch v10 on (KIP-110).
    Zstd,
}

impl Compression {
    /// Every codec, by id.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec with this id (0 to 4); `None` for the ids that Kafka has not given out.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The id in the attributes of a batch.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The name in `compression.type` and in Kafka's dump.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of this name; the topic spelling `uncompressed` means [`Compression::None`] too.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "uncompressed" {
            return Some(Self::None);
        }
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
