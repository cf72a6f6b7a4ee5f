//! The good and bad batches that a running Kafka 4.4 was asked to append, and what it answered.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use bytes::Buf as _;
use highwater_records::{BatchError, ValidationRules, validate};
use highwater_types::{ErrorCode, Millis, WallMs};

/// Cases that Kafka refuses for another reason than the batch itself: producer state, acks,
/// the topic, the transaction.
const NOT_THE_BATCH: [&str; 10] = ["04", "06", "08", "22", "23", "24", "25", "26", "28", "29"];

#[test]
fn each_batch_is_judged_as_kafka_judges_it() {
    let files = highwater_fixtures::wire();
    let cases = &files[Path::new("00-Produce-cases/cases.tsv")];
    let cases = std::str::from_utf8(cases).unwrap();
    let mut seen = 0;
    for line in cases.lines().skip(1) {
        let [number, name, version, error, ..] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let file = format!("00-Produce-cases/{number}-{name}.request.hex");
        let frame = highwater_fixtures::unhex(&files[Path::new(&file)]);
        let version: i16 = version.trim_start_matches('v').parse().unwrap();
        let rules = ValidationRules {
            now: WallMs::new(1_767_225_600_000),
            timestamp_before_max_ms: Millis::new(i64::MAX.unsigned_abs()),
            zstd_allowed: version >= 7,
            ..ValidationRules::default()
        };
        let code = match validate(records_of(&frame, version), &rules) {
            Ok(_) => ErrorCode::NONE,
            Err(why) => why.error_code(),
        };
        let kafka: i16 = error.split(' ').next().unwrap().parse().unwrap();
        let expected = match number {
            "14" => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE, // Kafka: UNKNOWN_SERVER_ERROR
            "32" => ErrorCode::NONE,
            _ if NOT_THE_BATCH.contains(&number) => ErrorCode::NONE,
            _ => ErrorCode::new(kafka),
        };
        assert_eq!(code, expected, "{number} {name}");
        seen += 1;
    }
    assert_eq!(seen, 32);
}

#[test]
fn b_20_a_missing_or_empty_records_field_is_an_invalid_record() {
    let error = validate(&[], &ValidationRules::default()).unwrap_err();
    assert_eq!(error, BatchError::NoBatch);
    assert_eq!(error.error_code(), ErrorCode::INVALID_RECORD);
}

/// The records field of a request for one partition of one topic.
fn records_of(frame: &[u8], version: i16) -> &[u8] {
    let is_flexible = version >= 9;
    let mut rest = frame;
    rest.advance(2 + 2 + 4);
    skip_string16(&mut rest);
    if is_flexible {
        rest.advance(1);
        let length = uvarint(&mut rest);
        rest.advance(length.saturating_sub(1));
    } else {
        skip_string16(&mut rest);
    }
    rest.advance(2 + 4);
    if is_flexible {
        assert_eq!(uvarint(&mut rest), 2, "one topic");
        let length = uvarint(&mut rest) - 1;
        rest.advance(length);
        assert_eq!(uvarint(&mut rest), 2, "one partition");
        rest.advance(4);
        let length = uvarint(&mut rest).saturating_sub(1);
        &rest[..length]
    } else {
        assert_eq!(rest.get_i32(), 1, "one topic");
        skip_string16(&mut rest);
        assert_eq!(rest.get_i32(), 1, "one partition");
        rest.advance(4);
        let length = usize::try_from(rest.get_i32()).unwrap();
        &rest[..length]
    }
}

fn skip_string16(rest: &mut &[u8]) {
    let length = usize::try_from(rest.get_i16()).unwrap_or(0);
    rest.advance(length);
}

fn uvarint(rest: &mut &[u8]) -> usize {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = rest.get_u8();
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}
