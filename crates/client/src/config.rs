use highwater_types::Millis;

use crate::error::ClientError;
use crate::setting::{millis, switch};

/// How to reach a cluster. Fields are named after Kafka's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// `bootstrap.servers`: `HOST:PORT` of some brokers.
    pub bootstrap_servers: Vec<String>,
    /// `client.id`: how this client is named in logs and quotas.
    pub client_id: String,
    /// `request.timeout.ms`: how long to wait for an answer.
    pub request_timeout: Millis,
    /// `socket.connection.setup.timeout.ms`: how long to wait for a connection and its first
    /// answer.
    pub connection_setup_timeout: Millis,
    /// `retry.backoff.ms`: the first pause between attempts; it doubles.
    pub retry_backoff: Millis,
    /// `retry.backoff.max.ms`: the longest pause between attempts.
    pub retry_backoff_max: Millis,
    /// `default.api.timeout.ms`: how long an operation may take, with all its attempts.
    pub default_api_timeout: Millis,
    /// `metadata.max.age.ms`: how old leaders may be before they are asked for again.
    pub metadata_max_age: Millis,
    /// `allow.auto.create.topics`: whether asking for a topic may create it.
    pub allow_auto_create_topics: bool,
    /// Longest answer that is taken from a peer, in bytes.
    pub answer_bytes_max: usize,
}

impl ClientConfig {
    /// Kafka's defaults, for a cluster that is reached at `bootstrap`: `HOST:PORT[,HOST:PORT...]`.
    #[must_use]
    pub fn new(bootstrap: &str) -> Self {
        let servers = bootstrap
            .split(',')
            .map(str::trim)
            .filter(|server| !server.is_empty());
        Self {
            bootstrap_servers: servers.map(str::to_owned).collect(),
            client_id: "highwater".to_owned(),
            request_timeout: Millis::new(30_000),
            connection_setup_timeout: Millis::new(10_000),
            retry_backoff: Millis::new(100),
            retry_backoff_max: Millis::new(1_000),
            default_api_timeout: Millis::new(60_000),
            metadata_max_age: Millis::new(300_000),
            allow_auto_create_topics: true,
            answer_bytes_max: 256 * 1024 * 1024,
        }
    }

    /// Sets one of Kafka's keys; `false` for a key that is not of every client.
    ///
    /// # Errors
    /// [`ClientError::Config`] for a value that cannot be meant.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, ClientError> {
        match key {
            "bootstrap.servers" => self.bootstrap_servers = Self::new(value).bootstrap_servers,
            "client.id" => value.clone_into(&mut self.client_id),
            "request.timeout.ms" => self.request_timeout = millis("request.timeout.ms", value)?,
            "socket.connection.setup.timeout.ms" => {
                let limit = millis("socket.connection.setup.timeout.ms", value)?;
                self.connection_setup_timeout = limit;
            }
            "retry.backoff.ms" => self.retry_backoff = millis("retry.backoff.ms", value)?,
            "retry.backoff.max.ms" => {
                self.retry_backoff_max = millis("retry.backoff.max.ms", value)?;
            }
            "default.api.timeout.ms" => {
                self.default_api_timeout = millis("default.api.timeout.ms", value)?;
            }
            "metadata.max.age.ms" => self.metadata_max_age = millis("metadata.max.age.ms", value)?,
            "allow.auto.create.topics" => {
                self.allow_auto_create_topics = switch("allow.auto.create.topics", value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The pause after `failures` attempts in a row.
    pub(crate) fn backoff(&self, failures: u32) -> Millis {
        let factor = 1_u64
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u64::MAX);
        let pause = self.retry_backoff.as_u64().saturating_mul(factor);
        Millis::new(pause.min(self.retry_backoff_max.as_u64()))
    }
}

pub(crate) fn duration(span: Millis) -> std::time::Duration {
    std::time::Duration::from_millis(span.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_bound() {
        let config = ClientConfig::new("a:1, b:2,");
        assert_eq!(config.bootstrap_servers, ["a:1", "b:2"]);
        let pauses: Vec<_> = (1..7).map(|n| config.backoff(n).as_u64()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(config.backoff(u32::MAX).as_u64(), 1000);
    }

    #[test]
    fn keys_are_set_by_kafkas_names() {
        let mut config = ClientConfig::new("");
        assert_eq!(config.set("bootstrap.servers", "h:1,h:2"), Ok(true));
        assert_eq!(config.set("request.timeout.ms", "7"), Ok(true));
        assert_eq!(config.set("acks", "1"), Ok(false));
        assert!(config.set("request.timeout.ms", "soon").is_err());
        assert_eq!(config.bootstrap_servers.len(), 2);
        assert_eq!(config.request_timeout, Millis::new(7));
    }
}
