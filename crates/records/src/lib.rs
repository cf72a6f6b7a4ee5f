//! Record batch v2, its codecs, and the records that Kafka stores.
//!
//! [`Batch`] and [`Batches`] read batches in place, [`validate()`] is the one pass over a batch
//! that a client produced, [`stamp()`] gives the header with which a leader appends it, and
//! [`BatchBuilder`] makes batches. Nothing here does IO or keeps state between calls, but for the
//! buffers in [`Decompressor`] and the builder.

pub mod batch;
pub mod compression;
mod recompress;
mod source;
mod stamp;
pub mod stored;
pub mod validate;
pub mod varint;
pub mod wire;

pub use crate::batch::{
    Attributes, BATCH_HEADER_BYTES, Batch, BatchBuilder, BatchError, BatchHeader, BatchOptions,
    Batches, BuildError, ControlRecord, ControlType, EndTransactionMarker, Headers,
    LOG_OVERHEAD_BYTES, MAGIC, OpenBatch, ProducerStamp, Record, RecordError, RecordErrorKind,
    RecordErrors, RecordHeader, RecordTime, Records, TimestampType,
};
pub use crate::compression::{
    Compression, CompressionLevel, Compressor, DECOMPRESSED_BYTES_MAX, Decompressor,
};
pub use crate::recompress::recompress;
pub use crate::stamp::stamp;
pub use crate::validate::{
    INLINE_BYTES_MAX, Validated, ValidationRules, Validator, needs_job, validate,
};
