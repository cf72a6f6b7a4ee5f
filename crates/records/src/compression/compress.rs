use super::{Compression, gzip, lz4, snappy, zstd};

/// A codec's level as in `compression.gzip.level` and its kin; `None` is the codec's default.
/// Levels mean nothing to snappy; LZ4 always uses its fast mode.
pub type CompressionLevel = Option<i32>;

/// A codec with its level: how to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compressor {
    /// The codec.
    pub compression: Compression,
    /// The level; `None` is the codec's default (gzip 6, zstd 3).
    pub level: CompressionLevel,
}

/// A codec failed on bytes of our own; only a lack of memory does that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not compress: {0}")]
pub struct CompressError(pub(super) String);

impl From<std::io::Error> for CompressError {
    fn from(why: std::io::Error) -> Self {
        Self(why.to_string())
    }
}

impl Compressor {
    /// `compression` at its default level.
    #[must_use]
    pub const fn new(compression: Compression) -> Self {
        Self {
            compression,
            level: None,
        }
    }

    /// Appends `input`, compressed, to `out`.
    ///
    /// # Errors
    /// When the codec itself fails.
    pub fn compress(&self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        match self.compression {
            Compression::None => {
                out.extend_from_slice(input);
                Ok(())
            }
            Compression::Gzip => gzip::compress(input, self.level, out),
            Compression::Snappy => snappy::compress(input, out),
            Compression::Lz4 => lz4::compress(input, out),
            Compression::Zstd => zstd::compress(input, self.level, out),
        }
    }
}
