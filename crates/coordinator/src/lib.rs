//! Consumer groups: members, assignments and committed offsets, rebuilt from their log.
//!
//! One [`Coordinator`] stands beside each led partition of `__consumer_offsets`. It decides what a
//! request means, records that, and changes what the log carries only by replaying the record: so a
//! reload at any record gives the same groups. What no record carries (who waits in a join,
//! sessions, timers) is lost at a reload, as in Apache Kafka. Nothing here does IO.

mod answer;
mod appender;
mod coordinator;
mod expiry;
mod foreign;
mod group;
mod groups_admin;
mod happening;
mod happening_text;
mod ids;
mod load;
mod membership;
mod offset_request;
mod offset_requests;
mod offsets;
mod output;
mod random;
mod record;
mod request;
mod settings;
mod step;
mod subscription;
mod timers;
mod waiters;

pub use crate::answer::{
    DescribeAnswer, DescribedMember, GroupAnswer, GroupState, HeartbeatAnswer, JoinAnswer,
    JoinedMember, LeaveAnswer, LeftMember, ListedGroup, SyncAnswer, WaitsFor,
};
pub use crate::appender::{AppendRefused, Appender, NewRecord};
pub use crate::coordinator::{Coordinator, MemberCaller, TopicNames};
pub use crate::happening::{GroupEvent, GroupHappening, LeaveCause, PastEvent, RebalanceCause};
pub use crate::ids::{GenerationId, GroupId, InstanceId, MemberId, RequestId};
pub use crate::offset_request::{
    CommitPartition, CommitTopic, CommittedPartition, CommittedTopic, DeleteAnswer, DeleteRequest,
    FetchTopic, FetchedPartition, FetchedTopic, ListRequest, OffsetCommitAnswer,
    OffsetCommitRequest, OffsetDeleteAnswer, OffsetDeleteRequest, OffsetFetchAnswer,
    OffsetFetchRequest, PartitionsOfTopic,
};
pub use crate::offsets::{MovedOffset, OffsetsBy, OffsetsCause, OffsetsMoved};
pub use crate::output::Output;
pub use crate::record::{ReplayError, ReplayedAt};
pub use crate::request::{
    Assigned, DescribeRequest, GroupRequest, HeartbeatRequest, JoinProtocol, JoinRequest,
    LeaveRequest, LeavingMember, SyncRequest,
};
pub use crate::settings::GroupSettings;
