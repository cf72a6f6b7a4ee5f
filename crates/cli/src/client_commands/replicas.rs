use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use highwater_client::{
    Client, ClientError, Connection, OffsetSpec, PartitionMetadata, PartitionName, TopicMetadata,
};
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use highwater_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use highwater_protocol::messages::{FetchRequest, ListOffsetsRequest};
use highwater_protocol::{ApiKey, FetchView};
use highwater_types::{ErrorCode, Millis, NodeId, Offset, PartitionIndex, TopicId};
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

/// Asks as Kafka's tools for debugging do: it is told log end offsets, by followers too.
const DEBUGGING_REPLICA: NodeId = NodeId::new(-2);
/// Longest that one broker is waited for: one that is stopped takes connections and says nothing.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// From these versions of Fetch on, topics have ids, and the replica is in a field of its own.
const TOPIC_IDS_SINCE: i16 = 13;
const REPLICA_STATE_SINCE: i16 = 15;

/// Where a replica stands, as its own broker tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    start: Option<Offset>,
    high_watermark: Option<Offset>,
    log_end: Option<Offset>,
}

/// What each broker told of its replicas; an `Err` for one that did not answer.
type Told = BTreeMap<NodeId, Result<BTreeMap<PartitionName, Standing>, String>>;

/// Every replica of `topics`, and where it stands, asked of its own broker by stock requests.
pub(super) async fn table(client: &Client, topics: &[TopicMetadata]) -> Table {
    let told = ask_all(client, topics).await;
    let mut table = Table::new(COLUMNS);
    for topic in topics {
        for partition in &topic.partitions {
            push_partition(&mut table, &topic.name, partition, &told);
        }
    }
    table
}

fn push_partition(table: &mut Table, topic: &str, partition: &PartitionMetadata, told: &Told) {
    let name = (topic.to_owned(), partition.index);
    let standing = |broker: NodeId| -> Standing {
        let of_broker = told.get(&broker).and_then(|it| it.as_ref().ok());
        let found = of_broker.and_then(|it| it.get(&name));
        found.copied().unwrap_or_default()
    };
    let leader_end = partition.leader.and_then(|leader| standing(leader).log_end);
    let number = |offset: Option<Offset>| offset.map_or(Value::Null, |it| json!(it.raw()));
    for &broker in &partition.assigned_replicas {
        let own = standing(broker);
        let leads = partition.leader == Some(broker);
        let is_offline = partition.offline_replicas.contains(&broker);
        let role = match (leads, is_offline) {
            (true, _) => "leader",
            (false, true) => "offline",
            (false, false) => "follower",
        };
        let in_sync = partition.in_sync_replicas.contains(&broker);
        let isr = match (leads, in_sync) {
            (true, _) => {
                let ids = partition.in_sync_replicas.iter().map(|id| id.raw());
                Value::from(ids.collect::<Vec<_>>())
            }
            (false, true) => Value::Null,
            (false, false) => json!("(out)"),
        };
        let behind = match (leader_end, own.log_end) {
            (Some(leader), Some(own)) if !leads => {
                // They were asked one after the other: a follower may have been asked later.
                json!((leader.raw() - own.raw()).max(0))
            }
            _ => Value::Null,
        };
        let note = match told.get(&broker) {
            Some(Err(why)) => Some(why.clone()),
            _ => None,
        };
        let row = vec![
            json!(format!("{topic}-{}", partition.index)),
            json!(broker.raw()),
            json!(role),
            json!(partition.leader_epoch.raw()),
            number(own.start),
            number(own.high_watermark),
            number(own.log_end),
            isr,
            behind,
        ];
        table.push_noted(row, note);
    }
}

/// Asks every broker at once where its replicas stand.
async fn ask_all(client: &Client, topics: &[TopicMetadata]) -> Told {
    let mut asked: BTreeMap<NodeId, Vec<Asked>> = BTreeMap::new();
    let mut absent: BTreeSet<NodeId> = BTreeSet::new();
    for topic in topics {
        for partition in &topic.partitions {
            for &broker in &partition.assigned_replicas {
                if partition.offline_replicas.contains(&broker) {
                    absent.insert(broker);
                    continue;
                }
                asked.entry(broker).or_default().push(Asked {
                    topic: topic.name.clone(),
                    id: topic.id,
                    index: partition.index,
                });
            }
        }
    }
    let mut asking = tokio::task::JoinSet::new();
    for (broker, partitions) in asked {
        let client = client.clone();
        asking.spawn(async move {
            let told = tokio::time::timeout(ANSWER_MAX, ask(&client, broker, &partitions)).await;
            let told = match told {
                Ok(told) => told.map_err(|why| format!("does not answer: {why}")),
                Err(_) => Err(format!("does not answer within {} s", ANSWER_MAX.as_secs())),
            };
            (broker, told)
        });
    }
    let mut told: Told = asking.join_all().await.into_iter().collect();
    for broker in absent {
        told.entry(broker)
            .or_insert_with(|| Err("its broker is down".to_owned()));
    }
    told
}

/// One replica of a broker.
struct Asked {
    topic: String,
    id: Option<TopicId>,
    index: PartitionIndex,
}

impl Asked {
    fn name(&self) -> PartitionName {
        (self.topic.clone(), self.index)
    }
}

/// Asks one broker. First for the ends of its logs, then, with fetches at these ends, which bring
/// no records, for the rest.
async fn ask(
    client: &Client,
    broker: NodeId,
    partitions: &[Asked],
) -> Result<BTreeMap<PartitionName, Standing>, ClientError> {
    let connection = client.connection(broker).await?;
    let ends = log_ends(&connection, partitions).await?;
    fetched(&connection, partitions, ends).await
}

async fn log_ends(
    connection: &Connection,
    partitions: &[Asked],
) -> Result<BTreeMap<PartitionName, Offset>, ClientError> {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for asked in partitions {
        let of_topic = topics.entry(&asked.topic).or_default();
        of_topic.push(ListOffsetsPartition {
            partition_index: asked.index.raw(),
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
    let answer = connection.call(request, LONG).await?;
    let mut ends = BTreeMap::new();
    for topic in answer.topics {
        for partition in topic.partitions {
            if partition.error_code == ErrorCode::NONE && partition.offset >= 0 {
                let name = (
                    topic.name.clone(),
                    PartitionIndex::new(partition.partition_index),
                );
                ends.insert(name, Offset::new(partition.offset));
            }
        }
    }
    Ok(ends)
}

/// The whole exchange has a limit of its own.
const LONG: Millis = Millis::new(60_000);

async fn fetched(
    connection: &Connection,
    partitions: &[Asked],
    ends: BTreeMap<PartitionName, Offset>,
) -> Result<BTreeMap<PartitionName, Standing>, ClientError> {
    let version = connection.version(ApiKey::Fetch)?;
    let request = fetch_at_ends(version, partitions, &ends);
    let view = FetchView::from_message(&request, version);
    let view = view.map_err(|why| ClientError::Encode {
        peer: connection.peer().to_owned(),
        api: ApiKey::Fetch,
        why: why.to_string(),
    })?;
    let answer = connection.call(view, LONG).await?;
    let names: BTreeMap<TopicId, &str> = partitions
        .iter()
        .filter_map(|it| Some((it.id?, it.topic.as_str())))
        .collect();
    let with_end = |(name, end): (PartitionName, Offset)| {
        let log_end = Some(end);
        (
            name,
            Standing {
                log_end,
                ..Standing::default()
            },
        )
    };
    let mut told: BTreeMap<PartitionName, Standing> = ends.into_iter().map(with_end).collect();
    let known = |offset: i64| (offset >= 0).then(|| Offset::new(offset));
    for topic in answer.responses {
        let name = match names.get(&TopicId::new(topic.topic_id)) {
            Some(name) if version >= TOPIC_IDS_SINCE => (*name).to_owned(),
            _ => topic.topic,
        };
        for partition in topic.partitions {
            let name = (name.clone(), PartitionIndex::new(partition.partition_index));
            if let Some(standing) = told.get_mut(&name) {
                standing.high_watermark = known(partition.high_watermark);
                standing.start = known(partition.log_start_offset);
            }
        }
    }
    Ok(told)
}

/// A fetch at the end of each log, as a debugging replica.
fn fetch_at_ends(
    version: i16,
    partitions: &[Asked],
    ends: &BTreeMap<PartitionName, Offset>,
) -> FetchRequest {
    let mut topics: BTreeMap<&str, FetchTopic> = BTreeMap::new();
    for asked in partitions {
        let Some(end) = ends.get(&asked.name()) else {
            continue;
        };
        let topic = topics.entry(&asked.topic).or_insert_with(|| FetchTopic {
            topic: asked.topic.clone(),
            topic_id: asked.id.unwrap_or(TopicId::ZERO).uuid(),
            ..FetchTopic::default()
        });
        topic.partitions.push(FetchPartition {
            partition: asked.index.raw(),
            fetch_offset: end.raw(),
            partition_max_bytes: 1,
            ..FetchPartition::default()
        });
    }
    let mut request = FetchRequest {
        max_bytes: 1,
        topics: topics.into_values().collect(),
        ..FetchRequest::default()
    };
    if version >= REPLICA_STATE_SINCE {
        request.replica_state = ReplicaState {
            replica_id: DEBUGGING_REPLICA,
            ..ReplicaState::default()
        };
    } else {
        request.replica_id = DEBUGGING_REPLICA;
    }
    request
}
