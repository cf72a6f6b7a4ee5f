//! I-26 `Liveness`: once nothing goes wrong any more, everything comes to rest as it should be.

use highwater_types::NodeId;

use super::Cluster;
use super::committed::ids;
use super::partition::PartitionHistory;
use crate::check::controller::KnownPartition;

impl Cluster {
    /// Whether the leader of a partition has a log with holes.
    pub(in crate::check) fn has_holed_leader(&self) -> bool {
        self.partitions.iter().any(|(id, partition)| {
            let known = self.known.partitions.get(id);
            known.is_some_and(|known| partition.is_holed(known))
        })
    }

    /// Why the cluster has not come to rest; `None` when it has. Looks only at what is committed
    /// and at logs.
    pub(in crate::check) fn why_not_settled(&self) -> Option<String> {
        let fenced = self.known.brokers.iter().find(|(_, it)| it.is_fenced);
        if let Some((id, _)) = fenced {
            return Some(format!("broker {id} is fenced"));
        }
        self.partitions.iter().find_map(|(id, partition)| {
            let known = self.known.partitions.get(id)?;
            let why = partition.why_not_settled(known)?;
            Some(format!("{}: {why}", partition.name))
        })
    }
}

impl PartitionHistory {
    fn is_holed(&self, known: &KnownPartition) -> bool {
        let leader = self.copies.get(&known.leader);
        leader.is_some_and(|it| it.marks.has_hole(it.log_start()))
    }

    fn why_not_settled(&self, known: &KnownPartition) -> Option<String> {
        if !known.leader.is_some() {
            return Some("it has no leader".to_owned());
        }
        // The only copy that is left has holes: nobody can copy them.
        if self.is_holed(known) {
            return None;
        }
        if let Some(out) = known.replicas.iter().find(|it| !known.isr.contains(it)) {
            return Some(format!("{out} is not in the ISR {}", ids(&known.isr)));
        }
        let leader = self.copies.get(&known.leader)?;
        let leader = leader.seen.as_ref()?;
        known.replicas.iter().find_map(|node| {
            let why = self.why_replica_not_settled(known, *node, leader.log_end_offset)?;
            Some(format!("{node} {why}"))
        })
    }

    fn why_replica_not_settled(
        &self,
        known: &KnownPartition,
        node: NodeId,
        end: highwater_types::Offset,
    ) -> Option<String> {
        let copy = self.copies.get(&node).filter(|copy| copy.runs);
        let Some(seen) = copy.and_then(|copy| copy.seen.as_ref()) else {
            return Some("does not run".to_owned());
        };
        if seen.leader_epoch != known.leader_epoch {
            return Some(format!("is in epoch {}", seen.leader_epoch));
        }
        if seen.log_end_offset != end || seen.high_watermark != end {
            return Some(format!(
                "has hw {} and leo {} of {end}",
                seen.high_watermark, seen.log_end_offset
            ));
        }
        if seen.leads().is_some_and(|it| it.has_pending) {
            return Some("waits for the controller".to_owned());
        }
        None
    }
}
