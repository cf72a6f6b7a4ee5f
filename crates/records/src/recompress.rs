use crate::batch::{
    Batch, BatchBuilder, BatchError, BatchOptions, BuildError, ProducerStamp, RecordHeader,
};
use crate::compression::{Compressor, Decompressor};
use crate::validate::{Validated, ValidationRules};

/// Writes a validated batch of a client anew with the topic's codec (`compression.type`), keeping
/// timestamps, producer, sequence and the transactional bit. Blocking work for a big batch.
///
/// # Errors
/// What [`Batch::open`] gives, and [`BatchError::TooLarge`] when the batch grew beyond
/// `max.message.bytes`.
pub fn recompress(
    bytes: &[u8],
    compressor: Compressor,
    rules: &ValidationRules,
) -> Result<(Vec<u8>, Validated), BatchError> {
    let batch = Batch::parse(bytes)?;
    let header = batch.header();
    let open = batch.open_with(&mut Decompressor::new(), rules.decompressed_bytes_max)?;
    let mut builder = BatchBuilder::new();
    let mut headers: Vec<RecordHeader<'_>> = Vec::new();
    for record in open.records() {
        let record = record?;
        headers.clear();
        headers.extend(record.headers());
        builder
            .append(record.timestamp, record.key, record.value, &headers)
            .map_err(|why| too_large(&why, rules))?;
    }
    let options = BatchOptions {
        compressor,
        producer: ProducerStamp {
            id: header.producer_id,
            epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
        },
        transactional: header.attributes.is_transactional(),
        ..BatchOptions::default()
    };
    let rebuilt = builder
        .finish(&options)
        .map_err(|why| too_large(&why, rules))?;
    if rebuilt.len() > rules.max_message_bytes {
        let (size_bytes, max_bytes) = (rebuilt.len(), rules.max_message_bytes);
        return Err(BatchError::TooLarge {
            size_bytes,
            max_bytes,
        });
    }
    let validated = Validated::trusted(&Batch::parse(&rebuilt)?);
    Ok((rebuilt, validated))
}

fn too_large(why: &BuildError, rules: &ValidationRules) -> BatchError {
    let size_bytes = match why {
        BuildError::TooLarge { size_bytes } => *size_bytes,
        BuildError::Compress(_) => usize::MAX,
    };
    BatchError::TooLarge {
        size_bytes,
        max_bytes: rules.max_message_bytes,
    }
}
