use highwater_types::WallMs;

use super::rules::TimestampRule;
use super::{Validated, ValidationRules};
use crate::batch::{
    BATCH_HEADER_BYTES, Batch, BatchError, BatchHeader, RecordErrorKind, RecordErrors,
    TimestampType,
};
use crate::compression::{Compression, Decompressor};
use crate::source::{self, RecordSource, StreamSource};

/// Batches that decompress to more are validated in a job, so that no step takes long.
pub const INLINE_BYTES_MAX: u64 = 1024 * 1024;

/// Validates produced batches; keeps the buffers of its decompressor from one to the next.
#[derive(Debug, Default)]
pub struct Validator {
    decompressor: Decompressor,
}

/// [`Validator::validate`] with buffers of its own.
///
/// # Errors
/// As there.
pub fn validate(bytes: &[u8], rules: &ValidationRules) -> Result<Validated, BatchError> {
    Validator::new().validate(bytes, rules)
}

/// Whether `bytes` should be validated in a job by its looks alone: compressed and longer than
/// [`INLINE_BYTES_MAX`]. [`Validator::validate_inline`] finds those that only turn out to be big.
#[must_use]
pub fn needs_job(bytes: &[u8]) -> bool {
    bytes.len() as u64 > INLINE_BYTES_MAX
        && BatchHeader::parse(bytes).is_ok_and(|header| header.attributes.is_compressed())
}

impl Validator {
    /// A validator without buffers; they are made for the first compressed batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks everything about the records of one partition in a Produce request: exactly one
    /// batch, of magic 2, its length, checksum, header fields and each record. A compressed batch
    /// is streamed through a small window. No allocation per record.
    ///
    /// # Errors
    /// The first thing that is wrong, in Kafka's order. Rules that single records break are
    /// gathered in [`BatchError::Rules`].
    pub fn validate(
        &mut self,
        bytes: &[u8],
        rules: &ValidationRules,
    ) -> Result<Validated, BatchError> {
        let (batch, compression) = check_batch(bytes, rules)?;
        self.check_records(&batch, compression, rules, rules.decompressed_bytes_max)
    }

    /// [`Validator::validate`] in a step: `None` once a batch proves to decompress to more than
    /// [`INLINE_BYTES_MAX`]; the caller then calls `validate` in a job.
    ///
    /// # Errors
    /// As `validate`.
    pub fn validate_inline(
        &mut self,
        bytes: &[u8],
        rules: &ValidationRules,
    ) -> Result<Option<Validated>, BatchError> {
        if needs_job(bytes) {
            return Ok(None);
        }
        let (batch, compression) = check_batch(bytes, rules)?;
        let limit_bytes = rules.decompressed_bytes_max.min(INLINE_BYTES_MAX);
        match self.check_records(&batch, compression, rules, limit_bytes) {
            Err(BatchError::DecompressedTooLarge { .. })
                if limit_bytes < rules.decompressed_bytes_max =>
            {
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    fn check_records(
        &mut self,
        batch: &Batch<'_>,
        compression: Compression,
        rules: &ValidationRules,
        limit_bytes: u64,
    ) -> Result<Validated, BatchError> {
        let header = batch.header();
        let body = batch.body();
        let (seen, records_bytes) = if compression == Compression::None {
            let mut source = body;
            (walk_records(&mut source, header, rules)?, body.len() as u64)
        } else {
            let stream = self.decompressor.open(compression, body, limit_bytes)?;
            let mut source = StreamSource::new(stream);
            let seen = walk_records(&mut source, header, rules)?;
            (seen, source.produced_bytes())
        };
        Ok(Validated {
            header: *header,
            max_timestamp: seen.max_timestamp,
            max_timestamp_offset_delta: seen.max_timestamp_index,
            records_bytes,
            needs_recompression: rules
                .compression
                .is_some_and(|target| target != compression),
        })
    }
}

/// All checks before the first record, in the order in which Kafka makes them.
fn check_batch<'a>(
    bytes: &'a [u8],
    rules: &ValidationRules,
) -> Result<(Batch<'a>, Compression), BatchError> {
    if bytes.is_empty() {
        return Err(BatchError::NoBatch);
    }
    let batch = Batch::parse(bytes)?;
    let header = batch.header();
    let compression = header.attributes.compression()?;
    if compression == Compression::Zstd && !rules.zstd_allowed {
        return Err(BatchError::ZstdNotAllowed);
    }
    if bytes.len() > batch.size_bytes() {
        let extra_bytes = bytes.len() - batch.size_bytes();
        return Err(BatchError::MoreThanOneBatch { extra_bytes });
    }
    let base_offset = header.base_offset;
    if base_offset.raw() != 0 {
        return Err(BatchError::BaseOffset { base_offset });
    }
    if bytes.len() > rules.max_message_bytes {
        let (size_bytes, max_bytes) = (bytes.len(), rules.max_message_bytes);
        return Err(BatchError::TooLarge {
            size_bytes,
            max_bytes,
        });
    }
    batch.check_crc()?;
    check_header(header)?;
    assert_eq!(batch.size_bytes(), batch.body().len() + BATCH_HEADER_BYTES);
    Ok((batch, compression))
}

fn check_header(header: &BatchHeader) -> Result<(), BatchError> {
    let BatchHeader {
        record_count,
        last_offset_delta,
        ..
    } = *header;
    let counts_fit =
        record_count > 0 && i64::from(last_offset_delta) + 1 == i64::from(record_count);
    if !counts_fit {
        return Err(BatchError::RecordCount {
            record_count,
            last_offset_delta,
        });
    }
    if header.attributes.is_control() {
        return Err(BatchError::ControlBatch);
    }
    let producer_id = header.producer_id;
    if !producer_id.is_some() {
        return if header.attributes.is_transactional() {
            Err(BatchError::TransactionalWithoutProducer)
        } else {
            Ok(())
        };
    }
    if header.base_sequence < 0 {
        let base_sequence = header.base_sequence;
        return Err(BatchError::Sequence {
            producer_id,
            base_sequence,
        });
    }
    if header.producer_epoch.raw() < 0 {
        let producer_epoch = header.producer_epoch;
        return Err(BatchError::ProducerEpoch {
            producer_id,
            producer_epoch,
        });
    }
    Ok(())
}

struct Seen {
    max_timestamp: WallMs,
    max_timestamp_index: i32,
}

fn walk_records(
    source: &mut impl RecordSource,
    header: &BatchHeader,
    rules: &ValidationRules,
) -> Result<Seen, BatchError> {
    let rule = TimestampRule::new(rules);
    let batch_type = header.attributes.timestamp_type();
    let mut seen = Seen {
        max_timestamp: WallMs::NONE,
        max_timestamp_index: 0,
    };
    let mut errors = RecordErrors::default();
    for index in 0..header.record_count {
        let record = source.take_record().map_err(|fault| fault.at(index))?;
        let created = source::timestamp(header, record.timestamp_delta);
        let created = created.ok_or(BatchError::Record {
            index,
            what: source::OVERFLOW,
        })?;
        let timestamp = match batch_type {
            TimestampType::CreateTime => created,
            TimestampType::LogAppendTime => header.max_timestamp,
        };
        if timestamp > seen.max_timestamp {
            seen = Seen {
                max_timestamp: timestamp,
                max_timestamp_index: index,
            };
        }
        if rules.compacted && !record.has_key {
            errors.push(index, RecordErrorKind::NoKey);
        } else if let Some(kind) = rule.judge(timestamp, batch_type) {
            errors.push(index, kind);
        } else if record.offset_delta != index {
            let (expected, found) = (index, record.offset_delta);
            errors.push(index, RecordErrorKind::OffsetDelta { expected, found });
        }
    }
    if !source.is_at_end()? {
        return Err(BatchError::BytesAfterRecords {
            record_count: header.record_count,
        });
    }
    if errors.count > 0 {
        return Err(BatchError::Rules(errors));
    }
    Ok(seen)
}
