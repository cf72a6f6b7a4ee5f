//! The async client: connections, a batching producer, a consumer by partition and one in a group,
//! admin calls.
//!
//! [`Client`] is the way in: it knows the brokers and the leaders. [`Producer`], [`Consumer`] and
//! [`GroupConsumer`] are made from it and have connections of their own.

mod admin;
mod cluster;
mod config;
mod consumer;
mod error;
mod group;
mod metadata;
mod net;
mod offsets;
mod producer;
mod setting;

pub use crate::admin::{ClusterBroker, ClusterDescription, ConfigResource, CreatedTopic, NewTopic};
pub use crate::cluster::Client;
pub use crate::config::ClientConfig;
pub use crate::consumer::{
    Consumer, ConsumerConfig, FetchedBatch, OffsetReset, PartitionRecords, StartAt,
};
pub use crate::error::ClientError;
pub use crate::group::{
    CommitResults, CommittedOffsets, GroupConfig, GroupConsumer, GroupDescription, GroupListing,
    MemberDescription, RecordCounts,
};
pub use crate::metadata::{BrokerMetadata, Metadata, PartitionMetadata, TopicMetadata};
pub use crate::net::{Call, Connection};
pub use crate::offsets::{IsolationLevel, ListedOffset, OffsetSpec, PartitionName};
pub use crate::producer::{
    Acks, Delivery, Producer, ProducerConfig, ProducerRecord, RecordMetadata,
};
