use highwater_types::WallMs;

use crate::batch::{Batch, BatchHeader};

/// What is known of a batch once it passed: all that a log needs to append it without looking
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validated {
    /// The header as it came, base offset and leader epoch not yet stamped.
    pub header: BatchHeader,
    /// The largest timestamp that a record really has, or the one of the header when it was
    /// trusted. -1 when no record has a time.
    pub max_timestamp: WallMs,
    /// Offset delta of the first record with that timestamp.
    pub max_timestamp_offset_delta: i32,
    /// Bytes of the records, not compressed; 0 when the batch was trusted.
    pub records_bytes: u64,
    /// Whether `compression.type` asks for another codec: call
    /// [`recompress`](fn@crate::recompress) before the append.
    pub needs_recompression: bool,
}

impl Validated {
    /// For a batch of our own making or one that a leader already validated: believes the header.
    #[must_use]
    pub const fn trusted(batch: &Batch<'_>) -> Self {
        let header = *batch.header();
        Self {
            max_timestamp: header.max_timestamp,
            max_timestamp_offset_delta: header.last_offset_delta,
            header,
            records_bytes: 0,
            needs_recompression: false,
        }
    }
}
