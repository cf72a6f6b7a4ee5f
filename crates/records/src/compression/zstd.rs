use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use super::stream::{DecompressError, damaged};
use super::{CompressError, Compression};

/// The largest window (2^27 bytes) that is decoded, as in Kafka's zstd library. The memory behind
/// it is only touched as output fills it.
const WINDOW_LOG_MAX: u32 = 27;

/// A decoder that is used again from batch to batch.
pub(super) struct Context(Decoder<'static>);

/// Zstandard frames, one after the other.
pub(super) struct Stream<'a> {
    decoder: &'a mut Decoder<'static>,
    rest: &'a [u8],
    inside_frame: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(
        context: &'a mut Option<Context>,
        input: &'a [u8],
    ) -> Result<Self, DecompressError> {
        let bad = |why| damaged(Compression::Zstd, why);
        if context.is_none() {
            let mut decoder = Decoder::new().map_err(bad)?;
            decoder
                .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))
                .map_err(bad)?;
            *context = Some(Context(decoder));
        }
        let Some(Context(decoder)) = context else {
            unreachable!("the context was just made");
        };
        decoder.reinit().map_err(bad)?;
        Ok(Self {
            decoder,
            rest: input,
            inside_frame: true,
        })
    }

    pub(super) fn fill(&mut self, window: &mut [u8]) -> Result<usize, DecompressError> {
        loop {
            if self.rest.is_empty() && !self.inside_frame {
                return Ok(0);
            }
            let status = self
                .decoder
                .run_on_buffers(self.rest, window)
                .map_err(|why| damaged(Compression::Zstd, why))?;
            self.rest = self.rest.get(status.bytes_read..).unwrap_or_default();
            self.inside_frame = status.remaining != 0;
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
            if self.inside_frame && self.rest.is_empty() {
                return Err(damaged(Compression::Zstd, "ends inside a frame"));
            }
            if self.inside_frame && status.bytes_read == 0 {
                return Err(damaged(Compression::Zstd, "makes no progress"));
            }
        }
    }
}

pub(super) fn compress(
    input: &[u8],
    level: Option<i32>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    let level = level.unwrap_or(::zstd::DEFAULT_COMPRESSION_LEVEL);
    let start = out.len();
    out.resize(start + ::zstd::zstd_safe::compress_bound(input.len()), 0);
    let target = out.get_mut(start..).unwrap_or_default();
    let count = ::zstd::bulk::compress_to_buffer(input, target, level)?;
    out.truncate(start + count);
    Ok(())
}
