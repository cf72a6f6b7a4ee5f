//! A member of a classic consumer group, sans-IO.
//!
//! [`Assignor`] deals out partitions, [`Subscription`] is what members tell their leader.

mod assignor;
mod range;
mod sticky;
#[cfg(test)]
mod sticky_tests;
mod subscription;
#[cfg(test)]
mod test_support;

use std::collections::BTreeSet;

use highwater_types::TopicPartition;

pub use self::assignor::{Assignments, Assignor, GroupMemberView, Rebalancing, TopicCounts};
pub use self::subscription::{Subscription, decode_assignment, encode_assignment};

/// Partitions by name.
pub type PartitionSet = BTreeSet<TopicPartition>;
