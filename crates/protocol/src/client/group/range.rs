//! Kafka's range assignor, without racks.

use super::PartitionSet;
use super::assignor::{Assignments, GroupMemberView, TopicCounts, partition, subscribers};

/// Of each topic, the first members get one partition more where it does not divide evenly.
pub(super) fn assign(counts: &TopicCounts, members: &[&GroupMemberView]) -> Assignments {
    let mut dealt: Vec<PartitionSet> = vec![PartitionSet::new(); members.len()];
    for (topic, wanted_by) in subscribers(counts, members) {
        let count = counts.get(topic).copied().unwrap_or_default();
        let among = i32::try_from(wanted_by.len()).unwrap_or(i32::MAX);
        let (each, more) = (count / among, count % among);
        let mut next = 0;
        for (at, order) in wanted_by.into_iter().zip(0..) {
            let until = next + each + i32::from(order < more);
            if let Some(assigned) = dealt.get_mut(at) {
                assigned.extend((next..until).map(|number| partition(topic, number)));
            }
            next = until;
        }
    }
    let ids = members.iter().map(|member| member.member_id.clone());
    ids.zip(dealt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::group::Assignor;
    use crate::client::group::test_support::{counts, member, partition_set};

    fn assign(topics: &str, members: &[GroupMemberView]) -> Vec<(String, PartitionSet)> {
        let assigned = Assignor::Range.assign(&counts(topics), members);
        assigned.into_iter().collect()
    }

    #[test]
    fn the_first_members_get_what_is_left_over_of_each_topic() {
        let members = [member("m2", "a b"), member("m1", "a b")];
        let expected = [
            ("m1".to_owned(), partition_set("a-0 a-1 b-0 b-1")),
            ("m2".to_owned(), partition_set("a-2 b-2")),
        ];
        assert_eq!(assign("a:3 b:3", &members), expected);
    }

    #[test]
    fn members_get_only_what_they_want_and_topics_that_exist() {
        let members = [
            member("m1", "a gone"),
            member("m2", "a b"),
            member("m3", ""),
        ];
        let expected = [
            ("m1".to_owned(), partition_set("a-0")),
            ("m2".to_owned(), partition_set("a-1 b-0")),
            ("m3".to_owned(), PartitionSet::new()),
        ];
        assert_eq!(assign("a:2 b:1 c:4", &members), expected);
    }

    #[test]
    fn static_members_come_first_by_their_instance_ids() {
        let mut first = member("z", "a");
        first.instance_id = Some("i-1".to_owned());
        let mut second = member("y", "a");
        second.instance_id = Some("i-2".to_owned());
        let expected = [
            ("b".to_owned(), partition_set("a-2")),
            ("y".to_owned(), partition_set("a-1")),
            ("z".to_owned(), partition_set("a-0")),
        ];
        assert_eq!(assign("a:3", &[member("b", "a"), second, first]), expected);
    }
}
