use std::sync::Arc;

use highwater_records::stored::metadata::{
    ClearElrRecord, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord,
};
use highwater_types::{
    DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId, TopicName, Uuid,
};

use super::{MetadataDelta, ReplayError};
use crate::image::{ConfigResource, PartitionImage, ResourceKind, TopicImage};
use crate::shared_map::SharedMap;

/// In a change record's leader field: the leader stays.
pub(crate) const LEADER_UNCHANGED: NodeId = NodeId::new(-2);

/// The highest leader or partition epoch that a record may name. No cluster comes near it; a
/// million changes from here on are sure to find room.
pub const EPOCH_MAX: i32 = i32::MAX - 1_000_000;

impl MetadataDelta {
    pub(super) fn make_topic(&mut self, record: &TopicRecord) -> Result<(), ReplayError> {
        let refused = || ReplayError::TopicName {
            name: record.name.clone(),
        };
        let name = TopicName::new(&record.name).map_err(|_| refused())?;
        let id = TopicId::new(record.topic_id);
        if self.image.topics.contains_key(&id) || self.image.topic_ids.contains_key(&name) {
            return Err(refused());
        }
        let topic = TopicImage {
            id,
            name: name.clone(),
            partitions: SharedMap::new(),
        };
        self.image.topics.insert(id, Arc::new(topic));
        self.image.topic_ids.insert(name, id);
        self.changes.topics.insert(id);
        Ok(())
    }

    pub(super) fn remove_topic(&mut self, record: &RemoveTopicRecord) -> Result<(), ReplayError> {
        let topic_id = TopicId::new(record.topic_id);
        let Some(topic) = self.image.topics.remove(&topic_id) else {
            return Err(ReplayError::NoTopic {
                record: "REMOVE_TOPIC_RECORD",
                topic_id,
            });
        };
        self.image.topic_ids.remove(&topic.name);
        let name = topic.name.as_str().to_owned();
        self.image.configs.remove(&ConfigResource {
            kind: ResourceKind::Topic,
            name,
        });
        self.changes.topics.insert(topic_id);
        Ok(())
    }

    pub(super) fn make_partition(&mut self, record: &PartitionRecord) -> Result<(), ReplayError> {
        const TYPE: &str = "PARTITION_RECORD";
        if record.partition_id < 0 {
            return Err(ReplayError::Field {
                record: TYPE,
                field: "partitionId",
            });
        }
        let topic_id = TopicId::new(record.topic_id);
        for (field, epoch) in [
            ("leaderEpoch", record.leader_epoch),
            ("partitionEpoch", record.partition_epoch),
        ] {
            if epoch < 0 {
                return Err(ReplayError::Field {
                    record: TYPE,
                    field,
                });
            }
            if epoch > EPOCH_MAX {
                return Err(ReplayError::EpochsUsedUp {
                    record: TYPE,
                    topic_id,
                    partition: record.partition_id,
                });
            }
        }
        let partition = PartitionImage {
            assigned_replicas: record.replicas.clone(),
            directories: placed(&record.directories, record.replicas.len()),
            in_sync_replicas: record.isr.clone(),
            removing_replicas: record.removing_replicas.clone(),
            adding_replicas: record.adding_replicas.clone(),
            eligible_leader_replicas: record.eligible_leader_replicas.clone().unwrap_or_default(),
            last_known_elr: record.last_known_elr.clone().unwrap_or_default(),
            leader: record.leader,
            recovering: record.leader_recovery_state == 1,
            leader_epoch: LeaderEpoch::new(record.leader_epoch),
            partition_epoch: PartitionEpoch::new(record.partition_epoch),
        };
        let topic = self.topic_mut(TYPE, topic_id)?;
        topic.partitions.insert(
            PartitionIndex::new(record.partition_id),
            Arc::new(partition),
        );
        Ok(())
    }

    pub(super) fn change_partition(
        &mut self,
        record: &PartitionChangeRecord,
    ) -> Result<(), ReplayError> {
        const TYPE: &str = "PARTITION_CHANGE_RECORD";
        let topic_id = TopicId::new(record.topic_id);
        let topic = self.topic_mut(TYPE, topic_id)?;
        let partition = topic
            .partitions
            .value_mut(&PartitionIndex::new(record.partition_id));
        let Some(partition) = partition else {
            let partition = record.partition_id;
            return Err(ReplayError::NoPartition {
                record: TYPE,
                topic_id,
                partition,
            });
        };
        let used_up =
            partition.leader_epoch.raw() == i32::MAX || partition.partition_epoch.raw() == i32::MAX;
        if used_up {
            return Err(ReplayError::EpochsUsedUp {
                record: TYPE,
                topic_id,
                partition: record.partition_id,
            });
        }
        apply_change(Arc::make_mut(partition), record);
        Ok(())
    }

    pub(super) fn clear_elr(&mut self, record: &ClearElrRecord) -> Result<(), ReplayError> {
        let ids: Vec<TopicId> = if record.topic_name.is_empty() {
            self.image.topics.keys().copied().collect()
        } else {
            let id = self.image.topic_ids.get(record.topic_name.as_str());
            let refused = || ReplayError::TopicName {
                name: record.topic_name.clone(),
            };
            vec![*id.ok_or_else(refused)?]
        };
        for id in ids {
            self.clear_elr_of(id)?;
        }
        Ok(())
    }

    fn clear_elr_of(&mut self, id: TopicId) -> Result<(), ReplayError> {
        let has_any = |it: &PartitionImage| {
            !it.eligible_leader_replicas.is_empty() || !it.last_known_elr.is_empty()
        };
        let Some(topic) = self.image.topic(id) else {
            return Ok(());
        };
        let partitions = topic.partitions.iter().filter(|(_, it)| has_any(it));
        let partitions: Vec<_> = partitions.map(|(index, _)| *index).collect();
        for partition in partitions {
            self.change_partition(&PartitionChangeRecord {
                partition_id: partition.raw(),
                topic_id: id.uuid(),
                eligible_leader_replicas: Some(Vec::new()),
                last_known_elr: Some(Vec::new()),
                ..PartitionChangeRecord::default()
            })?;
        }
        Ok(())
    }

    fn topic_mut(
        &mut self,
        record: &'static str,
        topic_id: TopicId,
    ) -> Result<&mut TopicImage, ReplayError> {
        let topic = self.image.topics.value_mut(&topic_id);
        let topic = topic.ok_or(ReplayError::NoTopic { record, topic_id })?;
        self.changes.topics.insert(topic_id);
        Ok(Arc::make_mut(topic))
    }
}

/// Each change raises the partition epoch; the leader epoch rises if and only if the record names
/// a leader, even the same one: so an epoch is forced to move.
pub(crate) fn apply_change(partition: &mut PartitionImage, record: &PartitionChangeRecord) {
    fn replace<T: Clone>(field: &mut Vec<T>, new: Option<&Vec<T>>) {
        if let Some(new) = new {
            field.clone_from(new);
        }
    }
    if let Some(replicas) = &record.replicas {
        partition.assigned_replicas.clone_from(replicas);
        let uuids = record.directories.as_deref().unwrap_or_default();
        partition.directories = placed(uuids, replicas.len());
    } else if let Some(uuids) = &record.directories {
        partition.directories = placed(uuids, partition.assigned_replicas.len());
    }
    replace(&mut partition.in_sync_replicas, record.isr.as_ref());
    replace(
        &mut partition.removing_replicas,
        record.removing_replicas.as_ref(),
    );
    replace(
        &mut partition.adding_replicas,
        record.adding_replicas.as_ref(),
    );
    replace(
        &mut partition.eligible_leader_replicas,
        record.eligible_leader_replicas.as_ref(),
    );
    replace(
        &mut partition.last_known_elr,
        record.last_known_elr.as_ref(),
    );
    match record.leader_recovery_state {
        0 => partition.recovering = false,
        1 => partition.recovering = true,
        _ => {}
    }
    if record.leader != LEADER_UNCHANGED {
        partition.leader = record.leader;
        partition.leader_epoch = partition.leader_epoch.next();
    }
    partition.partition_epoch = partition.partition_epoch.next();
}

/// The directory of each replica; records from before KIP-858 do not say.
fn placed(uuids: &[Uuid], replicas: usize) -> Vec<DirectoryId> {
    if uuids.len() == replicas {
        uuids.iter().copied().map(DirectoryId::new).collect()
    } else {
        vec![DirectoryId::MIGRATING; replicas]
    }
}

#[cfg(test)]
mod tests {
    use highwater_records::stored::MetadataRecord;
    use highwater_records::stored::metadata::ConfigRecord;

    use super::*;

    const TOPIC: Uuid = Uuid::from_u128(1000);

    fn with_partition() -> MetadataDelta {
        let mut delta = MetadataDelta::default();
        let records: [MetadataRecord; 3] = [
            TopicRecord {
                name: "t".to_owned(),
                topic_id: TOPIC,
            }
            .into(),
            ConfigRecord {
                resource_type: 2,
                resource_name: "t".to_owned(),
                name: "retention.ms".to_owned(),
                value: Some("1".to_owned()),
            }
            .into(),
            PartitionRecord {
                partition_id: 0,
                topic_id: TOPIC,
                replicas: vec![NodeId::new(1), NodeId::new(2)],
                isr: vec![NodeId::new(1), NodeId::new(2)],
                leader: NodeId::new(1),
                leader_epoch: 0,
                partition_epoch: 0,
                ..PartitionRecord::default()
            }
            .into(),
        ];
        for record in &records {
            delta.replay(record).expect("fits");
        }
        delta
    }

    fn partition(delta: &MetadataDelta) -> PartitionImage {
        let topic = delta.image().topic_by_name("t").expect("made");
        (**topic.partitions.get(&PartitionIndex::new(0)).expect("made")).clone()
    }

    fn change() -> PartitionChangeRecord {
        PartitionChangeRecord {
            partition_id: 0,
            topic_id: TOPIC,
            ..PartitionChangeRecord::default()
        }
    }

    #[test]
    fn the_leader_epoch_rises_only_with_the_leader_field() {
        let mut delta = with_partition();
        let shrink = PartitionChangeRecord {
            isr: Some(vec![NodeId::new(1)]),
            ..change()
        };
        delta.replay(&shrink.into()).expect("fits");
        let now = partition(&delta);
        assert_eq!((now.leader_epoch.raw(), now.partition_epoch.raw()), (0, 1));
        let same_leader = PartitionChangeRecord {
            leader: NodeId::new(1),
            ..change()
        };
        delta.replay(&same_leader.into()).expect("fits");
        let now = partition(&delta);
        assert_eq!((now.leader_epoch.raw(), now.partition_epoch.raw()), (1, 2));
        assert_eq!(now.leader, NodeId::new(1));
    }

    #[test]
    fn clearing_the_elr_raises_the_partition_epoch_where_there_is_one() {
        let mut delta = with_partition();
        let clear = || ClearElrRecord {
            topic_name: String::new(),
        };
        delta.replay(&clear().into()).expect("fits");
        assert_eq!(partition(&delta).partition_epoch.raw(), 0);
        let elr = PartitionChangeRecord {
            eligible_leader_replicas: Some(vec![NodeId::new(2)]),
            last_known_elr: Some(vec![NodeId::new(1)]),
            ..change()
        };
        delta.replay(&elr.into()).expect("fits");
        delta.replay(&clear().into()).expect("fits");
        let now = partition(&delta);
        assert_eq!(now.partition_epoch.raw(), 2);
        assert!(now.eligible_leader_replicas.is_empty() && now.last_known_elr.is_empty());
    }

    #[test]
    fn a_removed_topic_takes_its_configs_along() {
        let mut delta = with_partition();
        delta
            .replay(&RemoveTopicRecord { topic_id: TOPIC }.into())
            .expect("fits");
        assert!(delta.image().topics.is_empty() && delta.image().topic_ids.is_empty());
        assert!(delta.image().configs.is_empty());
        let (_, changes) = delta.take().expect("a boundary");
        assert_eq!(changes.topics.len(), 1);
    }

    #[test]
    fn epochs_at_their_end_are_refused_and_the_record_is_named() {
        let mut delta = with_partition();
        let record = |leader_epoch, partition_epoch| -> MetadataRecord {
            PartitionRecord {
                partition_id: 1,
                topic_id: TOPIC,
                replicas: vec![NodeId::new(1)],
                isr: vec![NodeId::new(1)],
                leader: NodeId::new(1),
                leader_epoch,
                partition_epoch,
                ..PartitionRecord::default()
            }
            .into()
        };
        for (leader_epoch, partition_epoch) in [
            (i32::MAX, 0),
            (0, i32::MAX),
            (EPOCH_MAX + 1, 0),
            (-1, 0),
            (0, -1),
        ] {
            let why = delta.replay(&record(leader_epoch, partition_epoch));
            let why = why.expect_err("refused").to_string();
            assert!(why.starts_with("PARTITION_RECORD"), "{why}");
        }
        delta.replay(&record(EPOCH_MAX, EPOCH_MAX)).expect("fits");
        let change = PartitionChangeRecord {
            partition_id: 1,
            leader: NodeId::new(1),
            ..change()
        };
        delta.replay(&change.clone().into()).expect("there is room");
        // A log of a million changes can use them up all the same.
        let topic = delta.image.topics.value_mut(&TopicId::new(TOPIC));
        let topic = Arc::make_mut(topic.expect("made"));
        let partition = topic.partitions.value_mut(&PartitionIndex::new(1));
        Arc::make_mut(partition.expect("made")).leader_epoch = LeaderEpoch::new(i32::MAX);
        let why = delta.replay(&change.into()).expect_err("refused");
        let text = why.to_string();
        assert!(
            text.starts_with("PARTITION_CHANGE_RECORD puts partition 1 of"),
            "{text}"
        );
    }

    #[test]
    fn records_that_do_not_fit_are_refused() {
        let mut delta = with_partition();
        let stranger = Uuid::from_u128(1001);
        for record in [
            MetadataRecord::from(TopicRecord {
                name: "t".to_owned(),
                topic_id: stranger,
            }),
            TopicRecord {
                name: "..".to_owned(),
                topic_id: stranger,
            }
            .into(),
            RemoveTopicRecord { topic_id: stranger }.into(),
            PartitionChangeRecord {
                topic_id: stranger,
                ..change()
            }
            .into(),
            PartitionChangeRecord {
                partition_id: 9,
                ..change()
            }
            .into(),
            PartitionRecord {
                topic_id: TOPIC,
                ..PartitionRecord::default()
            }
            .into(),
        ] {
            assert!(delta.replay(&record).is_err(), "{record:?}");
        }
    }
}
