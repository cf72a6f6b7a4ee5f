use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_protocol::TopicKey;
use highwater_types::{LeaderEpoch, Offset, PartitionIndex, TopicIdPartition};

use super::read::PartitionRead;

/// What a fetch asks of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchPosition {
    /// The first offset wanted.
    pub(crate) offset: Offset,
    /// Records of this partition in one answer, in bytes; the first batch may be larger.
    pub(crate) max_bytes: u32,
    /// The leader epoch that the client believes in; none skips the check.
    pub(crate) current_leader_epoch: LeaderEpoch,
    /// The epoch of the last record that the client has; none skips the divergence check.
    pub(crate) last_fetched_epoch: LeaderEpoch,
}

/// How a request named a partition. One session uses only one of the two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartitionKey {
    /// By topic id: Fetch v13 and later.
    Id(TopicIdPartition),
    /// By topic name, any text: Fetch v12 and earlier.
    Name(Arc<str>, PartitionIndex),
}

impl PartitionKey {
    /// The partition's number.
    pub(crate) const fn partition(&self) -> PartitionIndex {
        match self {
            Self::Id(id) => id.partition,
            Self::Name(_, partition) => *partition,
        }
    }

    /// The topic as the answer names it.
    pub(crate) fn topic(&self) -> TopicKey<'_> {
        match self {
            Self::Id(id) => TopicKey::Id(id.topic_id),
            Self::Name(name, _) => TopicKey::Name(name),
        }
    }
}

/// One partition of a [`FetchSet`].
#[derive(Clone, Debug)]
pub(crate) struct FetchSlot {
    /// How the client named it.
    pub(crate) key: PartitionKey,
    /// What the client wants of it.
    pub(crate) position: FetchPosition,
    /// The high watermark that the client was last sent; none makes the next answer name the
    /// partition (KIP-227).
    pub(crate) high_watermark: Offset,
    /// The log start offset that the client was last sent.
    pub(crate) log_start_offset: Offset,
    /// Where the set is subscribed for it.
    pub(crate) subscribed: Option<TopicIdPartition>,
    /// The last answer said that the metadata does not know it.
    pub(crate) told_unknown: bool,
    /// The newest request names it, and it was not read since.
    pub(crate) mentioned: bool,
    /// A follower that wants to know of the high watermark soon after it moved.
    prompt: bool,
    order: u64,
    dirty: bool,
}

impl FetchSlot {
    /// Whether an incremental answer names the partition (KIP-227).
    pub(crate) fn has_news<F>(&self, read: &PartitionRead<F>) -> bool {
        read.bytes() > 0
            || read.is_urgent()
            || read.high_watermark != self.high_watermark
            || read.log_start_offset != self.log_start_offset
    }

    /// Whether a follower that wants to know soon does not know this high watermark.
    pub(crate) fn is_stale(&self, high_watermark: Offset) -> bool {
        self.prompt && high_watermark > self.high_watermark
    }

    /// Remembers what the client is told. After an error the partition is named again.
    pub(crate) const fn tell<F>(&mut self, read: &PartitionRead<F>) {
        self.high_watermark = read.high_watermark;
        self.log_start_offset = read.log_start_offset;
        self.told_unknown = read.unknown;
    }
}

/// The partitions of one session, or of one fetch that waits without a session.
///
/// Only dirty partitions are looked at: those whose position changed, whose owner marked them, or
/// that had more to say than the last answer held. A partition that was sent records goes to the
/// end of the order, so that each is served in its turn (KAFKA-12330).
///
/// Invariant: `dirty` holds exactly the slots that are flagged dirty, by their order.
#[derive(Debug, Default)]
pub(crate) struct FetchSet {
    slots: Vec<Option<FetchSlot>>,
    free: Vec<u32>,
    by_key: BTreeMap<PartitionKey, u32>,
    dirty: BTreeSet<(u64, u32)>,
    next_order: u64,
}

impl FetchSet {
    /// The number of partitions.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// How the client named its partitions.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &PartitionKey> {
        self.by_key.keys()
    }

    /// Whether it has no partition.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Adds a partition at the end, or changes what is wanted of it. Either makes it dirty.
    ///
    /// `known` is the high watermark that the sender knows, of a follower that wants to be told of
    /// a newer one soon: the answer that it was last sent may not have come.
    pub(crate) fn insert(
        &mut self,
        key: PartitionKey,
        position: FetchPosition,
        known: Option<Offset>,
    ) -> u32 {
        if let Some(number) = self.by_key.get(&key).copied() {
            let slot = self.slot_mut(number).expect("a key names a slot");
            let is_news = slot.position != position || known.is_some();
            slot.position = position;
            slot.mentioned |= is_news;
            slot.prompt = known.is_some();
            if let Some(known) = known {
                slot.high_watermark = known;
            }
            if is_news {
                self.mark(number);
            }
            return number;
        }
        let order = self.next_order();
        let slot = FetchSlot {
            key: key.clone(),
            position,
            high_watermark: known.unwrap_or(Offset::NONE),
            log_start_offset: Offset::NONE,
            subscribed: None,
            told_unknown: false,
            mentioned: true,
            prompt: known.is_some(),
            order,
            dirty: true,
        };
        let number = match self.free.pop() {
            Some(number) => {
                let place = self
                    .slots
                    .get_mut(number as usize)
                    .expect("a free slot exists");
                *place = Some(slot);
                number
            }
            None => {
                let number = u32::try_from(self.slots.len()).expect("frames bound the partitions");
                self.slots.push(Some(slot));
                number
            }
        };
        self.by_key.insert(key, number);
        self.dirty.insert((order, number));
        number
    }

    /// Takes a partition out.
    pub(crate) fn remove(&mut self, key: &PartitionKey) -> Option<(u32, FetchSlot)> {
        let number = self.by_key.remove(key)?;
        let slot = self.slots.get_mut(number as usize)?.take()?;
        self.dirty.remove(&(slot.order, number));
        self.free.push(number);
        Some((number, slot))
    }

    /// A partition by its slot.
    pub(crate) fn slot(&self, number: u32) -> Option<&FetchSlot> {
        self.slots.get(number as usize)?.as_ref()
    }

    /// A partition by its slot.
    pub(crate) fn slot_mut(&mut self, number: u32) -> Option<&mut FetchSlot> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// The partition must be looked at before the next answer.
    pub(crate) fn mark(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut)
            && !slot.dirty
        {
            slot.dirty = true;
            self.dirty.insert((slot.order, number));
        }
    }

    /// Every partition must be looked at.
    pub(crate) fn mark_all(&mut self) {
        for number in 0..self.slots.len() {
            self.mark(u32::try_from(number).unwrap_or(u32::MAX));
        }
    }

    /// The partition has nothing to say until it is marked again.
    pub(crate) fn clean(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) {
            slot.dirty = false;
            self.dirty.remove(&(slot.order, number));
        }
    }

    /// The partition is served last from now on.
    pub(crate) fn move_to_end(&mut self, number: u32) {
        let order = self.next_order();
        if let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) {
            let before = std::mem::replace(&mut slot.order, order);
            if self.dirty.remove(&(before, number)) {
                self.dirty.insert((order, number));
            }
        }
    }

    /// The place of a slot in the order of service.
    pub(crate) fn order(&self, number: u32) -> u64 {
        self.slot(number).map_or(u64::MAX, |slot| slot.order)
    }

    /// The slots to look at, in the order in which they are served.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = u32> + '_ {
        self.dirty.iter().map(|(_, number)| *number)
    }

    /// The partitions that the set is subscribed to.
    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = TopicIdPartition> + '_ {
        self.slots
            .iter()
            .filter_map(|slot| slot.as_ref()?.subscribed)
    }

    const fn next_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::shard::fetch) fn key(partition: i32) -> PartitionKey {
        PartitionKey::Name("t".into(), PartitionIndex::new(partition))
    }

    pub(in crate::shard::fetch) const fn at(offset: i64) -> FetchPosition {
        FetchPosition {
            offset: Offset::new(offset),
            max_bytes: 1 << 20,
            current_leader_epoch: LeaderEpoch::NONE,
            last_fetched_epoch: LeaderEpoch::NONE,
        }
    }

    fn dirty(set: &FetchSet) -> Vec<i32> {
        set.dirty()
            .map(|slot| set.slot(slot).expect("slot").key.partition().raw())
            .collect()
    }

    #[test]
    fn np_03_a_served_partition_goes_to_the_end_and_the_others_keep_their_order() {
        let mut set = FetchSet::default();
        let slots: Vec<u32> = (0..3).map(|n| set.insert(key(n), at(0), None)).collect();
        assert_eq!(dirty(&set), [0, 1, 2]);
        set.move_to_end(slots[0]);
        assert_eq!(dirty(&set), [1, 2, 0]);
        set.clean(slots[1]);
        set.move_to_end(slots[1]);
        assert_eq!(dirty(&set), [2, 0]);
        set.mark(slots[1]);
        assert_eq!(dirty(&set), [2, 0, 1]);
    }

    #[test]
    fn an_update_marks_only_what_changed_and_a_removed_slot_is_reused() {
        let mut set = FetchSet::default();
        let first = set.insert(key(0), at(0), None);
        set.clean(first);
        assert_eq!(set.insert(key(0), at(0), None), first);
        assert_eq!(dirty(&set), Vec::<i32>::new());
        set.insert(key(0), at(5), None);
        assert_eq!(dirty(&set), [0]);
        assert!(set.remove(&key(0)).is_some());
        assert!(set.remove(&key(0)).is_none());
        assert!(set.is_empty() && set.dirty().next().is_none());
        assert_eq!(set.insert(key(7), at(0), None), first);
        assert_eq!(set.len(), 1);
    }
}
