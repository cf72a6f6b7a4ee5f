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
