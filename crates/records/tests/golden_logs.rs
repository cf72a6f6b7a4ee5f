//! Reads every log and snapshot that Apache Kafka 4.4 left in the fixtures, and compares with what
//! Kafka's own DumpLogSegments printed for it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use highwater_records::{
    Batch, Batches, Compression, ControlRecord, ControlType, DECOMPRESSED_BYTES_MAX,
    EndTransactionMarker, Record, TimestampType,
};

#[test]
fn every_log_lists_as_kafka_dumps_it() {
    let (mut logs, mut dumped, mut batches) = (0, 0, 0);
    for set in highwater_fixtures::KAFKA_DATA_SETS {
        let files = highwater_fixtures::kafka_data(set);
        for (path, bytes) in &files {
            let Some(dump) = dump_path(path) else {
                continue;
            };
            let name = format!("{set}/{}", path.display());
            logs += 1;
            match files.get(&dump) {
                Some(text) => {
                    dumped += 1;
                    batches += compare(&name, bytes, &String::from_utf8_lossy(text));
                }
                None => batches += read_all(&name, bytes),
            }
        }
    }
    assert!(logs > 200, "{logs} logs");
    assert!(dumped > 100, "{dumped} of them with a dump");
    assert!(batches > 2000, "{batches} batches");
}

/// Where the dump of a log or snapshot is; `None` for other files.
fn dump_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.trim_end_matches(".deleted");
    let is_log = name.ends_with(".log") || name.ends_with(".checkpoint");
    let inner = path.strip_prefix("data").ok().filter(|_| is_log)?;
    let mut dump = Path::new("dump").join(inner).into_os_string();
    dump.push(".dump.txt");
    Some(dump.into())
}

/// Reads every record of a log without a dump; how many batches there are.
fn read_all(name: &str, bytes: &[u8]) -> usize {
    let mut batches = Batches::new(bytes);
    let mut count = 0;
    for batch in batches.by_ref() {
        let batch = batch.unwrap_or_else(|why| panic!("{name}: {why}"));
        batch
            .check_crc()
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        let open = batch.open(DECOMPRESSED_BYTES_MAX).unwrap();
        for record in open.records() {
            record.unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        count += 1;
    }
    assert!(
        batches.rest().is_empty(),
        "{name}: {} bytes left",
        batches.rest().len()
    );
    count
}

/// Walks through the dump with what we read: each line must be there, in order.
fn compare(name: &str, bytes: &[u8], dump: &str) -> usize {
    let mut dump = Dump { name, rest: dump };
    dump.skip_line();
    if !name.ends_with(".checkpoint") && !name.ends_with(".checkpoint.deleted") {
        dump.expect("Log starting offset: ");
    } else {
        dump.expect("Snapshot end offset: ");
    }
    dump.skip_line();
    let mut position = 0;
    let mut count = 0;
    let mut batches = Batches::new(bytes);
    for batch in batches.by_ref() {
        let batch = batch.unwrap_or_else(|why| panic!("{name}: {why}"));
        dump.expect(&batch_line(&batch, position));
        dump.expect("\n");
        let open = batch.open(DECOMPRESSED_BYTES_MAX).unwrap();
        for record in open.records() {
            let record = record.unwrap_or_else(|why| panic!("{name}: {why}"));
            compare_record(&mut dump, &batch, &record);
        }
        position += batch.size_bytes();
        count += 1;
    }
    assert!(
        batches.rest().is_empty(),
        "{name}: {} bytes left",
        batches.rest().len()
    );
    assert!(
        !dump.rest.starts_with("baseOffset"),
        "{name}: Kafka sees more: {}",
        dump.rest
    );
    count
}

struct Dump<'a> {
    name: &'a str,
    rest: &'a str,
}

impl Dump<'_> {
    fn expect(&mut self, text: &str) {
        let Some(rest) = self.rest.strip_prefix(text) else {
            let there: String = self.rest.chars().take(text.len() + 20).collect();
            panic!("{}\n expected: {text}\n in dump:  {there}", self.name);
        };
        self.rest = rest;
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
}

fn batch_line(batch: &Batch<'_>, position: usize) -> String {
    let header = batch.header();
    let horizon = match header.delete_horizon() {
        Some(horizon) => format!("OptionalLong[{horizon}]"),
        None => "OptionalLong.empty".to_owned(),
    };
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} \
         producerId: {} producerEpoch: {} partitionLeaderEpoch: {} isTransactional: {} \
         isControl: {} deleteHorizonMs: {horizon} position: {position} {}: {} size: {} magic: {} \
         compresscodec: {} crc: {} isvalid: {}",
        header.base_offset,
        header.last_offset(),
        header.record_count,
        header.base_sequence,
        header.last_sequence(),
        header.producer_id,
        header.producer_epoch,
        header.leader_epoch,
        header.attributes.is_transactional(),
        header.attributes.is_control(),
        header.attributes.timestamp_type().name(),
        header.max_timestamp,
        batch.size_bytes(),
        header.magic,
        header.attributes.compression().unwrap(),
        header.crc,
        batch.check_crc().is_ok(),
    )
}

fn compare_record(dump: &mut Dump<'_>, batch: &Batch<'_>, record: &Record<'_>) {
    let size = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap());
    let keys: Vec<_> = record
        .headers()
        .map(|(key, _)| String::from_utf8_lossy(key).into_owned())
        .collect();
    dump.expect(&format!(
        "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}]",
        record.offset,
        batch.header().attributes.timestamp_type().name(),
        record.timestamp,
        size(record.key),
        size(record.value),
        record.sequence,
        keys.join(","),
    ));
    if batch.header().attributes.is_control() {
        dump.expect(&control_text(record));
        dump.skip_line();
    } else if dump.name.contains("/__") {
        // Kafka decoded these; the tests of `stored` look at them.
        dump.skip_line();
    } else {
        let mut text = String::new();
        if let Some(key) = record.key {
            write!(text, " key: {}", String::from_utf8_lossy(key)).unwrap();
        }
        if let Some(value) = record.value {
            write!(text, " payload: {}", String::from_utf8_lossy(value)).unwrap();
        }
        if text.contains(char::REPLACEMENT_CHARACTER) {
            // Java and Rust replace damaged UTF-8 by different numbers of characters.
            let next = dump.rest.find("\nbaseOffset: ").into_iter();
            let next = next
                .chain(dump.rest.find("\n| offset: "))
                .min()
                .unwrap_or(dump.rest.len());
            let (there, rest) = dump.rest.split_at(next);
            let there = there.strip_suffix("\n").unwrap_or(there);
            assert_eq!(fold_replaced(there), fold_replaced(&text), "{}", dump.name);
            dump.rest = rest;
            dump.rest = dump.rest.strip_prefix('\n').unwrap_or(dump.rest);
            return;
        } else {
            dump.expect(&text);
        }
        dump.expect("\n");
    }
}

fn control_text(record: &Record<'_>) -> String {
    if let Some(marker) = EndTransactionMarker::of(record).unwrap() {
        let kind = if marker.committed { "COMMIT" } else { "ABORT" };
        return format!(
            " endTxnMarker: {kind} coordinatorEpoch: {}",
            marker.coordinator_epoch
        );
    }
    match ControlRecord::of(record).unwrap().control_type {
        ControlType::LeaderChange => " LeaderChange: {",
        ControlType::SnapshotHeader => " SnapshotHeader {",
        ControlType::SnapshotFooter => " SnapshotFooter {",
        ControlType::KraftVersion => " KRaftVersion {",
        ControlType::KraftVoters => " KRaftVoters {",
        other => panic!("not in a log of Kafka's: {other:?}"),
    }
    .to_owned()
}

fn fold_replaced(text: &str) -> String {
    let mut folded = String::new();
    for character in text.chars() {
        if character != char::REPLACEMENT_CHARACTER || !folded.ends_with(character) {
            folded.push(character);
        }
    }
    folded
}

#[test]
fn all_five_codecs_and_log_append_time_are_in_the_fixtures() {
    let files = highwater_fixtures::kafka_data("one-node-clean");
    let codecs = &files[Path::new("data/codecs-0/00000000000000000000.log")];
    let seen: Vec<_> = Batches::new(codecs)
        .map(|batch| batch.unwrap().header().attributes.compression().unwrap())
        .collect();
    assert_eq!(seen, Compression::ALL);

    let log = &files[Path::new("data/logappend-0/00000000000000000000.log")];
    for batch in Batches::new(log) {
        let batch = batch.unwrap();
        let header = batch.header();
        assert_eq!(
            header.attributes.timestamp_type(),
            TimestampType::LogAppendTime
        );
        assert!(
            header.base_timestamp < header.max_timestamp,
            "Kafka leaves the base as it was"
        );
    }
}

#[test]
fn times_are_visited_as_records_give_them() {
    let files = highwater_fixtures::kafka_data("one-node-clean");
    for (path, bytes) in &files {
        if dump_path(path).is_none() {
            continue;
        }
        for batch in Batches::new(bytes) {
            let batch = batch.unwrap();
            let open = batch.open(DECOMPRESSED_BYTES_MAX).unwrap();
            let mut records = open.records();
            let stopped = batch.visit_times(DECOMPRESSED_BYTES_MAX, |time| {
                let record = records.next().unwrap().unwrap();
                assert_eq!(
                    (time.offset, time.timestamp),
                    (record.offset, record.timestamp)
                );
                std::ops::ControlFlow::<()>::Continue(())
            });
            assert_eq!(stopped, Ok(None));
            assert!(records.next().is_none());
        }
    }
}
