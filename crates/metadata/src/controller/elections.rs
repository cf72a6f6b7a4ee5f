use std::collections::BTreeSet;

use highwater_records::stored::MetadataRecord;
use highwater_types::{DirectoryId, NodeId, TopicIdPartition};

use super::Controller;
use super::partition_change::{Election, PartitionChange, SHRINKS_KEEP_THE_EPOCH_SINCE};
use crate::image::{MetadataImage, PartitionImage};

/// Why leaders and in-sync replicas are looked at again.
#[derive(Clone, Debug)]
pub(crate) enum Upheaval {
    /// The broker leaves every ISR: it is fenced, or stops.
    Removed(NodeId),
    /// The broker may have lost data: it leaves every ISR and every ELR.
    Unclean(NodeId),
    /// As before there were leader epochs: the broker may have lost data and stays in sync all the
    /// same; it only leads no more. For the simulator, which shows what comes of it.
    UncleanUnderOldRule(NodeId),
    /// The broker comes back: partitions without a leader get one.
    Added(NodeId),
    /// These directories of the broker are gone.
    DirectoriesLost(NodeId, Vec<DirectoryId>),
    /// These replicas of the broker are in directories that it does not have online.
    Stranded(NodeId, BTreeSet<TopicIdPartition>),
}

impl Controller {
    /// The changes that follow from `upheaval`, partition by partition.
    pub(crate) fn partition_changes(
        &self,
        image: &MetadataImage,
        upheaval: &Upheaval,
    ) -> Vec<MetadataRecord> {
        let mut records = Vec::new();
        let elr_enabled = image.elr_enabled();
        let shrinks_begin_epochs = image.metadata_version() < SHRINKS_KEEP_THE_EPOCH_SINCE;
        for topic in image.topics.values() {
            let mut settings = None;
            for (index, partition) in topic.partitions.iter() {
                let at = TopicIdPartition {
                    topic_id: topic.id,
                    partition: *index,
                };
                if !upheaval.concerns(at, partition) {
                    continue;
                }
                let settings =
                    settings.get_or_insert_with(|| self.topic_settings(image, topic.name.as_str()));
                let is_acceptable = |id| upheaval.is_acceptable(image, partition, id);
                let change = PartitionChange {
                    partition,
                    topic_id: topic.id,
                    index: *index,
                    is_acceptable: &is_acceptable,
                    election: if settings.unclean_leader_election {
                        Election::Unclean
                    } else {
                        Election::Online
                    },
                    elr_enabled,
                    min_in_sync_replicas: settings.min_in_sync_replicas,
                    shrinks_begin_epochs,
                    target_isr: upheaval.target_isr(partition),
                    unclean_shutdown: upheaval.unclean_shutdown(elr_enabled),
                };
                records.extend(change.build().map(MetadataRecord::from));
            }
        }
        records
    }
}

/// Most leaders that are moved at a time, as in Kafka's controllers.
const MOVES_MAX: usize = 1_000;

impl Controller {
    /// Gives leadership back to preferred leaders that are in sync again, a thousand at most.
    #[must_use]
    pub fn balance_leaders(&self, image: &MetadataImage) -> Vec<MetadataRecord> {
        let imbalanced = image.partitions().filter(|(_, _, partition)| {
            let preferred = partition.assigned_replicas.first();
            let in_sync = |id| partition.in_sync_replicas.contains(id);
            preferred.is_some_and(|id| *id != partition.leader && in_sync(id))
        });
        let moves = imbalanced.filter_map(|(topic, index, partition)| {
            let settings = self.topic_settings(image, topic.name.as_str());
            let is_acceptable =
                |id| image.is_active(id) && image.has_directory(id, partition.directory(id));
            let change = PartitionChange {
                partition,
                topic_id: topic.id,
                index,
                is_acceptable: &is_acceptable,
                election: Election::Preferred,
                elr_enabled: image.elr_enabled(),
                min_in_sync_replicas: settings.min_in_sync_replicas,
                shrinks_begin_epochs: false,
                target_isr: partition.in_sync_replicas.clone(),
                unclean_shutdown: &[],
            };
            change.build().map(MetadataRecord::from)
        });
        moves.take(MOVES_MAX).collect()
    }
}

impl Upheaval {
    fn concerns(&self, at: TopicIdPartition, partition: &PartitionImage) -> bool {
        match self {
            Self::Removed(id) => partition.in_sync_replicas.contains(id),
            Self::Unclean(id) => {
                partition.in_sync_replicas.contains(id)
                    || partition.eligible_leader_replicas.contains(id)
            }
            Self::UncleanUnderOldRule(id) => partition.leader == *id,
            Self::Added(_) => !partition.has_leader(),
            Self::DirectoriesLost(id, directories) => {
                partition.in_sync_replicas.contains(id)
                    && directories.contains(&partition.directory(*id))
            }
            Self::Stranded(id, replicas) => {
                partition.in_sync_replicas.contains(id) && replicas.contains(&at)
            }
        }
    }

    fn is_acceptable(&self, image: &MetadataImage, partition: &PartitionImage, id: NodeId) -> bool {
        let up = match self {
            Self::Removed(gone)
            | Self::Unclean(gone)
            | Self::UncleanUnderOldRule(gone)
            | Self::DirectoriesLost(gone, _)
            | Self::Stranded(gone, _) => id != *gone && image.is_active(id),
            Self::Added(back) => id == *back || image.is_active(id),
        };
        up && image.has_directory(id, partition.directory(id))
    }

    fn target_isr(&self, partition: &PartitionImage) -> Vec<NodeId> {
        let gone = match self {
            Self::Removed(gone)
            | Self::Unclean(gone)
            | Self::DirectoriesLost(gone, _)
            | Self::Stranded(gone, _) => *gone,
            Self::Added(_) | Self::UncleanUnderOldRule(_) => NodeId::NONE,
        };
        partition
            .in_sync_replicas
            .iter()
            .copied()
            .filter(|id| *id != gone)
            .collect()
    }

    fn unclean_shutdown(&self, elr_enabled: bool) -> &[NodeId] {
        match self {
            Self::Unclean(id) if elr_enabled => std::slice::from_ref(id),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::testing::Cluster;

    #[test]
    fn leadership_goes_back_to_preferred_leaders_once_they_are_in_sync() {
        let mut cluster = Cluster::new(3);
        cluster.create("t", &[&[1, 2, 3], &[2, 3, 1]]);
        assert_eq!(cluster.controller.balance_leaders(cluster.image()), []);
        cluster.beat(1, |it| it.want_fence = true);
        assert_eq!(cluster.partition("t", 0).leader, NodeId::new(2));
        assert_eq!(cluster.controller.balance_leaders(cluster.image()), []);
        cluster.beat(1, |_| {});
        assert_eq!(
            cluster.controller.balance_leaders(cluster.image()),
            [],
            "not in sync"
        );
        cluster.set_isr("t", 0, &[1, 2, 3]);
        let before = cluster.partition("t", 0);
        let records = cluster.controller.balance_leaders(cluster.image());
        assert_eq!(records.len(), 1);
        cluster.apply(&records);
        let after = cluster.partition("t", 0);
        assert_eq!(after.leader, NodeId::new(1));
        assert_eq!(after.leader_epoch, before.leader_epoch.next());
        assert_eq!(after.in_sync_replicas, before.in_sync_replicas);
    }
}
