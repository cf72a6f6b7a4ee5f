//! What a running Apache Kafka 4.4 controller decided when brokers registered, came, stopped and
//! fell silent, and when leaders asked for other in-sync replicas, against our decisions on the
//! same metadata: record by record.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use highwater_fixtures::{Files, KAFKA_DATA_SETS, kafka_data};
use highwater_metadata::config::{BrokerConfig, parse_properties};
use highwater_metadata::controller::{
    AlterPartition, Controller, Heartbeat, IsrChange, Registration,
};
use highwater_metadata::image::{BrokerEndpoint, FeatureRange, ResourceKind};
use highwater_metadata::{MetadataDelta, MetadataImage, read_snapshot};
use highwater_records::Batches;
use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::{
    BrokerRegistrationChangeRecord, PartitionChangeRecord, RegisterBrokerRecord,
};
use highwater_types::{
    BrokerEpoch, DirectoryId, Mono, NodeId, Offset, OffsetAndEpoch, PartitionIndex, TopicId,
    TopicIdPartition,
};

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    registrations: usize,
    unclean: usize,
    fences: usize,
    fenced_again: usize,
    unfences: usize,
    departures: usize,
    isr_changes: usize,
    partition_changes: usize,
}

#[test]
fn the_controller_decides_as_kafkas_does() {
    let mut compared = Compared::default();
    for set in KAFKA_DATA_SETS {
        let files = kafka_data(set);
        // Copies of one log begin and end elsewhere.
        let dirs: BTreeSet<&Path> = files
            .keys()
            .filter_map(|path| path.parent())
            .filter(|dir| dir.ends_with("__cluster_metadata-0") && dir.starts_with("data"))
            .collect();
        for dir in dirs {
            replay(set, &files, dir, &mut compared);
        }
    }
    assert!(compared.registrations >= 20, "{compared:?}");
    assert!(
        compared.fences >= 24 && compared.departures >= 21,
        "{compared:?}"
    );
    assert!(compared.unfences >= 22, "{compared:?}");
    assert!(compared.isr_changes >= 222, "{compared:?}");
    assert!(compared.partition_changes >= 989, "{compared:?}");
}

fn replay(set: &str, files: &Files, dir: &Path, compared: &mut Compared) {
    let named = |suffix: &'static str| {
        let inside = files.iter().filter(|(path, _)| path.parent() == Some(dir));
        inside.filter_map(move |(path, bytes)| {
            let name = path.file_name()?.to_str()?.strip_suffix(suffix)?;
            let (offset, _) = name.split_once('-').unwrap_or((name, ""));
            Some((offset.parse::<i64>().ok()?, bytes))
        })
    };
    let logs: BTreeMap<i64, &Vec<u8>> = named(".log").collect();
    let snapshots: BTreeMap<i64, &Vec<u8>> = named(".checkpoint").collect();
    let Some(first) = logs.keys().next().copied() else {
        return;
    };
    let mut delta = MetadataDelta::default();
    let mut start = 0;
    if first > 0 {
        // The log begins at a snapshot, which may lie inside its first segment.
        let (end, bytes) = snapshots.range(first..).next().expect("a snapshot");
        read_snapshot(bytes, |record| Ok(delta.replay(&record)?)).expect("a whole snapshot");
        start = *end;
    }
    let mut controller = a_controller();
    for bytes in logs.into_values() {
        for batch in Batches::new(bytes) {
            let Ok(batch) = batch else { break };
            let header = *batch.header();
            if header.attributes.is_control() || header.base_offset.raw() < start {
                continue;
            }
            let open = batch.open(8 << 20).expect("readable");
            let records: Vec<MetadataRecord> = open
                .records()
                .map(|record| {
                    let value = record.expect("a record").value.expect("a value");
                    MetadataRecord::decode_value(value).expect("decodes").0
                })
                .collect();
            let at = header.base_offset;
            compare_batch(set, &mut controller, &mut delta, at, &records, compared);
            delta.set_end(OffsetAndEpoch {
                offset: header.next_offset(),
                epoch: header.leader_epoch,
            });
        }
    }
}

fn a_controller() -> Controller {
    let properties = parse_properties("").expect("well formed");
    let (config, _) = BrokerConfig::new(&properties).expect("values");
    Controller::new("cluster".into(), NodeId::new(1), Arc::new(config))
}

/// Finds the decisions in a batch: each of Kafka's is a run of records with one about a broker at
/// its end or its beginning.
fn compare_batch(
    set: &str,
    controller: &mut Controller,
    delta: &mut MetadataDelta,
    first: Offset,
    records: &[MetadataRecord],
    compared: &mut Compared,
) {
    let mut at = 0;
    while at < records.len() {
        let image = delta.image().clone();
        let next = first.plus(i64::try_from(at).expect("a few"));
        let taken = decision(set, controller, &image, next, &records[at..], compared);
        for record in &records[at..at + taken] {
            delta.replay(record).expect("Kafka's records fit");
        }
        at += taken;
    }
}

/// Compares the decision that begins here; how many records it has.
fn decision(
    set: &str,
    controller: &mut Controller,
    image: &MetadataImage,
    next: Offset,
    records: &[MetadataRecord],
    compared: &mut Compared,
) -> usize {
    let changes = records
        .iter()
        .take_while(|it| matches!(it, MetadataRecord::PartitionChange(_)))
        .count();
    match records.get(changes) {
        Some(MetadataRecord::RegisterBroker(record)) => {
            let kafkas = &records[..=changes];
            register(set, controller, image, next, record, kafkas, compared);
            return changes + 1;
        }
        Some(MetadataRecord::BrokerRegistrationChange(record)) if record.fenced == 1 => {
            let ours = controller.fence_expired(image, record.broker_id);
            if image.broker(record.broker_id).is_some_and(|it| it.fenced) {
                // A fenced broker may stop: Kafka fences it once more, we write nothing.
                assert_eq!((changes, ours.len()), (0, 0));
                compared.fenced_again += 1;
                return 1;
            }
            same(set, "a fence", image, &ours, &records[..=changes]);
            compared.fences += 1;
            compared.partition_changes += changes;
            return changes + 1;
        }
        _ => {}
    }
    match &records[0] {
        MetadataRecord::BrokerRegistrationChange(record)
            if record.fenced == -1 || record.in_controlled_shutdown == 1 =>
        {
            let run = 1 + records[1..]
                .iter()
                .take_while(|it| matches!(it, MetadataRecord::PartitionChange(_)))
                .count();
            broker_changes(
                set,
                controller,
                image,
                next,
                record,
                &records[..run],
                compared,
            )
        }
        MetadataRecord::PartitionChange(record) if is_isr_change(record) => {
            isr_change(set, controller, image, record, compared);
            1
        }
        _ => 1,
    }
}

fn register(
    set: &str,
    controller: &mut Controller,
    image: &MetadataImage,
    next: Offset,
    record: &RegisterBrokerRecord,
    kafkas: &[MetadataRecord],
    compared: &mut Compared,
) {
    let before = image.broker(record.broker_id);
    let mut request = Registration {
        broker_id: record.broker_id,
        cluster_id: "cluster".to_owned(),
        incarnation: record.incarnation_id,
        endpoints: record
            .end_points
            .iter()
            .map(|it| BrokerEndpoint {
                name: it.name.clone(),
                host: it.host.clone(),
                port: it.port,
                security_protocol: it.security_protocol,
            })
            .collect(),
        features: record
            .features
            .iter()
            .map(|it| FeatureRange {
                name: it.name.clone(),
                min: it.min_supported_version,
                max: it.max_supported_version,
            })
            .collect(),
        rack: record.rack.clone(),
        is_migrating: false,
        directories: record
            .log_dirs
            .iter()
            .copied()
            .map(DirectoryId::new)
            .collect(),
        previous_epoch: before.map_or(BrokerEpoch::NONE, |it| it.epoch),
    };
    let ours = |request: &Registration| {
        let mut controller = controller.clone();
        let decided = controller.register_broker(image, request, 1, next, Mono::START);
        sorted(&decided.expect("Kafka took it").records)
    };
    let kafkas = sorted(kafkas);
    // The log does not say how the broker stopped: one way fits.
    let clean = ours(&request);
    request.previous_epoch = BrokerEpoch::NONE;
    let unclean = ours(&request);
    assert!(
        clean == kafkas || unclean == kafkas,
        "{set} {next}: Kafka {kafkas:#?}\nclean {clean:#?}\nunclean {unclean:#?}"
    );
    compared.registrations += 1;
    compared.unclean += usize::from(clean != kafkas);
    compared.partition_changes += kafkas.len() - 1;
}

/// A broker comes back, or begins to leave. Kafka's batch may hold more after it.
fn broker_changes(
    set: &str,
    controller: &mut Controller,
    image: &MetadataImage,
    next: Offset,
    record: &BrokerRegistrationChangeRecord,
    run: &[MetadataRecord],
    compared: &mut Compared,
) -> usize {
    let leaves = record.in_controlled_shutdown == 1;
    let request = Heartbeat {
        broker_id: record.broker_id,
        broker_epoch: BrokerEpoch::new(record.broker_epoch),
        current_metadata_offset: next,
        want_shut_down: leaves,
        ..Heartbeat::default()
    };
    let decided = controller.heartbeat(image, &request, next, Mono::START);
    let ours = decided.expect("registered so").records;
    let what = if leaves {
        "a departure"
    } else {
        "an unfencing"
    };
    assert!(
        ours.len() <= run.len(),
        "{set} {next} {what}: {ours:#?}\n{run:#?}"
    );
    same(set, what, image, &ours, &run[..ours.len()]);
    compared.departures += usize::from(leaves);
    compared.unfences += usize::from(!leaves);
    compared.partition_changes += ours.len() - 1;
    ours.len()
}

fn is_isr_change(record: &PartitionChangeRecord) -> bool {
    record.isr.is_some() && record.leader == NodeId::new(-2) && record.replicas.is_none()
}

fn isr_change(
    set: &str,
    controller: &Controller,
    image: &MetadataImage,
    record: &PartitionChangeRecord,
    compared: &mut Compared,
) {
    let at = TopicIdPartition {
        topic_id: TopicId::new(record.topic_id),
        partition: PartitionIndex::new(record.partition_id),
    };
    let partition = image.partition(at).expect("there");
    let leader = image.broker(partition.leader).expect("registered");
    let isr = record.isr.as_ref().expect("checked").iter();
    let request = AlterPartition {
        broker_id: leader.id,
        broker_epoch: leader.epoch,
        changes: vec![IsrChange {
            at,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            in_sync_replicas: isr.map(|id| (*id, BrokerEpoch::NONE)).collect(),
            recovering: false,
        }],
    };
    let ours = controller
        .alter_partition(image, &request)
        .expect("registered so");
    let kafkas = [MetadataRecord::from(record.clone())];
    same(set, "another ISR", image, &ours.records, &kafkas);
    compared.isr_changes += 1;
}

fn same(
    set: &str,
    what: &str,
    image: &MetadataImage,
    ours: &[MetadataRecord],
    kafkas: &[MetadataRecord],
) {
    let (ours, kafkas) = (sorted(ours), sorted(kafkas));
    assert_eq!(ours.len(), kafkas.len(), "{set}: {what}");
    for (ours, kafkas) in ours.into_iter().zip(&kafkas) {
        let ours = allow_for_uneven_topics(image, ours, kafkas);
        let before = || match kafkas {
            MetadataRecord::PartitionChange(it) => {
                let topic = image.topic(TopicId::new(it.topic_id)).expect("there");
                let partition = topic.partitions.get(&PartitionIndex::new(it.partition_id));
                let config = image.config(ResourceKind::Topic, topic.name.as_str());
                format!("{} {config:?} {partition:?}", topic.name)
            }
            _ => String::new(),
        };
        assert_eq!(&ours, kafkas, "{set}: {what}, {}", before());
    }
}

/// Kafka takes the number of replicas of partition 0 for that of every partition of its topic when
/// it asks whether fewer than the minimum are in sync. We take the partition's own, as its leader
/// does; so where they differ, eligible leader replicas may.
fn allow_for_uneven_topics(
    image: &MetadataImage,
    ours: MetadataRecord,
    kafkas: &MetadataRecord,
) -> MetadataRecord {
    match (ours, kafkas) {
        (MetadataRecord::PartitionChange(mut ours), MetadataRecord::PartitionChange(kafkas)) => {
            let topic = image.topic(TopicId::new(ours.topic_id)).expect("there");
            let replicas = |index| {
                let partition = topic.partitions.get(&PartitionIndex::new(index));
                partition.map(|it| it.assigned_replicas.len())
            };
            if replicas(0) != replicas(ours.partition_id) {
                ours.eligible_leader_replicas
                    .clone_from(&kafkas.eligible_leader_replicas);
                ours.last_known_elr.clone_from(&kafkas.last_known_elr);
            }
            ours.into()
        }
        (ours, _) => ours,
    }
}

/// Kafka's order of partitions is that of its hash maps.
fn sorted(records: &[MetadataRecord]) -> Vec<MetadataRecord> {
    let mut records = records.to_vec();
    records.sort_by_key(|record| match record {
        MetadataRecord::PartitionChange(it) => (0, it.topic_id, it.partition_id),
        _ => (1, highwater_types::Uuid::ZERO, 0),
    });
    records
}
