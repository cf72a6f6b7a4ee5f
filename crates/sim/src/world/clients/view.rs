//! What a client believes of the cluster: which broker leads a partition, as metadata answers and
//! the hints of refusals told it.

use std::collections::BTreeMap;

use highwater_protocol::messages::{MetadataRequest, MetadataResponse, metadata_request};
use highwater_types::{LeaderEpoch, Millis, Mono, NodeId, PartitionIndex, TopicName};
use highwater_types::{TopicPartition, Uuid};

use super::World;
use super::requests::Purpose;
use crate::client::ClientId;

/// How long a client waits before it asks for metadata again.
const PAUSE: Millis = Millis::new(40);
/// The version that clients of the simulator ask for metadata with.
const VERSION: i16 = 12;

/// A client's picture of the cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterView {
    leaders: BTreeMap<TopicPartition, KnownLeader>,
    replicas: BTreeMap<TopicPartition, Vec<NodeId>>,
    is_asking: bool,
    not_before: Mono,
    /// Counts questions: each goes to another broker.
    turn: usize,
}

/// A leader, as of an epoch. `node` is `None` once that is known to be over.
#[derive(Clone, Copy, Debug)]
struct KnownLeader {
    node: Option<NodeId>,
    epoch: LeaderEpoch,
}

impl ClusterView {
    /// The leader epoch that the client knows of.
    pub(crate) fn leader_epoch(&self, partition: &TopicPartition) -> Option<LeaderEpoch> {
        self.leaders.get(partition).map(|it| it.epoch)
    }

    /// The assigned replicas, as far as the client knows.
    pub(crate) fn replicas(&self, partition: &TopicPartition) -> &[NodeId] {
        self.replicas.get(partition).map_or(&[], Vec::as_slice)
    }

    /// Takes a leader that somebody told of, unless a newer one is known.
    fn learn(&mut self, partition: TopicPartition, node: NodeId, epoch: LeaderEpoch) {
        let node = node.is_some().then_some(node);
        let known = self.leaders.get(&partition).map(|it| it.epoch);
        if known.is_none_or(|known| known <= epoch) {
            self.leaders.insert(partition, KnownLeader { node, epoch });
        }
    }
}

impl World {
    /// The broker that a client takes for the leader. When it knows none, it asks for metadata.
    pub(super) fn leader_for(
        &mut self,
        id: ClientId,
        partition: &TopicPartition,
    ) -> Option<NodeId> {
        if let [only] = self.brokers().as_slice() {
            return Some(*only);
        }
        let known = self.client(id).view.leaders.get(partition);
        let leader = known.and_then(|it| it.node);
        if leader.is_none() {
            self.ask_for_metadata(id, &partition.topic);
        }
        leader
    }

    /// A broker refused because it does not lead, and may know who does.
    pub(super) fn does_not_lead(
        &mut self,
        id: ClientId,
        partition: &TopicPartition,
        hint: Option<(NodeId, LeaderEpoch)>,
    ) {
        let view = &mut self.client(id).view;
        if let Some(known) = view.leaders.get_mut(partition) {
            known.node = None;
        }
        if let Some((node, epoch)) = hint.filter(|(node, _)| node.is_some()) {
            view.learn(partition.clone(), node, epoch);
        }
    }

    /// A client does not reach a broker: it asks another one who leads what that one led.
    pub(super) fn is_not_reached(&mut self, id: ClientId, node: NodeId) {
        let leaders = self.client(id).view.leaders.values_mut();
        for known in leaders.filter(|it| it.node == Some(node)) {
            known.node = None;
        }
    }

    /// One of the brokers, another one each time.
    pub(super) fn any_broker(&mut self, id: ClientId) -> NodeId {
        let brokers = self.brokers();
        let client = self.client(id);
        client.view.turn += 1;
        let found = brokers.get(client.view.turn % brokers.len().max(1));
        found.copied().unwrap_or(client.node)
    }

    fn ask_for_metadata(&mut self, id: ClientId, topic: &TopicName) {
        let now = self.now();
        let view = &mut self.client(id).view;
        if view.is_asking || now < view.not_before {
            return;
        }
        view.not_before = now.plus(PAUSE);
        view.is_asking = true;
        let node = self.any_broker(id);
        let request = MetadataRequest {
            topics: Some(vec![metadata_request::MetadataRequestTopic {
                topic_id: Uuid::ZERO,
                name: Some(topic.to_string()),
            }]),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let request = (&request.into(), VERSION);
        if self.ask_at(id, node, request, Purpose::Metadata).is_err() {
            self.client(id).view.is_asking = false;
        }
    }

    pub(super) fn metadata_answered(&mut self, id: ClientId, answer: &MetadataResponse) {
        let client = self.client(id);
        client.view.is_asking = false;
        for topic in &answer.topics {
            let name = topic.name.as_deref().and_then(|it| TopicName::new(it).ok());
            let Some(name) = name.filter(|_| !topic.error_code.is_error()) else {
                continue;
            };
            // A topic that was made anew begins its epochs anew.
            if client.topic_ids.insert(name.clone(), topic.topic_id) != Some(topic.topic_id) {
                client.view.leaders.retain(|it, _| it.topic != name);
            }
            for told in &topic.partitions {
                let partition = TopicPartition {
                    topic: name.clone(),
                    partition: PartitionIndex::new(told.partition_index),
                };
                let replicas = told.replica_nodes.clone();
                client.view.replicas.insert(partition.clone(), replicas);
                client.view.learn(
                    partition,
                    told.leader_id,
                    LeaderEpoch::new(told.leader_epoch),
                );
            }
        }
    }

    /// A connection broke: questions on it are not answered.
    pub(super) fn view_connection_lost(&mut self, id: ClientId, unanswered: &[Purpose]) {
        if unanswered.contains(&Purpose::Metadata) {
            self.client(id).view.is_asking = false;
        }
    }
}
