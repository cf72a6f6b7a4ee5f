use highwater_records::DECOMPRESSED_BYTES_MAX;
use highwater_types::Millis;

use crate::error::ClientError;
use crate::offsets::{IsolationLevel, OffsetSpec};
use crate::setting::{refused, switch, wire_millis, wire_number};

/// Where to go on when a position is outside the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffsetReset {
    /// At the log start.
    Earliest,
    /// At the end, and miss what lies between.
    #[default]
    Latest,
    /// Nowhere: it is an error.
    None,
}

impl OffsetReset {
    pub(super) const fn spec(self) -> Option<OffsetSpec> {
        match self {
            Self::Earliest => Some(OffsetSpec::Earliest),
            Self::Latest => Some(OffsetSpec::Latest),
            Self::None => None,
        }
    }
}

/// How a consumer works. Fields are named after Kafka's keys and have Kafka's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// `isolation.level`.
    pub isolation_level: IsolationLevel,
    /// `auto.offset.reset`.
    pub auto_offset_reset: OffsetReset,
    /// `fetch.min.bytes`: the broker answers once it has this much, or `fetch.max.wait.ms` is
    /// over.
    pub fetch_min_bytes: i32,
    /// `fetch.max.wait.ms`.
    pub fetch_max_wait: Millis,
    /// `fetch.max.bytes`: bytes of an answer.
    pub fetch_max_bytes: i32,
    /// `max.partition.fetch.bytes`: bytes of one partition in an answer; a larger batch comes all
    /// the same.
    pub max_partition_fetch_bytes: i32,
    /// `check.crcs`.
    pub check_crcs: bool,
    /// Bytes that one batch may decompress to.
    pub decompressed_bytes_max: u64,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            isolation_level: IsolationLevel::ReadUncommitted,
            auto_offset_reset: OffsetReset::Latest,
            fetch_min_bytes: 1,
            fetch_max_wait: Millis::new(500),
            fetch_max_bytes: 50 * 1024 * 1024,
            max_partition_fetch_bytes: 1024 * 1024,
            check_crcs: true,
            decompressed_bytes_max: DECOMPRESSED_BYTES_MAX,
        }
    }
}

impl ConsumerConfig {
    /// Sets one of Kafka's keys; `false` for a key that is not a consumer's.
    ///
    /// # Errors
    /// [`ClientError::Config`] for a value that cannot be meant.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, ClientError> {
        match key {
            "isolation.level" => {
                self.isolation_level = match value {
                    "read_uncommitted" => IsolationLevel::ReadUncommitted,
                    "read_committed" => IsolationLevel::ReadCommitted,
                    _ => {
                        let why = "it is read_uncommitted or read_committed";
                        return Err(refused("isolation.level", value, why));
                    }
                }
            }
            "auto.offset.reset" => {
                self.auto_offset_reset = match value {
                    "earliest" => OffsetReset::Earliest,
                    "latest" => OffsetReset::Latest,
                    "none" => OffsetReset::None,
                    _ => {
                        let why = "it is earliest, latest or none";
                        return Err(refused("auto.offset.reset", value, why));
                    }
                }
            }
            "fetch.min.bytes" => self.fetch_min_bytes = wire_number("fetch.min.bytes", value)?,
            "fetch.max.wait.ms" => {
                self.fetch_max_wait = wire_millis("fetch.max.wait.ms", value)?;
            }
            "fetch.max.bytes" => self.fetch_max_bytes = wire_number("fetch.max.bytes", value)?,
            "max.partition.fetch.bytes" => {
                self.max_partition_fetch_bytes = wire_number("max.partition.fetch.bytes", value)?;
            }
            "check.crcs" => {
                self.check_crcs = switch("check.crcs", value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_set_by_kafkas_names() {
        let mut config = ConsumerConfig::default();
        assert_eq!(config.set("isolation.level", "read_committed"), Ok(true));
        assert_eq!(config.set("auto.offset.reset", "none"), Ok(true));
        assert_eq!(config.set("fetch.min.bytes", "100"), Ok(true));
        assert_eq!(config.set("acks", "1"), Ok(false));
        assert!(config.set("fetch.min.bytes", "-1").is_err());
        assert!(config.set("isolation.level", "serializable").is_err());
        assert_eq!(config.isolation_level, IsolationLevel::ReadCommitted);
        assert_eq!(config.auto_offset_reset, OffsetReset::None);
    }
}
