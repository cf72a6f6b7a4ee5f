//! Generated from `crates/protocol/schemas/api/01-Fetch.txt` by `cargo xtask codegen`; not edited by hand.

use bytes::Bytes;
use highwater_types::{ErrorCode, NodeId, ProducerId, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 1; versions 4-18.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponse {
    /// `int32`, versions 1+.
    pub throttle_time_ms: i32,
    /// `int16`, versions 7+.
    pub error_code: ErrorCode,
    /// `int32`, versions 7+.
    pub session_id: i32,
    /// `[]FetchableTopicResponse`, versions 0+.
    pub responses: Vec<FetchableTopicResponse>,
    /// `[]NodeEndpoint`, versions 16+, tag 0.
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Wire for FetchResponse {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            throttle_time_ms: r.read()?,
            ..Self::default()
        };
        if v >= 7 {
            it.error_code = r.read()?;
            it.session_id = r.read()?;
        }
        it.responses = r.read()?;
        r.tags(|tag, r| {
            match tag {
                0 if v >= 16 => it.node_endpoints = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.throttle_time_ms.write(w)?;
        if v >= 7 {
            self.error_code.write(w)?;
            self.session_id.write(w)?;
        } else {
            w.absent(self.session_id == 0, "SessionId")?;
        }
        self.responses.write(w)?;
        w.tags(|tags| {
            if v >= 16 && !self.node_endpoints.is_empty() {
                tags.put(0, &self.node_endpoints)?;
            }
            Ok(())
        })
    }
}

/// Part of [`FetchResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchableTopicResponse {
    /// `string`, versions 0-12.
    pub topic: String,
    /// `uuid`, versions 13+.
    pub topic_id: Uuid,
    /// `[]PartitionData`, versions 0+.
    pub partitions: Vec<PartitionData>,
}

impl Wire for FetchableTopicResponse {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v <= 12 {
            it.topic = r.read()?;
        }
        if v >= 13 {
            it.topic_id = r.read()?;
        }
        it.partitions = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v <= 12 {
            self.topic.write(w)?;
        }
        if v >= 13 {
            self.topic_id.write(w)?;
        }
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionData {
    /// `int32`, versions 0+.
    pub partition_index: i32,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `int64`, versions 0+.
    pub high_watermark: i64,
    /// `int64`, versions 4+.
    pub last_stable_offset: i64,
    /// `int64`, versions 5+.
    pub log_start_offset: i64,
    /// `EpochEndOffset`, versions 12+, tag 0.
    pub diverging_epoch: EpochEndOffset,
    /// `LeaderIdAndEpoch`, versions 12+, tag 1.
    pub current_leader: LeaderIdAndEpoch,
    /// `SnapshotId`, versions 12+, tag 2.
    pub snapshot_id: SnapshotId,
    /// `[]AbortedTransaction`, versions 4+, or null.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// `int32`, versions 11+.
    pub preferred_read_replica: NodeId,
    /// `records`, versions 0+, or null.
    pub records: Option<Bytes>,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: ErrorCode::NONE,
            high_watermark: 0,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: EpochEndOffset::default(),
            current_leader: LeaderIdAndEpoch::default(),
            snapshot_id: SnapshotId::default(),
            aborted_transactions: Some(Vec::new()),
            preferred_read_replica: NodeId::NONE,
            records: None,
        }
    }
}

impl Wire for PartitionData {
    const SIZE_MIN: usize = 30;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            partition_index: r.read()?,
            error_code: r.read()?,
            high_watermark: r.read()?,
            last_stable_offset: r.read()?,
            ..Self::default()
        };
        if v >= 5 {
            it.log_start_offset = r.read()?;
        }
        it.aborted_transactions = r.read()?;
        if v >= 11 {
            it.preferred_read_replica = r.read()?;
        }
        it.records = r.read()?;
        r.tags(|tag, r| {
            match tag {
                0 => it.diverging_epoch = r.read()?,
                1 => it.current_leader = r.read()?,
                2 => it.snapshot_id = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.partition_index.write(w)?;
        self.error_code.write(w)?;
        self.high_watermark.write(w)?;
        self.last_stable_offset.write(w)?;
        if v >= 5 {
            self.log_start_offset.write(w)?;
        }
        self.aborted_transactions.write(w)?;
        if v >= 11 {
            self.preferred_read_replica.write(w)?;
        } else {
            w.absent(
                self.preferred_read_replica == NodeId::NONE,
                "PreferredReadReplica",
            )?;
        }
        self.records.write(w)?;
        if v < 12 {
            w.absent(
                self.diverging_epoch == EpochEndOffset::default(),
                "DivergingEpoch",
            )?;
            w.absent(self.snapshot_id == SnapshotId::default(), "SnapshotId")?;
        }
        w.tags(|tags| {
            if self.diverging_epoch != EpochEndOffset::default() {
                tags.put(0, &self.diverging_epoch)?;
            }
            if self.current_leader != LeaderIdAndEpoch::default() {
                tags.put(1, &self.current_leader)?;
            }
            if self.snapshot_id != SnapshotId::default() {
                tags.put(2, &self.snapshot_id)?;
            }
            Ok(())
        })
    }
}

/// Part of [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochEndOffset {
    /// `int32`, versions 12+.
    pub epoch: i32,
    /// `int64`, versions 12+.
    pub end_offset: i64,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self {
            epoch: -1,
            end_offset: -1,
        }
    }
}

impl Wire for EpochEndOffset {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            epoch: r.read()?,
            end_offset: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.epoch.write(w)?;
        self.end_offset.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderIdAndEpoch {
    /// `int32`, versions 12+.
    pub leader_id: NodeId,
    /// `int32`, versions 12+.
    pub leader_epoch: i32,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self {
            leader_id: NodeId::NONE,
            leader_epoch: -1,
        }
    }
}

impl Wire for LeaderIdAndEpoch {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            leader_id: r.read()?,
            leader_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.leader_id.write(w)?;
        self.leader_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotId {
    /// `int64`, versions 0+.
    pub end_offset: i64,
    /// `int32`, versions 0+.
    pub epoch: i32,
}

impl Default for SnapshotId {
    fn default() -> Self {
        Self {
            end_offset: -1,
            epoch: -1,
        }
    }
}

impl Wire for SnapshotId {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            end_offset: r.read()?,
            epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.end_offset.write(w)?;
        self.epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// `int64`, versions 4+.
    pub producer_id: ProducerId,
    /// `int64`, versions 4+.
    pub first_offset: i64,
}

impl Default for AbortedTransaction {
    fn default() -> Self {
        Self {
            producer_id: ProducerId::new(0),
            first_offset: 0,
        }
    }
}

impl Wire for AbortedTransaction {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            producer_id: r.read()?,
            first_offset: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.producer_id.write(w)?;
        self.first_offset.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// `int32`, versions 16+.
    pub node_id: NodeId,
    /// `string`, versions 16+.
    pub host: String,
    /// `int32`, versions 16+.
    pub port: i32,
    /// `string`, versions 16+, or null.
    pub rack: Option<String>,
}

impl Default for NodeEndpoint {
    fn default() -> Self {
        Self {
            node_id: NodeId::new(0),
            host: String::new(),
            port: 0,
            rack: None,
        }
    }
}

impl Wire for NodeEndpoint {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            node_id: r.read()?,
            host: r.read()?,
            port: r.read()?,
            rack: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.node_id.write(w)?;
        self.host.write(w)?;
        self.port.write(w)?;
        self.rack.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for FetchResponse {
    const NAME: &'static str = "FetchResponse";
    const VERSIONS: (i16, i16) = (4, 18);
    const FLEXIBLE_SINCE: i16 = 12;
}
