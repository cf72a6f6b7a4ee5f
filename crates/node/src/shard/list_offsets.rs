use std::collections::BTreeSet;

use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest},
    list_offsets_response::{
        ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
    },
};
use highwater_types::{ErrorCode, LeaderEpoch, NodeId, Now, Offset, TopicIdPartition, WallMs};

use super::fetch::ReadContext;
use super::lookup::{
    LookupAnswer, LookupRow, Outcome, Question, TimeBound, named_partition, repeated,
};
use super::partition::OnlinePartition;
use super::requests::push_answer;
use super::{Effects, Shard};
use crate::authorizer::{Operation, Resource};
use crate::machine::{Caller, Ticket};

/// The offset after the last readable record.
const LATEST: i64 = -1;
/// The log start offset.
const EARLIEST: i64 = -2;
/// The record with the greatest timestamp (KIP-734).
const MAX_TIMESTAMP: i64 = -3;
/// The first offset in local files (KIP-405).
const EARLIEST_LOCAL: i64 = -4;
/// The last offset in tiered storage (KIP-1005).
const LATEST_TIERED: i64 = -5;
/// The first offset that waits to be copied to tiered storage (KIP-1023).
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// Tools that look at any replica (Kafka's ReplicaVerificationTool).
const DEBUG_REPLICA: NodeId = NodeId::new(-2);

/// How far the caller may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffsetReader {
    /// A client, up to the high watermark.
    Uncommitted,
    /// A client, up to the last stable offset.
    Committed,
    /// A replica, up to the log end.
    Replica,
    /// A debugging tool, up to the log end, of followers too.
    Debugger,
}

impl<D: Disk> Shard<D> {
    /// Serves ListOffsets.
    pub(crate) fn handle_list_offsets(
        &mut self,
        now: Now,
        (ticket, version): (Ticket, i16),
        caller: &Caller,
        mut request: ListOffsetsRequest,
        out: &mut Effects<D>,
    ) {
        if !matches!(request.isolation_level, 0 | 1) {
            push_answer(ticket, version, &refused(request), out);
            return;
        }
        let repeated = one_row_for_repeated(&mut request);
        let reader = match (request.replica_id, request.isolation_level) {
            (DEBUG_REPLICA, _) => OffsetReader::Debugger,
            (id, _) if id.is_some() => OffsetReader::Replica,
            (_, 1) => OffsetReader::Committed,
            _ => OffsetReader::Uncommitted,
        };
        let mut rows = Vec::new();
        let mut questions = Vec::new();
        for topic in &request.topics {
            let resource = Resource::Topic(&topic.name);
            let allowed = self.allows(caller, Operation::Describe, resource);
            for partition in &topic.partitions {
                let row = u32::try_from(rows.len()).expect("frames bound the rows");
                let index = partition.partition_index;
                let at = named_partition(&self.image, &topic.name, index);
                let is_repeated =
                    !repeated.is_empty() && repeated.contains(&(topic.name.clone(), index));
                let refused = if !allowed {
                    Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
                } else if is_repeated {
                    Some(ErrorCode::INVALID_REQUEST)
                } else if !is_served(partition.timestamp, version) {
                    Some(ErrorCode::UNSUPPORTED_VERSION)
                } else if at.is_none() {
                    Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
                } else {
                    None
                };
                rows.push(refused.map_or_else(LookupAnswer::default, LookupAnswer::refused));
                if let (Some(at), None) = (at, refused) {
                    questions.push(LookupRow {
                        row,
                        at,
                        current_leader_epoch: LeaderEpoch::new(partition.current_leader_epoch),
                        question: Question::Time {
                            timestamp: partition.timestamp,
                            reader,
                        },
                    });
                }
            }
        }
        let compose = Box::new(move |rows: &[LookupAnswer]| compose(version, request, rows));
        self.ask_partitions(now, (ticket, version), rows, questions, compose, out);
    }
}

/// An isolation level that nobody knows: as in Kafka an unexpected error for every partition as it
/// was asked about.
fn refused(request: ListOffsetsRequest) -> Response {
    let row = |partition: ListOffsetsPartition| ListOffsetsPartitionResponse {
        partition_index: partition.partition_index,
        error_code: ErrorCode::UNKNOWN_SERVER_ERROR,
        timestamp: WallMs::NONE.raw(),
        offset: Offset::NONE.raw(),
        leader_epoch: -1,
    };
    let topics = request
        .topics
        .into_iter()
        .map(|topic| ListOffsetsTopicResponse {
            name: topic.name,
            partitions: topic.partitions.into_iter().map(row).collect(),
        });
    ListOffsetsResponse {
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
    .into()
}

/// Partitions that are named more than once, and from now on once: Kafka refuses them in one row.
fn one_row_for_repeated(request: &mut ListOffsetsRequest) -> BTreeSet<(String, i32)> {
    let named = request.topics.iter().flat_map(|topic| {
        let name = topic.name.as_str();
        topic
            .partitions
            .iter()
            .map(move |it| (name, it.partition_index))
    });
    let owned = |(name, index): (&str, i32)| (name.to_owned(), index);
    let repeated: BTreeSet<_> = repeated(named).into_iter().map(owned).collect();
    if !repeated.is_empty() {
        let mut kept = BTreeSet::new();
        for topic in &mut request.topics {
            topic.partitions.retain(|it| {
                let named = (topic.name.clone(), it.partition_index);
                !repeated.contains(&named) || kept.insert(named)
            });
        }
    }
    repeated
}

/// Whether a version knows a timestamp: the special ones came one after the other.
const fn is_served(timestamp: i64, version: i16) -> bool {
    match timestamp {
        0.. | LATEST | EARLIEST => true,
        MAX_TIMESTAMP => version >= 7,
        EARLIEST_LOCAL => version >= 8,
        LATEST_TIERED => version >= 9,
        EARLIEST_PENDING_UPLOAD => version >= 11,
        _ => false,
    }
}

/// Asks a partition of this shard.
pub(crate) fn find<D: Disk>(
    cx: &ReadContext<'_, D>,
    at: TopicIdPartition,
    current_leader_epoch: LeaderEpoch,
    timestamp: i64,
    reader: OffsetReader,
) -> Outcome<D> {
    let found = match reader {
        OffsetReader::Debugger => cx.replica(at, current_leader_epoch),
        _ => cx.leader(at, current_leader_epoch),
    };
    let online = match found {
        Ok(online) => online,
        Err(refusal) => return refusal.into(),
    };
    let log = &online.log;
    let bound = bound(online, reader);
    let looked = match timestamp {
        LATEST if bound.lagging => {
            return Outcome::Now(LookupAnswer::refused(ErrorCode::OFFSET_NOT_AVAILABLE));
        }
        LATEST => {
            let epoch = online.replica.leader_epoch();
            return Outcome::Now(LookupAnswer::offset(bound.readable_end, epoch));
        }
        EARLIEST | EARLIEST_LOCAL => {
            let start = log.log_start_offset();
            let first = log
                .epochs()
                .entries
                .first()
                .filter(|it| it.start_offset <= start);
            let epoch = first.map_or(LeaderEpoch::NONE, |it| it.epoch);
            return Outcome::Now(LookupAnswer::offset(start, epoch));
        }
        // Nothing is in tiered storage, and nothing waits for it.
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => {
            return Outcome::Now(LookupAnswer::offset(Offset::NONE, LeaderEpoch::NONE));
        }
        MAX_TIMESTAMP => log.max_timestamp_lookup(),
        time => log.time_lookup(WallMs::new(time)),
    };
    match looked {
        Ok(Some(lookup)) => {
            let Some(dir) = cx.partitions.find(at).map(|it| it.dir) else {
                return Outcome::Now(LookupAnswer::default());
            };
            Outcome::Later { dir, lookup, bound }
        }
        Ok(None) if bound.lagging => {
            Outcome::Now(LookupAnswer::refused(ErrorCode::OFFSET_NOT_AVAILABLE))
        }
        Ok(None) => Outcome::Now(LookupAnswer::default()),
        Err(_) => Outcome::Now(LookupAnswer::refused(ErrorCode::KAFKA_STORAGE_ERROR)),
    }
}

fn bound<D: Disk>(online: &OnlinePartition<D>, reader: OffsetReader) -> TimeBound {
    let high_watermark = online.high_watermark();
    let leader = online.replica.role().as_leader();
    let behind = leader.is_some_and(|it| it.epoch_start_offset > high_watermark);
    match reader {
        OffsetReader::Uncommitted => TimeBound {
            readable_end: high_watermark,
            lagging: behind,
        },
        OffsetReader::Committed => TimeBound {
            readable_end: online.last_stable_offset(),
            lagging: behind,
        },
        OffsetReader::Replica | OffsetReader::Debugger => TimeBound {
            readable_end: online.log.log_end_offset(),
            lagging: false,
        },
    }
}

fn compose(version: i16, request: ListOffsetsRequest, rows: &[LookupAnswer]) -> Response {
    let mut rows = rows.iter();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic
            .partitions
            .iter()
            .zip(rows.by_ref())
            .map(|(asked, row)| {
                let error_code = match row.error {
                    ErrorCode::OFFSET_NOT_AVAILABLE if version < 5 => {
                        ErrorCode::LEADER_NOT_AVAILABLE
                    }
                    error => error,
                };
                ListOffsetsPartitionResponse {
                    partition_index: asked.partition_index,
                    error_code,
                    timestamp: row.timestamp.unwrap_or(WallMs::NONE).raw(),
                    offset: row.offset.unwrap_or(Offset::NONE).raw(),
                    leader_epoch: if version >= 4 {
                        row.leader_epoch.raw()
                    } else {
                        -1
                    },
                }
            });
        ListOffsetsTopicResponse {
            partitions: partitions.collect(),
            name: topic.name,
        }
    });
    // As in Kafka, a topic of which no partition was asked for is not in the answer.
    let topics = topics.filter(|it| !it.partitions.is_empty());
    ListOffsetsResponse {
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
    .into()
}
