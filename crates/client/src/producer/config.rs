use highwater_records::{Compression, Compressor};
use highwater_types::Millis;

use crate::error::ClientError;
use crate::setting::{millis, number, refused, switch};

/// When a record counts as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// Once it is written to the socket; it may be lost and nobody will know.
    None,
    /// Once the leader has appended it.
    Leader,
    /// Once all in-sync replicas have it.
    #[default]
    All,
}

impl Acks {
    /// The number on the wire.
    #[must_use]
    pub const fn raw(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// How a producer works. Fields are named after Kafka's keys and have Kafka's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerConfig {
    /// `acks`.
    pub acks: Acks,
    /// `buffer.memory`: bytes of records that may wait to be acknowledged.
    pub buffer_memory: usize,
    /// `batch.size`: bytes of a batch, before compression; a larger record gets its own.
    pub batch_size: usize,
    /// `linger.ms`: how long a batch that is not full waits for more records.
    pub linger: Millis,
    /// `max.block.ms`: how long a send waits for metadata and memory.
    pub max_block: Millis,
    /// `delivery.timeout.ms`: how long a record may take from send to acknowledgement.
    pub delivery_timeout: Millis,
    /// `retries`: how often a batch is tried again.
    pub retries: u32,
    /// `compression.type` and the level of that codec.
    pub compressor: Compressor,
    /// `enable.idempotence`; `None`: on, unless another key forbids it.
    pub enable_idempotence: Option<bool>,
    /// `max.in.flight.requests.per.connection`.
    pub max_in_flight: usize,
    /// `max.request.size`: bytes of a request, before compression.
    pub max_request_size: usize,
}

impl Default for ProducerConfig {
    fn default() -> Self {
        Self {
            acks: Acks::All,
            buffer_memory: 32 * 1024 * 1024,
            batch_size: 16 * 1024,
            linger: Millis::new(5),
            max_block: Millis::new(60_000),
            delivery_timeout: Millis::new(120_000),
            retries: i32::MAX.unsigned_abs(),
            compressor: Compressor::new(Compression::None),
            enable_idempotence: None,
            max_in_flight: 5,
            max_request_size: 1024 * 1024,
        }
    }
}

impl ProducerConfig {
    /// Sets one of Kafka's keys; `false` for a key that is not a producer's.
    ///
    /// # Errors
    /// [`ClientError::Config`] for a value that cannot be meant.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, ClientError> {
        match key {
            "acks" => {
                self.acks = match value {
                    "0" => Acks::None,
                    "1" => Acks::Leader,
                    "all" | "-1" => Acks::All,
                    _ => return Err(refused("acks", value, "it is 0, 1 or all")),
                }
            }
            "buffer.memory" => self.buffer_memory = number("buffer.memory", value)?,
            "batch.size" => self.batch_size = number("batch.size", value)?,
            "linger.ms" => self.linger = millis("linger.ms", value)?,
            "max.block.ms" => self.max_block = millis("max.block.ms", value)?,
            "delivery.timeout.ms" => {
                self.delivery_timeout = millis("delivery.timeout.ms", value)?;
            }
            "retries" => self.retries = number("retries", value)?,
            "compression.type" => {
                let codec = Compression::from_name(value).ok_or_else(|| {
                    refused(
                        "compression.type",
                        value,
                        "it is none, gzip, snappy, lz4 or zstd",
                    )
                })?;
                self.compressor.compression = codec;
            }
            "compression.gzip.level" | "compression.zstd.level" | "compression.lz4.level" => {
                let level = value
                    .parse()
                    .map_err(|_| refused("compression level", value, "a number"));
                let codec = key.split('.').nth(1).and_then(Compression::from_name);
                if codec == Some(self.compressor.compression) {
                    self.compressor.level = Some(level?);
                }
            }
            "enable.idempotence" => {
                self.enable_idempotence = Some(switch("enable.idempotence", value)?);
            }
            "max.in.flight.requests.per.connection" => {
                self.max_in_flight = number("max.in.flight.requests.per.connection", value)?;
            }
            "max.request.size" => self.max_request_size = number("max.request.size", value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks the keys against each other; whether batches get sequences.
    pub(super) fn check(&self) -> Result<bool, ClientError> {
        if self.max_in_flight == 0 {
            let key = "max.in.flight.requests.per.connection";
            return Err(refused(key, "0", "at least 1 is needed"));
        }
        if self.batch_size > self.buffer_memory {
            let value = self.batch_size.to_string();
            return Err(refused(
                "batch.size",
                &value,
                "it is larger than buffer.memory",
            ));
        }
        if u32::try_from(self.buffer_memory).is_err() {
            let value = self.buffer_memory.to_string();
            return Err(refused(
                "buffer.memory",
                &value,
                "at most 4294967295 bytes are possible",
            ));
        }
        let fits = self.acks == Acks::All && self.max_in_flight <= 5 && self.retries > 0;
        match self.enable_idempotence {
            Some(true) if !fits => Err(refused(
                "enable.idempotence",
                "true",
                "it needs acks=all, retries above 0 and at most 5 requests in flight",
            )),
            Some(on) => Ok(on),
            None => Ok(fits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_set_by_kafkas_names() {
        let mut config = ProducerConfig::default();
        for (key, value) in [
            ("acks", "1"),
            ("linger.ms", "0"),
            ("compression.type", "zstd"),
            ("compression.zstd.level", "7"),
            ("compression.gzip.level", "1"),
        ] {
            assert_eq!(config.set(key, value), Ok(true), "{key}");
        }
        assert_eq!(config.acks, Acks::Leader);
        let zstd = Compressor {
            compression: Compression::Zstd,
            level: Some(7),
        };
        assert_eq!(config.compressor, zstd);
        assert_eq!(config.set("group.id", "x"), Ok(false));
        assert!(
            config
                .set("acks", "2")
                .unwrap_err()
                .to_string()
                .contains("acks=2")
        );
        assert!(config.set("batch.size", "-1").is_err());
    }

    #[test]
    fn idempotence_is_on_where_it_can_be() {
        let config = ProducerConfig::default();
        assert_eq!(config.check(), Ok(true));
        assert_eq!(
            ProducerConfig {
                acks: Acks::Leader,
                ..config.clone()
            }
            .check(),
            Ok(false)
        );
        assert_eq!(
            ProducerConfig {
                max_in_flight: 6,
                ..config.clone()
            }
            .check(),
            Ok(false)
        );
        let asked = ProducerConfig {
            enable_idempotence: Some(true),
            retries: 0,
            ..config
        };
        assert!(asked.check().is_err());
    }
}
