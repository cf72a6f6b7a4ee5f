use highwater_metadata::config::BrokerConfig;
use highwater_types::Millis;

/// What followers take from the node's static config, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FollowSettings {
    /// `replica.fetch.wait.max.ms`.
    pub(super) wait_max: Millis,
    /// `replica.fetch.min.bytes`.
    pub(super) bytes_min: i32,
    /// `replica.fetch.max.bytes`.
    pub(super) partition_bytes_max: i32,
    /// `replica.fetch.response.max.bytes`.
    pub(super) answer_bytes_max: i32,
    /// `replica.fetch.backoff.ms`.
    pub(super) backoff: Millis,
    /// `replica.socket.timeout.ms`, but more than a fetch may wait.
    pub(super) timeout: Millis,
    /// `inter.broker.listener.name`.
    pub(super) listener: Option<String>,
}

/// How much longer than its wait a fetch may take.
const TIMEOUT_BEYOND_WAIT: u64 = 1_000;

impl FollowSettings {
    pub(crate) fn new(config: &BrokerConfig) -> Self {
        let bytes = |name| i32::try_from(config.count(name)).unwrap_or(i32::MAX);
        let wait_max = config.count("replica.fetch.wait.max.ms");
        let timeout = config.count("replica.socket.timeout.ms");
        Self {
            wait_max: Millis::new(wait_max),
            bytes_min: bytes("replica.fetch.min.bytes"),
            partition_bytes_max: bytes("replica.fetch.max.bytes"),
            answer_bytes_max: bytes("replica.fetch.response.max.bytes"),
            backoff: Millis::new(config.count("replica.fetch.backoff.ms")),
            timeout: Millis::new(timeout.max(wait_max + TIMEOUT_BEYOND_WAIT)),
            listener: config
                .static_value("inter.broker.listener.name")
                .map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_read_has_kafkas_default() {
        let settings = FollowSettings::new(&BrokerConfig::default());
        assert_eq!(settings.wait_max, Millis::new(500));
        assert_eq!(settings.bytes_min, 1);
        assert_eq!(settings.partition_bytes_max, 1 << 20);
        assert_eq!(settings.answer_bytes_max, 10 << 20);
        assert_eq!(settings.backoff, Millis::new(1_000));
        assert_eq!(settings.timeout, Millis::new(30_000));
    }
}
