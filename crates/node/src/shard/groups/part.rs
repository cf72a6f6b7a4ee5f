use highwater_coordinator::{GroupRequest, MemberCaller};
use highwater_types::TopicIdPartition;

use super::RowAnswer;

/// Questions to coordinators on their way to the owner of their partition, and back.
#[derive(Debug)]
pub enum GroupPart {
    /// To the owner.
    Ask {
        /// The request, unique per asking shard.
        asked: u64,
        /// The rows that the owner's coordinators can answer.
        #[allow(private_interfaces, reason = "parts are built and read by shards only")]
        rows: Vec<GroupRow>,
    },
    /// Back. The rows of one request may come in several parts.
    Answers {
        /// The request.
        asked: u64,
        /// Answers by row.
        #[allow(private_interfaces, reason = "parts are built and read by shards only")]
        rows: Vec<(u32, RowAnswer)>,
    },
    /// To the owner: nobody waits for this request any more.
    Forget {
        /// The request.
        asked: u64,
    },
}

/// A question to one coordinator.
#[derive(Debug)]
pub(crate) struct GroupRow {
    /// Its place in the request.
    pub(crate) row: u32,
    /// The coordinator's partition.
    pub(crate) at: TopicIdPartition,
    pub(crate) caller: MemberCaller,
    pub(crate) request: GroupRequest,
}
