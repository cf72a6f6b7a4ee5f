//! `show replicas orders`, `show log`, `show epochs`, `show partitions`, `show brokers`, `show
//! file`: what the controller has committed, and what each broker holds of a topic.

use std::path::Path;
use std::sync::Arc;

use highwater_disk::Disk as _;
use highwater_metadata::image::PartitionImage;
use highwater_types::{NodeId, TopicPartition};

use super::cluster::node_at;
use super::{Command, ScriptError};
use crate::check::stored_batches;
use crate::world::World;

/// Values that are shown one by one.
const VALUES_MAX: usize = 6;

/// `show log orders`: the batches that each running broker holds, with their epochs.
pub(super) fn log(world: &mut World, topic: &str) {
    for (node, partition) in open_replicas(world, topic) {
        let disks = &world.node(node).disks;
        let Some(online) = world.online(node, &partition) else {
            continue;
        };
        let batches = stored_batches(disks, online.log());
        let batches = batches.into_iter().map(|(header, values)| {
            let (base, next) = (header.base_offset, header.next_offset());
            format!("[{base},{next})@{} {}", header.leader_epoch, some(&values))
        });
        let batches: Vec<_> = batches.collect();
        world.tell(format!("{partition} {node}: {}", batches.join("  ")));
    }
}

/// `show epochs orders`: where each leader epoch begins, as each running broker has it.
pub(super) fn epochs(world: &mut World, topic: &str) {
    for (node, partition) in open_replicas(world, topic) {
        let Some(online) = world.online(node, &partition) else {
            continue;
        };
        let entries = online.log().epochs().entries.iter();
        let entries = entries.map(|it| format!("({}, {})", it.epoch, it.start_offset));
        let entries: Vec<_> = entries.collect();
        world.tell(format!("{partition} {node}: epochs {}", entries.join(" ")));
    }
}

/// `show file 2 orders-0/leader-epoch-checkpoint`: the lines of a text file.
pub(super) fn file(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    let node = node_at(world, command, 1)?;
    let path = command.word(2, "a file")?;
    let mut disks = world.node(node).disks.iter();
    let found = disks.find_map(|disk| disk.session().read(Path::new(path)).ok().flatten());
    let bytes = found.ok_or_else(|| ScriptError(format!("{node} has no file {path}")))?;
    world.tell(format!("{node}: {path}"));
    for line in String::from_utf8_lossy(&bytes).lines() {
        world.tell(format!("  {line}"));
    }
    Ok(())
}

/// `show replicas orders`: the columns of `topic describe`. The ISR is the leader's view of it, and
/// the lag is what its log is ahead.
pub(super) fn replicas(world: &mut World, topic: &str) {
    let head = [
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
    let mut rows = vec![head.map(str::to_owned)];
    for (partition, known) in known_partitions(world, topic) {
        for node in &known.assigned_replicas {
            rows.push(replica_row(world, &partition, *node));
        }
    }
    tell_table(world, &rows);
}

fn replica_row(world: &World, partition: &TopicPartition, node: NodeId) -> [String; 9] {
    let leader = world.leader_of(partition);
    let leader = leader.and_then(|id| world.online(id, partition));
    let (name, broker) = (partition.to_string(), node.to_string());
    let Some(online) = world.online(node, partition) else {
        let [role, none, nothing] = ["down", "-", ""].map(str::to_owned);
        let offsets = [none.clone(), none.clone(), none.clone(), none];
        let [epoch, start, hw, leo] = offsets;
        return [
            name,
            broker,
            role,
            epoch,
            start,
            hw,
            leo,
            nothing.clone(),
            nothing,
        ];
    };
    let (replica, log) = (online.replica(), online.log());
    let [role, isr, lag] = match replica.role().as_leader() {
        Some(own) => ["leader".to_owned(), ids(own.isr.committed()), String::new()],
        None => {
            let own_end = log.log_end_offset().raw();
            let lag = leader.map(|it| it.log().log_end_offset().raw() - own_end);
            let leads = leader.and_then(|it| it.replica().role().as_leader());
            let is_out = leads.is_some_and(|it| !it.isr.committed().contains(&node));
            let out = if is_out { "(out)" } else { "" };
            let lag = lag.map_or(String::new(), |lag| lag.to_string());
            ["follower".to_owned(), out.to_owned(), lag]
        }
    };
    [
        name,
        broker,
        role,
        replica.leader_epoch().to_string(),
        log.log_start_offset().to_string(),
        replica.high_watermark().to_string(),
        log.log_end_offset().to_string(),
        isr,
        lag,
    ]
}

/// `show partitions`: each partition with several replicas as the controller has it committed.
pub(super) fn partitions(world: &mut World) {
    let head = [
        "topic-partition",
        "leader",
        "epoch",
        "partition-epoch",
        "replicas",
        "isr",
        "elr",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    for (partition, known) in known_partitions(world, "") {
        rows.push([
            partition.to_string(),
            known.leader.to_string(),
            known.leader_epoch.to_string(),
            known.partition_epoch.to_string(),
            ids(&known.assigned_replicas),
            ids(&known.in_sync_replicas),
            ids(&known.eligible_leader_replicas),
        ]);
    }
    tell_table(world, &rows);
}

/// `show brokers`: the registrations, as the controller has them committed.
pub(super) fn brokers(world: &mut World) {
    let Some(image) = world.image().cloned() else {
        return;
    };
    for (id, broker) in image.brokers.iter() {
        let state = match (broker.fenced, broker.in_controlled_shutdown) {
            (true, _) => "fenced",
            (false, true) => "shutting down",
            (false, false) => "active",
        };
        world.tell(format!("broker {id}: epoch {}, {state}", broker.epoch));
    }
}

/// The partitions of a topic with several replicas, or of all topics, by name.
fn known_partitions(world: &World, topic: &str) -> Vec<(TopicPartition, Arc<PartitionImage>)> {
    let Some(image) = world.image() else {
        return Vec::new();
    };
    let all = image.partitions();
    let all = all.filter(|(it, _, _)| topic.is_empty() || it.name.as_str() == topic);
    let mut found: Vec<_> = all
        .map(|(topic, index, known)| {
            let partition = TopicPartition {
                topic: topic.name.clone(),
                partition: index,
            };
            (partition, Arc::clone(known))
        })
        .collect();
    found.retain(|(_, known)| known.assigned_replicas.len() > 1);
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn ids(nodes: &[NodeId]) -> String {
    let ids: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    ids.join(",")
}

fn tell_table<const N: usize>(world: &mut World, rows: &[[String; N]]) {
    let width = |at: usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(String::len)
            .max()
    };
    for row in rows {
        let cells = row.iter().enumerate();
        let cells = cells.map(|(at, cell)| format!("{cell:0$}", width(at).unwrap_or(0)));
        let cells: Vec<_> = cells.collect();
        world.tell(cells.join("  ").trim_end().to_owned());
    }
}

/// The replicas of a topic whose logs are open, by partition and broker.
fn open_replicas(world: &World, topic: &str) -> Vec<(NodeId, TopicPartition)> {
    let mut found = Vec::new();
    for (node, it) in world.nodes() {
        let shards = it.process.iter().flat_map(|process| &process.shards);
        for partition in shards.flat_map(|shard| shard.partitions().iter()) {
            if partition.name().topic.as_str() == topic && partition.online().is_ok() {
                found.push((*node, partition.name().clone()));
            }
        }
    }
    found.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
    found
}

fn some(values: &[String]) -> String {
    match values {
        [first, .., last] if values.len() > VALUES_MAX => format!("{first}..{last}"),
        _ => values.join(" "),
    }
}
