//! A member of a classic consumer group, sans-IO.
//!
//! [`GroupMember`] is the member's state machine; [`MemberCall`] and [`MemberOutput`] are what it
//! wants done. [`Assignor`] deals out partitions, [`Subscription`] is what members tell their
//! leader.

mod answers;
mod assignor;
mod call;
mod config;
mod member;
#[cfg(test)]
mod member_tests;
mod offsets;
mod range;
mod sticky;
#[cfg(test)]
mod sticky_tests;
mod subscription;
#[cfg(test)]
mod test_support;

use std::collections::BTreeSet;

use highwater_types::TopicPartition;

pub use self::answers::coordinator_of;
pub use self::assignor::{Assignments, Assignor, GroupMemberView, Rebalancing, TopicCounts};
pub use self::call::{
    CallId, CallTo, GroupCoordinator, GroupError, MemberCall, MemberOutput, find_coordinator,
};
pub use self::config::MemberConfig;
pub use self::member::{GroupMember, MemberIdentity};
pub use self::offsets::{
    CommittedOffset, FetchedOffsets, TopicIds, commit_request, commit_results, fetch_request,
    fetched_offsets,
};
pub use self::subscription::{Subscription, decode_assignment, encode_assignment};

/// Partitions by name.
pub type PartitionSet = BTreeSet<TopicPartition>;
