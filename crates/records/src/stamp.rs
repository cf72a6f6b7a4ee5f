use highwater_types::{LeaderEpoch, Offset, WallMs};

use crate::batch::{BATCH_HEADER_BYTES, TimestampType};
use crate::validate::Validated;

/// The header with which a leader appends `batch`; the bytes behind it stay as they are.
///
/// Base offset and leader epoch are outside the checksum. With `log_append_time` the batch gets
/// that time and the bit for it; without, the bit is cleared and the maximum timestamp becomes what
/// the records really have. Only where one of these changes is the checksum made anew, which reads
/// the batch a second time.
///
/// # Panics
/// When `validated` is not of `batch`.
#[must_use]
pub fn stamp(
    batch: &[u8],
    validated: &Validated,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    log_append_time: Option<WallMs>,
) -> [u8; BATCH_HEADER_BYTES] {
    let mut header = validated.header;
    assert_eq!(
        header.size_bytes(),
        batch.len(),
        "the batch is the one that was validated"
    );
    header.base_offset = base_offset;
    header.leader_epoch = leader_epoch;
    let (timestamp_type, max_timestamp) = match log_append_time {
        Some(now) => (TimestampType::LogAppendTime, now),
        None => (TimestampType::CreateTime, validated.max_timestamp),
    };
    header.attributes = header.attributes.with_timestamp_type(timestamp_type);
    header.max_timestamp = max_timestamp;
    let unchanged = header.attributes == validated.header.attributes
        && header.max_timestamp == validated.header.max_timestamp;
    if unchanged {
        return header.encode();
    }
    let (_, records) = batch
        .split_at_checked(BATCH_HEADER_BYTES)
        .expect("a batch has a header");
    header.with_crc_over(records).encode()
}
