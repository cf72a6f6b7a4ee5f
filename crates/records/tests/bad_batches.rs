//! Batches that no honest client sends, named after the list of bad inputs (B-16 to B-31).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use highwater_records::batch::{RecordError, RecordErrorKind};
use highwater_records::varint::{put_varint, put_varlong};
use highwater_records::{
    BATCH_HEADER_BYTES, Batch, BatchBuilder, BatchError, BatchHeader, BatchOptions, Compression,
    Compressor, ControlType, ProducerStamp, TimestampType, Validated, ValidationRules, Validator,
    needs_job, recompress, stamp, validate,
};
use highwater_types::{ErrorCode, LeaderEpoch, Millis, Offset, ProducerEpoch, ProducerId, WallMs};

const NOW: i64 = 1_767_225_600_000;

fn rules() -> ValidationRules {
    ValidationRules {
        now: WallMs::new(NOW),
        ..ValidationRules::default()
    }
}

/// A batch with `header` and `records`, whose length and checksum are right.
fn batch(records: &[u8], change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder
        .append(WallMs::new(NOW), None, Some(b"x"), &[])
        .unwrap();
    let bytes = builder.finish(&BatchOptions::default()).unwrap();
    let mut header = BatchHeader::parse(&bytes).unwrap();
    header.batch_length = i32::try_from(BATCH_HEADER_BYTES - 12 + records.len()).unwrap();
    change(&mut header);
    let header = header.with_crc_over(records);
    [header.encode().as_slice(), records].concat()
}

/// A record's bytes, length in front, from its fields.
fn record(offset_delta: i32, timestamp_delta: i64, fields: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    put_varlong(&mut body, timestamp_delta);
    put_varint(&mut body, offset_delta);
    body.extend_from_slice(fields);
    let mut out = Vec::new();
    put_varint(&mut out, i32::try_from(body.len()).unwrap());
    out.extend_from_slice(&body);
    out
}

/// Null key, null value, no header.
const PLAIN: &[u8] = &[1, 1, 0];

fn plain(count: i32) -> Vec<u8> {
    (0..count)
        .flat_map(|delta| record(delta, 0, PLAIN))
        .collect()
}

fn count(count: i32) -> impl FnOnce(&mut BatchHeader) {
    move |header| {
        header.record_count = count;
        header.last_offset_delta = count - 1;
    }
}

fn refused(bytes: &[u8]) -> BatchError {
    validate(bytes, &rules()).expect_err("must be refused")
}

fn code(bytes: &[u8]) -> ErrorCode {
    refused(bytes).error_code()
}

/// `records` in `codec`, decompressed size not looked at.
fn compressed(codec: Compression, records: &[u8], record_count: i32) -> Vec<u8> {
    let mut block = Vec::new();
    Compressor::new(codec)
        .compress(records, &mut block)
        .unwrap();
    raw_block(codec, &block, record_count)
}

fn raw_block(codec: Compression, block: &[u8], record_count: i32) -> Vec<u8> {
    batch(block, |header| {
        header.attributes = header.attributes.with_compression(codec);
        count(record_count)(header);
    })
}

#[test]
fn b_16_batch_lengths_that_lie() {
    let good = batch(&plain(2), count(2));
    assert!(validate(&good, &rules()).is_ok());
    for cut in 1..good.len() {
        assert_eq!(
            code(&good[..cut]),
            ErrorCode::INVALID_RECORD,
            "cut at {cut}"
        );
    }
    for length in [i32::MIN, -1, 0, 13, 48] {
        let mut bad = good.clone();
        bad[8..12].copy_from_slice(&length.to_be_bytes());
        assert_eq!(code(&bad), ErrorCode::CORRUPT_MESSAGE, "length {length}");
    }
    for length in [i32::MAX, 1000] {
        let mut bad = good.clone();
        bad[8..12].copy_from_slice(&length.to_be_bytes());
        assert_eq!(code(&bad), ErrorCode::INVALID_RECORD, "length {length}");
    }
}

#[test]
fn b_17_every_single_bit_under_the_checksum_counts() {
    let good = batch(&plain(3), count(3));
    for at in 17..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let error = refused(&bad);
            let is_codec = at == 22 && bit < 3;
            let seen_first = is_codec && matches!(error, BatchError::UnknownCodec { .. });
            assert!(
                seen_first || matches!(error, BatchError::Crc { .. }),
                "{at}.{bit}: {error}"
            );
        }
    }
}

#[test]
fn b_18_counts_that_do_not_fit_the_offsets() {
    for (record_count, last_offset_delta) in [
        (2, 2),
        (2, 0),
        (0, -1),
        (0, 0),
        (-1, -2),
        (-1, 0),
        (i32::MIN, i32::MAX),
        (i32::MAX, i32::MAX),
        (1, -1),
    ] {
        let bad = batch(&plain(2), |header| {
            header.record_count = record_count;
            header.last_offset_delta = last_offset_delta;
        });
        let expected = BatchError::RecordCount {
            record_count,
            last_offset_delta,
        };
        assert_eq!(refused(&bad), expected);
        assert_eq!(expected.error_code(), ErrorCode::INVALID_RECORD);
    }
}

#[test]
fn b_19_more_or_fewer_records_than_counted() {
    for codec in Compression::ALL {
        let more = compressed(codec, &plain(3), 2);
        assert_eq!(
            refused(&more),
            BatchError::BytesAfterRecords { record_count: 2 },
            "{codec}"
        );
        let fewer = compressed(codec, &plain(2), 3);
        assert!(
            matches!(refused(&fewer), BatchError::Record { index: 2, .. }),
            "{codec}"
        );
        assert_eq!(code(&fewer), ErrorCode::INVALID_RECORD);
        let far_fewer = compressed(codec, &plain(2), i32::MAX);
        assert!(
            matches!(refused(&far_fewer), BatchError::Record { index: 2, .. }),
            "{codec}"
        );
    }
}

#[test]
fn b_20_record_lengths_that_lie() {
    let length = |length: i32| {
        let mut records = Vec::new();
        put_varint(&mut records, length);
        records.extend_from_slice(&record(0, 0, PLAIN)[1..]);
        records
    };
    for codec in Compression::ALL {
        for bad in [-1, 0, 1, 5, 7, 2000, i32::MIN, i32::MAX] {
            let error = refused(&compressed(codec, &length(bad), 1));
            assert!(
                matches!(error, BatchError::Record { index: 0, .. }),
                "{codec} {bad}: {error}"
            );
            assert_eq!(error.error_code(), ErrorCode::INVALID_RECORD);
        }
        assert!(
            validate(&compressed(codec, &length(6), 1), &rules()).is_ok(),
            "{codec}"
        );
    }
    for key_or_value in [
        &[3, 1, 0][..],
        &[1, 3, 0],
        &[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0],
    ] {
        let bad = batch(&record(0, 0, key_or_value), count(1));
        assert_eq!(
            code(&bad),
            ErrorCode::INVALID_RECORD,
            "length below -1: {key_or_value:?}"
        );
    }
    for key_or_value in [
        &[4, b'k', 1, 0][..],
        &[1, 4, b'v', 0],
        &[0xfe, 0xff, 0xff, 0xff, 0x0f],
    ] {
        let bad = batch(&record(0, 0, key_or_value), count(1));
        assert_eq!(
            code(&bad),
            ErrorCode::INVALID_RECORD,
            "past the end: {key_or_value:?}"
        );
    }
}

#[test]
fn b_21_header_counts_and_keys_that_lie() {
    let with_headers = |header_count: i32, headers: &[u8]| {
        let mut fields = vec![1, 1];
        put_varint(&mut fields, header_count);
        fields.extend_from_slice(headers);
        record(0, 0, &fields)
    };
    assert!(validate(&batch(&with_headers(1, &[2, b'k', 1]), count(1)), &rules()).is_ok());
    for codec in Compression::ALL {
        for (header_count, headers) in [
            (-1, &[][..]),
            (i32::MIN, &[]),
            (i32::MAX, &[]),
            (i32::MAX, &[0, 0, 0, 0]),
            (1, &[]),
            (1, &[1, 1]),
            (2, &[0, 1, 0]),
            (1, &[0, 1, 0]),
            (0, &[0, 1]),
        ] {
            let bad = compressed(codec, &with_headers(header_count, headers), 1);
            let error = refused(&bad);
            assert!(
                matches!(error, BatchError::Record { index: 0, .. }),
                "{header_count}: {error}"
            );
            assert_eq!(error.error_code(), ErrorCode::INVALID_RECORD);
        }
    }
}

#[test]
fn b_22_offset_deltas_must_count_up_and_timestamps_must_not_overflow() {
    for codec in Compression::ALL {
        for deltas in [
            [0, 0, 1],
            [1, 2, 3],
            [0, 2, 1],
            [0, -1, 2],
            [0, 1, i32::MAX],
        ] {
            let records: Vec<u8> = deltas
                .into_iter()
                .flat_map(|delta| record(delta, 0, PLAIN))
                .collect();
            let error = refused(&compressed(codec, &records, 3));
            let wrong = deltas
                .into_iter()
                .zip(0..)
                .find(|(delta, index)| delta != index)
                .unwrap();
            let first = RecordError {
                batch_index: wrong.1,
                kind: RecordErrorKind::OffsetDelta {
                    expected: wrong.1,
                    found: wrong.0,
                },
            };
            assert_eq!(error.record_errors().first(), Some(&first), "{codec}");
            assert_eq!(error.error_code(), ErrorCode::INVALID_RECORD);
        }
        let overflow = compressed(codec, &record(0, i64::MAX, PLAIN), 1);
        assert_eq!(code(&overflow), ErrorCode::INVALID_RECORD);
    }
}

#[test]
fn b_23_other_formats_and_more_than_one_batch() {
    let good = batch(&plain(1), count(1));
    for magic in [0, 1] {
        let mut old = good.clone();
        old[16] = magic;
        assert_eq!(
            refused(&old),
            BatchError::OldMagic {
                magic: magic.cast_signed()
            }
        );
        assert_eq!(code(&old), ErrorCode::INVALID_RECORD);
    }
    for magic in [3, 0x7f, 0xff] {
        let mut unknown = good.clone();
        unknown[16] = magic;
        assert_eq!(code(&unknown), ErrorCode::CORRUPT_MESSAGE);
    }
    let two = [good.as_slice(), &good].concat();
    assert_eq!(
        refused(&two),
        BatchError::MoreThanOneBatch {
            extra_bytes: good.len()
        }
    );
    assert_eq!(code(&two), ErrorCode::INVALID_RECORD);
    let trailing = [good.as_slice(), &[0]].concat();
    assert_eq!(code(&trailing), ErrorCode::INVALID_RECORD);
}

#[test]
fn b_24_control_batches_are_not_for_clients() {
    let mut builder = BatchBuilder::new();
    builder
        .append_control(WallMs::new(NOW), ControlType::Commit, &[0; 6])
        .unwrap();
    let options = BatchOptions {
        control: true,
        ..BatchOptions::default()
    };
    let bytes = builder.finish(&options).unwrap();
    assert_eq!(refused(&bytes), BatchError::ControlBatch);
    assert_eq!(code(&bytes), ErrorCode::INVALID_RECORD);
}

#[test]
fn b_25_decompression_bombs_stop_at_the_bound_in_each_codec() {
    let one_record = |value_bytes: usize| {
        let mut builder = BatchBuilder::new();
        builder
            .append(WallMs::new(NOW), None, Some(&vec![0; value_bytes]), &[])
            .unwrap();
        let bytes = builder.finish(&BatchOptions::default()).unwrap();
        bytes[BATCH_HEADER_BYTES..].to_vec()
    };
    let records = one_record(32 * 1024 * 1024);
    for codec in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let bomb = compressed(codec, &records, 1);
        assert!(
            bomb.len() < records.len() / 10,
            "{codec}: {} bytes",
            bomb.len()
        );
        let limit_bytes = 1024 * 1024;
        let rules = ValidationRules {
            decompressed_bytes_max: limit_bytes,
            max_message_bytes: usize::MAX,
            ..rules()
        };
        let error = validate(&bomb, &rules).unwrap_err();
        assert_eq!(
            error,
            BatchError::DecompressedTooLarge { limit_bytes },
            "{codec}"
        );
        assert_eq!(error.error_code(), ErrorCode::MESSAGE_TOO_LARGE);
        // Reading and looking up times are bounded in the same way.
        let view = Batch::parse(&bomb).unwrap();
        assert_eq!(view.open(limit_bytes).unwrap_err(), error, "{codec}");
        let looked = view.visit_times(limit_bytes, |_| std::ops::ControlFlow::<()>::Continue(()));
        assert_eq!(looked.unwrap_err(), error, "{codec}");

        let open = ValidationRules {
            decompressed_bytes_max: u64::MAX,
            ..rules
        };
        let validated = validate(&bomb, &open).unwrap();
        assert_eq!(validated.records_bytes, records.len() as u64, "{codec}");
        // A step gives up at 1 MiB and asks for a job.
        assert_eq!(
            Validator::new().validate_inline(&bomb, &open),
            Ok(None),
            "{codec}"
        );
    }
}

#[test]
fn b_25_a_raw_snappy_block_that_only_claims_to_be_huge_reserves_nothing() {
    // 3.9 GiB claimed in front of two bytes.
    let block = [0xff, 0xff, 0xff, 0xff, 0x0e, 0x00, b'x'];
    let bytes = raw_block(Compression::Snappy, &block, 1);
    assert_eq!(code(&bytes), ErrorCode::MESSAGE_TOO_LARGE);
    let open = ValidationRules {
        decompressed_bytes_max: u64::MAX,
        ..rules()
    };
    let error = validate(&bytes, &open).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::CORRUPT_MESSAGE, "{error}");
}

#[test]
fn b_25_one_record_that_claims_two_gigabytes() {
    let mut records = Vec::new();
    put_varint(&mut records, i32::MAX);
    records.extend_from_slice(&[0, 0, 0, 1]);
    put_varint(&mut records, i32::MAX - 100);
    records.extend_from_slice(&[0; 100]);
    for codec in Compression::ALL {
        let error = refused(&compressed(codec, &records, 1));
        assert_eq!(
            error.error_code(),
            ErrorCode::INVALID_RECORD,
            "{codec}: {error}"
        );
    }
}

const XERIAL: [u8; 16] = [
    0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1,
];

#[test]
fn b_26_snappy_chunk_lengths_that_lie() {
    for length in [i32::MAX, -1, i32::MIN, 3, 1000] {
        let block = [XERIAL.as_slice(), &length.to_be_bytes(), &[0, 0]].concat();
        let bytes = raw_block(Compression::Snappy, &block, 1);
        assert_eq!(code(&bytes), ErrorCode::CORRUPT_MESSAGE, "{length}");
    }
    for cut in [8, 15, 17, 19] {
        let block = [XERIAL.as_slice(), &[0, 0, 0, 1, 0]].concat();
        let bytes = raw_block(Compression::Snappy, &block[..cut], 1);
        assert_eq!(code(&bytes), ErrorCode::CORRUPT_MESSAGE, "cut at {cut}");
    }
}

#[test]
fn b_27_unknown_codecs_and_zstd_from_an_old_request() {
    for id in 5..8 {
        let bytes = batch(&plain(1), |header| {
            header.attributes = highwater_records::Attributes::new(id);
        });
        assert_eq!(code(&bytes), ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
    let old = ValidationRules {
        zstd_allowed: false,
        ..rules()
    };
    for codec in Compression::ALL {
        let result = validate(&compressed(codec, &plain(1), 1), &old);
        let expected = if codec == Compression::Zstd {
            Err(BatchError::ZstdNotAllowed)
        } else {
            Ok(())
        };
        assert_eq!(result.map(drop), expected);
    }
}

#[test]
fn b_27_truncated_and_damaged_blocks_in_each_codec() {
    let value: Vec<u8> = (0..40_000_u32)
        .flat_map(|n| n.wrapping_mul(n).to_be_bytes())
        .collect();
    let mut builder = BatchBuilder::new();
    builder
        .append(WallMs::new(NOW), Some(b"k"), Some(&value), &[])
        .unwrap();
    let records = builder.finish(&BatchOptions::default()).unwrap()[BATCH_HEADER_BYTES..].to_vec();
    for codec in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let mut block = Vec::new();
        Compressor::new(codec)
            .compress(&records, &mut block)
            .unwrap();
        assert!(
            validate(&raw_block(codec, &block, 1), &rules()).is_ok(),
            "{codec}"
        );
        let cuts = (0..40)
            .chain(block.len() - 40..block.len())
            .chain((40..block.len()).step_by(997));
        for cut in cuts {
            let error = refused(&raw_block(codec, &block[..cut], 1));
            let expected = [ErrorCode::CORRUPT_MESSAGE, ErrorCode::INVALID_RECORD];
            assert!(
                expected.contains(&error.error_code()),
                "{codec} cut at {cut}: {error}"
            );
            // Only between two whole snappy chunks does the block look whole.
            if codec != Compression::Snappy {
                assert_eq!(
                    error.error_code(),
                    ErrorCode::CORRUPT_MESSAGE,
                    "{codec} cut at {cut}"
                );
            }
        }
        for at in (0..block.len()).step_by(313) {
            let mut bad = block.clone();
            bad[at] ^= 0x55;
            // Must not panic; not every codec has a checksum of its own.
            drop(validate(&raw_block(codec, &bad, 1), &rules()));
        }
    }
}

#[test]
fn b_28_a_batch_that_grows_when_recompressed_is_too_large() {
    let mut builder = BatchBuilder::new();
    builder
        .append(WallMs::new(NOW), None, Some(&[7; 10_000]), &[])
        .unwrap();
    let compressor = Compressor::new(Compression::Zstd);
    let bytes = builder
        .finish(&BatchOptions {
            compressor,
            ..Default::default()
        })
        .unwrap();
    let rules = ValidationRules {
        max_message_bytes: 5000,
        compression: Some(Compression::None),
        ..rules()
    };
    assert!(validate(&bytes, &rules).unwrap().needs_recompression);
    let error = recompress(&bytes, Compressor::new(Compression::None), &rules).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::MESSAGE_TOO_LARGE);
    let big = ValidationRules {
        max_message_bytes: 500_000,
        ..rules
    };
    let (rebuilt, validated) =
        recompress(&bytes, Compressor::new(Compression::None), &big).unwrap();
    assert!(!validate(&rebuilt, &big).unwrap().needs_recompression);
    assert_eq!(validated.header, *Batch::parse(&rebuilt).unwrap().header());
    assert_eq!(rebuilt.len(), 10_000 + 61 + 11);
}

#[test]
fn b_29_timestamps_out_of_bounds_are_named_record_by_record() {
    let rules = ValidationRules {
        timestamp_before_max_ms: Millis::new(1000),
        timestamp_after_max_ms: Millis::new(500),
        ..rules()
    };
    let times = [
        NOW,
        NOW - 1000,
        NOW - 1001,
        NOW + 500,
        NOW + 501,
        -1,
        -2,
        i64::MAX,
    ];
    let mut builder = BatchBuilder::new();
    for time in times {
        builder.append(WallMs::new(time), None, None, &[]).unwrap();
    }
    let bytes = builder.finish(&BatchOptions::default()).unwrap();
    let error = validate(&bytes, &rules).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::INVALID_TIMESTAMP);
    let bad: Vec<_> = error
        .record_errors()
        .iter()
        .map(|error| error.batch_index)
        .collect();
    assert_eq!(bad, [2, 4, 6, 7]);

    let append_time = ValidationRules {
        timestamp_type: TimestampType::LogAppendTime,
        ..rules
    };
    let validated = validate(&bytes, &append_time).unwrap();
    let stamped = restamped(&bytes, &validated, 7, 3, Some(NOW + 9));
    let view = Batch::parse(&stamped).unwrap();
    assert_eq!(view.check_crc(), Ok(()));
    assert_eq!(view.header().max_timestamp, WallMs::new(NOW + 9));
    let open = view.open(u64::MAX).unwrap();
    for (record, offset) in open.records().zip(7..) {
        let record = record.unwrap();
        assert_eq!(
            (record.offset.raw(), record.timestamp.raw()),
            (offset, NOW + 9)
        );
    }
}

#[test]
fn a_producer_may_set_the_append_time_bit_only_where_it_is_overwritten() {
    let bytes = batch(&plain(1), |header| {
        header.attributes = header
            .attributes
            .with_timestamp_type(TimestampType::LogAppendTime);
    });
    let validated = validate(&bytes, &rules()).unwrap();
    let stamped = restamped(&bytes, &validated, 5, 0, None);
    let header = *Batch::parse(&stamped).unwrap().header();
    assert_eq!(
        header.attributes.timestamp_type(),
        TimestampType::CreateTime
    );
    assert_eq!(Batch::parse(&stamped).unwrap().check_crc(), Ok(()));

    let append_time = ValidationRules {
        timestamp_type: TimestampType::LogAppendTime,
        ..rules()
    };
    let error = validate(&bytes, &append_time).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::INVALID_TIMESTAMP);
}

#[test]
fn a_wrong_maximum_timestamp_is_put_right_by_the_stamp() {
    let mut records = record(0, 5, PLAIN);
    records.extend(record(1, 90, PLAIN));
    records.extend(record(2, -3, PLAIN));
    let bytes = batch(&records, |header| {
        count(3)(header);
        header.max_timestamp = WallMs::new(1);
    });
    let validated = validate(&bytes, &rules()).unwrap();
    assert_eq!(validated.max_timestamp, WallMs::new(NOW + 90));
    assert_eq!(validated.max_timestamp_offset_delta, 1);
    let stamped = restamped(&bytes, &validated, 100, 8, None);
    let view = Batch::parse(&stamped).unwrap();
    assert_eq!(view.check_crc(), Ok(()));
    assert_eq!(view.header().max_timestamp, WallMs::new(NOW + 90));
    assert_eq!(view.header().base_offset, Offset::new(100));
    assert_eq!(view.header().leader_epoch, LeaderEpoch::new(8));
}

fn restamped(
    bytes: &[u8],
    validated: &Validated,
    offset: i64,
    epoch: i32,
    append_time: Option<i64>,
) -> Vec<u8> {
    let (offset, epoch) = (Offset::new(offset), LeaderEpoch::new(epoch));
    let header = stamp(
        bytes,
        validated,
        offset,
        epoch,
        append_time.map(WallMs::new),
    );
    [header.as_slice(), &bytes[BATCH_HEADER_BYTES..]].concat()
}

#[test]
fn b_31_producer_id_epoch_and_sequence_come_together() {
    let with = |id: i64, epoch: i16, base_sequence: i32, transactional: bool| {
        let mut builder = BatchBuilder::new();
        builder.append(WallMs::new(NOW), None, None, &[]).unwrap();
        let producer = ProducerStamp {
            id: ProducerId::new(id),
            epoch: ProducerEpoch::new(epoch),
            base_sequence,
        };
        let options = BatchOptions {
            producer,
            transactional,
            ..Default::default()
        };
        validate(&builder.finish(&options).unwrap(), &rules()).map_err(|why| why.error_code())
    };
    assert!(with(-1, -1, -1, false).is_ok());
    assert!(with(9, 0, 0, false).is_ok());
    assert!(with(9, 0, i32::MAX, true).is_ok());
    assert_eq!(with(9, 0, -1, false), Err(ErrorCode::INVALID_RECORD));
    assert_eq!(with(9, 0, -2, true), Err(ErrorCode::INVALID_RECORD));
    assert_eq!(
        with(9, -1, 0, false),
        Err(ErrorCode::INVALID_PRODUCER_EPOCH)
    );
    assert_eq!(with(-1, -1, -1, true), Err(ErrorCode::INVALID_RECORD));
}

#[test]
fn trap_37_size_limit_and_keys_on_compacted_topics() {
    let bytes = batch(&plain(3), count(3));
    let small = ValidationRules {
        max_message_bytes: bytes.len() - 1,
        ..rules()
    };
    let error = validate(&bytes, &small).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::MESSAGE_TOO_LARGE);
    let exact = ValidationRules {
        max_message_bytes: bytes.len(),
        ..rules()
    };
    assert!(validate(&bytes, &exact).is_ok());

    let compacted = ValidationRules {
        compacted: true,
        ..rules()
    };
    let error = validate(&bytes, &compacted).unwrap_err();
    assert_eq!(error.error_code(), ErrorCode::INVALID_RECORD);
    let kinds: Vec<_> = error
        .record_errors()
        .iter()
        .map(|error| error.kind)
        .collect();
    assert_eq!(kinds, [RecordErrorKind::NoKey; 3]);
}

#[test]
fn record_errors_are_bounded() {
    let bytes = batch(&plain(5000), count(5000));
    let compacted = ValidationRules {
        compacted: true,
        ..rules()
    };
    let error = validate(&bytes, &compacted).unwrap_err();
    assert_eq!(error.record_errors().len(), 1000);
    assert!(error.to_string().contains("5000 record(s)"), "{error}");
}

#[test]
fn a_base_offset_of_a_client_must_be_zero() {
    let bytes = batch(&plain(1), |header| header.base_offset = Offset::new(5));
    assert_eq!(code(&bytes), ErrorCode::INVALID_RECORD);
}

#[test]
fn only_big_compressed_batches_need_a_job_by_their_looks() {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[2]
    };
    let noise: Vec<u8> = (0..700_000).map(|_| next()).collect();
    let mut builder = BatchBuilder::new();
    let mut build = |codec| {
        builder
            .append(WallMs::new(NOW), None, Some(&noise), &[])
            .unwrap();
        builder
            .append(WallMs::new(NOW), None, Some(&noise), &[])
            .unwrap();
        let compressor = Compressor::new(codec);
        builder
            .finish(&BatchOptions {
                compressor,
                ..Default::default()
            })
            .unwrap()
    };
    assert!(!needs_job(&build(Compression::None)));
    assert!(needs_job(&build(Compression::Snappy)));
    assert!(!needs_job(&compressed(Compression::Zstd, &plain(100), 100)));
}
