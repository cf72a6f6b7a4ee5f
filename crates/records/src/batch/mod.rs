//! Record batches of format 2 ("magic 2"), read in place.

mod attributes;
mod batches;
mod builder;
mod control;
mod error;
mod header;
mod record;
mod view;

pub use self::attributes::{Attributes, TimestampType};
pub use self::batches::Batches;
pub use self::builder::{BatchBuilder, BatchOptions, BuildError, ProducerStamp, RecordHeader};
pub use self::control::{ControlRecord, ControlType, EndTransactionMarker};
pub use self::error::{BatchError, RecordError, RecordErrorKind, RecordErrors};
pub use self::header::{BATCH_HEADER_BYTES, BatchHeader, LOG_OVERHEAD_BYTES, MAGIC};
pub use self::record::{Headers, OpenBatch, Record, Records};
pub use self::view::{Batch, RecordTime};

pub(crate) use self::record::{RecordFault, measure_header};
