use anyhow::bail;
use highwater_client::{Client, CommittedOffsets};
use highwater_protocol::client::group::PartitionSet;
use highwater_types::ErrorCode;
use serde_json::json;

use super::selection::Selection;
use super::{has_members, in_words};
use crate::args::{Bootstrap, Output};
use crate::client_commands::connect;
use crate::output::Table;

/// `group delete`: groups, or what they have committed in `topics`.
pub(super) async fn delete(
    groups: &[String],
    topics: &Selection,
    at: &Bootstrap,
    output: Output,
) -> anyhow::Result<()> {
    let client = connect(at).await?;
    let mut table = if topics.is_empty() {
        Table::new(&["group"])
    } else {
        Table::new(&["group", "topic-partition"])
    };
    let mut failed = Vec::new();
    let mut is_anything_done = false;
    for group in groups {
        let done = if topics.is_empty() {
            let done = delete_group(&client, group).await;
            done.map(|()| table.push(vec![json!(group)]))
        } else {
            delete_offsets(&client, group, topics, &mut table).await
        };
        match done {
            Ok(()) => is_anything_done = true,
            Err(why) => failed.push(format!("{why:#}")),
        }
    }
    // Columns without a row would read as if something had been done.
    if output == Output::Json || is_anything_done {
        table.print(output)?;
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

async fn delete_group(client: &Client, group: &str) -> anyhow::Result<()> {
    match client.delete_group(group).await {
        Err(why) if why.code() == Some(ErrorCode::NON_EMPTY_GROUP) => {
            match client.describe_group(group).await {
                Ok(it) if !it.members.is_empty() => Err(has_members(&it)),
                _ => Err(why.into()),
            }
        }
        done => done.map_err(|why| in_words(group, why)),
    }
}

async fn delete_offsets(
    client: &Client,
    group: &str,
    topics: &Selection,
    table: &mut Table,
) -> anyhow::Result<()> {
    let committed = client.group_offsets(group, None).await;
    let wanted = selected(&committed.map_err(|why| in_words(group, why))?, topics);
    if wanted.is_empty() {
        bail!("group {group} has committed nothing there; `highwater group describe` shows where");
    }
    let results = client.delete_group_offsets(group, &wanted).await;
    let mut refused = Vec::new();
    for (partition, result) in results.map_err(|why| in_words(group, why))? {
        match result {
            Ok(()) => table.push(vec![json!(group), json!(partition.to_string())]),
            Err(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC) => {
                refused.push(format!("{partition} is read by members; stop them first"));
            }
            Err(code) => refused.push(format!("{partition}: {code}")),
        }
    }
    if !refused.is_empty() {
        bail!(
            "cannot delete offsets of group {group}: {}",
            refused.join(", ")
        );
    }
    Ok(())
}

/// What is committed in the topics and partitions that are meant.
fn selected(committed: &CommittedOffsets, topics: &Selection) -> PartitionSet {
    let is_meant = |it: &highwater_types::TopicPartition| {
        topics
            .get(&it.topic)
            .is_some_and(|numbers| numbers.is_empty() || numbers.contains(&it.partition.raw()))
    };
    let known = committed.iter().filter(|(_, offset)| offset.is_some());
    known
        .map(|(it, _)| it)
        .filter(|it| is_meant(it))
        .cloned()
        .collect()
}
