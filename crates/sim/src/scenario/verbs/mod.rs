//! The verbs of scenario files: one small handler each.

mod client;
mod damage;
mod node;
mod show;

use highwater_types::{NodeId, TopicPartition};

use super::parse::{Command, ScriptError};
use crate::world::World;

/// The one node of a scenario.
const NODE: NodeId = NodeId::new(1);

/// Does what a line says.
pub(super) fn perform(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    match command.verb.as_str() {
        "node" => node::node(world, command),
        "crash" => node::crash(world),
        "power-off" => node::power_off(world, command),
        "restart" => node::restart(world),
        "stop" => node::stop(world),
        "advance" => node::advance(world, command),
        "jobs" => node::jobs(world, command),
        "topic" => client::topic(world, command),
        "delete-topic" => client::delete_topic(world, command),
        "produce" => client::produce(world, command),
        "fetch" => client::fetch(world, command),
        "list-offsets" => client::list_offsets(world, command),
        "burst" => client::burst(world, command),
        "cut" => client::cut(world, command),
        "hold" => client::hold(world, command),
        "deliver" => client::deliver(world),
        "overwrite" => damage::overwrite(world, command),
        "write" => damage::write(world, command),
        "shorten" => damage::shorten(world, command),
        "remove" => damage::remove(world, command),
        "show" => show::show(world, command),
        other => Err(ScriptError(format!("there is no verb '{other}'"))),
    }
}

fn partition(text: &str) -> Result<TopicPartition, ScriptError> {
    let parsed = TopicPartition::parse(text);
    parsed.ok_or_else(|| ScriptError(format!("'{text}' is no partition: topic-0 is one")))
}
