//! Every stored record in the internal topics that Apache Kafka 4.4 left in the fixtures decodes,
//! encodes back to the same bytes, and shows as the JSON that Kafka's own DumpLogSegments printed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::Path;

use highwater_fixtures::{KAFKA_DATA_SETS, kafka_data};
use highwater_records::stored::data::{
    KRaftVersionRecord, LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord,
    VotersRecord,
};
use highwater_records::stored::{
    GroupRecord, MetadataRecord, ShareRecord, TransactionRecord, dump_control,
};
use highwater_records::wire::Message;
use highwater_records::{Batches, ControlType, DECOMPRESSED_BYTES_MAX, Record};

/// How often each kind of record was seen.
type Seen = BTreeMap<String, usize>;

#[test]
fn every_stored_record_is_kafkas() {
    let mut seen = Seen::new();
    for set in KAFKA_DATA_SETS {
        let files = kafka_data(set);
        for (path, bytes) in &files {
            let Some(show) = shower(path) else { continue };
            let shown = show_log(bytes, show, &mut seen);
            let name = path.file_name().unwrap().to_str().unwrap();
            let mut dump = Path::new("dump").join(path.strip_prefix("data").unwrap());
            dump.set_file_name(format!("{name}.dump.txt"));
            if let Some(text) = files.get(&dump) {
                let expected = std::str::from_utf8(text).unwrap();
                compare(&format!("{set}/{}", path.display()), &shown, expected);
                *seen.entry("dumps".into()).or_default() += 1;
            }
        }
    }
    println!("{seen:#?}");
    assert!(seen["dumps"] >= 20, "{seen:#?}");
    for id in [
        0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 14, 15, 17, 18, 19, 20, 22, 23, 24, 26, 27, 28,
    ] {
        assert!(
            seen.contains_key(&format!("metadata {id}")),
            "{id}: {seen:#?}"
        );
    }
    for id in [1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16] {
        assert!(seen.contains_key(&format!("group {id}")), "{id}: {seen:#?}");
    }
    for other in [
        "transaction 0",
        "share 0",
        "share 1",
        "control 2",
        "control 6",
    ] {
        assert!(seen.contains_key(other), "{other}: {seen:#?}");
    }
}

/// Shows a record as the end of its line in a dump; checks that it encodes back.
type Show = fn(&Record<'_>, &mut Seen) -> String;

fn shower(path: &Path) -> Option<Show> {
    // What was cut off or expired waits for its deletion under another name.
    let name = path.file_name()?.to_str()?.trim_end_matches(".deleted");
    let folder = path.parent()?.file_name()?.to_str()?;
    if !path.starts_with("data") || !(name.ends_with(".log") || name.ends_with(".checkpoint")) {
        return None;
    }
    Some(match folder.rsplit_once('-')?.0 {
        "__cluster_metadata" => show_metadata,
        "__consumer_offsets" => show_group,
        "__transaction_state" => show_transaction,
        "__share_group_state" => show_share,
        _ => return None,
    })
}

fn show_log(bytes: &[u8], show: Show, seen: &mut Seen) -> Vec<(i64, String)> {
    let mut shown = Vec::new();
    for batch in Batches::new(bytes) {
        let open = batch.unwrap().open(DECOMPRESSED_BYTES_MAX).unwrap();
        for record in open.records() {
            let record = record.unwrap();
            let text = if open.header().attributes.is_control() {
                show_control(&record, seen)
            } else {
                show(&record, seen)
            };
            shown.push((record.offset.raw(), text));
        }
    }
    shown
}

fn show_metadata(record: &Record<'_>, seen: &mut Seen) -> String {
    let value = record.value.unwrap();
    let (decoded, version) = MetadataRecord::decode_value(value).unwrap();
    assert_eq!(decoded.encode_value(version).unwrap(), value);
    assert_eq!(decoded.usual_version(), version, "{decoded:?}");
    *seen
        .entry(format!("metadata {}", decoded.id()))
        .or_default() += 1;
    format!("payload: {}", decoded.to_json(version))
}

macro_rules! show_coordinator {
    ($name:ident, $record:ident, $kind:literal) => {
        fn $name(record: &Record<'_>, seen: &mut Seen) -> String {
            let key = record.key.unwrap();
            let (decoded, version) = $record::decode(key, record.value)
                .unwrap_or_else(|why| panic!("{why}: {key:?} {:?}", record.value));
            let (key_again, value_again) = decoded.encode(version).unwrap();
            assert_eq!(
                (key_again.as_ref(), value_again.as_deref()),
                (key, record.value)
            );
            *seen
                .entry(format!("{} {}", $kind, decoded.id()))
                .or_default() += 1;
            let dumped = decoded.dump(version);
            let payload = dumped
                .payload
                .map_or("<DELETE>".into(), |it| it.to_string());
            format!("key: {} payload: {payload}", dumped.key)
        }
    };
}

show_coordinator!(show_group, GroupRecord, "group");
show_coordinator!(show_transaction, TransactionRecord, "transaction");
show_coordinator!(show_share, ShareRecord, "share");

fn show_control(record: &Record<'_>, seen: &mut Seen) -> String {
    let control_type = ControlType::of_key(record.key).unwrap();
    let value = record.value.unwrap();
    *seen
        .entry(format!("control {}", control_type.raw()))
        .or_default() += 1;
    match control_type {
        ControlType::LeaderChange => encodes_back::<LeaderChangeMessage>(value),
        ControlType::SnapshotHeader => encodes_back::<SnapshotHeaderRecord>(value),
        ControlType::SnapshotFooter => encodes_back::<SnapshotFooterRecord>(value),
        ControlType::KraftVersion => encodes_back::<KRaftVersionRecord>(value),
        ControlType::KraftVoters => encodes_back::<VotersRecord>(value),
        ControlType::Abort | ControlType::Commit => return "endTxnMarker: ".into(),
        ControlType::Unknown(raw) => panic!("control type {raw}"),
    }
    let (label, json) = dump_control(control_type, value).unwrap().unwrap();
    format!("{label} {json}")
}

/// The value says its version in its first field.
fn encodes_back<M: Message>(value: &[u8]) {
    let version = i16::from_be_bytes(*value.first_chunk().unwrap());
    let decoded = M::from_stored(value, version).unwrap();
    assert_eq!(decoded.to_bytes(version).unwrap(), value, "{}", M::NAME);
}

/// Each record's line in the dump ends with, or for markers has, what is shown.
fn compare(name: &str, shown: &[(i64, String)], dump: &str) {
    let lines: Vec<&str> = dump
        .lines()
        .filter(|line| line.starts_with("| offset: "))
        .collect();
    assert_eq!(lines.len(), shown.len(), "{name}");
    for (line, (offset, shown)) in lines.iter().zip(shown) {
        assert!(
            line.starts_with(&format!("| offset: {offset} ")),
            "{name}: {line}"
        );
        assert!(
            line.ends_with(shown.as_str()) || shown == "endTxnMarker: " && line.contains(shown),
            "{name}\n{line}\n{shown}"
        );
    }
}
