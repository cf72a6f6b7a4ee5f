use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_records::stored::data::consumer_protocol_assignment::TopicPartition as AssignedTopic;
use highwater_records::stored::data::consumer_protocol_subscription::TopicPartition as OwnedTopic;
use highwater_records::stored::data::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use highwater_types::{PartitionIndex, TopicName, TopicPartition};

use super::PartitionSet;
use crate::wire::{DecodeError, EncodeError, Message, Reader, Writer};

/// The version that is written.
const VERSION: i16 = 3;

/// What a consumer tells the leader of its group about itself: Kafka's consumer protocol
/// subscription, versions 0 to 3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// The topics that it wants.
    pub topics: BTreeSet<TopicName>,
    /// Partitions that it still reads (cooperative rebalancing, KIP-429).
    pub owned: PartitionSet,
    /// The generation in which it got them (KIP-792); `None` before the first one.
    pub generation: Option<i32>,
    /// Where it is, to be near its partitions' leaders.
    pub rack: Option<String>,
    /// What its assignor adds.
    pub user_data: Option<Bytes>,
}

impl Subscription {
    /// The bytes that go into JoinGroup, version in front.
    ///
    /// # Errors
    /// When a list or text is longer than its length field can say.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        let owned = by_topic(&self.owned).into_iter();
        let message = ConsumerProtocolSubscription {
            topics: self.topics.iter().map(ToString::to_string).collect(),
            user_data: self.user_data.clone(),
            owned_partitions: owned
                .map(|(topic, partitions)| OwnedTopic { topic, partitions })
                .collect(),
            generation_id: self.generation.unwrap_or(-1),
            rack_id: self.rack.clone(),
        };
        with_version(&message)
    }

    /// Reads what another member told. Names that no topic can have are left out; what a newer
    /// version adds at the end is skipped.
    ///
    /// # Errors
    /// When the bytes are no subscription.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let message: ConsumerProtocolSubscription = read_with_version(bytes)?;
        let topics = message.topics.iter().filter_map(|it| topic_name(it));
        let owned = message.owned_partitions.iter();
        Ok(Self {
            topics: topics.collect(),
            owned: partitions(owned.map(|it| (it.topic.as_str(), it.partitions.as_slice()))),
            generation: Some(message.generation_id).filter(|it| *it >= 0),
            rack: message.rack_id,
            user_data: message.user_data,
        })
    }
}

/// The bytes of one member's assignment for SyncGroup, version in front.
///
/// # Errors
/// When a list is longer than its length field can say.
pub fn encode_assignment(assigned: &PartitionSet) -> Result<Bytes, EncodeError> {
    let topics = by_topic(assigned).into_iter();
    let message = ConsumerProtocolAssignment {
        assigned_partitions: topics
            .map(|(topic, partitions)| AssignedTopic { topic, partitions })
            .collect(),
        user_data: None,
    };
    with_version(&message)
}

/// Reads an assignment. No bytes at all are an empty one: that is what a member gets that its
/// leader forgot.
///
/// # Errors
/// When the bytes are no assignment.
pub fn decode_assignment(bytes: &Bytes) -> Result<PartitionSet, DecodeError> {
    if bytes.is_empty() {
        return Ok(PartitionSet::new());
    }
    let message: ConsumerProtocolAssignment = read_with_version(bytes)?;
    let topics = message.assigned_partitions.iter();
    Ok(partitions(
        topics.map(|it| (it.topic.as_str(), it.partitions.as_slice())),
    ))
}

fn with_version(message: &impl Message) -> Result<Bytes, EncodeError> {
    let mut w = Writer::with_capacity(64);
    w.write(&VERSION)?;
    message.encode(&mut w, VERSION)?;
    Ok(w.into_bytes())
}

fn read_with_version<M: Message>(bytes: &Bytes) -> Result<M, DecodeError> {
    let mut r = Reader::new(bytes);
    let version: i16 = r.read()?;
    M::decode(&mut r, version.min(VERSION))
}

fn by_topic(partitions: &PartitionSet) -> BTreeMap<String, Vec<i32>> {
    let mut topics: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for it in partitions {
        let numbers = topics.entry(it.topic.to_string()).or_default();
        numbers.push(it.partition.raw());
    }
    topics
}

fn partitions<'a>(topics: impl Iterator<Item = (&'a str, &'a [i32])>) -> PartitionSet {
    let mut set = PartitionSet::new();
    for (topic, numbers) in topics {
        let Some(topic) = topic_name(topic) else {
            continue;
        };
        let of_topic = numbers.iter().filter(|number| **number >= 0);
        set.extend(of_topic.map(|number| TopicPartition {
            topic: topic.clone(),
            partition: PartitionIndex::new(*number),
        }));
    }
    set
}

fn topic_name(text: &str) -> Option<TopicName> {
    TopicName::new(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::group::test_support::{partition_set, topic};

    /// What Kafka's own consumer sends: version 3, topics, no user data, owned partitions,
    /// generation 7, rack r.
    const FROM_KAFKA: &[u8] = b"\0\x03\0\0\0\x02\0\x01a\0\x01b\xff\xff\xff\xff\
        \0\0\0\x01\0\x01a\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\x07\0\x01r";

    #[test]
    fn a_subscription_has_kafkas_bytes() {
        let told = Subscription {
            topics: [topic("a"), topic("b")].into(),
            owned: partition_set("a-0 a-2"),
            generation: Some(7),
            rack: Some("r".to_owned()),
            user_data: None,
        };
        assert_eq!(told.encode().unwrap(), FROM_KAFKA);
        assert_eq!(
            Subscription::decode(&Bytes::from_static(FROM_KAFKA)),
            Ok(told)
        );
    }

    #[test]
    fn older_and_newer_subscriptions_are_read() {
        let oldest = Bytes::from_static(b"\0\0\0\0\0\x01\0\x01a\0\0\0\x02hi");
        let read = Subscription::decode(&oldest).unwrap();
        assert_eq!(read.topics, [topic("a")].into());
        assert_eq!(read.user_data.as_deref(), Some(&b"hi"[..]));
        assert_eq!((read.generation, read.rack), (None, None));
        let newer = [b"\0\x09", &FROM_KAFKA[2..], b"more"].concat();
        assert_eq!(
            Subscription::decode(&newer.into()).unwrap().generation,
            Some(7)
        );
    }

    #[test]
    fn what_is_no_subscription_is_an_error_and_never_a_panic() {
        for length in 0..FROM_KAFKA.len() {
            let cut = Bytes::copy_from_slice(&FROM_KAFKA[..length]);
            assert!(Subscription::decode(&cut).is_err(), "{length}");
        }
        assert!(Subscription::decode(&Bytes::from_static(b"\xff\xff\0\0\0\0")).is_err());
        let many = Bytes::from_static(b"\0\0\x7f\xff\xff\xff");
        assert!(Subscription::decode(&many).is_err());
    }

    #[test]
    fn assignments_go_there_and_back() {
        let assigned = partition_set("a-0 b-1 b-5");
        let bytes = encode_assignment(&assigned).unwrap();
        assert_eq!(&bytes[..2], b"\0\x03");
        assert_eq!(decode_assignment(&bytes), Ok(assigned));
        assert_eq!(decode_assignment(&Bytes::new()), Ok(PartitionSet::new()));
        let strange =
            Bytes::from_static(b"\0\0\0\0\0\x01\0\x03a/b\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff");
        assert_eq!(decode_assignment(&strange), Ok(PartitionSet::new()));
    }
}
