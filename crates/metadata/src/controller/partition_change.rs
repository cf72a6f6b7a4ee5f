use highwater_records::stored::metadata::PartitionChangeRecord;
use highwater_types::{NodeId, PartitionIndex, TopicId};

use crate::delta::LEADER_UNCHANGED;
use crate::image::PartitionImage;

/// How hard a new leader is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Election {
    /// Keep the leader; else the first in-sync or eligible replica.
    Online,
    /// As online; else any replica that is up: committed records can be lost.
    Unclean,
    /// The preferred leader if it is in sync or eligible; else as online.
    Preferred,
}

/// Works out the one record that changes a partition: in-sync replicas, leader, and what KIP-966
/// keeps beside them. Rules of `PartitionChangeBuilder` (protocol reference 3.8, 3.9).
pub(crate) struct PartitionChange<'a> {
    /// The partition as it is.
    pub(crate) partition: &'a PartitionImage,
    /// Its topic.
    pub(crate) topic_id: TopicId,
    /// Its number.
    pub(crate) index: PartitionIndex,
    /// Whether a replica may lead as far as its broker goes: registered, not fenced, not leaving,
    /// its directory online.
    pub(crate) is_acceptable: &'a dyn Fn(NodeId) -> bool,
    /// How hard to look.
    pub(crate) election: Election,
    /// Whether eligible leader replicas are kept.
    pub(crate) elr_enabled: bool,
    /// The topic's `min.insync.replicas`.
    pub(crate) min_in_sync_replicas: u32,
    /// Whether a smaller ISR begins a leader epoch: below metadata.version
    /// [`SHRINKS_KEEP_THE_EPOCH_SINCE`] some brokers rely on it (KAFKA-15021).
    pub(crate) shrinks_begin_epochs: bool,
    /// The in-sync replicas that it shall have.
    pub(crate) target_isr: Vec<NodeId>,
    /// Replicas that may have lost data: they leave the eligible ones.
    pub(crate) unclean_shutdown: &'a [NodeId],
}

/// The metadata.version (3.6-IV0) from which a smaller ISR keeps the leader epoch.
pub(crate) const SHRINKS_KEEP_THE_EPOCH_SINCE: i16 = 12;

struct Elected {
    leader: NodeId,
    unclean: bool,
}

impl PartitionChange<'_> {
    /// The record, or `None` when nothing changes.
    pub(crate) fn build(self) -> Option<PartitionChangeRecord> {
        let partition = self.partition;
        let mut target_isr = self.target_isr.clone();
        let mut target_elr = self.target_elr();
        let mut record = PartitionChangeRecord {
            partition_id: self.index.raw(),
            topic_id: self.topic_id.uuid(),
            ..PartitionChangeRecord::default()
        };
        let elected = self.elect(&target_elr);
        if elected.leader != partition.leader {
            record.leader = elected.leader;
            if elected.unclean {
                // All others are behind or unknown: they come back by fetching from it.
                target_isr = vec![elected.leader];
                target_elr.clear();
                if !partition.recovering {
                    record.leader_recovery_state = 1;
                }
            } else if target_elr.contains(&elected.leader) {
                target_isr = vec![elected.leader];
                target_elr.retain(|replica| *replica != elected.leader);
            }
        }
        // Without eligible leader replicas the last in-sync replica stays: it alone has the data.
        let may_be_empty = self.elr_enabled;
        if (!target_isr.is_empty() || may_be_empty) && target_isr != partition.in_sync_replicas {
            record.isr = Some(target_isr);
        }
        if record.leader == LEADER_UNCHANGED && self.shrinks(record.isr.as_deref()) {
            record.leader = partition.leader;
        }
        if !same_members(&target_elr, &partition.eligible_leader_replicas) {
            record.eligible_leader_replicas = Some(target_elr);
        }
        record.last_known_elr = self.last_known_leader(&record);
        let unchanged = PartitionChangeRecord {
            partition_id: record.partition_id,
            topic_id: record.topic_id,
            ..PartitionChangeRecord::default()
        };
        (record != unchanged).then_some(record)
    }

    /// Whether the ISR loses a member, and that begins a leader epoch.
    fn shrinks(&self, isr: Option<&[NodeId]>) -> bool {
        let lost = |isr: &[NodeId]| {
            let mut before = self.partition.in_sync_replicas.iter();
            before.any(|replica| !isr.contains(replica))
        };
        self.shrinks_begin_epochs && isr.is_some_and(lost)
    }

    /// Who stays or becomes eligible: all that were in sync or eligible, but for those in sync now
    /// and those that may have lost data. With enough replicas in sync nobody needs to be.
    fn target_elr(&self) -> Vec<NodeId> {
        let partition = self.partition;
        let replicas = u32::try_from(partition.assigned_replicas.len()).unwrap_or(u32::MAX);
        let enough = self.min_in_sync_replicas.min(replicas);
        let in_sync = u32::try_from(self.target_isr.len()).unwrap_or(u32::MAX);
        if !self.elr_enabled || in_sync >= enough {
            return Vec::new();
        }
        let mut eligible: Vec<NodeId> = Vec::new();
        let candidates = partition
            .eligible_leader_replicas
            .iter()
            .chain(&partition.in_sync_replicas);
        for candidate in candidates {
            let out = self.target_isr.contains(candidate)
                || self.unclean_shutdown.contains(candidate)
                || eligible.contains(candidate);
            if !out {
                eligible.push(*candidate);
            }
        }
        // In the order in which Kafka has them for the ids that people use.
        eligible.sort_unstable();
        eligible
    }

    fn elect(&self, target_elr: &[NodeId]) -> Elected {
        let clean = |leader| Elected {
            leader,
            unclean: false,
        };
        let valid = |replica: &NodeId| {
            let in_sync = self.target_isr.contains(replica);
            let eligible = self.target_isr.is_empty() && target_elr.contains(replica);
            (in_sync || eligible) && (self.is_acceptable)(*replica)
        };
        let partition = self.partition;
        let mut assigned = partition.assigned_replicas.iter();
        if self.election == Election::Preferred
            && let Some(preferred) = assigned.clone().next().filter(|it| valid(it))
        {
            return clean(*preferred);
        }
        if valid(&partition.leader) {
            return clean(partition.leader);
        }
        if let Some(leader) = assigned.clone().find(|replica| valid(replica)) {
            return clean(*leader);
        }
        if let Some(leader) = self.last_known_leader_to_elect(target_elr) {
            return Elected {
                leader,
                unclean: true,
            };
        }
        if self.election == Election::Unclean
            && let Some(leader) = assigned.find(|replica| (self.is_acceptable)(**replica))
        {
            return Elected {
                leader: *leader,
                unclean: true,
            };
        }
        clean(NodeId::NONE)
    }

    /// When nobody is in sync or eligible any more, the last leader is the best there is, allowed
    /// or not: KIP-966.
    fn last_known_leader_to_elect(&self, target_elr: &[NodeId]) -> Option<NodeId> {
        let nobody = self.elr_enabled && self.target_isr.is_empty() && target_elr.is_empty();
        match self.partition.last_known_elr.as_slice() {
            [leader] if nobody && (self.is_acceptable)(*leader) => Some(*leader),
            _ => None,
        }
    }

    /// Remembers who led when the partition becomes leaderless, and forgets it once it has a
    /// leader again. `None`: as it is.
    fn last_known_leader(&self, record: &PartitionChangeRecord) -> Option<Vec<NodeId>> {
        let partition = self.partition;
        let leader = if record.leader == LEADER_UNCHANGED {
            partition.leader
        } else {
            record.leader
        };
        let known = !partition.last_known_elr.is_empty();
        if leader.is_some() || !self.elr_enabled {
            return known.then(Vec::new);
        }
        let loses_all = record.isr.as_ref().is_some_and(Vec::is_empty);
        let differs = partition.last_known_elr != [partition.leader];
        (loses_all && partition.leader.is_some() && differs).then(|| vec![partition.leader])
    }
}

fn same_members(left: &[NodeId], right: &[NodeId]) -> bool {
    left.len() == right.len() && left.iter().all(|id| right.contains(id))
}

#[cfg(test)]
mod tests {
    use highwater_types::Uuid;

    use super::*;

    fn ids(raw: &[i32]) -> Vec<NodeId> {
        raw.iter().copied().map(NodeId::new).collect()
    }

    fn partition(isr: &[i32], elr: &[i32], last: &[i32], leader: i32) -> PartitionImage {
        PartitionImage {
            assigned_replicas: ids(&[1, 2, 3]),
            in_sync_replicas: ids(isr),
            eligible_leader_replicas: ids(elr),
            last_known_elr: ids(last),
            leader: NodeId::new(leader),
            ..PartitionImage::default()
        }
    }

    struct Case<'a> {
        partition: PartitionImage,
        up: &'a [i32],
        target_isr: &'a [i32],
        unclean_shutdown: &'a [i32],
        election: Election,
        elr_enabled: bool,
        shrinks_begin_epochs: bool,
    }

    fn build(case: &Case<'_>) -> Option<PartitionChangeRecord> {
        let up = ids(case.up);
        PartitionChange {
            partition: &case.partition,
            topic_id: TopicId::new(Uuid::from_u128(1000)),
            index: PartitionIndex::new(0),
            is_acceptable: &|id| up.contains(&id),
            election: case.election,
            elr_enabled: case.elr_enabled,
            min_in_sync_replicas: 2,
            shrinks_begin_epochs: case.shrinks_begin_epochs,
            target_isr: ids(case.target_isr),
            unclean_shutdown: &ids(case.unclean_shutdown),
        }
        .build()
    }

    fn case(partition: PartitionImage) -> Case<'static> {
        Case {
            partition,
            up: &[],
            target_isr: &[],
            unclean_shutdown: &[],
            election: Election::Online,
            elr_enabled: true,
            shrinks_begin_epochs: false,
        }
    }

    #[test]
    fn nothing_to_do_is_no_record() {
        let case = Case {
            up: &[1, 2, 3],
            target_isr: &[1, 2, 3],
            ..case(partition(&[1, 2, 3], &[], &[], 1))
        };
        assert_eq!(build(&case), None);
    }

    #[test]
    fn the_next_in_sync_replica_leads_and_the_isr_shrinks() {
        let case = Case {
            up: &[2, 3],
            target_isr: &[2, 3],
            ..case(partition(&[1, 2, 3], &[], &[], 1))
        };
        let record = build(&case).expect("changes");
        assert_eq!(record.leader, NodeId::new(2));
        assert_eq!(record.isr, Some(ids(&[2, 3])));
        assert_eq!(record.eligible_leader_replicas, None);
    }

    #[test]
    fn below_the_minimum_those_that_leave_stay_eligible() {
        let case = Case {
            up: &[3],
            target_isr: &[3],
            ..case(partition(&[1, 3], &[2], &[], 1))
        };
        let record = build(&case).expect("changes");
        assert_eq!(record.leader, NodeId::new(3));
        assert_eq!(record.eligible_leader_replicas, Some(ids(&[1, 2])));
        assert_eq!(record.last_known_elr, None);
    }

    #[test]
    fn the_last_one_leaves_an_empty_isr_and_is_remembered() {
        let case = case(partition(&[1], &[2], &[], 1));
        let record = build(&case).expect("changes");
        assert_eq!(record.leader, NodeId::NONE);
        assert_eq!(record.isr, Some(Vec::new()));
        assert_eq!(record.eligible_leader_replicas, Some(ids(&[1, 2])));
        assert_eq!(record.last_known_elr, Some(ids(&[1])));
    }

    #[test]
    fn an_eligible_replica_is_elected_without_loss() {
        let case = Case {
            up: &[2],
            ..case(partition(&[], &[1, 2], &[1], -1))
        };
        let record = build(&case).expect("changes");
        assert_eq!(record.leader, NodeId::new(2));
        assert_eq!(record.isr, Some(ids(&[2])));
        assert_eq!(record.eligible_leader_replicas, Some(ids(&[1])));
        assert_eq!(record.last_known_elr, Some(Vec::new()));
        assert_eq!(record.leader_recovery_state, -1, "a clean election");
    }

    #[test]
    fn i_14_a_replica_that_may_have_lost_data_leaves_isr_and_elr() {
        let gone = Case {
            unclean_shutdown: &[1],
            ..case(partition(&[1], &[], &[], 1))
        };
        let record = build(&gone).expect("changes");
        assert_eq!(
            (record.leader, record.isr),
            (NodeId::NONE, Some(Vec::new()))
        );
        assert_eq!(record.eligible_leader_replicas, None);
        assert_eq!(record.last_known_elr, Some(ids(&[1])));
        let eligible = Case {
            unclean_shutdown: &[2],
            ..case(partition(&[], &[1, 2], &[1], -1))
        };
        let record = build(&eligible).expect("changes");
        assert_eq!(record.eligible_leader_replicas, Some(ids(&[1])));
    }

    #[test]
    fn the_last_known_leader_is_elected_when_nobody_else_is_left() {
        let up = Case {
            up: &[1, 3],
            ..case(partition(&[], &[], &[1], -1))
        };
        let record = build(&up).expect("changes");
        assert_eq!(record.leader, NodeId::new(1));
        assert_eq!(record.isr, Some(ids(&[1])));
        assert_eq!(record.leader_recovery_state, 1, "it counts as unclean");
        assert_eq!(record.last_known_elr, Some(Vec::new()));
        let down = Case {
            up: &[3],
            ..case(partition(&[], &[], &[1], -1))
        };
        assert_eq!(build(&down), None);
    }

    #[test]
    fn unclean_election_takes_whoever_is_up() {
        let case = Case {
            up: &[3],
            election: Election::Unclean,
            ..case(partition(&[], &[], &[1], -1))
        };
        let record = build(&case).expect("changes");
        assert_eq!(
            (record.leader, record.isr),
            (NodeId::new(3), Some(ids(&[3])))
        );
        assert_eq!(record.leader_recovery_state, 1);
    }

    #[test]
    fn without_elr_the_last_in_sync_replica_stays_in_the_isr() {
        let case = Case {
            elr_enabled: false,
            ..case(partition(&[1], &[], &[], 1))
        };
        let record = build(&case).expect("changes");
        assert_eq!(record.leader, NodeId::NONE);
        assert_eq!((record.isr, record.last_known_elr), (None, None));
    }

    #[test]
    fn cm_14_below_level_12_a_smaller_isr_begins_a_leader_epoch() {
        let whole = || partition(&[1, 2, 3], &[], &[], 1);
        let shrinks = |old: bool, target_isr: &'static [i32]| Case {
            up: &[1, 2, 3],
            target_isr,
            shrinks_begin_epochs: old,
            ..case(whole())
        };
        let record = build(&shrinks(true, &[1, 2])).expect("changes");
        assert_eq!(
            record.leader,
            NodeId::new(1),
            "the same leader, in a new epoch"
        );
        let record = build(&shrinks(false, &[1, 2])).expect("changes");
        assert_eq!(record.leader, LEADER_UNCHANGED);
        let grows = Case {
            up: &[1, 2, 3],
            target_isr: &[1, 2, 3],
            shrinks_begin_epochs: true,
            ..case(partition(&[1, 2], &[], &[], 1))
        };
        let record = build(&grows).expect("changes");
        assert_eq!(record.leader, LEADER_UNCHANGED, "an expansion never does");
    }

    #[test]
    fn the_preferred_leader_leads_again_if_it_loses_nothing() {
        let preferred = |isr: &'static [i32], up: &'static [i32]| Case {
            up,
            target_isr: isr,
            election: Election::Preferred,
            ..case(partition(isr, &[], &[], 2))
        };
        let record = build(&preferred(&[1, 2, 3], &[1, 2, 3])).expect("changes");
        assert_eq!((record.leader, record.isr), (NodeId::new(1), None));
        assert_eq!(build(&preferred(&[2, 3], &[1, 2, 3])), None, "not in sync");
        assert_eq!(build(&preferred(&[1, 2], &[2, 3])), None, "not up");
    }
}
