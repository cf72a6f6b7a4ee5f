use bytes::Bytes;
use highwater_types::{Millis, PartitionIndex, TopicId};

use crate::messages::ProduceRequest;
use crate::messages::produce_request::PartitionProduceData;
use crate::topic_key::TopicKey;
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire};

/// The first version that names topics by id.
const TOPIC_IDS_SINCE: i16 = 13;

/// A Produce request as a view over its bytes.
///
/// Everything is checked once, in [`ProduceView::decode`]; the iterators then lend what is there
/// without building trees. Records are slices of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceView {
    version: i16,
    /// The body, without bytes after its end.
    body: Bytes,
    acks: i16,
    timeout_ms: i32,
    /// Where the topics begin in `body`.
    topics_at: usize,
    topic_count: usize,
    partition_count: usize,
}

impl ProduceView {
    /// Checks the body of a request. Bytes after its end are ignored.
    ///
    /// # Errors
    /// When the bytes are not such a request, or there is no such version.
    pub fn decode(mut body: Bytes, version: i16) -> Result<Self, DecodeError> {
        if !ProduceRequest::has_version(version) {
            return Err(DecodeError::Version {
                message: ProduceRequest::NAME,
                version,
            });
        }
        let mut r = reader(&body, version, 0);
        r.nullable_str()?;
        let (acks, timeout_ms) = (r.read()?, r.read()?);
        let topic_count = r.count(topic_size_min(version))?;
        let topics_at = body.len() - r.left();
        let mut partition_count: usize = 0;
        for _ in 0..topic_count {
            read_topic(&mut r)?;
            let count = r.count(PartitionProduceData::SIZE_MIN)?;
            for _ in 0..count {
                skip_partition(&mut r)?;
            }
            r.skip_tags()?;
            partition_count += count;
        }
        r.skip_tags()?;
        let len = body.len() - r.left();
        body.truncate(len);
        Ok(Self {
            version,
            body,
            acks,
            timeout_ms,
            topics_at,
            topic_count,
            partition_count,
        })
    }

    /// The view of a message, encoded at `version`.
    ///
    /// # Errors
    /// When `version` does not exist or cannot carry what is set.
    pub fn from_message(message: &ProduceRequest, version: i16) -> Result<Self, EncodeError> {
        let body = message.to_bytes(version)?;
        Ok(Self::decode(body, version).expect("what was encoded can be decoded"))
    }

    /// The request's version.
    #[must_use]
    pub const fn version(&self) -> i16 {
        self.version
    }

    /// The body as it came, without bytes after its end.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// The transactional id, for a transactional producer.
    #[must_use]
    pub fn transactional_id(&self) -> Option<&str> {
        reader(&self.body, self.version, 0)
            .nullable_str()
            .expect(CHECKED)
    }

    /// When the answer is wanted: 0 never, 1 after the append, -1 after replication. Unchecked.
    #[must_use]
    pub const fn acks(&self) -> i16 {
        self.acks
    }

    /// How long to wait for replication.
    #[must_use]
    pub fn timeout(&self) -> Millis {
        Millis::from_wire(self.timeout_ms)
    }

    /// The same as it was sent; it may be negative.
    #[must_use]
    pub const fn timeout_ms(&self) -> i32 {
        self.timeout_ms
    }

    /// Partitions over all topics, duplicates included.
    #[must_use]
    pub const fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// Topics, duplicates included.
    #[must_use]
    pub const fn topic_count(&self) -> usize {
        self.topic_count
    }

    /// The topics, in order.
    #[must_use]
    pub fn topics(&self) -> ProduceTopics<'_> {
        let r = reader(&self.body, self.version, self.topics_at);
        ProduceTopics {
            r,
            left: self.topic_count,
        }
    }
}

/// Lends the topics of a [`ProduceView`].
#[derive(Clone, Debug)]
pub struct ProduceTopics<'a> {
    r: Reader<'a>,
    left: usize,
}

/// One topic of a Produce request.
#[derive(Clone, Debug)]
pub struct ProduceTopicView<'a> {
    /// The topic's name, or its id from version 13 on.
    pub topic: TopicKey<'a>,
    /// Its partitions, in order.
    pub partitions: ProducePartitions<'a>,
}

impl<'a> Iterator for ProduceTopics<'a> {
    type Item = ProduceTopicView<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let topic = read_topic(&mut self.r).expect(CHECKED);
        let left = self.r.count(PartitionProduceData::SIZE_MIN).expect(CHECKED);
        let partitions = ProducePartitions {
            r: self.r.clone(),
            left,
        };
        for _ in 0..left {
            skip_partition(&mut self.r).expect(CHECKED);
        }
        self.r.skip_tags().expect(CHECKED);
        Some(ProduceTopicView { topic, partitions })
    }
}

/// Lends the partitions of a [`ProduceTopicView`].
#[derive(Clone, Debug)]
pub struct ProducePartitions<'a> {
    r: Reader<'a>,
    left: usize,
}

/// One partition of a Produce request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducePartitionView {
    /// The partition; it may be none of the topic's, even negative.
    pub partition: PartitionIndex,
    /// A slice of the request that should be one record batch. Unchecked.
    pub records: Option<Bytes>,
}

impl Iterator for ProducePartitions<'_> {
    type Item = ProducePartitionView;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let PartitionProduceData { index, records } = self.r.read().expect(CHECKED);
        Some(ProducePartitionView {
            partition: PartitionIndex::new(index),
            records,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ProducePartitions<'_> {}

const CHECKED: &str = "the whole request was checked when it came in";

fn reader(body: &Bytes, version: i16, at: usize) -> Reader<'_> {
    let mut r = Reader::new(body);
    r.start(version, version >= ProduceRequest::FLEXIBLE_SINCE);
    r.take(at).expect("a position within the body");
    r
}

fn read_topic<'a>(r: &mut Reader<'a>) -> Result<TopicKey<'a>, DecodeError> {
    if r.version() >= TOPIC_IDS_SINCE {
        return Ok(TopicKey::Id(TopicId::new(r.read()?)));
    }
    Ok(TopicKey::Name(r.str()?))
}

/// Checks what reading a partition would, without taking hold of its records.
fn skip_partition(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    r.read::<i32>()?;
    r.nullable_slice()?;
    r.skip_tags()
}

const fn topic_size_min(version: i16) -> usize {
    if version >= TOPIC_IDS_SINCE { 18 } else { 3 }
}
