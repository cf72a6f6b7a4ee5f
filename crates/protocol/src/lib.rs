//! Kafka's wire messages, frames, headers and supported versions.
