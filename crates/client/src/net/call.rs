use highwater_protocol::messages::{
    CreateTopicsRequest, CreateTopicsResponse, DeleteGroupsRequest, DeleteGroupsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, DescribeClusterRequest, DescribeClusterResponse,
    DescribeConfigsRequest, DescribeConfigsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    DescribeQuorumRequest, DescribeQuorumResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, FetchResponse, FindCoordinatorRequest,
    FindCoordinatorResponse, HeartbeatRequest, HeartbeatResponse, InitProducerIdRequest,
    InitProducerIdResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse, ListOffsetsRequest,
    ListOffsetsResponse, MetadataRequest, MetadataResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    ProduceResponse, SyncGroupRequest, SyncGroupResponse,
};
use highwater_protocol::{ApiKey, FetchView, ProduceView, Request, Response};

/// A request that knows its API and its answer.
pub trait Call: Into<Request> + Clone {
    /// The answer.
    type Answer;
    /// The API.
    const API: ApiKey;

    /// The answer out of any answer; `None` for another API's, which does not happen.
    fn answer(response: Response) -> Option<Self::Answer>;
}

macro_rules! calls {
    ($($api:ident $request:ident $answer:ident;)*) => {
        $(impl Call for $request {
            type Answer = $answer;
            const API: ApiKey = ApiKey::$api;

            fn answer(response: Response) -> Option<$answer> {
                match response {
                    Response::$api(answer) => Some(answer),
                    _ => None,
                }
            }
        })*
    };
}

calls! {
    Produce ProduceView ProduceResponse;
    Fetch FetchView FetchResponse;
    ListOffsets ListOffsetsRequest ListOffsetsResponse;
    Metadata MetadataRequest MetadataResponse;
    CreateTopics CreateTopicsRequest CreateTopicsResponse;
    DeleteTopics DeleteTopicsRequest DeleteTopicsResponse;
    InitProducerId InitProducerIdRequest InitProducerIdResponse;
    OffsetForLeaderEpoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse;
    DescribeConfigs DescribeConfigsRequest DescribeConfigsResponse;
    DescribeCluster DescribeClusterRequest DescribeClusterResponse;
    DescribeTopicPartitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse;
    DescribeQuorum DescribeQuorumRequest DescribeQuorumResponse;
    FindCoordinator FindCoordinatorRequest FindCoordinatorResponse;
    JoinGroup JoinGroupRequest JoinGroupResponse;
    SyncGroup SyncGroupRequest SyncGroupResponse;
    Heartbeat HeartbeatRequest HeartbeatResponse;
    LeaveGroup LeaveGroupRequest LeaveGroupResponse;
    OffsetCommit OffsetCommitRequest OffsetCommitResponse;
    OffsetFetch OffsetFetchRequest OffsetFetchResponse;
    OffsetDelete OffsetDeleteRequest OffsetDeleteResponse;
    DescribeGroups DescribeGroupsRequest DescribeGroupsResponse;
    ListGroups ListGroupsRequest ListGroupsResponse;
    DeleteGroups DeleteGroupsRequest DeleteGroupsResponse;
}
