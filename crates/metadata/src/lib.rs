//! Cluster image and delta, and the controller's decisions.
//!
//! Nothing here does IO. A metadata record changes state in one place only: replay. The
//! controller's decisions are functions of the image: they return records and an answer.

mod batch;
mod changes;
pub mod config;
pub mod controller;
mod delta;
pub mod image;
mod shared_map;
mod snapshot;

pub use crate::batch::{
    BatchFault, BatchReplayError, BuildBatchError, QuorumRecord, build_batch, build_quorum_batch,
    replay_batch, split_for_batches,
};
pub use crate::changes::ImageChanges;
pub use crate::delta::{EPOCH_MAX, MetadataDelta, ReplayError};
pub use crate::image::MetadataImage;
pub use crate::shared_map::SharedMap;
pub use crate::snapshot::{
    SnapshotControl, SnapshotError, read_snapshot, snapshot_records, write_snapshot,
};
