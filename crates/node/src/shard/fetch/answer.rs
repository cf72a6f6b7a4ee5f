//! The bytes of a fetch answer.

use highwater_disk::Disk;
use highwater_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use highwater_protocol::{
    FetchAnswerHead, FetchPiece, FetchedPartition, FetchedTopic, encode_fetch_answer,
};
use highwater_types::{ErrorCode, NodeId};

use super::PartitionKey;
use super::read::{PartitionRead, ReadContext};
use super::wait::FetchHead;
use crate::machine::{Answer, Effect, Piece, Region};
use crate::shard::Effects;
use crate::shard::describe::live_brokers;

/// The first version that tells where histories part (KIP-595).
const DIVERGENCE_SINCE: i16 = 12;
/// The first version in which Kafka tells who leads and where it is reached (KIP-951), though the
/// field for the leader is older.
const LEADER_SINCE: i16 = 16;

/// One partition of an answer.
#[derive(Debug)]
pub(super) struct AnswerRow<F> {
    pub(super) key: PartitionKey,
    pub(super) read: PartitionRead<F>,
}

/// Encodes an answer and pushes it. `session` is the session that the client is in from now on.
pub(super) fn push<D: Disk>(
    cx: &ReadContext<'_, D>,
    head: &FetchHead,
    error_code: ErrorCode,
    session_id: i32,
    rows: Vec<AnswerRow<D::File>>,
    out: &mut Effects<D>,
) {
    let node_endpoints = endpoints(cx, head, &rows);
    // Only partitions of the same topic that come after one another share an entry: the order of
    // the partitions is what serves each in its turn.
    let mut keys = Vec::with_capacity(rows.len());
    let mut partitions = Vec::with_capacity(rows.len());
    for AnswerRow { key, read } in rows {
        partitions.push(fetched(&key, head.version, read));
        keys.push(key);
    }
    let mut topics: Vec<FetchedTopic<'_, Region<D::File>>> = Vec::new();
    for (key, partition) in keys.iter().zip(partitions) {
        match topics.last_mut() {
            Some(topic) if topic.topic == key.topic() => topic.partitions.push(partition),
            _ => topics.push(FetchedTopic {
                topic: key.topic(),
                partitions: vec![partition],
            }),
        }
    }
    let answer_head = FetchAnswerHead {
        throttle: head.throttle,
        error_code,
        session_id,
        node_endpoints: &node_endpoints,
    };
    let pieces = encode_fetch_answer(head.version, answer_head, topics, |region| region.len)
        .expect("an answer holds what its version can carry");
    let pieces = pieces.into_iter().map(|piece| match piece {
        FetchPiece::Bytes(bytes) => Piece::Bytes(bytes),
        FetchPiece::Records(region) => Piece::Region(region),
    });
    let answer = Answer {
        mute: head.throttle,
        ..Answer::pieces(pieces.collect())
    };
    out.push(Effect::Answer {
        ticket: head.ticket,
        answer,
    });
}

/// What the answer says of one partition.
fn fetched<F>(
    key: &PartitionKey,
    version: i16,
    read: PartitionRead<F>,
) -> FetchedPartition<Region<F>> {
    // A client that named the topic does not know about ids.
    let by_name = matches!(key, PartitionKey::Name(..));
    let error_code = match read.error {
        ErrorCode::UNKNOWN_TOPIC_ID if by_name => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        error => error,
    };
    let aborted = read.aborted.map(|list| {
        let entry = |it: super::read::AbortedTransaction| AbortedTransaction {
            producer_id: it.producer_id,
            first_offset: it.first_offset.raw(),
        };
        list.into_iter().map(entry).collect()
    });
    let mut data = PartitionData {
        partition_index: key.partition().raw(),
        error_code,
        high_watermark: read.high_watermark.raw(),
        last_stable_offset: read.last_stable_offset.raw(),
        log_start_offset: read.log_start_offset.raw(),
        aborted_transactions: aborted,
        preferred_read_replica: NodeId::NONE,
        ..Default::default()
    };
    if version >= DIVERGENCE_SINCE
        && let Some(end) = read.diverging
    {
        let (epoch, end_offset) = (end.epoch.raw(), end.end_offset.raw());
        data.diverging_epoch = EpochEndOffset { epoch, end_offset };
    }
    if version >= LEADER_SINCE
        && let Some(leader) = read.leader
    {
        data.current_leader = LeaderIdAndEpoch {
            leader_id: leader.id,
            leader_epoch: leader.epoch.raw(),
        };
    }
    FetchedPartition {
        data,
        records: read.records,
    }
}

/// Where the leaders are reached that the rows name (KIP-951). Replicas know it already.
fn endpoints<D: Disk>(
    cx: &ReadContext<'_, D>,
    head: &FetchHead,
    rows: &[AnswerRow<D::File>],
) -> Vec<NodeEndpoint> {
    let wanted = |id: NodeId| {
        let leaders = rows.iter().filter_map(|row| row.read.leader);
        leaders.into_iter().any(|leader| leader.id == id)
    };
    let named = rows.iter().any(|row| row.read.leader.is_some());
    if head.version < LEADER_SINCE || !named || head.reader.is_replica() {
        return Vec::new();
    }
    live_brokers(cx.image, &head.caller.listener_name)
        .filter(|broker| wanted(broker.id))
        .map(|broker| NodeEndpoint {
            node_id: broker.id,
            host: broker.host.to_owned(),
            port: i32::from(broker.port),
            rack: broker.rack.map(str::to_owned),
        })
        .collect()
}
