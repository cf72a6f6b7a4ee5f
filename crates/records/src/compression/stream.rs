use std::fmt;

use super::{Compression, gzip, lz4, snappy, zstd};

/// Decompression state that is used again from batch to batch: one window of output and a zstd
/// context. Holds no data between batches.
#[derive(Default)]
pub struct Decompressor {
    window: Vec<u8>,
    zstd: Option<zstd::Context>,
}

/// Why a compressed block could not be read. The sender's fault in both cases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    /// The block is not what the codec demands, or ends early.
    #[error("{codec} data is damaged: {detail}")]
    Damaged {
        /// The codec of the batch.
        codec: Compression,
        /// What the codec found.
        detail: String,
    },
    /// More output than allowed.
    #[error("decompresses to more than {limit_bytes} bytes")]
    TooLarge {
        /// The bound that was passed.
        limit_bytes: u64,
    },
}

/// Bytes of output that are held at a time, except by a raw snappy block, which needs all of its
/// output as its window.
pub(super) const WINDOW_BYTES: usize = 64 * 1024;

/// The decompressed bytes of one block, chunk by chunk.
pub struct ChunkStream<'a> {
    codec: Codec<'a>,
    window: &'a mut Vec<u8>,
    filled: usize,
    produced: u64,
    limit_bytes: u64,
}

enum Codec<'a> {
    Plain(&'a [u8]),
    Gzip(gzip::Stream<'a>),
    Snappy(snappy::Stream<'a>),
    Lz4(lz4::Stream<'a>),
    Zstd(zstd::Stream<'a>),
}

impl Decompressor {
    /// A decompressor without buffers; they are made on first use.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts to decompress `input`, which may yield `limit_bytes` at the most.
    ///
    /// # Errors
    /// [`DecompressError::Damaged`] when the first bytes already are not the codec's.
    pub fn open<'a>(
        &'a mut self,
        compression: Compression,
        input: &'a [u8],
        limit_bytes: u64,
    ) -> Result<ChunkStream<'a>, DecompressError> {
        if self.window.len() < WINDOW_BYTES {
            self.window.resize(WINDOW_BYTES, 0);
        } else {
            self.window.truncate(WINDOW_BYTES);
            self.window.shrink_to(2 * WINDOW_BYTES);
        }
        let codec = match compression {
            Compression::None => Codec::Plain(input),
            Compression::Gzip => Codec::Gzip(gzip::Stream::new(input)),
            Compression::Snappy => Codec::Snappy(snappy::Stream::new(input)?),
            Compression::Lz4 => Codec::Lz4(lz4::Stream::new(input)?),
            Compression::Zstd => Codec::Zstd(zstd::Stream::new(&mut self.zstd, input)?),
        };
        Ok(ChunkStream {
            codec,
            window: &mut self.window,
            filled: 0,
            produced: 0,
            limit_bytes,
        })
    }

    /// The whole output of a block, for readers that need it in one piece. Grows with the output
    /// that is really there, never with a size that the block only claims.
    ///
    /// # Errors
    /// As [`ChunkStream::next_chunk`].
    pub fn decompress(
        &mut self,
        compression: Compression,
        input: &[u8],
        limit_bytes: u64,
    ) -> Result<Vec<u8>, DecompressError> {
        let mut stream = self.open(compression, input, limit_bytes)?;
        let mut out = Vec::new();
        loop {
            let chunk = stream.next_chunk()?;
            if chunk.is_empty() {
                return Ok(out);
            }
            out.extend_from_slice(chunk);
        }
    }
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor")
            .field("window_bytes", &self.window.len())
            .finish()
    }
}

impl ChunkStream<'_> {
    /// The next bytes of output; empty at the end of the block, after which it stays empty.
    ///
    /// # Errors
    /// [`DecompressError::Damaged`] for a block that is wrong or ends early,
    /// [`DecompressError::TooLarge`] once the output passes the bound.
    pub fn next_chunk(&mut self) -> Result<&[u8], DecompressError> {
        let allowed = self.limit_bytes - self.produced;
        self.filled = match &mut self.codec {
            Codec::Plain(input) => take_plain(input, self.window),
            Codec::Gzip(stream) => stream.fill(self.window)?,
            Codec::Snappy(stream) => stream.fill(self.window, allowed, self.limit_bytes)?,
            Codec::Lz4(stream) => stream.fill(self.window)?,
            Codec::Zstd(stream) => stream.fill(self.window)?,
        };
        if self.filled as u64 > allowed {
            return Err(DecompressError::TooLarge {
                limit_bytes: self.limit_bytes,
            });
        }
        self.produced += self.filled as u64;
        Ok(self.chunk())
    }

    /// The chunk that [`ChunkStream::next_chunk`] gave last.
    #[must_use]
    pub fn chunk(&self) -> &[u8] {
        self.window.get(..self.filled).unwrap_or_default()
    }

    /// How many bytes came out so far, the current chunk included.
    #[must_use]
    pub const fn produced_bytes(&self) -> u64 {
        self.produced
    }
}

impl fmt::Debug for ChunkStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkStream")
            .field("produced", &self.produced)
            .finish_non_exhaustive()
    }
}

pub(super) fn damaged(codec: Compression, detail: impl fmt::Display) -> DecompressError {
    DecompressError::Damaged {
        codec,
        detail: detail.to_string(),
    }
}

fn take_plain(input: &mut &[u8], window: &mut [u8]) -> usize {
    let count = input.len().min(window.len());
    let (taken, rest) = input.split_at(count);
    if let Some(target) = window.get_mut(..count) {
        target.copy_from_slice(taken);
    }
    *input = rest;
    count
}
