//! Verbs about members of groups. A line names its member with `member=11`: any number that no
//! client of the story has.

use std::collections::{BTreeMap, BTreeSet};

use highwater_protocol::client::group::{Assignor, MemberConfig, PartitionSet};
use highwater_types::{Millis, Offset, TopicName, TopicPartition};

use super::client::{ANSWER_PATIENCE, client};
use super::{Command, ScriptError, partition};
use crate::client::ClientId;
use crate::world::World;
use crate::world::clients::member::{Habits, MemberVersions, hand_of};
use crate::world::clients::{Load, MemberLoad};

/// The settings of `join`.
pub(super) const JOIN_SETTINGS: &[&str] = &[
    "member",
    "topics",
    "instance",
    "assignor",
    "session",
    "heartbeat",
    "rebalance",
    "versions",
    "polls",
    "commits",
    "wait",
];
/// The settings of `commit` that are no partitions.
const COMMIT_SETTINGS: [&str; 3] = ["member", "client", "wait"];
const OFFSET_COMMIT_VERSION: i16 = 9;
const OFFSET_FETCH_VERSION: i16 = 9;
/// How long a line that waits for nothing lets pass.
const MOMENT: Millis = Millis::new(20);

/// `join g member=11 topics=orders[,more] [instance=i] [assignor=range|sticky] [session=10000]
/// [heartbeat=3000] [rebalance=300000] [versions=newest|static|old] [polls=50 commits=1000]
/// [wait=yes]`: a member that keeps its membership by itself, and polls and commits when it is told
/// to, or at these intervals in milliseconds. Waits until it is in a complete generation.
pub(super) fn join(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = ClientId(command.setting("member", 0)?);
    let is_free = world
        .clients
        .get(&id)
        .is_none_or(|it| matches!(it.load, Load::Gone));
    if id.0 == 0 || !is_free {
        return Err(ScriptError("join: member=N, with a free number".into()));
    }
    let config = config(command)?;
    let versions = match command.setting("versions", "newest".to_owned())?.as_str() {
        "newest" => MemberVersions::NEWEST,
        "static" => MemberVersions::STATIC,
        "old" => MemberVersions::OLD,
        other => return Err(ScriptError(format!("join: what is versions={other}?"))),
    };
    let habits = match (command.setting("polls", 0)?, command.setting("commits", 0)?) {
        (0, _) => None,
        (polls, 0) => Some(Habits::new(Millis::new(1_000_000_000), Millis::new(polls))),
        (polls, commits) => Some(Habits::new(Millis::new(commits), Millis::new(polls))),
    };
    let topics = command.setting("topics", String::new())?;
    let topics: Result<Vec<_>, _> = topics.split(',').map(TopicName::new).collect();
    let topics = topics.map_err(|why| ScriptError(format!("join: topics: {why}")))?;
    world.add_member(id, MemberLoad::new(config, versions, habits), &topics);
    if command.setting("wait", "yes".to_owned())? == "no" {
        world.run_for(MOMENT);
        return Ok(());
    }
    let joined = world.run_until(ANSWER_PATIENCE, |world| {
        world.member(id).is_some_and(|it| it.member.is_stable())
    });
    world.run_for(MOMENT);
    if joined {
        Ok(())
    } else {
        Err(ScriptError(format!("join: member {} stays out", id.0)))
    }
}

fn config(command: &Command) -> Result<MemberConfig, ScriptError> {
    let mut config = MemberConfig::new(command.word(0, "a group")?);
    config.instance_id = command.settings.get("instance").cloned();
    config.session_timeout = Millis::new(command.setting("session", 10_000)?);
    config.heartbeat_interval = Millis::new(command.setting("heartbeat", 3_000)?);
    config.max_poll_interval = Millis::new(command.setting("rebalance", 1_000_000_000)?);
    match command.setting("assignor", "both".to_owned())?.as_str() {
        "both" => {}
        "range" => config.assignors = vec![Assignor::Range],
        "sticky" => config.assignors = vec![Assignor::CooperativeSticky],
        other => return Err(ScriptError(format!("join: what is assignor={other}?"))),
    }
    Ok(config)
}

/// `leave member=11`: without a last commit.
pub(super) fn leave(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = member(world, command)?;
    world.leave_group(id);
    world.run_for(MOMENT);
    Ok(())
}

/// `kill member=11`: the process dies.
pub(super) fn kill(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = member(world, command)?;
    world.tell(format!("member {}: killed", id.0));
    world.kill_member(id);
    world.run_for(MOMENT);
    Ok(())
}

/// `pause member=11`: the process stands still.
pub(super) fn pause(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = member(world, command)?;
    world.tell(format!("member {}: paused", id.0));
    world.pause_member(id);
    Ok(())
}

/// `continue member=11`: the process goes on; no time passes.
pub(super) fn go_on(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = member(world, command)?;
    world.tell(format!("member {}: continues", id.0));
    world.continue_member(id);
    Ok(())
}

/// `poll member=11`: one fetch of each partition that it reads.
pub(super) fn poll(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let id = member(world, command)?;
    let count = world.member(id).map_or(0, |it| it.reads.len());
    for _ in 0..count {
        world.poll_member(id);
        let hand = hand_of(id);
        let answered = world.run_until(ANSWER_PATIENCE, |world| {
            let hand = world.clients.get(&hand);
            hand.is_none_or(|it| it.in_flight() == 0)
        });
        if !answered {
            return Err(ScriptError("poll: no answer".into()));
        }
    }
    Ok(())
}

/// `commit member=11 [orders-0=5]... [wait=yes]`: what it has read, or these offsets.
/// `commit g [client=1] orders-0=5...`: a tool commits, as no member.
pub(super) fn commit(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let mut offsets = BTreeMap::new();
    let given = command.settings.iter();
    for (key, value) in given.filter(|(key, _)| !COMMIT_SETTINGS.contains(&key.as_str())) {
        let offset: i64 = value
            .parse()
            .map_err(|_| ScriptError(format!("commit: '{key}={value}' has no offset")))?;
        offsets.insert(partition(key)?, Offset::new(offset));
    }
    let (by, sent) = if command.settings.contains_key("member") {
        let id = member(world, command)?;
        let sent = if offsets.is_empty() {
            world.commit_member(id)
        } else {
            world.commit_as_member(id, offsets)
        };
        (hand_of(id), sent)
    } else {
        let client = client(world, command)?;
        let group = command.word(0, "a group")?;
        let sent = world.send_commit(client, OFFSET_COMMIT_VERSION, group, None, offsets);
        (client, sent)
    };
    if !sent {
        return Err(ScriptError("commit: nothing can be committed".into()));
    }
    answered(world, command, by)
}

/// `offsets g [orders-0,orders-1] [client=1]`: asks for committed offsets, of all partitions if
/// none is named.
pub(super) fn offsets(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let client = client(world, command)?;
    let group = command.word(0, "a group")?;
    let named: Option<Result<PartitionSet, _>> = command
        .words
        .get(1)
        .map(|names| names.split(',').map(partition).collect());
    let named = named.transpose()?;
    let version = OFFSET_FETCH_VERSION;
    if !world.send_offset_fetch(client, version, group, named.as_ref()) {
        return Err(ScriptError("offsets: the node does not serve".into()));
    }
    answered(world, command, client)
}

fn answered(world: &mut World, command: &Command, by: ClientId) -> Result<(), ScriptError> {
    if command.setting("wait", "yes".to_owned())? == "no" {
        return Ok(());
    }
    let answered = world.run_until(ANSWER_PATIENCE, |world| {
        let client = world.clients.get(&by);
        client.is_none_or(|it| it.in_flight() == 0)
    });
    if answered {
        Ok(())
    } else {
        Err(ScriptError(format!("{}: no answer", command.verb)))
    }
}

/// `records 3`: lets time pass until the groups' log has three more records.
pub(super) fn records(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let more: u64 = command
        .word(0, "a count")?
        .parse()
        .map_err(|_| ScriptError("records: a count".into()))?;
    let until = world.checker.groups.records() + more;
    let came = world.run_until(ANSWER_PATIENCE, |world| {
        world.checker.groups.records() >= until
    });
    if came {
        Ok(())
    } else {
        Err(ScriptError("records: they do not come".into()))
    }
}

/// `settle g`: lets time pass until every member that lives is in the same generation, and each
/// partition of their topics has its owner.
pub(super) fn settle(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let group = command.word(0, "a group")?.to_owned();
    if world.run_until(ANSWER_PATIENCE, |world| world.is_settled(&group)) {
        world.run_for(MOMENT);
        return Ok(());
    }
    Err(ScriptError(format!("settle: {group} does not")))
}

/// `show members`: each member as it sees itself.
pub(super) fn show(world: &mut World) {
    let lines = world.members().map(|(id, load)| {
        let generation = load
            .member
            .identity()
            .map_or_else(|| "none".to_owned(), |it| it.generation.to_string());
        let reads: Vec<String> = load
            .reads
            .iter()
            .map(|it| match load.position(it) {
                Some(at) => format!("{it}@{at}"),
                None => it.to_string(),
            })
            .collect();
        let group = &load.config.group_id;
        let reads = reads.join(" ");
        format!(
            "member {} of {group}: generation={generation} reads=[{reads}]",
            id.0
        )
    });
    for line in lines.collect::<Vec<_>>() {
        world.tell(line);
    }
}

fn member(world: &World, command: &Command) -> Result<ClientId, ScriptError> {
    let id = ClientId(command.setting("member", 0)?);
    match world.member(id) {
        Some(_) => Ok(id),
        None => Err(ScriptError(format!(
            "{}: there is no member {}",
            command.verb, id.0
        ))),
    }
}

impl World {
    /// Whether the living members of a group are in one complete generation, and each partition of
    /// their topics has exactly one owner who knows where to read on.
    pub(crate) fn is_settled(&self, group: &str) -> bool {
        let members: Vec<_> = self
            .members()
            .map(|(_, load)| load)
            .filter(|load| load.config.group_id == group && !load.is_out())
            .collect();
        let generations: BTreeSet<_> = members
            .iter()
            .map(|load| load.member.identity().map(|it| it.generation))
            .collect();
        let wanted: BTreeSet<_> = members.iter().flat_map(|load| &load.topics).collect();
        let wanted = wanted.into_iter().flat_map(|topic| {
            let count = self.partition_counts.get(topic).copied().unwrap_or(0);
            (0..count).map(|at| crate::world::clients::requests::partition(topic, at))
        });
        let wanted: Vec<TopicPartition> = wanted.collect();
        let owned = members.iter().flat_map(|load| &load.reads);
        let mut owned: Vec<TopicPartition> = owned.cloned().collect();
        owned.sort();
        let is_known = |load: &&MemberLoad| {
            let mut reads = load.reads.iter();
            load.member.is_stable() && reads.all(|it| load.position(it).is_some())
        };
        generations.len() <= 1 && members.iter().all(is_known) && owned == wanted
    }
}
