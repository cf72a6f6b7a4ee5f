use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::PartitionChangeRecord;
use highwater_types::{ErrorCode, LeaderEpoch, NodeId, TopicIdPartition};

use super::{Controller, Decision, Refusal};
use crate::image::{MetadataImage, PartitionImage};

/// A leader that somebody names, instead of one that follows from who is up. Only the simulator
/// asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedElection {
    /// The partition.
    pub at: TopicIdPartition,
    /// Who shall lead: an assigned replica.
    pub leader: NodeId,
    /// The ISR afterwards, the leader in it; `None`: as it is, or after an unclean election, or
    /// one of an eligible replica, the leader alone.
    pub in_sync_replicas: Option<Vec<NodeId>>,
    /// Whether a replica that is neither in sync nor eligible may lead: committed records can be
    /// lost.
    pub unclean: bool,
}

/// What a forced election brought, for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// Who led before; none when nobody did.
    pub from: NodeId,
    /// The epoch of the new leader.
    pub leader_epoch: LeaderEpoch,
    /// The ISR afterwards.
    pub in_sync_replicas: Vec<NodeId>,
    /// Whether the leader was neither in sync nor eligible.
    pub unclean: bool,
}

impl Controller {
    /// Makes a replica the leader, in a new leader epoch. Whether its broker is up is not asked:
    /// the simulator plays a controller that has not heard yet.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION; INVALID_REPLICA_ASSIGNMENT for a leader or an
    /// ISR that is not assigned, or an ISR without the leader; ELIGIBLE_LEADERS_NOT_AVAILABLE for a
    /// leader that could lose records, unless that is asked for.
    pub fn elect(
        &self,
        image: &MetadataImage,
        asked: &ForcedElection,
    ) -> Result<Decision<Forced>, Refusal> {
        let at = asked.at;
        let topic = image
            .topic(at.topic_id)
            .ok_or_else(|| Refusal::new(ErrorCode::UNKNOWN_TOPIC_ID, "There is no such topic."))?;
        let partition = topic.partitions.get(&at.partition).ok_or_else(|| {
            let text = "The topic has no such partition.";
            Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text)
        })?;
        let isr = isr_after(partition, asked)?;
        let safe = is_safe(partition, asked.leader);
        let eligible = partition.eligible_leader_replicas.iter().copied();
        let eligible: Vec<NodeId> = eligible.filter(|id| safe && !isr.contains(id)).collect();
        let elr_changes = eligible != partition.eligible_leader_replicas;
        let record = PartitionChangeRecord {
            partition_id: at.partition.raw(),
            topic_id: at.topic_id.uuid(),
            leader: asked.leader,
            isr: (isr != partition.in_sync_replicas).then(|| isr.clone()),
            eligible_leader_replicas: elr_changes.then_some(eligible),
            last_known_elr: (!partition.last_known_elr.is_empty()).then(Vec::new),
            leader_recovery_state: if !safe && !partition.recovering {
                1
            } else {
                -1
            },
            ..PartitionChangeRecord::default()
        };
        let answer = Forced {
            from: partition.leader,
            leader_epoch: partition.leader_epoch.next(),
            in_sync_replicas: isr,
            unclean: !safe,
        };
        Ok(Decision {
            records: vec![MetadataRecord::from(record)],
            answer,
        })
    }
}

/// Whether a replica has every committed record, as far as the controller knows.
fn is_safe(partition: &PartitionImage, replica: NodeId) -> bool {
    let eligible = partition.in_sync_replicas.is_empty()
        && partition.eligible_leader_replicas.contains(&replica);
    partition.in_sync_replicas.contains(&replica) || eligible
}

fn isr_after(partition: &PartitionImage, asked: &ForcedElection) -> Result<Vec<NodeId>, Refusal> {
    let safe = is_safe(partition, asked.leader);
    if !safe && !asked.unclean {
        let text = "The replica is not in sync: records can be lost.";
        return Err(Refusal::new(
            ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE,
            text,
        ));
    }
    let in_sync = partition.in_sync_replicas.contains(&asked.leader);
    let isr = match &asked.in_sync_replicas {
        Some(isr) => isr.clone(),
        None if in_sync => partition.in_sync_replicas.clone(),
        None => vec![asked.leader],
    };
    let assigned = isr
        .iter()
        .all(|id| partition.assigned_replicas.contains(id));
    if assigned && isr.contains(&asked.leader) {
        Ok(isr)
    } else {
        let text = "The leader is in the ISR, and the ISR is made of assigned replicas.";
        Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, text))
    }
}

#[cfg(test)]
mod tests {
    use highwater_types::{PartitionIndex, TopicId};

    use super::*;
    use crate::controller::testing::{Cluster, ids};

    fn asked(cluster: &Cluster, leader: i32, unclean: bool) -> ForcedElection {
        let topic_id = cluster.image().topic_by_name("t").expect("made").id;
        ForcedElection {
            at: TopicIdPartition {
                topic_id,
                partition: PartitionIndex::new(0),
            },
            leader: NodeId::new(leader),
            in_sync_replicas: None,
            unclean,
        }
    }

    fn elect(cluster: &mut Cluster, asked: &ForcedElection) -> Result<Forced, ErrorCode> {
        let decision = cluster.controller.elect(cluster.image(), asked);
        let decision = decision.map_err(|why| why.code)?;
        cluster.apply(&decision.records);
        Ok(decision.answer)
    }

    #[test]
    fn a_named_replica_leads_in_a_new_epoch() {
        let mut cluster = Cluster::new(3);
        cluster.create("t", &[&[1, 2, 3]]);
        let before = cluster.partition("t", 0);
        let clean = asked(&cluster, 2, false);
        let forced = elect(&mut cluster, &clean).expect("in sync");
        let after = cluster.partition("t", 0);
        assert_eq!(
            (forced.from, after.leader),
            (NodeId::new(1), NodeId::new(2))
        );
        assert_eq!(after.leader_epoch, before.leader_epoch.next());
        assert_eq!(after.in_sync_replicas, before.in_sync_replicas);
        assert!(!forced.unclean && !after.recovering);
        // The same one once more: another epoch.
        elect(&mut cluster, &clean).expect("in sync");
        let again = cluster.partition("t", 0);
        assert_eq!(again.leader_epoch, after.leader_epoch.next());
    }

    #[test]
    fn an_isr_can_be_named_too() {
        let mut cluster = Cluster::new(3);
        cluster.create("t", &[&[1, 2, 3]]);
        let smaller = ForcedElection {
            in_sync_replicas: Some(ids(&[2, 3])),
            ..asked(&cluster, 2, false)
        };
        let forced = elect(&mut cluster, &smaller).expect("in sync");
        assert_eq!(forced.in_sync_replicas, ids(&[2, 3]));
        assert_eq!(cluster.partition("t", 0).in_sync_replicas, ids(&[2, 3]));
        let without_it = ForcedElection {
            in_sync_replicas: Some(ids(&[3])),
            ..smaller.clone()
        };
        let stranger = ForcedElection {
            in_sync_replicas: Some(ids(&[2, 9])),
            ..smaller
        };
        for wrong in [without_it, stranger] {
            let refused = elect(&mut cluster, &wrong);
            assert_eq!(refused, Err(ErrorCode::INVALID_REPLICA_ASSIGNMENT));
        }
    }

    #[test]
    fn a_loss_has_to_be_asked_for_and_is_marked() {
        let mut cluster = Cluster::new(3);
        cluster.create("t", &[&[1, 2, 3]]);
        cluster.beat(3, |it| it.want_fence = true);
        let clean = asked(&cluster, 3, false);
        let refused = elect(&mut cluster, &clean);
        assert_eq!(refused, Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE));
        let unclean = asked(&cluster, 3, true);
        let forced = elect(&mut cluster, &unclean).expect("asked for");
        assert!(forced.unclean);
        let after = cluster.partition("t", 0);
        assert_eq!(
            (after.leader, after.in_sync_replicas),
            (NodeId::new(3), ids(&[3]))
        );
        assert!(after.recovering);
    }

    #[test]
    fn what_is_not_there_has_no_leader() {
        let mut cluster = Cluster::new(1);
        cluster.create("t", &[&[1]]);
        let mut nowhere = asked(&cluster, 1, false);
        nowhere.at.partition = PartitionIndex::new(7);
        let refused = elect(&mut cluster, &nowhere);
        assert_eq!(refused, Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
        nowhere.at.topic_id = TopicId::ZERO;
        let refused = elect(&mut cluster, &nowhere);
        assert_eq!(refused, Err(ErrorCode::UNKNOWN_TOPIC_ID));
    }
}
