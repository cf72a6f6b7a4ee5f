//! Walks over records without keeping them: from a slice, or from a stream of decompressed chunks.

use highwater_types::WallMs;

use crate::batch::{BatchHeader, RecordFault, measure_header};
use crate::compression::{ChunkStream, DecompressError};
use crate::varint::{take_varint, take_varlong, unzigzag32, unzigzag64};

pub(crate) const OVERFLOW: &str = "timestamp delta overflows";
const CUT: &str = "goes past the end of the records";
const BAD_LENGTH: &str = "bad length";
const BAD_VARINT: &str = "bad varint";
const BAD_HEADER_COUNT: &str = "bad header count";
const NULL_HEADER_KEY: &str = "header without a key";
const BYTES_LEFT: &str = "is longer than its fields";

/// What validation and time look-up need to know of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordShape {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) has_key: bool,
}

/// Gives one record after the other, checking the structure of each.
pub(crate) trait RecordSource {
    fn take_record(&mut self) -> Result<RecordShape, RecordFault>;
    fn is_at_end(&mut self) -> Result<bool, DecompressError>;
}

/// The timestamp that `delta` means in a batch; `None` when it overflows.
pub(crate) fn timestamp(header: &BatchHeader, delta: i64) -> Option<WallMs> {
    header
        .base_timestamp
        .raw()
        .checked_add(delta)
        .map(WallMs::new)
}

impl RecordSource for &[u8] {
    #[inline]
    fn take_record(&mut self) -> Result<RecordShape, RecordFault> {
        let mut rest = *self;
        let length = take_varint(&mut rest).ok_or(RecordFault::What(BAD_VARINT))?;
        let length = usize::try_from(length).map_err(|_| RecordFault::What(BAD_LENGTH))?;
        let (record, rest) = rest
            .split_at_checked(length)
            .ok_or(RecordFault::What(CUT))?;
        *self = rest;
        measure_record(record).map_err(RecordFault::What)
    }

    #[inline]
    fn is_at_end(&mut self) -> Result<bool, DecompressError> {
        Ok(self.is_empty())
    }
}

/// Checks all fields of `record`, its bytes without the length in front.
#[inline]
fn measure_record(record: &[u8]) -> Result<RecordShape, &'static str> {
    let (_attributes, mut rest) = record.split_first().ok_or(BAD_LENGTH)?;
    let timestamp_delta = take_varlong(&mut rest).ok_or(BAD_VARINT)?;
    let offset_delta = take_varint(&mut rest).ok_or(BAD_VARINT)?;
    let has_key = skip_nullable(&mut rest)?;
    skip_nullable(&mut rest)?;
    let header_count = take_varint(&mut rest).ok_or(BAD_VARINT)?;
    if header_count != 0 {
        skip_headers(&mut rest, header_count)?;
    }
    if rest.is_empty() {
        Ok(RecordShape {
            timestamp_delta,
            offset_delta,
            has_key,
        })
    } else {
        Err(BYTES_LEFT)
    }
}

fn skip_headers(rest: &mut &[u8], count: i32) -> Result<(), &'static str> {
    let count = checked_header_count(count, rest.len() as u64)?;
    for _ in 0..count {
        measure_header(rest)?;
    }
    Ok(())
}

/// A header takes at least two bytes, so a count is known to be wrong before the first is read.
pub(crate) fn checked_header_count(count: i32, left_bytes: u64) -> Result<u32, &'static str> {
    match u32::try_from(count) {
        Ok(count) if u64::from(count) <= left_bytes / 2 => Ok(count),
        _ => Err(BAD_HEADER_COUNT),
    }
}

/// Skips a length (-1: null) and as many bytes; whether it is not null.
#[inline]
fn skip_nullable(rest: &mut &[u8]) -> Result<bool, &'static str> {
    let length = take_varint(rest).ok_or(BAD_VARINT)?;
    match usize::try_from(length) {
        Ok(length) => {
            let (_, tail) = rest.split_at_checked(length).ok_or(BAD_LENGTH)?;
            *rest = tail;
            Ok(true)
        }
        Err(_) if length == -1 => Ok(false),
        Err(_) => Err(BAD_LENGTH),
    }
}

/// Records in a stream of chunks. A record that lies in one chunk is looked at in place; one that
/// does not is walked over byte by byte and skip by skip, so that nothing is ever put together.
pub(crate) struct StreamSource<'a> {
    stream: ChunkStream<'a>,
    /// Bytes of the current chunk that are used up.
    used: usize,
}

impl<'a> StreamSource<'a> {
    pub(crate) const fn new(stream: ChunkStream<'a>) -> Self {
        Self { stream, used: 0 }
    }

    pub(crate) const fn produced_bytes(&self) -> u64 {
        self.stream.produced_bytes()
    }

    fn rest(&self) -> &[u8] {
        self.stream.chunk().get(self.used..).unwrap_or_default()
    }

    /// Makes sure that there is a byte; `false` at the end.
    fn refill(&mut self) -> Result<bool, DecompressError> {
        if !self.rest().is_empty() {
            return Ok(true);
        }
        self.used = 0;
        Ok(!self.stream.next_chunk()?.is_empty())
    }

    fn byte(&mut self) -> Result<u8, RecordFault> {
        self.refill()?;
        let byte = *self.rest().first().ok_or(RecordFault::What(CUT))?;
        self.used += 1;
        Ok(byte)
    }

    fn skip(&mut self, mut count: u64) -> Result<(), RecordFault> {
        while count > 0 {
            if !self.refill()? {
                return Err(RecordFault::What(CUT));
            }
            let step = usize::try_from(count)
                .unwrap_or(usize::MAX)
                .min(self.rest().len());
            self.used += step;
            count -= step as u64;
        }
        Ok(())
    }

    fn raw_varint(&mut self, left: &mut u64, bytes_max: u32) -> Result<u64, RecordFault> {
        let mut value = 0_u64;
        for index in 0..bytes_max {
            *left = left.checked_sub(1).ok_or(RecordFault::What(BAD_LENGTH))?;
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(7 * index).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(RecordFault::What(BAD_VARINT))
    }

    fn varint(&mut self, left: &mut u64) -> Result<i32, RecordFault> {
        let raw = self.raw_varint(left, 5)?;
        // A fifth byte may hold bits beyond the 32nd; they mean nothing, as in `take_varint`.
        let raw = u32::try_from(raw & u64::from(u32::MAX)).expect("32 bits remain");
        Ok(unzigzag32(raw))
    }

    fn nullable(&mut self, left: &mut u64) -> Result<bool, RecordFault> {
        let length = self.varint(left)?;
        match u64::try_from(length) {
            Ok(length) => {
                *left = left
                    .checked_sub(length)
                    .ok_or(RecordFault::What(BAD_LENGTH))?;
                self.skip(length)?;
                Ok(true)
            }
            Err(_) if length == -1 => Ok(false),
            Err(_) => Err(RecordFault::What(BAD_LENGTH)),
        }
    }

    /// The same checks as [`measure_record`], over chunk boundaries.
    fn walk_record(&mut self) -> Result<RecordShape, RecordFault> {
        let length = self.varint(&mut 5)?;
        let mut left = u64::try_from(length).map_err(|_| RecordFault::What(BAD_LENGTH))?;
        left = left.checked_sub(1).ok_or(RecordFault::What(BAD_LENGTH))?;
        self.skip(1)?;
        let timestamp_delta = unzigzag64(self.raw_varint(&mut left, 10)?);
        let offset_delta = self.varint(&mut left)?;
        let has_key = self.nullable(&mut left)?;
        self.nullable(&mut left)?;
        let count = self.varint(&mut left)?;
        let count = checked_header_count(count, left).map_err(RecordFault::What)?;
        for _ in 0..count {
            if !self.nullable(&mut left)? {
                return Err(RecordFault::What(NULL_HEADER_KEY));
            }
            self.nullable(&mut left)?;
        }
        if left == 0 {
            Ok(RecordShape {
                timestamp_delta,
                offset_delta,
                has_key,
            })
        } else {
            Err(RecordFault::What(BYTES_LEFT))
        }
    }
}

impl RecordSource for StreamSource<'_> {
    fn take_record(&mut self) -> Result<RecordShape, RecordFault> {
        let chunk = self.rest();
        let mut rest = chunk;
        if let Some(length) = take_varint(&mut rest)
            && let Ok(length) = usize::try_from(length)
            && let Some((record, rest)) = rest.split_at_checked(length)
        {
            let shape = measure_record(record).map_err(RecordFault::What)?;
            self.used += chunk.len() - rest.len();
            return Ok(shape);
        }
        self.walk_record()
    }

    fn is_at_end(&mut self) -> Result<bool, DecompressError> {
        Ok(!self.refill()?)
    }
}
