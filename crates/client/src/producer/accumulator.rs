use std::collections::{BTreeMap, BTreeSet, VecDeque};

use highwater_records::{ProducerStamp, RecordHeader};
use highwater_types::{ProducerEpoch, ProducerId, WallMs};

use super::batch::ProducerBatch;
use super::delivery::{Delivery, Outcomes};
use super::partitioner::Partitioner;
use crate::offsets::PartitionName;

/// The batches of a producer that are not acknowledged, by partition.
#[derive(Default)]
pub(super) struct Accumulator {
    pub(super) queues: BTreeMap<PartitionName, Queue>,
    pub(super) partitioner: Partitioner,
    /// Nothing more is taken in.
    pub(super) closed: bool,
    /// How many flushes wait: while there is one, nothing lingers.
    pub(super) flushes: usize,
}

/// The batches of one partition.
#[derive(Default)]
pub(super) struct Queue {
    /// Not on their way, in the order in which they are sent. Only the last may be open.
    ///
    /// Invariant: retries come first, in the order of their sequences.
    pub(super) batches: VecDeque<ProducerBatch>,
    /// Base sequences (or counts, without idempotence) of the batches on their way.
    pub(super) in_flight: BTreeSet<i64>,
    /// What tells when the batches on their way are done.
    pub(super) outcomes_in_flight: Vec<Outcomes>,
    pub(super) sequences: Sequences,
}

/// What the partition's leader knows of this producer, as far as we know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequences {
    pub(super) identity: Option<(ProducerId, ProducerEpoch)>,
    pub(super) next: i32,
    /// A batch was given up whose fate at the leader is not known, or the leader lost track. The
    /// next epoch starts sequences anew once nothing is on its way.
    pub(super) needs_new_epoch: bool,
}

impl Sequences {
    /// The stamp of the next batch, of `count` records.
    pub(super) fn take(&mut self, count: i32) -> ProducerStamp {
        let Some((id, epoch)) = self.identity else {
            return ProducerStamp::NONE;
        };
        let stamp = ProducerStamp {
            id,
            epoch,
            base_sequence: self.next,
        };
        self.next = sequence_after(self.next, count);
        stamp
    }

    /// Starts anew: with a new epoch of the same producer, or as `fallback` when epochs are used
    /// up.
    pub(super) fn renew(&mut self, fallback: (ProducerId, ProducerEpoch)) {
        self.identity = Some(match self.identity {
            Some((id, epoch)) if epoch.raw() < i16::MAX => {
                (id, ProducerEpoch::new(epoch.raw() + 1))
            }
            _ => fallback,
        });
        self.next = 0;
        self.needs_new_epoch = false;
    }
}

/// The sequence `count` after `sequence`, from 0 again after `i32::MAX`.
pub(super) fn sequence_after(sequence: i32, count: i32) -> i32 {
    sequence
        .checked_add(count)
        .unwrap_or_else(|| sequence.wrapping_add(count) & i32::MAX)
}

impl Accumulator {
    /// Adds a record to the partition's open batch; `None` when it has none with room, which is
    /// then closed.
    pub(super) fn append(
        &mut self,
        partition: &PartitionName,
        timestamp: WallMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Option<Appended> {
        let queue = self.queues.get_mut(partition)?;
        let batch = queue.batches.back_mut()?;
        let delivery = batch.append(timestamp, key, value, headers)?;
        let is_full = batch.is_full();
        if is_full && key.is_none() {
            self.partitioner.advance(&partition.0);
        }
        Some(Appended { delivery, is_full })
    }

    /// Puts a new batch behind the others.
    pub(super) fn push(&mut self, batch: ProducerBatch) {
        self.queues
            .entry(batch.partition.clone())
            .or_default()
            .batches
            .push_back(batch);
    }

    /// What tells when everything that is here now is done.
    pub(super) fn outcomes(&self) -> Vec<Outcomes> {
        let queues = self.queues.values();
        queues
            .flat_map(|queue| {
                let waiting = queue.batches.iter().map(ProducerBatch::subscribe);
                waiting.chain(queue.outcomes_in_flight.iter().cloned())
            })
            .collect()
    }

    /// Whether everything is acknowledged or given up.
    pub(super) fn is_idle(&self) -> bool {
        self.queues
            .values()
            .all(|queue| queue.batches.is_empty() && queue.in_flight.is_empty())
    }
}

/// A record that was taken in.
pub(super) struct Appended {
    pub(super) delivery: Delivery,
    /// Nothing more fits: the batch need not linger.
    pub(super) is_full: bool,
}

impl Queue {
    /// Puts a batch that must be tried again where its sequence belongs.
    pub(super) fn put_back(&mut self, batch: ProducerBatch) {
        let of = |batch: &ProducerBatch| {
            batch
                .stamp
                .filter(|stamp| stamp.id.is_some())
                .map(|stamp| stamp.base_sequence)
        };
        let at = self
            .batches
            .iter()
            .position(|other| match (of(&batch), of(other)) {
                (Some(ours), Some(theirs)) => comes_before(ours, theirs),
                _ => other.attempts == 0 || other.created > batch.created,
            });
        self.batches.insert(at.unwrap_or(self.batches.len()), batch);
    }
}

/// Whether one sequence was given out before another, over the wrap at `i32::MAX`.
fn comes_before(one: i32, other: i32) -> bool {
    let distance = other.wrapping_sub(one) & i32::MAX;
    distance != 0 && distance < i32::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_ordered_over_the_wrap() {
        assert!(comes_before(1, 2));
        assert!(!comes_before(2, 1));
        assert!(!comes_before(2, 2));
        assert!(comes_before(i32::MAX - 1, 3));
        assert!(!comes_before(3, i32::MAX - 1));
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 1, 4), 2);
    }

    #[test]
    fn a_new_epoch_starts_sequences_anew() {
        let fallback = (ProducerId::new(9), ProducerEpoch::new(0));
        let mut sequences = Sequences {
            identity: Some(fallback),
            ..Sequences::default()
        };
        assert_eq!(sequences.take(10).base_sequence, 0);
        assert_eq!(sequences.take(1).base_sequence, 10);
        sequences.needs_new_epoch = true;
        sequences.renew(fallback);
        let stamp = sequences.take(1);
        assert_eq!((stamp.epoch.raw(), stamp.base_sequence), (1, 0));
    }
}
