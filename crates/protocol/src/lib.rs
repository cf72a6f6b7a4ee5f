//! Kafka's wire messages, frames, headers and supported versions.

pub mod messages;

pub use highwater_records::wire;

/// Which APIs and versions a listener offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerKind {
    /// For clients and brokers.
    Broker,
    /// For controllers, and brokers that talk to them.
    Controller,
}

/// The APIs that this build serves or calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "being written")]
pub enum ApiKey {
    Produce,
    Fetch,
    ListOffsets,
    Metadata,
    ApiVersions,
    CreateTopics,
    DeleteTopics,
    InitProducerId,
    OffsetForLeaderEpoch,
    DescribeConfigs,
    DescribeCluster,
    BrokerRegistration,
    BrokerHeartbeat,
    AllocateProducerIds,
    DescribeTopicPartitions,
}

/// A decoded request (being written).
#[derive(Clone, Debug, PartialEq)]
pub enum Request {}

/// A decoded response (being written).
#[derive(Clone, Debug, PartialEq)]
pub enum Response {}
