//! Requests, responses and headers, one file per message.
//!
//! Generated from `crates/protocol/schemas` by `cargo xtask codegen`; not edited by hand.

pub mod allocate_producer_ids_request;
pub mod allocate_producer_ids_response;
pub mod api_versions_request;
pub mod api_versions_response;
pub mod broker_heartbeat_request;
pub mod broker_heartbeat_response;
pub mod broker_registration_request;
pub mod broker_registration_response;
pub mod create_topics_request;
pub mod create_topics_response;
pub mod delete_topics_request;
pub mod delete_topics_response;
pub mod describe_cluster_request;
pub mod describe_cluster_response;
pub mod describe_configs_request;
pub mod describe_configs_response;
pub mod describe_topic_partitions_request;
pub mod describe_topic_partitions_response;
pub mod fetch_request;
pub mod fetch_response;
pub mod init_producer_id_request;
pub mod init_producer_id_response;
pub mod list_offsets_request;
pub mod list_offsets_response;
pub mod metadata_request;
pub mod metadata_response;
pub mod offset_for_leader_epoch_request;
pub mod offset_for_leader_epoch_response;
pub mod produce_request;
pub mod produce_response;
pub mod request_header;
pub mod response_header;

pub use self::allocate_producer_ids_request::AllocateProducerIdsRequest;
pub use self::allocate_producer_ids_response::AllocateProducerIdsResponse;
pub use self::api_versions_request::ApiVersionsRequest;
pub use self::api_versions_response::ApiVersionsResponse;
pub use self::broker_heartbeat_request::BrokerHeartbeatRequest;
pub use self::broker_heartbeat_response::BrokerHeartbeatResponse;
pub use self::broker_registration_request::BrokerRegistrationRequest;
pub use self::broker_registration_response::BrokerRegistrationResponse;
pub use self::create_topics_request::CreateTopicsRequest;
pub use self::create_topics_response::CreateTopicsResponse;
pub use self::delete_topics_request::DeleteTopicsRequest;
pub use self::delete_topics_response::DeleteTopicsResponse;
pub use self::describe_cluster_request::DescribeClusterRequest;
pub use self::describe_cluster_response::DescribeClusterResponse;
pub use self::describe_configs_request::DescribeConfigsRequest;
pub use self::describe_configs_response::DescribeConfigsResponse;
pub use self::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
pub use self::describe_topic_partitions_response::DescribeTopicPartitionsResponse;
pub use self::fetch_request::FetchRequest;
pub use self::fetch_response::FetchResponse;
pub use self::init_producer_id_request::InitProducerIdRequest;
pub use self::init_producer_id_response::InitProducerIdResponse;
pub use self::list_offsets_request::ListOffsetsRequest;
pub use self::list_offsets_response::ListOffsetsResponse;
pub use self::metadata_request::MetadataRequest;
pub use self::metadata_response::MetadataResponse;
pub use self::offset_for_leader_epoch_request::OffsetForLeaderEpochRequest;
pub use self::offset_for_leader_epoch_response::OffsetForLeaderEpochResponse;
pub use self::produce_request::ProduceRequest;
pub use self::produce_response::ProduceResponse;
pub use self::request_header::RequestHeader;
pub use self::response_header::ResponseHeader;
use crate::wire::MessageInfo;

/// All of them, for tests and fuzzers.
pub const ALL: &[MessageInfo] = &[
    MessageInfo::of::<AllocateProducerIdsRequest>(),
    MessageInfo::of::<AllocateProducerIdsResponse>(),
    MessageInfo::of::<ApiVersionsRequest>(),
    MessageInfo::of::<ApiVersionsResponse>(),
    MessageInfo::of::<BrokerHeartbeatRequest>(),
    MessageInfo::of::<BrokerHeartbeatResponse>(),
    MessageInfo::of::<BrokerRegistrationRequest>(),
    MessageInfo::of::<BrokerRegistrationResponse>(),
    MessageInfo::of::<CreateTopicsRequest>(),
    MessageInfo::of::<CreateTopicsResponse>(),
    MessageInfo::of::<DeleteTopicsRequest>(),
    MessageInfo::of::<DeleteTopicsResponse>(),
    MessageInfo::of::<DescribeClusterRequest>(),
    MessageInfo::of::<DescribeClusterResponse>(),
    MessageInfo::of::<DescribeConfigsRequest>(),
    MessageInfo::of::<DescribeConfigsResponse>(),
    MessageInfo::of::<DescribeTopicPartitionsRequest>(),
    MessageInfo::of::<DescribeTopicPartitionsResponse>(),
    MessageInfo::of::<FetchRequest>(),
    MessageInfo::of::<FetchResponse>(),
    MessageInfo::of::<InitProducerIdRequest>(),
    MessageInfo::of::<InitProducerIdResponse>(),
    MessageInfo::of::<ListOffsetsRequest>(),
    MessageInfo::of::<ListOffsetsResponse>(),
    MessageInfo::of::<MetadataRequest>(),
    MessageInfo::of::<MetadataResponse>(),
    MessageInfo::of::<OffsetForLeaderEpochRequest>(),
    MessageInfo::of::<OffsetForLeaderEpochResponse>(),
    MessageInfo::of::<ProduceRequest>(),
    MessageInfo::of::<ProduceResponse>(),
    MessageInfo::of::<RequestHeader>(),
    MessageInfo::of::<ResponseHeader>(),
];
