//! Commands that talk to a cluster, over `highwater-client`.

pub(crate) mod cluster;
pub(crate) mod consume;
pub(crate) mod produce;
pub(crate) mod topic;
