use bytes::Bytes;
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::data::{KRaftVersionRecord, LeaderChangeMessage, VotersRecord};
use highwater_records::wire::{DecodeError, EncodeError, Message as _};
use highwater_records::{
    BATCH_HEADER_BYTES, Batch, BatchBuilder, BatchError, BatchOptions, BuildError, ControlRecord,
    ControlType,
};
use highwater_types::{LeaderEpoch, Offset, OffsetAndEpoch, WallMs};

use crate::delta::{MetadataDelta, ReplayError};

/// The most that one batch of metadata unpacks to: Kafka writes at most 8 MiB.
pub(crate) const UNPACKED_BYTES_MAX: u64 = 64 << 20;

/// A control record of the metadata log that matters to the quorum.
#[derive(Clone, Debug, PartialEq)]
pub enum QuorumRecord {
    /// A leader began its epoch.
    LeaderChange(LeaderChangeMessage),
    /// The level of kraft.version.
    KraftVersion(i16),
    /// Who votes.
    Voters(VotersRecord),
}

/// A batch of the metadata log that cannot be applied: the log is damaged, or newer than this
/// build.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("metadata record at offset {offset}: {what}")]
pub struct BatchReplayError {
    /// The record, or the batch's first one.
    pub offset: Offset,
    /// What is wrong.
    pub what: BatchFault,
}

/// What is wrong with a batch of metadata.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchFault {
    /// Not a batch of records.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A record without a value.
    #[error("it has no value")]
    NoValue,
    /// The value is no metadata record that this build knows.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It does not fit the records before it.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Applies one batch of the metadata log and moves the image's end behind it. Returns what it says
/// to the quorum.
///
/// # Errors
/// When it cannot be applied; the image must then not be used any more.
pub fn replay_batch(
    delta: &mut MetadataDelta,
    batch: &Batch<'_>,
) -> Result<Vec<QuorumRecord>, BatchReplayError> {
    let header = batch.header();
    let mut quorum_records = Vec::new();
    visit_batch(batch, |_, record| match record {
        BatchRecord::Data(record) => delta.replay(&record).map_err(Into::into),
        BatchRecord::Quorum(record) => {
            quorum_records.push(record);
            Ok(())
        }
        BatchRecord::Skipped(_) => Ok(()),
    })?;
    delta.set_end(OffsetAndEpoch {
        epoch: header.leader_epoch,
        offset: header.next_offset(),
    });
    Ok(quorum_records)
}

/// One record of a metadata batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BatchRecord {
    /// Of a data batch.
    Data(MetadataRecord),
    /// Of a control batch, for the quorum.
    Quorum(QuorumRecord),
    /// Of a control batch, for others: snapshot header and footer, and what newer releases add.
    Skipped(ControlType),
}

/// Decodes every record of a batch and hands it to `visit`.
pub(crate) fn visit_batch(
    batch: &Batch<'_>,
    mut visit: impl FnMut(Offset, BatchRecord) -> Result<(), BatchFault>,
) -> Result<(), BatchReplayError> {
    let base_offset = batch.header().base_offset;
    let at = |offset| move |what| BatchReplayError { offset, what };
    batch
        .check_crc()
        .map_err(|why| at(base_offset)(why.into()))?;
    let open = batch
        .open(UNPACKED_BYTES_MAX)
        .map_err(|why| at(base_offset)(why.into()))?;
    let is_control = batch.header().attributes.is_control();
    for record in open.records() {
        let record = record.map_err(|why| at(base_offset)(why.into()))?;
        let decoded = if is_control {
            ControlRecord::of(&record)
                .map_err(BatchFault::from)
                .and_then(|it| decode_control(&it))
        } else {
            record
                .value
                .ok_or(BatchFault::NoValue)
                .and_then(|value| Ok(MetadataRecord::decode_value(value)?))
                .map(|(record, _)| BatchRecord::Data(record))
        };
        let offset = record.offset;
        decoded
            .and_then(|decoded| visit(offset, decoded))
            .map_err(at(offset))?;
    }
    Ok(())
}

fn decode_control(record: &ControlRecord<'_>) -> Result<BatchRecord, BatchFault> {
    let value = record.value;
    // Every message begins with its version, of which only 0 exists; later ones may add fields.
    Ok(BatchRecord::Quorum(match record.control_type {
        ControlType::LeaderChange => {
            let version = leading_version(value).clamp(0, LeaderChangeMessage::VERSIONS.1);
            QuorumRecord::LeaderChange(LeaderChangeMessage::from_stored(value, version)?)
        }
        ControlType::KraftVersion => {
            let it = KRaftVersionRecord::from_stored(value, 0)?;
            QuorumRecord::KraftVersion(it.kraft_version)
        }
        ControlType::KraftVoters => QuorumRecord::Voters(VotersRecord::from_stored(value, 0)?),
        other => return Ok(BatchRecord::Skipped(other)),
    }))
}

fn leading_version(value: &[u8]) -> i16 {
    match value {
        [high, low, ..] => i16::from_be_bytes([*high, *low]),
        _ => 0,
    }
}

/// Why a batch of metadata could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BuildBatchError {
    /// A record cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The batch would be too large.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Cuts records into runs that each fit a batch of `bytes_max`, in order. A record that is larger
/// by itself is a run of its own, for the log to refuse.
///
/// # Errors
/// When a record does not fit its format.
pub fn split_for_batches(
    records: Vec<MetadataRecord>,
    metadata_version: i16,
    bytes_max: usize,
) -> Result<Vec<Vec<MetadataRecord>>, BuildBatchError> {
    let mut runs: Vec<Vec<MetadataRecord>> = Vec::new();
    let mut room = 0;
    for record in records {
        let value = encode_value(&record, metadata_version)?;
        let size = BatchBuilder::record_bytes_max(None, Some(&value), &[]);
        match runs.last_mut().filter(|_| size <= room) {
            Some(run) => run.push(record),
            None => {
                runs.push(vec![record]);
                room = bytes_max.saturating_sub(BATCH_HEADER_BYTES);
            }
        }
        room = room.saturating_sub(size);
    }
    Ok(runs)
}

/// One batch of metadata records, as Kafka writes them: without keys, at the versions that
/// `metadata_version` allows.
///
/// # Errors
/// When a record does not fit its format.
pub fn build_batch(
    records: &[MetadataRecord],
    base_offset: Offset,
    epoch: LeaderEpoch,
    timestamp: WallMs,
    metadata_version: i16,
) -> Result<Vec<u8>, BuildBatchError> {
    let mut builder = BatchBuilder::new();
    for record in records {
        let value = encode_value(record, metadata_version)?;
        builder.append(timestamp, None, Some(&value), &[])?;
    }
    let options = BatchOptions {
        base_offset,
        leader_epoch: epoch,
        ..BatchOptions::default()
    };
    Ok(builder.finish(&options)?)
}

/// The value of a record at the version that `metadata_version` has. An older version lacks fields;
/// what they would say is not known there, so it is left out.
pub(crate) fn encode_value(
    record: &MetadataRecord,
    metadata_version: i16,
) -> Result<Bytes, EncodeError> {
    let version = record_version(record, metadata_version);
    let mut record = record.clone();
    match &mut record {
        MetadataRecord::RegisterBroker(it) if version < 3 => it.log_dirs.clear(),
        MetadataRecord::Partition(it) if version < 1 => it.directories.clear(),
        _ => {}
    }
    record.encode_value(version)
}

/// Levels of metadata.version from which records have newer versions.
fn record_version(record: &MetadataRecord, metadata_version: i16) -> i16 {
    let partition = match metadata_version {
        23.. => 2,
        17.. => 1,
        _ => 0,
    };
    match record {
        MetadataRecord::RegisterBroker(_) => match metadata_version {
            30.. => 4,
            17.. => 3,
            8.. => 2,
            _ => 1,
        },
        MetadataRecord::Partition(_) | MetadataRecord::PartitionChange(_) => partition,
        other => other.usual_version(),
    }
}

/// One control batch of the metadata log.
///
/// # Errors
/// When a record does not fit its format.
pub fn build_quorum_batch(
    records: &[QuorumRecord],
    base_offset: Offset,
    epoch: LeaderEpoch,
    timestamp: WallMs,
) -> Result<Vec<u8>, BuildBatchError> {
    let mut builder = BatchBuilder::new();
    for record in records {
        append_quorum_record(&mut builder, record, timestamp)?;
    }
    let options = BatchOptions {
        base_offset,
        leader_epoch: epoch,
        control: true,
        ..BatchOptions::default()
    };
    Ok(builder.finish(&options)?)
}

pub(crate) fn append_quorum_record(
    builder: &mut BatchBuilder,
    record: &QuorumRecord,
    timestamp: WallMs,
) -> Result<(), BuildBatchError> {
    let (control_type, value) = match record {
        QuorumRecord::LeaderChange(it) => (ControlType::LeaderChange, it.to_bytes(0)?),
        QuorumRecord::KraftVersion(level) => {
            let it = KRaftVersionRecord {
                version: 0,
                kraft_version: *level,
            };
            (ControlType::KraftVersion, it.to_bytes(0)?)
        }
        QuorumRecord::Voters(it) => (ControlType::KraftVoters, it.to_bytes(0)?),
    };
    Ok(builder.append_control(timestamp, control_type, &value)?)
}

#[cfg(test)]
mod tests {
    use highwater_records::stored::metadata::TopicRecord;
    use highwater_types::Uuid;

    use super::*;

    #[test]
    fn runs_fit_their_batches_and_lose_nothing() {
        let record = |number: u128| -> MetadataRecord {
            let topic_id = Uuid::from_u128(1000 + number);
            TopicRecord {
                name: "t".repeat(100),
                topic_id,
            }
            .into()
        };
        let records: Vec<_> = (0..100).map(record).collect();
        let runs = split_for_batches(records.clone(), 33, 2000).expect("fits");
        assert!(runs.len() > 5);
        for run in &runs {
            let bytes = build_batch(run, Offset::ZERO, LeaderEpoch::ZERO, WallMs::new(1), 33);
            assert!(bytes.expect("fits").len() <= 2000);
        }
        assert_eq!(runs.concat(), records);
        let tiny = split_for_batches(records, 33, 1).expect("fits");
        assert_eq!(tiny.len(), 100);
    }

    #[test]
    fn an_older_cluster_gets_older_records() {
        use highwater_records::stored::metadata::PartitionRecord;
        let record: MetadataRecord = PartitionRecord {
            directories: vec![Uuid::ZERO],
            ..PartitionRecord::default()
        }
        .into();
        for (level, version) in [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (33, 2)] {
            let value = encode_value(&record, level).expect("fits");
            let (_, written) = MetadataRecord::decode_value(&value).expect("decodes");
            assert_eq!(written, version, "metadata.version {level}");
        }
    }
}
