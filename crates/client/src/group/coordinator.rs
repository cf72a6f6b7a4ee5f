use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use highwater_protocol::client::group::{GroupCoordinator, coordinator_of, find_coordinator};
use highwater_types::{ErrorCode, Millis};
use tokio::time::timeout;

use crate::cluster::Client;
use crate::config::duration;
use crate::error::ClientError;
use crate::metadata::BrokerMetadata;
use crate::net::{Call, Connection};

/// The way to one group's coordinator, which is looked for anew whenever it turns out to be
/// another. Cheap to clone; clones share what they know.
#[derive(Clone)]
pub(crate) struct CoordinatorLink {
    client: Client,
    group_id: Arc<str>,
    known: Arc<Mutex<Option<GroupCoordinator>>>,
}

impl CoordinatorLink {
    /// Over the connections of `client`.
    pub(crate) fn new(client: &Client, group_id: &str) -> Self {
        Self {
            client: client.clone(),
            group_id: group_id.into(),
            known: Arc::default(),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn group_id(&self) -> &str {
        &self.group_id
    }

    /// The coordinator, looked up for `default.api.timeout.ms` while there is none yet.
    pub(crate) async fn coordinator(&self) -> Result<GroupCoordinator, ClientError> {
        let limit = self.client.config().default_api_timeout;
        self.client.retry(limit, || self.look_up()).await
    }

    /// Asks the coordinator, again and again for `limit` while it moves, loads or cannot be
    /// reached. `ask` does one attempt over a connection.
    pub(crate) async fn call<T, F>(
        &self,
        limit: Millis,
        ask: impl Fn(Connection) -> F,
    ) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        self.client
            .retry(limit, || async {
                let coordinator = self.look_up().await?;
                let address = address(&coordinator);
                let answer = match self.client.connection_to(&address).await {
                    Ok(connection) => ask(connection).await,
                    Err(why) => Err(why),
                };
                if let Err(why) = &answer
                    && is_elsewhere(why)
                {
                    self.forget();
                }
                answer
            })
            .await
    }

    async fn look_up(&self) -> Result<GroupCoordinator, ClientError> {
        if let Some(known) = self.lock().clone() {
            return Ok(known);
        }
        let group_id = &*self.group_id;
        let ask = |version| find_coordinator(group_id.to_owned(), version);
        let answer = self.client.call_any_at(ask).await?;
        let found = coordinator_of(&answer, group_id).map_err(|code| {
            let message = answer
                .coordinators
                .iter()
                .find_map(|it| it.error_message.clone());
            let message = message.or(answer.error_message);
            ClientError::refused(format!("coordinator of group {group_id}"), code, message)
        })?;
        *self.lock() = Some(found.clone());
        Ok(found)
    }

    fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<GroupCoordinator>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CoordinatorLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatorLink")
            .field("group_id", &self.group_id)
            .finish_non_exhaustive()
    }
}

/// Calls over a connection, at `version_max` at the most.
pub(crate) async fn call_up_to<C: Call>(
    connection: &Connection,
    request: C,
    version_max: i16,
    limit: Millis,
) -> Result<C::Answer, ClientError> {
    let exchange = async { connection.send(request, version_max).await?.wait().await };
    match timeout(duration(limit), exchange).await {
        Ok(answer) => answer,
        Err(_) => Err(connection.late(C::API, limit)),
    }
}

/// `HOST:PORT` of a coordinator.
pub(crate) fn address(coordinator: &GroupCoordinator) -> String {
    BrokerMetadata {
        id: coordinator.node,
        host: coordinator.host.clone(),
        port: coordinator.port,
        rack: None,
    }
    .address()
}

/// Whether the coordinator may be another by now.
fn is_elsewhere(why: &ClientError) -> bool {
    match why {
        ClientError::Refused { code, .. } => is_coordinator_code(*code),
        ClientError::Closed { .. }
        | ClientError::Connect { .. }
        | ClientError::TimedOut { .. }
        | ClientError::Misbehaved { .. } => true,
        _ => false,
    }
}

/// The codes that are about the coordinator as a whole, not about what it was asked.
pub(crate) fn is_coordinator_code(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_COORDINATOR
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
    )
}
