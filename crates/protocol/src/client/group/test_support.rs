//! Short words for the tests of this folder.

use highwater_types::{TopicName, TopicPartition};

use super::{GroupMemberView, PartitionSet, Subscription, TopicCounts};

pub(super) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

/// Partitions out of `a-0 b-1`.
pub(super) fn partition_set(text: &str) -> PartitionSet {
    let words = text.split_whitespace();
    words.map(|it| TopicPartition::parse(it).unwrap()).collect()
}

/// Topics out of `a:3 b:1`.
pub(super) fn counts(text: &str) -> TopicCounts {
    let words = text.split_whitespace();
    words
        .map(|it| it.split_once(':').unwrap())
        .map(|(name, count)| (topic(name), count.parse().unwrap()))
        .collect()
}

/// A member that wants the topics named in `topics`.
pub(super) fn member(id: &str, topics: &str) -> GroupMemberView {
    GroupMemberView {
        member_id: id.to_owned(),
        instance_id: None,
        subscription: Subscription {
            topics: topics.split_whitespace().map(topic).collect(),
            ..Subscription::default()
        },
    }
}
