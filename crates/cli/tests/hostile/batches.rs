//! B-16 to B-27 and trap 37: batches that no honest client sends, each beside a good one in the
//! same request. The good one is appended, of the bad one nothing is.

use bytes::Bytes;
use highwater_protocol::messages::ProduceResponse;
use highwater_records::varint::{put_varint, put_varlong};
use highwater_records::{
    Attributes, BATCH_HEADER_BYTES, BatchBuilder, BatchHeader, BatchOptions, Compression,
    Compressor, ControlType, ProducerStamp,
};
use highwater_types::{ErrorCode, ProducerEpoch, ProducerId, WallMs};

use crate::support::{Client, Node, batch};
use crate::{assert_serves, log_end_offset, node, produce, produce_named};

/// A time that is always past.
const TIME: WallMs = WallMs::new(1_700_000_000_000);

/// A record's bytes, length in front.
fn record(offset_delta: i32, timestamp_delta: i64, fields: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    put_varlong(&mut body, timestamp_delta);
    put_varint(&mut body, offset_delta);
    body.extend(fields);
    let mut out = Vec::new();
    put_varint(&mut out, i32::try_from(body.len()).expect("small"));
    out.extend(body);
    out
}

/// Null key, null value, no header.
const PLAIN: &[u8] = &[1, 1, 0];

fn plain(count: i32) -> Vec<u8> {
    (0..count)
        .flat_map(|delta| record(delta, 0, PLAIN))
        .collect()
}

/// A batch around `records` whose length and checksum are right, whatever else is said.
pub(crate) fn around(records: &[u8], count: i32, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let good = batch(&["x"]);
    let mut header = BatchHeader::parse(&good).expect("a batch");
    header.batch_length = i32::try_from(BATCH_HEADER_BYTES - 12 + records.len()).expect("small");
    header.record_count = count;
    header.last_offset_delta = count - 1;
    header.base_timestamp = TIME;
    header.max_timestamp = TIME;
    change(&mut header);
    let header = header.with_crc_over(records);
    [header.encode().as_slice(), records].concat().into()
}

pub(crate) fn compressed(codec: Compression, block: &[u8], count: i32) -> Bytes {
    around(block, count, |header| {
        header.attributes = header.attributes.with_compression(codec);
    })
}

fn squeezed(codec: Compression, records: &[u8], count: i32) -> Bytes {
    let mut block = Vec::new();
    Compressor::new(codec)
        .compress(records, &mut block)
        .expect("small");
    compressed(codec, &block, count)
}

const PACKED: [Compression; 4] = [
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

/// Sends each bad batch beside a good one; asserts code, and that only the good one is appended.
struct Bench {
    _root: tempfile::TempDir,
    node: Node,
    client: Client,
    good: i64,
}

impl Bench {
    fn new() -> Self {
        let (root, node) = node(&[]);
        let mut client = node.connect();
        client.create_topic("t", 2, &[]);
        Self {
            _root: root,
            node,
            client,
            good: 0,
        }
    }

    #[track_caller]
    fn refuses(&mut self, what: &str, records: impl Into<Bytes>, codes: &[ErrorCode]) {
        self.refuses_at(12, what, records, codes);
    }

    #[track_caller]
    fn refuses_at(
        &mut self,
        version: i16,
        what: &str,
        records: impl Into<Bytes>,
        codes: &[ErrorCode],
    ) {
        let rows = [(0, Some(batch(&["good"]))), (1, Some(records.into()))];
        let answer: ProduceResponse = self.client.call(0, version, &produce_named("t", -1, &rows));
        let rows = &answer.responses[0].partition_responses;
        assert_eq!(
            (rows[0].error_code, rows[0].base_offset),
            (ErrorCode::NONE, self.good)
        );
        self.good += 1;
        assert!(codes.contains(&rows[1].error_code), "{what}: {:?}", rows[1]);
        assert_eq!(rows[1].base_offset, -1, "{what}");
    }

    /// Asserts that nothing of all that was appended.
    fn end(mut self) {
        assert_eq!(
            log_end_offset(&mut self.client, "t", 1),
            0,
            "nothing is appended in part"
        );
        let log = self._root.path().join("data/t-1/00000000000000000000.log");
        assert_eq!(std::fs::metadata(log).expect("there").len(), 0);
        assert_eq!(log_end_offset(&mut self.client, "t", 0), self.good);
        assert_eq!(
            produce(&mut self.client, "t", 1, batch(&["now good"])),
            (ErrorCode::NONE, 0)
        );
        assert_serves(&self.node);
    }
}

const INVALID: &[ErrorCode] = &[ErrorCode::INVALID_RECORD];
const CORRUPT: &[ErrorCode] = &[ErrorCode::CORRUPT_MESSAGE];

#[test]
fn b_16_lengths_that_lie() {
    let mut bench = Bench::new();
    let good = around(&plain(3), 3, |_| ());
    let with_length = |length: i32| {
        let mut bytes = good.to_vec();
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes
    };
    for length in [i32::MIN, -1, 0, 48] {
        bench.refuses(
            "too short",
            with_length(length),
            &[INVALID, CORRUPT].concat(),
        );
    }
    for length in [i32::MAX, 1000] {
        bench.refuses("longer than the field", with_length(length), INVALID);
    }
    for cut in [0, 1, 11, 12, 16, 17, 60, 61, good.len() - 1] {
        bench.refuses("cut", good.slice(..cut), INVALID);
    }
    bench.end();
}

#[test]
fn b_17_one_bit_under_the_checksum() {
    let mut bench = Bench::new();
    let good = around(&plain(3), 3, |_| ());
    for at in [17, 20, 23, 30, 45, 60, 61, good.len() - 1] {
        let mut bad = good.to_vec();
        bad[at] ^= 0x10;
        bench.refuses("one bit", bad, CORRUPT);
    }
    bench.end();
}

#[test]
fn b_18_and_b_19_counts_that_fit_neither_offsets_nor_records() {
    let mut bench = Bench::new();
    for (count, last_offset_delta) in [
        (2, 2),
        (2, 0),
        (0, -1),
        (0, 0),
        (-1, -2),
        (i32::MAX, i32::MAX),
        (i32::MIN, 1),
    ] {
        let bad = around(&plain(2), 2, |header| {
            header.record_count = count;
            header.last_offset_delta = last_offset_delta;
        });
        bench.refuses(&format!("{count} {last_offset_delta}"), bad, INVALID);
    }
    for codec in PACKED.into_iter().chain([Compression::None]) {
        for (records, count) in [(3, 2), (2, 3), (1, 1_000_000), (1, i32::MAX)] {
            let bad = squeezed(codec, &plain(records), count);
            bench.refuses(&format!("{codec} {records} {count}"), bad, INVALID);
        }
    }
    bench.end();
}

#[test]
fn b_20_and_b_21_records_and_headers_that_lie() {
    let mut bench = Bench::new();
    for codec in PACKED.into_iter().chain([Compression::None]) {
        for length in [-1, 0, 1, 5, 2000, i32::MIN, i32::MAX] {
            let mut records = Vec::new();
            put_varint(&mut records, length);
            records.extend(&record(0, 0, PLAIN)[1..]);
            let bad = squeezed(codec, &records, 1);
            bench.refuses(&format!("{codec} record of {length}"), bad, INVALID);
        }
        for (count, headers) in [
            (-1, &[][..]),
            (i32::MAX, &[0, 0, 0, 0]),
            (1, &[1, 1]),
            (2, &[2, b'k', 1]),
        ] {
            let mut fields = vec![1, 1];
            put_varint(&mut fields, count);
            fields.extend(headers);
            let bad = squeezed(codec, &record(0, 0, &fields), 1);
            bench.refuses(&format!("{codec} {count} headers"), bad, INVALID);
        }
    }
    // Null and empty records: Kafka 4.4 never answers the first.
    let rows = [(0, Some(batch(&["good"]))), (1, None)];
    let answer: ProduceResponse = bench.client.call(0, 12, &produce_named("t", -1, &rows));
    let code = answer.responses[0].partition_responses[1].error_code;
    assert_eq!(code, ErrorCode::INVALID_RECORD);
    bench.good += 1;
    bench.end();
}

#[test]
fn b_22_deltas_that_do_not_count_up() {
    let mut bench = Bench::new();
    for codec in PACKED.into_iter().chain([Compression::None]) {
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
            bench.refuses(
                &format!("{codec} {deltas:?}"),
                squeezed(codec, &records, 3),
                INVALID,
            );
        }
        let overflow = squeezed(codec, &record(0, i64::MAX, PLAIN), 1);
        bench.refuses(
            "timestamp",
            overflow,
            &[INVALID, &[ErrorCode::INVALID_TIMESTAMP]].concat(),
        );
    }
    bench.end();
}

#[test]
fn b_23_and_b_24_other_formats_two_batches_and_control() {
    let mut bench = Bench::new();
    let good = around(&plain(1), 1, |_| ());
    let with_magic = |magic: u8| {
        let mut bytes = good.to_vec();
        bytes[16] = magic;
        bytes
    };
    for magic in [0, 1] {
        bench.refuses("old magic", with_magic(magic), INVALID);
    }
    for magic in [3, 0x7f, 0xff] {
        bench.refuses("unknown magic", with_magic(magic), CORRUPT);
    }
    bench.refuses("two batches", [good.as_ref(), &good].concat(), INVALID);
    bench.refuses(
        "mixed magic",
        [good.as_ref(), &with_magic(1)].concat(),
        INVALID,
    );
    let mut builder = BatchBuilder::new();
    builder
        .append_control(TIME, ControlType::Commit, &[0; 6])
        .expect("small");
    let options = BatchOptions {
        control: true,
        ..BatchOptions::default()
    };
    bench.refuses("control", builder.finish(&options).expect("small"), INVALID);
    let bad = around(&plain(1), 1, |header| {
        header.base_offset = highwater_types::Offset::new(5)
    });
    bench.refuses("base offset", bad, INVALID);
    bench.end();
}

#[test]
fn b_26_snappy_chunks_that_lie() {
    let mut bench = Bench::new();
    let xerial = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".as_slice();
    for length in [i32::MAX, -1, i32::MIN, 3, 1000] {
        let block = [xerial, &length.to_be_bytes(), &[0, 0]].concat();
        bench.refuses("chunk", compressed(Compression::Snappy, &block, 1), CORRUPT);
    }
    // A raw block that claims to hold 3.9 GiB.
    let claims = compressed(
        Compression::Snappy,
        &[0xff, 0xff, 0xff, 0xff, 0x0e, 0, b'x'],
        1,
    );
    let large = &[ErrorCode::MESSAGE_TOO_LARGE];
    bench.refuses("claim", claims, &[CORRUPT, large].concat());
    bench.end();
}

#[test]
fn b_27_unknown_codecs_old_zstd_and_cut_frames() {
    let mut bench = Bench::new();
    let unsupported = &[ErrorCode::UNSUPPORTED_COMPRESSION_TYPE];
    for id in 5..8 {
        let bad = around(&plain(1), 1, |header| {
            header.attributes = Attributes::new(id)
        });
        bench.refuses("codec", bad, unsupported);
    }
    let zstd = squeezed(Compression::Zstd, &plain(1), 1);
    for version in 3..7 {
        bench.refuses_at(version, "zstd before v7", zstd.clone(), unsupported);
    }
    let noise: Vec<u8> = (0..9000_u32)
        .flat_map(|n| n.wrapping_mul(n).to_be_bytes())
        .collect();
    let mut builder = BatchBuilder::new();
    builder
        .append(TIME, None, Some(&noise), &[])
        .expect("small");
    let records = builder.finish(&BatchOptions::default()).expect("small");
    for codec in PACKED {
        let mut block = Vec::new();
        Compressor::new(codec)
            .compress(&records[BATCH_HEADER_BYTES..], &mut block)
            .expect("small");
        for cut in [0, 3, 10, block.len() / 2, block.len() - 1] {
            let bad = compressed(codec, &block[..cut], 1);
            bench.refuses(
                &format!("{codec} cut at {cut}"),
                bad,
                &[CORRUPT, INVALID].concat(),
            );
        }
    }
    bench.end();
}

#[test]
fn b_31_producer_ids_without_the_rest() {
    let mut bench = Bench::new();
    let with = |id: i64, epoch: i16, base_sequence: i32| {
        let mut builder = BatchBuilder::new();
        builder.append(TIME, None, None, &[]).expect("small");
        let producer = ProducerStamp {
            id: ProducerId::new(id),
            epoch: ProducerEpoch::new(epoch),
            base_sequence,
        };
        let options = BatchOptions {
            producer,
            ..Default::default()
        };
        builder.finish(&options).expect("small")
    };
    bench.refuses("no sequence", with(9, 0, -1), INVALID);
    bench.refuses(
        "no epoch",
        with(9, -1, 0),
        &[ErrorCode::INVALID_PRODUCER_EPOCH],
    );
    bench.end();
}

#[test]
fn trap_37_size_limits_and_keys_of_compacted_topics() {
    let (_root, node) = node(&[]);
    let mut client = node.connect();
    client.create_topic("small", 1, &[("max.message.bytes", "200")]);
    let large = batch(&["x".repeat(300)]);
    assert_eq!(
        produce(&mut client, "small", 0, large).0,
        ErrorCode::MESSAGE_TOO_LARGE
    );
    assert_eq!(
        produce(&mut client, "small", 0, batch(&["fits"])),
        (ErrorCode::NONE, 0)
    );
    client.create_topic("compact", 1, &[("cleanup.policy", "compact")]);
    let rows = [(0, Some(batch(&["a", "b"])))];
    let answer: ProduceResponse = client.call(0, 12, &produce_named("compact", -1, &rows));
    let row = &answer.responses[0].partition_responses[0];
    assert_eq!(row.error_code, ErrorCode::INVALID_RECORD);
    let named: Vec<i32> = row.record_errors.iter().map(|it| it.batch_index).collect();
    assert_eq!(named, [0, 1], "each record is named (KIP-467)");
    // The default limit of the broker is Kafka's.
    client.topic("t");
    let large = batch(&["x".repeat(1_048_588)]);
    assert_eq!(
        produce(&mut client, "t", 0, large).0,
        ErrorCode::MESSAGE_TOO_LARGE
    );
}
