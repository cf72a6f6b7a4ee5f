//! What is committed, who has to hold it, and what happens when it is lost.

use std::collections::BTreeMap;

use highwater_types::{NodeId, Offset};

use super::Outcome;
use super::partition::PartitionHistory;
use super::replica_copy::DiskState;
use crate::check::controller::{Known, KnownBroker, KnownPartition};
use crate::check::marks::{BatchMark, in_words};
use crate::check::replicas::SeenLeader;
use crate::check::verdict::Verdicts;

/// Node ids as Kafka lists them.
pub(super) fn ids(nodes: &[NodeId]) -> String {
    let ids: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    ids.join(",")
}

impl PartitionHistory {
    /// A replica's high watermark as it is now: I-01, I-03, I-07, I-08.
    pub(super) fn high_watermark(
        &mut self,
        known: &KnownPartition,
        node: NodeId,
        verdicts: &mut Verdicts,
        out: &mut Vec<Outcome>,
    ) {
        let Some(seen) = self.copies.get(&node).and_then(|it| it.seen.clone()) else {
            return;
        };
        // Whoever does not know of the election that lost records speaks of another history.
        if self
            .rebased_in
            .is_some_and(|epoch| seen.leader_epoch < epoch)
        {
            return;
        }
        let claimed = seen.high_watermark;
        if claimed > self.true_high_watermark {
            match seen.leads() {
                Some(leader) => self.commit(known, node, leader, claimed, verdicts, out),
                None if self.is_bound(known, node) => {
                    let why = format!(
                        "{node} follows and has high watermark {claimed}, but only {} is committed",
                        self.true_high_watermark
                    );
                    verdicts.broken("I-08", &self.name, why);
                }
                None => {}
            }
        }
        let up_to = claimed.min(self.true_high_watermark);
        let is_bound = self.is_bound(known, node);
        let Some(copy) = self.copies.get_mut(&node) else {
            return;
        };
        let same = copy.verify(&self.committed, up_to);
        if same < up_to && is_bound {
            let own = in_words(copy.marks.at(same));
            let other = in_words(self.committed.at(same));
            let why = format!(
                "{node} has high watermark {claimed} and at {same} {own}; committed is {other}"
            );
            verdicts.broken("I-01", &self.name, why);
        }
    }

    /// Whether a replica's word counts: after a loss, or with lost records, only once it is in the
    /// ISR again.
    fn is_bound(&self, known: &KnownPartition, node: NodeId) -> bool {
        let Some(copy) = self.copies.get(&node) else {
            return false;
        };
        let is_whole = self.rebased_in.is_none() && copy.disk == DiskState::Whole;
        is_whole || (copy.counts() && known.isr.contains(&node))
    }

    /// A leader's high watermark rises above all that is committed: the logs have to bear it out.
    fn commit(
        &mut self,
        known: &KnownPartition,
        node: NodeId,
        leader: &SeenLeader,
        claimed: Offset,
        verdicts: &mut Verdicts,
        out: &mut Vec<Outcome>,
    ) {
        let from = self.true_high_watermark;
        let Some(own) = self.copies.get_mut(&node) else {
            return;
        };
        if !own.counts() {
            return;
        }
        let same = own.verify(&self.committed, from);
        if same < from {
            let why = format!("{node} leads with high watermark {claimed}, but only has {same}");
            verdicts.broken("I-05", &self.name, why);
            return;
        }
        let own = self.copies.get(&node).expect("just seen");
        let lacks = |other: &NodeId| {
            let copy = self.copies.get(other)?;
            let start = from.max(copy.log_start());
            let holds = copy.marks.agrees_to(&own.marks, start, claimed);
            (copy.counts() && holds < claimed).then_some(holds)
        };
        for (id, members) in [("I-03", &known.isr), ("I-07", &leader.maximal)] {
            for member in members.iter().filter(|it| **it != node) {
                if let Some(holds) = lacks(member) {
                    let why = format!(
                        "the high watermark of {node} rises to {claimed}, but {member} holds the \
                         same only up to {holds} (ISR {}, maximal {})",
                        ids(&known.isr),
                        ids(&leader.maximal)
                    );
                    verdicts.broken(id, &self.name, why);
                }
            }
        }
        let new = own.marks.from(from).iter();
        let new: Vec<_> = new.take_while(|it| it.next <= claimed).cloned().collect();
        // What was deleted before it was seen was committed once.
        let start = own.log_start().min(claimed);
        let end = new.last().map_or(start, |it| it.next);
        self.true_high_watermark = from.max(end);
        for mark in &new {
            self.committed.push(mark.clone());
            self.no_duplicates(mark, verdicts);
        }
        out.push(Outcome::Committed(self.id, new));
    }

    /// I-25: a value that a deduplicating producer wrote is committed once.
    fn no_duplicates(&mut self, mark: &BatchMark, verdicts: &mut Verdicts) {
        if !mark.is_idempotent {
            return;
        }
        let mut offset = mark.base;
        for value in &mark.values {
            if let Some(first) = self.idempotent.insert(*value, offset) {
                let why = format!("the record at {offset} was committed at {first} already");
                verdicts.broken("I-25", &self.name, why);
            }
            offset = offset.next();
        }
    }

    /// I-03, I-05, I-06, I-07: everybody who leads, is in the ISR or may lead holds the committed
    /// log. `before`: what the controller had committed before its last change.
    pub(super) fn settle(
        &mut self,
        known: &Known,
        before: Option<&KnownPartition>,
        verdicts: &mut Verdicts,
        out: &mut Vec<Outcome>,
    ) {
        let Some(partition) = known.partitions.get(&self.id) else {
            return;
        };
        let end = self.true_high_watermark;
        if let Some(holds) = self.lacks(partition.leader, end) {
            let was_eligible = before.is_none_or(|it| {
                let leader = &partition.leader;
                it.isr.contains(leader) || it.elr.contains(leader)
            });
            let unclean = self.allows_unclean || known.allows_unclean(self.id);
            let last_resort = before.is_some_and(|it| it.isr.is_empty() && it.elr.is_empty())
                && self.all_holders_ended(holds)
                && self.lacks_by_loss(partition.leader);
            if self.may_lose() || last_resort || (unclean && !was_eligible) {
                self.rebase(partition, holds, verdicts, out);
            } else {
                let why = format!(
                    "{} leads in epoch {} and holds what is committed only up to {holds} of {end}",
                    partition.leader, partition.leader_epoch
                );
                verdicts.broken("I-05", &self.name, why);
            }
        }
        let (end, may_lose) = (self.true_high_watermark, self.may_lose());
        for member in partition.isr.iter().chain(&partition.elr) {
            let Some(holds) = self.lacks(*member, end).filter(|_| !may_lose) else {
                continue;
            };
            let why = format!(
                "{member} may lead (ISR {}, ELR {}) and holds what is committed only up to \
                 {holds} of {end}",
                ids(&partition.isr),
                ids(&partition.elr)
            );
            verdicts.broken("I-06", &self.name, why);
        }
        self.quorum(partition, verdicts);
    }

    /// Up to where the replica holds the committed log, when that is not all of it.
    fn lacks(&mut self, node: NodeId, end: Offset) -> Option<Offset> {
        let copy = self.copies.get_mut(&node).filter(|it| it.counts())?;
        let holds = copy.verify(&self.committed, end);
        (holds < end).then_some(holds)
    }

    /// Whether what a replica lacks of the committed log is what its disk lost.
    fn lacks_by_loss(&mut self, node: NodeId) -> bool {
        let (committed, end) = (&self.committed, self.true_high_watermark);
        let copy = self.copies.get_mut(&node);
        copy.is_some_and(|it| it.lacks_by_loss(committed, end))
    }

    /// Whether nobody holds more than `[.., from)` of the committed log whose process did not end
    /// since it was in the ISR: all of them stopped uncleanly, and the last leader leads again
    /// (KIP-966).
    fn all_holders_ended(&self, from: Offset) -> bool {
        let mut copies = self.copies.values();
        copies.all(|copy| copy.ended_since_isr || copy.marks.end().is_none_or(|end| end <= from))
    }

    /// I-07: what the leader believes covers what the controller may do.
    fn quorum(&self, known: &KnownPartition, verdicts: &mut Verdicts) {
        let copy = self.copies.get(&known.leader).filter(|it| it.runs);
        let Some(seen) = copy.and_then(|it| it.seen.as_ref()) else {
            return;
        };
        let Some(leader) = seen
            .leads()
            .filter(|_| seen.leader_epoch == known.leader_epoch)
        else {
            return;
        };
        if leader.committed.len() < self.min_isr {
            return;
        }
        let may_lead = known.isr.iter().chain(&known.elr);
        if let Some(missed) = may_lead.into_iter().find(|it| !leader.maximal.contains(it)) {
            let why = format!(
                "{} leads with maximal ISR {}, but {missed} may lead next",
                known.leader,
                ids(&leader.maximal)
            );
            verdicts.broken("I-07", &self.name, why);
        }
    }

    /// Records are lost, and may be: the committed log ends at `end` from now on.
    fn rebase(
        &mut self,
        known: &KnownPartition,
        end: Offset,
        verdicts: &mut Verdicts,
        out: &mut Vec<Outcome>,
    ) {
        let before = std::mem::replace(&mut self.true_high_watermark, end);
        self.committed.cut(end);
        self.idempotent.retain(|_, offset| *offset < end);
        for copy in self.copies.values_mut() {
            copy.verified = copy.verified.min(end);
        }
        self.rebased_in = Some(known.leader_epoch);
        let (name, leader) = (&self.name, known.leader);
        verdicts.tell(format!(
            "checker: {name} may lose [{end},{before}): {leader} leads in epoch {}",
            known.leader_epoch
        ));
        let count = before.raw().abs_diff(end.raw());
        let new = self.copies.get(&leader);
        let is_holed = new.is_some_and(|it| it.marks.has_hole(it.log_start()));
        out.push(Outcome::Lost {
            id: self.id,
            end,
            count,
            is_holed,
        });
    }

    /// I-13: who enters the ISR may do so.
    pub(super) fn isr_changed(
        &mut self,
        known: &KnownPartition,
        before: &KnownPartition,
        brokers: &BTreeMap<NodeId, KnownBroker>,
        verdicts: &mut Verdicts,
    ) {
        if known.leader != before.leader || known.leader_epoch != before.leader_epoch {
            return;
        }
        let start = self.epoch_starts.get(&known.leader_epoch).copied();
        for joined in known.isr.iter().filter(|it| !before.isr.contains(it)) {
            let broker = brokers.get(joined);
            if broker.is_none_or(|it| it.is_fenced || it.is_shutting_down) {
                let why = format!("{joined} enters the ISR, but is {broker:?}");
                verdicts.broken("I-13", &self.name, why);
            }
            let leader = self.copies.get(&known.leader);
            let own = self.copies.get(joined).filter(|it| it.counts());
            let (Some(start), Some(leader), Some(own)) = (start, leader, own) else {
                continue;
            };
            let from = own.log_start().max(leader.log_start());
            let holds = own.marks.holds(&leader.marks, from, start);
            if holds < start {
                let why = format!(
                    "{joined} enters the ISR and holds the log of {} up to {holds}, but epoch {} \
                     begins at {start}",
                    known.leader, known.leader_epoch
                );
                verdicts.broken("I-13", &self.name, why);
            }
        }
        for joined in known.isr.iter().filter(|it| !before.isr.contains(it)) {
            if let Some(copy) = self.copies.get_mut(joined).filter(|it| it.counts()) {
                copy.disk = DiskState::Whole;
                copy.ended_since_isr = false;
            }
        }
    }
}
