use std::collections::BTreeSet;

use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::PartitionChangeRecord;
use highwater_types::{BrokerEpoch, DirectoryId, ErrorCode, NodeId, TopicIdPartition};

use super::elections::Upheaval;
use super::{Controller, Decision};
use crate::image::{BrokerImage, MetadataImage, PartitionImage};

/// The metadata.version from which the metadata say in which directory each replica is (KIP-858).
pub const DIRECTORIES_SINCE: i16 = 17;

/// A broker says in which of its log directories replicas are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignDirs {
    /// The broker.
    pub broker_id: NodeId,
    /// Its registration.
    pub broker_epoch: BrokerEpoch,
    /// Replica by replica; each stands or falls alone.
    pub replicas: Vec<(TopicIdPartition, DirectoryId)>,
}

impl Controller {
    /// Decides in which directories a broker's replicas are, as the broker says (protocol
    /// reference 3.8). The answer has a code for each replica, in their order. A replica in a
    /// directory that is offline leads no more.
    ///
    /// # Errors
    /// UNSUPPORTED_VERSION below [`DIRECTORIES_SINCE`]; STALE_BROKER_EPOCH for a broker that is not
    /// registered so.
    pub fn assign_dirs(
        &self,
        image: &MetadataImage,
        request: &AssignDirs,
    ) -> Result<Decision<Vec<ErrorCode>>, ErrorCode> {
        if image.metadata_version() < DIRECTORIES_SINCE {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        let (id, epoch) = (request.broker_id, request.broker_epoch);
        Self::check_broker_epoch(image, id, epoch)?;
        let broker = image.broker(id).expect("its epoch was just checked");
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(request.replicas.len());
        for (at, directory) in &request.replicas {
            match replica(image, id, *at) {
                Ok(partition) => {
                    let moved = partition.directory(id) != *directory;
                    records.extend(moved.then(|| moves(partition, *at, id, *directory)));
                    answer.push(ErrorCode::NONE);
                }
                Err(code) => answer.push(code),
            }
        }
        records.extend(self.stranded(image, broker, &request.replicas));
        Ok(Decision { records, answer })
    }

    /// The replicas that are said to be in directories which the broker does not have online:
    /// they leave their ISRs.
    fn stranded(
        &self,
        image: &MetadataImage,
        broker: &BrokerImage,
        replicas: &[(TopicIdPartition, DirectoryId)],
    ) -> Vec<MetadataRecord> {
        let is_online = |directory: &DirectoryId| broker.directories.contains(directory);
        let offline = replicas.iter().filter(|(_, it)| !is_online(it));
        let stranded: BTreeSet<TopicIdPartition> = offline.map(|(at, _)| *at).collect();
        if stranded.is_empty() {
            return Vec::new();
        }
        self.partition_changes(image, &Upheaval::Stranded(broker.id, stranded))
    }
}

/// A replica of a broker.
fn replica(
    image: &MetadataImage,
    id: NodeId,
    at: TopicIdPartition,
) -> Result<&PartitionImage, ErrorCode> {
    let topic = image
        .topic(at.topic_id)
        .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
    let partition = topic.partitions.get(&at.partition);
    let partition = partition.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if partition.assigned_replicas.contains(&id) {
        Ok(partition)
    } else {
        Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    }
}

fn moves(
    partition: &PartitionImage,
    at: TopicIdPartition,
    id: NodeId,
    directory: DirectoryId,
) -> MetadataRecord {
    let replicas = partition.assigned_replicas.iter();
    let directories = replicas.map(|replica| match *replica {
        replica if replica == id => directory.uuid(),
        replica => partition.directory(replica).uuid(),
    });
    PartitionChangeRecord {
        partition_id: at.partition.raw(),
        topic_id: at.topic_id.uuid(),
        directories: Some(directories.collect()),
        ..PartitionChangeRecord::default()
    }
    .into()
}

#[cfg(test)]
mod tests {
    use highwater_types::{PartitionIndex, TopicId, Uuid};

    use super::*;
    use crate::controller::testing::{Cluster, directory, ids};

    fn at(cluster: &Cluster, topic: &str, partition: i32) -> TopicIdPartition {
        let topic = cluster.image().topic_by_name(topic).expect("made");
        TopicIdPartition {
            topic_id: topic.id,
            partition: PartitionIndex::new(partition),
        }
    }

    /// Two brokers; the second has two directories.
    fn cluster() -> (Cluster, BrokerEpoch) {
        let mut cluster = Cluster::new(1);
        let two = super::super::Registration {
            directories: vec![directory(20), directory(21)],
            ..cluster.registration(2)
        };
        let epoch = cluster.register(&two);
        cluster.unfence(2, epoch);
        (cluster, epoch)
    }

    fn request(epoch: BrokerEpoch, replicas: Vec<(TopicIdPartition, DirectoryId)>) -> AssignDirs {
        AssignDirs {
            broker_id: NodeId::new(2),
            broker_epoch: epoch,
            replicas,
        }
    }

    #[test]
    fn a_replica_is_where_its_broker_says() {
        let (mut cluster, epoch) = cluster();
        cluster.create("t", &[&[1, 2], &[2, 1]]);
        cluster.create("u", &[&[1]]);
        assert_eq!(
            cluster.partition("t", 0).directory(NodeId::new(2)),
            DirectoryId::UNASSIGNED
        );
        let of_one = cluster.partition("t", 0).directory(NodeId::new(1));
        let stranger = TopicIdPartition {
            topic_id: TopicId::new(Uuid::from_u128(77)),
            partition: PartitionIndex::new(0),
        };
        let replicas = vec![
            (at(&cluster, "t", 0), directory(20)),
            (at(&cluster, "t", 1), directory(21)),
            (at(&cluster, "u", 0), directory(20)),
            (at(&cluster, "t", 9), directory(20)),
            (stranger, directory(20)),
        ];
        let asked = request(epoch, replicas);
        let codes = cluster.assign_dirs(&asked).expect("taken");
        let codes: Vec<i16> = codes.iter().map(|it| it.raw()).collect();
        assert_eq!(codes, [0, 0, 6, 3, 100]);
        let (first, second) = (cluster.partition("t", 0), cluster.partition("t", 1));
        assert_eq!(first.directories, [of_one, directory(20)]);
        assert_eq!(second.directories, [directory(21), of_one]);
        // Nobody leads anew, and the partition epoch alone rises.
        assert_eq!(
            (first.leader_epoch.raw(), first.partition_epoch.raw()),
            (0, 1)
        );
        // What is so already needs no record.
        let end = cluster.image().end;
        cluster.assign_dirs(&asked).expect("taken");
        assert_eq!(cluster.image().end, end);
    }

    #[test]
    fn a_replica_in_a_directory_that_is_offline_leads_no_more() {
        let (mut cluster, epoch) = cluster();
        cluster.create("t", &[&[2, 1]]);
        assert_eq!(cluster.partition("t", 0).leader, NodeId::new(2));
        let asked = request(epoch, vec![(at(&cluster, "t", 0), directory(99))]);
        cluster.assign_dirs(&asked).expect("taken");
        let partition = cluster.partition("t", 0);
        assert_eq!(partition.leader, NodeId::new(1));
        assert_eq!(partition.in_sync_replicas, ids(&[1]));
        assert_eq!(partition.directory(NodeId::new(2)), directory(99));
    }

    #[test]
    fn strangers_and_old_metadata_are_refused() {
        let (mut cluster, epoch) = cluster();
        let old = request(BrokerEpoch::new(epoch.raw() - 1), Vec::new());
        assert_eq!(
            cluster.assign_dirs(&old),
            Err(ErrorCode::STALE_BROKER_EPOCH)
        );
        cluster.finalize("metadata.version", DIRECTORIES_SINCE - 1);
        let asked = request(epoch, Vec::new());
        assert_eq!(
            cluster.assign_dirs(&asked),
            Err(ErrorCode::UNSUPPORTED_VERSION)
        );
    }
}
