//! Damaged directories: what Kafka mends we mend, and where Kafka does worse we do better.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod damage;
mod kafka_files;
mod leader_epochs;
#[path = "../support/mod.rs"]
mod support;
mod unclean_stops;

use highwater_disk::MemDisk;
use highwater_log::{PartitionLog, ReadError};
use highwater_types::ErrorCode;
use support::own::at;

fn refused(log: &mut PartitionLog<MemDisk>, from: i64) -> ReadError {
    let end = log.log_end_offset();
    let why = log.read(at(from), end, 10_000, true).unwrap_err();
    assert_eq!(why.error_code(), ErrorCode::CORRUPT_MESSAGE, "{why}");
    why
}
