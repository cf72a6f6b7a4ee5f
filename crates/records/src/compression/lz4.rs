use std::io::{self, Read};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::stream::{DecompressError, damaged};
use super::{CompressError, Compression};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const INDEPENDENT_BLOCKS: u8 = 1 << 5;

/// One LZ4 frame of independent blocks. Java's reader knows no other, so nothing else may get into
/// a log that Java consumers read.
pub(super) struct Stream<'a> {
    decoder: FrameDecoder<Input<'a>>,
}

/// The compressed bytes. Knows whether the decoder ever wanted more than there was: the frame
/// decoder itself takes a frame without an end mark for a whole one.
struct Input<'a> {
    rest: &'a [u8],
    starved: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(input: &'a [u8]) -> Result<Self, DecompressError> {
        let (magic, flags) = match input {
            [a, b, c, d, flags, ..] => ([*a, *b, *c, *d], *flags),
            _ => return Err(damaged(Compression::Lz4, "no room for a frame header")),
        };
        if magic != MAGIC {
            return Err(damaged(Compression::Lz4, "not an LZ4 frame"));
        }
        if flags & INDEPENDENT_BLOCKS == 0 {
            return Err(damaged(Compression::Lz4, "blocks depend on each other"));
        }
        Ok(Self {
            decoder: FrameDecoder::new(Input {
                rest: input,
                starved: false,
            }),
        })
    }

    pub(super) fn fill(&mut self, window: &mut [u8]) -> Result<usize, DecompressError> {
        if self.decoder.get_ref().is_done() {
            return Ok(0);
        }
        let count = self
            .decoder
            .read(window)
            .map_err(|why| damaged(Compression::Lz4, why))?;
        if count == 0 {
            let input = self.decoder.get_mut();
            if input.starved {
                return Err(damaged(Compression::Lz4, "ends before its end mark"));
            }
            if !input.rest.is_empty() {
                return Err(damaged(
                    Compression::Lz4,
                    "bytes after the frame or an empty block",
                ));
            }
            input.starved = true;
        }
        Ok(count)
    }
}

impl Input<'_> {
    /// Set by the end of the frame; a starved decoder has already failed.
    fn is_done(&self) -> bool {
        self.starved && self.rest.is_empty()
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.len().min(buf.len());
        self.starved |= count < buf.len();
        let (taken, rest) = self.rest.split_at(count);
        if let Some(target) = buf.get_mut(..count) {
            target.copy_from_slice(taken);
        }
        self.rest = rest;
        Ok(count)
    }
}

pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
    use std::io::Write as _;
    let frame = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent)
        .content_checksum(false);
    let mut encoder = FrameEncoder::with_frame_info(frame, out);
    encoder.write_all(input)?;
    encoder
        .finish()
        .map(drop)
        .map_err(io::Error::from)
        .map_err(CompressError::from)
}
