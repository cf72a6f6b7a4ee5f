use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use highwater_records::{
    BATCH_HEADER_BYTES, Batch, BatchHeader, DECOMPRESSED_BYTES_MAX, TimestampType,
};

use super::fields::{Fields, Printer};
use super::problems::{Kind, Problems};

/// Dumps an offset index and compares it with its log.
pub(super) fn dump_offsets(
    path: &Path,
    name: &str,
    base_offset: i64,
    printer: &mut Printer<'_>,
    problems: &mut Problems,
) -> anyhow::Result<()> {
    let entries = offset_entries(path, base_offset)?;
    if entries.is_empty() {
        return printer.note(&format!("{name} is empty."), "entries", 0);
    }
    let mut log = LogFile::open(path)?;
    for (number, &(offset, position)) in entries.iter().enumerate() {
        // The rest of a file that was not trimmed.
        if offset == base_offset && number > 0 {
            break;
        }
        let found = log.batch_at(position)?;
        if found.is_none() && number == 0 && (offset, position) == (base_offset, 0) {
            // Preallocated and never written: Kafka's tool dies of it.
            return printer.note(&format!("{name} is empty."), "entries", 0);
        }
        let found = found.map_or(-1, |header| header.last_offset().raw());
        if found != offset {
            problems.add(Kind::Mismatch, name, (offset, found));
        }
        let mut fields = Fields::default();
        fields.put("offset", offset).put("position", position);
        printer.entry("index", "", fields)?;
    }
    Ok(())
}

/// Dumps a time index and compares it with its log.
pub(super) fn dump_times(
    path: &Path,
    name: &str,
    base_offset: i64,
    printer: &mut Printer<'_>,
    problems: &mut Problems,
) -> anyhow::Result<()> {
    let bytes = super::read(path)?;
    let offsets = offset_entries(&with_kind(path, "index"), base_offset).unwrap_or_default();
    let mut log = LogFile::open(path)?;
    let mut previous = -1;
    for (number, entry) in bytes.chunks_exact(12).enumerate() {
        let Some((timestamp, relative)) = entry.split_first_chunk::<8>() else {
            break;
        };
        let timestamp = i64::from_be_bytes(*timestamp);
        let relative = relative
            .first_chunk::<4>()
            .map_or(0, |raw| i32::from_be_bytes(*raw));
        let offset = base_offset + i64::from(relative);
        if offset == base_offset && number > 0 {
            break;
        }
        let before = offsets.partition_point(|&(indexed, _)| indexed <= offset);
        let from = before.checked_sub(1).and_then(|at| offsets.get(at));
        match log.batch_with(offset, from.map_or(0, |&(_, position)| position))? {
            Some((last_offset, newest)) if last_offset == offset => {
                if newest != timestamp {
                    problems.add(Kind::Timestamp, name, (timestamp, newest));
                }
                if previous >= timestamp {
                    problems.add(Kind::OutOfOrder, name, (timestamp, previous));
                }
            }
            other => {
                let found = other.map_or(-1, |(last_offset, _)| last_offset);
                problems.add(Kind::NotFound, name, (offset, found));
            }
        }
        let mut fields = Fields::default();
        fields.put("timestamp", timestamp).put("offset", offset);
        printer.entry("timeindex", "", fields)?;
        previous = timestamp;
    }
    Ok(())
}

/// The entries of an offset index: offset and position.
fn offset_entries(path: &Path, base_offset: i64) -> anyhow::Result<Vec<(i64, u64)>> {
    let bytes = super::read(path)?;
    let entries = bytes.chunks_exact(8).filter_map(|entry| {
        let (relative, position) = entry.split_first_chunk::<4>()?;
        let relative = i64::from(i32::from_be_bytes(*relative));
        let position = u32::from_be_bytes(*position.first_chunk::<4>()?);
        Some((base_offset + relative, u64::from(position)))
    });
    Ok(entries.collect())
}

/// The file of the same segment with another ending.
fn with_kind(path: &Path, kind: &str) -> PathBuf {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let digits = name.split('.').next().unwrap_or_default();
    path.with_file_name(format!("{digits}.{kind}"))
}

/// The log that an index belongs to.
#[derive(Debug)]
struct LogFile {
    file: File,
    path: PathBuf,
}

impl LogFile {
    fn open(index: &Path) -> anyhow::Result<Self> {
        let path = with_kind(index, "log");
        let file = File::open(&path).with_context(|| {
            format!(
                "cannot open {}: an index is compared with its log",
                path.display()
            )
        })?;
        Ok(Self { file, path })
    }

    /// The header of the batch at `position`.
    fn batch_at(&mut self, position: u64) -> anyhow::Result<Option<BatchHeader>> {
        self.file.seek(SeekFrom::Start(position))?;
        let mut bytes = Vec::new();
        (&mut self.file)
            .take(BATCH_HEADER_BYTES as u64)
            .read_to_end(&mut bytes)?;
        Ok(BatchHeader::parse(&bytes).ok())
    }

    /// Last offset and newest timestamp of the first batch from `position` on that reaches
    /// `offset`.
    fn batch_with(&mut self, offset: i64, position: u64) -> anyhow::Result<Option<(i64, i64)>> {
        let mut position = position;
        while let Some(header) = self.batch_at(position)? {
            let last_offset = header.last_offset().raw();
            if last_offset >= offset {
                return Ok(Some((last_offset, self.newest(&header, position)?)));
            }
            position += header.size_bytes() as u64;
        }
        Ok(None)
    }

    /// The newest timestamp among a batch's records.
    fn newest(&mut self, header: &BatchHeader, position: u64) -> anyhow::Result<i64> {
        if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
            return Ok(header.max_timestamp.raw());
        }
        self.file.seek(SeekFrom::Start(position))?;
        let mut bytes = Vec::new();
        (&mut self.file)
            .take(header.size_bytes() as u64)
            .read_to_end(&mut bytes)?;
        let broken = || format!("{}: the batch at {position} is broken", self.path.display());
        let batch = Batch::parse(&bytes).with_context(broken)?;
        let mut newest = -1;
        for record in batch
            .open(DECOMPRESSED_BYTES_MAX)
            .with_context(broken)?
            .records()
        {
            newest = newest.max(record.with_context(broken)?.timestamp.raw());
        }
        Ok(newest)
    }
}
