use std::collections::BTreeSet;

use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::PartitionChangeRecord;
use highwater_types::{
    BrokerEpoch, ErrorCode, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition,
};

use super::partition_change::{Election, PartitionChange, SHRINKS_KEEP_THE_EPOCH_SINCE};
use super::{Controller, Decision};
use crate::delta::LEADER_UNCHANGED;
use crate::image::{MetadataImage, PartitionImage};

/// Leaders ask for other in-sync replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterPartition {
    /// The broker that leads the partitions.
    pub broker_id: NodeId,
    /// Its registration.
    pub broker_epoch: BrokerEpoch,
    /// Each stands or falls alone.
    pub changes: Vec<IsrChange>,
}

/// Another ISR for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrChange {
    /// The partition.
    pub at: TopicIdPartition,
    /// The epoch that the asker leads in.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch that it knows.
    pub partition_epoch: PartitionEpoch,
    /// The whole new ISR; a member with [`BrokerEpoch::NONE`] is taken as it is registered
    /// (KIP-903).
    pub in_sync_replicas: Vec<(NodeId, BrokerEpoch)>,
    /// Whether the leader has not recovered yet from an unclean election.
    pub recovering: bool,
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredPartition {
    /// The partition.
    pub at: TopicIdPartition,
    /// Its state after the change, or why nothing was done; NEW_LEADER_ELECTED when the change was
    /// made and moved the leadership.
    pub result: Result<PartitionState, ErrorCode>,
}

/// The part of a partition's state that its leader is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// Who leads.
    pub leader: NodeId,
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
    /// The ISR.
    pub in_sync_replicas: Vec<NodeId>,
    /// Whether the leader is still recovering.
    pub recovering: bool,
    /// The partition epoch.
    pub partition_epoch: PartitionEpoch,
}

impl Controller {
    /// Decides on the in-sync replicas that a leader asks for (KIP-497).
    ///
    /// # Errors
    /// STALE_BROKER_EPOCH for a broker that is not registered so.
    pub fn alter_partition(
        &self,
        image: &MetadataImage,
        request: &AlterPartition,
    ) -> Result<Decision<Vec<AlteredPartition>>, ErrorCode> {
        Self::check_broker_epoch(image, request.broker_id, request.broker_epoch)?;
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(request.changes.len());
        let mut changed = BTreeSet::new();
        for change in &request.changes {
            // Named twice: the second one was made without knowing what became of the first.
            let result = if changed.insert(change.at) {
                self.alter_one(image, request.broker_id, change, &mut records)
            } else {
                Err(ErrorCode::INVALID_UPDATE_VERSION)
            };
            let at = change.at;
            answer.push(AlteredPartition { at, result });
        }
        Ok(Decision { records, answer })
    }

    fn alter_one(
        &self,
        image: &MetadataImage,
        asker: NodeId,
        change: &IsrChange,
        records: &mut Vec<MetadataRecord>,
    ) -> Result<PartitionState, ErrorCode> {
        let at = change.at;
        let topic = image
            .topic(at.topic_id)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
        let partition = topic.partitions.get(&at.partition);
        let partition = partition.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        check(image, partition, asker, change)?;
        let settings = self.topic_settings(image, topic.name.as_str());
        let is_acceptable =
            |id| image.is_active(id) && image.has_directory(id, partition.directory(id));
        let target_isr = change.in_sync_replicas.iter().map(|(id, _)| *id).collect();
        let record = PartitionChange {
            partition,
            topic_id: at.topic_id,
            index: at.partition,
            is_acceptable: &is_acceptable,
            election: if settings.unclean_leader_election {
                Election::Unclean
            } else {
                Election::Online
            },
            elr_enabled: image.elr_enabled(),
            min_in_sync_replicas: settings.min_in_sync_replicas,
            shrinks_begin_epochs: image.metadata_version() < SHRINKS_KEEP_THE_EPOCH_SINCE,
            target_isr,
            unclean_shutdown: &[],
        }
        .build();
        let record = recovered(record, partition, change);
        let state = state_after(partition, record.as_ref());
        records.extend(record.map(MetadataRecord::from));
        if state.leader == asker {
            Ok(state)
        } else {
            Err(ErrorCode::NEW_LEADER_ELECTED)
        }
    }
}

/// Kafka's checks, in Kafka's order.
fn check(
    image: &MetadataImage,
    partition: &PartitionImage,
    asker: NodeId,
    change: &IsrChange,
) -> Result<(), ErrorCode> {
    let isr = &change.in_sync_replicas;
    // The asker knows more than this controller, which may be an old one.
    if change.leader_epoch > partition.leader_epoch
        || change.partition_epoch > partition.partition_epoch
    {
        return Err(ErrorCode::NOT_CONTROLLER);
    }
    if change.leader_epoch < partition.leader_epoch {
        return Err(ErrorCode::FENCED_LEADER_EPOCH);
    }
    if partition.leader != asker {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    if change.partition_epoch < partition.partition_epoch {
        return Err(ErrorCode::INVALID_UPDATE_VERSION);
    }
    let members: BTreeSet<NodeId> = isr.iter().map(|(id, _)| *id).collect();
    let assigned = |id: &NodeId| partition.assigned_replicas.contains(id);
    let valid = members.len() == isr.len()
        && members.iter().all(assigned)
        && members.contains(&partition.leader)
        && !(change.recovering && (members.len() > 1 || !partition.recovering));
    if !valid {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    // Neither fenced nor on its way out (KIP-841), and the very process that fetched (KIP-903).
    let eligible = |(id, epoch): &(NodeId, BrokerEpoch)| {
        let registered = image.broker(*id).map(|it| it.epoch);
        #[cfg(feature = "planted-bugs")]
        if highwater_types::is_planted(highwater_types::PlantedBug::AcceptAStaleBrokerEpoch) {
            return image.is_active(*id);
        }
        image.is_active(*id) && (*epoch == BrokerEpoch::NONE || registered == Some(*epoch))
    };
    if isr.iter().all(eligible) {
        Ok(())
    } else {
        Err(ErrorCode::INELIGIBLE_REPLICA)
    }
}

/// The record with the end of a recovery in it, which is a change of its own.
fn recovered(
    record: Option<PartitionChangeRecord>,
    partition: &PartitionImage,
    change: &IsrChange,
) -> Option<PartitionChangeRecord> {
    if !partition.recovering || change.recovering {
        return record;
    }
    let mut record = record.unwrap_or_else(|| PartitionChangeRecord {
        partition_id: change.at.partition.raw(),
        topic_id: change.at.topic_id.uuid(),
        ..PartitionChangeRecord::default()
    });
    record.leader_recovery_state = 0;
    Some(record)
}

/// What replay of `record` makes of a partition.
fn state_after(
    partition: &PartitionImage,
    record: Option<&PartitionChangeRecord>,
) -> PartitionState {
    let mut state = PartitionState {
        leader: partition.leader,
        leader_epoch: partition.leader_epoch,
        in_sync_replicas: partition.in_sync_replicas.clone(),
        recovering: partition.recovering,
        partition_epoch: partition.partition_epoch,
    };
    let Some(record) = record else {
        return state;
    };
    state.partition_epoch = state.partition_epoch.next();
    if record.leader != LEADER_UNCHANGED {
        state.leader = record.leader;
        state.leader_epoch = state.leader_epoch.next();
    }
    if let Some(isr) = &record.isr {
        state.in_sync_replicas.clone_from(isr);
    }
    match record.leader_recovery_state {
        0 => state.recovering = false,
        1 => state.recovering = true,
        _ => {}
    }
    state
}

#[cfg(test)]
mod tests {
    use highwater_types::PartitionIndex;

    use super::*;
    use crate::controller::testing::{Cluster, ids};

    /// Three brokers and one partition of three replicas, led by the first of them.
    struct Story {
        cluster: Cluster,
        at: TopicIdPartition,
    }

    impl Story {
        fn new() -> Self {
            let mut cluster = Cluster::new(3);
            cluster.create("orders", &[&[1, 2, 3]]);
            let topic = cluster.image().topic_by_name("orders").expect("made");
            let at = TopicIdPartition {
                topic_id: topic.id,
                partition: PartitionIndex::new(0),
            };
            Self { cluster, at }
        }

        fn partition(&self) -> PartitionImage {
            let partition = self.cluster.image().partition(self.at);
            partition.expect("it is there").as_ref().clone()
        }

        fn epoch_of(&self, id: i32) -> BrokerEpoch {
            let broker = self.cluster.image().broker(NodeId::new(id));
            broker.expect("registered").epoch
        }

        fn change(&self, isr: &[i32]) -> IsrChange {
            let partition = self.partition();
            let member = |id: &i32| (NodeId::new(*id), self.epoch_of(*id));
            IsrChange {
                at: self.at,
                leader_epoch: partition.leader_epoch,
                partition_epoch: partition.partition_epoch,
                in_sync_replicas: isr.iter().map(member).collect(),
                recovering: false,
            }
        }

        fn ask(&mut self, change: IsrChange) -> Result<PartitionState, ErrorCode> {
            self.ask_all(1, vec![change]).remove(0).result
        }

        fn ask_all(&mut self, asker: i32, changes: Vec<IsrChange>) -> Vec<AlteredPartition> {
            let request = AlterPartition {
                broker_id: NodeId::new(asker),
                broker_epoch: self.epoch_of(asker),
                changes,
            };
            let image = self.cluster.image();
            let decision = self.cluster.controller.alter_partition(image, &request);
            let decision = decision.expect("registered so");
            self.cluster.apply(&decision.records);
            decision.answer
        }
    }

    #[test]
    fn a_shrink_and_an_expansion_keep_the_leader_epoch() {
        let mut story = Story::new();
        let before = story.partition();
        let shrunken = story.ask(story.change(&[1, 2])).expect("granted");
        assert_eq!(shrunken.in_sync_replicas, ids(&[1, 2]));
        assert_eq!(shrunken.leader_epoch, before.leader_epoch);
        assert_eq!(shrunken.partition_epoch, before.partition_epoch.next());
        let grown = story.ask(story.change(&[1, 2, 3])).expect("granted");
        let after = story.partition();
        assert_eq!(grown.in_sync_replicas, after.in_sync_replicas);
        assert_eq!(grown.partition_epoch, after.partition_epoch);
    }

    #[test]
    fn what_is_so_already_changes_nothing() {
        let mut story = Story::new();
        let before = story.partition();
        let state = story.ask(story.change(&[1, 2, 3])).expect("granted");
        assert_eq!(state.partition_epoch, before.partition_epoch);
        assert_eq!(story.partition(), before);
    }

    #[test]
    fn i_20_epochs_are_compared_before_anything_else() {
        let mut story = Story::new();
        let good = story.change(&[1, 2]);
        let newer = LeaderEpoch::new(good.leader_epoch.raw() + 1);
        let change = IsrChange {
            leader_epoch: newer,
            ..good.clone()
        };
        assert_eq!(story.ask(change), Err(ErrorCode::NOT_CONTROLLER));
        let change = IsrChange {
            partition_epoch: good.partition_epoch.next(),
            ..good.clone()
        };
        assert_eq!(story.ask(change), Err(ErrorCode::NOT_CONTROLLER));
        let change = IsrChange {
            leader_epoch: LeaderEpoch::new(good.leader_epoch.raw() - 1),
            ..good.clone()
        };
        assert_eq!(story.ask(change), Err(ErrorCode::FENCED_LEADER_EPOCH));
        let of_another = story.ask_all(2, vec![good.clone()]).remove(0).result;
        assert_eq!(of_another, Err(ErrorCode::INVALID_REQUEST));
        story.ask(good.clone()).expect("granted");
        // IH-07: the answer was lost, and the same is asked once more.
        assert_eq!(story.ask(good), Err(ErrorCode::INVALID_UPDATE_VERSION));
    }

    #[test]
    fn the_isr_is_a_set_of_assigned_replicas_with_the_leader() {
        let mut story = Story::new();
        for isr in [&[2, 3][..], &[1, 2, 2], &[]] {
            let change = story.change(isr);
            assert_eq!(
                story.ask(change),
                Err(ErrorCode::INVALID_REQUEST),
                "{isr:?}"
            );
        }
        let mut stranger = story.change(&[1]);
        let unknown = (NodeId::new(9), BrokerEpoch::NONE);
        stranger.in_sync_replicas.push(unknown);
        assert_eq!(story.ask(stranger), Err(ErrorCode::INVALID_REQUEST));
        let mut recovering = story.change(&[1]);
        recovering.recovering = true;
        let refused = story.ask(recovering);
        assert_eq!(refused, Err(ErrorCode::INVALID_REQUEST), "it has recovered");
    }

    #[test]
    fn ih_04_ih_05_only_who_is_registered_so_and_active_is_let_in() {
        let mut story = Story::new();
        story.ask(story.change(&[1, 2])).expect("granted");
        let mut older = story.change(&[1, 2, 3]);
        if let Some((_, epoch)) = older.in_sync_replicas.last_mut() {
            *epoch = BrokerEpoch::new(epoch.raw() - 1);
        }
        assert_eq!(story.ask(older), Err(ErrorCode::INELIGIBLE_REPLICA));
        let answer = story.cluster.beat(3, |it| it.want_fence = true);
        assert!(answer.is_fenced);
        let fenced = story.change(&[1, 2, 3]);
        assert_eq!(story.ask(fenced), Err(ErrorCode::INELIGIBLE_REPLICA));
    }

    #[test]
    fn cm_06_one_change_is_applied_before_the_next_is_computed() {
        let mut story = Story::new();
        let (first, second) = (story.change(&[1, 2]), story.change(&[1, 3]));
        let answers = story.ask_all(1, vec![first, second]);
        let results: Vec<_> = answers.into_iter().map(|it| it.result.map(drop)).collect();
        assert_eq!(results, [Ok(()), Err(ErrorCode::INVALID_UPDATE_VERSION)]);
        assert_eq!(story.partition().in_sync_replicas, ids(&[1, 2]));
    }

    #[test]
    fn a_broker_that_is_not_registered_so_is_not_heard() {
        let story = Story::new();
        let request = AlterPartition {
            broker_id: NodeId::new(1),
            broker_epoch: BrokerEpoch::new(1_000_000),
            changes: vec![story.change(&[1])],
        };
        let image = story.cluster.image();
        let refused = story.cluster.controller.alter_partition(image, &request);
        assert_eq!(refused, Err(ErrorCode::STALE_BROKER_EPOCH));
    }
}
