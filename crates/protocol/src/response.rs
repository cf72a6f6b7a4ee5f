use bytes::Bytes;

use crate::api::ApiKey;
use crate::messages::{
    AllocateProducerIdsResponse, AlterPartitionResponse, ApiVersionsResponse,
    AssignReplicasToDirsResponse, BrokerHeartbeatResponse, BrokerRegistrationResponse,
    ControllerRegistrationResponse, CreateTopicsResponse, DeleteGroupsResponse,
    DeleteTopicsResponse, DescribeClusterResponse, DescribeConfigsResponse, DescribeGroupsResponse,
    DescribeQuorumResponse, DescribeTopicPartitionsResponse, EnvelopeResponse, FetchResponse,
    FetchSnapshotResponse, FindCoordinatorResponse, HeartbeatResponse, InitProducerIdResponse,
    JoinGroupResponse, LeaveGroupResponse, ListGroupsResponse, ListOffsetsResponse,
    MetadataResponse, OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse,
    OffsetForLeaderEpochResponse, ProduceResponse, SyncGroupResponse,
};
use crate::wire::{DecodeError, EncodeError, Message as _};

macro_rules! responses {
    ($($name:ident($response:ident);)*) => {
        /// A decoded answer.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is named after its API")]
        pub enum Response {
            $($name($response),)*
        }

        $(impl From<$response> for Response {
            fn from(response: $response) -> Self {
                Self::$name(response)
            }
        })*

        impl Response {
            /// The answer's API.
            #[must_use]
            pub const fn api_key(&self) -> ApiKey {
                match self {
                    $(Self::$name(_) => ApiKey::$name,)*
                }
            }

            /// Decodes an answer's body. Bytes after its end are ignored.
            ///
            /// # Errors
            /// When the bytes are not such an answer, or there is no such version.
            pub fn decode(
                api_key: ApiKey,
                version: i16,
                body: &Bytes,
            ) -> Result<Self, DecodeError> {
                Ok(match api_key {
                    $(ApiKey::$name => Self::$name($response::from_bytes(body, version)?),)*
                })
            }

            /// The answer's body at `version`.
            ///
            /// # Errors
            /// When `version` does not exist or cannot carry what is set.
            pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
                match self {
                    $(Self::$name(response) => response.to_bytes(version),)*
                }
            }
        }
    };
}

responses! {
    Produce(ProduceResponse);
    Fetch(FetchResponse);
    ListOffsets(ListOffsetsResponse);
    Metadata(MetadataResponse);
    OffsetCommit(OffsetCommitResponse);
    OffsetFetch(OffsetFetchResponse);
    FindCoordinator(FindCoordinatorResponse);
    JoinGroup(JoinGroupResponse);
    Heartbeat(HeartbeatResponse);
    LeaveGroup(LeaveGroupResponse);
    SyncGroup(SyncGroupResponse);
    DescribeGroups(DescribeGroupsResponse);
    ListGroups(ListGroupsResponse);
    ApiVersions(ApiVersionsResponse);
    CreateTopics(CreateTopicsResponse);
    DeleteTopics(DeleteTopicsResponse);
    InitProducerId(InitProducerIdResponse);
    OffsetForLeaderEpoch(OffsetForLeaderEpochResponse);
    DescribeConfigs(DescribeConfigsResponse);
    DeleteGroups(DeleteGroupsResponse);
    OffsetDelete(OffsetDeleteResponse);
    DescribeQuorum(DescribeQuorumResponse);
    AlterPartition(AlterPartitionResponse);
    Envelope(EnvelopeResponse);
    FetchSnapshot(FetchSnapshotResponse);
    DescribeCluster(DescribeClusterResponse);
    BrokerRegistration(BrokerRegistrationResponse);
    BrokerHeartbeat(BrokerHeartbeatResponse);
    AllocateProducerIds(AllocateProducerIdsResponse);
    ControllerRegistration(ControllerRegistrationResponse);
    AssignReplicasToDirs(AssignReplicasToDirsResponse);
    DescribeTopicPartitions(DescribeTopicPartitionsResponse);
}
