use super::stream::{DecompressError, WINDOW_BYTES, damaged};
use super::{CompressError, Compression};

/// The header of snappy-java's framing: magic, version 1, lowest compatible version 1.
const XERIAL_HEADER: [u8; 16] = [
    0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1,
];
const XERIAL_MAGIC_BYTES: usize = 8;
/// What one framed block holds before compression, as in snappy-java.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;
/// No snappy block grows more than this: a copy of 64 bytes takes 3 (or 2 for short offsets, with
/// 11 bytes at most).
const GROWTH_MAX: u64 = 32;

/// Snappy as Java writes it (a header, then blocks with their length in front) or, as librdkafka
/// and Go clients write it, one raw block.
pub(super) enum Stream<'a> {
    Xerial(&'a [u8]),
    Raw(Option<&'a [u8]>),
}

impl<'a> Stream<'a> {
    pub(super) fn new(input: &'a [u8]) -> Result<Self, DecompressError> {
        let is_xerial = input.starts_with(XERIAL_HEADER.get(..XERIAL_MAGIC_BYTES).unwrap_or(&[]));
        if !is_xerial {
            return Ok(Self::Raw(Some(input)));
        }
        match input.split_at_checked(XERIAL_HEADER.len()) {
            Some((_, blocks)) => Ok(Self::Xerial(blocks)),
            None => Err(damaged(Compression::Snappy, "ends inside its header")),
        }
    }

    pub(super) fn fill(
        &mut self,
        window: &mut Vec<u8>,
        allowed: u64,
        limit_bytes: u64,
    ) -> Result<usize, DecompressError> {
        match self {
            Self::Raw(block) => match block.take() {
                Some(block) => inflate(block, window, allowed, limit_bytes),
                None => Ok(0),
            },
            Self::Xerial(rest) => {
                while let Some(block) = next_block(rest)? {
                    let count = inflate(block, window, allowed, limit_bytes)?;
                    if count > 0 {
                        return Ok(count);
                    }
                }
                Ok(0)
            }
        }
    }
}

/// Takes one length-prefixed block off `rest`; `None` at the end. Skips a header that stands
/// between blocks, which concatenated streams have.
fn next_block<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, DecompressError> {
    if rest.is_empty() {
        return Ok(None);
    }
    if let Some(after) = rest.strip_prefix(&XERIAL_HEADER) {
        *rest = after;
        return next_block(rest);
    }
    let Some((length, tail)) = rest.split_first_chunk::<4>() else {
        return Err(damaged(Compression::Snappy, "ends inside a block length"));
    };
    let length = i32::from_be_bytes(*length);
    let block = usize::try_from(length)
        .ok()
        .and_then(|length| tail.split_at_checked(length));
    let Some((block, tail)) = block else {
        let detail = format!("block of {length} bytes where {} are left", tail.len());
        return Err(damaged(Compression::Snappy, detail));
    };
    *rest = tail;
    Ok(Some(block))
}

fn inflate(
    block: &[u8],
    window: &mut Vec<u8>,
    allowed: u64,
    limit_bytes: u64,
) -> Result<usize, DecompressError> {
    let bad = |why: snap::Error| damaged(Compression::Snappy, why);
    let claimed = snap::raw::decompress_len(block).map_err(bad)?;
    if claimed as u64 > allowed {
        return Err(DecompressError::TooLarge { limit_bytes });
    }
    if claimed as u64 > (block.len() as u64).saturating_mul(GROWTH_MAX) {
        return Err(damaged(
            Compression::Snappy,
            "claims more than its bytes can hold",
        ));
    }
    if window.len() < claimed {
        window.resize(claimed.max(WINDOW_BYTES), 0);
    }
    if block.is_empty() {
        return Ok(0);
    }
    snap::raw::Decoder::new()
        .decompress(block, window)
        .map_err(bad)
}

pub(super) fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
    let mut encoder = snap::raw::Encoder::new();
    out.extend_from_slice(&XERIAL_HEADER);
    for block in input.chunks(XERIAL_BLOCK_BYTES) {
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let body_at = out.len();
        out.resize(body_at + snap::raw::max_compress_len(block.len()), 0);
        let body = out.get_mut(body_at..).unwrap_or_default();
        let count = encoder
            .compress(block, body)
            .map_err(|why| CompressError(why.to_string()))?;
        out.truncate(body_at + count);
        let length = u32::try_from(count).expect("a block of 32 KiB compresses to less than 4 GiB");
        if let Some(target) = out.get_mut(length_at..body_at) {
            target.copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}
