use std::collections::BTreeMap;

use highwater_client::{
    Client, IsolationLevel, OffsetSpec, PartitionMetadata, PartitionName, TopicMetadata,
};
use highwater_protocol::messages::ListOffsetsRequest;
use highwater_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use highwater_types::{ErrorCode, Millis, NodeId, Offset};
use serde_json::{Value, json};

use crate::output::Table;

/// The columns that the command line, the console, the metrics and the simulator share.
const COLUMNS: &[&str] = &[
    "topic-partition",
    "broker",
    "role",
    "epoch",
    "start",
    "hw",
    "leo",
    "isr",
    "lag",
];

/// Asks as Kafka's tools for debugging do: it is told log end offsets, not high watermarks.
const DEBUGGING_REPLICA: NodeId = NodeId::new(-2);

/// Offsets of one partition, as its leader tells them.
#[derive(Clone, Copy, Debug, Default)]
struct Offsets {
    start: Option<Offset>,
    high_watermark: Option<Offset>,
    log_end: Option<Offset>,
}

/// Every replica of `topics`, and where it stands as far as stock requests tell.
pub(super) async fn table(client: &Client, topics: &[TopicMetadata]) -> Table {
    let offsets = offsets(client, topics).await;
    let mut table = Table::new(COLUMNS);
    for topic in topics {
        for partition in &topic.partitions {
            let name = (topic.name.clone(), partition.index);
            let known = offsets.get(&name).copied().unwrap_or_default();
            push_partition(&mut table, &topic.name, partition, known);
        }
    }
    table
}

fn push_partition(table: &mut Table, topic: &str, partition: &PartitionMetadata, known: Offsets) {
    let name = json!(format!("{topic}-{}", partition.index));
    let epoch = json!(partition.leader_epoch.raw());
    let number = |offset: Option<Offset>| offset.map_or(Value::Null, |it| json!(it.raw()));
    let ids = |ids: &[NodeId]| Value::from(ids.iter().map(|id| id.raw()).collect::<Vec<_>>());
    for &broker in &partition.assigned_replicas {
        let leads = partition.leader == Some(broker);
        let in_sync = partition.in_sync_replicas.contains(&broker);
        let offline = partition.offline_replicas.contains(&broker);
        let role = match (leads, offline) {
            (true, _) => "leader",
            (false, true) => "offline",
            (false, false) => "follower",
        };
        let mut row = vec![
            name.clone(),
            json!(broker.raw()),
            json!(role),
            epoch.clone(),
        ];
        if leads {
            let (start, end) = (number(known.start), number(known.log_end));
            row.extend([start, number(known.high_watermark), end]);
            row.extend([ids(&partition.in_sync_replicas), Value::Null]);
        } else {
            let out = if in_sync { Value::Null } else { json!("(out)") };
            row.extend([Value::Null, Value::Null, Value::Null, out, Value::Null]);
        }
        table.push(row);
    }
}

async fn offsets(client: &Client, topics: &[TopicMetadata]) -> BTreeMap<PartitionName, Offsets> {
    let mut led: BTreeMap<NodeId, Vec<(PartitionName, i32)>> = BTreeMap::new();
    for topic in topics {
        for partition in &topic.partitions {
            if let Some(leader) = partition.leader {
                let name = (topic.name.clone(), partition.index);
                led.entry(leader)
                    .or_default()
                    .push((name, partition.leader_epoch.raw()));
            }
        }
    }
    let names: Vec<PartitionName> = led
        .values()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    let mut known: BTreeMap<PartitionName, Offsets> = BTreeMap::new();
    for spec in [OffsetSpec::Earliest, OffsetSpec::Latest] {
        let wanted: Vec<_> = names.iter().map(|name| (name.clone(), spec)).collect();
        let answers = client
            .list_offsets(&wanted, IsolationLevel::ReadUncommitted)
            .await;
        for (name, answer) in names.iter().zip(answers) {
            let Ok(found) = answer else { continue };
            let offsets = known.entry(name.clone()).or_default();
            match spec {
                OffsetSpec::Earliest => offsets.start = found.offset,
                _ => offsets.high_watermark = found.offset,
            }
        }
    }
    for (leader, partitions) in led {
        for (name, end) in log_ends(client, leader, &partitions).await {
            known.entry(name).or_default().log_end = Some(end);
        }
    }
    known
}

/// Log end offsets at one leader. Empty when it does not tell.
async fn log_ends(
    client: &Client,
    leader: NodeId,
    partitions: &[(PartitionName, i32)],
) -> Vec<(PartitionName, Offset)> {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for ((topic, index), _) in partitions {
        topics.entry(topic).or_default().push(ListOffsetsPartition {
            partition_index: index.raw(),
            current_leader_epoch: -1,
            timestamp: OffsetSpec::Latest.raw(),
        });
    }
    let topics = topics
        .into_iter()
        .map(|(name, partitions)| ListOffsetsTopic {
            name: name.to_owned(),
            partitions,
        });
    let request = ListOffsetsRequest {
        replica_id: DEBUGGING_REPLICA,
        topics: topics.collect(),
        ..ListOffsetsRequest::default()
    };
    let Ok(connection) = client.connection(leader).await else {
        return Vec::new();
    };
    let Ok(answer) = connection.call(request, Millis::new(10_000)).await else {
        return Vec::new();
    };
    let mut ends = Vec::new();
    for topic in answer.topics {
        for partition in topic.partitions {
            if partition.error_code == ErrorCode::NONE && partition.offset >= 0 {
                let index = highwater_types::PartitionIndex::new(partition.partition_index);
                ends.push(((topic.name.clone(), index), Offset::new(partition.offset)));
            }
        }
    }
    ends
}
