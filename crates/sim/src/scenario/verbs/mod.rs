//! The verbs of scenario files: one small handler each.

mod client;
mod cluster;
mod damage;
pub(super) mod expect;
mod group;
mod logs;
mod node;
mod peer;
mod show;

use highwater_types::{NodeId, TopicPartition};

use super::parse::{Command, ScriptError};
use crate::world::World;

/// The one node of a scenario.
const NODE: NodeId = NodeId::new(1);

/// What may stand in a line of each verb: so many words, and these settings. A `None` lets every
/// setting through: those that are not the verb's own are configs.
const LINES: [(&str, usize, Option<&[&str]>); 47] = [
    ("node", 0, None),
    ("cluster", 0, None),
    ("crash", 1, Some(&[])),
    ("power-off", 2, Some(&[])),
    ("restart", 1, Some(&[])),
    ("start", 1, Some(&[])),
    ("stop", 1, Some(&[])),
    ("write-back", 1, Some(&[])),
    ("skew", 2, Some(&[])),
    ("drift", 2, Some(&[])),
    ("heal", 2, Some(&[])),
    ("release", 4, Some(&[])),
    ("drop", 4, Some(&[])),
    ("repeat", 3, Some(&[])),
    ("expect", usize::MAX, Some(&[])),
    ("wait", 2, Some(cluster::WAIT_SETTINGS)),
    ("elect", 3, Some(&["isr"])),
    ("epoch-end", 1, Some(peer::EPOCH_END_SETTINGS)),
    ("replica-fetch", 1, Some(peer::REPLICA_FETCH_SETTINGS)),
    ("alter-partition", 1, Some(peer::ALTER_SETTINGS)),
    ("advance", 1, Some(&[])),
    ("jobs", 1, Some(&[])),
    ("topic", 1, None),
    ("delete-topic", 1, Some(&["client"])),
    ("produce", 1, Some(client::PRODUCE_SETTINGS)),
    ("fetch", 1, Some(client::FETCH_SETTINGS)),
    ("list-offsets", 1, Some(&["at", "client", "wait", "to"])),
    ("burst", 1, Some(&["requests"])),
    ("cut", 2, Some(&["client"])),
    ("hold", 3, Some(&["client"])),
    ("deliver", 0, Some(&[])),
    ("overwrite", 1, Some(&["at", "bytes", "with", "dir"])),
    ("write", usize::MAX, Some(&["dir"])),
    ("shorten", 1, Some(&["by", "to", "dir"])),
    ("remove", 1, Some(&["dir"])),
    ("show", 3, Some(&[])),
    ("join", 1, Some(group::JOIN_SETTINGS)),
    ("leave", 0, Some(&["member"])),
    ("kill", 0, Some(&["member"])),
    ("pause", 1, Some(&["member"])),
    ("continue", 1, Some(&["member"])),
    ("poll", 0, Some(&["member"])),
    ("commit", 1, None),
    ("offsets", 2, Some(&["client", "wait"])),
    ("records", 1, Some(&[])),
    ("settle", 1, Some(&[])),
    ("reload-at", 2, Some(&["every"])),
];

/// Does what a line says.
pub(super) fn perform(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    check(world, command)?;
    match command.verb.as_str() {
        "node" => node::node(world, command),
        "crash" => node::crash(world, command),
        "power-off" => node::power_off(world, command),
        "restart" => node::restart(world, command),
        "start" => node::start(world, command),
        "stop" => node::stop(world, command),
        "advance" => node::advance(world, command),
        "jobs" => node::jobs(world, command),
        "topic" => client::topic(world, command),
        "delete-topic" => client::delete_topic(world, command),
        "produce" => client::produce(world, command),
        "fetch" => client::fetch(world, command),
        "list-offsets" => client::list_offsets(world, command),
        "burst" => client::burst(world, command),
        "cut" if command.words.is_empty() => client::cut(world, command),
        "hold" if command.words.is_empty() => client::hold(world, command),
        "deliver" => client::deliver(world),
        "overwrite" => damage::overwrite(world, command),
        "write" => damage::write(world, command),
        "shorten" => damage::shorten(world, command),
        "remove" => damage::remove(world, command),
        "show" => show::show(world, command),
        _ => perform_of_clusters(world, command),
    }
}

fn perform_of_clusters(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    match command.verb.as_str() {
        "cluster" => cluster::cluster(world, command),
        "pause" if !command.words.is_empty() => cluster::pause(world, command),
        "continue" if !command.words.is_empty() => cluster::go_on(world, command),
        "write-back" => cluster::write_back(world, command),
        "cut" => cluster::cut(world, command),
        "heal" => cluster::heal(world, command),
        "hold" => cluster::hold(world, command),
        "release" => cluster::release(world, command),
        "drop" => cluster::drop_held(world, command),
        "repeat" => cluster::repeat(world, command),
        "skew" => cluster::skew(world, command),
        "drift" => cluster::drift(world, command),
        "expect" => expect::expect(world, command),
        "wait" => cluster::wait(world, command),
        "elect" => cluster::elect(world, command),
        "epoch-end" => peer::epoch_end(world, command),
        "replica-fetch" => peer::replica_fetch(world, command),
        "alter-partition" => peer::alter_partition(world, command),
        _ => perform_of_groups(world, command),
    }
}

fn perform_of_groups(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    match command.verb.as_str() {
        "join" => group::join(world, command),
        "leave" => group::leave(world, command),
        "kill" => group::kill(world, command),
        "pause" => group::pause(world, command),
        "continue" => group::go_on(world, command),
        "poll" => group::poll(world, command),
        "commit" => group::commit(world, command),
        "offsets" => group::offsets(world, command),
        "records" => group::records(world, command),
        "settle" => group::settle(world, command),
        "reload-at" => node::reload_at(world, command),
        other => Err(ScriptError(format!("there is no verb '{other}'"))),
    }
}

/// A word or a setting that nobody would read is a mistake, and told as one.
fn check(world: &World, command: &Command) -> Result<(), ScriptError> {
    let verb = command.verb.as_str();
    let Some((_, words, settings)) = LINES.iter().find(|(name, ..)| *name == verb) else {
        return Err(ScriptError(format!("there is no verb '{verb}'")));
    };
    if let Some(word) = command.words.get(*words) {
        return Err(ScriptError(format!("{verb}: what is '{word}'?")));
    }
    let mut given = command.settings.keys().map(String::as_str);
    if let Some(settings) = settings
        && let Some(key) = given.find(|key| !settings.contains(key))
    {
        let known = match settings {
            [] => "it has none".to_owned(),
            _ => format!("only {}", settings.join(", ")),
        };
        return Err(ScriptError(format!(
            "{verb}: there is no setting '{key}', {known}"
        )));
    }
    let why = match (verb, world.nodes().is_empty()) {
        ("node" | "cluster", false) => "there is a node already",
        ("node" | "cluster", true) => return Ok(()),
        (_, true) => "there is no node yet",
        (_, false) => return Ok(()),
    };
    Err(ScriptError(format!("{verb}: {why}")))
}

fn partition(text: &str) -> Result<TopicPartition, ScriptError> {
    let parsed = TopicPartition::parse(text);
    parsed.ok_or_else(|| ScriptError(format!("'{text}' is no partition: topic-0 is one")))
}
