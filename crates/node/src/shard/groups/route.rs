use highwater_coordinator::{MemberCaller, TopicNames};
use highwater_metadata::MetadataImage;
use highwater_types::{PartitionIndex, TopicId, TopicIdPartition};

use super::{GroupState, OFFSETS_TOPIC};
use crate::machine::{Caller, Incoming};

/// `__consumer_offsets`, as this node saw it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OffsetsTopic {
    pub(super) id: TopicId,
    /// How many partitions groups are spread over. As in Kafka it stays while the node runs:
    /// with every partition that were added groups would lose their coordinator and their past.
    pub(super) partitions: i32,
}

impl OffsetsTopic {
    /// The partition that keeps a group.
    pub(super) fn partition_of(&self, group_id: &str) -> TopicIdPartition {
        let number = partition_number(group_id, self.partitions);
        TopicIdPartition {
            topic_id: self.id,
            partition: PartitionIndex::new(number),
        }
    }
}

impl GroupState {
    /// Takes note of a new image.
    pub(crate) fn note_image(&mut self, image: &MetadataImage) {
        let topic = image.topic_by_name(OFFSETS_TOPIC);
        if topic.map(|it| it.id) != self.topic.map(|it| it.id) {
            self.topic = topic.map(|topic| OffsetsTopic {
                id: topic.id,
                partitions: i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX),
            });
        }
    }
}

/// The metadata's topics, for coordinators.
#[derive(Debug)]
pub(super) struct ImageNames<'a>(pub(super) &'a MetadataImage);

impl TopicNames for ImageNames<'_> {
    fn id_of(&self, name: &str) -> Option<TopicId> {
        self.0.topic_by_name(name).map(|topic| topic.id)
    }

    fn name_of(&self, id: TopicId) -> Option<&str> {
        self.0.topic(id).map(|topic| topic.name.as_str())
    }
}

/// Who sent a request, in the coordinator's words.
pub(super) fn member_caller(incoming: &Incoming) -> MemberCaller {
    MemberCaller {
        client_id: incoming.client_id.clone().unwrap_or_default(),
        client_host: client_host(&incoming.caller).into(),
    }
}

/// Java's way to write an address without a name.
fn client_host(caller: &Caller) -> String {
    caller
        .host
        .map(|address| format!("/{address}"))
        .unwrap_or_default()
}

/// Java's `String.hashCode`, without its sign, modulo the number of partitions. Java's strings are
/// UTF-16, and the absolute value of its smallest number is taken as zero.
fn partition_number(group_id: &str, partitions: i32) -> i32 {
    let hash = group_id.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    hash.checked_abs().unwrap_or(0) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread_as_java_does() {
        // Computed by Java's own `Math.abs(id.hashCode()) % n`, with MIN_VALUE taken as 0.
        let cases = [
            ("", 50, 0),
            ("g", 50, 3),
            ("group", 50, 47),
            ("console-consumer-12345", 50, 6),
            // Its hash code is negative.
            ("billing", 50, 9),
            ("\u{e4}\u{1f600}", 50, 7),
            // Its hash code is -2147483648.
            ("polygenelubricants", 50, 0),
        ];
        for (group_id, partitions, expected) in cases {
            let found = partition_number(group_id, partitions);
            assert_eq!(found, expected, "{group_id}");
        }
    }
}
