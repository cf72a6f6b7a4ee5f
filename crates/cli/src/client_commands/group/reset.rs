use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{anyhow, bail};
use highwater_client::{
    Client, CommittedOffsets, GroupDescription, IsolationLevel, OffsetSpec, PartitionName,
};
use highwater_protocol::client::group::{CommittedOffset, PartitionSet};
use highwater_types::{ErrorCode, Offset, PartitionIndex, TopicName, TopicPartition};
use serde_json::{Value, json};

use super::describe::{logs, name_of};
use super::has_members;
use super::selection::{self, Selection};
use super::targets::{Known, Target, resolve};
use crate::args::Output;
use crate::client_commands::connect;
use crate::client_commands::consume::partitions_of;
use crate::group_args::ResetArgs;
use crate::output::{self, Table};

/// What a reset is to do, as far as the command line says.
pub(super) struct Plan {
    target: Target,
    topics: Selection,
}

/// One partition's move.
struct Move {
    partition: TopicPartition,
    from: Option<Offset>,
    to: Offset,
    note: Option<String>,
}

impl Plan {
    pub(super) fn of(args: &ResetArgs) -> anyhow::Result<Self> {
        Ok(Self {
            target: Target::of(args)?,
            topics: selection::parse(&args.topic)?,
        })
    }
}

/// `group reset`.
pub(super) async fn reset(args: &ResetArgs, plan: &Plan, output: Output) -> anyhow::Result<()> {
    let client = connect(&args.at).await?;
    let group = &args.group;
    if let Some(live) = described(&client, group)
        .await?
        .filter(|it| !it.members.is_empty())
    {
        return Err(has_members(&live));
    }
    let committed = client.group_offsets(group, None).await?;
    let partitions = meant(&client, args, plan, &committed).await?;
    let moves = moves(&client, plan, &partitions, &committed).await?;
    if args.execute {
        execute(&client, group, &moves).await?;
    }
    print(args, &moves, output)
}

/// The group, unless it does not exist: then the reset makes it.
async fn described(client: &Client, group: &str) -> anyhow::Result<Option<GroupDescription>> {
    match client.describe_group(group).await {
        Ok(group) => Ok(Some(group)),
        Err(why) if why.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

/// The partitions that are to be moved.
async fn meant(
    client: &Client,
    args: &ResetArgs,
    plan: &Plan,
    committed: &CommittedOffsets,
) -> anyhow::Result<PartitionSet> {
    if let Target::Each(offsets) = &plan.target {
        return Ok(offsets.keys().cloned().collect());
    }
    let mut topics = plan.topics.clone();
    if args.all_topics {
        let known = committed.iter().filter(|(_, offset)| offset.is_some());
        topics.extend(known.map(|(it, _)| (it.topic.clone(), std::collections::BTreeSet::new())));
        if topics.is_empty() {
            bail!(
                "group {} has committed nothing; name topics with --topic",
                args.group
            );
        }
    }
    let mut partitions = PartitionSet::new();
    for (topic, numbers) in &topics {
        let numbers: Vec<i32> = numbers.iter().copied().collect();
        let found = match partitions_of(client, topic.as_str(), &numbers).await {
            Ok(found) => found,
            // What is committed in a topic that is gone does not keep the others from moving.
            Err(_) if args.all_topics && !exists(client, topic).await? => continue,
            Err(why) => return Err(why),
        };
        partitions.extend(found.into_iter().map(|(_, partition)| TopicPartition {
            topic: topic.clone(),
            partition: PartitionIndex::new(partition.raw()),
        }));
    }
    Ok(partitions)
}

async fn exists(client: &Client, topic: &TopicName) -> anyhow::Result<bool> {
    let found = client.describe_topics(Some(&[topic.to_string()])).await?;
    Ok(found.iter().any(|it| it.error == ErrorCode::NONE))
}

async fn moves(
    client: &Client,
    plan: &Plan,
    partitions: &PartitionSet,
    committed: &CommittedOffsets,
) -> anyhow::Result<Vec<Move>> {
    let logs = logs(client, partitions).await?;
    let times = times(client, &plan.target, partitions).await?;
    let mut moves = Vec::new();
    let mut wrong = Vec::new();
    for partition in partitions {
        let name = name_of(partition);
        let Some(&(start, end)) = logs.get(&name) else {
            wrong.push(format!("{partition} does not exist or has no leader"));
            continue;
        };
        let from = committed
            .get(partition)
            .cloned()
            .flatten()
            .map(|it| it.offset);
        let known = Known {
            committed: from,
            start,
            end,
            at_time: times.get(&name).copied(),
        };
        match resolve(&plan.target, partition, known) {
            Ok((to, note)) => moves.push(Move {
                partition: partition.clone(),
                from,
                to,
                note,
            }),
            Err(why) => wrong.push(format!("{partition}: {why}")),
        }
    }
    if !wrong.is_empty() {
        bail!("nothing is moved: {}", wrong.join("; "));
    }
    Ok(moves)
}

/// The first records of the wanted time or later.
async fn times(
    client: &Client,
    target: &Target,
    partitions: &PartitionSet,
) -> anyhow::Result<BTreeMap<PartitionName, Offset>> {
    let Target::Timestamp(timestamp) = target else {
        return Ok(BTreeMap::new());
    };
    let spec = OffsetSpec::Timestamp(*timestamp);
    let wanted: Vec<_> = partitions.iter().map(|it| (name_of(it), spec)).collect();
    let listed = client
        .list_offsets(&wanted, IsolationLevel::ReadUncommitted)
        .await;
    let mut times = BTreeMap::new();
    for ((name, _), listed) in wanted.into_iter().zip(listed) {
        if let Some(offset) = listed?.offset {
            times.insert(name, offset);
        }
    }
    Ok(times)
}

async fn execute(client: &Client, group: &str, moves: &[Move]) -> anyhow::Result<()> {
    let offsets = moves
        .iter()
        .map(|it| (it.partition.clone(), CommittedOffset::new(it.to)));
    let results = client
        .alter_group_offsets(group, &offsets.collect())
        .await?;
    let refused: Vec<_> = results
        .iter()
        .filter_map(|(it, result)| Some((it, result.err()?)))
        .collect();
    let came = |code: &ErrorCode| {
        matches!(
            *code,
            ErrorCode::UNKNOWN_MEMBER_ID
                | ErrorCode::ILLEGAL_GENERATION
                | ErrorCode::REBALANCE_IN_PROGRESS
        )
    };
    if refused.iter().any(|(_, code)| came(code))
        && let Some(live) = described(client, group).await?
        && !live.members.is_empty()
    {
        return Err(has_members(&live));
    }
    if refused.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = refused
        .iter()
        .map(|(it, code)| format!("{it}: {code}"))
        .collect();
    let moved = moves.len() - refused.len();
    Err(anyhow!(
        "{moved} of {} partitions were moved; {}",
        moves.len(),
        named.join("; ")
    ))
}

fn print(args: &ResetArgs, moves: &[Move], output: Output) -> anyhow::Result<()> {
    let mut table = Table::new(&["topic-partition", "from", "to", "note"]);
    for it in moves {
        table.push(vec![
            json!(it.partition.to_string()),
            it.from.map_or(Value::Null, |from| json!(from.raw())),
            json!(it.to.raw()),
            it.note.as_ref().map_or(Value::Null, |note| json!(note)),
        ]);
    }
    let mut out = output::stdout();
    match output {
        Output::Json => {
            let told = json!({
                "group": args.group,
                "executed": args.execute,
                "partitions": table.to_json(),
            });
            writeln!(out, "{told}")?;
        }
        Output::Table => {
            table.write_text(&mut out)?;
            if !args.execute {
                writeln!(out, "nothing was changed: give --execute to do this")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
