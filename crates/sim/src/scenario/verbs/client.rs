//! Verbs about clients. A line names its client with `client=N`; without it, client 1 speaks.

use highwater_protocol::Request;
use highwater_records::ProducerStamp;
use highwater_types::{
    LeaderEpoch, Millis, Offset, ProducerEpoch, ProducerId, TopicName, TopicPartition, Uuid,
};

use super::cluster;
use super::peer::addressee;
use super::{Command, NODE, ScriptError, partition};
use crate::client::ClientId;
use crate::world::World;
use crate::world::clients::Load;
use crate::world::clients::requests::{self, Purpose, Replicas, SentBatch, SentFetch};

/// How long a line waits for the answer that it asks for.
pub(super) const ANSWER_PATIENCE: Millis = Millis::new(60_000);
/// Most records of one line.
const RECORDS_MAX: u64 = 10_000;
/// Most requests of one line.
const REQUESTS_MAX: u64 = 10_000;

/// The settings of `produce`.
pub(super) const PRODUCE_SETTINGS: &[&str] = &[
    "acks", "records", "values", "pid", "epoch", "seq", "wait", "version", "timeout", "client",
    "to",
];
/// The settings of `fetch`.
pub(super) const FETCH_SETTINGS: &[&str] = &[
    "offset",
    "to",
    "epoch",
    "isolation",
    "min-bytes",
    "max-wait",
    "version",
    "wait",
    "client",
];

/// `topic orders partitions=1 [key=value]...`: makes a topic; other settings are its configs.
pub(super) fn topic(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let name = topic_name(command)?;
    let partitions = command.setting("partitions", 1)?;
    let own = [
        "partitions",
        "replicas",
        "replication-factor",
        "client",
        "to",
        "wait",
    ];
    let configs = command
        .settings
        .iter()
        .filter(|(key, _)| !own.contains(&key.as_str()));
    let configs: Vec<_> = configs
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let assigned = cluster::ids_in_order(command, "replicas")?;
    let replicas = match assigned.as_slice() {
        [] => Replicas::Count(command.setting("replication-factor", 1)?),
        _ => Replicas::Assigned(assigned),
    };
    let request = requests::create_topic(&name, partitions, &replicas, &configs);
    let purpose = Purpose::CreateTopic(name.clone());
    ask(world, command, None, (&request, 7), purpose)?;
    if world.brokers().len() > 1 && command.setting("wait", "yes".to_owned())? == "yes" {
        let open = world.run_until(ANSWER_PATIENCE, |world| world.is_open(&name));
        if !open {
            return Err(ScriptError(format!(
                "topic: {name} is not opened everywhere"
            )));
        }
        world.run_for(Millis::new(5));
    }
    Ok(())
}

/// `delete-topic orders`.
pub(super) fn delete_topic(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let name = topic_name(command)?;
    world.checker.groups.topic_is_deleted(&name);
    ask(
        world,
        command,
        None,
        (&requests::delete_topic(&name), 6),
        Purpose::DeleteTopic(name),
    )
}

/// `produce orders-0 [acks=all|1|0] [records=1] [values=a,b] [pid=7 epoch=0 seq=0] [wait=yes]
/// [version=12] [timeout=5000]`: with `wait=no` the story goes on without the answer.
pub(super) fn produce(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let partition = partition(command.word(0, "a partition")?)?;
    let acks = match command.setting("acks", "all".to_owned())?.as_str() {
        "all" => -1,
        other => other
            .parse()
            .map_err(|_| ScriptError(format!("acks={other}?")))?,
    };
    let values = match command.settings.get("values") {
        Some(values) => values
            .split(',')
            .map(|value| value.as_bytes().to_vec())
            .collect(),
        None => world
            .checker
            .next_values(at_most(command, "records", 1, RECORDS_MAX)?),
    };
    let stamp = ProducerStamp {
        id: ProducerId::new(command.setting("pid", -1)?),
        epoch: ProducerEpoch::new(command.setting("epoch", -1)?),
        base_sequence: command.setting("seq", -1)?,
    };
    let client = client(world, command)?;
    let topic_id = topic_id(world, client, &partition.topic);
    let version = command.setting("version", 12)?;
    let batch = SentBatch {
        partition,
        topic_id,
        values,
        acks,
        stamp,
    };
    let wall = world.now_of(NODE).wall;
    let request = batch.request(version, wall, command.setting("timeout", 5000)?);
    world.checker.sent(&batch);
    let to = batch.partition.clone();
    let purpose = Purpose::Produce(batch);
    ask(world, command, Some(&to), (&request, version), purpose)
}

/// `fetch orders-0 offset=0 [isolation=read_committed] [min-bytes=1] [max-wait=500] [version=12]`.
pub(super) fn fetch(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let partition = partition(command.word(0, "a partition")?)?;
    let isolation = command.setting("isolation", String::new())?;
    let client = client(world, command)?;
    let fetch = SentFetch {
        topic_id: topic_id(world, client, &partition.topic),
        partition,
        offset: Offset::new(command.setting("offset", 0)?),
        isolation_level: i8::from(isolation == "read_committed"),
        min_bytes: command.setting("min-bytes", 1)?,
        max_wait_ms: command.setting("max-wait", 500)?,
        leader_epoch: match command.setting("epoch", -1)? {
            ..0 => None,
            epoch => Some(LeaderEpoch::new(epoch)),
        },
        from_follower: false,
    };
    let version = command.setting("version", 12)?;
    let (request, to) = (fetch.request(version), fetch.partition.clone());
    let purpose = Purpose::Fetch(fetch);
    ask(world, command, Some(&to), (&request, version), purpose)
}

/// `list-offsets orders-0 at=latest|earliest|max|<timestamp>`.
pub(super) fn list_offsets(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let partition = partition(command.word(0, "a partition")?)?;
    let timestamp = match command.setting("at", "latest".to_owned())?.as_str() {
        "latest" => -1,
        "earliest" => -2,
        "max" => -3,
        other => other
            .parse()
            .map_err(|_| ScriptError(format!("at={other}?")))?,
    };
    let request = requests::list_offsets(&partition, timestamp);
    let purpose = Purpose::ListOffsets(partition.clone());
    ask(world, command, Some(&partition), (&request, 8), purpose)
}

/// `burst orders-0 requests=50`: produce, fetch and list-offsets requests by turns, all sent before
/// the first answer comes.
pub(super) fn burst(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let count = at_most(command, "requests", 50, REQUESTS_MAX)?;
    let line = |verb: &str, settings: &[(&str, &str)]| Command {
        line: command.line,
        verb: verb.to_owned(),
        words: command.words.clone(),
        settings: settings
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect(),
    };
    for number in 0..count {
        match number % 5 {
            0 | 1 => produce(
                world,
                &line("produce", &[("wait", "no"), ("at-once", "yes")]),
            )?,
            2 => produce(
                world,
                &line(
                    "produce",
                    &[("wait", "no"), ("at-once", "yes"), ("acks", "1")],
                ),
            )?,
            3 => fetch(
                world,
                &line(
                    "fetch",
                    &[("wait", "no"), ("at-once", "yes"), ("max-wait", "0")],
                ),
            )?,
            _ => list_offsets(
                world,
                &line("list-offsets", &[("wait", "no"), ("at-once", "yes")]),
            )?,
        }
    }
    world.run_for(ANSWER_PATIENCE);
    let client = client(world, command)?;
    let unanswered = world.client(client).in_flight();
    world.tell(format!("{unanswered} requests without an answer"));
    Ok(())
}

/// `cut [client=1]`: the connection breaks; answers on their way are lost.
pub(super) fn cut(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let client = client(world, command)?;
    world.cut_client(client);
    world.run_for(Millis::new(5));
    Ok(())
}

/// `hold [client=1]`: frames to the client stay on the way until `deliver`.
pub(super) fn hold(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let client = client(world, command)?;
    world.hold(client);
    Ok(())
}

/// `deliver`: what was held arrives now, read late.
pub(super) fn deliver(world: &mut World) -> Result<(), ScriptError> {
    world.deliver();
    world.run_for(Millis::new(5));
    Ok(())
}

pub(super) fn ask(
    world: &mut World,
    command: &Command,
    partition: Option<&TopicPartition>,
    (request, version): (&Request, i16),
    purpose: Purpose,
) -> Result<(), ScriptError> {
    let client = client(world, command)?;
    let node = addressee(world, command, partition)?;
    let silent = purpose.is_silent();
    let node = node.unwrap_or_else(|| world.client(client).node);
    let answers = world.client(client).answers;
    let asked = world.ask_at(client, node, (request, version), purpose);
    if asked.is_err() {
        return Err(ScriptError(format!(
            "{}: the node does not serve",
            command.verb
        )));
    }
    if silent || command.setting("wait", "yes".to_owned())? == "no" {
        world.run_for(Millis::new(if command.settings.contains_key("at-once") {
            0
        } else {
            20
        }));
        return Ok(());
    }
    let answered = world.run_until(ANSWER_PATIENCE, |world| {
        let client = world.clients.get(&client);
        client.is_none_or(|it| it.answers > answers || it.conn(node).is_none())
    });
    if answered {
        Ok(())
    } else {
        Err(ScriptError(format!("{}: no answer", command.verb)))
    }
}

pub(super) fn client(world: &mut World, command: &Command) -> Result<ClientId, ScriptError> {
    let id = ClientId(command.setting("client", 1)?);
    if !world.clients.contains_key(&id) {
        let known = world.clients.values().next().map(|it| it.topic_ids.clone());
        let first = world.brokers().into_iter().find(|id| world.serves(*id));
        world.add_client(id, first.unwrap_or(NODE), Load::Scripted);
        world.client(id).topic_ids = known.unwrap_or_default();
    }
    Ok(id)
}

fn topic_id(world: &mut World, client: ClientId, topic: &TopicName) -> Uuid {
    world
        .client(client)
        .topic_ids
        .get(topic)
        .copied()
        .unwrap_or(Uuid::ZERO)
}

/// A count, bounded: a story is short.
fn at_most(command: &Command, key: &str, default: u64, most: u64) -> Result<u64, ScriptError> {
    let count = command.setting(key, default)?;
    if count > most {
        let verb = &command.verb;
        return Err(ScriptError(format!("{verb}: {key} is at most {most}")));
    }
    Ok(count)
}

fn topic_name(command: &Command) -> Result<TopicName, ScriptError> {
    let text = command.word(0, "a topic")?;
    TopicName::new(text).map_err(|why| ScriptError(format!("'{text}': {why}")))
}
