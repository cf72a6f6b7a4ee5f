use highwater_types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, WallMs};

use super::{
    Attributes, BATCH_HEADER_BYTES, BatchHeader, ControlType, EndTransactionMarker,
    LOG_OVERHEAD_BYTES, MAGIC, TimestampType,
};
use crate::compression::{CompressError, Compression, Compressor};
use crate::varint::{put_varint, put_varlong, varint_bytes, varlong_bytes};

/// Key and value of a record header.
pub type RecordHeader<'a> = (&'a [u8], Option<&'a [u8]>);

/// Who wrote a batch, for deduplication and transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStamp {
    /// The producer.
    pub id: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Sequence of the batch's first record, or -1.
    pub base_sequence: i32,
}

impl ProducerStamp {
    /// No producer at all.
    pub const NONE: Self = Self {
        id: ProducerId::NONE,
        epoch: ProducerEpoch::NONE,
        base_sequence: -1,
    };
}

/// Everything about a batch but its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// Offset of the first record; 0 from a client.
    pub base_offset: Offset,
    /// Epoch of the leader that appends the batch; -1 from a client.
    pub leader_epoch: LeaderEpoch,
    /// Codec and level.
    pub compressor: Compressor,
    /// For `LogAppendTime`: the append time, which becomes the maximum timestamp.
    pub log_append_time: Option<WallMs>,
    /// Who wrote it.
    pub producer: ProducerStamp,
    /// Part of a transaction.
    pub transactional: bool,
    /// Of control records.
    pub control: bool,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            base_offset: Offset::ZERO,
            leader_epoch: LeaderEpoch::NONE,
            compressor: Compressor::new(Compression::None),
            log_append_time: None,
            producer: ProducerStamp::NONE,
            transactional: false,
            control: false,
        }
    }
}

/// Why a batch could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A record or a batch may have 2^31-1 bytes, as its length field has.
    #[error("{size_bytes} bytes are more than a batch can hold")]
    TooLarge {
        /// Bytes that the record or the batch would have.
        size_bytes: usize,
    },
    /// The codec failed.
    #[error(transparent)]
    Compress(#[from] CompressError),
}

/// Builds record batches. Keeps its buffers, so that one builder makes many batches.
///
/// Call `append*` in order, then [`BatchBuilder::finish_into`], which leaves the builder empty.
/// The first record's timestamp becomes the base timestamp.
#[derive(Clone, Debug, Default)]
pub struct BatchBuilder {
    /// Room for the header, then the records. Empty before the first record.
    buffer: Vec<u8>,
    record_count: i32,
    last_offset_delta: i32,
    base_timestamp: Option<WallMs>,
    max_timestamp: Option<WallMs>,
}

impl BatchBuilder {
    /// A builder without a record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder without a record that writes into `buffer`; what is in it is dropped.
    #[must_use]
    pub fn with_buffer(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self {
            buffer,
            ..Self::default()
        }
    }

    /// Records so far.
    #[must_use]
    pub const fn record_count(&self) -> i32 {
        self.record_count
    }

    /// Whether there is no record yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// Bytes of the batch so far, header included, before compression.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.buffer.len().max(BATCH_HEADER_BYTES)
    }

    /// Bytes that a record adds to the batch at the most, before compression.
    #[must_use]
    pub fn record_bytes_max(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> usize {
        body_bytes(i64::MIN, i32::MAX, key, value, headers) + 5
    }

    /// Adds a record at the next offset.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`]; the batch stays as it was.
    pub fn append(
        &mut self,
        timestamp: WallMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Result<(), BuildError> {
        let delta = if self.is_empty() {
            0
        } else {
            self.last_offset_delta.saturating_add(1)
        };
        self.append_at(delta, timestamp, key, value, headers)
    }

    /// Adds a record at `offset_delta` from the base offset: a batch that compaction thinned.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`]; the batch stays as it was.
    ///
    /// # Panics
    /// When offset deltas do not rise.
    pub fn append_at(
        &mut self,
        offset_delta: i32,
        timestamp: WallMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Result<(), BuildError> {
        assert!(offset_delta >= 0, "offset delta {offset_delta} is negative");
        assert!(
            self.is_empty() || offset_delta > self.last_offset_delta,
            "offset delta {offset_delta} after {}",
            self.last_offset_delta
        );
        let base = self.base_timestamp.unwrap_or(timestamp);
        let timestamp_delta = timestamp.raw().wrapping_sub(base.raw());
        let body = body_bytes(timestamp_delta, offset_delta, key, value, headers);
        let size_bytes = self.size_bytes() + body + 5;
        let Some(length) = i32::try_from(body)
            .ok()
            .filter(|_| i32::try_from(size_bytes).is_ok())
        else {
            return Err(BuildError::TooLarge { size_bytes });
        };
        let out = &mut self.buffer;
        if out.is_empty() {
            out.resize(BATCH_HEADER_BYTES, 0);
        }
        put_varint(out, length);
        out.push(0);
        put_varlong(out, timestamp_delta);
        put_varint(out, offset_delta);
        put_nullable(out, key);
        put_nullable(out, value);
        put_varint(out, count_of(headers.len()));
        for &(key, value) in headers {
            put_nullable(out, Some(key));
            put_nullable(out, value);
        }
        self.record_count += 1;
        self.last_offset_delta = offset_delta;
        self.base_timestamp = Some(base);
        self.max_timestamp = self.max_timestamp.max(Some(timestamp));
        Ok(())
    }

    /// Adds a control record; the batch must then be finished with `control`.
    ///
    /// # Errors
    /// As [`BatchBuilder::append`].
    pub fn append_control(
        &mut self,
        timestamp: WallMs,
        control_type: ControlType,
        value: &[u8],
    ) -> Result<(), BuildError> {
        self.append(timestamp, Some(&control_type.key()), Some(value), &[])
    }

    /// A whole batch with one end-transaction marker, as the coordinator's request appends it.
    #[must_use]
    pub fn end_transaction(
        timestamp: WallMs,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        marker: EndTransactionMarker,
    ) -> Vec<u8> {
        let mut builder = Self::new();
        builder
            .append_control(timestamp, marker.control_type(), &marker.value())
            .expect("a marker is small");
        let producer = ProducerStamp {
            id: producer_id,
            epoch: producer_epoch,
            base_sequence: -1,
        };
        let options = BatchOptions {
            producer,
            transactional: true,
            control: true,
            ..Default::default()
        };
        builder
            .finish(&options)
            .expect("a marker is small and not compressed")
    }

    /// The finished batch in a buffer of its own.
    ///
    /// # Errors
    /// As [`BatchBuilder::finish_into`].
    pub fn finish(&mut self, options: &BatchOptions) -> Result<Vec<u8>, BuildError> {
        let mut out = Vec::with_capacity(self.size_bytes());
        self.finish_into(options, &mut out)?;
        Ok(out)
    }

    /// Appends the finished batch to `out` and leaves the builder empty. A batch without records
    /// is allowed: compaction leaves such.
    ///
    /// # Errors
    /// [`BuildError`]; then `out` is as it was and the builder too.
    pub fn finish_into(
        &mut self,
        options: &BatchOptions,
        out: &mut Vec<u8>,
    ) -> Result<BatchHeader, BuildError> {
        let start = out.len();
        out.extend_from_slice(&[0; BATCH_HEADER_BYTES]);
        if let Err(why) = options.compressor.compress(self.records(), out) {
            out.truncate(start);
            return Err(why.into());
        }
        let size_bytes = out.len() - start;
        let Ok(batch_length) = i32::try_from(size_bytes - LOG_OVERHEAD_BYTES) else {
            out.truncate(start);
            return Err(BuildError::TooLarge { size_bytes });
        };
        let header = self.header(options, batch_length);
        let (target, records) = out
            .get_mut(start..)
            .and_then(|batch| batch.split_first_chunk_mut::<BATCH_HEADER_BYTES>())
            .expect("room for the header was made above");
        let header = header.with_crc_over(records);
        *target = header.encode();
        self.clear();
        Ok(header)
    }

    /// The finished batch in the very buffer that the records were written to, without a copy; the
    /// builder is left empty and without a buffer.
    ///
    /// # Panics
    /// When `options` asks for compression, which needs a second buffer.
    ///
    /// # Errors
    /// As [`BatchBuilder::finish_into`]; then the builder is as it was.
    pub fn finish_in_place(&mut self, options: &BatchOptions) -> Result<Vec<u8>, BuildError> {
        assert_eq!(
            options.compressor.compression,
            Compression::None,
            "compression in place"
        );
        let size_bytes = self.size_bytes();
        let batch_length = i32::try_from(size_bytes - LOG_OVERHEAD_BYTES)
            .map_err(|_| BuildError::TooLarge { size_bytes })?;
        let header = self
            .header(options, batch_length)
            .with_crc_over(self.records());
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(size_bytes, 0);
        let (target, _) = buffer
            .split_first_chunk_mut::<BATCH_HEADER_BYTES>()
            .expect("a batch has room for its header");
        *target = header.encode();
        self.clear();
        Ok(buffer)
    }

    fn records(&self) -> &[u8] {
        self.buffer.get(BATCH_HEADER_BYTES..).unwrap_or_default()
    }

    /// The builder's buffer, to be used again; what is in it means nothing.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Drops all records and keeps the buffers.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.record_count = 0;
        self.last_offset_delta = 0;
        self.base_timestamp = None;
        self.max_timestamp = None;
    }

    fn header(&self, options: &BatchOptions, batch_length: i32) -> BatchHeader {
        let timestamp_type = match options.log_append_time {
            Some(_) => TimestampType::LogAppendTime,
            None => TimestampType::CreateTime,
        };
        let max_timestamp = options.log_append_time.or(self.max_timestamp);
        BatchHeader {
            base_offset: options.base_offset,
            batch_length,
            leader_epoch: options.leader_epoch,
            magic: MAGIC,
            crc: 0,
            attributes: Attributes::default()
                .with_compression(options.compressor.compression)
                .with_timestamp_type(timestamp_type)
                .with_transactional(options.transactional)
                .with_control(options.control),
            last_offset_delta: self.last_offset_delta,
            base_timestamp: self.base_timestamp.unwrap_or(WallMs::NONE),
            max_timestamp: max_timestamp.unwrap_or(WallMs::NONE),
            producer_id: options.producer.id,
            producer_epoch: options.producer.epoch,
            base_sequence: options.producer.base_sequence,
            record_count: self.record_count,
        }
    }
}

fn body_bytes(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[RecordHeader<'_>],
) -> usize {
    let headers_bytes: usize = headers
        .iter()
        .map(|&(key, value)| nullable_bytes(Some(key)) + nullable_bytes(value))
        .sum();
    1 + varlong_bytes(timestamp_delta)
        + varint_bytes(offset_delta)
        + nullable_bytes(key)
        + nullable_bytes(value)
        + varint_bytes(count_of(headers.len()))
        + headers_bytes
}

fn nullable_bytes(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint_bytes(count_of(bytes.len())) + bytes.len())
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, count_of(bytes.len()));
            out.extend_from_slice(bytes);
        }
    }
}

/// A length as the record holds it. One that does not fit is refused by the size of the record.
fn count_of(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
