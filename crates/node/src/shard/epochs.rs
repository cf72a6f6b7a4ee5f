use highwater_disk::Disk;
use highwater_protocol::Response;
use highwater_protocol::messages::{
    offset_for_leader_epoch_request::OffsetForLeaderEpochRequest,
    offset_for_leader_epoch_response::{
        EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
    },
};
use highwater_types::{ErrorCode, LeaderEpoch, Now, Offset, TopicIdPartition};

use super::fetch::ReadContext;
use super::lookup::{LookupAnswer, LookupRow, Outcome, Question, named_partition};
use super::{Effects, Shard};
use crate::authorizer::{Operation, Resource};
use crate::machine::{Caller, Ticket};

impl<D: Disk> Shard<D> {
    /// Serves OffsetForLeaderEpoch (KIP-101, KIP-320).
    pub(crate) fn handle_offset_for_leader_epoch(
        &mut self,
        now: Now,
        (ticket, version): (Ticket, i16),
        caller: &Caller,
        request: OffsetForLeaderEpochRequest,
        out: &mut Effects<D>,
    ) {
        let mut rows = Vec::new();
        let mut questions = Vec::new();
        // Replicas ask it of each other, clients of topics that they may see.
        let of_a_broker = self.allows(caller, Operation::ClusterAction, Resource::Cluster);
        for topic in &request.topics {
            let resource = Resource::Topic(&topic.topic);
            let allowed = of_a_broker || self.allows(caller, Operation::Describe, resource);
            for partition in &topic.partitions {
                let row = u32::try_from(rows.len()).expect("frames bound the rows");
                if !allowed {
                    let error = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
                    rows.push(LookupAnswer::refused(error));
                    continue;
                }
                match named_partition(&self.image, &topic.topic, partition.partition) {
                    Some(at) => {
                        rows.push(LookupAnswer::default());
                        questions.push(LookupRow {
                            row,
                            at,
                            current_leader_epoch: LeaderEpoch::new(partition.current_leader_epoch),
                            question: Question::EpochEnd(LeaderEpoch::new(partition.leader_epoch)),
                        });
                    }
                    None => {
                        let error = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                        rows.push(LookupAnswer::refused(error));
                    }
                }
            }
        }
        let compose = Box::new(move |rows: &[LookupAnswer]| compose(request, rows));
        self.ask_partitions(now, (ticket, version), rows, questions, compose, out);
    }
}

/// Asks a partition of this shard. An epoch that the leader cannot place has no end.
pub(crate) fn find<D: Disk>(
    cx: &ReadContext<'_, D>,
    at: TopicIdPartition,
    current_leader_epoch: LeaderEpoch,
    epoch: LeaderEpoch,
) -> Outcome<D> {
    let online = match cx.leader(at, current_leader_epoch) {
        Ok(online) => online,
        Err(refusal) => return refusal.into(),
    };
    if epoch < LeaderEpoch::NONE {
        // Below every epoch there is: as in Kafka it ends where the first one begins.
        let epochs = online.log.epochs();
        let first = epochs.entries.first();
        return Outcome::Now(first.map_or_else(LookupAnswer::default, |first| {
            LookupAnswer::offset(first.start_offset, epoch)
        }));
    }
    let end = online.log.end_offset_for_epoch(epoch);
    Outcome::Now(end.map_or_else(LookupAnswer::default, |end| {
        LookupAnswer::offset(end.end_offset, end.epoch)
    }))
}

fn compose(request: OffsetForLeaderEpochRequest, rows: &[LookupAnswer]) -> Response {
    let mut rows = rows.iter();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic
            .partitions
            .iter()
            .zip(rows.by_ref())
            .map(|(asked, row)| EpochEndOffset {
                error_code: row.error,
                partition: asked.partition,
                leader_epoch: row.leader_epoch.raw(),
                end_offset: row.offset.unwrap_or(Offset::NONE).raw(),
            });
        OffsetForLeaderTopicResult {
            partitions: partitions.collect(),
            topic: topic.topic,
        }
    });
    OffsetForLeaderEpochResponse {
        throttle_time_ms: 0,
        topics: topics.collect(),
    }
    .into()
}
