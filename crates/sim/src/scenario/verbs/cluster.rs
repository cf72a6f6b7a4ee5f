//! Verbs about clusters: nodes by their id, the network between them, and what a story waits for.

use highwater_node::Channel;
use highwater_types::{Millis, NodeId, Offset, TopicPartition};

use super::node::{SPAN_MAX, span_of};
use super::{Command, ScriptError, partition};
use crate::setup::{self, NodePlan};
use crate::world::{Hold, Which, World};

/// How long nodes may take to serve, and a line waits for what it names.
const PATIENCE: Millis = Millis::new(120_000);
/// How long a line lets pass after it changed something.
const MOMENT: Millis = Millis::new(5);
/// The settings of `cluster` that are no config keys.
const CLUSTER_SETTINGS: [&str; 6] = [
    "brokers",
    "controller",
    "shards",
    "dirs",
    "old-rule",
    "wait",
];
/// The settings of `wait`.
pub(super) const WAIT_SETTINGS: &[&str] = &["leader", "isr", "hw", "leo", "epoch", "broker"];

/// `cluster brokers=3 [controller=apart] [shards=1] [dirs=1] [old-rule=yes] [key=value]...`:
/// brokers 1, 2, 3.., of which 1 is the controller too, or node 100 is. Waits until all serve.
pub(super) fn cluster(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let fail = |why| ScriptError(format!("cluster: {why}"));
    let apart = match command
        .setting("controller", "combined".to_owned())?
        .as_str()
    {
        "combined" => false,
        "apart" => true,
        other => return Err(fail(format!("controller={other}? combined or apart"))),
    };
    let keys = command
        .settings
        .iter()
        .filter(|(key, _)| !CLUSTER_SETTINGS.contains(&key.as_str()));
    let keys: Vec<_> = keys
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let (shards, dirs) = (command.setting("shards", 1)?, command.setting("dirs", 1)?);
    let mut like = NodePlan::alone(NodeId::new(1), shards, dirs, &keys);
    like.old_rule = command.setting("old-rule", "no".to_owned())? == "yes";
    let plans = NodePlan::cluster(command.setting("brokers", 3)?, apart, &like).map_err(fail)?;
    setup::cluster(world, &plans).map_err(fail)?;
    if command.setting("wait", "yes".to_owned())? == "no" {
        return Ok(());
    }
    let served = world.run_until(PATIENCE, |world| {
        world.brokers().into_iter().all(|id| world.serves(id))
    });
    world.run_for(MOMENT);
    if served {
        Ok(())
    } else {
        Err(fail("not every broker comes to serve".to_owned()))
    }
}

/// The node that a word names; without one, the only one of old stories.
pub(super) fn node_at(world: &World, command: &Command, at: usize) -> Result<NodeId, ScriptError> {
    match command.words.get(at) {
        None => Ok(super::NODE),
        Some(word) => node_named(world, &command.verb, word),
    }
}

/// The nodes that a word like `1,2` names; without one, the only one of old stories.
pub(super) fn nodes_at(
    world: &World,
    command: &Command,
    at: usize,
) -> Result<Vec<NodeId>, ScriptError> {
    match command.words.get(at) {
        None => Ok(vec![super::NODE]),
        Some(words) => words
            .split(',')
            .map(|word| node_named(world, &command.verb, word))
            .collect(),
    }
}

fn node_named(world: &World, verb: &str, word: &str) -> Result<NodeId, ScriptError> {
    let id = word.parse().ok().map(NodeId::new);
    let id = id.filter(|id| world.nodes().contains_key(id));
    id.ok_or_else(|| ScriptError(format!("{verb}: there is no node '{word}'")))
}

/// `pause 2`: the process stands still; what happens to it waits, clocks go on.
pub(super) fn pause(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = node_at(world, command, 0)?;
    if !world.runs(id) || world.is_paused(id) {
        return Err(ScriptError(format!("pause: node {id} does not run")));
    }
    world.pause(id);
    Ok(())
}

/// `continue 2`: it goes on.
pub(super) fn go_on(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = node_at(world, command, 0)?;
    if !world.is_paused(id) {
        return Err(ScriptError(format!("continue: node {id} is not paused")));
    }
    world.resume(id);
    world.run_for(MOMENT);
    Ok(())
}

/// `write-back 2`: everything that the node has written is on its disks now.
pub(super) fn write_back(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = node_at(world, command, 0)?;
    world.write_back(id);
    Ok(())
}

/// `cut 1 2` (both ways), `cut 1->2` (one way): nothing comes through between these nodes.
pub(super) fn cut(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    for (from, to) in ways(world, command)? {
        world.cut(from, to);
    }
    Ok(())
}

/// `heal` (everything), `heal 1 2`, `heal 1->2`: what was cut comes through again.
pub(super) fn heal(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    if command.words.is_empty() {
        world.heal();
    } else {
        for (from, to) in ways(world, command)? {
            world.heal_way(from, to);
        }
    }
    world.run_for(MOMENT);
    Ok(())
}

fn ways(world: &World, command: &Command) -> Result<Vec<(NodeId, NodeId)>, ScriptError> {
    let first = command.word(0, "a node, or 1->2")?;
    if first.contains("->") {
        return Ok(vec![way(world, command)?]);
    }
    let (one, other) = (node_at(world, command, 0)?, command.word(1, "a node")?);
    let other = node_named(world, &command.verb, other)?;
    Ok(vec![(one, other), (other, one)])
}

/// `2->1`: who sends, and who receives.
fn way(world: &World, command: &Command) -> Result<(NodeId, NodeId), ScriptError> {
    let word = command.word(0, "from whom to whom: 2->1")?;
    let Some((from, to)) = word.split_once("->") else {
        let verb = &command.verb;
        return Err(ScriptError(format!(
            "{verb}: '{word}' is no way: 2->1 is one"
        )));
    };
    let named = |word| node_named(world, &command.verb, word);
    Ok((named(from)?, named(to)?))
}

/// `hold 2->1 [fetcher|metadata|lifecycle|others] [requests|answers]`: frames that 2 sends to 1
/// stay on the way.
pub(super) fn hold(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let (hold, _) = held(world, command)?;
    world.hold_back(hold);
    Ok(())
}

/// `release 2->1 [fetcher|..] [requests|answers]`: everything that is held there arrives, and
/// nothing is held there any more. `release 2->1 one`: the oldest frame arrives.
pub(super) fn release(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let (hold, one) = held(world, command)?;
    if one {
        let Some((conn, frame)) = world.take_held(&hold) else {
            return Err(nothing_held(command));
        };
        world.tell_of_held(conn, &frame);
        world.pass(conn, frame);
    } else {
        world.let_go(&hold);
    }
    world.run_for(MOMENT);
    Ok(())
}

/// `drop 2->1 [one]`: what is held there is lost, and its connection is reset.
pub(super) fn drop_held(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let (hold, one) = held(world, command)?;
    let mut dropped = 0;
    while let Some((conn, _)) = world.take_held(&hold) {
        world.reset(conn);
        dropped += 1;
        if one {
            break;
        }
    }
    if dropped == 0 {
        return Err(nothing_held(command));
    }
    world.run_for(MOMENT);
    Ok(())
}

/// `repeat 2->1 [fetcher|..]`: a copy of the oldest request that is held there arrives on a
/// connection of its own; nobody waits for its answer.
pub(super) fn repeat(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let (hold, _) = held(world, command)?;
    if !world.repeat_held(&hold) {
        return Err(nothing_held(command));
    }
    world.run_for(MOMENT);
    Ok(())
}

fn nothing_held(command: &Command) -> ScriptError {
    let verb = &command.verb;
    ScriptError(format!("{verb}: nothing is held there"))
}

fn held(world: &World, command: &Command) -> Result<(Hold, bool), ScriptError> {
    let (from, to) = way(world, command)?;
    let mut hold = Hold {
        from,
        to,
        channel: None,
        which: Which::Both,
    };
    let mut one = false;
    for word in command.words.iter().skip(1) {
        match word.as_str() {
            "fetcher" => hold.channel = Some(Channel::Fetcher),
            "flushed-fetcher" => hold.channel = Some(Channel::FlushedFetcher),
            "joining-fetcher" => hold.channel = Some(Channel::JoiningFetcher),
            "metadata" => hold.channel = Some(Channel::Metadata),
            "lifecycle" => hold.channel = Some(Channel::Lifecycle),
            "others" => hold.channel = Some(Channel::Others),
            "requests" => hold.which = Which::Requests,
            "answers" => hold.which = Which::Answers,
            "one" => one = true,
            other => {
                let verb = &command.verb;
                return Err(ScriptError(format!("{verb}: what is '{other}'?")));
            }
        }
    }
    Ok((hold, one))
}

/// `skew 2 1h`, `skew 2 -5s`: from now on the wall clock of the node is so far ahead, or behind.
pub(super) fn skew(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = node_at(world, command, 0)?;
    let text = command.word(1, "a span of time")?;
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.trim_start_matches('+')),
    };
    let span = i64::try_from(span_of(text)?.min(SPAN_MAX).as_u64()).unwrap_or(i64::MAX);
    world.skew(id, sign * span);
    Ok(())
}

/// `drift 2 200`: from now on the wall clock of the node gains so many millionths.
pub(super) fn drift(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = node_at(world, command, 0)?;
    let ppm = command.word(1, "millionths")?.parse();
    let ppm = ppm.map_err(|_| ScriptError("drift: millionths, as a number".into()))?;
    world.drift(id, ppm);
    Ok(())
}

/// `wait orders-0 leader=2`, `isr=1,2`, `epoch=3`, `hw=5 [broker=1]`, `leo=5 [broker=2]`, `wait 2
/// serving|fenced|up`: lets time pass until it is so. Leader, ISR and epoch are those that the
/// controller has committed; HW and LEO those of the leader, or of the broker.
pub(super) fn wait(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let first = command.word(0, "a partition or a node")?;
    let came = if first.parse::<i32>().is_ok() {
        wait_for_node(world, command)?
    } else {
        let partition = partition(first)?;
        let conditions = conditions(command)?;
        world.run_until(PATIENCE, |world| {
            conditions.iter().all(|it| it.holds(world, &partition))
        })
    };
    if came {
        world.run_for(MOMENT);
        return Ok(());
    }
    Err(ScriptError(format!("wait: {first} does not come to that")))
}

fn wait_for_node(world: &mut World, command: &Command) -> Result<bool, ScriptError> {
    let id = node_at(world, command, 0)?;
    match command.word(1, "what it is to be")? {
        "serving" => Ok(world.run_until(PATIENCE, |world| world.serves(id))),
        "fenced" => Ok(world.run_until(PATIENCE, |world| world.is_fenced(id) == Some(true))),
        "unfenced" => Ok(world.run_until(PATIENCE, |world| world.is_fenced(id) == Some(false))),
        other => Err(ScriptError(format!(
            "wait: what is '{other}'? serving, fenced or unfenced"
        ))),
    }
}

/// What a story waits for.
enum Condition {
    Leader(NodeId),
    Isr(Vec<NodeId>),
    Epoch(i32),
    HighWatermark(Offset, Option<NodeId>),
    LogEnd(Offset, Option<NodeId>),
}

impl Condition {
    fn holds(&self, world: &World, partition: &TopicPartition) -> bool {
        let committed = || world.committed(partition);
        let replica = |broker: &Option<NodeId>| {
            let broker = broker.or_else(|| world.leader_of(partition))?;
            world.offsets_of(broker, partition)
        };
        match self {
            Self::Leader(leader) => committed().is_some_and(|it| it.leader == *leader),
            Self::Epoch(epoch) => committed().is_some_and(|it| it.leader_epoch.raw() == *epoch),
            Self::Isr(isr) => committed().is_some_and(|it| {
                let mut now = it.in_sync_replicas.clone();
                now.sort_unstable();
                now == *isr
            }),
            Self::HighWatermark(at, broker) => {
                replica(broker).is_some_and(|it| it.high_watermark == *at)
            }
            Self::LogEnd(at, broker) => replica(broker).is_some_and(|it| it.log_end_offset == *at),
        }
    }
}

fn conditions(command: &Command) -> Result<Vec<Condition>, ScriptError> {
    let number = |key: &str| -> Result<i32, ScriptError> { command.setting(key, -1) };
    let offset =
        |key: &str| -> Result<Offset, ScriptError> { Ok(Offset::new(command.setting(key, -1)?)) };
    let broker = number("broker")?;
    let broker = (broker >= 0).then(|| NodeId::new(broker));
    let mut conditions = Vec::new();
    for key in command.settings.keys() {
        match key.as_str() {
            "leader" => conditions.push(Condition::Leader(NodeId::new(number("leader")?))),
            "epoch" => conditions.push(Condition::Epoch(number("epoch")?)),
            "isr" => conditions.push(Condition::Isr(ids(command, "isr")?)),
            "hw" => conditions.push(Condition::HighWatermark(offset("hw")?, broker)),
            "leo" => conditions.push(Condition::LogEnd(offset("leo")?, broker)),
            _ => {}
        }
    }
    if conditions.is_empty() {
        return Err(ScriptError("wait: for what?".into()));
    }
    Ok(conditions)
}

/// Node ids like `1,2,3`, sorted.
fn ids(command: &Command, key: &str) -> Result<Vec<NodeId>, ScriptError> {
    let mut ids = ids_in_order(command, key)?;
    ids.sort_unstable();
    Ok(ids)
}

/// Node ids like `2,1,3`, as they stand there; none without the setting.
pub(super) fn ids_in_order(command: &Command, key: &str) -> Result<Vec<NodeId>, ScriptError> {
    let Some(text) = command.settings.get(key) else {
        return Ok(Vec::new());
    };
    let ids = text.split(',').map(|word| word.parse().map(NodeId::new));
    let ids: Result<Vec<_>, _> = ids.collect();
    ids.map_err(|_| ScriptError(format!("{}: {key}={text} names no nodes", command.verb)))
}

/// `elect orders-0 2 [isr=2,3] [unclean]`: the controller makes 2 the leader, whatever speaks
/// against it.
pub(super) fn elect(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let partition = partition(command.word(0, "a partition")?)?;
    let leader = node_at(world, command, 1)?;
    let unclean = match command.words.get(2).map(String::as_str) {
        None => false,
        Some("unclean") => true,
        Some(other) => return Err(ScriptError(format!("elect: what is '{other}'?"))),
    };
    let isr = Some(ids_in_order(command, "isr")?).filter(|it| !it.is_empty());
    if unclean {
        world.checker.unclean_is_allowed(&partition);
    }
    world
        .elect(&partition, leader, isr, unclean)
        .map_err(|why| ScriptError(format!("elect: {why}")))?;
    world.run_for(MOMENT);
    Ok(())
}
