//! K: what the controller committed, read from the records of the metadata log.

use std::collections::BTreeMap;

use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::{
    BrokerRegistrationChangeRecord, ConfigRecord, PartitionChangeRecord, PartitionRecord,
    RegisterBrokerRecord,
};
use highwater_types::{
    BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId, TopicIdPartition,
    TopicName,
};

use super::verdict::Verdicts;

/// No change of the leader.
const SAME_LEADER: NodeId = NodeId::new(-2);
/// A topic, as config records name the kind of their resource.
const TOPIC_RESOURCE: i8 = 2;
const BROKER_RESOURCE: i8 = 4;
const UNCLEAN_KEY: &str = "unclean.leader.election.enable";

/// A partition as it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownPartition {
    pub(super) leader: NodeId,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) partition_epoch: PartitionEpoch,
    pub(super) isr: Vec<NodeId>,
    /// Eligible leader replicas.
    pub(super) elr: Vec<NodeId>,
    pub(super) replicas: Vec<NodeId>,
}

/// A registration as it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownBroker {
    pub(super) epoch: BrokerEpoch,
    pub(super) is_fenced: bool,
    pub(super) is_shutting_down: bool,
}

/// What a committed record changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A partition; what it was before.
    Partition(TopicIdPartition, Option<KnownPartition>),
    /// A broker registered anew.
    Registered(NodeId),
    /// A topic is gone.
    TopicRemoved(TopicId),
}

/// Everything that is committed and matters.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) partitions: BTreeMap<TopicIdPartition, KnownPartition>,
    pub(super) brokers: BTreeMap<NodeId, KnownBroker>,
    topics: BTreeMap<TopicId, TopicName>,
    /// Whether unclean elections are allowed, by topic; without a name, for all.
    unclean: BTreeMap<Option<String>, bool>,
}

impl Known {
    /// Whether the configuration lets a replica lead that may have lost records.
    pub(super) fn allows_unclean(&self, id: TopicIdPartition) -> bool {
        let topic = self.topics.get(&id.topic_id).map(ToString::to_string);
        let own = topic.and_then(|topic| self.unclean.get(&Some(topic)));
        *own.or_else(|| self.unclean.get(&None)).unwrap_or(&false)
    }

    /// Applies a committed record.
    pub(super) fn apply(
        &mut self,
        record: &MetadataRecord,
        verdicts: &mut Verdicts,
    ) -> Vec<Change> {
        match record {
            MetadataRecord::Topic(it) => {
                let name = TopicName::new(&it.name).expect("a legal name");
                self.topics.insert(TopicId::new(it.topic_id), name);
            }
            MetadataRecord::RemoveTopic(it) => {
                let topic_id = TopicId::new(it.topic_id);
                self.topics.remove(&topic_id);
                self.partitions.retain(|id, _| id.topic_id != topic_id);
                return vec![Change::TopicRemoved(topic_id)];
            }
            MetadataRecord::Partition(it) => return self.partition(it, verdicts),
            MetadataRecord::PartitionChange(it) => return self.partition_change(it, verdicts),
            MetadataRecord::RegisterBroker(it) => return self.registered(it, verdicts),
            MetadataRecord::UnregisterBroker(it) => {
                self.brokers.remove(&it.broker_id);
            }
            MetadataRecord::BrokerRegistrationChange(it) => self.registration_change(it, verdicts),
            MetadataRecord::FenceBroker(it) => self.fence(it.id, true),
            MetadataRecord::UnfenceBroker(it) => self.fence(it.id, false),
            MetadataRecord::Config(it) => self.config(it),
            _ => {}
        }
        Vec::new()
    }

    fn partition(&mut self, record: &PartitionRecord, verdicts: &mut Verdicts) -> Vec<Change> {
        let id = id(record.topic_id, record.partition_id);
        let known = KnownPartition {
            leader: record.leader,
            leader_epoch: LeaderEpoch::new(record.leader_epoch),
            partition_epoch: PartitionEpoch::new(record.partition_epoch),
            isr: record.isr.clone(),
            elr: record.eligible_leader_replicas.clone().unwrap_or_default(),
            replicas: record.replicas.clone(),
        };
        self.set(id, known, verdicts)
    }

    fn partition_change(
        &mut self,
        record: &PartitionChangeRecord,
        verdicts: &mut Verdicts,
    ) -> Vec<Change> {
        let id = id(record.topic_id, record.partition_id);
        let Some(mut known) = self.partitions.get(&id).cloned() else {
            verdicts.broken("I-19", id, "a change of a partition that is not there");
            return Vec::new();
        };
        known.partition_epoch = PartitionEpoch::new(known.partition_epoch.raw() + 1);
        if record.leader != SAME_LEADER {
            known.leader = record.leader;
            known.leader_epoch = LeaderEpoch::new(known.leader_epoch.raw() + 1);
        }
        if let Some(isr) = &record.isr {
            known.isr.clone_from(isr);
        }
        if let Some(elr) = &record.eligible_leader_replicas {
            known.elr.clone_from(elr);
        }
        if let Some(replicas) = &record.replicas {
            known.replicas.clone_from(replicas);
        }
        self.set(id, known, verdicts)
    }

    /// I-04 `LeaderInIsr`; I-20: epochs never fall.
    fn set(
        &mut self,
        id: TopicIdPartition,
        known: KnownPartition,
        verdicts: &mut Verdicts,
    ) -> Vec<Change> {
        let before = self.partitions.get(&id).cloned();
        let (leader, isr) = (known.leader, &known.isr);
        if leader.is_some() && !isr.contains(&leader) {
            let why = format!("the controller's leader {leader} is not in the ISR {isr:?}");
            verdicts.broken("I-04", id, why);
        }
        let fell = before.as_ref().is_some_and(|before| {
            before.leader_epoch > known.leader_epoch
                || before.partition_epoch > known.partition_epoch
        });
        if fell {
            let why = format!("an epoch fell from {before:?} to {known:?}");
            verdicts.broken("I-20", id, why);
        }
        self.partitions.insert(id, known);
        vec![Change::Partition(id, before)]
    }

    fn registered(
        &mut self,
        record: &RegisterBrokerRecord,
        verdicts: &mut Verdicts,
    ) -> Vec<Change> {
        let (id, epoch) = (record.broker_id, BrokerEpoch::new(record.broker_epoch));
        let known = KnownBroker {
            epoch,
            is_fenced: record.fenced,
            is_shutting_down: record.in_controlled_shutdown,
        };
        let before = self.brokers.insert(id, known);
        if let Some(before) = before.filter(|before| before.epoch > epoch) {
            let why = format!("its broker epoch fell from {} to {epoch}", before.epoch);
            verdicts.broken("I-20", format!("broker {id}"), why);
        }
        vec![Change::Registered(id)]
    }

    fn registration_change(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
        verdicts: &mut Verdicts,
    ) {
        let Some(broker) = self.brokers.get_mut(&record.broker_id) else {
            return;
        };
        if broker.epoch != BrokerEpoch::new(record.broker_epoch) {
            let (id, epoch) = (record.broker_id, broker.epoch);
            let why = format!("a change for epoch {} in {epoch}", record.broker_epoch);
            verdicts.broken("I-20", format!("broker {id}"), why);
        }
        match record.fenced {
            1 => broker.is_fenced = true,
            -1 => broker.is_fenced = false,
            _ => {}
        }
        broker.is_shutting_down |= record.in_controlled_shutdown == 1;
    }

    fn fence(&mut self, id: NodeId, is_fenced: bool) {
        if let Some(broker) = self.brokers.get_mut(&id) {
            broker.is_fenced = is_fenced;
        }
    }

    fn config(&mut self, record: &ConfigRecord) {
        if record.name != UNCLEAN_KEY {
            return;
        }
        let of = match record.resource_type {
            TOPIC_RESOURCE => Some(record.resource_name.clone()),
            BROKER_RESOURCE => None,
            _ => return,
        };
        match &record.value {
            Some(value) => self.unclean.insert(of, value == "true"),
            None => self.unclean.remove(&of),
        };
    }
}

fn id(topic_id: highwater_types::Uuid, partition: i32) -> TopicIdPartition {
    TopicIdPartition {
        topic_id: TopicId::new(topic_id),
        partition: PartitionIndex::new(partition),
    }
}
