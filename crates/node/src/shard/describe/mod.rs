//! Answers that are made of the metadata image and the node's configuration alone.

mod api_versions;
mod cluster;
mod configs;
mod metadata;
mod partitions;
mod topic_partitions;

use highwater_metadata::MetadataImage;
use highwater_types::NodeId;

pub(crate) use api_versions::{ApiVersionsContext, api_versions};
pub(crate) use cluster::{ENDPOINT_CONTROLLER, describe_cluster, wrong_endpoint};
pub(crate) use configs::describe_configs;
pub(crate) use metadata::{MetadataAnswer, metadata, wants_all};
pub(crate) use partitions::{is_internal, live_brokers};
pub(crate) use topic_partitions::describe_topic_partitions;

use super::serving::ServingSettings;
use crate::authorizer::{Authorizer, Operation, Resource};
use crate::machine::Caller;

/// What descriptions are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribeContext<'a> {
    /// The metadata that this node acts on.
    pub(crate) image: &'a MetadataImage,
    /// The node's configuration.
    pub(crate) settings: &'a ServingSettings,
    /// This node.
    pub(crate) node_id: NodeId,
    /// Who asked: other brokers are named as they announce the listener that the caller came in on.
    pub(crate) caller: &'a Caller,
    /// Decides what the caller is shown.
    pub(crate) authorizer: &'a dyn Authorizer,
}

impl<'a> DescribeContext<'a> {
    /// The listener that the request came in on.
    pub(crate) fn listener_name(&self) -> &'a str {
        &self.caller.listener_name
    }

    /// Whether the caller may do `operation` on a topic.
    pub(crate) fn allows(&self, operation: Operation, topic: &str) -> bool {
        let resource = Resource::Topic(topic);
        self.authorizer.allows(self.caller, operation, resource)
    }

    /// What the caller may do on the cluster; nothing for those who may not even see it.
    pub(crate) fn cluster_operations(&self) -> i32 {
        let cluster = Resource::Cluster;
        if self
            .authorizer
            .allows(self.caller, Operation::Describe, cluster)
        {
            self.authorizer.operations(self.caller, cluster)
        } else {
            0
        }
    }

    /// What the caller may do on a topic.
    pub(crate) fn topic_operations(&self, topic: &str) -> i32 {
        let resource = Resource::Topic(topic);
        self.authorizer.operations(self.caller, resource)
    }
}
