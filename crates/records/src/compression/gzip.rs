use std::io::Read as _;

use flate2::bufread::MultiGzDecoder;

use super::stream::{DecompressError, damaged};
use super::{CompressError, Compression};

/// Gzip members, one after the other, as Java's reader takes them.
pub(super) struct Stream<'a> {
    decoder: MultiGzDecoder<&'a [u8]>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            decoder: MultiGzDecoder::new(input),
        }
    }

    pub(super) fn fill(&mut self, window: &mut [u8]) -> Result<usize, DecompressError> {
        self.decoder
            .read(window)
            .map_err(|why| damaged(Compression::Gzip, why))
    }
}

pub(super) fn compress(
    input: &[u8],
    level: Option<i32>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    use std::io::Write as _;
    let level = level
        .and_then(|level| u32::try_from(level).ok())
        .unwrap_or(6)
        .min(9);
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(level));
    encoder
        .write_all(input)
        .and_then(|()| encoder.finish().map(drop))
        .map_err(CompressError::from)
}
