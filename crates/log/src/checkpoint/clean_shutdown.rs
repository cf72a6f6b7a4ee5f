//! `.kafka_cleanshutdown` of a log directory: written last at a clean stop, removed at start
//! before any log is loaded.

use highwater_types::BrokerEpoch;

use super::text::{self, CheckpointError};

/// The file's name. Missing or bad: the stop was not clean.
pub const FILE: &str = ".kafka_cleanshutdown";

/// What a clean stop left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanShutdown {
    /// The broker epoch that ended; [`BrokerEpoch::NONE`] in the empty file of older releases.
    pub broker_epoch: BrokerEpoch,
}

impl CleanShutdown {
    /// Reads the file's bytes. A file without bytes is an older release's; it proves a clean stop
    /// but no epoch.
    ///
    /// # Errors
    /// When the bytes are not the JSON that Kafka writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let text = text::text(bytes)?;
        if text.is_empty() {
            return Ok(Self {
                broker_epoch: BrokerEpoch::NONE,
            });
        }
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|_| text::bad_line(1, text))?;
        let field = |key: &'static str| {
            let value = json.get(key).ok_or(CheckpointError::Missing { key })?;
            let number = value.as_i64();
            number.ok_or_else(|| CheckpointError::Value {
                key,
                value: text::clip(text),
            })
        };
        let version = field("version")?;
        if version != 0 {
            return Err(CheckpointError::Version {
                found: version.to_string(),
                expected: 0,
            });
        }
        Ok(Self {
            broker_epoch: BrokerEpoch::new(field("brokerEpoch")?),
        })
    }

    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        format!(r#"{{"version":0,"brokerEpoch":{}}}"#, self.broker_epoch).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn kafkas_own_file_reads_and_writes_back() {
        let files = highwater_fixtures::kafka_data("one-node-clean");
        let bytes = &files[&Path::new("data").join(FILE)];
        let read = CleanShutdown::decode(bytes).expect("Kafka wrote it");
        assert_eq!(&read.encode(), bytes);
        assert!(read.broker_epoch > BrokerEpoch::ZERO);
    }

    #[test]
    fn sc_10_an_empty_file_is_an_old_release_and_garbage_proves_nothing() {
        let empty = CleanShutdown {
            broker_epoch: BrokerEpoch::NONE,
        };
        assert_eq!(CleanShutdown::decode(b""), Ok(empty));
        for bad in [
            &b"{"[..],
            b"7",
            b"{\"version\":0}",
            b"{\"version\":3,\"brokerEpoch\":1}",
            &[0; 9],
        ] {
            assert!(CleanShutdown::decode(bad).is_err(), "{bad:?}");
        }
    }
}
