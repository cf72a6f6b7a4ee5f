use std::collections::{BTreeMap, BTreeSet};

use highwater_types::{ErrorCode, Mono, Offset, TopicIdPartition};

use super::outcome::Outcome;
use crate::machine::{ConnId, Ticket};

/// Names one row of one request within a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    pub(crate) ticket: Ticket,
    pub(crate) row: u32,
    /// The shard that joins the request. Connection ids are unique within a node, so it adds
    /// nothing to the order.
    pub(crate) home: u16,
}

/// What an append waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Until {
    /// acks=all: the high watermark of the partition.
    HighWatermark,
    /// acks=1: the leader's own copy, where the topic asks for a flush.
    OwnCopy,
}

impl Until {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::HighWatermark, Self::OwnCopy];
}

/// Appends that wait for their partition to come so far, or for their deadline.
///
/// Invariant: the three maps hold the same rows.
#[derive(Debug, Default)]
pub(crate) struct Purgatory {
    waits: BTreeMap<RowKey, Wait>,
    by_partition: BTreeSet<(TopicIdPartition, Until, Offset, RowKey)>,
    by_deadline: BTreeSet<(Mono, RowKey)>,
}

/// One append that waits.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) id: TopicIdPartition,
    pub(crate) until: Until,
    /// Exclusive: done once what it waits for is here.
    pub(crate) end_offset: Offset,
    pub(crate) deadline: Mono,
    /// What is answered if all goes well.
    pub(crate) outcome: Outcome,
}

impl Purgatory {
    pub(crate) fn len(&self) -> usize {
        self.waits.len()
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    pub(crate) fn insert(&mut self, key: RowKey, wait: Wait) {
        self.by_partition
            .insert((wait.id, wait.until, wait.end_offset, key));
        self.by_deadline.insert((wait.deadline, key));
        let before = self.waits.insert(key, wait);
        assert!(before.is_none(), "{key:?} waits twice");
        self.assert_invariants();
    }

    /// The offset that the next append of a partition waits for.
    pub(crate) fn next_of(&self, id: TopicIdPartition, until: Until) -> Option<Offset> {
        self.first_of(id, until).map(|(end_offset, _)| end_offset)
    }

    /// Takes out the next append of a partition.
    pub(crate) fn take_next_of(
        &mut self,
        id: TopicIdPartition,
        until: Until,
    ) -> Option<(RowKey, Outcome)> {
        let (_, key) = self.first_of(id, until)?;
        self.remove(key).map(|wait| (key, wait.outcome))
    }

    /// Takes out the appends whose deadline has come, with what they are answered. The offset
    /// stays in the answer, as in Kafka: the records are there, only not known to be safe.
    pub(crate) fn take_due(&mut self, now: Mono) -> Vec<(RowKey, Outcome)> {
        let mut due = Vec::new();
        while let Some((deadline, key)) = self.by_deadline.first().copied()
            && deadline <= now
        {
            if let Some(wait) = self.remove(key) {
                due.push((key, wait.outcome.with_error(ErrorCode::REQUEST_TIMED_OUT)));
            }
        }
        due
    }

    /// Nobody waits for this request any more.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        let at = |row, home| RowKey { ticket, row, home };
        let keys: Vec<_> = self
            .waits
            .range(at(0, 0)..=at(u32::MAX, u16::MAX))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.remove(key);
        }
    }

    fn first_of(&self, id: TopicIdPartition, until: Until) -> Option<(Offset, RowKey)> {
        let lowest = RowKey {
            ticket: Ticket {
                conn: ConnId(0),
                seq: 0,
            },
            row: 0,
            home: 0,
        };
        let (found, found_until, end_offset, key) = self
            .by_partition
            .range((id, until, Offset::new(i64::MIN), lowest)..)
            .next()?;
        (*found == id && *found_until == until).then_some((*end_offset, *key))
    }

    fn remove(&mut self, key: RowKey) -> Option<Wait> {
        let wait = self.waits.remove(&key)?;
        self.by_partition
            .remove(&(wait.id, wait.until, wait.end_offset, key));
        self.by_deadline.remove(&(wait.deadline, key));
        self.assert_invariants();
        Some(wait)
    }

    fn assert_invariants(&self) {
        assert_eq!(
            self.waits.len(),
            self.by_partition.len(),
            "waits by partition"
        );
        assert_eq!(
            self.waits.len(),
            self.by_deadline.len(),
            "waits by deadline"
        );
    }
}
