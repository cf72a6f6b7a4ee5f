//! Verbs about the node and time.

use highwater_types::{Millis, NodeId};

use super::cluster::nodes_at;
use super::{Command, NODE, ScriptError};
use crate::setup;
use crate::world::{ProcessEnd, ReloadAt, World};

/// How long a start may take.
const START_PATIENCE: Millis = Millis::new(30_000);
/// Longest span of one line.
pub(super) const SPAN_MAX: Millis = Millis::new(1_000 * 3_600_000);

/// `node [shards=1] [dirs=1] [key=value]...`: a fresh node; other settings are config keys.
pub(super) fn node(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let shards = command.setting("shards", 1_u16)?;
    let dirs = command.setting("dirs", 1_usize)?;
    let own = ["shards", "dirs"];
    let keys = command
        .settings
        .iter()
        .filter(|(key, _)| !own.contains(&key.as_str()));
    let keys: Vec<_> = keys
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    setup::one_node(world, NODE, shards, dirs, &keys)
        .map_err(|why| ScriptError(format!("node: {why}")))?;
    serve(world, NODE)
}

/// `crash [2]`, `crash 1,2`: the process dies, the page cache survives.
pub(super) fn crash(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    for id in running(world, command, 0)? {
        world.crash(id);
    }
    Ok(())
}

/// `power-off [1,2] [all]`: unsynced writes are lost, by chance or `all`.
pub(super) fn power_off(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let all = command.words.last().is_some_and(|it| it == "all");
    let mut named = command.clone();
    if all {
        named.words.pop();
    }
    for id in running(world, &named, 0)? {
        if all {
            world.power_off_losing_unsynced(id);
        } else {
            world.power_off(id);
        }
    }
    Ok(())
}

/// `restart [2]`: starts the node again and waits until it serves.
pub(super) fn restart(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let ids = start_those(world, command)?;
    ids.into_iter().try_for_each(|id| serve(world, id))
}

/// `start [2]`: starts the node again, and waits for nothing.
pub(super) fn start(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    start_those(world, command)?;
    Ok(())
}

fn start_those(world: &mut World, command: &Command) -> Result<Vec<NodeId>, ScriptError> {
    let ids = nodes_at(world, command, 0)?;
    if ids.iter().any(|id| world.runs(*id)) {
        return Err(ScriptError(format!("{}: the node runs", command.verb)));
    }
    for id in &ids {
        world.start(*id);
    }
    Ok(ids)
}

/// `stop [2]`: a graceful stop.
pub(super) fn stop(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    for id in running(world, command, 0)? {
        world.stop(id);
    }
    Ok(())
}

fn running(world: &World, command: &Command, at: usize) -> Result<Vec<NodeId>, ScriptError> {
    let ids = nodes_at(world, command, at)?;
    if ids.iter().all(|id| world.runs(*id)) {
        return Ok(ids);
    }
    let verb = &command.verb;
    Err(ScriptError(format!("{verb}: the node does not run")))
}

/// `advance 30s`: lets virtual time pass. Units: ms, s, m, h.
pub(super) fn advance(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let span = span(command)?;
    world.run_for(span);
    Ok(())
}

/// `jobs 500ms`: from now on each blocking job, a flush for example, takes this long.
pub(super) fn jobs(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let micros = span(command)?.as_u64() * 1000;
    world.delays.job = (micros, micros);
    Ok(())
}

/// `reload-at 5 crash|power-off|stop [every=yes]`: once the groups' log has five records, the
/// process ends and starts by itself, whatever goes on then; with `every` again after
/// the first record that comes three seconds later.
pub(super) fn reload_at(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let records = command.word(0, "a count of records")?.parse();
    let records = records.map_err(|_| ScriptError("reload-at: a count of records".into()))?;
    let how = match command.word(1, "how the process ends")? {
        "crash" => ProcessEnd::Crash,
        "power-off" => ProcessEnd::PowerOff,
        "stop" => ProcessEnd::Stop,
        other => return Err(ScriptError(format!("reload-at: what is '{other}'?"))),
    };
    world.reload_at = Some(ReloadAt {
        node: NODE,
        records,
        not_before: world.now(),
        every: command.setting("every", "no".to_owned())? == "yes",
        how,
    });
    Ok(())
}

fn span(command: &Command) -> Result<Millis, ScriptError> {
    span_of(command.word(0, "a span of time")?)
}

/// A span like `500ms`.
pub(super) fn span_of(text: &str) -> Result<Millis, ScriptError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..) {
        Some("ms") => 1,
        Some("s") => 1000,
        Some("m") => 60_000,
        Some("h") => 3_600_000,
        _ => {
            return Err(ScriptError(format!(
                "'{text}' is no span of time: 500ms is one"
            )));
        }
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| ScriptError(format!("'{text}' has no number")))?;
    let span = number.checked_mul(factor).map(Millis::new);
    span.filter(|span| *span <= SPAN_MAX)
        .ok_or_else(|| ScriptError(format!("'{text}' is too long: at most 1000h")))
}

fn serve(world: &mut World, id: NodeId) -> Result<(), ScriptError> {
    if world.run_until(START_PATIENCE, |world| world.is_up(id)) {
        return Ok(());
    }
    Err(ScriptError("the node does not come to serve".into()))
}
