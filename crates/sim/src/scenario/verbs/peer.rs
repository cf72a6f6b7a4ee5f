//! Verbs that say by hand what brokers say to each other and to the controller.

use highwater_protocol::ListenerKind;
use highwater_protocol::messages::alter_partition_request::{self as alter, BrokerState};
use highwater_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use highwater_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use highwater_protocol::messages::{
    AlterPartitionRequest, FetchRequest, OffsetForLeaderEpochRequest,
};
use highwater_protocol::{FetchView, Request};
use highwater_types::{NodeId, TopicPartition, Uuid};

use super::client::ask;
use super::cluster::ids_in_order;
use super::{Command, ScriptError, partition};
use crate::client::ClientId;
use crate::world::World;
use crate::world::clients::Load;
use crate::world::clients::requests::Purpose;

/// The first version of Fetch that names topics by id, and that has the replica's state.
const TOPIC_IDS_SINCE: i16 = 13;
const REPLICA_STATE_SINCE: i16 = 15;
/// Speaks to the controller's listener.
const CONTROLLER_CLIENT: ClientId = ClientId(9000);
/// The settings of `epoch-end`.
pub(super) const EPOCH_END_SETTINGS: &[&str] = &["epoch", "current", "to", "client", "wait"];
/// The settings of `replica-fetch`.
pub(super) const REPLICA_FETCH_SETTINGS: &[&str] = &[
    "offset",
    "replica",
    "broker-epoch",
    "epoch",
    "last-epoch",
    "session",
    "session-epoch",
    "max-wait",
    "version",
    "to",
    "client",
    "wait",
];
/// The settings of `alter-partition`.
pub(super) const ALTER_SETTINGS: &[&str] = &[
    "from",
    "isr",
    "leader-epoch",
    "partition-epoch",
    "broker-epoch",
    "isr-epochs",
    "recovering",
    "wait",
    "client",
    "to",
];

/// `epoch-end orders-0 epoch=0 [current=2] [to=1]`: where the log of an epoch ends, as
/// `OffsetForLeaderEpoch` tells it.
pub(super) fn epoch_end(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let partition = partition(command.word(0, "a partition")?)?;
    let asked = OffsetForLeaderPartition {
        partition: partition.partition.raw(),
        current_leader_epoch: command.setting("current", -1)?,
        leader_epoch: command.setting("epoch", 0)?,
    };
    let request = OffsetForLeaderEpochRequest {
        replica_id: NodeId::NONE,
        topics: vec![OffsetForLeaderTopic {
            topic: partition.topic.to_string(),
            partitions: vec![asked],
        }],
    };
    let purpose = Purpose::EpochEnd(partition.clone());
    ask(
        world,
        command,
        Some(&partition),
        (&request.into(), 4),
        purpose,
    )
}

/// `replica-fetch orders-0 offset=5 replica=3 [broker-epoch=7|none] [epoch=..] [last-epoch=..]
/// [session=0] [session-epoch=-1] [to=1]`: the fetch of a replica, from a plain connection.
/// Without `broker-epoch` it is the registered one.
pub(super) fn replica_fetch(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let partition = partition(command.word(0, "a partition")?)?;
    let replica = NodeId::new(command.setting("replica", 2)?);
    let version = command.setting("version", 17)?;
    let broker_epoch = broker_epoch(world, command, replica)?;
    let by_id = version >= TOPIC_IDS_SINCE;
    let has_state = version >= REPLICA_STATE_SINCE;
    let topic_id = world.topic_id(&partition.topic).unwrap_or(Uuid::ZERO);
    let asked = FetchPartition {
        partition: partition.partition.raw(),
        current_leader_epoch: command.setting("epoch", -1)?,
        fetch_offset: command.setting("offset", 0)?,
        last_fetched_epoch: command.setting("last-epoch", -1)?,
        log_start_offset: 0,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let message = FetchRequest {
        replica_id: if has_state { NodeId::NONE } else { replica },
        replica_state: if has_state {
            ReplicaState {
                replica_id: replica,
                replica_epoch: broker_epoch,
            }
        } else {
            ReplicaState::default()
        },
        max_wait_ms: command.setting("max-wait", 0)?,
        min_bytes: 1,
        max_bytes: 1 << 20,
        session_id: command.setting("session", 0)?,
        session_epoch: command.setting("session-epoch", -1)?,
        topics: vec![FetchTopic {
            topic: if by_id {
                String::new()
            } else {
                partition.topic.to_string()
            },
            topic_id: if by_id { topic_id } else { Uuid::ZERO },
            partitions: vec![asked],
        }],
        ..FetchRequest::default()
    };
    let view = FetchView::from_message(&message, version);
    let request: Request = view.expect("a fetch of every version").into();
    let purpose = Purpose::ReplicaFetch(partition.clone());
    ask(
        world,
        command,
        Some(&partition),
        (&request, version),
        purpose,
    )
}

/// `alter-partition orders-0 from=1 isr=1,2,3 [leader-epoch=0] [partition-epoch=0]
/// [broker-epoch=..] [isr-epochs=..] [recovering=yes]`: what a leader asks of the controller.
/// Epochs that are not given are those that the controller knows.
pub(super) fn alter_partition(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let partition = partition(command.word(0, "a partition")?)?;
    let from = NodeId::new(command.setting("from", 1)?);
    let topic_id = world.topic_id(&partition.topic).unwrap_or(Uuid::ZERO);
    let known = world.committed(&partition);
    let known = known.ok_or_else(|| ScriptError(format!("{partition} is unknown")))?;
    let epochs: Vec<i64> = match command.settings.get("isr-epochs") {
        None => Vec::new(),
        Some(text) => text.split(',').map(|it| it.parse().unwrap_or(-1)).collect(),
    };
    let isr = ids_in_order(command, "isr")?;
    let isr = isr
        .into_iter()
        .enumerate()
        .map(|(at, broker_id)| BrokerState {
            broker_id,
            broker_epoch: epochs
                .get(at)
                .copied()
                .unwrap_or_else(|| world.broker_epoch(broker_id)),
        });
    let asked = alter::PartitionData {
        partition_index: partition.partition.raw(),
        leader_epoch: command.setting("leader-epoch", known.leader_epoch.raw())?,
        new_isr: Vec::new(),
        new_isr_with_epochs: isr.collect(),
        leader_recovery_state: i8::from(command.setting("recovering", "no".to_owned())? == "yes"),
        partition_epoch: command.setting("partition-epoch", known.partition_epoch.raw())?,
    };
    let request = AlterPartitionRequest {
        broker_id: from,
        broker_epoch: broker_epoch(world, command, from)?,
        topics: vec![alter::TopicData {
            topic_id,
            partitions: vec![asked],
        }],
    };
    let client = CONTROLLER_CLIENT;
    if !world.clients.contains_key(&client) {
        let controller = world.controller();
        world.add_client(client, controller, Load::Scripted);
        world.client(client).listener = ListenerKind::Controller;
    }
    let mut command = command.clone();
    command
        .settings
        .insert("client".to_owned(), client.0.to_string());
    let purpose = Purpose::AlterPartition(partition);
    ask(world, &command, None, (&request.into(), 3), purpose)
}

fn broker_epoch(world: &World, command: &Command, of: NodeId) -> Result<i64, ScriptError> {
    match command.settings.get("broker-epoch").map(String::as_str) {
        None => Ok(world.broker_epoch(of)),
        Some("none") => Ok(-1),
        Some(_) => command.setting("broker-epoch", -1),
    }
}

/// Who leads, for lines that name no broker: the leader as it is, else whoever the client knows.
pub(super) fn addressee(
    world: &World,
    command: &Command,
    partition: Option<&TopicPartition>,
) -> Result<Option<NodeId>, ScriptError> {
    if command.settings.contains_key("to") {
        return Ok(Some(NodeId::new(command.setting("to", 1)?)));
    }
    if world.brokers().len() == 1 {
        return Ok(None);
    }
    Ok(partition.and_then(|it| world.leader_of(it)))
}
