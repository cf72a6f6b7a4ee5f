//! Commands that talk to a cluster, over `highwater-client`.

pub(crate) mod cluster;
pub(crate) mod consume;
mod consume_group;
pub(crate) mod group;
pub(crate) mod produce;
mod replicas;
pub(crate) mod topic;

use anyhow::Context as _;
use highwater_client::{Client, ClientConfig};
use highwater_types::Millis;

use crate::args::Bootstrap;

/// Runs a command's work on this thread.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(work)
}

/// How to reach the cluster, for a command that a person waits for.
fn client_config(at: &Bootstrap) -> ClientConfig {
    let mut config = ClientConfig::new(&at.bootstrap);
    config.default_api_timeout = Millis::new(15_000);
    config
}

/// A client that asks, and never makes topics by asking.
async fn connect(at: &Bootstrap) -> anyhow::Result<Client> {
    let mut config = client_config(at);
    config.allow_auto_create_topics = false;
    let connected = Client::connect(config).await;
    connected.with_context(|| format!("cannot reach the cluster at {}", at.bootstrap))
}
