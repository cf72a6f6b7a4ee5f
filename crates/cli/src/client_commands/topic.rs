use anyhow::bail;
use highwater_client::{ClientError, NewTopic, TopicMetadata};
use highwater_types::ErrorCode;
use serde_json::{Value, json};

use super::{block_on, connect, replicas};
use crate::args::{Bootstrap, Output, TopicCommand};
use crate::node_settings::parse_pair;
use crate::output::Table;

/// `topic create|list|describe|delete`.
pub(crate) fn run(command: TopicCommand, output: Output) -> anyhow::Result<()> {
    match command {
        TopicCommand::Create {
            topic,
            partitions,
            replication_factor,
            replica_assignment,
            config,
            at,
        } => {
            let configs: anyhow::Result<Vec<_>> = config
                .iter()
                .map(|pair| parse_pair(pair, "--config"))
                .collect();
            let topic = NewTopic {
                name: topic,
                partitions,
                replication_factor,
                assignments: replica_assignment.map_or_else(Vec::new, |it| it.0),
                configs: configs?,
            };
            block_on(create(topic, &at, output))
        }
        TopicCommand::List { internal, at } => block_on(list(internal, &at, output)),
        TopicCommand::Describe { topics, at } => block_on(describe(&topics, &at, output)),
        TopicCommand::Delete { topics, at } => block_on(delete(&topics, &at, output)),
    }
}

async fn create(topic: NewTopic, at: &Bootstrap, output: Output) -> anyhow::Result<()> {
    let client = connect(at).await?;
    let mut results = client.create_topics(&[topic], false).await?;
    let Some(created) = results.pop() else {
        bail!("the broker did not answer for the topic")
    };
    let created = created?;
    let mut table = Table::new(&["topic", "partitions", "replication-factor", "topic-id"]);
    let id = created.id.map_or(Value::Null, |id| json!(id.to_string()));
    table.push(vec![
        json!(created.name),
        json!(created.partitions),
        json!(created.replication_factor),
        id,
    ]);
    table.print(output)
}

async fn list(internal: bool, at: &Bootstrap, output: Output) -> anyhow::Result<()> {
    let client = connect(at).await?;
    let mut table = Table::new(&["topic", "partitions", "replication-factor", "internal"]);
    for topic in client.describe_topics(None).await? {
        if topic.is_internal && !internal {
            continue;
        }
        let replicas = topic
            .partitions
            .iter()
            .map(|it| it.assigned_replicas.len())
            .max();
        table.push(vec![
            json!(topic.name),
            json!(topic.partitions.len()),
            json!(replicas.unwrap_or_default()),
            json!(topic.is_internal),
        ]);
    }
    table.print(output)
}

async fn describe(names: &[String], at: &Bootstrap, output: Output) -> anyhow::Result<()> {
    let client = connect(at).await?;
    let wanted = if names.is_empty() { None } else { Some(names) };
    let topics = client.describe_topics(wanted).await?;
    let known: Vec<TopicMetadata> = topics
        .iter()
        .filter(|it| it.error == ErrorCode::NONE)
        .cloned()
        .collect();
    if !known.is_empty() || names.is_empty() {
        replicas::table(&client, &known).await.print(output)?;
    }
    let missing: Vec<String> = names
        .iter()
        .filter(|name| !known.iter().any(|topic| topic.name == **name))
        .map(|name| {
            let found = topics.iter().find(|topic| topic.name == *name);
            let error = found.map_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |it| it.error);
            format!("{name}: {error}")
        })
        .collect();
    if !missing.is_empty() {
        bail!(
            "cannot describe {}; `highwater topic list` shows what is there",
            missing.join(", ")
        );
    }
    Ok(())
}

async fn delete(names: &[String], at: &Bootstrap, output: Output) -> anyhow::Result<()> {
    let client = connect(at).await?;
    let results: Vec<Result<(), ClientError>> = client.delete_topics(names).await?;
    let mut table = Table::new(&["topic"]);
    let mut failed = Vec::new();
    for (name, result) in names.iter().zip(results) {
        match result {
            Ok(()) => table.push(vec![json!(name)]),
            Err(why) => failed.push(why.to_string()),
        }
    }
    // Columns without a row would read as if something had been done.
    if output == Output::Json || failed.len() < names.len() {
        table.print(output)?;
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}
