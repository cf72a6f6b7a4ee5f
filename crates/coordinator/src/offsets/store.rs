use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_types::{
    LeaderEpoch, Offset, PartitionIndex, ProducerId, TopicId, TopicName, WallMs,
};

use crate::record::Record;

/// What is committed for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    /// The next offset to be consumed; whatever the client sent.
    pub(crate) offset: Offset,
    /// Of the last consumed record, or `LeaderEpoch::NONE`.
    pub(crate) leader_epoch: LeaderEpoch,
    /// The client's own text.
    pub(crate) metadata: Arc<str>,
    pub(crate) commit_timestamp: WallMs,
    /// Only commits of versions 2 to 4 with a retention have one.
    pub(crate) expire_timestamp: Option<WallMs>,
    /// Zero when it was not known at the commit.
    pub(crate) topic_id: TopicId,
    /// Where the record is that says so. A later record wins over an earlier one, also when the
    /// earlier one belongs to a transaction that ends later (GO-04).
    pub(crate) record_offset: Offset,
}

type OffsetKey = (TopicName, PartitionIndex);
type Offsets = BTreeMap<OffsetKey, CommittedOffset>;

/// The committed offsets of one group, and those of its open transactions. Changes only in replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupOffsets {
    committed: Offsets,
    /// What open transactions would commit. Only logs that a Kafka wrote have any.
    ///
    /// Invariant: no map in it is empty.
    pending: BTreeMap<ProducerId, Offsets>,
    /// Exclusive end of the newest record of these offsets, tombstones and markers included.
    newest: Offset,
}

impl GroupOffsets {
    pub(crate) fn is_empty(&self) -> bool {
        self.committed.is_empty() && self.pending.is_empty()
    }

    /// Exclusive end of the newest record; [`Offset::ZERO`]: none.
    pub(crate) const fn newest(&self) -> Offset {
        self.newest
    }

    pub(crate) fn get(
        &self,
        topic: &TopicName,
        partition: PartitionIndex,
    ) -> Option<&CommittedOffset> {
        self.committed.get(&(topic.clone(), partition))
    }

    /// All committed offsets, by topic and partition.
    pub(crate) fn iter(
        &self,
    ) -> impl Iterator<Item = (&TopicName, PartitionIndex, &CommittedOffset)> {
        let committed = self.committed.iter();
        committed.map(|((topic, partition), commit)| (topic, *partition, commit))
    }

    /// The topics of all of them, some more than once.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &TopicName> {
        let committed = self.committed.keys();
        let pending = self.pending.values().flat_map(BTreeMap::keys);
        committed.chain(pending).map(|(topic, _)| topic)
    }

    /// Offsets that only open transactions have, or that they have too.
    pub(crate) fn iter_pending(
        &self,
    ) -> impl Iterator<Item = (&TopicName, PartitionIndex, &CommittedOffset)> {
        let pending = self.pending.values().flatten();
        pending.map(|((topic, partition), commit)| (topic, *partition, commit))
    }

    /// Whether an open transaction has something to commit for the partition.
    pub(crate) fn is_pending(&self, topic: &TopicName, partition: PartitionIndex) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let key = (topic.clone(), partition);
        self.pending
            .values()
            .any(|offsets| offsets.contains_key(&key))
    }

    /// The partitions for which only open transactions have something to commit.
    pub(crate) fn pending_only(&self) -> Vec<OffsetKey> {
        let pending = self.pending.values().flat_map(BTreeMap::keys);
        let only: BTreeSet<&OffsetKey> = pending
            .filter(|key| !self.committed.contains_key(key))
            .collect();
        only.into_iter().cloned().collect()
    }

    /// A record that is no part of a transaction, with its exclusive end.
    pub(crate) fn replay(
        &mut self,
        topic: &TopicName,
        partition: PartitionIndex,
        commit: Option<&CommittedOffset>,
        end: Offset,
    ) {
        let key = (topic.clone(), partition);
        self.newest = end;
        match commit {
            Some(commit) => {
                self.committed.insert(key, at(commit, end));
            }
            None => {
                self.committed.remove(&key);
                // A tombstone also takes away what open transactions would commit.
                self.pending.retain(|_, offsets| {
                    offsets.remove(&key);
                    !offsets.is_empty()
                });
            }
        }
    }

    /// A commit of a transaction, with its record's exclusive end: it waits for the transaction's
    /// end. (A tombstone would not wait.)
    pub(crate) fn replay_in_transaction(
        &mut self,
        producer_id: ProducerId,
        topic: &TopicName,
        partition: PartitionIndex,
        commit: &CommittedOffset,
        end: Offset,
    ) {
        self.newest = end;
        let offsets = self.pending.entry(producer_id).or_default();
        offsets.insert((topic.clone(), partition), at(commit, end));
    }

    /// A transaction's marker, with its exclusive end.
    pub(crate) fn replay_transaction_end(
        &mut self,
        producer_id: ProducerId,
        committed: bool,
        end: Offset,
    ) {
        let Some(offsets) = self.pending.remove(&producer_id) else {
            return;
        };
        self.newest = end;
        if !committed {
            return;
        }
        for (key, commit) in offsets {
            let is_newer = |known: &CommittedOffset| commit.record_offset > known.record_offset;
            if self.committed.get(&key).is_none_or(is_newer) {
                self.committed.insert(key, commit);
            }
        }
    }
}

/// The record that takes an offset away.
pub(crate) fn tombstone(topic: &TopicName, partition: PartitionIndex) -> Record {
    Record::Offset {
        topic: topic.clone(),
        partition,
        commit: None,
    }
}

fn at(commit: &CommittedOffset, end: Offset) -> CommittedOffset {
    CommittedOffset {
        record_offset: end.plus(-1),
        ..commit.clone()
    }
}
