use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::{SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord};
use highwater_records::wire::Message as _;
use highwater_records::{
    BatchBuilder, BatchHeader, BatchOptions, Batches, ControlRecord, ControlType,
};
use highwater_types::{LeaderEpoch, Offset, WallMs};

use crate::batch::{
    BatchFault, BatchRecord, BatchReplayError, BuildBatchError, QuorumRecord, UNPACKED_BYTES_MAX,
    append_quorum_record, encode_value, visit_batch,
};

/// Records and bytes per data batch of a snapshot.
const BATCH_RECORDS_MAX: i32 = 1024;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// What a snapshot says beside metadata records.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotControl {
    /// The time of the last record that the snapshot contains.
    pub last_contained_timestamp: WallMs,
    /// kraft.version, when the snapshot says.
    pub kraft_version: Option<i16>,
    /// The voters, when the snapshot says.
    pub voters: Option<VotersRecord>,
}

/// A snapshot file that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SnapshotError {
    /// The first record is no header.
    #[error("it does not begin with a snapshot header")]
    NoHeader,
    /// The last record is no footer: the file was not written to its end.
    #[error("it does not end with a snapshot footer")]
    NoFooter,
    /// Something comes after the footer, or the last batch is cut.
    #[error("{0} bytes at its end are not part of it")]
    Trailing(usize),
    /// A batch of it cannot be applied.
    #[error(transparent)]
    Batch(#[from] BatchReplayError),
}

/// Reads a metadata snapshot: the content of a `.checkpoint` file. Every metadata record goes to
/// `visit`.
///
/// Layout: one control batch with a snapshot header, and in a quorum that keeps its voters in the
/// log kraft.version and the voters; batches of records; one control batch with a footer. Offsets
/// in it only count the records of the file.
///
/// # Errors
/// When the file is not whole, or a record of it is refused.
pub fn read_snapshot(
    bytes: &[u8],
    mut visit: impl FnMut(MetadataRecord) -> Result<(), BatchFault>,
) -> Result<SnapshotControl, SnapshotError> {
    let mut control: Option<SnapshotControl> = None;
    let mut footer = false;
    let mut batches = Batches::new(bytes);
    for batch in batches.by_ref() {
        let batch = batch.map_err(|why| {
            SnapshotError::Batch(BatchReplayError {
                offset: Offset::ZERO,
                what: why.into(),
            })
        })?;
        if footer {
            return Err(SnapshotError::Trailing(batch.size_bytes()));
        }
        if control.is_none() {
            control = Some(header_of(&batch)?);
        }
        visit_batch(&batch, |_, record| {
            match (record, &mut control) {
                (BatchRecord::Data(record), _) => return visit(record),
                (BatchRecord::Quorum(QuorumRecord::KraftVersion(level)), Some(control)) => {
                    control.kraft_version = Some(level);
                }
                (BatchRecord::Quorum(QuorumRecord::Voters(voters)), Some(control)) => {
                    control.voters = Some(voters);
                }
                (BatchRecord::Skipped(ControlType::SnapshotFooter), _) => footer = true,
                _ => {}
            }
            Ok(())
        })?;
    }
    if !batches.rest().is_empty() {
        return Err(SnapshotError::Trailing(batches.rest().len()));
    }
    let control = control.ok_or(SnapshotError::NoHeader)?;
    if footer {
        Ok(control)
    } else {
        Err(SnapshotError::NoFooter)
    }
}

/// The header record, which every snapshot begins with.
fn header_of(batch: &highwater_records::Batch<'_>) -> Result<SnapshotControl, SnapshotError> {
    if !batch.header().attributes.is_control() {
        return Err(SnapshotError::NoHeader);
    }
    let open = batch
        .open(UNPACKED_BYTES_MAX)
        .map_err(|_| SnapshotError::NoHeader)?;
    let first = open
        .records()
        .next()
        .and_then(Result::ok)
        .ok_or(SnapshotError::NoHeader)?;
    let record = ControlRecord::of(&first).map_err(|_| SnapshotError::NoHeader)?;
    if record.control_type != ControlType::SnapshotHeader {
        return Err(SnapshotError::NoHeader);
    }
    let header =
        SnapshotHeaderRecord::from_stored(record.value, 0).map_err(|_| SnapshotError::NoHeader)?;
    Ok(SnapshotControl {
        last_contained_timestamp: WallMs::new(header.last_contained_log_timestamp),
        kraft_version: None,
        voters: None,
    })
}

/// Writes a metadata snapshot: the content of a `.checkpoint` file. `epoch` is the one in its name,
/// `now` stamps its records, `metadata_version` rules how they are written.
///
/// # Errors
/// When a record does not fit its format.
pub fn write_snapshot(
    control: &SnapshotControl,
    epoch: LeaderEpoch,
    now: WallMs,
    metadata_version: i16,
    records: impl IntoIterator<Item = MetadataRecord>,
) -> Result<Vec<u8>, BuildBatchError> {
    let mut writer = Writer {
        builder: BatchBuilder::new(),
        next: Offset::ZERO,
        epoch,
        out: Vec::new(),
    };
    let header = SnapshotHeaderRecord {
        version: 0,
        last_contained_log_timestamp: control.last_contained_timestamp.raw(),
    };
    let value = header.to_bytes(0)?;
    writer
        .builder
        .append_control(now, ControlType::SnapshotHeader, &value)?;
    if let Some(level) = control.kraft_version {
        append_quorum_record(&mut writer.builder, &QuorumRecord::KraftVersion(level), now)?;
    }
    if let Some(voters) = &control.voters {
        append_quorum_record(
            &mut writer.builder,
            &QuorumRecord::Voters(voters.clone()),
            now,
        )?;
    }
    writer.finish_batch(true)?;
    for record in records {
        let value = encode_value(&record, metadata_version)?;
        writer.builder.append(now, None, Some(&value), &[])?;
        let full = writer.builder.record_count() >= BATCH_RECORDS_MAX
            || writer.builder.size_bytes() >= BATCH_BYTES_MAX;
        if full {
            writer.finish_batch(false)?;
        }
    }
    if !writer.builder.is_empty() {
        writer.finish_batch(false)?;
    }
    let footer = SnapshotFooterRecord { version: 0 }.to_bytes(0)?;
    writer
        .builder
        .append_control(now, ControlType::SnapshotFooter, &footer)?;
    writer.finish_batch(true)?;
    Ok(writer.out)
}

struct Writer {
    builder: BatchBuilder,
    next: Offset,
    epoch: LeaderEpoch,
    out: Vec<u8>,
}

impl Writer {
    fn finish_batch(&mut self, control: bool) -> Result<BatchHeader, BuildBatchError> {
        let options = BatchOptions {
            base_offset: self.next,
            leader_epoch: self.epoch,
            control,
            ..BatchOptions::default()
        };
        let header = self.builder.finish_into(&options, &mut self.out)?;
        self.next = header.next_offset();
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use highwater_records::stored::metadata::FeatureLevelRecord;

    use super::*;

    fn written() -> Vec<u8> {
        let control = SnapshotControl {
            last_contained_timestamp: WallMs::new(5),
            kraft_version: Some(1),
            voters: Some(VotersRecord::default()),
        };
        let record = |level| -> MetadataRecord {
            FeatureLevelRecord {
                name: "metadata.version".to_owned(),
                feature_level: level,
            }
            .into()
        };
        let records = (1..=2000).map(record);
        write_snapshot(&control, LeaderEpoch::new(3), WallMs::new(9), 33, records).expect("fits")
    }

    #[test]
    fn what_is_written_is_read() {
        let mut levels = 0;
        let control = read_snapshot(&written(), |_| {
            levels += 1;
            Ok(())
        })
        .expect("whole");
        assert_eq!(levels, 2000);
        assert_eq!(control.kraft_version, Some(1));
        assert_eq!(control.last_contained_timestamp, WallMs::new(5));
    }

    #[test]
    fn cm_08_a_snapshot_that_is_not_whole_is_refused() {
        let whole = written();
        let accept = |bytes: &[u8]| read_snapshot(bytes, |_| Ok(()));
        assert_eq!(accept(&[]), Err(SnapshotError::NoHeader));
        for cut in [
            1,
            10,
            100,
            whole.len() / 2,
            whole.len() - 80,
            whole.len() - 1,
        ] {
            let bytes = whole.get(..cut).expect("shorter than the whole");
            assert!(accept(bytes).is_err(), "cut at {cut}");
        }
        let longer = [whole.as_slice(), whole.as_slice()].concat();
        assert!(matches!(accept(&longer), Err(SnapshotError::Trailing(_))));
        let mut flipped = whole.clone();
        if let Some(byte) = flipped.get_mut(whole.len() / 2) {
            *byte ^= 1;
        }
        assert!(accept(&flipped).is_err());
    }
}
