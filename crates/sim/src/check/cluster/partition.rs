//! One partition: its replicas' logs, and the one log that is committed.
//!
//! - I-07 `QuorumSuperset`: a leader's maximal ISR has everybody in it whom the controller may let
//!   lead, and its high watermark waits for all of them.
//! - I-11 `EpochUnique`: one life of one broker appends in a leader epoch.
//! - I-12 `AcksAll`: what is acknowledged is committed and on as many replicas as the minimum
//!   says.
//! - I-13 `IsrAdmission`: who enters the ISR is neither fenced nor shutting down, and holds all
//!   below the first offset of the leader's epoch.
//! - I-16 `SafeTruncation`: a follower cuts nothing that is committed or that its leader has, and
//!   nothing below its high watermark without an alarm.

use std::collections::BTreeMap;

use highwater_types::{LeaderEpoch, NodeId, Offset, TopicIdPartition, TopicPartition};

use super::Outcome;
use super::replica_copy::{DiskState, ReplicaCopy};
use crate::check::controller::KnownPartition;
use crate::check::marks::Marks;
use crate::check::replicas::{LastSeen, SeenRole};
use crate::check::shape::LogNews;
use crate::check::verdict::Verdicts;

/// What came of a replica.
#[derive(Debug)]
pub(in crate::check) struct CopyChange<'a> {
    pub(in crate::check) node: NodeId,
    pub(in crate::check) life: u32,
    pub(in crate::check) seen: &'a LastSeen,
    pub(in crate::check) news: LogNews,
    /// Its broker raised the alarm in this event.
    pub(in crate::check) told_loss: bool,
    /// Its broker told that it cuts what is damaged, to copy it again.
    pub(in crate::check) copies_again: bool,
}

/// A partition with more than one replica.
#[derive(Debug)]
pub(in crate::check) struct PartitionHistory {
    pub(super) id: TopicIdPartition,
    pub(super) name: TopicPartition,
    pub(super) copies: BTreeMap<NodeId, ReplicaCopy>,
    /// Everything below `TrueHW`, which is its end.
    pub(super) committed: Marks,
    pub(super) true_high_watermark: Offset,
    /// Which life of which broker appended in each epoch.
    pub(super) writers: BTreeMap<LeaderEpoch, (NodeId, u32)>,
    /// Where each epoch begins in its leader's log.
    pub(super) epoch_starts: BTreeMap<LeaderEpoch, Offset>,
    /// A story lets somebody lead that may have lost records.
    pub(super) allows_unclean: bool,
    /// The epoch that began with a loss: what earlier leaders say counts no more.
    pub(super) rebased_in: Option<LeaderEpoch>,
    /// Values that producers with deduplication wrote.
    pub(super) idempotent: BTreeMap<u64, Offset>,
    pub(super) min_isr: usize,
}

impl PartitionHistory {
    pub(super) fn new(id: TopicIdPartition, name: TopicPartition) -> Self {
        Self {
            id,
            name,
            copies: BTreeMap::new(),
            committed: Marks::default(),
            true_high_watermark: Offset::ZERO,
            writers: BTreeMap::new(),
            epoch_starts: BTreeMap::new(),
            allows_unclean: false,
            rebased_in: None,
            idempotent: BTreeMap::new(),
            min_isr: 1,
        }
    }

    pub(in crate::check) const fn name(&self) -> &TopicPartition {
        &self.name
    }

    /// The highest offset that was ever committed, exclusive.
    #[cfg(test)]
    pub(in crate::check) const fn true_high_watermark(&self) -> Offset {
        self.true_high_watermark
    }

    pub(super) const fn unclean_is_allowed(&mut self) {
        self.allows_unclean = true;
    }

    pub(super) fn process_ended(&mut self, node: NodeId) {
        if let Some(copy) = self.copies.get_mut(&node) {
            copy.runs = false;
            copy.ended_since_isr = true;
        }
    }

    pub(super) fn disk_lost(&mut self, node: NodeId) {
        if let Some(copy) = self.copies.get_mut(&node) {
            copy.disk = DiskState::MaybeLost;
            copy.is_registered = false;
        }
    }

    pub(super) fn registered(&mut self, node: NodeId) {
        if let Some(copy) = self.copies.get_mut(&node) {
            copy.is_registered = true;
            if copy.disk == DiskState::Reopened {
                copy.disk = DiskState::Lost;
            }
        }
    }

    /// Takes what is new of a replica; gives whether everybody has to be looked at again.
    pub(super) fn copy_changed(
        &mut self,
        known: &KnownPartition,
        change: CopyChange<'_>,
        verdicts: &mut Verdicts,
        out: &mut Vec<Outcome>,
    ) -> bool {
        let CopyChange {
            node, life, seen, ..
        } = change;
        let before = self.copies.entry(node).or_default().seen.clone();
        let is_cut = self.take_log(known, &change, before.as_ref(), verdicts);
        let fresh = change.news.marks.len();
        let copy = self.copies.entry(node).or_default();
        (copy.life, copy.runs) = (life, true);
        copy.seen = Some(seen.clone());
        self.min_isr = seen.min_in_sync_replicas.clamp(1, known.replicas.len());
        self.appended(node, fresh, verdicts);
        if let Some(leader) = seen.leads() {
            let start = leader.epoch_start_offset;
            self.epoch_starts.entry(seen.leader_epoch).or_insert(start);
        }
        let true_before = self.true_high_watermark;
        self.high_watermark(known, node, verdicts, out);
        let role_changed = before.is_none_or(|it| {
            it.leader_epoch != seen.leader_epoch || it.partition_epoch != seen.partition_epoch
        });
        is_cut || role_changed || true_before != self.true_high_watermark
    }

    /// Takes what the log holds now; gives whether something of it is gone.
    fn take_log(
        &mut self,
        known: &KnownPartition,
        change: &CopyChange<'_>,
        before: Option<&LastSeen>,
        verdicts: &mut Verdicts,
    ) -> bool {
        let copy = self.copies.entry(change.node).or_default();
        let start = change.seen.log_start_offset;
        if !change.news.is_anew {
            for mark in &change.news.marks {
                copy.marks.push(mark.clone());
            }
            copy.marks.drop_below(start);
            return false;
        }
        let old = std::mem::take(&mut copy.marks);
        for mark in &change.news.marks {
            copy.marks.push(mark.clone());
        }
        let first = old.iter().next().map_or(start, |it| it.base);
        let (from, end) = (first.max(start), old.end().unwrap_or(start));
        let kept = old.agrees_to(&copy.marks, from, end);
        copy.verified = copy.verified.min(kept);
        if copy.disk == DiskState::MaybeLost {
            copy.disk = if copy.is_registered {
                DiskState::Lost
            } else {
                DiskState::Reopened
            };
            return true;
        }
        // Whoever lost records counts for nothing, and copies again what he likes.
        let counts = copy.disk == DiskState::Whole || known.isr.contains(&change.node);
        let counts = counts && !change.copies_again;
        if kept < end && from < end && counts {
            self.truncated(known, change, &old, (kept, end), before, verdicts);
        }
        kept < end
    }

    /// I-16: a replica cut its log from `end` to `kept`.
    fn truncated(
        &mut self,
        known: &KnownPartition,
        change: &CopyChange<'_>,
        old: &Marks,
        (kept, end): (Offset, Offset),
        before: Option<&LastSeen>,
        verdicts: &mut Verdicts,
    ) {
        let node = change.node;
        let first = old.iter().next().map_or(kept, |it| it.base);
        let from = first.max(change.seen.log_start_offset);
        let up_to = self.true_high_watermark.min(end);
        let held = old.agrees_to(&self.committed, from, up_to);
        let may_lose = self.may_lose();
        let name = &self.name;
        if kept < held && !may_lose {
            let why = format!("{node} cuts to {kept}, and all below {held} is committed");
            verdicts.broken("I-16", name, why);
        }
        let leader = match change.seen.role {
            SeenRole::Follower(leader) => leader,
            SeenRole::None | SeenRole::Leader(_) => None,
        };
        let leader = leader.filter(|leader| *leader == known.leader);
        let leads = |copy: &&ReplicaCopy| {
            let seen = copy.seen.as_ref();
            let same = |it: &LastSeen| it.leader_epoch == change.seen.leader_epoch;
            copy.runs && seen.is_some_and(|it| it.leads().is_some() && same(it))
        };
        let leader = leader.and_then(|leader| self.copies.get(&leader));
        if let Some(leader) = leader.filter(leads) {
            let from = from.max(leader.log_start());
            let common = old.agrees_to(&leader.marks, from, end);
            if kept < common {
                let why =
                    format!("{node} cuts to {kept}, and its leader has the same up to {common}");
                verdicts.broken("I-16", name, why);
            }
        }
        let readable = before.map_or(Offset::ZERO, |it| it.high_watermark).min(end);
        if kept < readable && !change.told_loss {
            let why =
                format!("{node} cuts to {kept} below its high watermark {readable}, silently");
            verdicts.broken("I-16", name, why);
        }
    }

    /// I-02 and I-11, of the newest batches of a replica.
    fn appended(&mut self, node: NodeId, fresh: usize, verdicts: &mut Verdicts) {
        let Some(copy) = self.copies.get(&node).filter(|_| fresh > 0) else {
            return;
        };
        let seen = copy.seen.as_ref();
        let leads_in = seen
            .filter(|it| it.leads().is_some())
            .map(|it| it.leader_epoch);
        for mark in copy.marks.newest(fresh) {
            if leads_in == Some(mark.epoch) {
                let writer = (node, copy.life);
                let first = *self.writers.entry(mark.epoch).or_insert(writer);
                if first != writer {
                    let why = format!("epoch {}: {first:?} and {writer:?} append", mark.epoch);
                    verdicts.broken("I-11", &self.name, why);
                }
            }
            for (other, theirs) in self.copies.iter().filter(|(id, _)| **id != node) {
                let Some(same) = theirs.marks.at(mark.base) else {
                    continue;
                };
                if same.epoch != mark.epoch {
                    continue;
                }
                let before = (copy.marks.before(mark), theirs.marks.before(same));
                let parts_before = matches!(before, (Some(a), Some(b)) if a != b);
                if same != mark || parts_before {
                    let (at, epoch) = (mark.base, mark.epoch);
                    let why = format!("{node} and {other} part at or below {at} in epoch {epoch}");
                    verdicts.broken("I-02", &self.name, why);
                }
            }
        }
    }

    /// Whether as many disks lost records as the minimum ISR has.
    pub(super) fn may_lose(&mut self) -> bool {
        let (committed, end) = (&self.committed, self.true_high_watermark);
        let lost = self.copies.values_mut();
        let lost = lost.filter_map(|it| it.lacks_by_loss(committed, end).then_some(()));
        lost.count() >= self.min_isr
    }
}
