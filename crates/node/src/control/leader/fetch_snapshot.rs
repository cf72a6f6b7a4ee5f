//! Metadata snapshots for those that lag so far behind that their records are gone (KIP-630).

use bytes::Bytes;
use highwater_disk::{Disk, DiskFile as _, OpenMode};
use highwater_protocol::messages::fetch_snapshot_request::PartitionSnapshot as AskedPartition;
use highwater_protocol::messages::fetch_snapshot_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionSnapshot, SnapshotId, TopicSnapshot,
};
use highwater_protocol::messages::{FetchSnapshotRequest, FetchSnapshotResponse};
use highwater_types::{ErrorCode, LeaderEpoch, Offset, OffsetAndEpoch};

use super::Leader;
use crate::control::files::snapshot_path;

const METADATA_TOPIC: &str = "__cluster_metadata";
/// From this version on answers say where the leader is (KIP-853).
const ENDPOINTS_SINCE: i16 = 1;
/// Most bytes in one answer.
const BYTES_MAX: u64 = 8 << 20;

impl<D: Disk> Leader<D> {
    pub(super) fn fetch_snapshot(
        &self,
        request: &FetchSnapshotRequest,
        version: i16,
    ) -> FetchSnapshotResponse {
        let refused = |error_code| FetchSnapshotResponse {
            error_code,
            ..FetchSnapshotResponse::default()
        };
        let [topic] = request.topics.as_slice() else {
            return refused(ErrorCode::INVALID_REQUEST);
        };
        let [asked] = topic.partitions.as_slice() else {
            return refused(ErrorCode::INVALID_REQUEST);
        };
        let is_other = |id: &String| **id != *self.cluster_id;
        if request.cluster_id.as_ref().is_some_and(is_other) {
            return refused(ErrorCode::INCONSISTENT_CLUSTER_ID);
        }
        let mut partition = PartitionSnapshot {
            index: asked.partition,
            ..PartitionSnapshot::default()
        };
        if topic.name != METADATA_TOPIC || asked.partition != 0 {
            partition.error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        } else {
            partition.current_leader = LeaderIdAndEpoch {
                leader_id: self.config.node_id,
                leader_epoch: self.state.epoch().raw(),
            };
            if let Err(code) = self.read_snapshot(asked, request.max_bytes, &mut partition) {
                partition.error_code = code;
            }
        }
        let endpoint = self.endpoint().filter(|_| version >= ENDPOINTS_SINCE);
        let node_endpoints = endpoint.map(|(node_id, host, port)| NodeEndpoint {
            node_id,
            host,
            port,
        });
        FetchSnapshotResponse {
            topics: vec![TopicSnapshot {
                name: topic.name.clone(),
                partitions: vec![partition],
            }],
            node_endpoints: node_endpoints.into_iter().collect(),
            ..FetchSnapshotResponse::default()
        }
    }

    fn read_snapshot(
        &self,
        asked: &AskedPartition,
        bytes_max: i32,
        partition: &mut PartitionSnapshot,
    ) -> Result<(), ErrorCode> {
        self.check_epoch(LeaderEpoch::new(asked.current_leader_epoch))?;
        let id = OffsetAndEpoch {
            offset: Offset::new(asked.snapshot_id.end_offset),
            epoch: LeaderEpoch::new(asked.snapshot_id.epoch),
        };
        partition.snapshot_id = SnapshotId {
            end_offset: id.offset.raw(),
            epoch: id.epoch.raw(),
        };
        // What `format` left is not among them, and never served.
        if !self.log.snapshots.iter().any(|file| file.id == id) {
            return Err(ErrorCode::SNAPSHOT_NOT_FOUND);
        }
        let unreadable = |_| ErrorCode::KAFKA_STORAGE_ERROR;
        let file = self.log.disk().open(&snapshot_path(id), OpenMode::Read);
        let file = file.map_err(unreadable)?;
        let size = file.len().map_err(unreadable)?;
        let position = u64::try_from(asked.position).ok().filter(|at| *at < size);
        let position = position.ok_or(ErrorCode::POSITION_OUT_OF_RANGE)?;
        let wanted = u64::try_from(bytes_max).unwrap_or(0).min(BYTES_MAX);
        let len = usize::try_from(wanted.min(size - position)).unwrap_or(0);
        let mut bytes = vec![0; len];
        let count = file.read_at(position, &mut bytes).map_err(unreadable)?;
        bytes.truncate(count);
        partition.size = i64::try_from(size).unwrap_or(i64::MAX);
        partition.position = asked.position;
        partition.unaligned_records = Bytes::from(bytes);
        Ok(())
    }
}
