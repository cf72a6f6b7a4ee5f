//! The five codecs of a record batch.
//!
//! Decompression is a stream of chunks with an output bound, so that a batch is never held whole
//! only to be looked at, and a bomb stops at the bound.

mod codec;
mod compress;
mod gzip;
mod lz4;
mod snappy;
mod stream;
mod zstd;

pub use self::codec::Compression;
pub use self::compress::{CompressError, CompressionLevel, Compressor};
pub use self::stream::{ChunkStream, DecompressError, Decompressor};

/// Default bound on what one batch may decompress to, in bytes.
pub const DECOMPRESSED_BYTES_MAX: u64 = 256 * 1024 * 1024;
