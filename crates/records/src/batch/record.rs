use std::borrow::Cow;

use highwater_types::{Offset, WallMs};

use super::header::sequence_after;
use super::{BatchError, BatchHeader, TimestampType};
use crate::compression::DecompressError;
use crate::source::{OVERFLOW, checked_header_count};
use crate::varint::{take_varint, take_varlong};

/// One record, in place.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its offset in the log.
    pub offset: Offset,
    /// Its timestamp; the batch's append time on a `LogAppendTime` batch.
    pub timestamp: WallMs,
    /// Its sequence, or -1 when the batch has none.
    pub sequence: i32,
    /// Null and empty are different.
    pub key: Option<&'a [u8]>,
    /// Null (a tombstone on compacted topics) and empty are different.
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

impl<'a> Record<'a> {
    /// The record's headers, in order; keys may repeat.
    #[must_use]
    pub const fn headers(&self) -> Headers<'a> {
        self.headers
    }
}

/// The headers of a record: key (UTF-8 by convention) and value. Already checked.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    rest: &'a [u8],
    count: u32,
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let header = measure_header(&mut self.rest);
        Some(header.expect("headers were checked when the record was read"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count as usize, Some(self.count as usize))
    }
}

impl ExactSizeIterator for Headers<'_> {}

/// A batch whose records are ready to be read: in place, or decompressed once.
#[derive(Clone, Debug)]
pub struct OpenBatch<'a> {
    header: BatchHeader,
    records: Cow<'a, [u8]>,
}

impl<'a> OpenBatch<'a> {
    pub(crate) const fn new(header: BatchHeader, records: Cow<'a, [u8]>) -> Self {
        Self { header, records }
    }

    /// The batch's header.
    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Bytes of the records, not compressed.
    #[must_use]
    pub fn records_bytes(&self) -> usize {
        self.records.len()
    }

    /// The records, in order. Ends after an error.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records::over(self.header, &self.records)
    }

    /// The bytes of the records, not compressed, for [`Records::over`].
    #[must_use]
    pub fn into_records_bytes(self) -> Vec<u8> {
        self.records.into_owned()
    }
}

/// Iterator over the records of a batch, without an allocation per record. Yields as many as the
/// header counts, or ends with an error where the bytes are not records.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: BatchHeader,
    rest: &'a [u8],
    index: i32,
    failed: bool,
}

impl<'a> Records<'a> {
    /// The records in `records`, the decompressed bytes behind `header`.
    #[must_use]
    pub const fn over(header: BatchHeader, records: &'a [u8]) -> Self {
        Self {
            header,
            rest: records,
            index: 0,
            failed: false,
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let index = self.index;
        if index >= self.header.record_count {
            self.failed = true;
            let record_count = self.header.record_count;
            let left = !self.rest.is_empty();
            return left.then_some(Err(BatchError::BytesAfterRecords { record_count }));
        }
        self.index += 1;
        let read = read_record(&self.header, &mut self.rest);
        self.failed = read.is_err();
        Some(read.map_err(|what| BatchError::Record { index, what }))
    }
}

fn read_record<'a>(header: &BatchHeader, rest: &mut &'a [u8]) -> Result<Record<'a>, &'static str> {
    let length = take_varint(rest).ok_or("bad varint")?;
    let length = usize::try_from(length).map_err(|_| "bad length")?;
    let (record, tail) = rest
        .split_at_checked(length)
        .ok_or("goes past the end of the records")?;
    *rest = tail;
    let (_attributes, mut fields) = record.split_first().ok_or("bad length")?;
    let timestamp_delta = take_varlong(&mut fields).ok_or("bad varint")?;
    let offset_delta = take_varint(&mut fields).ok_or("bad varint")?;
    let key = take_nullable(&mut fields)?;
    let value = take_nullable(&mut fields)?;
    let count = take_varint(&mut fields).ok_or("bad varint")?;
    let count = checked_header_count(count, fields.len() as u64)?;
    let headers = Headers {
        rest: fields,
        count,
    };
    for _ in 0..count {
        measure_header(&mut fields)?;
    }
    if !fields.is_empty() {
        return Err("is longer than its fields");
    }
    let timestamp = match header.attributes.timestamp_type() {
        TimestampType::LogAppendTime => header.max_timestamp,
        TimestampType::CreateTime => {
            crate::source::timestamp(header, timestamp_delta).ok_or(OVERFLOW)?
        }
    };
    Ok(Record {
        offset: header.base_offset.plus(i64::from(offset_delta)),
        timestamp,
        sequence: match header.base_sequence {
            base if base < 0 => -1,
            base => sequence_after(base, offset_delta),
        },
        key,
        value,
        headers,
    })
}

fn take_nullable<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, &'static str> {
    let length = take_varint(rest).ok_or("bad varint")?;
    match usize::try_from(length) {
        Ok(length) => {
            let (taken, tail) = rest.split_at_checked(length).ok_or("bad length")?;
            *rest = tail;
            Ok(Some(taken))
        }
        Err(_) if length == -1 => Ok(None),
        Err(_) => Err("bad length"),
    }
}

/// Takes one header off `rest`.
pub(crate) fn measure_header<'a>(
    rest: &mut &'a [u8],
) -> Result<(&'a [u8], Option<&'a [u8]>), &'static str> {
    let key = take_nullable(rest)?.ok_or("header without a key")?;
    Ok((key, take_nullable(rest)?))
}

/// Why a record could not be read.
#[derive(Debug)]
pub(crate) enum RecordFault {
    What(&'static str),
    Stream(DecompressError),
}

impl RecordFault {
    pub(crate) fn at(self, index: i32) -> BatchError {
        match self {
            Self::What(what) => BatchError::Record { index, what },
            Self::Stream(why) => why.into(),
        }
    }
}

impl From<DecompressError> for RecordFault {
    fn from(why: DecompressError) -> Self {
        Self::Stream(why)
    }
}
