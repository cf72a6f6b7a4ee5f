use std::borrow::Cow;
use std::ops::ControlFlow;

use highwater_types::{Offset, WallMs};

use super::header::CRC_COVERS_FROM;
use super::{BATCH_HEADER_BYTES, BatchError, BatchHeader, ControlType, OpenBatch, TimestampType};
use crate::compression::{Compression, Decompressor};
use crate::source::{self, RecordSource as _, StreamSource};

/// One whole batch, in place.
///
/// Invariant: `bytes` is exactly as long as the header says.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

/// Where a record stands in offset and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTime {
    /// The record's offset.
    pub offset: Offset,
    /// Its timestamp, by the batch's timestamp type.
    pub timestamp: WallMs,
}

impl<'a> Batch<'a> {
    /// The batch at the front of `bytes`, which may go on behind it.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`], and [`BatchError::Cut`] when the batch is not whole.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        match bytes.get(..header.size_bytes()) {
            Some(bytes) => Ok(Self { header, bytes }),
            None => Err(BatchError::Cut {
                have_bytes: bytes.len(),
                need_bytes: header.size_bytes(),
            }),
        }
    }

    pub(crate) fn from_parts(header: BatchHeader, bytes: &'a [u8]) -> Self {
        assert_eq!(
            header.size_bytes(),
            bytes.len(),
            "a batch view is exactly its batch"
        );
        Self { header, bytes }
    }

    /// The decoded header.
    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of the batch, header included.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes after the header, compressed or not.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default()
    }

    /// The CRC-32C that the bytes have.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        crc32c::crc32c(self.bytes.get(CRC_COVERS_FROM..).unwrap_or_default())
    }

    /// Compares the checksum with the bytes.
    ///
    /// # Errors
    /// [`BatchError::Crc`].
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let computed = self.computed_crc();
        if computed == self.header.crc {
            Ok(())
        } else {
            Err(BatchError::Crc {
                stored: self.header.crc,
                computed,
            })
        }
    }

    /// Opens the records for reading; decompresses at most `limit_bytes`. Does not look at the
    /// checksum.
    ///
    /// # Errors
    /// [`BatchError::UnknownCodec`], [`BatchError::Decompress`],
    /// [`BatchError::DecompressedTooLarge`].
    pub fn open(&self, limit_bytes: u64) -> Result<OpenBatch<'a>, BatchError> {
        self.open_with(&mut Decompressor::new(), limit_bytes)
    }

    /// [`Batch::open`] with buffers that the caller keeps.
    ///
    /// # Errors
    /// As [`Batch::open`].
    pub fn open_with(
        &self,
        decompressor: &mut Decompressor,
        limit_bytes: u64,
    ) -> Result<OpenBatch<'a>, BatchError> {
        let compression = self.header.attributes.compression()?;
        let records = match compression {
            Compression::None => Cow::Borrowed(self.body()),
            _ if self.header.record_count <= 0 => Cow::Borrowed(&[][..]),
            _ => Cow::Owned(decompressor.decompress(compression, self.body(), limit_bytes)?),
        };
        Ok(OpenBatch::new(self.header, records))
    }

    /// Visits offset and timestamp of each record until `visit` breaks; streams compressed
    /// batches and never holds one whole.
    ///
    /// # Errors
    /// As [`Batch::open`], and [`BatchError::Record`].
    pub fn visit_times<B>(
        &self,
        limit_bytes: u64,
        mut visit: impl FnMut(RecordTime) -> ControlFlow<B>,
    ) -> Result<Option<B>, BatchError> {
        let mut decompressor = Decompressor::new();
        let compression = self.header.attributes.compression()?;
        let stream = decompressor.open(compression, self.body(), limit_bytes)?;
        let mut source = StreamSource::new(stream);
        let is_append_time =
            self.header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        for index in 0..self.header.record_count {
            let shape = source.take_record().map_err(|fault| fault.at(index))?;
            let created = source::timestamp(&self.header, shape.timestamp_delta);
            let created = created.ok_or(BatchError::Record {
                index,
                what: source::OVERFLOW,
            })?;
            let time = RecordTime {
                offset: self.header.base_offset.plus(i64::from(shape.offset_delta)),
                timestamp: if is_append_time {
                    self.header.max_timestamp
                } else {
                    created
                },
            };
            if let ControlFlow::Break(found) = visit(time) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// What the first record of a control batch is; `None` for a batch of data and for one that
    /// compaction emptied.
    ///
    /// # Errors
    /// As [`Batch::open`], and [`BatchError::Record`] for a key that is none.
    pub fn control_type(&self) -> Result<Option<ControlType>, BatchError> {
        if !self.header.attributes.is_control() {
            return Ok(None);
        }
        let open = self.open(crate::compression::DECOMPRESSED_BYTES_MAX)?;
        match open.records().next() {
            None => Ok(None),
            Some(record) => ControlType::of_key(record?.key).map(Some),
        }
    }
}
