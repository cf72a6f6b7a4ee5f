use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_types::{PartitionIndex, TopicName, TopicPartition};

use super::{PartitionSet, Subscription, range, sticky};

/// Partitions of the topics that exist, by name.
pub type TopicCounts = BTreeMap<TopicName, i32>;

/// Who gets what, by member id.
pub type Assignments = BTreeMap<String, PartitionSet>;

/// How the leader of a group deals out partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    /// Of each topic, each member gets a run of neighbouring partitions.
    Range,
    /// As even as can be, with as few moves as can be; a partition that moves is given up by its
    /// owner in one rebalance and given out in the next (KIP-429).
    CooperativeSticky,
}

/// How members behave while their group rebalances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebalancing {
    /// All stop, and give up everything first.
    Eager,
    /// Members keep what they do not lose.
    Cooperative,
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMemberView {
    /// The id that the coordinator gave it.
    pub member_id: String,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<String>,
    /// What it told.
    pub subscription: Subscription,
}

impl Assignor {
    /// The name on the wire, which all members of a group must have in common.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::CooperativeSticky => "cooperative-sticky",
        }
    }

    /// The assignor with this name or with the name of Kafka's class.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "range" | "org.apache.kafka.clients.consumer.RangeAssignor" => Some(Self::Range),
            "cooperative-sticky"
            | "org.apache.kafka.clients.consumer.CooperativeStickyAssignor" => {
                Some(Self::CooperativeSticky)
            }
            _ => None,
        }
    }

    /// How members with these assignors rebalance: cooperatively only if all of them can, as in
    /// Kafka, for whose default list (range, cooperative-sticky) that means eagerly.
    #[must_use]
    pub fn rebalancing(list: &[Self]) -> Rebalancing {
        if list.iter().all(|it| *it == Self::CooperativeSticky) {
            Rebalancing::Cooperative
        } else {
            Rebalancing::Eager
        }
    }

    /// What a member adds to its subscription for this assignor.
    pub(super) fn user_data(self, generation: Option<i32>) -> Option<Bytes> {
        match self {
            Self::Range => None,
            Self::CooperativeSticky => Some(Bytes::copy_from_slice(
                &generation.unwrap_or(-1).to_be_bytes(),
            )),
        }
    }

    /// Deals out all partitions of the topics that somebody wants. Each member is in the result;
    /// a partition has at most one owner, and one that only moves may have none this time.
    ///
    /// The order of `members` does not matter.
    #[must_use]
    pub fn assign(self, counts: &TopicCounts, members: &[GroupMemberView]) -> Assignments {
        let mut members: Vec<&GroupMemberView> = members.iter().collect();
        members.sort_by(|a, b| order(a, b));
        match self {
            Self::Range => range::assign(counts, &members),
            Self::CooperativeSticky => sticky::assign_cooperatively(counts, &members),
        }
    }
}

/// Static members first, by instance id, then the others by member id: Kafka's order, so that a
/// mixed group deals alike whoever leads.
fn order(a: &GroupMemberView, b: &GroupMemberView) -> Ordering {
    match (&a.instance_id, &b.instance_id) {
        (Some(a), Some(b)) => a.cmp(b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.member_id.cmp(&b.member_id),
    }
}

/// The members that want each topic that exists and has partitions, in the order of `members`,
/// as positions in it.
pub(super) fn subscribers<'a>(
    counts: &'a TopicCounts,
    members: &[&GroupMemberView],
) -> BTreeMap<&'a TopicName, Vec<usize>> {
    let mut wanted: BTreeMap<&TopicName, Vec<usize>> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        for topic in &member.subscription.topics {
            if let Some((topic, _)) = counts.get_key_value(topic).filter(|(_, count)| **count > 0) {
                wanted.entry(topic).or_default().push(at);
            }
        }
    }
    wanted
}

/// The topics that any of the members wants.
pub(super) fn wanted_topics(members: &[GroupMemberView]) -> BTreeSet<TopicName> {
    let topics = members.iter().flat_map(|it| &it.subscription.topics);
    topics.cloned().collect()
}

pub(super) fn partition(topic: &TopicName, number: i32) -> TopicPartition {
    TopicPartition {
        topic: topic.clone(),
        partition: PartitionIndex::new(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignors_have_kafkas_names() {
        for assignor in [Assignor::Range, Assignor::CooperativeSticky] {
            assert_eq!(Assignor::from_name(assignor.name()), Some(assignor));
        }
        let class = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
        assert_eq!(
            Assignor::from_name(class),
            Some(Assignor::CooperativeSticky)
        );
        assert_eq!(Assignor::from_name("roundrobin"), None);
    }

    #[test]
    fn kafkas_default_list_rebalances_eagerly() {
        let both = [Assignor::Range, Assignor::CooperativeSticky];
        assert_eq!(Assignor::rebalancing(&both), Rebalancing::Eager);
        let one = [Assignor::CooperativeSticky];
        assert_eq!(Assignor::rebalancing(&one), Rebalancing::Cooperative);
    }
}
