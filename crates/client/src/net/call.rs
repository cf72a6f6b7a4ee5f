use highwater_protocol::ApiKey;
use highwater_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, DescribeClusterRequest, DescribeClusterResponse,
    DescribeConfigsRequest, DescribeConfigsResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, FetchRequest, FetchResponse, InitProducerIdRequest,
    InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse, MetadataRequest,
    MetadataResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, ProduceRequest,
    ProduceResponse,
};
use highwater_protocol::wire::Message;

/// A request that knows its API and its answer.
pub trait Call: Message {
    /// The answer.
    type Answer: Message;
    /// The API.
    const API: ApiKey;
}

macro_rules! calls {
    ($($api:ident $request:ident $answer:ident;)*) => {
        $(impl Call for $request {
            type Answer = $answer;
            const API: ApiKey = ApiKey::$api;
        })*
    };
}

calls! {
    Produce ProduceRequest ProduceResponse;
    Fetch FetchRequest FetchResponse;
    ListOffsets ListOffsetsRequest ListOffsetsResponse;
    Metadata MetadataRequest MetadataResponse;
    ApiVersions ApiVersionsRequest ApiVersionsResponse;
    CreateTopics CreateTopicsRequest CreateTopicsResponse;
    DeleteTopics DeleteTopicsRequest DeleteTopicsResponse;
    InitProducerId InitProducerIdRequest InitProducerIdResponse;
    OffsetForLeaderEpoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse;
    DescribeConfigs DescribeConfigsRequest DescribeConfigsResponse;
    DescribeCluster DescribeClusterRequest DescribeClusterResponse;
    DescribeTopicPartitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse;
}
