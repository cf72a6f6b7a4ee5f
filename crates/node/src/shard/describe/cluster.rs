use highwater_metadata::MetadataImage;
use highwater_protocol::messages::{
    describe_cluster_request::DescribeClusterRequest,
    describe_cluster_response::{DescribeClusterBroker, DescribeClusterResponse},
};
use highwater_types::{ErrorCode, NodeId};

use super::DescribeContext;
use crate::authorizer::OPERATIONS_NOT_ASKED;

/// The endpoint type of brokers in DescribeCluster.
const ENDPOINT_BROKER: i8 = 1;
/// The endpoint type of controllers.
pub(crate) const ENDPOINT_CONTROLLER: i8 = 2;

/// Answers DescribeCluster on a broker listener.
pub(crate) fn describe_cluster(
    cx: &DescribeContext<'_>,
    version: i16,
    request: &DescribeClusterRequest,
) -> DescribeClusterResponse {
    if request.endpoint_type != ENDPOINT_BROKER {
        return wrong_endpoint(version, request.endpoint_type, ENDPOINT_BROKER);
    }
    let brokers = cx
        .image
        .brokers
        .values()
        .filter(|it| request.include_fenced_brokers || !it.fenced);
    let brokers = brokers.filter_map(|broker| {
        let endpoint = broker.endpoint(cx.listener_name())?;
        Some(DescribeClusterBroker {
            broker_id: broker.id,
            host: endpoint.host.clone(),
            port: i32::from(endpoint.port),
            rack: broker.rack.clone(),
            is_fenced: broker.fenced,
        })
    });
    let operations = if request.include_cluster_authorized_operations {
        cx.cluster_operations()
    } else {
        OPERATIONS_NOT_ASKED
    };
    DescribeClusterResponse {
        endpoint_type: ENDPOINT_BROKER,
        cluster_id: cx.settings.cluster_id.to_string(),
        controller_id: live_broker(cx.image, cx.node_id),
        brokers: brokers.collect(),
        cluster_authorized_operations: operations,
        ..Default::default()
    }
}

/// Kafka's brokers name a live broker as the controller: clients send what is for the controller
/// there, and it is forwarded. This one, if it is not fenced.
pub(crate) fn live_broker(image: &MetadataImage, own: NodeId) -> NodeId {
    let live = |id: &NodeId| image.broker(*id).is_some_and(|it| !it.fenced);
    if live(&own) {
        return own;
    }
    image
        .brokers
        .keys()
        .copied()
        .find(live)
        .unwrap_or(NodeId::NONE)
}

/// What is answered when `wanted` is not the type of the endpoint, `this`.
pub(crate) fn wrong_endpoint(version: i16, wanted: i8, this: i8) -> DescribeClusterResponse {
    let name = |kind| match kind {
        ENDPOINT_BROKER => "broker",
        _ => "controller",
    };
    let (error_code, message) = if ![ENDPOINT_BROKER, ENDPOINT_CONTROLLER].contains(&wanted) {
        let text = format!("Unsupported endpoint type {wanted}");
        (ErrorCode::UNSUPPORTED_ENDPOINT_TYPE, text)
    } else {
        let (this, wanted) = (name(this), name(wanted));
        let text = format!("This is an endpoint of a {this}, and one of a {wanted} is wanted.");
        (ErrorCode::MISMATCHED_ENDPOINT_TYPE, text)
    };
    let error_code = if version == 0 {
        ErrorCode::INVALID_REQUEST
    } else {
        error_code
    };
    DescribeClusterResponse {
        error_code,
        error_message: Some(message),
        ..Default::default()
    }
}
