use std::sync::Arc;

use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::{
    ConfigRecord, FeatureLevelRecord, PartitionRecord, ProducerIdsRecord, RegisterBrokerRecord,
    RegisterControllerRecord, TopicRecord,
};
use highwater_records::stored::metadata::{register_broker_record, register_controller_record};
use highwater_types::{DirectoryId, NodeId, PartitionIndex, Uuid};

use crate::image::{
    BrokerImage, ControllerImage, METADATA_VERSION, MetadataImage, PartitionImage, TopicImage,
};

/// The records that make `image` of an empty one, in the order in which Kafka writes a snapshot.
pub fn snapshot_records(image: &MetadataImage) -> impl Iterator<Item = MetadataRecord> {
    feature_records(image)
        .into_iter()
        .chain(image.brokers.values().map(|it| broker_record(it).into()))
        .chain(
            image
                .controllers
                .values()
                .map(|it| controller_record(it).into()),
        )
        .chain(image.topics.values().flat_map(topic_records))
        .chain(config_records(image))
        .chain(image.security.quotas.values().cloned().map(Into::into))
        .chain(producer_ids_record(image))
        .chain(image.security.acls.values().cloned().map(Into::into))
        .chain(image.security.scram.values().cloned().map(Into::into))
        .chain(image.security.tokens.values().cloned().map(Into::into))
}

/// metadata.version comes first: it says how to read what follows.
fn feature_records(image: &MetadataImage) -> Vec<MetadataRecord> {
    let mut levels: Vec<_> = image.features.levels.iter().collect();
    levels.sort_by_key(|(name, _)| name.as_str() != METADATA_VERSION);
    let record = |(name, level): (&String, &i16)| {
        FeatureLevelRecord {
            name: name.clone(),
            feature_level: *level,
        }
        .into()
    };
    levels.into_iter().map(record).collect()
}

/// The record that registers `broker` as it is.
pub(crate) fn broker_record(broker: &BrokerImage) -> RegisterBrokerRecord {
    let endpoint = |it: &crate::image::BrokerEndpoint| register_broker_record::BrokerEndpoint {
        name: it.name.clone(),
        host: it.host.clone(),
        port: it.port,
        security_protocol: it.security_protocol,
    };
    let feature = |it: &crate::image::FeatureRange| register_broker_record::BrokerFeature {
        name: it.name.clone(),
        min_supported_version: it.min,
        max_supported_version: it.max,
    };
    RegisterBrokerRecord {
        broker_id: broker.id,
        is_migrating_zk_broker: broker.is_migrating,
        incarnation_id: broker.incarnation,
        broker_epoch: broker.epoch.raw(),
        end_points: broker.endpoints.iter().map(endpoint).collect(),
        features: broker.features.iter().map(feature).collect(),
        rack: broker.rack.clone(),
        fenced: broker.fenced,
        in_controlled_shutdown: broker.in_controlled_shutdown,
        log_dirs: uuids(&broker.directories),
        cordoned_log_dirs: broker.cordoned.as_deref().map(uuids),
    }
}

/// The record that registers `controller` as it is.
pub(crate) fn controller_record(controller: &ControllerImage) -> RegisterControllerRecord {
    let endpoint =
        |it: &crate::image::BrokerEndpoint| register_controller_record::ControllerEndpoint {
            name: it.name.clone(),
            host: it.host.clone(),
            port: it.port,
            security_protocol: it.security_protocol,
        };
    let feature = |it: &crate::image::FeatureRange| register_controller_record::ControllerFeature {
        name: it.name.clone(),
        min_supported_version: it.min,
        max_supported_version: it.max,
    };
    RegisterControllerRecord {
        controller_id: controller.id,
        incarnation_id: controller.incarnation,
        zk_migration_ready: controller.zk_migration_ready,
        end_points: controller.endpoints.iter().map(endpoint).collect(),
        features: controller.features.iter().map(feature).collect(),
    }
}

fn topic_records(topic: &Arc<TopicImage>) -> impl Iterator<Item = MetadataRecord> {
    let record = TopicRecord {
        name: topic.name.to_string(),
        topic_id: topic.id.uuid(),
    };
    let partitions = topic
        .partitions
        .iter()
        .map(|(index, partition)| partition_record(topic.id.uuid(), *index, partition).into());
    std::iter::once(record.into()).chain(partitions)
}

/// The record that makes `partition` as it is.
pub(crate) fn partition_record(
    topic_id: Uuid,
    index: PartitionIndex,
    partition: &PartitionImage,
) -> PartitionRecord {
    let unless_empty = |list: &Vec<NodeId>| (!list.is_empty()).then(|| list.clone());
    PartitionRecord {
        partition_id: index.raw(),
        topic_id,
        replicas: partition.assigned_replicas.clone(),
        isr: partition.in_sync_replicas.clone(),
        removing_replicas: partition.removing_replicas.clone(),
        adding_replicas: partition.adding_replicas.clone(),
        leader: partition.leader,
        leader_recovery_state: i8::from(partition.recovering),
        leader_epoch: partition.leader_epoch.raw(),
        partition_epoch: partition.partition_epoch.raw(),
        directories: uuids(&partition.directories),
        eligible_leader_replicas: unless_empty(&partition.eligible_leader_replicas),
        last_known_elr: unless_empty(&partition.last_known_elr),
    }
}

fn config_records(image: &MetadataImage) -> impl Iterator<Item = MetadataRecord> {
    image.configs.iter().flat_map(|(resource, configs)| {
        configs.iter().map(|(name, value)| {
            ConfigRecord {
                resource_type: resource.kind.to_wire(),
                resource_name: resource.name.clone(),
                name: name.clone(),
                value: Some(value.clone()),
            }
            .into()
        })
    })
}

fn producer_ids_record(image: &MetadataImage) -> Option<MetadataRecord> {
    let record = ProducerIdsRecord {
        broker_id: NodeId::NONE,
        broker_epoch: -1,
        next_producer_id: image.next_producer_id,
    };
    (image.next_producer_id > 0).then(|| record.into())
}

fn uuids(directories: &[DirectoryId]) -> Vec<Uuid> {
    directories.iter().map(|it| it.uuid()).collect()
}
