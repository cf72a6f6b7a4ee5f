//! What the builder writes is what the views read, in every codec.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use highwater_records::{
    Batch, BatchBuilder, BatchOptions, Batches, Compression, Compressor, ControlType,
    EndTransactionMarker, ProducerStamp, RecordHeader, TimestampType, ValidationRules, validate,
};
use highwater_types::{LeaderEpoch, Millis, Offset, ProducerEpoch, ProducerId, WallMs};
use proptest::collection::vec;
use proptest::prelude::*;

type OwnedHeader = (Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
struct OwnedRecord {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<OwnedHeader>,
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..max), vec(Just(b'a'), 0..max)]
}

fn owned_record() -> impl Strategy<Value = OwnedRecord> {
    let header = (bytes(20), proptest::option::of(bytes(20)));
    (
        -1..4_000_000_000_000_i64,
        proptest::option::of(bytes(50)),
        proptest::option::of(prop_oneof![9 => bytes(2000), 1 => bytes(150_000)]),
        vec(header, 0..4),
    )
        .prop_map(|(timestamp, key, value, headers)| OwnedRecord {
            timestamp,
            key,
            value,
            headers,
        })
}

fn codec() -> impl Strategy<Value = Compression> {
    proptest::sample::select(Compression::ALL.to_vec())
}

fn build(records: &[OwnedRecord], options: &BatchOptions) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for record in records {
        let headers: Vec<RecordHeader<'_>> = record
            .headers
            .iter()
            .map(|(key, value)| (key.as_slice(), value.as_deref()))
            .collect();
        let before = builder.size_bytes();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder
            .append(WallMs::new(record.timestamp), key, value, &headers)
            .unwrap();
        let most = BatchBuilder::record_bytes_max(key, value, &headers);
        assert!(builder.size_bytes() - before <= most);
    }
    let plain_bytes = builder.size_bytes();
    let in_place = builder.clone();
    let bytes = builder.finish(options).unwrap();
    if options.compressor.compression == Compression::None {
        assert_eq!(bytes.len(), plain_bytes);
        assert_eq!({ in_place }.finish_in_place(options).unwrap(), bytes);
    }
    assert!(builder.is_empty());
    bytes
}

fn any_time() -> ValidationRules {
    ValidationRules {
        now: WallMs::new(2_000_000_000_000),
        timestamp_after_max_ms: Millis::new(i64::MAX.unsigned_abs()),
        max_message_bytes: usize::MAX,
        ..ValidationRules::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn records_round_trip(
        records in vec(owned_record(), 1..20),
        codec in codec(),
        base_offset in 0..i64::from(u32::MAX),
        producer in any::<bool>(),
    ) {
        let stamp = ProducerStamp {
            id: ProducerId::new(77),
            epoch: ProducerEpoch::new(3),
            base_sequence: i32::MAX - 5,
        };
        let options = BatchOptions {
            base_offset: Offset::new(base_offset),
            leader_epoch: LeaderEpoch::new(9),
            compressor: Compressor::new(codec),
            producer: if producer { stamp } else { ProducerStamp::NONE },
            ..BatchOptions::default()
        };
        let bytes = build(&records, &options);
        let batch = Batch::parse(&bytes).unwrap();
        prop_assert_eq!(batch.check_crc(), Ok(()));
        let header = batch.header();
        prop_assert_eq!(&header.encode(), &bytes[..61]);
        prop_assert_eq!(header.size_bytes(), bytes.len());
        prop_assert_eq!(header.next_offset().raw(), base_offset + records.len() as i64);
        let newest = records.iter().map(|record| record.timestamp).max().unwrap();
        prop_assert_eq!(header.max_timestamp.raw(), newest);
        let open = batch.open(u64::MAX).unwrap();
        let mut seen = 0;
        for (read, (wrote, index)) in open.records().zip(records.iter().zip(0_i64..)) {
            let read = read.unwrap();
            prop_assert_eq!(read.offset.raw(), base_offset + index);
            prop_assert_eq!(read.timestamp.raw(), wrote.timestamp);
            prop_assert_eq!(read.key, wrote.key.as_deref());
            prop_assert_eq!(read.value, wrote.value.as_deref());
            let headers: Vec<OwnedHeader> = read
                .headers()
                .map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)))
                .collect();
            prop_assert_eq!(&headers, &wrote.headers);
            let sequence = match producer {
                true if index <= 5 => i32::MAX - 5 + i32::try_from(index).unwrap(),
                true => i32::try_from(index).unwrap() - 6,
                false => -1,
            };
            prop_assert_eq!(read.sequence, sequence);
            seen += 1;
        }
        prop_assert_eq!(seen, records.len());
    }

    #[test]
    fn what_is_built_is_valid(records in vec(owned_record(), 1..20), codec in codec()) {
        let options = BatchOptions { compressor: Compressor::new(codec), ..Default::default() };
        let bytes = build(&records, &options);
        let validated = validate(&bytes, &any_time()).unwrap();
        let newest = records.iter().map(|record| record.timestamp).max().unwrap();
        prop_assert_eq!(validated.max_timestamp.raw(), newest);
        let at = records.iter().position(|record| record.timestamp == newest).unwrap();
        let at = if newest == -1 { 0 } else { i32::try_from(at).unwrap() };
        prop_assert_eq!(validated.max_timestamp_offset_delta, at);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in vec(any::<u8>(), 0..300),
        codec in 0_u16..8,
        count in -2..5_i32,
    ) {
        drop(validate(&bytes, &any_time()));
        for batch in Batches::new(&bytes).flatten() {
            drop(batch.open(1 << 20));
        }
        // Again with a header that passes, so that the bytes reach codec and record reader.
        if bytes.len() > 61 {
            let records = bytes.split_off(61);
            bytes[..8].fill(0);
            bytes[16] = 2;
            let length = i32::try_from(49 + records.len()).unwrap();
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[21..23].copy_from_slice(&codec.to_be_bytes());
            bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
            bytes[43..51].fill(0xff);
            bytes[57..61].copy_from_slice(&count.to_be_bytes());
            let header = highwater_records::BatchHeader::parse(&bytes).unwrap();
            let whole = [header.with_crc_over(&records).encode().as_slice(), &records].concat();
            drop(validate(&whole, &any_time()));
            let batch = Batch::parse(&whole).unwrap();
            if let Ok(open) = batch.open(1 << 20) {
                drop(open.records().collect::<Vec<_>>());
            }
            drop(batch.control_type());
        }
    }
}

#[test]
fn many_records_cross_chunk_borders_in_every_codec() {
    let value: Vec<u8> = (0..700_u32)
        .flat_map(|n| (n * 7919).to_be_bytes())
        .collect();
    for codec in Compression::ALL {
        let mut builder = BatchBuilder::new();
        for index in 0..500_i64 {
            let header: RecordHeader<'_> = (b"header", Some(&value[..100]));
            let cut = usize::try_from(index * 5).unwrap();
            builder
                .append(
                    WallMs::new(1000 + index),
                    Some(b"key"),
                    Some(&value[cut..]),
                    &[header; 3],
                )
                .unwrap();
        }
        let plain_bytes = builder.size_bytes() - 61;
        let options = BatchOptions {
            compressor: Compressor::new(codec),
            ..Default::default()
        };
        let bytes = builder.finish(&options).unwrap();
        let validated = validate(&bytes, &any_time()).unwrap();
        assert_eq!(validated.records_bytes, plain_bytes as u64, "{codec}");
        assert_eq!(validated.max_timestamp_offset_delta, 499);
    }
}

#[test]
fn raw_snappy_as_librdkafka_writes_it_is_read() {
    let mut builder = BatchBuilder::new();
    builder
        .append(WallMs::new(1), Some(b"k"), Some(&[5; 200_000]), &[])
        .unwrap();
    let plain = builder.finish(&BatchOptions::default()).unwrap();
    let raw = snap::raw::Encoder::new()
        .compress_vec(&plain[61..])
        .unwrap();
    let mut header = *Batch::parse(&plain).unwrap().header();
    header.batch_length = i32::try_from(49 + raw.len()).unwrap();
    header.attributes = header.attributes.with_compression(Compression::Snappy);
    let bytes = [header.with_crc_over(&raw).encode().as_slice(), &raw].concat();
    assert!(validate(&bytes, &any_time()).is_ok());
    let batch = Batch::parse(&bytes).unwrap();
    let open = batch.open(1 << 20).unwrap();
    assert_eq!(
        open.records().next().unwrap().unwrap().value.unwrap().len(),
        200_000
    );
}

#[test]
fn lz4_blocks_that_depend_on_each_other_are_refused_as_java_cannot_read_them() {
    use std::io::Write as _;
    let linked = lz4_flex::frame::FrameInfo::new().block_mode(lz4_flex::frame::BlockMode::Linked);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(linked, Vec::new());
    encoder.write_all(&[1; 100]).unwrap();
    let block = encoder.finish().unwrap();
    let mut decompressor = highwater_records::Decompressor::new();
    let result = decompressor.decompress(Compression::Lz4, &block, u64::MAX);
    assert!(result.unwrap_err().to_string().contains("depend"));
}

#[test]
fn lz4_with_all_checksums_and_big_blocks_is_read() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write as _;
    let data: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
    for size in [
        BlockSize::Max64KB,
        BlockSize::Max256KB,
        BlockSize::Max1MB,
        BlockSize::Max4MB,
    ] {
        let info = FrameInfo::new()
            .block_size(size)
            .block_mode(BlockMode::Independent)
            .block_checksums(true)
            .content_checksum(true)
            .content_size(Some(data.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&data).unwrap();
        let block = encoder.finish().unwrap();
        let mut decompressor = highwater_records::Decompressor::new();
        let out = decompressor
            .decompress(Compression::Lz4, &block, u64::MAX)
            .unwrap();
        assert!(out == data);
    }
}

#[test]
fn a_batch_with_gaps_keeps_its_offsets_and_ends_where_it_says() {
    let mut builder = BatchBuilder::new();
    builder
        .append_at(2, WallMs::new(5), None, None, &[])
        .unwrap();
    builder
        .append_at(7, WallMs::new(6), None, None, &[])
        .unwrap();
    let options = BatchOptions {
        base_offset: Offset::new(10),
        ..Default::default()
    };
    let bytes = builder.finish(&options).unwrap();
    let batch = Batch::parse(&bytes).unwrap();
    let open = batch.open(0).unwrap();
    let offsets: Vec<_> = open
        .records()
        .map(|record| record.unwrap().offset.raw())
        .collect();
    assert_eq!(offsets, [12, 17]);
    assert_eq!(batch.header().next_offset(), Offset::new(18));
}

#[test]
fn an_emptied_batch_is_read_as_empty_in_every_codec() {
    for codec in Compression::ALL {
        let options = BatchOptions {
            compressor: Compressor::new(codec),
            ..Default::default()
        };
        let mut bytes = BatchBuilder::new().finish(&options).unwrap();
        bytes.truncate(61);
        bytes[8..12].copy_from_slice(&49_i32.to_be_bytes());
        let batch = Batch::parse(&bytes).unwrap();
        assert_eq!(batch.open(0).unwrap().records().count(), 0, "{codec}");
    }
}

#[test]
fn markers_and_quorum_records_are_what_they_say() {
    for committed in [true, false] {
        let marker = EndTransactionMarker {
            committed,
            coordinator_epoch: LeaderEpoch::new(4),
        };
        let bytes = BatchBuilder::end_transaction(
            WallMs::new(1_000),
            ProducerId::new(9),
            ProducerEpoch::new(1),
            marker,
        );
        assert_eq!(bytes.len(), 78, "as Kafka's own markers");
        let batch = Batch::parse(&bytes).unwrap();
        assert_eq!(batch.control_type(), Ok(Some(marker.control_type())));
        let open = batch.open(0).unwrap();
        let record = open.records().next().unwrap().unwrap();
        assert_eq!(EndTransactionMarker::of(&record), Ok(Some(marker)));
        assert!(batch.header().attributes.is_transactional());
        assert_eq!(batch.header().last_sequence(), -1);
    }
    for raw in -1..9 {
        assert_eq!(ControlType::from_raw(raw).raw(), raw);
        assert_eq!(
            ControlType::of_key(Some(&ControlType::from_raw(raw).key()))
                .unwrap()
                .raw(),
            raw
        );
    }
    for key in [
        None,
        Some(&[][..]),
        Some(&[0, 0, 0]),
        Some(&[0xff, 0, 0, 0]),
    ] {
        assert!(ControlType::of_key(key).is_err());
    }
}

#[test]
fn log_append_time_in_a_built_batch() {
    let mut builder = BatchBuilder::new();
    builder.append(WallMs::new(5), None, None, &[]).unwrap();
    let options = BatchOptions {
        log_append_time: Some(WallMs::new(99)),
        ..Default::default()
    };
    let bytes = builder.finish(&options).unwrap();
    let batch = Batch::parse(&bytes).unwrap();
    assert_eq!(
        batch.header().attributes.timestamp_type(),
        TimestampType::LogAppendTime
    );
    let open = batch.open(0).unwrap();
    assert_eq!(
        open.records().next().unwrap().unwrap().timestamp,
        WallMs::new(99)
    );
}

#[test]
fn a_fetch_answer_may_end_in_a_cut_batch() {
    let mut builder = BatchBuilder::new();
    let mut bytes = Vec::new();
    for _ in 0..3 {
        builder
            .append(WallMs::new(5), None, Some(b"value"), &[])
            .unwrap();
        builder
            .finish_into(&BatchOptions::default(), &mut bytes)
            .unwrap();
    }
    let size = bytes.len() / 3;
    for cut in 0..=bytes.len() {
        let mut batches = Batches::new(&bytes[..cut]);
        assert_eq!(batches.by_ref().filter(Result::is_ok).count(), cut / size);
        assert_eq!(batches.rest().len(), cut % size);
    }
    bytes[size + 16] = 9;
    let results: Vec<_> = Batches::new(&bytes).map(|batch| batch.is_ok()).collect();
    assert_eq!(results, [true, false], "ends after an error");
}
