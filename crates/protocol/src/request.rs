use bytes::Bytes;

use crate::api::ApiKey;
use crate::fetch_view::FetchView;
use crate::messages::{
    AllocateProducerIdsRequest, AlterPartitionRequest, ApiVersionsRequest,
    AssignReplicasToDirsRequest, BrokerHeartbeatRequest, BrokerRegistrationRequest,
    ControllerRegistrationRequest, CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeGroupsRequest, DescribeQuorumRequest,
    DescribeTopicPartitionsRequest, EnvelopeRequest, FetchRequest, FetchSnapshotRequest,
    FindCoordinatorRequest, HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest,
    LeaveGroupRequest, ListGroupsRequest, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest, ProduceRequest,
    SyncGroupRequest,
};
use crate::produce_view::ProduceView;
use crate::wire::{DecodeError, EncodeError, Message as _, Reader};

/// Memory that the array elements of a request may take up, in bytes: hundreds of thousands of
/// topics or partitions, more than any client asks about at once. Answers are a few times larger.
const MEMORY_MAX: usize = 16 << 20;

macro_rules! requests {
    ($($name:ident($request:ident);)*) => {
        /// A request that a node sends to another. Produce and Fetch are messages, not views.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is named after its API")]
        pub enum OutRequest {
            Produce(ProduceRequest),
            Fetch(FetchRequest),
            $($name($request),)*
        }

        $(impl From<$request> for OutRequest {
            fn from(request: $request) -> Self {
                Self::$name(request)
            }
        })*

        impl OutRequest {
            /// The request's API.
            #[must_use]
            pub const fn api_key(&self) -> ApiKey {
                match self {
                    Self::Produce(_) => ApiKey::Produce,
                    Self::Fetch(_) => ApiKey::Fetch,
                    $(Self::$name(_) => ApiKey::$name,)*
                }
            }

            /// The request's body at `version`.
            ///
            /// # Errors
            /// When `version` does not exist or cannot carry what is set.
            pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
                match self {
                    Self::Produce(request) => request.to_bytes(version),
                    Self::Fetch(request) => request.to_bytes(version),
                    $(Self::$name(request) => request.to_bytes(version),)*
                }
            }
        }

        /// A decoded request. Produce and Fetch are views over their bytes.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is named after its API")]
        pub enum Request {
            Produce(ProduceView),
            Fetch(FetchView),
            $($name($request),)*
        }

        $(impl From<$request> for Request {
            fn from(request: $request) -> Self {
                Self::$name(request)
            }
        })*

        impl Request {
            /// The request's API.
            #[must_use]
            pub const fn api_key(&self) -> ApiKey {
                match self {
                    Self::Produce(_) => ApiKey::Produce,
                    Self::Fetch(_) => ApiKey::Fetch,
                    $(Self::$name(_) => ApiKey::$name,)*
                }
            }

            /// Decodes a request's body. Bytes after its end are ignored, as Kafka does:
            /// librdkafka 2.16 sends three in Metadata v13.
            ///
            /// # Errors
            /// When the bytes are not such a request, would take up too much memory, or there is
            /// no such version.
            pub fn decode(
                api_key: ApiKey,
                version: i16,
                body: Bytes,
            ) -> Result<Self, DecodeError> {
                Ok(match api_key {
                    ApiKey::Produce => Self::Produce(ProduceView::decode(body, version)?),
                    ApiKey::Fetch => Self::Fetch(FetchView::decode(body, version)?),
                    $(ApiKey::$name => {
                        let mut r = Reader::new(&body).with_memory_max(MEMORY_MAX);
                        Self::$name($request::decode(&mut r, version)?)
                    })*
                })
            }

            /// The request's body at `version`.
            ///
            /// # Errors
            /// When `version` does not exist or cannot carry what is set.
            pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
                match self {
                    Self::Produce(view) if view.version() == version => Ok(view.body().clone()),
                    Self::Produce(view) => {
                        let message = ProduceRequest::from_bytes(view.body(), view.version());
                        message.expect("a view was checked").to_bytes(version)
                    }
                    Self::Fetch(view) if view.version() == version => Ok(view.body().clone()),
                    Self::Fetch(view) => {
                        let message = FetchRequest::from_bytes(view.body(), view.version());
                        message.expect("a view was checked").to_bytes(version)
                    }
                    $(Self::$name(request) => request.to_bytes(version),)*
                }
            }
        }
    };
}

requests! {
    ListOffsets(ListOffsetsRequest);
    Metadata(MetadataRequest);
    OffsetCommit(OffsetCommitRequest);
    OffsetFetch(OffsetFetchRequest);
    FindCoordinator(FindCoordinatorRequest);
    JoinGroup(JoinGroupRequest);
    Heartbeat(HeartbeatRequest);
    LeaveGroup(LeaveGroupRequest);
    SyncGroup(SyncGroupRequest);
    DescribeGroups(DescribeGroupsRequest);
    ListGroups(ListGroupsRequest);
    ApiVersions(ApiVersionsRequest);
    CreateTopics(CreateTopicsRequest);
    DeleteTopics(DeleteTopicsRequest);
    InitProducerId(InitProducerIdRequest);
    OffsetForLeaderEpoch(OffsetForLeaderEpochRequest);
    DescribeConfigs(DescribeConfigsRequest);
    DeleteGroups(DeleteGroupsRequest);
    OffsetDelete(OffsetDeleteRequest);
    DescribeQuorum(DescribeQuorumRequest);
    AlterPartition(AlterPartitionRequest);
    Envelope(EnvelopeRequest);
    FetchSnapshot(FetchSnapshotRequest);
    DescribeCluster(DescribeClusterRequest);
    BrokerRegistration(BrokerRegistrationRequest);
    BrokerHeartbeat(BrokerHeartbeatRequest);
    AllocateProducerIds(AllocateProducerIdsRequest);
    ControllerRegistration(ControllerRegistrationRequest);
    AssignReplicasToDirs(AssignReplicasToDirsRequest);
    DescribeTopicPartitions(DescribeTopicPartitionsRequest);
}

impl From<ProduceView> for Request {
    fn from(view: ProduceView) -> Self {
        Self::Produce(view)
    }
}

impl From<FetchView> for Request {
    fn from(view: FetchView) -> Self {
        Self::Fetch(view)
    }
}

impl From<ProduceRequest> for OutRequest {
    fn from(request: ProduceRequest) -> Self {
        Self::Produce(request)
    }
}

impl From<FetchRequest> for OutRequest {
    fn from(request: FetchRequest) -> Self {
        Self::Fetch(request)
    }
}
