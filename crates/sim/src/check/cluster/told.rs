//! I-09, I-12 and I-17: what clients are told of a partition with more than one replica.

use highwater_types::{NodeId, Offset};

use super::partition::PartitionHistory;
use super::replica_copy::DiskState;
use crate::check::marks::value_hash;
use crate::check::verdict::Verdicts;

impl PartitionHistory {
    /// Records were acknowledged with acks=all by a broker.
    pub(in crate::check) fn acknowledged(
        &mut self,
        node: NodeId,
        base: Offset,
        values: &[Vec<u8>],
        verdicts: &mut Verdicts,
    ) {
        if self.speaks_of_another_history(node) {
            return;
        }
        let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
        let end = Offset::new(base.raw().saturating_add(count));
        let committed = self.true_high_watermark;
        if end > committed {
            let why = format!("{node} acknowledges up to {end}, but only {committed} is committed");
            verdicts.broken("I-12", &self.name, why);
            return;
        }
        let committed = self.committed.at(base);
        let mut offset = base;
        for value in values {
            self.is_committed(node, offset, value, "acknowledges", verdicts);
            offset = offset.next();
        }
        let (log, minimum) = (&self.committed, self.min_isr);
        let holders = self.copies.values_mut().filter_map(|copy| {
            let lost = copy.disk != DiskState::Whole;
            (lost || copy.verify(log, end) >= end).then_some(())
        });
        let holders = holders.count();
        if holders < minimum && committed.is_some() {
            let why = format!("{node} acknowledges up to {end}, which {holders} replicas hold");
            verdicts.broken("I-12", &self.name, why);
        }
    }

    /// Records were read from a broker, which said that its high watermark is `claimed`.
    pub(in crate::check) fn was_read(
        &self,
        node: NodeId,
        claimed: Offset,
        records: &[(Offset, Vec<u8>)],
        verdicts: &mut Verdicts,
    ) {
        if self.speaks_of_another_history(node) {
            return;
        }
        let committed = self.true_high_watermark;
        for (offset, value) in records {
            if *offset >= claimed || *offset >= committed {
                let why = format!("{node} gives {offset} at its high watermark {claimed}");
                let why = format!("{why}; committed is {committed}");
                verdicts.broken("I-09", &self.name, why);
                return;
            }
            self.is_committed(node, *offset, value, "gives", verdicts);
        }
    }

    /// I-17: there is one committed log, and whoever is told of an offset is told what it says.
    fn is_committed(
        &self,
        node: NodeId,
        offset: Offset,
        value: &[u8],
        what: &str,
        verdicts: &mut Verdicts,
    ) {
        let stored = self.committed.at(offset).and_then(|it| it.value(offset));
        if stored.is_some_and(|stored| stored != value_hash(value)) {
            let value = String::from_utf8_lossy(value);
            let why = format!("{node} {what} {value} at {offset}, where another is committed");
            verdicts.broken("I-17", &self.name, why);
        }
    }

    /// Whether a broker does not know of the election that lost records, or its answer may be older
    /// than it.
    fn speaks_of_another_history(&self, node: NodeId) -> bool {
        let seen = self.copies.get(&node).and_then(|it| it.seen.as_ref());
        self.rebased_in.is_some_and(|rebased| {
            seen.is_none_or(|it| {
                it.leader_epoch < rebased || (it.leader_epoch == rebased && it.leads().is_none())
            })
        })
    }
}
