use std::collections::BTreeMap;

use highwater_types::PartitionIndex;

use crate::metadata::TopicMetadata;

/// Chooses partitions: by the hash of the key as Java's producer does, so that all producers put
/// a key into the same partition; records without a key stick to one partition until its batch
/// is closed.
#[derive(Debug, Default)]
pub(super) struct Partitioner {
    sticky: BTreeMap<String, usize>,
}

impl Partitioner {
    /// The partition for a record; `None` for a topic without partitions.
    pub(super) fn choose(
        &mut self,
        topic: &TopicMetadata,
        key: Option<&[u8]>,
    ) -> Option<PartitionIndex> {
        let count = topic.partitions.len();
        if let Some(key) = key {
            let hash = usize::try_from(murmur2(key) & 0x7fff_ffff).ok()?;
            return topic
                .partitions
                .get(hash.checked_rem(count)?)
                .map(|it| it.index);
        }
        let at = *self.sticky.entry(topic.name.clone()).or_default();
        let led = topic.partitions.iter().filter(|it| it.leader.is_some());
        let led: Vec<_> = led.map(|it| it.index).collect();
        match at.checked_rem(led.len()) {
            Some(at) => led.get(at).copied(),
            None => topic
                .partitions
                .get(at.checked_rem(count)?)
                .map(|it| it.index),
        }
    }

    /// The batch of the topic's sticky partition is closed: the next one gets its turn.
    pub(super) fn advance(&mut self, topic: &str) {
        if let Some(at) = self.sticky.get_mut(topic) {
            *at = at.wrapping_add(1);
        }
    }
}

/// Kafka's hash of keys: 32-bit murmur2 with its own seed, over little-endian words.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut hash = 0x9747_b28c ^ length;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let word = word
            .iter()
            .rev()
            .fold(0, |word: u32, &byte| word << 8 | u32::from(byte));
        let mut k = word.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        let rest = tail
            .iter()
            .rev()
            .fold(0, |word: u32, &byte| word << 8 | u32::from(byte));
        hash = (hash ^ rest).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::PartitionMetadata;
    use highwater_types::{ErrorCode, LeaderEpoch, NodeId};

    /// Values that Kafka's own test of its hash has.
    #[test]
    fn keys_hash_as_in_java() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    fn topic(leaders: &[Option<i32>]) -> TopicMetadata {
        let partition = |(leader, index): (&Option<i32>, i32)| PartitionMetadata {
            index: PartitionIndex::new(index),
            error: ErrorCode::NONE,
            leader: leader.map(NodeId::new),
            leader_epoch: LeaderEpoch::ZERO,
            assigned_replicas: Vec::new(),
            in_sync_replicas: Vec::new(),
            offline_replicas: Vec::new(),
        };
        TopicMetadata {
            name: "t".to_owned(),
            id: None,
            is_internal: false,
            error: ErrorCode::NONE,
            partitions: leaders.iter().zip(0..).map(partition).collect(),
        }
    }

    #[test]
    fn records_without_a_key_stick_and_avoid_partitions_without_a_leader() {
        let topic = topic(&[Some(1), None, Some(2)]);
        let mut partitioner = Partitioner::default();
        let mut chosen = Vec::new();
        for _ in 0..3 {
            chosen.push(partitioner.choose(&topic, None).unwrap().raw());
            chosen.push(partitioner.choose(&topic, None).unwrap().raw());
            partitioner.advance("t");
        }
        assert_eq!(chosen, [0, 0, 2, 2, 0, 0]);
        let keyed = partitioner.choose(&topic, Some(b"foobar")).unwrap();
        let hash = (-790_332_482_i32).cast_unsigned() & 0x7fff_ffff;
        assert_eq!(keyed.raw().cast_unsigned(), hash % 3);
    }
}
