//! Requests, responses and headers, one file per message.
//!
//! Generated from `crates/protocol/schemas` by `cargo xtask codegen`; not edited by hand.

pub mod allocate_producer_ids_request;
pub mod allocate_producer_ids_response;
pub mod alter_partition_request;
pub mod alter_partition_response;
pub mod api_versions_request;
pub mod api_versions_response;
pub mod assign_replicas_to_dirs_request;
pub mod assign_replicas_to_dirs_response;
pub mod broker_heartbeat_request;
pub mod broker_heartbeat_response;
pub mod broker_registration_request;
pub mod broker_registration_response;
pub mod controller_registration_request;
pub mod controller_registration_response;
pub mod create_topics_request;
pub mod create_topics_response;
pub mod default_principal_data;
pub mod delete_groups_request;
pub mod delete_groups_response;
pub mod delete_topics_request;
pub mod delete_topics_response;
pub mod describe_cluster_request;
pub mod describe_cluster_response;
pub mod describe_configs_request;
pub mod describe_configs_response;
pub mod describe_groups_request;
pub mod describe_groups_response;
pub mod describe_quorum_request;
pub mod describe_quorum_response;
pub mod describe_topic_partitions_request;
pub mod describe_topic_partitions_response;
pub mod envelope_request;
pub mod envelope_response;
pub mod fetch_request;
pub mod fetch_response;
pub mod fetch_snapshot_request;
pub mod fetch_snapshot_response;
pub mod find_coordinator_request;
pub mod find_coordinator_response;
pub mod heartbeat_request;
pub mod heartbeat_response;
pub mod init_producer_id_request;
pub mod init_producer_id_response;
pub mod join_group_request;
pub mod join_group_response;
pub mod leave_group_request;
pub mod leave_group_response;
pub mod list_groups_request;
pub mod list_groups_response;
pub mod list_offsets_request;
pub mod list_offsets_response;
pub mod metadata_request;
pub mod metadata_response;
pub mod offset_commit_request;
pub mod offset_commit_response;
pub mod offset_delete_request;
pub mod offset_delete_response;
pub mod offset_fetch_request;
pub mod offset_fetch_response;
pub mod offset_for_leader_epoch_request;
pub mod offset_for_leader_epoch_response;
pub mod produce_request;
pub mod produce_response;
pub mod request_header;
pub mod response_header;
pub mod sync_group_request;
pub mod sync_group_response;

pub use self::{
    allocate_producer_ids_request::AllocateProducerIdsRequest,
    allocate_producer_ids_response::AllocateProducerIdsResponse,
    alter_partition_request::AlterPartitionRequest,
    alter_partition_response::AlterPartitionResponse, api_versions_request::ApiVersionsRequest,
    api_versions_response::ApiVersionsResponse,
    assign_replicas_to_dirs_request::AssignReplicasToDirsRequest,
    assign_replicas_to_dirs_response::AssignReplicasToDirsResponse,
    broker_heartbeat_request::BrokerHeartbeatRequest,
    broker_heartbeat_response::BrokerHeartbeatResponse,
    broker_registration_request::BrokerRegistrationRequest,
    broker_registration_response::BrokerRegistrationResponse,
    controller_registration_request::ControllerRegistrationRequest,
    controller_registration_response::ControllerRegistrationResponse,
    create_topics_request::CreateTopicsRequest, create_topics_response::CreateTopicsResponse,
    default_principal_data::DefaultPrincipalData, delete_groups_request::DeleteGroupsRequest,
    delete_groups_response::DeleteGroupsResponse, delete_topics_request::DeleteTopicsRequest,
    delete_topics_response::DeleteTopicsResponse, describe_cluster_request::DescribeClusterRequest,
    describe_cluster_response::DescribeClusterResponse,
    describe_configs_request::DescribeConfigsRequest,
    describe_configs_response::DescribeConfigsResponse,
    describe_groups_request::DescribeGroupsRequest,
    describe_groups_response::DescribeGroupsResponse,
    describe_quorum_request::DescribeQuorumRequest,
    describe_quorum_response::DescribeQuorumResponse,
    describe_topic_partitions_request::DescribeTopicPartitionsRequest,
    describe_topic_partitions_response::DescribeTopicPartitionsResponse,
    envelope_request::EnvelopeRequest, envelope_response::EnvelopeResponse,
    fetch_request::FetchRequest, fetch_response::FetchResponse,
    fetch_snapshot_request::FetchSnapshotRequest, fetch_snapshot_response::FetchSnapshotResponse,
    find_coordinator_request::FindCoordinatorRequest,
    find_coordinator_response::FindCoordinatorResponse, heartbeat_request::HeartbeatRequest,
    heartbeat_response::HeartbeatResponse, init_producer_id_request::InitProducerIdRequest,
    init_producer_id_response::InitProducerIdResponse, join_group_request::JoinGroupRequest,
    join_group_response::JoinGroupResponse, leave_group_request::LeaveGroupRequest,
    leave_group_response::LeaveGroupResponse, list_groups_request::ListGroupsRequest,
    list_groups_response::ListGroupsResponse, list_offsets_request::ListOffsetsRequest,
    list_offsets_response::ListOffsetsResponse, metadata_request::MetadataRequest,
    metadata_response::MetadataResponse, offset_commit_request::OffsetCommitRequest,
    offset_commit_response::OffsetCommitResponse, offset_delete_request::OffsetDeleteRequest,
    offset_delete_response::OffsetDeleteResponse, offset_fetch_request::OffsetFetchRequest,
    offset_fetch_response::OffsetFetchResponse,
    offset_for_leader_epoch_request::OffsetForLeaderEpochRequest,
    offset_for_leader_epoch_response::OffsetForLeaderEpochResponse,
    produce_request::ProduceRequest, produce_response::ProduceResponse,
    request_header::RequestHeader, response_header::ResponseHeader,
    sync_group_request::SyncGroupRequest, sync_group_response::SyncGroupResponse,
};
use crate::wire::MessageInfo;

/// All of them, for tests and fuzzers.
pub const ALL: &[MessageInfo] = &[
    MessageInfo::of::<AllocateProducerIdsRequest>(),
    MessageInfo::of::<AllocateProducerIdsResponse>(),
    MessageInfo::of::<AlterPartitionRequest>(),
    MessageInfo::of::<AlterPartitionResponse>(),
    MessageInfo::of::<ApiVersionsRequest>(),
    MessageInfo::of::<ApiVersionsResponse>(),
    MessageInfo::of::<AssignReplicasToDirsRequest>(),
    MessageInfo::of::<AssignReplicasToDirsResponse>(),
    MessageInfo::of::<BrokerHeartbeatRequest>(),
    MessageInfo::of::<BrokerHeartbeatResponse>(),
    MessageInfo::of::<BrokerRegistrationRequest>(),
    MessageInfo::of::<BrokerRegistrationResponse>(),
    MessageInfo::of::<ControllerRegistrationRequest>(),
    MessageInfo::of::<ControllerRegistrationResponse>(),
    MessageInfo::of::<CreateTopicsRequest>(),
    MessageInfo::of::<CreateTopicsResponse>(),
    MessageInfo::of::<DefaultPrincipalData>(),
    MessageInfo::of::<DeleteGroupsRequest>(),
    MessageInfo::of::<DeleteGroupsResponse>(),
    MessageInfo::of::<DeleteTopicsRequest>(),
    MessageInfo::of::<DeleteTopicsResponse>(),
    MessageInfo::of::<DescribeClusterRequest>(),
    MessageInfo::of::<DescribeClusterResponse>(),
    MessageInfo::of::<DescribeConfigsRequest>(),
    MessageInfo::of::<DescribeConfigsResponse>(),
    MessageInfo::of::<DescribeGroupsRequest>(),
    MessageInfo::of::<DescribeGroupsResponse>(),
    MessageInfo::of::<DescribeQuorumRequest>(),
    MessageInfo::of::<DescribeQuorumResponse>(),
    MessageInfo::of::<DescribeTopicPartitionsRequest>(),
    MessageInfo::of::<DescribeTopicPartitionsResponse>(),
    MessageInfo::of::<EnvelopeRequest>(),
    MessageInfo::of::<EnvelopeResponse>(),
    MessageInfo::of::<FetchRequest>(),
    MessageInfo::of::<FetchResponse>(),
    MessageInfo::of::<FetchSnapshotRequest>(),
    MessageInfo::of::<FetchSnapshotResponse>(),
    MessageInfo::of::<FindCoordinatorRequest>(),
    MessageInfo::of::<FindCoordinatorResponse>(),
    MessageInfo::of::<HeartbeatRequest>(),
    MessageInfo::of::<HeartbeatResponse>(),
    MessageInfo::of::<InitProducerIdRequest>(),
    MessageInfo::of::<InitProducerIdResponse>(),
    MessageInfo::of::<JoinGroupRequest>(),
    MessageInfo::of::<JoinGroupResponse>(),
    MessageInfo::of::<LeaveGroupRequest>(),
    MessageInfo::of::<LeaveGroupResponse>(),
    MessageInfo::of::<ListGroupsRequest>(),
    MessageInfo::of::<ListGroupsResponse>(),
    MessageInfo::of::<ListOffsetsRequest>(),
    MessageInfo::of::<ListOffsetsResponse>(),
    MessageInfo::of::<MetadataRequest>(),
    MessageInfo::of::<MetadataResponse>(),
    MessageInfo::of::<OffsetCommitRequest>(),
    MessageInfo::of::<OffsetCommitResponse>(),
    MessageInfo::of::<OffsetDeleteRequest>(),
    MessageInfo::of::<OffsetDeleteResponse>(),
    MessageInfo::of::<OffsetFetchRequest>(),
    MessageInfo::of::<OffsetFetchResponse>(),
    MessageInfo::of::<OffsetForLeaderEpochRequest>(),
    MessageInfo::of::<OffsetForLeaderEpochResponse>(),
    MessageInfo::of::<ProduceRequest>(),
    MessageInfo::of::<ProduceResponse>(),
    MessageInfo::of::<RequestHeader>(),
    MessageInfo::of::<ResponseHeader>(),
    MessageInfo::of::<SyncGroupRequest>(),
    MessageInfo::of::<SyncGroupResponse>(),
];
