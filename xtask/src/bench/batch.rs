//! A prebuilt record batch, written by hand so that the load depends on nothing under test.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes fixed in this file, and low bits taken on purpose"
)]

/// Records in each batch.
pub(super) const RECORDS: usize = 63;
/// Bytes of each record's value.
const VALUE_BYTES: usize = 1024;

/// One uncompressed v2 batch of `records` records of `value_bytes` each.
fn build(records: usize, value_bytes: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for index in 0..records {
        let mut record = vec![0, 0];
        varint(&mut record, index as i64);
        varint(&mut record, -1);
        varint(&mut record, value_bytes as i64);
        record.extend((0..value_bytes).map(|at| (at * 31 + index) as u8));
        varint(&mut record, 0);
        varint(&mut body, record.len() as i64);
        body.extend_from_slice(&record);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_millis() as i64);
    let mut checked = Vec::new();
    checked.extend_from_slice(&0_i16.to_be_bytes());
    checked.extend_from_slice(&(records as i32 - 1).to_be_bytes());
    checked.extend_from_slice(&now.to_be_bytes());
    checked.extend_from_slice(&now.to_be_bytes());
    checked.extend_from_slice(&(-1_i64).to_be_bytes());
    checked.extend_from_slice(&(-1_i16).to_be_bytes());
    checked.extend_from_slice(&(-1_i32).to_be_bytes());
    checked.extend_from_slice(&(records as i32).to_be_bytes());
    checked.extend_from_slice(&body);
    let mut batch = Vec::new();
    batch.extend_from_slice(&0_i64.to_be_bytes());
    batch.extend_from_slice(&(checked.len() as i32 + 9).to_be_bytes());
    batch.extend_from_slice(&(-1_i32).to_be_bytes());
    batch.push(2);
    batch.extend_from_slice(&crc32c::crc32c(&checked).to_be_bytes());
    batch.extend_from_slice(&checked);
    batch
}

/// A batch of about 64 KiB: 63 records of 1 KiB.
pub(super) fn large() -> Vec<u8> {
    build(RECORDS, VALUE_BYTES)
}

/// A batch of one record of 100 bytes.
pub(super) fn small() -> Vec<u8> {
    build(1, 100)
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
