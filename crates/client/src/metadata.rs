use std::collections::BTreeMap;

use highwater_protocol::messages::MetadataResponse;
use highwater_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use highwater_types::{ErrorCode, LeaderEpoch, NodeId, PartitionIndex, TopicId, Uuid};

/// What is known of a cluster: brokers, topics, leaders. A snapshot; newer ones replace it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The cluster's id, when the broker told it.
    pub cluster_id: Option<String>,
    /// The controller as clients see it: any broker, in a KRaft cluster.
    pub controller: Option<NodeId>,
    /// The brokers that are not fenced.
    pub brokers: BTreeMap<NodeId, BrokerMetadata>,
    /// The topics that were asked for so far, by name.
    pub topics: BTreeMap<String, TopicMetadata>,
}

/// Where a broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerMetadata {
    /// Its id.
    pub id: NodeId,
    /// The advertised host.
    pub host: String,
    /// The advertised port.
    pub port: i32,
    /// `broker.rack`.
    pub rack: Option<String>,
}

/// A topic and its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Its name.
    pub name: String,
    /// Its id, from Metadata v10 on.
    pub id: Option<TopicId>,
    /// Whether it is one of Kafka's own.
    pub is_internal: bool,
    /// Whether the broker could say anything about it.
    pub error: ErrorCode,
    /// Its partitions, by index, without gaps.
    pub partitions: Vec<PartitionMetadata>,
}

/// Who leads a partition and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Its number.
    pub index: PartitionIndex,
    /// What is wrong with it, such as `LEADER_NOT_AVAILABLE`.
    pub error: ErrorCode,
    /// Its leader, if there is one.
    pub leader: Option<NodeId>,
    /// The leader's epoch, from Metadata v7 on.
    pub leader_epoch: LeaderEpoch,
    /// The assigned replicas; the first is the preferred leader.
    pub assigned_replicas: Vec<NodeId>,
    /// The in-sync replicas.
    pub in_sync_replicas: Vec<NodeId>,
    /// Assigned replicas that are offline.
    pub offline_replicas: Vec<NodeId>,
}

impl BrokerMetadata {
    /// `HOST:PORT`; an IPv6 address gets its brackets.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl Metadata {
    /// A partition, if it is known.
    #[must_use]
    pub fn partition(&self, topic: &str, index: PartitionIndex) -> Option<&PartitionMetadata> {
        let at = usize::try_from(index.raw()).ok()?;
        self.topics.get(topic)?.partitions.get(at)
    }

    /// The name of the topic with this id.
    #[must_use]
    pub fn topic_name(&self, id: TopicId) -> Option<&str> {
        let found = self.topics.values().find(|topic| topic.id == Some(id))?;
        Some(&found.name)
    }

    /// Takes over an answer. Topics that it does not mention stay; topics in `asked` that it does
    /// not mention are gone. A leader of an older epoch than is known already is not believed: the
    /// broker that said so lags behind.
    pub(crate) fn merge(&mut self, answer: MetadataResponse, asked: Option<&[String]>) {
        self.cluster_id = answer
            .cluster_id
            .filter(|id| !id.is_empty())
            .or_else(|| self.cluster_id.take());
        self.controller = Some(answer.controller_id).filter(|id| id.is_some());
        let brokers = answer.brokers.into_iter().map(|broker| BrokerMetadata {
            id: broker.node_id,
            host: broker.host,
            port: broker.port,
            rack: broker.rack,
        });
        self.brokers = brokers.map(|broker| (broker.id, broker)).collect();
        let mut old = match asked {
            None => std::mem::take(&mut self.topics),
            Some(names) => {
                let known = names
                    .iter()
                    .filter_map(|name| self.topics.remove_entry(name));
                known.collect()
            }
        };
        for topic in answer.topics {
            let Some(name) = topic.name.clone() else {
                continue;
            };
            let before = old.remove(&name);
            self.topics
                .insert(name.clone(), merge_topic(name, topic, before));
        }
    }

    /// Takes over a leader that a broker named in passing (KIP-951); whether it was news.
    pub(crate) fn note_leader(
        &mut self,
        topic: &str,
        index: PartitionIndex,
        leader: NodeId,
        epoch: LeaderEpoch,
    ) -> bool {
        let partition = usize::try_from(index.raw())
            .ok()
            .and_then(|at| self.topics.get_mut(topic)?.partitions.get_mut(at));
        match partition {
            Some(known) if leader.is_some() && epoch > known.leader_epoch => {
                known.leader = Some(leader);
                known.leader_epoch = epoch;
                known.error = ErrorCode::NONE;
                true
            }
            _ => false,
        }
    }
}

fn merge_topic(
    name: String,
    topic: MetadataResponseTopic,
    before: Option<TopicMetadata>,
) -> TopicMetadata {
    let id = Some(topic.topic_id)
        .filter(|id| *id != Uuid::ZERO)
        .map(TopicId::new);
    let before = before.filter(|before| before.id == id);
    let mut partitions: Vec<_> = topic.partitions.into_iter().map(partition_of).collect();
    partitions.sort_by_key(|partition| partition.index);
    // A list with gaps cannot be meant; what comes after the gap is not used.
    let whole = partitions
        .iter()
        .zip(0..)
        .take_while(|(it, at)| it.index.raw() == *at)
        .count();
    partitions.truncate(whole);
    for partition in &mut partitions {
        let known = usize::try_from(partition.index.raw())
            .ok()
            .and_then(|at| before.as_ref()?.partitions.get(at));
        if let Some(known) = known
            && known.leader_epoch > partition.leader_epoch
        {
            *partition = known.clone();
        }
    }
    TopicMetadata {
        name,
        id,
        is_internal: topic.is_internal,
        error: topic.error_code,
        partitions,
    }
}

fn partition_of(partition: MetadataResponsePartition) -> PartitionMetadata {
    PartitionMetadata {
        index: PartitionIndex::new(partition.partition_index),
        error: partition.error_code,
        leader: Some(partition.leader_id).filter(|id| id.is_some()),
        leader_epoch: LeaderEpoch::new(partition.leader_epoch),
        assigned_replicas: partition.replica_nodes,
        in_sync_replicas: partition.isr_nodes,
        offline_replicas: partition.offline_replicas,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(leader: i32, epoch: i32) -> MetadataResponse {
        MetadataResponse {
            topics: vec![MetadataResponseTopic {
                name: Some("t".to_owned()),
                topic_id: Uuid::from_bytes([7; 16]),
                partitions: vec![MetadataResponsePartition {
                    leader_id: NodeId::new(leader),
                    leader_epoch: epoch,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn leader(metadata: &Metadata) -> (Option<NodeId>, i32) {
        let partition = metadata.partition("t", PartitionIndex::new(0)).unwrap();
        (partition.leader, partition.leader_epoch.raw())
    }

    #[test]
    fn an_older_leader_epoch_is_not_believed() {
        let mut metadata = Metadata::default();
        let asked = ["t".to_owned()];
        metadata.merge(answer(1, 5), Some(&asked));
        metadata.merge(answer(2, 4), Some(&asked));
        assert_eq!(leader(&metadata), (Some(NodeId::new(1)), 5));
        metadata.merge(answer(-1, 6), Some(&asked));
        assert_eq!(leader(&metadata), (None, 6));
        let index = PartitionIndex::new(0);
        assert!(!metadata.note_leader("t", index, NodeId::new(3), LeaderEpoch::new(6)));
        assert!(metadata.note_leader("t", index, NodeId::new(3), LeaderEpoch::new(7)));
        assert_eq!(leader(&metadata), (Some(NodeId::new(3)), 7));
    }

    #[test]
    fn a_topic_created_anew_starts_its_epochs_anew() {
        let mut metadata = Metadata::default();
        let asked = ["t".to_owned()];
        metadata.merge(answer(1, 5), Some(&asked));
        let mut again = answer(2, 0);
        again.topics[0].topic_id = Uuid::from_bytes([8; 16]);
        metadata.merge(again, Some(&asked));
        assert_eq!(leader(&metadata), (Some(NodeId::new(2)), 0));
    }

    #[test]
    fn topics_that_were_asked_for_and_are_not_told_are_gone() {
        let mut metadata = Metadata::default();
        metadata.merge(answer(1, 5), None);
        metadata.merge(MetadataResponse::default(), Some(&[]));
        assert!(metadata.topics.contains_key("t"));
        metadata.merge(MetadataResponse::default(), Some(&["t".to_owned()]));
        assert!(metadata.topics.is_empty());
    }
}
