//! `show`: what is there, as a table.

use super::{Command, NODE, ScriptError};
use crate::world::World;

/// `show replicas`, `show members`, `show records` or `show files orders-0`.
pub(super) fn show(world: &mut World, command: &Command) -> Result<(), ScriptError> {
    match command.word(0, "what")? {
        "replicas" if command.words.len() > 1 => {
            super::logs::replicas(world, command.word(1, "a topic")?);
        }
        "replicas" => replicas(world),
        "partitions" => super::logs::partitions(world),
        "brokers" => super::logs::brokers(world),
        "records" => {
            let count = world.checker.groups.records();
            world.tell(format!("{count} records in the log of the groups"));
        }
        "members" => super::group::show(world),
        "log" => super::logs::log(world, command.word(1, "a topic")?),
        "epochs" => super::logs::epochs(world, command.word(1, "a topic")?),
        "file" => super::logs::file(world, command)?,
        "files" => files(world, command.words.get(1).map_or("", String::as_str)),
        other => return Err(ScriptError(format!("show: what is '{other}'?"))),
    }
    Ok(())
}

/// The columns that `topic describe` and `cluster status` show too.
fn replicas(world: &mut World) {
    let mut rows = vec![
        [
            "topic-partition",
            "broker",
            "role",
            "epoch",
            "start",
            "hw",
            "leo",
            "flushed",
        ]
        .map(str::to_owned),
    ];
    let mut found = Vec::new();
    for (id, node) in world.nodes() {
        for shard in node.process.iter().flat_map(|process| &process.shards) {
            for partition in shard.partitions().iter() {
                let Ok(online) = partition.online() else {
                    continue;
                };
                let (replica, log) = (online.replica(), online.log());
                let role = if replica.is_leader() {
                    "leader"
                } else {
                    "follower"
                };
                found.push([
                    partition.name().to_string(),
                    id.to_string(),
                    role.to_owned(),
                    replica.leader_epoch().to_string(),
                    log.log_start_offset().to_string(),
                    replica.high_watermark().to_string(),
                    log.log_end_offset().to_string(),
                    log.flushed_offset().to_string(),
                ]);
            }
        }
    }
    found.sort();
    rows.extend(found);
    let widths: Vec<usize> = (0..8)
        .map(|at| {
            rows.iter()
                .filter_map(|row| row.get(at))
                .map(String::len)
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        world.tell(cells.collect::<Vec<_>>().join("  ").trim_end().to_owned());
    }
}

fn files(world: &mut World, below: &str) {
    let mut lines = Vec::new();
    for disk in &world.node(NODE).disks {
        for (path, bytes) in disk.files() {
            let path = path.display().to_string();
            if path.starts_with(below) {
                lines.push(format!("{path} {}", bytes.len()));
            }
        }
    }
    for line in lines {
        world.tell(line);
    }
}
