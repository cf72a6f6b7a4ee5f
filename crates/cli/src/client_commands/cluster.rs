use std::io::Write as _;
use std::time::Duration;

use highwater_client::{Client, ClientError, ClusterDescription, TopicMetadata};
use highwater_types::{ErrorCode, NodeId};
use serde_json::{Value, json};

use super::{block_on, connect, replicas};
use crate::args::{Bootstrap, ClusterCommand, Output};
use crate::output::{self, Table};

/// Longest that brokers get to ask their controller.
const CONTROLLER_MAX: Duration = Duration::from_secs(3);

/// `cluster status`.
pub(crate) fn run(command: ClusterCommand, output: Output) -> anyhow::Result<()> {
    let ClusterCommand::Status { at } = command;
    block_on(status(&at, output))
}

async fn status(at: &Bootstrap, output: Output) -> anyhow::Result<()> {
    let client = connect(at).await?;
    let cluster = client.describe_cluster().await?;
    let controller = controller(&client, &cluster).await;
    let topics: Vec<TopicMetadata> = client
        .describe_topics(None)
        .await?
        .into_iter()
        .filter(|topic| topic.error == ErrorCode::NONE)
        .collect();
    let brokers = brokers(&cluster);
    let replicas = replicas::table(&client, &topics).await;
    let controller = controller.map_or(Value::Null, |id| json!(id.raw()));
    let mut out = output::stdout();
    match output {
        Output::Json => {
            let status = json!({
                "cluster_id": cluster.cluster_id,
                "controller": controller,
                "brokers": brokers.to_json(),
                "replicas": replicas.to_json(),
            });
            writeln!(out, "{status}")?;
        }
        Output::Table => {
            let mut head = Table::new(&["cluster-id", "controller"]);
            head.push(vec![json!(cluster.cluster_id), controller]);
            for (number, table) in [head, brokers, replicas].iter().enumerate() {
                if number > 0 {
                    writeln!(out)?;
                }
                table.write_text(&mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The active controller. Brokers name any of themselves to clients, as in Kafka: the quorum knows
/// better.
async fn controller(client: &Client, cluster: &ClusterDescription) -> Option<NodeId> {
    match tokio::time::timeout(CONTROLLER_MAX, client.quorum_leader()).await {
        Ok(Ok(leader)) => leader,
        Ok(Err(ClientError::Unsupported { .. })) => cluster.controller,
        // Nobody reaches it.
        Ok(Err(_)) | Err(_) => None,
    }
}

fn brokers(cluster: &ClusterDescription) -> Table {
    let mut table = Table::new(&["broker", "host", "port", "rack", "state"]);
    for broker in &cluster.brokers {
        let state = if broker.is_fenced { "fenced" } else { "active" };
        table.push(vec![
            json!(broker.broker.id.raw()),
            json!(broker.broker.host),
            json!(broker.broker.port),
            broker
                .broker
                .rack
                .as_ref()
                .map_or(Value::Null, |rack| json!(rack)),
            json!(state),
        ]);
    }
    table
}
