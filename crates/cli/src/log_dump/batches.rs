use std::io::Read;

use anyhow::Context as _;
use highwater_records::{
    BATCH_HEADER_BYTES, Batch, BatchHeader, DECOMPRESSED_BYTES_MAX, Record, TimestampType,
};
use serde_json::Value;

use super::DumpOptions;
use super::decode::put_control;
use super::fields::{Fields, Printer};
use super::problems::{Kind, Problems};

/// Dumps a file of record batches.
pub(super) fn dump(
    mut file: impl Read,
    name: &str,
    options: DumpOptions,
    printer: &mut Printer<'_>,
    problems: &mut Problems,
) -> anyhow::Result<()> {
    let mut position = 0;
    let mut last_offset = -1;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let header = next_header(&mut file, &mut bytes)
            .with_context(|| format!("cannot read {name} at position {position}"))?;
        let Some(header) = header else { break };
        // `take` lets the buffer grow with what is really there.
        let body = (header.size_bytes() - BATCH_HEADER_BYTES) as u64;
        let got = file.by_ref().take(body).read_to_end(&mut bytes)?;
        if (got as u64) < body {
            break;
        }
        let batch = Batch::parse(&bytes).with_context(|| at(name, position))?;
        printer.entry("batch", "", batch_fields(&batch, position))?;
        if options.deep {
            let open = batch
                .open(DECOMPRESSED_BYTES_MAX)
                .with_context(|| at(name, position))?;
            for record in open.records() {
                let record = record.with_context(|| at(name, position))?;
                let offset = record.offset.raw();
                if offset != last_offset + 1 {
                    problems.add(Kind::NonConsecutive, name, (last_offset, offset));
                }
                last_offset = offset;
                printer.entry("record", "| ", record_fields(&batch, &record, options))?;
            }
        }
        position += bytes.len() as u64;
        bytes.clear();
    }
    let rest = std::io::copy(&mut file, &mut std::io::sink())?;
    let trailing = bytes.len() as u64 + rest;
    if trailing > 0 {
        let text = format!("Found {trailing} invalid bytes at the end of {name}");
        printer.note(&text, "invalidBytesAtEnd", i64::try_from(trailing)?)?;
    }
    Ok(())
}

fn at(name: &str, position: u64) -> String {
    format!("{name}: the batch at position {position} is broken; `log verify` says more")
}

/// Reads the next header into `bytes`. `None` at the end, or when what is there is no batch.
fn next_header(file: &mut impl Read, bytes: &mut Vec<u8>) -> anyhow::Result<Option<BatchHeader>> {
    file.by_ref()
        .take(BATCH_HEADER_BYTES as u64)
        .read_to_end(bytes)?;
    Ok(BatchHeader::parse(bytes).ok())
}

fn batch_fields(batch: &Batch<'_>, position: u64) -> Fields {
    let header = batch.header();
    let attributes = header.attributes;
    let mut fields = Fields::default();
    fields
        .put("baseOffset", header.base_offset.raw())
        .put("lastOffset", header.last_offset().raw())
        .put("count", header.record_count)
        .put("baseSequence", header.base_sequence)
        .put("lastSequence", header.last_sequence())
        .put("producerId", header.producer_id.raw())
        .put("producerEpoch", header.producer_epoch.raw())
        .put("partitionLeaderEpoch", header.leader_epoch.raw())
        .put("isTransactional", attributes.is_transactional())
        .put("isControl", attributes.is_control());
    match header.delete_horizon() {
        Some(at) => {
            let text = format!("OptionalLong[{at}]");
            fields.put_as("deleteHorizonMs", &text, at.raw().into());
        }
        None => {
            fields.put_as("deleteHorizonMs", "OptionalLong.empty", Value::Null);
        }
    }
    let codec = attributes
        .compression()
        .map_or("unknown", |codec| codec.name());
    fields
        .put("position", position)
        .put(
            attributes.timestamp_type().name(),
            header.max_timestamp.raw(),
        )
        .put("size", batch.size_bytes())
        .put("magic", header.magic)
        .put("compresscodec", codec)
        .put("crc", header.crc)
        .put("isvalid", batch.check_crc().is_ok());
    fields
}

fn record_fields(batch: &Batch<'_>, record: &Record<'_>, options: DumpOptions) -> Fields {
    let mut fields = Fields::default();
    let size = |bytes: Option<&[u8]>| {
        bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX))
    };
    let attributes = batch.header().attributes;
    if options.record_metadata {
        let time: TimestampType = attributes.timestamp_type();
        fields
            .put("offset", record.offset.raw())
            .put(time.name(), record.timestamp.raw())
            .put("keySize", size(record.key))
            .put("valueSize", size(record.value))
            .put("sequence", record.sequence);
        let keys: Vec<String> = record
            .headers()
            .map(|(key, _)| String::from_utf8_lossy(key).into_owned())
            .collect();
        let text = format!("[{}]", keys.join(","));
        fields.put_as("headerKeys", &text, keys.into());
        if attributes.is_control() {
            put_control(record, &mut fields);
        }
    }
    if options.contents && !attributes.is_control() {
        options.decoder.put_contents(record, &mut fields);
    }
    fields
}
