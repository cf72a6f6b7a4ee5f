use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use highwater_client::{
    Client, CommittedOffsets, GroupDescription, IsolationLevel, OffsetSpec, PartitionName,
    RecordCounts,
};
use highwater_protocol::client::group::PartitionSet;
use highwater_types::{ErrorCode, Offset, TopicPartition};

use super::in_words;
use super::shown;
use crate::args::Output;
use crate::client_commands::connect;
use crate::group_args::DescribeArgs;

/// A group, and where it stands.
pub(super) struct Standing {
    pub(super) group: GroupDescription,
    pub(super) partitions: Vec<PartitionStanding>,
}

/// Where a group stands in one partition.
pub(super) struct PartitionStanding {
    pub(super) partition: TopicPartition,
    pub(super) committed: Option<Offset>,
    /// What whoever committed it noted.
    pub(super) metadata: String,
    /// Start and end of the log; `None` for a partition that is gone or has no leader.
    pub(super) log: Option<(Offset, Offset)>,
    /// What lies between the committed offset and the end, as far as it was counted.
    pub(super) records: Option<RecordCounts>,
    /// The member that reads it, as a position in the group's members.
    pub(super) owner: Option<usize>,
    /// Whether any member wants its topic.
    pub(super) is_subscribed: bool,
}

/// `group describe`.
pub(super) async fn describe(args: &DescribeArgs, output: Output) -> anyhow::Result<()> {
    let client = connect(&args.at).await?;
    let names = if args.groups.is_empty() {
        let listed = client.list_groups(&[]).await?.into_iter();
        let is_classic = |kind: &Option<String>| kind.as_deref().is_none_or(|it| it == "classic");
        let listed = listed.filter(|it| is_classic(&it.group_type));
        listed.map(|it| it.group_id).collect()
    } else {
        args.groups.clone()
    };
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for name in &names {
        match standing(&client, name, args.count_bytes).await {
            Ok(standing) => found.push(standing),
            Err(why) => missing.push(format!("{why:#}")),
        }
    }
    if !found.is_empty() || names.is_empty() || output == Output::Json {
        shown::print(&found, output)?;
    }
    if !missing.is_empty() {
        bail!("{}", missing.join("; "));
    }
    Ok(())
}

async fn standing(client: &Client, name: &str, count_bytes: u64) -> anyhow::Result<Standing> {
    let group = client.describe_group(name).await;
    let group = group.map_err(|why| in_words(name, why))?;
    let committed = client.group_offsets(name, None).await;
    let committed = committed.map_err(|why| in_words(name, why))?;
    let all = partitions(&group, &committed);
    let logs = logs(client, &all).await?;
    let mut partitions = Vec::new();
    for partition in all {
        let position = committed.get(&partition).cloned().flatten();
        let log = logs.get(&name_of(&partition)).copied();
        let mut standing = PartitionStanding {
            committed: position.as_ref().map(|it| it.offset),
            metadata: position.map(|it| it.metadata).unwrap_or_default(),
            log,
            records: None,
            owner: group
                .members
                .iter()
                .position(|it| it.assigned.contains(&partition)),
            is_subscribed: group
                .members
                .iter()
                .any(|it| it.topics.contains(&partition.topic)),
            partition,
        };
        standing.records = count(client, &standing, count_bytes).await;
        partitions.push(standing);
    }
    Ok(Standing { group, partitions })
}

/// Everything that the group has committed in or reads, also topics that nobody wants any more.
fn partitions(group: &GroupDescription, committed: &CommittedOffsets) -> PartitionSet {
    let known = committed.iter().filter(|(_, offset)| offset.is_some());
    let known = known.map(|(partition, _)| partition);
    let read = group.members.iter().flat_map(|it| &it.assigned);
    known.chain(read).cloned().collect()
}

/// Start and end of the logs of those that exist and have a leader.
pub(super) async fn logs(
    client: &Client,
    partitions: &PartitionSet,
) -> anyhow::Result<BTreeMap<PartitionName, (Offset, Offset)>> {
    let topics: BTreeSet<String> = partitions.iter().map(|it| it.topic.to_string()).collect();
    let topics: Vec<String> = topics.into_iter().collect();
    if topics.is_empty() {
        return Ok(BTreeMap::new());
    }
    let known = client.describe_topics(Some(&topics)).await?;
    let has_leader = |it: &&TopicPartition| {
        let topic = known.iter().find(|topic| topic.name == it.topic.as_str());
        let topic = topic.filter(|topic| topic.error == ErrorCode::NONE);
        let mut partitions = topic.into_iter().flat_map(|topic| &topic.partitions);
        partitions.any(|known| known.index == it.partition && known.leader.is_some())
    };
    let names: Vec<PartitionName> = partitions.iter().filter(has_leader).map(name_of).collect();
    let ask = |spec| {
        let wanted: Vec<_> = names.iter().map(|name| (name.clone(), spec)).collect();
        async move {
            client
                .list_offsets(&wanted, IsolationLevel::ReadUncommitted)
                .await
        }
    };
    let starts = ask(OffsetSpec::Earliest).await;
    let ends = ask(OffsetSpec::Latest).await;
    let mut logs = BTreeMap::new();
    for ((name, start), end) in names.into_iter().zip(starts).zip(ends) {
        if let (Ok(start), Ok(end)) = (start, end)
            && let (Some(start), Some(end)) = (start.offset, end.offset)
        {
            logs.insert(name, (start, end));
        }
    }
    Ok(logs)
}

/// Tells data from control records. `None` when there is nothing to count, or no way to.
async fn count(
    client: &Client,
    standing: &PartitionStanding,
    bytes_max: u64,
) -> Option<RecordCounts> {
    let (committed, (start, end)) = (standing.committed?, standing.log?);
    let from = committed.max(start);
    let name = name_of(&standing.partition);
    let counted = client.count_records(&name, (from, end), bytes_max).await;
    counted
        .inspect_err(|why| tracing::debug!(%why, "records are not told apart"))
        .ok()
}

pub(super) fn name_of(partition: &TopicPartition) -> PartitionName {
    (partition.topic.to_string(), partition.partition)
}
