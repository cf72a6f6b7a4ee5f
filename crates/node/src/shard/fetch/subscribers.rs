use std::collections::BTreeMap;

use highwater_replication::FollowerFetch;
use highwater_types::TopicIdPartition;

use super::replica::Noted;
use super::{FetchPosition, Reader, SetId};

/// Who wants to know when a partition of this shard changes.
///
/// A partition joins a session once and stays subscribed until it is forgotten, so a fetch that
/// finds nothing new costs nothing at the owner.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    by_partition: BTreeMap<TopicIdPartition, Vec<Subscriber>>,
}

/// One place of one set, on some shard.
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// The shard that the set lives on.
    pub(crate) home: u16,
    /// The set.
    pub(crate) set: SetId,
    /// The partition's slot in it.
    pub(crate) slot: u32,
    /// For a set of another shard: what it wants, to judge a change here.
    pub(crate) remote: Option<RemoteView>,
    /// For a session of a follower: its last fetch, if it counts. It counts again with each
    /// request of the session that does not mention the partition.
    pub(crate) counted: Option<FollowerFetch>,
}

/// What a set of another shard wants of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteView {
    /// What it wants.
    pub(crate) position: FetchPosition,
    /// For whom.
    pub(crate) reader: Reader,
    /// Whether the next change is to be told. One message tells of it; the home asks for the
    /// next one, so at most one is under way.
    pub(crate) armed: bool,
    /// For a follower that takes anything: how much one answer may hold. What changes is read and
    /// brought at once then.
    pub(crate) brings: Option<u64>,
}

impl Subscribers {
    /// Subscribes a slot, or replaces what was known of it. What counted before still counts
    /// where nothing new was `noted`.
    pub(crate) fn add(&mut self, at: TopicIdPartition, mut subscriber: Subscriber, noted: Noted) {
        let list = self.by_partition.entry(at).or_default();
        let same = |it: &&mut Subscriber| it.home == subscriber.home && it.set == subscriber.set;
        let known = list.iter_mut().find(same);
        subscriber.counted = match noted {
            Noted::Not => known.as_ref().and_then(|it| it.counted),
            Noted::Refused => None,
            Noted::Counted(fetch) => Some(fetch),
        };
        match known {
            Some(known) => *known = subscriber,
            None => list.push(subscriber),
        }
    }

    /// Takes a set's subscription back. No error when there is none.
    pub(crate) fn remove(&mut self, at: TopicIdPartition, home: u16, set: SetId) {
        if let Some(list) = self.by_partition.get_mut(&at) {
            list.retain(|it| it.home != home || it.set != set);
            if list.is_empty() {
                self.by_partition.remove(&at);
            }
        }
    }

    /// The subscribers of a partition.
    pub(crate) fn of(&mut self, at: TopicIdPartition) -> &mut [Subscriber] {
        self.by_partition
            .get_mut(&at)
            .map_or(&mut [], Vec::as_mut_slice)
    }

    /// The subscribers of a partition, to be looked at.
    pub(crate) fn known_of(&self, at: TopicIdPartition) -> &[Subscriber] {
        self.by_partition.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Whether nobody is subscribed to anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_partition.is_empty()
    }
}
