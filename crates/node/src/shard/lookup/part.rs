use highwater_types::{LeaderEpoch, TopicIdPartition};

use super::LookupAnswer;
use crate::shard::list_offsets::OffsetReader;

/// Rows of a request on their way to the owner of their partitions, and back.
#[derive(Debug)]
pub enum LookupPart {
    /// To the owner.
    Ask {
        /// The request, unique per asking shard.
        lookup: u64,
        /// The rows that the owner can answer.
        #[allow(private_interfaces, reason = "parts are built and read by shards only")]
        rows: Vec<LookupRow>,
    },
    /// Back. The rows of one question may come in several parts.
    Answers {
        /// The request.
        lookup: u64,
        /// Answers by row.
        #[allow(private_interfaces, reason = "parts are built and read by shards only")]
        rows: Vec<(u32, LookupAnswer)>,
    },
}

/// A question to one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupRow {
    /// Its place in the request.
    pub(crate) row: u32,
    pub(crate) at: TopicIdPartition,
    /// The leader epoch that the client believes in; none skips the check.
    pub(crate) current_leader_epoch: LeaderEpoch,
    pub(crate) question: Question,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// ListOffsets: a time, or one of Kafka's negative special values.
    Time {
        timestamp: i64,
        reader: OffsetReader,
    },
    /// OffsetForLeaderEpoch: where this epoch ended.
    EpochEnd(LeaderEpoch),
}
