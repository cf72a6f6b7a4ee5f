use std::collections::BTreeMap;

use highwater_types::{Millis, Offset, ProducerId, WallMs};

use super::batch::{MarkerKind, ProducerBatch};
use super::entry::ProducerEntry;
use crate::transaction_index::AbortedTransaction;

/// Everything a log remembers of its producers: their last batches, for finding duplicates, and
/// their transactions, for the last stable offset.
///
/// Pure, and a function of the batches applied, in order: a follower that replays the same log has
/// the same state. On append: (1) [`ProducerState::check`], (2) write, (3)
/// [`ProducerState::apply`]; in recovery and on followers only (3).
///
/// Invariant: `open` holds exactly the `transaction_first_offset` of the producers that have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerState {
    /// By id: nothing that it outputs depends on a hash.
    producers: BTreeMap<ProducerId, ProducerEntry>,
    /// Undecided transactions by their first offset.
    open: BTreeMap<Offset, ProducerId>,
    /// Decided transactions whose marker may be above the high watermark yet: first offset to
    /// the marker's offset.
    decided: BTreeMap<Offset, Offset>,
    /// Exclusive: every batch below it was applied. Names the snapshot file.
    end_offset: Offset,
}

/// A transaction that a marker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedTransaction {
    /// Whose it was.
    pub producer_id: ProducerId,
    /// Its first offset in this partition.
    pub first_offset: Offset,
    /// The marker's offset.
    pub last_offset: Offset,
    /// How it ended.
    pub kind: MarkerKind,
    /// Exclusive: no transaction below it is undecided, now that this one is.
    pub last_stable_offset: Offset,
}

impl CompletedTransaction {
    /// The entry that the marker's segment gets in its transaction index; `None` for a commit.
    #[must_use]
    pub fn aborted(&self) -> Option<AbortedTransaction> {
        (self.kind == MarkerKind::Abort).then_some(AbortedTransaction {
            producer_id: self.producer_id,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            last_stable_offset: self.last_stable_offset,
        })
    }
}

impl ProducerState {
    /// The state of a log that is empty up to `end_offset`.
    #[must_use]
    pub const fn new(end_offset: Offset) -> Self {
        Self {
            producers: BTreeMap::new(),
            open: BTreeMap::new(),
            decided: BTreeMap::new(),
            end_offset,
        }
    }

    /// Takes in a batch that is in the log, whoever wrote it. Batches come in the order of their
    /// offsets. Returns the transaction that it ended, if it did: an abort belongs in the
    /// segment's transaction index.
    pub fn apply(&mut self, batch: &ProducerBatch) -> Option<CompletedTransaction> {
        self.end_offset = batch.last_offset().next();
        if !batch.producer_id.is_some() {
            return None;
        }
        let completed = match batch.marker {
            Some(marker) => self.apply_marker(batch, marker.kind, marker.coordinator_epoch),
            // A control batch that a cleaner has emptied says nothing.
            None if batch.is_control => None,
            None => {
                self.apply_data(batch);
                None
            }
        };
        self.assert_invariants(batch.producer_id);
        completed
    }

    /// The log now starts at `start`: transactions decided below it no longer matter.
    pub fn advance_log_start(&mut self, start: Offset) {
        self.decided.retain(|_, marker| *marker >= start);
        self.end_offset = self.end_offset.max(start);
    }

    /// Notes the end of the log when it is beyond the last batch: after a load, or in a log that
    /// was wiped and starts anew.
    pub fn advance_end(&mut self, end: Offset) {
        self.end_offset = self.end_offset.max(end);
    }

    /// Forgets decided transactions whose marker is below `high_watermark`. Keeps memory small;
    /// changes no answer for this or a higher high watermark.
    pub fn forget_decided_below(&mut self, high_watermark: Offset) {
        self.decided.retain(|_, marker| *marker >= high_watermark);
    }

    /// The first offset of the earliest transaction that is undecided, or whose marker is not
    /// below `high_watermark`: the last stable offset may not pass it.
    #[must_use]
    pub fn first_unstable_offset(&self, high_watermark: Offset) -> Option<Offset> {
        let open = self.open.keys().next().copied();
        let mut decided = self.decided.iter();
        let decided = decided
            .find(|(_, marker)| **marker >= high_watermark)
            .map(|it| *it.0);
        match (open, decided) {
            (Some(open), Some(decided)) => Some(open.min(decided)),
            (open, decided) => open.or(decided),
        }
    }

    /// Exclusive: what a consumer that reads committed records may see.
    #[must_use]
    pub fn last_stable_offset(&self, high_watermark: Offset) -> Offset {
        self.first_unstable_offset(high_watermark)
            .map_or(high_watermark, |unstable| unstable.min(high_watermark))
    }

    /// Forgets the producers that have been idle for `expiration` (`producer.id.expiration.ms`)
    /// and have no transaction open. Markers count as activity (KAFKA-9144). Returns how many.
    pub fn remove_expired(&mut self, now: WallMs, expiration: Millis) -> usize {
        let before = self.producers.len();
        self.producers
            .retain(|_, entry| !is_expired(entry, now, expiration));
        before - self.producers.len()
    }

    /// What is known of one producer.
    #[must_use]
    pub fn producer(&self, id: ProducerId) -> Option<&ProducerEntry> {
        self.producers.get(&id)
    }

    /// All producers, by id.
    pub fn producers(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.producers.values()
    }

    /// How many producers are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether no producer is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// Whether any transaction marker was seen: only then can there be aborted transactions.
    #[must_use]
    pub fn has_seen_marker(&self) -> bool {
        self.producers
            .values()
            .any(|entry| entry.coordinator_epoch >= 0)
    }

    /// Exclusive: every batch below it was applied. Names the snapshot file.
    #[must_use]
    pub const fn end_offset(&self) -> Offset {
        self.end_offset
    }

    /// Whether no other producer of the state has the id or the open transaction of `entry`.
    pub(super) fn has_room_for(&self, entry: &ProducerEntry) -> bool {
        let is_taken = |first| self.open.contains_key(&first);
        !self.producers.contains_key(&entry.producer_id)
            && !entry.transaction_first_offset.is_some_and(is_taken)
    }

    /// Puts in a producer as a snapshot has it.
    pub(super) fn restore(&mut self, entry: ProducerEntry) {
        if let Some(first) = entry.transaction_first_offset {
            self.open.insert(first, entry.producer_id);
        }
        self.producers.insert(entry.producer_id, entry);
    }

    fn apply_data(&mut self, batch: &ProducerBatch) {
        let entry = self.entry(batch);
        entry.add(batch);
        let opens = batch.is_transactional && entry.transaction_first_offset.is_none();
        if opens {
            entry.transaction_first_offset = Some(batch.base_offset);
            self.open.insert(batch.base_offset, batch.producer_id);
        }
    }

    fn apply_marker(
        &mut self,
        batch: &ProducerBatch,
        kind: MarkerKind,
        coordinator_epoch: i32,
    ) -> Option<CompletedTransaction> {
        let entry = self.entry(batch);
        let first_offset = entry.transaction_first_offset;
        entry.end_transaction(batch, coordinator_epoch);
        let first_offset = first_offset?;
        self.open.remove(&first_offset);
        let last_offset = batch.base_offset;
        self.decided.insert(first_offset, last_offset);
        let open = self.open.keys().next().copied();
        let last_stable_offset = open.unwrap_or_else(|| last_offset.next());
        let producer_id = batch.producer_id;
        Some(CompletedTransaction {
            producer_id,
            first_offset,
            last_offset,
            kind,
            last_stable_offset,
        })
    }

    fn entry(&mut self, batch: &ProducerBatch) -> &mut ProducerEntry {
        let new = || ProducerEntry::new(batch.producer_id, batch.producer_epoch);
        self.producers.entry(batch.producer_id).or_insert_with(new)
    }

    fn assert_invariants(&self, changed: ProducerId) {
        let first = self
            .producers
            .get(&changed)
            .and_then(|it| it.transaction_first_offset);
        if let Some(first) = first {
            let open = self.open.get(&first);
            assert_eq!(
                open,
                Some(&changed),
                "open transaction at {first} is not listed"
            );
        }
        let with_open = self.open.len();
        assert!(
            with_open <= self.producers.len(),
            "{with_open} transactions are open"
        );
    }
}

pub(super) fn is_expired(entry: &ProducerEntry, now: WallMs, expiration: Millis) -> bool {
    let idle_ms = now.since(entry.last_timestamp);
    let limit_ms = i64::try_from(expiration.as_u64()).unwrap_or(i64::MAX);
    entry.transaction_first_offset.is_none() && idle_ms >= limit_ms
}
