use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_protocol::messages::{
    describe_cluster_request::DescribeClusterRequest,
    describe_cluster_response::{DescribeClusterBroker, DescribeClusterResponse},
};
use highwater_types::ErrorCode;

use super::Leader;
use crate::authorizer::{OPERATIONS_NOT_ASKED, Operation, Resource};
use crate::machine::Caller;
use crate::shard::describe::{ENDPOINT_CONTROLLER, wrong_endpoint};

impl<D: Disk> Leader<D> {
    /// Answers DescribeCluster on a controller listener: the controllers that are registered, as
    /// they announce the listener that the caller came in on (KIP-919).
    pub(super) fn describe_cluster(
        &self,
        image: &MetadataImage,
        caller: &Caller,
        version: i16,
        request: &DescribeClusterRequest,
    ) -> DescribeClusterResponse {
        if request.endpoint_type != ENDPOINT_CONTROLLER {
            return wrong_endpoint(version, request.endpoint_type, ENDPOINT_CONTROLLER);
        }
        if request.include_fenced_brokers {
            return DescribeClusterResponse {
                error_code: ErrorCode::INVALID_REQUEST,
                error_message: Some("Controllers are not fenced.".to_owned()),
                ..DescribeClusterResponse::default()
            };
        }
        let controllers = image.controllers.values().filter_map(|controller| {
            let mut endpoints = controller.endpoints.iter();
            let endpoint = endpoints.find(|it| it.name == caller.listener_name)?;
            Some(DescribeClusterBroker {
                broker_id: controller.id,
                host: endpoint.host.clone(),
                port: i32::from(endpoint.port),
                ..DescribeClusterBroker::default()
            })
        });
        let cluster = Resource::Cluster;
        let described = self.authorizer.allows(caller, Operation::Describe, cluster);
        let operations = match request.include_cluster_authorized_operations {
            true if described => self.authorizer.operations(caller, cluster),
            true => 0,
            false => OPERATIONS_NOT_ASKED,
        };
        DescribeClusterResponse {
            endpoint_type: ENDPOINT_CONTROLLER,
            cluster_id: self.cluster_id.to_string(),
            controller_id: self.config.node_id,
            brokers: controllers.collect(),
            cluster_authorized_operations: operations,
            ..DescribeClusterResponse::default()
        }
    }
}
