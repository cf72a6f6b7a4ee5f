//! Kafka's wire messages, frames' headers and supported versions, and the sans-IO client.
//!
//! [`messages`] are generated. [`Request`] and [`Response`] hold any of them; Produce and Fetch
//! requests are views over their bytes ([`ProduceView`], [`FetchView`]), checked once when they
//! come in, so that no trees are built on the hot paths. A fetch answer is written as bytes with
//! record regions between them ([`encode_fetch_answer`]).

mod api;
pub mod client;
mod fetch_answer;
mod fetch_view;
mod header;
pub mod messages;
mod produce_view;
mod request;
mod response;
mod topic_key;

pub use highwater_records::wire;

pub use crate::api::{ApiKey, ApiVersionRange, ListenerKind, supported_versions};
pub use crate::fetch_answer::{
    FetchAnswerHead, FetchPiece, FetchedPartition, FetchedTopic, encode_fetch_answer,
};
pub use crate::fetch_view::{
    FetchPartitionView, FetchPartitions, FetchTopicView, FetchTopics, FetchView,
    ForgottenPartitions, ForgottenTopicView, ForgottenTopics,
};
pub use crate::header::{RequestHeader, api_versions_fallback, response_header_version};
pub use crate::produce_view::{
    ProducePartitionView, ProducePartitions, ProduceTopicView, ProduceTopics, ProduceView,
};
pub use crate::request::{OutRequest, Request};
pub use crate::response::Response;
pub use crate::topic_key::TopicKey;
