use bytes::Bytes;
use highwater_types::{ErrorCode, Millis};

use crate::messages::FetchResponse;
use crate::messages::fetch_response::{
    EpochEndOffset, LeaderIdAndEpoch, NodeEndpoint, PartitionData, SnapshotId,
};
use crate::topic_key::TopicKey;
use crate::wire::{EncodeError, Message, TagWriter, Wire as _, Writer};

/// The first version that names topics by id.
const TOPIC_IDS_SINCE: i16 = 13;

/// A run of a fetch answer's body. `R` stands for record bytes that lie elsewhere, in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchPiece<R> {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Record batches.
    Records(R),
}

/// What a fetch answer says besides its topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchAnswerHead<'a> {
    /// For how long the client was throttled.
    pub throttle: Millis,
    /// An error of the whole request (version 7 on).
    pub error_code: ErrorCode,
    /// The fetch session, or 0 (version 7 on).
    pub session_id: i32,
    /// Where the leaders named in the answer are reached (version 16 on).
    pub node_endpoints: &'a [NodeEndpoint],
}

/// One topic of a fetch answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic<'a, R> {
    /// As the request named it: a name below version 13, else an id.
    pub topic: TopicKey<'a>,
    /// Its partitions, in order.
    pub partitions: Vec<FetchedPartition<R>>,
}

/// One partition of a fetch answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition<R> {
    /// Everything but the records; `data.records` is ignored.
    pub data: PartitionData,
    /// The record batches. Without any, an empty records field is sent, never null: as Kafka.
    pub records: Option<R>,
}

/// Writes a fetch answer's body at `version`: bytes, and the records between them, in the order
/// in which they are sent. `len_of` is the length of records in bytes; records of length 0 make no
/// piece.
///
/// # Errors
/// When the version does not exist or cannot carry what is set: a name where an id belongs, a
/// diverging epoch below version 12.
pub fn encode_fetch_answer<R>(
    version: i16,
    head: FetchAnswerHead<'_>,
    topics: Vec<FetchedTopic<'_, R>>,
    len_of: impl Fn(&R) -> u64,
) -> Result<Vec<FetchPiece<R>>, EncodeError> {
    if !FetchResponse::has_version(version) {
        return Err(EncodeError::Version {
            message: FetchResponse::NAME,
            version,
        });
    }
    let partitions: usize = topics.iter().map(|topic| topic.partitions.len()).sum();
    let mut w = Writer::with_capacity(32 + 24 * topics.len() + 64 * partitions);
    w.start(version, version >= FetchResponse::FLEXIBLE_SINCE);
    let mut pieces = Vec::with_capacity(1 + 2 * partitions);
    i32::try_from(head.throttle.as_u64())
        .unwrap_or(i32::MAX)
        .write(&mut w)?;
    if version >= 7 {
        head.error_code.write(&mut w)?;
        head.session_id.write(&mut w)?;
    }
    w.length(Some(topics.len()))?;
    for FetchedTopic { topic, partitions } in topics {
        match topic {
            TopicKey::Name(name) if version < TOPIC_IDS_SINCE => w.nullable_str(Some(name))?,
            TopicKey::Id(id) if version >= TOPIC_IDS_SINCE => id.uuid().write(&mut w)?,
            TopicKey::Name(_) => w.absent(false, "Topic")?,
            TopicKey::Id(_) => w.absent(false, "TopicId")?,
        }
        w.length(Some(partitions.len()))?;
        for FetchedPartition { data, records } in partitions {
            write_before_records(&mut w, &data)?;
            let records = records
                .map(|it| (len_of(&it), it))
                .filter(|(len, _)| *len > 0);
            let len = records.as_ref().map_or(0, |(len, _)| *len);
            w.length(Some(
                usize::try_from(len).map_err(|_| EncodeError::TooLong(usize::MAX))?,
            ))?;
            if let Some((_, records)) = records {
                pieces.push(FetchPiece::Bytes(w.take_bytes()));
                pieces.push(FetchPiece::Records(records));
            }
            write_after_records(&mut w, &data)?;
        }
        w.no_tags();
    }
    w.tags(|tags| {
        if version >= 16 && !head.node_endpoints.is_empty() {
            tags.put(0, &head.node_endpoints.to_vec())?;
        }
        Ok(())
    })?;
    if !w.is_empty() {
        pieces.push(FetchPiece::Bytes(w.into_bytes()));
    }
    Ok(pieces)
}

fn write_before_records(w: &mut Writer, data: &PartitionData) -> Result<(), EncodeError> {
    let version = w.version();
    data.partition_index.write(w)?;
    data.error_code.write(w)?;
    data.high_watermark.write(w)?;
    data.last_stable_offset.write(w)?;
    if version >= 5 {
        data.log_start_offset.write(w)?;
    }
    data.aborted_transactions.write(w)?;
    if version >= 11 {
        data.preferred_read_replica.write(w)?;
    } else {
        w.absent(
            !data.preferred_read_replica.is_some(),
            "PreferredReadReplica",
        )?;
    }
    Ok(())
}

fn write_after_records(w: &mut Writer, data: &PartitionData) -> Result<(), EncodeError> {
    let diverging = data.diverging_epoch != EpochEndOffset::default();
    let snapshot = data.snapshot_id != SnapshotId::default();
    if w.version() < FetchResponse::FLEXIBLE_SINCE {
        w.absent(!diverging, "DivergingEpoch")?;
        return w.absent(!snapshot, "SnapshotId");
    }
    w.tags(|tags: &mut TagWriter<'_>| {
        if diverging {
            tags.put(0, &data.diverging_epoch)?;
        }
        if data.current_leader != LeaderIdAndEpoch::default() {
            tags.put(1, &data.current_leader)?;
        }
        if snapshot {
            tags.put(2, &data.snapshot_id)?;
        }
        Ok(())
    })
}
