use bytes::Bytes;
use highwater_types::{
    BrokerEpoch, DirectoryId, LeaderEpoch, Millis, NodeId, Offset, PartitionIndex, TopicId,
};

use crate::messages::FetchRequest;
use crate::messages::fetch_request::{FetchPartition, ReplicaState};
use crate::topic_key::TopicKey;
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire};

/// The first version that names topics by id.
const TOPIC_IDS_SINCE: i16 = 13;
/// The first version with fetch sessions (KIP-227).
const SESSIONS_SINCE: i16 = 7;

/// A Fetch request as a view over its bytes.
///
/// Everything is checked once, in [`FetchView::decode`]; the iterators then lend what is there
/// without building trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchView {
    version: i16,
    /// The body, without bytes after its end.
    body: Bytes,
    head: Head,
    topics: Section,
    forgotten: Section,
    partition_count: usize,
}

/// The fields outside of topics. Absent ones have their defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    replica: ReplicaState,
    max_wait_ms: i32,
    min_bytes: i32,
    max_bytes: i32,
    isolation_level: i8,
    session_id: i32,
    session_epoch: i32,
}

/// A part of the body: where it begins, and how many entries or bytes it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Section {
    at: usize,
    count: usize,
}

impl FetchView {
    /// Checks the body of a request. Bytes after its end are ignored.
    ///
    /// # Errors
    /// When the bytes are not such a request, or there is no such version.
    pub fn decode(mut body: Bytes, version: i16) -> Result<Self, DecodeError> {
        if !FetchRequest::has_version(version) {
            return Err(DecodeError::Version {
                message: FetchRequest::NAME,
                version,
            });
        }
        let mut r = reader(&body, version, 0);
        let mut head = read_head(&mut r)?;
        let count = r.count(topic_size_min(version))?;
        let topics = Section {
            at: body.len() - r.left(),
            count,
        };
        let mut partition_count: usize = 0;
        for _ in 0..count {
            read_topic(&mut r)?;
            partition_count += skip::<FetchPartition>(&mut r)?;
        }
        let mut forgotten = Section::default();
        if version >= SESSIONS_SINCE {
            let count = r.count(topic_size_min(version))?;
            forgotten = Section {
                at: body.len() - r.left(),
                count,
            };
            for _ in 0..count {
                read_topic(&mut r)?;
                skip::<i32>(&mut r)?;
            }
        }
        if version >= 11 {
            r.str()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 => r.nullable_str().map(|_| ())?,
                1 if version >= 15 => head.replica = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let len = body.len() - r.left();
        body.truncate(len);
        Ok(Self {
            version,
            body,
            head,
            topics,
            forgotten,
            partition_count,
        })
    }

    /// The view of a message, encoded at `version`.
    ///
    /// # Errors
    /// When `version` does not exist or cannot carry what is set.
    pub fn from_message(message: &FetchRequest, version: i16) -> Result<Self, EncodeError> {
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

    /// The cluster that the sender believes to be in (version 12 on).
    #[must_use]
    pub fn cluster_id(&self) -> Option<&str> {
        let mut cluster_id = None;
        self.tail()
            .1
            .tags(|tag, r| {
                if tag == 0 {
                    cluster_id = r.nullable_str()?;
                }
                Ok(tag == 0)
            })
            .expect(CHECKED);
        cluster_id
    }

    /// The broker that replicates by this request; [`NodeId::NONE`] for a consumer. From the
    /// ReplicaState tag since version 15 (KIP-903), else from the ReplicaId field.
    #[must_use]
    pub const fn replica_id(&self) -> NodeId {
        self.head.replica.replica_id
    }

    /// The epoch of that broker, or [`BrokerEpoch::NONE`].
    #[must_use]
    pub const fn replica_epoch(&self) -> BrokerEpoch {
        BrokerEpoch::new(self.head.replica.replica_epoch)
    }

    /// How long the answer may wait for `min_bytes`.
    #[must_use]
    pub fn max_wait(&self) -> Millis {
        Millis::from_wire(self.head.max_wait_ms)
    }

    /// The same as it was sent: it may be negative.
    #[must_use]
    pub const fn max_wait_ms(&self) -> i32 {
        self.head.max_wait_ms
    }

    /// Bytes of records that end the wait.
    #[must_use]
    pub const fn min_bytes(&self) -> i32 {
        self.head.min_bytes
    }

    /// Bytes of records that the answer should not exceed; its first batch may.
    #[must_use]
    pub const fn max_bytes(&self) -> i32 {
        self.head.max_bytes
    }

    /// 0: up to the high watermark; 1: up to the last stable offset. Unchecked.
    #[must_use]
    pub const fn isolation_level(&self) -> i8 {
        self.head.isolation_level
    }

    /// The fetch session, or 0 (KIP-227).
    #[must_use]
    pub const fn session_id(&self) -> i32 {
        self.head.session_id
    }

    /// Counts the requests of a session; 0 begins one, -1 ends it or does without.
    #[must_use]
    pub const fn session_epoch(&self) -> i32 {
        self.head.session_epoch
    }

    /// The consumer's rack, or nothing (version 11 on).
    #[must_use]
    pub fn rack_id(&self) -> &str {
        self.tail().0
    }

    /// Partitions over all topics, duplicates included.
    #[must_use]
    pub const fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// Topics, duplicates included.
    #[must_use]
    pub const fn topic_count(&self) -> usize {
        self.topics.count
    }

    /// The topics, in order.
    #[must_use]
    pub fn topics(&self) -> FetchTopics<'_> {
        let r = reader(&self.body, self.version, self.topics.at);
        FetchTopics {
            r,
            left: self.topics.count,
        }
    }

    /// The topics whose partitions leave the session, in order.
    #[must_use]
    pub fn forgotten_topics(&self) -> ForgottenTopics<'_> {
        let r = reader(&self.body, self.version, self.forgotten.at);
        ForgottenTopics {
            r,
            left: self.forgotten.count,
        }
    }

    /// What comes after the topics: the rack, and the reader in front of the tagged fields.
    fn tail(&self) -> (&str, Reader<'_>) {
        let mut r = if self.version >= SESSIONS_SINCE {
            let mut forgotten = self.forgotten_topics();
            while forgotten.next().is_some() {}
            forgotten.r
        } else {
            let mut topics = self.topics();
            while topics.next().is_some() {}
            topics.r
        };
        let rack_id = if self.version >= 11 {
            r.str().expect(CHECKED)
        } else {
            ""
        };
        (rack_id, r)
    }
}

/// Lends the topics of a [`FetchView`].
#[derive(Clone, Debug)]
pub struct FetchTopics<'a> {
    r: Reader<'a>,
    left: usize,
}

/// One topic of a Fetch request.
#[derive(Clone, Debug)]
pub struct FetchTopicView<'a> {
    /// The topic's name, or its id from version 13 on.
    pub topic: TopicKey<'a>,
    /// Its partitions, in order.
    pub partitions: FetchPartitions<'a>,
}

impl<'a> Iterator for FetchTopics<'a> {
    type Item = FetchTopicView<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let topic = read_topic(&mut self.r).expect(CHECKED);
        let (r, left) = lend::<FetchPartition>(&mut self.r);
        Some(FetchTopicView {
            topic,
            partitions: FetchPartitions { r, left },
        })
    }
}

/// Lends the partitions of a [`FetchTopicView`].
#[derive(Clone, Debug)]
pub struct FetchPartitions<'a> {
    r: Reader<'a>,
    left: usize,
}

/// One partition of a Fetch request. Absent fields have their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPartitionView {
    /// The partition; it may be none of the topic's, even negative.
    pub partition: PartitionIndex,
    /// The leader epoch that the sender knows, or none (version 9 on; KIP-320).
    pub current_leader_epoch: LeaderEpoch,
    /// The first offset wanted.
    pub fetch_offset: Offset,
    /// The epoch of the sender's last record, or none (version 12 on; KIP-595).
    pub last_fetched_epoch: LeaderEpoch,
    /// The follower's log start offset, or none (version 5 on).
    pub log_start_offset: Offset,
    /// Bytes of records wanted at most; the first batch may exceed them.
    pub partition_max_bytes: i32,
    /// The follower's log directory (version 17 on; KIP-853).
    pub replica_directory_id: DirectoryId,
    /// The high watermark that the sender knows; [`Offset::MAX`] when it does not say (version 18
    /// on; KIP-1166).
    pub high_watermark: Offset,
}

impl Iterator for FetchPartitions<'_> {
    type Item = FetchPartitionView;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let it: FetchPartition = self.r.read().expect(CHECKED);
        Some(FetchPartitionView {
            partition: PartitionIndex::new(it.partition),
            current_leader_epoch: LeaderEpoch::new(it.current_leader_epoch),
            fetch_offset: Offset::new(it.fetch_offset),
            last_fetched_epoch: LeaderEpoch::new(it.last_fetched_epoch),
            log_start_offset: Offset::new(it.log_start_offset),
            partition_max_bytes: it.partition_max_bytes,
            replica_directory_id: DirectoryId::new(it.replica_directory_id),
            high_watermark: Offset::new(it.high_watermark),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for FetchPartitions<'_> {}

/// Lends the forgotten topics of a [`FetchView`].
#[derive(Clone, Debug)]
pub struct ForgottenTopics<'a> {
    r: Reader<'a>,
    left: usize,
}

/// One topic whose partitions leave the session.
#[derive(Clone, Debug)]
pub struct ForgottenTopicView<'a> {
    /// The topic's name, or its id from version 13 on.
    pub topic: TopicKey<'a>,
    /// The partitions that leave.
    pub partitions: ForgottenPartitions<'a>,
}

impl<'a> Iterator for ForgottenTopics<'a> {
    type Item = ForgottenTopicView<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let topic = read_topic(&mut self.r).expect(CHECKED);
        let (r, left) = lend::<i32>(&mut self.r);
        Some(ForgottenTopicView {
            topic,
            partitions: ForgottenPartitions { r, left },
        })
    }
}

/// Lends the partitions of a [`ForgottenTopicView`].
#[derive(Clone, Debug)]
pub struct ForgottenPartitions<'a> {
    r: Reader<'a>,
    left: usize,
}

impl Iterator for ForgottenPartitions<'_> {
    type Item = PartitionIndex;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(PartitionIndex::new(self.r.read().expect(CHECKED)))
    }
}

const CHECKED: &str = "the whole request was checked when it came in";

fn reader(body: &Bytes, version: i16, at: usize) -> Reader<'_> {
    let mut r = Reader::new(body);
    r.start(version, version >= FetchRequest::FLEXIBLE_SINCE);
    r.take(at).expect("a position within the body");
    r
}

fn read_head(r: &mut Reader<'_>) -> Result<Head, DecodeError> {
    let defaults = FetchRequest::default();
    let version = r.version();
    let mut replica = ReplicaState::default();
    if version < 15 {
        replica.replica_id = r.read()?;
    }
    let mut head = Head {
        replica,
        max_wait_ms: r.read()?,
        min_bytes: r.read()?,
        max_bytes: r.read()?,
        isolation_level: r.read()?,
        session_id: defaults.session_id,
        session_epoch: defaults.session_epoch,
    };
    if version >= SESSIONS_SINCE {
        head.session_id = r.read()?;
        head.session_epoch = r.read()?;
    }
    Ok(head)
}

fn read_topic<'a>(r: &mut Reader<'a>) -> Result<TopicKey<'a>, DecodeError> {
    if r.version() >= TOPIC_IDS_SINCE {
        return Ok(TopicKey::Id(TopicId::new(r.read()?)));
    }
    Ok(TopicKey::Name(r.str()?))
}

/// Checks and skips a topic's partitions and tags; gives the number of partitions.
fn skip<T: Wire>(r: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let count = r.count(T::SIZE_MIN)?;
    for _ in 0..count {
        r.read::<T>()?;
    }
    r.skip_tags()?;
    Ok(count)
}

/// A reader at a topic's partitions and their number; `r` goes behind the topic.
fn lend<'a, T: Wire>(r: &mut Reader<'a>) -> (Reader<'a>, usize) {
    let mut ahead = r.clone();
    let count = ahead.count(T::SIZE_MIN).expect(CHECKED);
    skip::<T>(r).expect(CHECKED);
    (ahead, count)
}

const fn topic_size_min(version: i16) -> usize {
    if version >= TOPIC_IDS_SINCE { 18 } else { 3 }
}
