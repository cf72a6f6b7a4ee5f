//! Answers that are made of the metadata image and the node's configuration alone.

mod api_versions;
mod cluster;
mod configs;
mod metadata;
mod operations;
mod partitions;
mod topic_partitions;

use highwater_metadata::MetadataImage;
use highwater_types::NodeId;

pub(crate) use api_versions::{ApiVersionsContext, api_versions};
pub(crate) use cluster::describe_cluster;
pub(crate) use configs::describe_configs;
pub(crate) use metadata::{MetadataAnswer, metadata, wants_all};
pub(crate) use partitions::{is_internal, live_brokers};
pub(crate) use topic_partitions::describe_topic_partitions;

use super::serving::ServingSettings;

/// What descriptions are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribeContext<'a> {
    /// The metadata that this node acts on.
    pub(crate) image: &'a MetadataImage,
    /// The node's configuration.
    pub(crate) settings: &'a ServingSettings,
    /// This node.
    pub(crate) node_id: NodeId,
    /// The listener that the request came in on: other brokers are named as they announce it.
    pub(crate) listener_name: &'a str,
}
