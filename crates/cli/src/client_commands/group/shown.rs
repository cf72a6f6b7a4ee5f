//! How `group describe` looks.

use std::io::Write as _;

use highwater_types::Offset;
use serde_json::{Value, json};

use super::describe::{PartitionStanding, Standing};
use crate::args::Output;
use crate::moment;
use crate::output::{self, Table};

/// Prints groups: tables for people, one array for programs.
pub(super) fn print(groups: &[Standing], output: Output) -> anyhow::Result<()> {
    let mut out = output::stdout();
    if output == Output::Json {
        let groups: Vec<Value> = groups.iter().map(to_json).collect();
        writeln!(out, "{}", Value::from(groups))?;
        out.flush()?;
        return Ok(());
    }
    for (number, standing) in groups.iter().enumerate() {
        let tables = [
            Some(head(standing)),
            last(standing),
            some(partitions(standing), standing.partitions.is_empty()),
            some(members(standing), standing.group.members.is_empty()),
            waits_for(standing, WAITS_FOR),
            lines(standing),
        ];
        for (at, table) in tables.into_iter().flatten().enumerate() {
            if number + at > 0 {
                writeln!(out)?;
            }
            table.write_text(&mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn some(table: Table, is_empty: bool) -> Option<Table> {
    (!is_empty).then_some(table)
}

fn to_json(standing: &Standing) -> Value {
    let group = &standing.group;
    let told = |table: Option<Table>| table.map_or(Value::Null, |it| it.to_json());
    let rebalances = group.rebalances.as_ref();
    json!({
        "group": group.group_id,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "protocol": optional(&group.protocol),
        "coordinator": {
            "broker": group.coordinator.raw(),
            "address": group.coordinator_address,
        },
        "partitions": partitions(standing).to_json(),
        "members": members(standing).to_json(),
        "last_rebalance": rebalances.and_then(last_rebalance).map_or(Value::Null, |it| json!(it)),
        "waits_for": rebalances.map_or(Value::Null, |_| {
            waits_for(standing, AWAITED).map_or_else(|| json!([]), |it| it.to_json())
        }),
        "happenings": told(happenings(standing)),
    })
}

fn head(standing: &Standing) -> Table {
    let group = &standing.group;
    let mut table = Table::new(&["group", "state", "protocol", "coordinator", "members"]);
    table.push(vec![
        json!(group.group_id),
        json!(group.state),
        optional(&group.protocol),
        json!(format!(
            "{} ({})",
            group.coordinator, group.coordinator_address
        )),
        json!(group.members.len()),
    ]);
    table
}

fn last(standing: &Standing) -> Option<Table> {
    let why = standing
        .group
        .rebalances
        .as_ref()
        .and_then(last_rebalance)?;
    let mut table = Table::new(&["last-rebalance"]);
    table.push(vec![json!(why)]);
    Some(table)
}

const PARTITION_COLUMNS: &[&str] = &[
    "topic-partition",
    "committed",
    "start",
    "hw",
    "lag",
    "data",
    "control",
    "member",
    "client",
    "host",
    "note",
];

fn partitions(standing: &Standing) -> Table {
    let mut table = Table::new(PARTITION_COLUMNS);
    for it in &standing.partitions {
        let number = |offset: Option<Offset>| offset.map_or(Value::Null, |it| json!(it.raw()));
        let mut row = vec![
            json!(it.partition.to_string()),
            number(it.committed),
            number(it.log.map(|(start, _)| start)),
            number(it.log.map(|(_, end)| end)),
            lag(it).map_or(Value::Null, |it| json!(it)),
        ];
        row.extend(kinds(it));
        let owner = it.owner.and_then(|at| standing.group.members.get(at));
        match owner {
            Some(member) => row.extend([
                json!(member.member_id),
                json!(member.client_id),
                json!(host(&member.client_host)),
            ]),
            None => row.extend([Value::Null, Value::Null, Value::Null]),
        }
        row.push(note(standing, it));
        table.push(row);
    }
    table
}

/// Offsets from where the group stands to the end, in which records may be missing.
fn lag(standing: &PartitionStanding) -> Option<i64> {
    let (committed, (_, end)) = (standing.committed?, standing.log?);
    Some(end.raw().saturating_sub(committed.raw()).max(0))
}

/// Data and control records of the lag; nothing where they were not all counted.
fn kinds(standing: &PartitionStanding) -> [Value; 2] {
    match (standing.records, standing.log) {
        (Some(counts), Some((_, end))) if counts.counted_to >= end => {
            [json!(counts.data), json!(counts.control)]
        }
        _ => [Value::Null, Value::Null],
    }
}

fn note(group: &Standing, standing: &PartitionStanding) -> Value {
    let mut notes = Vec::new();
    match (standing.committed, standing.log) {
        (_, None) => notes.push("the partition is gone or has no leader".to_owned()),
        (Some(committed), Some((start, _))) if committed < start => {
            notes.push(format!(
                "the log starts {} offsets later",
                start.raw() - committed.raw()
            ));
        }
        (Some(committed), Some((_, end))) if committed > end => {
            notes.push(format!(
                "the log ends {} offsets before",
                committed.raw() - end.raw()
            ));
        }
        _ => {}
    }
    if let (Some(counts), Some((_, end))) = (standing.records, standing.log)
        && counts.counted_to < end
    {
        let (data, control) = (counts.data, counts.control);
        let to = counts.counted_to;
        notes.push(format!(
            "{data} data and {control} control up to {to}, not counted beyond"
        ));
    }
    if !group.group.members.is_empty() && !standing.is_subscribed {
        notes.push("no member wants the topic".to_owned());
    }
    if !standing.metadata.is_empty() {
        notes.push(format!("committed with '{}'", standing.metadata));
    }
    optional(&notes.join("; "))
}

fn members(standing: &Standing) -> Table {
    let columns = &[
        "member",
        "instance",
        "client",
        "host",
        "partitions",
        "topics",
    ];
    let mut table = Table::new(columns);
    for member in &standing.group.members {
        let instance = member.instance_id.as_deref().unwrap_or_default();
        let topics: Vec<String> = member.topics.iter().map(ToString::to_string).collect();
        table.push(vec![
            json!(member.member_id),
            optional(instance),
            json!(member.client_id),
            json!(host(&member.client_host)),
            json!(member.assigned.len()),
            json!(topics),
        ]);
    }
    table
}

const WAITS_FOR: &[&str] = &["waits-for", "left-ms", "client", "host"];
/// The same columns where it is said already what they are.
const AWAITED: &[&str] = &["member", "left-ms", "client", "host"];

/// Whom a rebalance under way waits for.
fn waits_for(standing: &Standing, columns: &'static [&'static str]) -> Option<Table> {
    let rebalances = standing.group.rebalances.as_ref()?;
    if rebalances.waits_for.is_empty() {
        return None;
    }
    let mut table = Table::new(columns);
    for awaited in &rebalances.waits_for {
        let mut members = standing.group.members.iter();
        let known = members.find(|it| it.member_id == awaited.member_id);
        table.push(vec![
            json!(awaited.member_id),
            json!(awaited.left_ms),
            known.map_or(Value::Null, |it| json!(it.client_id)),
            known.map_or(Value::Null, |it| json!(host(&it.client_host))),
        ]);
    }
    Some(table)
}

fn happenings(standing: &Standing) -> Option<Table> {
    let rebalances = standing.group.rebalances.as_ref()?;
    if rebalances.happenings.is_empty() {
        return None;
    }
    let mut table = Table::new(&["at", "generation", "what", "member", "why"]);
    for it in &rebalances.happenings {
        let generation = Some(it.generation_id).filter(|it| *it >= 0);
        table.push(vec![
            json!(moment::utc_text(it.at_ms)),
            generation.map_or(Value::Null, |it| json!(it)),
            json!(it.what),
            optional(&it.member_id),
            json!(it.text),
        ]);
    }
    Some(table)
}

/// The same for people: each line says all.
fn lines(standing: &Standing) -> Option<Table> {
    let rebalances = standing.group.rebalances.as_ref()?;
    if rebalances.happenings.is_empty() {
        return None;
    }
    let mut table = Table::new(&["at", "what-happened"]);
    for it in &rebalances.happenings {
        table.push(vec![json!(moment::utc_text(it.at_ms)), json!(it.text)]);
    }
    Some(table)
}

/// Why the last rebalance happened.
fn last_rebalance(
    told: &highwater_protocol::messages::describe_groups_response::GroupRebalances,
) -> Option<String> {
    let mut happenings = told.happenings.iter().rev();
    let began = happenings.find(|it| it.what == "rebalance began")?;
    Some(began.text.clone())
}

/// Brokers tell hosts as Java prints addresses, with a slash in front.
fn host(told: &str) -> &str {
    told.strip_prefix('/').unwrap_or(told)
}

fn optional(text: &str) -> Value {
    if text.is_empty() {
        Value::Null
    } else {
        json!(text)
    }
}
